"""What a paper's metrics and recordings take out of runs."""

from __future__ import annotations

import math

import polars as pl
import pytest

from paceline.papers import loading
from paceline.results.results import RunRecord
from paceline.results.series import sparse
from paceline.studies import measure, reproduction
from paceline.studies.metric import Metric


def metric(field: str) -> Metric:
    return Metric("m", "M", "", "queues", {"link": "b"}, field, 100.0)


def test_a_field_may_lie_in_a_table_of_the_row() -> None:
    summary = {"queues": [{"link": "a"}, {"link": "b", "mean": 2.0, "occupancy": {"0": 0.48, "9": 0.0}}]}
    for field, value in {"mean": 200.0, "occupancy.0": 48.0, "occupancy.9": 0.0}.items():
        assert measure.of_run({"m": metric(field)}, summary) == {"m": pytest.approx(value)}
    for field in ("drops.early", "occupancy.5", "mean.5"):
        assert math.isnan(measure.of_run({"m": metric(field)}, summary)["m"]), field


def test_of_a_recording_the_flows_are_kept_that_traces_show() -> None:
    paper = loading.load("lda-plus")
    recording = reproduction.recording(paper.studies["over-time"])
    assert recording is not None
    assert (recording.kind, recording.every_s, recording.flows) == ("rate", 5.0, ("shown",))
    assert reproduction.recording(paper.studies["table1"]) is None
    rows = pl.DataFrame({"flow": ["shown", "lda", "shown"], "time_s": [5.0, 5.0, 10.0]})
    kept = recording.kept([RunRecord(seed, {}, {"rate": rows}) for seed in (1, 2)])
    assert kept is not None
    assert kept["seed"].to_list() == [1, 1, 2, 2]
    assert kept["flow"].unique().to_list() == ["shown"]
    everything = reproduction.recording(loading.load("vegas-streaming").studies["basic"])
    assert everything is not None
    all_flows = everything.kept([RunRecord(1, {}, {"rate": rows})])
    assert all_flows is not None
    assert all_flows.height == 3


def test_a_metric_may_be_of_what_a_run_recorded() -> None:
    rows = pl.DataFrame(
        {"flow": ["a", "b", "a", "a"], "time_s": [1.0, 1.0, 2.0, 3.0], "loss": [0.02, 0.9, 0.3, None]}
    )
    for reduction, value in {"least": 2.0, "most": 30.0, "mean": 16.0, "last": 30.0}.items():
        of_loss = Metric("m", "M", "%", "rtcp", {"flow": "a"}, "loss", 100.0, rows=reduction)
        assert measure.of_point({"m": of_loss}, [{}], [{"rtcp": rows}]) == {"m": [pytest.approx(value)]}
        # a study that does not record it has no value of it
        assert math.isnan(measure.of_run({"m": of_loss}, {})["m"])


def test_what_was_recorded_in_real_time_is_made_sparse() -> None:
    """Rates are means over the interval, weighted by the time that each value stands for; other states the last."""
    times = [0.1, 0.3, 0.4, 1.0, 1.2, 2.0]
    rows = pl.DataFrame(
        {
            "flow": ["a"] * 6,
            "instance": [0] * 6,
            "time_s": times,
            "goodput_bps": [10.0, 0.0, 20.0, 5.0, 100.0, 0.0],
            "send_rate_bps": [math.nan, 4.0, 4.0, 4.0, math.nan, math.nan],
        }
    )
    other = rows.with_columns(pl.lit("b").alias("flow"))
    thin = sparse("rate", pl.concat([rows, other]), 1.0)
    assert thin["flow"].to_list() == ["a", "a", "b", "b"]
    assert thin["time_s"].to_list() == [1.0, 2.0, 1.0, 2.0]
    # 0.1 s of 10, 0.1 s of 20 and 0.6 s of 5; then 0.2 s of 100 in a second
    assert thin["goodput_bps"].to_list()[:2] == pytest.approx([6.0, 20.0])
    assert thin["send_rate_bps"][0] == pytest.approx(4.0)
    assert not math.isfinite(thin["send_rate_bps"].fill_null(math.nan)[1])
    ended = pl.concat([rows, rows.tail(1).with_columns(time_s=pl.lit(2.3))])
    assert sparse("rate", ended, 1.0)["time_s"].to_list() == [1.0, 2.0], (
        "0.3 s of an interval say nothing of it"
    )
    assert sparse("rtcp", rows, 1.0)["goodput_bps"].to_list() == [5.0, 0.0]
