"""Cases of a suite in which something changes at an instant that the run itself makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from paceline import run
from paceline.files.paper_folders import PaperError
from paceline.results.store import Store
from paceline.suite import loading, running
from paceline.suite.verdict import Outcome
from test_suite import PAUSES, SUITE, folder


def test_what_changes_at_an_instant_of_the_run_is_run_twice(tmp_path: Path) -> None:
    text = SUITE.replace('key = "windows"', f'key = "windows"\nat = "grown"\n{PAUSES}')
    suite = loading.load(str(folder(tmp_path / "s", text))).only(["windows"])
    result = running.run(suite, running.subjects_of(suite, ["cubic"]), runs=5, store=Store(tmp_path))
    grown = next(checked for checked in result.answers[0].checks if checked.check.key == "grown-at")
    for seed, at_s in zip(range(1, 6), grown.each, strict=True):
        pause = {"kind": "ftp", "limited": [{"from": f"{round(at_s * 1e9)} ns", "to": "200 s"}]}
        mine = run(
            tmp_path / "s" / "one.toml", seed=seed, set={"flow.media.cc": "cubic", "flow.media.app": pause}
        )
        values = result.made.values[next(iter(result.made.values))]
        assert values["goodput"][seed - 1] == mine.flows["goodput_bps"][0] / 1e6
        assert 0 < values["goodput"][seed - 1] < 0.2, "it stops soon"
    assert len(list((tmp_path / "runs").glob("*.json"))) == 10
    assert running.run(suite, running.subjects_of(suite, ["cubic"]), runs=5).answers[0].checks == (
        result.answers[0].checks
    )


def test_an_instant_that_never_comes_leaves_the_case_undecided(tmp_path: Path) -> None:
    text = SUITE.replace("above = 10 }", "above = 1e6 }").replace(
        'key = "windows"', f'key = "windows"\nat = "grown"\n{PAUSES}'
    )
    suite = loading.load(str(folder(tmp_path / "s", text))).only(["windows"])
    result = running.run(suite, running.subjects_of(suite, []))
    assert result.answers[0].outcome is Outcome.UNDECIDED
    assert all(checked.ours is None or checked.ours.mean is None for checked in result.answers[0].checks)


def test_a_change_that_moves_its_own_instant_is_refused(tmp_path: Path) -> None:
    then = PAUSES.replace("then = {", 'then = { "link.bottleneck.rate" = "1 Mbit/s",')
    text = SUITE.replace('key = "windows"', f'key = "windows"\nat = "grown"\n{then}')
    suite = loading.load(str(folder(tmp_path / "s", text))).only(["windows"])
    with pytest.raises(PaperError, match=r"with seed 1 `grown` is .* must not change the run"):
        running.run(suite, running.subjects_of(suite, []))


CHANGED = [
    "drain-time",
    "up-loss",
    "down-time",
    "cruise-lumps",
    "spurious-timeout",
    "refill-pause",
    "a-tenth",
]


def test_cases_of_bbr_see_what_changes() -> None:
    suite = loading.load("bbr")
    assert [case.key for case in suite.cases if case.change] == sorted(
        CHANGED, key=[case.key for case in suite.cases].index
    )
    lumps = next(case for case in suite.cases if case.key == "startup-lumps")
    unchanged = [replace(case, change=None) for case in suite.cases if case.change]
    # What `then` says of the duration goes with it.
    suite = replace(suite, cases=(*unchanged, replace(lumps, settings=())))
    result = running.run(suite, running.subjects_of(suite, []), runs=5)
    passed = [a.case.key for a in result.answers if a.outcome is Outcome.PASS]
    assert passed == [], "a case that passes without its change tests nothing"


def test_two_timeouts_in_a_row_are_one_recovery_for_bbr3() -> None:
    def cwnd(more: dict[str, object]) -> pl.DataFrame:
        done = run(
            loading.load("bbr").folder / "changes.toml",
            seed=1,
            set={"duration": "8 s", **more},
            record=["cwnd"],
            record_every_s=0.01,
        )
        assert done.flows["timeouts"][0] == (2 if more else 0)
        return done.series("cwnd")

    probes = cwnd({}).filter(pl.col("state") == 5)["time_s"][0]
    spike = {"from": f"{probes:.3f} s", "to": f"{probes + 0.05:.3f} s", "extra": "4 s"}
    table = cwnd({"link.bottleneck.delay_spike": [spike]})
    bounded = table.filter(pl.col("inflight_longterm_packets").is_not_nan())["time_s"]
    assert 0.5 < bounded[0] - probes < 1.5, "the first timeout takes what is late for lost"
    assert bounded[-1] - probes < 4.2, "and nothing is left of that when it has come"
