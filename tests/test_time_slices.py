"""Runs cut into intervals: the recording `losses`, what is counted of it, and what a paper's metrics make of that."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import paceline
from paceline import models, realtime
from paceline.files.paper_folders import PaperError
from paceline.papers import loading, tables
from paceline.studies import measure, reproduction, time_slices
from paceline.studies.paper import Paper
from stand_in import stand_in

SCENARIO = """
duration = "60 s"
profile = "rfc"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "30 ms"
delay_variation = { max = "8 ms" }
loss = { kind = "uniform", rate = "2 %", on = "data" }
[flow.veno]
cc = "veno"
segment = "500 B"
"""

COUNTS = ["packets_sent", "packets_retransmitted", "fast_retransmits", "timeout_series"]


def recorded(text: str, every_s: float) -> tuple[dict[str, float], pl.DataFrame]:
    """A run whose flow ends before it does: a run's end is not recorded."""
    results = paceline.run(
        paceline.parse(text + 'stop = "50 s"\n'), record=("losses",), record_every_s=every_s
    )
    return results.flows.row(0, named=True), results.series("losses")


@pytest.mark.parametrize("cc", ["veno", "newreno", "tfrc", "multfrc", "rap"])
def test_the_recording_adds_up_to_the_measures_of_the_flow(cc: str) -> None:
    flow, losses = recorded(SCENARIO.replace('"veno"', f'"{cc}"'), 0.5)
    assert losses["time_s"].to_list() == [0.5 * k for k in range(1, 120)]
    for name in COUNTS:
        assert losses[name].sum() == flow[name], name
    samples = float(losses["rtt_samples"].sum())
    mean = float((losses["rtt_mean_s"].fill_nan(0) * losses["rtt_samples"]).sum()) / samples
    assert mean == pytest.approx(flow["rtt_mean_s"], rel=1e-6)
    found = float(losses["fast_retransmits"].sum()) + float(losses["timeout_series"].sum())
    assert found > 20 or cc not in ("veno", "newreno")
    assert (losses["base_rtt_samples"].sum() > 0) == (cc == "veno")


def test_intervals_are_those_of_the_recording_whatever_its_own() -> None:
    flow, fine = recorded(SCENARIO, 0.1)
    _, coarse = recorded(SCENARIO, 5.0)
    cut, same = time_slices.cut(fine, 15.0), time_slices.cut(coarse, 15.0)
    assert [row["time_s"] for row in cut] == [15.0, 30.0, 45.0, 60.0]
    for name in time_slices.COUNTS:
        assert sum(row[name] for row in cut) == flow[name], name
        assert [row[name] for row in cut] == [row[name] for row in same], name
    for one, other in zip(cut, same, strict=True):
        assert one["rtt_mean_s"] == pytest.approx(other["rtt_mean_s"], rel=1e-9)
        assert one["base_rtt_mean_s"] == pytest.approx(other["base_rtt_mean_s"], rel=1e-9)
        assert one["base_rtt_mean_s"] < one["rtt_mean_s"]
    assert cut[0]["send_rate"] == cut[0]["packets_sent"] / 15
    assert len(time_slices.cut(fine, 25.0)) == 2, "what is left at the end is no interval"


def test_an_interval_without_a_sample_has_no_mean() -> None:
    columns = {name: [0.0, 0.0] for name in [*COUNTS, "rtt_samples", "base_rtt_samples", "cwnd_packets"]}
    means = {name: [math.nan, math.nan] for name in time_slices.MEANS}
    frame = pl.DataFrame({"flow": ["f", "f"], "instance": [0, 0], "time_s": [1.0, 2.0], **columns, **means})
    (row,) = time_slices.cut(frame, 2.0)
    assert (row["packets_sent"], row["rtt_mean_s"], row["base_rtt_mean_s"]) == (0.0, None, None)
    assert time_slices.cut(frame.clear(), 2.0) == []


FIGURES = """
[paper]
title = "T"
authors = "A"
published_in = "P"
summary = "S"
runs = 2
[metric.rate]
label = "Packets sent"
unit = "packets/s"
table = "intervals"
match = { flow = "veno" }
field = "send_rate"
rows = "each"
[metric.spread]
label = "Most over least"
expression = "most(rate) / least(rate)"
[metric.lasts]
label = "Length"
unit = "s"
table = "run"
field = "measured_s"
[study.cut]
figure = "1"
title = "Cut"
scenario = "one.toml"
record = "losses"
record_every = 1
cut = 20
axis = { label = "Where", level = [{ label = "whole" }, { label = "short", set = { duration = "30 s" }, cut = 10 }] }
series = [{ key = "veno", label = "Veno" }]
plot = [
    { key = "1", title = "Rates", kind = "trace", label = "Packets/s", trace = { column = ["rate"] } },
    { key = "2", title = "Spread", kind = "bars", metric = "spread" },
]
"""

PUBLISHED = """
[[claim]]
key = "even"
figure = "1"
where = "section 1"
says = "The rate varies little"
kind = "about"
published = 1
study = "cut"
ours = 'spread["veno", "whole"]'
"""


def written(folder: Path, figures: str = FIGURES) -> Paper:
    (folder / "small").mkdir()
    for name, text in {"one.toml": SCENARIO, "figures.toml": figures, "published.toml": PUBLISHED}.items():
        (folder / "small" / name).write_text(text)
    return loading.load(str(folder / "small"))


