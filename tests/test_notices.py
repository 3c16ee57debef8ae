"""Notices: each is printed once, and of how many runs it is true."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import paceline
import screen
from paceline.results.results import Results, RunRecord
from paceline.tables import summaries

SLOW = """
duration = "2 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
[access]
rate = "5 Mbit/s"
[flow.a]
"""


def record(seed: int, *notices: tuple[str, str]) -> RunRecord:
    said = [{"kind": kind, "text": text} for kind, text in notices]
    return RunRecord(seed, {"name": "x", "notices": said} if said else {"name": "x"})


def test_equal_notices_are_one() -> None:
    results = Results([record(1, ("a", "One.")), record(2, ("a", "One."), ("b", "Two.")), record(3)], {})
    assert results.notices.rows() == [("a", "One.", 2, None, None), ("b", "Two.", 1, None, None)]
    assert summaries.notices(results) == ["Note: One. (2 of 3 runs)", "Note: Two. (1 of 3 runs)"]


def test_a_count_of_no_whole_stands_alone() -> None:
    notice = {"kind": "a", "text": "Some lack.", "cases": 3}
    results = Results([RunRecord(1, {"name": "x", "notices": [notice]})], {})
    assert summaries.notices(results) == ["Note: Some lack. (counted: 3)"]


def test_many_of_a_kind_are_few_lines() -> None:
    results = Results([record(1, *(("a", f"Number {n}.") for n in range(9)), ("b", "Another."))], {})
    said = summaries.notices(results)
    assert len(said) == summaries.MAX_NOTICES + 2
    assert said[-2].startswith(f"Note: {9 - summaries.MAX_NOTICES} more")
    assert said[-1] == "Note: Another."


def test_runs_without_notices_say_nothing() -> None:
    results = Results([record(1)], {})
    assert results.notices.is_empty()
    assert summaries.notices(results) == []


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    return path


def test_a_slow_access_link_is_noticed_and_kept(file: Path, tmp_path: Path) -> None:
    results = paceline.run(file, runs=2, out=tmp_path / "out")
    (kind, text, runs, *_) = results.notices.row(0)
    assert (kind, runs, len(results.notices)) == ("access-not-faster", 2, 1)
    assert "5 Mbit/s" in text
    assert "`bottleneck`" in text
    assert Results.read(tmp_path / "out").notices.equals(results.notices)
    rows = results.queues.filter(pl.col("link") == "access a[0].source")
    assert rows["direction"].unique().to_list() == ["up"]
    assert (rows["max_packets"] <= 8).all()
    assert paceline.run(file, set={"access.rate": "50 Mbit/s"}).notices.is_empty()


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--runs", "3"],
        ["sweep", "--vary", "link.bottleneck.delay=5 ms,6 ms", "--runs", "2"],
        ["compare", "--vary", "flow.a.cc=newreno,cubic", "--runs", "2"],
    ],
)
def test_commands_say_it_once(arguments: list[str], file: Path, tmp_path: Path) -> None:
    first, *rest = arguments
    printed = screen.paceline(first, file, *rest, where=tmp_path).stdout
    assert printed.count("Note: ") == 1
    assert "no faster than" in " ".join(printed.split())
