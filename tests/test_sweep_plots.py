"""Figures from sweeps: what is drawn is what the tables say, and fit to print."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from typer.testing import CliRunner

import paceline
from paceline import quantities
from paceline.cli import app
from paceline.errors import PacelineError
from paceline.files import table_files
from paceline.plots import chart, save, style, sweeps, wording
from paceline.results.results import Results, RunRecord
from paceline.results.subjects import metrics_in
from paceline.sweeps.compare import differences

DELAY, CC = "link.bottleneck.delay", "flow.film.cc"
SEEDS = 10


def goodput(delay: str, cc: str, flow: str, seed: int) -> float:
    """Some rate in bit/s, another for each run."""
    base = {"newreno": 8e6, "vegas": 2e6}.get(cc, 5e6) / (1 + len(delay)) + (1e6 if flow == "film" else 0)
    return base + 1e5 * math.sin(seed * 12.9898 + len(cc))


def swept(
    points: list[dict[str, Any]],
    flows: tuple[str, ...] = ("film",),
    value: Callable[..., float | None] = goodput,
    measure: str = "goodput_bps",
    seeds: int = SEEDS,
) -> Results:
    """The results of a sweep, of made up runs."""
    records = []
    for labels in points:
        for seed in range(1, seeds + 1):
            rows = [
                {
                    "flow": flow,
                    "instance": 0,
                    measure: value(str(labels.get(DELAY)), str(labels.get(CC)), flow, seed),
                }
                for flow in flows
            ]
            records.append(RunRecord(seed, {"flows": rows, "duration_s": 1.0}, {}, labels))
    vary = {path: [str(v) for v in dict.fromkeys(p[path] for p in points)] for path in points[0]}
    return Results(records, {"name": "made", "kind": "sweep", "vary": vary})


GRID = [{DELAY: delay, CC: cc} for delay in ("100 ms", "5 ms", "0.02 s") for cc in ("newreno", "vegas")]


def bars(axes: Axes) -> dict[float, list[tuple[float, float]]]:
    """Lower and upper ends of the bars, by where they stand."""
    found: dict[float, list[tuple[float, float]]] = {}
    for collection in axes.collections:
        assert isinstance(collection, LineCollection)
        for (x, low), (_, high) in collection.get_segments():
            found.setdefault(round(float(x), 9), []).append((float(low), float(high)))
    return found


def marks(axes: Axes) -> list[tuple[float, float, bool]]:
    """The points: where they are, and whether they are hollow."""
    return [
        (float(x), float(y), line.get_markerfacecolor() == "white")
        for line in axes.lines
        if line.get_linestyle() == "None" and line.get_marker() not in ("_", "|")
        for x, y in zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True)
    ]


def entries(figure: Figure) -> list[list[str]]:
    return [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]


@pytest.mark.parametrize(
    ("values", "end", "found"),
    [
        (["20 ms", "1 s", "2 min", "5us"], "_s", [0.02, 1.0, 120.0, 5e-6]),
        (["500 kbit/s", "10Mbps", "1 MB/s"], "_bps", [5e5, 1e7, 8e6]),
        (["50 kB", "1 MiB"], "_bytes", [5e4, 2.0**20]),
        (["50 packets", "1 packet"], "_packets", [50.0, 1.0]),
        (["0", "0.5 %", "100%"], "_share", [0.0, 0.005, 1.0]),
        ([1, 2, 5], "", [1.0, 2.0, 5.0]),
        ([0.5, 1e-3], "", [0.5, 1e-3]),
        (['"20 ms"', "30 ms"], "_s", [0.02, 0.03]),
    ],
)
def test_quantities_are_read_as_numbers_in_base_units(
    values: list[Any], end: str, found: list[float]
) -> None:
    read = quantities.numbers(values)
    assert read is not None
    assert read[0] == end
    assert [read[1][value] for value in values] == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        ["newreno", "vegas"],
        ["50 packets", "50 kB"],
        ["20 ms", "auto"],
        [True, False],
        ["nan", "inf"],
        ["packets", "2 packets"],
        ['{ kind = "red" }'],
        [],
    ],
)
def test_what_is_not_all_quantities_of_one_kind_is_no_number(values: list[Any]) -> None:
    assert quantities.numbers(values) is None


def test_tables_have_numbers_beside_the_texts(tmp_path: Path) -> None:
    results = swept(GRID)
    column = f"{DELAY}_s"
    assert results.axes == [DELAY, CC]
    assert results.numbers == {DELAY: column}
    assert results.flows.columns[:4] == [DELAY, column, CC, "seed"]
    pairs = dict(results.flows.select(DELAY, column).unique().iter_rows())
    assert pairs == {"100 ms": 0.1, "5 ms": 0.005, "0.02 s": 0.02}
    assert results.statistics("flows").columns[:3] == [DELAY, column, CC]
    # Numbers of paths are no measures, whatever the statistics are by.
    for by in (None, ["flow"], ["flow", DELAY]):
        assert set(results.statistics("flows", by)["measure"]) == {"goodput_bps"}
    with pytest.raises(PacelineError, match="no metric"):
        metrics_in(results, [column])
    assert set(differences(results)["metric"]) == {"flows.goodput_bps"}
    results.write(tmp_path)
    assert table_files.read_parquet(tmp_path / "runs.parquet")[column].to_list()[0] == 0.1
    again = Results.read(tmp_path)
    assert again.numbers == results.numbers
    assert again.flows.equals(results.flows)
    # What an older version wrote has texts alone.
    for path in tmp_path.glob("*.parquet"):
        table_files.write_parquet(path, table_files.read_parquet(path).drop(column, strict=False))
    older = Results.read(tmp_path)
    assert older.flows.equals(results.flows)
    assert results.plot("goodput_bps").get_figwidth() == older.plot("goodput_bps").get_figwidth()


def test_counts_are_their_own_numbers() -> None:
    results = swept([{"flow.film.count": n} for n in (1, 2, 5)])
    assert results.numbers == {"flow.film.count": "flow.film.count"}
    assert results.flows.columns[:2] == ["flow.film.count", "seed"]
    axes = results.plot("goodput_bps").axes[0]
    assert [x for x, _, _ in marks(axes)] == [1, 2, 5]
    assert axes.get_xlabel() == "film flows"


def test_a_sweep_writes_the_numbers(tmp_path: Path) -> None:
    text = (
        'duration = "2 s"\n[link.bottleneck]\nrate = "2 Mbit/s"\ndelay = "1 ms"\n[flow.film]\ncc = "vegas"\n'
    )
    scenario = paceline.parse(text, name="small")
    paceline.sweep(scenario, {DELAY: ["5 ms", "1 ms"]}, runs=2, out=tmp_path / "out")
    for stem in ("flows", "flows-statistics", "queues", "runs"):
        table = pl.read_csv(tmp_path / "out" / f"{stem}.csv")
        assert dict(table.select(DELAY, f"{DELAY}_s").unique().iter_rows()) == {"5 ms": 0.005, "1 ms": 0.001}
        assert table.columns[0:2] == [DELAY, f"{DELAY}_s"]


def test_points_and_intervals_are_those_of_the_table() -> None:
    results = swept(GRID)
    axes = results.plot("goodput_bps").axes[0]
    table = results.statistics("flows", [f"{DELAY}_s", CC], ["goodput_bps"]).filter(kind="t")
    assert len(table) == len(GRID)
    wanted = {
        (round(1e3 * x, 9), mean / 1e6, low / 1e6, high / 1e6)
        for x, mean, low, high in table.select(f"{DELAY}_s", "mean", "low", "high").iter_rows()
    }
    drawn = {
        (round(x, 9), y, *min(bars(axes)[round(x, 9)], key=lambda ends: abs(sum(ends) / 2 - y)))
        for x, y, _ in marks(axes)
    }
    assert np.array(sorted(drawn)) == pytest.approx(np.array(sorted(wanted)), rel=1e-9)
    assert sum(map(len, bars(axes).values())) == len(GRID)
    # Bars of two controllers at one number do not hide one another, and the points go with them.
    origins = [one.get_transform().transform((20.0, 1.0))[0] for one in axes.collections]
    assert abs(origins[0] - origins[1]) > 2 * axes.figure.dpi / 72
    points = [
        one for one in axes.lines if one.get_linestyle() == "None" and one.get_marker() in chart.MARKERS
    ]
    assert [one.get_transform().transform((20.0, 1.0))[0] for one in points] == pytest.approx(origins)
    assert not any(hollow for _, _, hollow in marks(axes))
    # 5, 20, 100 ms in order, on an axis of ratios, in ms, each named.
    assert axes.get_xscale() == "log"
    assert axes.get_xlabel() == "bottleneck delay (ms)"
    assert axes.get_ylabel() == "goodput (Mbit/s)"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["5", "20", "100"]
    for line in axes.lines:
        if line.get_linestyle() != "None":
            assert list(np.asarray(line.get_xdata())) == pytest.approx([5, 20, 100])


def kinds_of(
    measure: str, value: Callable[..., float | None], seeds: int = SEEDS
) -> tuple[Figure, Axes, pl.DataFrame]:
    results = swept(
        [{DELAY: delay} for delay in ("5 ms", "10 ms")], value=value, measure=measure, seeds=seeds
    )
    figure = results.plot(measure)
    return figure, figure.axes[0], results.statistics("flows", [f"{DELAY}_s"], [measure])


def test_a_skewed_measure_has_the_interval_of_its_median_in_another_line() -> None:
    figure, axes, table = kinds_of("jitter_s", lambda delay, _cc, _flow, seed: len(delay) * 1e-3 * 2**seed)
    assert set(table["kind"]) == {"median"}
    assert all(hollow for _, _, hollow in marks(axes))
    ends = [ends for found in bars(axes).values() for ends in found]
    wanted = list(table.select("median_low", "median_high").iter_rows())
    assert np.array(sorted(ends)) == pytest.approx(np.array(sorted(wanted)), rel=1e-9)
    assert [y for _, y, _ in marks(axes)] == pytest.approx(table["median"].to_list(), rel=1e-9)
    (collection,) = axes.collections
    assert isinstance(collection, LineCollection)
    dashes: Any = collection.get_linestyle()[0]
    assert dashes[1] is not None, "it is drawn as the interval of a mean is"
    assert entries(figure) == [["median and its interval"]]


def test_a_mean_beyond_the_medians_interval_has_a_mark_of_its_own() -> None:
    figure, axes, table = kinds_of("jitter_s", lambda delay, _cc, _flow, seed: len(delay) * 1e-3 * 64**seed)
    assert (table["mean"] > table["median_high"]).sum() == len(table)
    means = [line for line in axes.lines if line.get_marker() == "x"]
    assert [list(np.asarray(line.get_ydata())) for line in means] == [
        pytest.approx(table["mean"].to_list(), rel=1e-9)
    ]
    hollow = [y for _, y, hollow in marks(axes) if hollow]
    assert hollow == pytest.approx(table["median"].to_list(), rel=1e-9)
    assert entries(figure) == [["median and its interval", "mean beyond it"]]


@pytest.mark.parametrize(
    ("value", "seeds", "kind"),
    [
        (lambda _delay, _cc, _flow, seed: 3.0 if seed == 1 else 0.0, SEEDS, "runs"),
        (lambda _delay, _cc, _flow, _seed: 2.0, SEEDS, "runs"),
        (lambda _delay, _cc, _flow, seed: float(seed), 4, "none"),
    ],
)
def test_no_bar_where_there_is_no_interval(value: Callable[..., float], seeds: int, kind: str) -> None:
    figure, axes, table = kinds_of("timeouts", value, seeds)
    assert set(table["kind"]) == {kind}
    assert bars(axes) == {}
    assert len(marks(axes)) == 2
    faces = {line.get_markerfacecolor() for line in axes.lines if line.get_linestyle() == "None"}
    assert faces == {"white" if kind == "runs" else "#bbbbbb"}, (
        "they are told apart, and from points with an interval"
    )
    said = {"runs": "most runs equal: no interval", "none": "too few runs for an interval"}
    assert entries(figure) == [[said[kind]]]


def test_one_run_has_no_interval_and_says_so_once() -> None:
    results = swept(GRID, seeds=1)
    figure = results.plot("goodput_bps")
    assert bars(figure.axes[0]) == {}
    assert not any(hollow for _, _, hollow in marks(figure.axes[0]))
    assert wording.notes(sweeps.chart(results, "goodput_bps")) == ["One run a point: no intervals."]


def test_the_caption_names_what_is_drawn() -> None:
    assert wording.notes(sweeps.chart(swept(GRID), "goodput_bps")) == [
        "Bars: 95 % intervals of the mean over 10 runs."
    ]
    some = swept(
        GRID,
        value=lambda delay, cc, flow, seed: (
            None if cc == "vegas" and seed < 3 else goodput(delay, cc, flow, seed)
        ),
    )
    assert wording.notes(sweeps.chart(some, "goodput_bps")) == [
        "Bars: 95 % intervals of the mean over 8 to 10 runs.",
        "Hollow, dotted bars: medians over 8 to 10 runs, and where they lie at 95 % or more; an interval of the mean "
        "would not hold.",
        "Note: 3 of 6 points are means over those that have a value.",
    ]


def test_a_point_without_value_breaks_its_line() -> None:
    results = swept(
        [{DELAY: delay} for delay in ("5 ms", "20 ms", "100 ms")],
        value=lambda delay, cc, flow, seed: None if delay == "20 ms" else goodput(delay, cc, flow, seed),
    )
    axes = results.plot("goodput_bps").axes[0]
    assert [x for x, _, _ in marks(axes)] == [5, 100]
    (line,) = [
        line for line in axes.lines if line.get_linestyle() == "-" and line.get_marker() in ("", "None")
    ]
    assert list(np.isnan(np.asarray(line.get_ydata(), dtype=float))) == [False, True, False]
    assert wording.notes(sweeps.chart(results, "goodput_bps")) == [
        "Bars: 95 % intervals of the mean over 10 runs.",
        "Note: 1 of 3 points have no value, and are not drawn.",
    ]


def test_curves_are_by_the_other_paths_and_differ_in_grey() -> None:
    figure = swept(GRID).plot("goodput_bps", x="delay")
    assert entries(figure) == [["NewReno", "Vegas"]]
    looks = {
        (line.get_color(), line.get_marker(), str(line.get_linestyle()))
        for line in figure.legends[0].get_lines()
    }
    assert all(len(set(column)) == 2 for column in zip(*looks, strict=True))
    assert len(chart.MARKERS) == len(set(chart.MARKERS)) == len(style.PALETTE) == sweeps.MAX_CURVES


def test_words_lie_side_by_side_and_quantities_are_named() -> None:
    figure = swept(GRID).plot("goodput_bps", x=CC, by=["delay"])
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["NewReno", "Vegas"]
    assert entries(figure) == [["100 ms", "5 ms", "0.02 s"]]
    assert figure.legends[0].get_title().get_text() == "bottleneck delay"
    xs = sorted(x for x, _, _ in marks(axes))
    assert len(set(xs)) == len(GRID), "points hide each other"
    assert [round(x) for x in xs] == [0, 0, 0, 1, 1, 1]
    assert all(line.get_linestyle() == "None" for line in axes.lines)


def test_flows_have_panels_or_curves_or_are_chosen() -> None:
    results = swept(GRID, ("film", "web"))
    assert [axes.get_title(loc="left") for axes in results.plot("goodput_bps").axes] == ["film", "web"]
    alone = results.plot("goodput_bps", flow=["web"])
    assert [axes.get_ylabel() for axes in alone.axes] == ["goodput of web (Mbit/s)"]
    by_flow = results.plot("goodput_bps", by=["flow"])
    assert [axes.get_title(loc="left") for axes in by_flow.axes] == ["NewReno", "Vegas"]
    assert entries(by_flow) == [["film", "web"]]
    one = swept([{DELAY: "1 ms"}, {DELAY: "2 ms"}], ("film", "web")).plot("goodput_bps")
    assert entries(one) == [["film", "web"]]
    assert len(one.axes) == 1
    assert one.axes[0].get_xscale() == "linear"
    wide = results.plot("goodput_bps", width="page")
    low, high = (axes.get_position() for axes in wide.axes)
    assert low.y0 == high.y0, "panels of a page lie side by side"


def test_paths_that_go_together_are_one_axis() -> None:
    rate = "link.bottleneck.rate"
    steps = [("1 Mbit/s", "50 ms"), ("10 Mbit/s", "5 ms"), ("100 Mbit/s", "1 ms")]
    results = swept([{rate: r, DELAY: d} for r, d in steps])
    found = sweeps.chart(results, "goodput_bps")
    assert (found.x, found.by, found.rest) == (rate, (), ())
    assert [x for x, _ in found.ticks] == [1e6, 1e7, 1e8]
    # Where a value of one goes with several of the other, it does not say which.
    found = sweeps.chart(
        swept([{rate: r, DELAY: d} for r, d in [*steps, ("1 Mbit/s", "5 ms")]]), "goodput_bps"
    )
    assert (found.x, found.by) == (rate, (DELAY,))


@pytest.mark.parametrize(
    ("values", "geometric"),
    [
        ([5, 10, 20, 50, 100], True),
        ([1, 10, 100], True),
        ([10, 20, 40, 80], True),
        ([10, 30, 50, 70, 90], False),
        ([10, 20, 30], False),
        ([1, 2, 4], False),
        ([10, 100], False),
        ([0, 1, 10, 100], False),
        ([10, 50, 90], False),
    ],
)
def test_an_axis_of_ratios_where_values_are_spread_by_ratios(values: list[float], geometric: bool) -> None:
    assert chart.is_geometric(values) is geometric


def test_a_measure_that_follows_an_axis_of_ratios_is_drawn_so_too() -> None:
    rates = {"1 Mbit/s": 1e6, "10 Mbit/s": 1e7, "100 Mbit/s": 1e8}
    path = "link.bottleneck.rate"

    def results(share: float) -> Results:
        records = [
            RunRecord(
                s,
                {"flows": [{"flow": "f", "instance": 0, "goodput_bps": share * bps**0.9 * (1 + 0.01 * s)}]},
                {},
                {path: r},
            )
            for r, bps in rates.items()
            for s in range(1, 5)
        ]
        return Results(records, {"vary": {path: list(rates)}})

    assert results(0.9).plot("goodput_bps").axes[0].get_yscale() == "log"
    flat = results(0.0).plot("goodput_bps").axes[0]
    assert flat.get_yscale() == "linear"
    assert flat.get_ylim()[0] == 0


def test_tables_of_a_scenario_are_named_by_what_tells_them_apart() -> None:
    queue = "link.bottleneck.queue"
    kinds = [f'{{ kind = "{kind}", limit = "60 packets" }}' for kind in ("droptail", "red", "codel")]
    axes = swept([{queue: kind} for kind in kinds]).plot("goodput_bps").axes[0]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["drop-tail", "RED", "CoDel"]


@pytest.mark.parametrize(
    ("measure", "label"),
    [
        ("rtt_p95_s", "RTT, 95th percentile"),
        ("rtt_mean_s", "mean RTT"),
        ("owd_max_s", "greatest one-way delay"),
        ("loss_rate", "loss rate"),
    ],
)
def test_measures_in_words(measure: str, label: str) -> None:
    assert wording.what(sweeps.chart(swept(GRID, measure=measure), measure)) == label


def test_panels_have_one_scale_unless_they_are_far_apart() -> None:
    def rates(film: float, web: float) -> Callable[..., float]:
        return lambda delay, cc, flow, seed: (film if flow == "film" else web) * (1 + seed / 100)

    for web, alike in ((1e6, True), (0.0, True), (0.2e6, True), (0.1e6, False)):
        results = swept(GRID, ("film", "web"), value=rates(3e6, web))
        figure = results.plot("goodput_bps", by="cc", width="page")
        film, other = (axes.get_ylim()[1] for axes in figure.axes)
        assert bool(film == other) is alike, web
        notes = wording.notes(sweeps.chart(results, "goodput_bps", by=["cc"]))
        said = "Panels differ by more than 20 times: each has its own scale."
        assert (said in notes) is not alike
        assert ("each panel has its own scale" in figure.axes[0].get_ylabel().replace("\n", " ")) is not alike


def test_the_legend_says_what_the_curves_are_by() -> None:
    assert titles(swept(GRID).plot("goodput_bps")) == ["controller of film"]
    assert entries(swept(GRID).plot("goodput_bps"))[0] == ["NewReno", "Vegas"]
    figure = swept(GRID, ("film", "web")).plot("goodput_bps", by=["cc", "flow"])
    assert titles(figure) == ["controller of film, flow"]
    assert entries(figure)[0][:2] == ["NewReno, film", "NewReno, web"]
    assert titles(swept([{DELAY: d} for d in ("5 ms", "9 ms")], ("film", "web")).plot("goodput_bps")) == [
        "flow"
    ]


def titles(figure: Figure) -> list[str]:
    """What stands over the entries of the legends."""
    return [legend.get_title().get_text() for legend in figure.legends]


@pytest.mark.parametrize(
    ("width", "inches"), [("column", 3.5), ("page", 7.16), ("4in", 4.0), ("12.7 cm", 5.0), ("127mm", 5.0)]
)
def test_figures_are_as_wide_as_is_said(width: Any, inches: float, tmp_path: Path) -> None:
    figure = swept(GRID, ("film", "web")).plot("goodput_bps", width=width)
    assert figure.get_figwidth() == inches
    save(figure, tmp_path / "f.svg")
    save(figure, tmp_path / "f.pdf")
    save(figure, tmp_path / "f.png", dots_per_inch=300)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.pdf", "f.png", "f.svg"]
    (svg,) = re.findall(r'<svg [^>]*width="([\d.]+)pt"', (tmp_path / "f.svg").read_text().replace("\n", " "))
    (pdf,) = re.findall(rb"/MediaBox \[ 0 0 ([\d.]+) ", (tmp_path / "f.pdf").read_bytes())
    assert float(svg) == pytest.approx(72 * inches, abs=0.01)
    assert float(pdf) == pytest.approx(72 * inches, abs=0.01)
    data = (tmp_path / "f.png").read_bytes()
    assert int.from_bytes(data[16:20], "big") == round(300 * inches)


def test_nothing_is_drawn_beyond_the_figure() -> None:
    long = [f"a-controller-of-some-length-{n}" for n in range(6)]
    results = swept(
        [{CC: cc, DELAY: delay} for cc in long for delay in ("1 ms", "2 ms")], measure="frame_delay_p99_s"
    )
    for width in style.WIDTHS:
        for x in (CC, DELAY):
            figure = results.plot("frame_delay_p99_s", x=x, width=width)
            figure.canvas.draw()
            across, up = figure.get_size_inches() * figure.dpi
            texts = [
                t
                for axes in figure.axes
                for t in (axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels())
            ]
            boxes = [t.get_window_extent() for t in texts] + [
                one.get_window_extent() for one in figure.legends
            ]
            for box in boxes:
                assert box.x0 > -1, (width, x)
                assert box.y0 > -1, (width, x)
                assert box.x1 < across + 1, (width, x)
                assert box.y1 < up + 1, (width, x)
            over = figure.legends[0].get_window_extent()
            assert all(not over.overlaps(axes.get_window_extent()) for axes in figure.axes), (width, x)


def test_letters_in_a_pdf_are_fonts_of_type_42_and_its_bytes_are_the_same_again(tmp_path: Path) -> None:
    figure = swept(GRID).plot("goodput_bps")
    (path,) = save(figure, tmp_path / "f.pdf")
    assert b"/CIDFontType2" in path.read_bytes()
    assert b"/Type3" not in path.read_bytes()
    (again,) = save(figure, tmp_path / "again.pdf")
    assert again.read_bytes() == path.read_bytes()
    # As matplotlib would have it.
    buffer = io.BytesIO()
    figure.savefig(buffer, format="pdf")
    assert b"/Type3" in buffer.getvalue()


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"y": "speed"}, r'no metric "speed" in these results. There are: flows: goodput_bps'),
        ({"x": "dely"}, '"dely" is not varied here; there are delay, cc, flow'),
        ({"by": ["rate"]}, '"rate" is not varied here; there are delay, cc, flow'),
        ({"x": "delay", "by": ["delay"]}, "is the axis"),
        ({"flow": ["movie"]}, "no flow movie has goodput_bps; there are film, web"),
        ({"flow": "movie", "by": "cc"}, "no flow movie has goodput_bps; there are film, web"),
        (
            {"width": "slide"},
            'width = "slide": must be a column or a page, or a length, as 4in',
        ),
        ({"width": "1in"}, "width = 1in: must be 2in to 20in"),
        ({"y": "runs.duration_s", "flow": ["film"]}, "runs.duration_s is not a measure of single flows"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(PacelineError, match=message):
        swept(GRID, ("film", "web")).plot(**{"y": "goodput_bps", **wanted})


def test_too_much_for_a_figure_is_refused() -> None:
    many = [{CC: f"cc{n}", DELAY: delay} for n in range(8) for delay in ("1 ms", "2 ms")]
    with pytest.raises(PacelineError, match=r"8 curves by flow.film.cc are too many \(at most 7\)"):
        swept(many).plot("goodput_bps")
    with pytest.raises(PacelineError, match="13 panels of flow are too many"):
        swept(GRID, tuple(f"f{n}" for n in range(13))).plot("goodput_bps")
    with pytest.raises(PacelineError, match="are not a sweep"):
        Results([RunRecord(1, {"flows": []})], {}).plot("goodput_bps")
    nothing = swept(GRID, value=lambda *_: None)
    with pytest.raises(PacelineError, match=r"flows\.goodput_bps has no value"):
        nothing.plot("goodput_bps")


def here(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_draws_a_sweep(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    swept(GRID, ("film", "web")).write(out)
    done = here("plot", out, "--y", "goodput_bps")
    assert done.exit_code == 0, done.output
    names = [out / f"plot-goodput_bps.{form}" for form in ("svg", "png")]
    assert done.output.splitlines() == [*map(str, names), "Bars: 95 % intervals of the mean over 10 runs."]
    assert all(path.stat().st_size > 5000 for path in names)
    target = tmp_path / "one.pdf"
    chosen = ("--x", "delay", "--by", "cc", "--flow", "film", "--width", "page", "--out", target)
    done = here("plot", out, "--y", "goodput_bps", *chosen)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[0] == str(target)
    assert b"/MediaBox [ 0 0 515.52 " in target.read_bytes()
    assert not list(tmp_path.glob("one.pdf.*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--x", "delay"), "--y MEASURE draws"),
        (("--width", "page"), "--y MEASURE draws"),
        (("--y", "goodput_bps", "--kind", "cwnd"), "--y MEASURE draws"),
        (("--y", "goodput_bps", "--seed", "1"), "--y MEASURE draws"),
        (("--y", "goodput"), 'no metric "goodput"'),
        (("--y", "goodput_bps", "--width", "slide"), "width = "),
        ((), "or draw a measure of"),
    ],
)
def test_the_command_says_what_is_wrong(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    swept(GRID).write(tmp_path)
    done = here("plot", tmp_path, *options)
    assert done.exit_code == 2
    assert message in done.output + done.stderr
