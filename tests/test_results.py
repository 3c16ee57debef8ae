"""Tables and their statistics: shapes, types, units, what is missing."""

from __future__ import annotations

import base64
import json
import math
import struct
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import paceline
from paceline.errors import PacelineError, StorageError
from paceline.quantities import unit_of
from paceline.results.columns import TABLES
from paceline.results.results import Results, RunRecord, summarise
from paceline.results.series import series_tables
from paceline.scenarios.scenario import toml_value


def summary(goodput: float, fill: float | None = None) -> dict[str, Any]:
    flow = {
        "flow": "media",
        "instance": 0,
        "group": "g",
        "cc": "vegas",
        "profile": "rfc",
        "from": "l",
        "to": "r",
    }
    return {
        "name": "made",
        "seed": 1,
        "duration_s": 10.0,
        "engine": {"packets_sent": 7},
        "flows": [{**flow, "goodput_bps": goodput, "packets_sent": 5, "rtt_mean_s": None}],
        "streams": [{"flow": "media", "instance": 0, "fill_s": fill, "late_packets": 2}],
        "queues": [
            {"link": "b", "direction": "forward", "mean_packets": 1.5, "drops": {"overflow": 3, "early": 0}}
        ],
        "groups": [],
    }


def made() -> Results:
    records = [RunRecord(1, summary(1e6, 2.0)), RunRecord(2, summary(3e6)), RunRecord(3, summary(2e6, 4.0))]
    return Results(records, {"name": "made"})


def test_tables_have_a_row_per_run_and_thing() -> None:
    results = made()
    assert results.flows["goodput_bps"].to_list() == [1e6, 3e6, 2e6]
    assert results.flows["seed"].to_list() == [1, 2, 3]
    assert results.flows.schema["packets_sent"] == pl.Int64
    assert results.queues["drops_overflow"].to_list() == [3, 3, 3]
    assert results.runs["packets_sent"].to_list() == [7, 7, 7]
    assert results.groups.is_empty()
    with pytest.raises(PacelineError, match="no table"):
        results.table("links")


def test_a_column_without_any_value_keeps_its_type() -> None:
    assert made().flows.schema["rtt_mean_s"] == pl.Float64
    assert made().flows["rtt_mean_s"].null_count() == 3


def test_statistics_leave_out_what_is_missing_and_count() -> None:
    table = made().statistics("streams", measures=["fill_s"])
    (row,) = table.to_dicts()
    assert (row["n"], row["mean"], row["unit"]) == (2, 3.0, "s")
    (row,) = made().statistics("flows", measures=["goodput_bps"]).to_dicts()
    assert (row["n"], row["mean"], row["kind"], row["low"]) == (3, 2e6, "none", None)
    ten = Results([RunRecord(k, summary(k * 1e6)) for k in range(1, 11)], {})
    (row,) = ten.statistics("flows", measures=["goodput_bps"]).to_dicts()
    # without skewness t(0.975, 9) = 2.26216 times sd / sqrt(10)
    assert row["high"] - row["mean"] == pytest.approx(2.26216 * row["sd"] / 10**0.5, rel=1e-5)
    empty = made().statistics("flows", measures=["rtt_mean_s"]).to_dicts()[0]
    assert (empty["n"], empty["mean"], empty["low"]) == (0, None, None)


def test_what_shares_a_run_counts_once() -> None:
    records = []
    for seed in (1, 2, 3):
        one = summary(0.0)
        one["flows"] = [{"flow": "f", "instance": i, "group": "g", "goodput_bps": seed + i} for i in range(5)]
        records.append(RunRecord(seed, one))
    results = Results(records, {})
    (row,) = results.statistics("flows", by=["group"], measures=["goodput_bps"]).to_dicts()
    assert (row["n"], row["mean"], row["sd"]) == (3, 4.0, 1.0)
    assert len(results.statistics("flows", measures=["goodput_bps"])) == 5


def test_statistics_name_an_unknown_column() -> None:
    with pytest.raises(PacelineError, match="no column speed; there are"):
        summarise(made().flows, ["flow"], ["speed"])


def test_a_run_directory_reads_back_as_it_was(tmp_path: Path) -> None:
    results = made()
    results.write(tmp_path / "a" / "b")
    again = Results.read(tmp_path / "a" / "b")
    for name in TABLES:
        assert_frame_equal(again.table(name), results.table(name), check_exact=True)
    assert again.manifest == results.manifest
    assert not [p for p in (tmp_path / "a" / "b").iterdir() if p.name.endswith(".part")]


