"""Figures over time: what is drawn is what was recorded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.collections import LineCollection
from matplotlib.patches import Rectangle

from paceline.errors import PacelineError
from paceline.plots import KINDS, figure, gauges, occupancy, save
from paceline.plots.rate import averaged, bin_s
from paceline.plots.style import PALETTE
from paceline.plots.timeline import MAX_NAMED, Panel, lines
from paceline.results.results import Results, RunRecord


def recorded(kind: str, flows: int = 2, samples: int = 500) -> pl.DataFrame:
    times = np.arange(samples) * 0.02
    parts = []
    for i in range(flows):
        values = 10 + i + np.sin(times)
        columns = {
            "cwnd": ["cwnd_packets", "ssthresh_packets", "srtt_s", "in_flight_packets"],
            "rate": ["goodput_bps"],
            "rtcp": [
                *("allowed_bps", "reported_loss", "rtt_s", "bottleneck_bps", "signal_s"),
                *("target_bps", "encoder_bps", "window_packets"),
            ],
            "sequence": ["sequence_packets", "sent_packets"],
            "losses": ["packets_sent", "fast_retransmits", "timeout_series"],
            "acks": ["allowed_bps", "gap_s", "srtt_s", "timeout_s", "in_flight_packets"],
            "tfrc": ["allowed_bps", "receive_bps", "loss_event_rate", "srtt_s", "window_packets"],
            "kernel": ["srtt_s", "rtt_min_s", "retransmits"],
            "qlog": ["srtt_s", "latest_rtt_s", "rtt_min_s", "lost_packets"],
            "queue": ["packets", "bytes", "delay_s"],
            "playout": ["buffer_s"],
            "arrivals": ["owd_s", "owd_max_s", "interarrival_max_s", "jitter_s"],
            "frames": ["frames", "frame_delay_s", "frame_delay_max_s", "picture_age_s"],
            "airtime": ["airtime_share"],
            "windows": ["window_packets", "outstanding_packets"],
            "feedback": ["delay_s", "lost_packets"],
        }[kind]
        who = {
            "queue": {"link": "b", "direction": ["backward", "forward"][i % 2]},
            "airtime": {"cell": "home", "interface": ["ap", "laptop"][i % 2]},
        }.get(kind, {"flow": "f", "instance": i})
        head = [pl.lit(value).alias(name) for name, value in who.items()]
        data = pl.DataFrame({"time_s": times, **dict.fromkeys(columns, values)})
        parts.append(data.select(*head, pl.all()))
    return pl.concat(parts)


@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_has_labels_units_a_legend_and_axes_from_zero(kind: str, tmp_path: Path) -> None:
    made = figure(KINDS[kind], [Panel("one", recorded(kind)), Panel("two", recorded(kind, samples=400))])
    first, second = made.axes
    assert first.get_ylim()[0] == 0
    assert first.get_ylim() == second.get_ylim()
    assert first.get_xlim() == pytest.approx((0, 10.0))
    assert second.get_xlabel() == "time (s)"
    label = made.get_supylabel()
    assert "(" in label
    assert label.endswith(")")
    legend = first.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) >= 2
    paths = save(made, tmp_path / kind)
    assert [p.suffix for p in paths] == [".svg", ".png"]
    assert all(p.stat().st_size > 1000 for p in paths)


def test_a_name_with_another_ending_is_told_which_there_are(tmp_path: Path) -> None:
    made = figure(KINDS["cwnd"], [Panel("one", recorded("cwnd"))])
    for name in ("x.jpg", "x.jpg2", "x.Svgz"):
        with pytest.raises(PacelineError, match=r"figures are \.svg, \.png, \.pdf; a name without an ending"):
            save(made, tmp_path / name)
    assert [path.name for path in save(made, tmp_path / "v1.2")] == ["v1.2.svg", "v1.2.png"]
    assert [path.name for path in save(made, tmp_path / "gate.log", ["pdf"])] == ["gate.log.pdf"]


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(figure(KINDS["cwnd"], [Panel("one", recorded("cwnd"))]), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_controller_without_a_threshold_has_no_line_of_one() -> None:
    one = recorded("cwnd", flows=1)
    labels = [
        [line.get_label() for line in figure(KINDS["cwnd"], [Panel("one", data)]).axes[0].lines]
        for data in (one, one.drop("ssthresh_packets"))
    ]
    assert [("ssthresh" in found, "in flight" in found) for found in labels] == [(True, True), (False, True)]


def test_a_flow_has_one_colour_in_all_figures_of_a_run() -> None:
    parts = [recorded("cwnd", flows=1).with_columns(flow=pl.lit(name)) for name in ("a", "b", "c")]
    silent = parts[0].with_columns(cwnd_packets=float("nan"))
    playing = recorded("playout", flows=1).with_columns(flow=pl.lit("b"))
    flows = [{"flow": name, "instance": i} for name, i in (("c", 0), ("b", 0), ("a", 0), ("a", 1))]
    series = {"cwnd": pl.concat([silent, *parts[1:]]), "playout": playing, "queue": recorded("queue")}
    results = Results([RunRecord(1, {"flows": flows}, series)], {"name": "made"})
    # in the order of a figure of all: flows of one instance first
    colours = {"b": PALETTE[0], "c": PALETTE[1]}
    for kind, names in {"cwnd": "bc", "playout": "b", "gauges": "bc"}.items():
        axes = results.plot(kind).axes[0]
        legend = axes.get_legend()
        assert legend is not None
        found = {line.get_label(): line.get_color() for line in legend.get_lines()}
        assert {name: found[name] for name in names} == {name: colours[name] for name in names}, kind
    (alone,) = results.plot("cwnd", flow="c").axes
    assert alone.lines[0].get_color() == PALETTE[1]
    threshold = next(line for line in alone.lines if line.get_label() == "ssthresh")
    assert threshold.get_color() != PALETTE[1]
    assert results.plot("queue").axes[0].lines[0].get_color() == PALETTE[0]


def test_a_window_ends_with_its_flow() -> None:
    """Of a flow that was over it went on to the end of the figure."""
    over = pl.when(pl.col("time_s") > 3.0)
    names = ("cwnd_packets", "ssthresh_packets", "srtt_s", "in_flight_packets")
    data = recorded("cwnd").with_columns(
        over.then(0.0 if name == "in_flight_packets" else 7.0).otherwise(name).alias(name) for name in names
    )
    lives = recorded("cwnd", flows=1).with_columns(flow=pl.lit("z"))
    for made in (
        figure(KINDS["cwnd"], [Panel("one", pl.concat([data, lives]))]),
        gauges.figure([Panel("one", pl.concat([data, lives]).with_columns(seed=1))]),
    ):
        ends = [float(np.asarray(line.get_xdata())[-1]) for line in made.axes[0].lines]
        assert ends == pytest.approx([9.98, 3.02, 3.02])
        assert made.axes[0].get_xlim() == pytest.approx((0, 10))
    # A log ends with its connection, of which an end may only listen.
    logged = figure(KINDS["cwnd"], [Panel("one", data, goes_on=False)])
    assert [float(np.asarray(line.get_xdata())[-1]) for line in logged.axes[0].lines] == pytest.approx(
        [9.98] * 2
    )


def test_axes_of_zeros_end_at_one() -> None:
    """They ended at 0.055, and those of gauges began at -0.055."""
    nothing = recorded("losses").with_columns(fast_retransmits=0.0, timeout_series=0.0)
    assert figure(KINDS["losses"], [Panel("one", nothing)] * 2).axes[1].get_ylim() == (0, 1)
    gauge = recorded("cwnd").select("flow", "instance", "time_s", calm=pl.lit(0.0))
    assert gauges.figure([Panel("one", gauge)]).axes[0].get_ylim() == (0, 1)
    some = nothing.with_columns(fast_retransmits=pl.when(pl.col("time_s") == 2.0).then(0.01).otherwise(0.0))
    assert figure(KINDS["losses"], [Panel("one", some)]).axes[0].get_ylim()[1] < 0.1


def test_what_there_is_one_of_has_no_number() -> None:
    def title(kind: str, *seeds: int) -> str:
        records = [RunRecord(seed, {}, {"cwnd": recorded("cwnd")}) for seed in seeds]
        return Results(records, {"kind": kind, "name": "made"}).plot("cwnd").axes[0].get_title(loc="left")

    assert title("watch", 1) == "made"
    assert title("emulation", 1, 2) == "made, run 1"
    assert title("run", 7) == "made, seed 7"


def test_many_flows_are_counted_not_named() -> None:
    made = figure(KINDS["cwnd"], [Panel("many", recorded("cwnd", flows=30))])
    legend = made.axes[0].get_legend()
    assert legend is not None
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == MAX_NAMED
    assert texts[-1] == "24 others"
    assert len(made.axes[0].lines) == 30


def test_lone_flows_come_before_crowds_and_instances_in_order() -> None:
    crowd = recorded("cwnd", flows=12)
    lone = recorded("cwnd", flows=1).with_columns(flow=pl.lit("z"))
    names = [line.name for line in lines(KINDS["cwnd"], pl.concat([crowd, lone]).sort("time_s"))]
    assert names == ["z", *(f"f[{i}]" for i in range(12))]


def test_lines_have_names_and_forward_comes_first() -> None:
    assert [line.name for line in lines(KINDS["cwnd"], recorded("cwnd", flows=1))] == ["f"]
    assert [line.name for line in lines(KINDS["cwnd"], recorded("cwnd"))] == ["f[0]", "f[1]"]
    assert [line.name for line in lines(KINDS["queue"], recorded("queue"))] == ["b forward", "b backward"]
    assert len(set(PALETTE)) == len(PALETTE)


def test_empty_queues_are_named_below_and_the_warm_up_is_shaded() -> None:
    data = recorded("queue")
    none = data.with_columns(
        packets=pl.when(pl.col("direction") == "backward").then(0.0).otherwise("packets")
    )
    drawn = figure(KINDS["queue"], [Panel("one", none, warmup_s=3.0)]).axes[0]
    assert len(drawn.lines) == 1
    assert drawn.get_xlabel() == "time (s)\nempty in every sample, not drawn: b backward"
    legend = drawn.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["b forward", "warm-up"]
    assert drawn.patches[0].get_extents().transformed(drawn.transData.inverted()).x1 == pytest.approx(3.0)
    # Where all are empty there is nothing else to draw; where none is, nothing is said.
    for same in (data.with_columns(packets=0.0), data):
        axes = figure(KINDS["queue"], [Panel("one", same)]).axes[0]
        assert len(axes.lines) == 2
        assert axes.get_xlabel() == "time (s)"


@pytest.mark.parametrize(
    ("span", "length"), [(1.0, 0.02), (10.0, 0.05), (60.0, 0.5), (300.0, 2.0), (1e6, 60.0)]
)
def test_bins_are_round_and_few(span: float, length: float) -> None:
    assert bin_s(span) == length


def test_averages_keep_the_total() -> None:
    times = np.round(np.arange(1, 501) * 0.02, 9)
    rates = np.arange(500.0)
    means = averaged(pl.DataFrame({"time_s": times, "goodput_bps": rates}), 0.5)
    assert means["time_s"].to_list() == pytest.approx(np.arange(1, 21) * 0.5)
    assert float(means["goodput_bps"].sum()) * 0.5 == pytest.approx(rates.sum() * 0.02)
    # The first bin is of the 25 samples that end at 0.02 to 0.5 s.
    assert means["goodput_bps"][0] == pytest.approx(12.0)


def test_means_are_no_shorter_than_samples() -> None:
    for apart, length in ((0.01, "0.02"), (0.1, "0.1"), (0.25, "0.5")):
        times = np.arange(1, 21) * apart
        data = pl.DataFrame({"flow": "a", "instance": 0, "time_s": times, "goodput_bps": 1e6})
        drawn = figure(KINDS["rate"], [Panel("made", data)])
        assert drawn.get_supylabel() == f"goodput (Mbit/s, means over {length} s)"


def queues_with(*occupancies: dict[str, float] | None) -> Results:
    def summary(occupancy: dict[str, float] | None) -> dict[str, object]:
        queue: dict[str, object] = {"link": "b", "direction": "forward"}
        return {"queues": [{**queue, "occupancy": occupancy} if occupancy else queue]}

    return Results([RunRecord(k, summary(o)) for k, o in enumerate(occupancies)], {"name": "made"})


def test_occupancy_is_drawn_as_shares_of_time_with_their_intervals() -> None:
    first = {str(k): share for k, share in enumerate([0.5, *[0.05] * 8, 0.1])}
    second = {str(k): share for k, share in enumerate([0.3, *[0.05] * 8, 0.3])}
    results = queues_with(first, second)
    (histogram,) = occupancy.histograms(results)
    assert histogram.name == "b forward"
    (axes,) = occupancy.figure([histogram]).axes
    bars = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert bars == pytest.approx([40, *[5] * 8, 20])
    assert axes.get_ylim()[0] == 0
    assert "%" in axes.get_ylabel()
    assert "limit" in axes.get_xlabel()
    assert axes.get_xticklabels()[9].get_text() == "90-100"
    # Two runs: t(0.975, 1) sd / sqrt(2) = 12.7062 x 10 points of 40 %.
    (whiskers,) = [line for line in axes.collections if isinstance(line, LineCollection)]
    segment = whiskers.get_segments()[0]
    assert segment[1][1] - segment[0][1] == pytest.approx(2 * 12.7062 * 10, rel=1e-4)
    with pytest.raises(PacelineError, match="at most 8"):
        occupancy.figure([histogram] * 9)
    with pytest.raises(PacelineError, match="occupancy = true"):
        occupancy.histograms(queues_with(None))


def test_a_gauge_that_nobody_here_has_heard_of_is_drawn_with_its_unit(tmp_path: Path) -> None:
    times = [0.0, 0.1, 0.2]
    nan = float("nan")
    head = {"seed": 1, "instance": 0}
    moon = {"time_s": times, "cwnd_packets": [1.0, 2.0, 3.0], "moonlight_bps": [nan, 2e6, 3e6]}
    tide = {"time_s": times, "cwnd_packets": [2.0, 2.0, 2.0], "tide": [0.5, 0.4, nan], "ebb_s": [nan] * 3}
    parts = [pl.DataFrame({"flow": name, **head, **own}) for name, own in (("a", moon), ("b", tide))]
    data = pl.concat(parts, how="diagonal")
    assert gauges.gauges([Panel("one", data)]) == ["cwnd_packets", "moonlight_bps", "tide"]
    made = gauges.figure([Panel("one", data), Panel("two", parts[0])])
    assert [axes.get_ylabel() for axes in made.axes[::2]] == [
        "cwnd\n(packets)",
        "moonlight\n(Mbit/s)",
        "tide",
    ]
    drawn = made.axes[2].get_lines()[0]
    assert np.asarray(drawn.get_ydata())[1:] == pytest.approx([2.0, 3.0])
    with pytest.raises(PacelineError, match="too many"):
        gauges.figure([Panel(str(i), data) for i in range(gauges.MAX_RUNS + 1)])
    with pytest.raises(PacelineError, match="no gauge"):
        gauges.figure([Panel("none", parts[1].select("flow", "instance", "time_s", "ebb_s"))])
    results = Results([RunRecord(1, {}, {"cwnd": data.drop("seed")})], {})
    assert results.series("cwnd").columns == [
        *("seed", "flow", "instance", "time_s", "cwnd_packets", "moonlight_bps", "tide", "ebb_s"),
    ]
    assert len(save(made, tmp_path / "gauges")) == 2