def test_metrics_of_intervals_make_numbers_of_runs_and_lines_of_traces(tmp_path: Path) -> None:
    done = reproduction.run(written(tmp_path), runs=2)
    lengths = {}
    for place, table in done.recorded.items():
        lengths[place.level] = [part["time_s"].to_list() for part in table.partition_by("seed")]
        for k, part in enumerate(table.partition_by("seed", maintain_order=True)):
            rates = part["rate"].to_numpy()
            assert done.values[place]["spread"][k] == pytest.approx(rates.max() / rates.min())
        assert "rate" not in done.values[place], "a number of each interval is none of the run"
    assert lengths == {"whole": [[20.0, 40.0, 60.0]] * 2, "short": [[10.0, 20.0, 30.0]] * 2}
    assert {p.level: v["lasts"] for p, v in done.values.items()} == {"whole": [60.0] * 2, "short": [30.0] * 2}
    assert tables.recorded(done, "intervals").height == 12
    (result,) = done.results
    assert result.ours is not None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("most(rate) / least(rate)", "rate * 2"), "has many values in a run"),
        (('record = "losses"', 'record = "rate"'), "cutting into intervals"),
        (("cut = 20", "cut = 0"), "must be above 0"),
        (('metric = "spread"', 'metric = "rate"'), "no metric 'rate'"),
        (
            ('column = ["rate"]', 'column = ["rate", "rate"], labels = ["one"]'),
            "as many as there are columns",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, wrong: tuple[str, str], said: str) -> None:
    with pytest.raises(PaperError, match=said):
        reproduction.run(written(tmp_path, FIGURES.replace(*wrong)), runs=1)


def test_each_interval_is_held_against_the_equation_with_what_was_counted_in_it() -> None:
    found = loading.load("tfrc-veno")
    rows = {"cut": [(2000.0, 18.0, 2.0, 0.09, 0.08, 40.0), (1500.0, 25.0, 0.0, 0.085, 0.09, 30.0)]}
    names = (
        "packets_sent",
        "fast_retransmits",
        "timeout_series",
        "rtt_mean_s",
        "base_rtt_mean_s",
        "cwnd_max_packets",
    )
    cut = [
        {"flow": "veno", "send_rate": row[0] / 10, **dict(zip(names, row, strict=True))}
        for row in rows["cut"]
    ]
    # A third interval in which nothing was lost has no p, and counts for nothing.
    cut.append(cut[0] | {"fast_retransmits": 0.0, "timeout_series": 0.0, "base_rtt_mean_s": None})
    flow = {"flow": "veno", "timeout_mean_s": 1.0}
    summary = {"flows": [flow], "intervals": cut, "measured_s": 20.0}
    each = measure.each_of_run(found.metrics, summary)
    for k, row in enumerate(rows["cut"]):
        p = (row[1] + row[2]) / row[0]
        gamma = models.gamma(row[3], min(row[4], row[3]), row[5])
        theory = models.veno_approximate(p, row[3], gamma, rto_s=1.0, w_max_packets=row[5])
        assert each["cut_theory"][k] == pytest.approx(float(theory))
    ratios = np.array(each["cut_rate"])[:2] / np.array(each["cut_theory"])[:2]
    assert math.isnan(each["cut_theory"][2])
    assert measure.of_run(found.metrics, summary)["cut_ratio"] == pytest.approx(ratios.mean())


def test_in_real_time_longer_intervals_hold_what_the_shorter_ones_do() -> None:
    _, fine = recorded(SCENARIO, 0.1)
    thin = realtime._thinned("losses", fine.drop("seed"), 1.5)
    assert thin["time_s"].to_list() == pytest.approx([1.5 * k for k in range(1, 40)] + [59.9])
    for name in [*COUNTS, "rtt_samples", "base_rtt_samples"]:
        assert thin[name].sum() == fine[name].sum(), name
    one, other = time_slices.cut(fine, 15.0), time_slices.cut(thin, 15.0)
    for a, b in zip(one, other, strict=False):
        assert a["rtt_mean_s"] == pytest.approx(b["rtt_mean_s"], rel=1e-9)
        assert a["base_rtt_mean_s"] == pytest.approx(b["base_rtt_mean_s"], rel=1e-9)


def test_counts_that_a_real_run_does_not_know_stay_unknown_in_longer_intervals() -> None:
    """Real QUIC tells of no retransmissions and no timeouts; none is no zero."""
    _, fine = recorded(SCENARIO, 0.1)
    untold = [pl.lit(None, pl.Float64).alias(name) for name in ("packets_retransmitted", "timeout_series")]
    thin = realtime._thinned("losses", fine.drop("seed").with_columns(untold), 1.5)
    for name in ("packets_retransmitted", "timeout_series"):
        assert thin[name].null_count() == len(thin) > 10, name
        assert {row[name] for row in time_slices.cut(thin, 15.0)} == {None}, name
    assert thin["packets_sent"].sum() == fine["packets_sent"].sum()


def test_in_real_time_the_recording_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends record is in `crates/live/src/endpoint/worlds`; here is what becomes of it."""
    stand_in(monkeypatch)
    scenario = paceline.parse(SCENARIO.replace('"60 s"', '"8 s"\nrate_bin = "1 s"'))
    made = realtime.emulate(scenario, 1, ("losses",), 0.5)
    (flow,) = made.summary["flows"]
    losses = made.series["losses"]
    for name in COUNTS:
        # What is sent after the last sample, to repair the last losses, is left out.
        assert flow[name] - 40 <= losses[name].sum() <= flow[name], name
    assert flow["send_rate_cov"] > 0
    (first, second) = time_slices.cut(losses, 4.0)
    assert 0.07 < first["rtt_mean_s"] < 0.2
    assert first["base_rtt_mean_s"] is not None
    assert first["packets_sent"] + second["packets_sent"] > 0.9 * flow["packets_sent"]
    assert first["fast_retransmits"] + second["fast_retransmits"] > 0
