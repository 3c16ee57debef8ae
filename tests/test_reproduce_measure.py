"""What a paper's metrics and recordings take out of runs."""

from __future__ import annotations

import math

import polars as pl
import pytest

from paceline.reproduce import loading, measure, reproduction
from paceline.reproduce.paper import Metric
from paceline.results import RunRecord


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
    assert kept["seed"].to_list() == [1, 1, 2, 2]
    assert kept["flow"].unique().to_list() == ["shown"]
    everything = reproduction.recording(loading.load("vegas-streaming").studies["basic"])
    assert everything is not None
    assert everything.kept([RunRecord(1, {}, {"rate": rows})]).height == 3
