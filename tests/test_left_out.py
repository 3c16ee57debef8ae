"""Tables leave nothing out in silence: streams that never began, transfers and frames without an end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

import paceline
from paceline.files import table_files
from paceline.results.results import Results, RunRecord
from paceline.sweeps.compare import Comparison, differences
from paceline.tables import summaries
from paceline.tables.comparison import left_out
from paceline.tables.layout import Layout
from paceline.tables.sweep import tables as sweep_tables

FILM = """
duration = "20 s"
[link.bottleneck]
rate = "1 Mbit/s"
delay = "10 ms"
[flow.film]
count = 2
start = ["0 s", "19.9 s"]
app = { kind = "stream", media_rate = "2 Mbit/s", length = "40 s" }
[flow.file]
app = { kind = "ftp", size = "50 MB" }
"""


def stream(instance: int, fill: float | None, late: float | None, **more: Any) -> dict[str, Any]:
    began = fill is not None
    return {
        "flow": "film",
        "instance": instance,
        "began": began,
        "fill_s": fill,
        "late_share": late,
        "stall_share": None,
        "undelivered_share": 0.0 if began else 0.9,
        "throughput_bps": 1e6,
    } | more


def films(cc: str, seed: int, never: int) -> RunRecord:
    """A run with four films, of which so many never begin to play."""
    streams = [stream(i, None if i < never else 2.0 + i, 1.0 if i < never else 0.1) for i in range(4)]
    return RunRecord(seed, {"name": "films", "streams": streams}, {}, {"cc": cc})


def results() -> Results:
    """Two seeds; under vegas three of eight films never begin, under cubic all do."""
    records = [films("vegas", 1, 1), films("vegas", 2, 2), films("cubic", 1, 0), films("cubic", 2, 0)]
    return Results(records, {"name": "films", "vary": {"cc": ["vegas", "cubic"]}})


def printed(tables: list[Layout], width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    for table in tables:
        console.print(table.fitted(width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_run_shows_which_streams_never_began() -> None:
    text = printed(summaries.tables(Results([films("vegas", 1, 1)], {})))
    head = next(line for line in text.splitlines() if line.startswith("stream"))
    assert head.split("  ")[0] == "stream"
    for column in ("began", "fill time", "late", "undelivered"):
        assert column in head
    never, first = (next(line for line in text.splitlines() if f"film[{i}]" in line) for i in (0, 1))
    assert never.split()[3:] == ["no", "-", "100", "%", "90", "%"]
    assert first.split()[3:] == ["yes", "3", "s", "10", "%", "0", "%"]
    assert "1 of 4 streams never began to play" in text


def test_many_streams_are_counted_though_not_all_are_shown() -> None:
    streams = [stream(i, 2.0 if i < 40 else None, 0.1 if i < 40 else 1.0) for i in range(49)]
    text = printed(summaries.tables(Results([RunRecord(1, {"name": "films", "streams": streams})], {})))
    assert "and 19 more" in text
    assert "9 of 49 streams never began to play" in text


def test_where_all_is_well_nothing_more_is_shown() -> None:
    text = printed(summaries.tables(Results([films("cubic", 1, 0)], {})))
    for column in ("began", "undelivered", "stalled"):
        assert column not in text


def test_players_that_stall_have_no_late_packets_and_a_share_of_stalls() -> None:
    streams = [stream(0, 2.0, None, stall_share=0.0)]
    text = printed(summaries.tables(Results([RunRecord(1, {"name": "films", "streams": streams})], {})))
    assert "late" not in text
    assert "stalled" in text


def test_means_over_runs_say_of_how_many() -> None:
    records = [
        RunRecord(seed, {"name": "x", "streams": [stream(0, fill, 0.0)]})
        for seed, fill in enumerate((2.0, None, 4.0))
    ]
    text = printed(summaries.tables(Results(records, {})))
    assert "(2 of 3)" in text
    assert "66.7 %" in text or "67 ±" in text, "the share that began"


def test_a_sweep_says_of_how_many_instances_a_mean_is() -> None:
    text = printed(sweep_tables(results()))
    vegas, cubic = (
        next(line for line in text.splitlines() if line.startswith(cc)) for cc in ("vegas", "cubic")
    )
    assert "(5 of 8)" in vegas
    assert " of " not in cubic
    for column in ("began", "undelivered"):
        assert column in text
    assert "3 of 16 streams never began to play" in text


def test_a_comparison_shows_what_never_began_and_of_how_many_a_mean_is() -> None:
    found = results()
    table = differences(found)
    assert table["metric"].to_list() == [
        "streams.began",
        "streams.fill_s",
        "streams.late_share",
        "streams.undelivered_share",
    ]
    began, fill, late, undelivered = table.to_dicts()
    assert (began["first_mean"], began["second_mean"]) == (0.625, 1.0)
    counts = ("first_values", "first_rows", "second_values", "second_rows")
    assert [fill[name] for name in counts] == [5, 8, 8, 8]
    assert [late[name] for name in counts] == [8, 8, 8, 8]
    assert late["first_mean"] == pytest.approx((3 * 1.0 + 5 * 0.1) / 8), "those that never began count"
    assert undelivered["first_mean"] == pytest.approx(3 * 0.9 / 8)
    (note,) = left_out(Comparison(table, found))
    assert "fill time of film" in note
    assert "5 of 8 (vegas), 8 of 8 (cubic)" in note


def test_a_comparison_is_not_burdened_with_what_nothing_is_lost_of() -> None:
    records = [films(cc, seed, 0) for cc in ("vegas", "cubic") for seed in (1, 2)]
    found = Results(records, {"name": "films", "vary": {"cc": ["vegas", "cubic"]}})
    table = differences(found)
    assert table["metric"].to_list() == ["streams.fill_s", "streams.late_share"]
    assert left_out(Comparison(table, found)) == []


def test_transfers_without_an_end_are_told_where_their_times_are_compared() -> None:
    records = []
    for cc in ("vegas", "cubic"):
        for seed in (1, 2):
            flow = {"flow": "f", "instance": 0, "transfer_time_mean_s": 2.0 + seed, "transfers_completed": 5}
            flow |= {"transfers_unfinished": 2 if cc == "vegas" else 0}
            records.append(RunRecord(seed, {"flows": [flow]}, {}, {"cc": cc}))
    found = Results(records, {"vary": {"cc": ["vegas", "cubic"]}})
    table = differences(found, ["transfer_time_mean_s"])
    (note,) = left_out(Comparison(table, found))
    assert "leaves out 4 transfers that had not finished" in note
    assert "covers 20" in note
    assert left_out(Comparison(differences(found, ["transfers_completed"]), found)) == []


def test_statistics_count_the_values_of_instances() -> None:
    fill = results().statistics("streams", by=["cc"], measures=["fill_s", "late_share", "began"])
    rows = {(row["cc"], row["measure"]): row for row in fill.iter_rows(named=True)}
    vegas = rows["vegas", "fill_s"]
    assert (vegas["n"], vegas["values"], vegas["rows"]) == (2, 5, 8)
    assert rows["vegas", "late_share"]["values"] == 8
    assert rows["vegas", "began"]["mean"] == 0.625
    single = Results([films("vegas", 1, 1)], {}).statistics("streams", measures=["fill_s"])
    assert single.select("n", "values", "rows").rows() == [(0, 0, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)]


def test_a_run_in_which_nothing_arrived_is_among_those_that_did() -> None:
    def call(seed: int, delay: float | None, gap: float | None) -> RunRecord:
        flow: dict[str, Any] = {"flow": "call", "instance": 0, "cc": "udp", "goodput_bps": 1e5}
        flow |= {"owd_p50_s": delay, "jitter_s": None, "interarrival_max_s": gap}
        other: dict[str, Any] = {"flow": "file", "instance": 0, "cc": "reno", "goodput_bps": 1e6}
        return RunRecord(seed, {"name": "x", "flows": [flow, other | {"owd_p50_s": None}]})

    found = Results([call(1, 0.1, 0.2), call(2, 0.1, 0.2), call(3, None, 20.0)], {})
    assert summaries.rows(found, "arrivals")["flow"].to_list() == ["call"] * 3
    arrivals = printed(summaries.tables(found)).split("Arrivals")[1].split("\n\n")[0]
    assert "(2 of 3)" in arrivals


def test_cases_of_notices_are_summed_up() -> None:
    def said(seed: int, cases: int) -> RunRecord:
        notice = {"kind": "streams-cut", "text": "`film` is cut.", "cases": cases, "of": 4}
        streams = [{"flow": "film", "instance": i} for i in range(4)] + [{"flow": "other", "instance": 0}]
        return RunRecord(seed, {"name": "x", "streams": streams, "notices": [notice] if cases else []})

    assert summaries.notices(Results([said(1, 3)], {})) == ["Note: `film` is cut. (3 of 4)"]
    assert summaries.notices(Results([said(1, 3), said(2, 1)], {})) == ["Note: `film` is cut. (4 of 8)"]
    many = summaries.notices(Results([said(1, 3), *(said(n, 0) for n in range(2, 11))], {}))
    assert many == ["Note: `film` is cut. (3 of 40, in 1 of 10 runs)"], "of the streams of all runs"


def test_runs_tell_what_their_end_cuts_off(tmp_path: Path) -> None:
    path = tmp_path / "film.toml"
    path.write_text(FILM)
    found = paceline.run(path, runs=2, out=tmp_path / "out")
    notices = {row["kind"]: row for row in found.notices.iter_rows(named=True)}
    assert (notices["streams-cut"]["cases"], notices["streams-cut"]["of"]) == (4, 4)
    assert (notices["transfers-cut"]["cases"], notices["transfers-cut"]["of"]) == (2, 2)
    assert found.streams.filter(pl.col("instance") == 1)["late_share"].to_list() == [1.0, 1.0]
    assert (found.flows.filter(flow="file")["transfers_unfinished"] == 1).all()
    read = Results.read(tmp_path / "out")
    assert read.notices.equals(found.notices)
    assert read.streams.equals(found.streams)


def test_results_of_an_older_version_are_read_and_told_of(tmp_path: Path) -> None:
    path = tmp_path / "film.toml"
    path.write_text(FILM)
    paceline.run(path, out=tmp_path / "out")
    streams = table_files.read_parquet(tmp_path / "out" / "streams.parquet")
    new = ["began", "due_packets", "stall_share"]
    table_files.write_parquet(tmp_path / "out" / "streams.parquet", streams.drop(new))
    notices = table_files.read_parquet(tmp_path / "out" / "notices.parquet")
    table_files.write_parquet(tmp_path / "out" / "notices.parquet", notices.drop("cases", "of"))
    read = Results.read(tmp_path / "out")
    assert read.notices["kind"].to_list()[-1] == "older-measures"
    assert "older" not in "".join(paceline.run(path).notices["kind"])
    text = printed(summaries.tables(read))
    assert "1 of 2 streams never began to play" in text, "their fill time says it"
    assert any("related late packets to the whole medium" in note for note in summaries.notices(read))