def test_parquet_fields_carry_their_unit(tmp_path: Path) -> None:
    made().write(tmp_path)
    metadata = pl.read_parquet_metadata(tmp_path / "flows.parquet")
    assert json.loads(metadata["units"]) == {
        "goodput_bps": "bit/s",
        "packets_sent": "packets",
        "rtt_mean_s": "s",
    }
    # The schema is a flatbuffer; a field's metadata stands in it as plain text.
    schema = base64.b64decode(metadata["ARROW:schema"])
    assert b"unit" in schema
    assert b"bit/s" in schema


def test_what_is_no_run_directory_is_said(tmp_path: Path) -> None:
    with pytest.raises(PacelineError, match="no manifest"):
        Results.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(StorageError, match="damaged"):
        Results.read(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(PacelineError, match="no results yet"):
        Results.read(tmp_path)


class MadeSeries:
    table = "cwnd"
    labels = {"flow": "media", "instance": "2"}  # noqa: RUF012
    columns = {"time_s": struct.pack("<2d", 0.0, 0.1), "cwnd_packets": struct.pack("<2d", 1.0, math.inf)}  # noqa: RUF012


def test_series_become_columns() -> None:
    table = series_tables([MadeSeries(), MadeSeries()])["cwnd"]  # type: ignore[list-item]
    assert table.columns == ["flow", "instance", "time_s", "cwnd_packets"]
    assert table.schema["instance"] == pl.Int64
    assert table.rows()[1] == ("media", 2, 0.1, math.inf)
    assert len(table) == 4
    record = RunRecord(9, summary(1.0), {"cwnd": table})
    assert Results([record], {}).series("cwnd")["seed"].to_list() == [9] * 4
    with pytest.raises(PacelineError, match="not recorded"):
        Results([record], {}).series("queue")


@pytest.mark.parametrize(
    ("column", "unit"),
    [
        ("goodput_bps", "bit/s"),
        ("rtt_mean_s", "s"),
        ("mean_packets", "packets"),
        ("mean_bytes", "B"),
        ("jain", "share"),
        ("frames_sent", "frames"),
        ("friendliness", ""),
        ("srtt_s", "s"),
    ],
)
def test_units_come_from_names(column: str, unit: str) -> None:
    assert unit_of(column) == unit


def test_values_become_toml() -> None:
    assert toml_value("50 ms") == "50 ms"
    assert toml_value(True) == "true"
    assert toml_value(3) == "3"
    assert toml_value(0.1) == "0.1"
    assert toml_value(["a", 1]) == '["a", 1]'
    assert toml_value({"kind": "red", "gentle": False}) == '{ "kind" = "red", "gentle" = false }'
    with pytest.raises(PacelineError, match="not a value"):
        toml_value(math.nan)


def of_groups(goodputs: dict[str, float], occupancy: list[float] | None = None) -> dict[str, Any]:
    groups = [
        {"group": group, "flows": 3, "jain": 1.0, "goodput_bps": 3 * rate, "flow_goodput_mean_bps": rate}
        for group, rate in goodputs.items()
    ]
    queue: dict[str, Any] = {"link": "b", "direction": "forward", "mean_packets": 1.5}
    if occupancy is not None:
        queue["occupancy"] = {str(k): share for k, share in enumerate(occupancy)}
    return {**summary(1e6), "groups": groups, "queues": [queue]}


def test_friendliness_is_the_ratio_of_two_groups_run_by_run() -> None:
    runs = [{"lda": 9e5, "ftp": 1e6}, {"lda": 5e5, "ftp": 2e6}, {"lda": 5e5, "ftp": 0.0}]
    results = Results([RunRecord(k, of_groups(run)) for k, run in enumerate(runs)], {"name": "made"})
    found = results.friendliness("lda", "ftp")
    assert found.columns == ["seed", "friendliness"]
    assert found["seed"].to_list() == [0, 1, 2]
    assert found["friendliness"].to_list() == [0.9, 0.25, None]
    with pytest.raises(PacelineError, match='no group "web"; there are lda, ftp'):
        results.friendliness("lda", "web")


def test_occupancy_becomes_a_column_for_each_tenth() -> None:
    tenths = [0.5, *[0.05] * 8, 0.1]
    results = Results([RunRecord(1, of_groups({"a": 1.0}, tenths))], {"name": "made"})
    assert [results.queues[f"occupancy_{k}"][0] for k in range(10)] == tenths
    assert results.queues.schema["occupancy_9"] == pl.Float64
    assert "occupancy_0" not in made().queues.columns


def test_a_run_directory_holds_the_recordings_of_its_last_run_alone(tmp_path: Path) -> None:
    link = '[link.bottleneck]\nrate = "1 Mbit/s"\ndelay = "9 ms"\nqueue = { limit = "9 packets" }\n'
    scenario = paceline.parse(f'duration = "1 s"\n{link}[flow.a]\n')
    for kind in ("cwnd", "queue"):
        paceline.run(scenario, record=(kind,), out=tmp_path / "out")
        assert Results.read(tmp_path / "out").recorded() == [kind]
