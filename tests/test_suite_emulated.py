"""A suite over the emulator, by what stands for its paths: the same cases, what is kept, and what cannot be there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paceline import realtime
from paceline.cli import app
from paceline.results.store import Store
from paceline.studies.study import World
from paceline.suite import compiled, loading, report, running
from paceline.suite.verdict import Outcome
from stand_in import stand_in
from test_suite import PAUSES, SUITE, folder


def test_the_cases_run_in_real_time_and_their_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch)
    suite = loading.load(str(folder(tmp_path / "small"))).only(["used", "windows"])
    of, store = running.subjects_of(suite, ["cubic"]), Store(tmp_path)
    result = running.run(suite, of, runs=5, store=store, real_time=realtime.Emulator())
    used, windows = result.answers
    by_label = {checked.check.label: checked for answer in (used, windows) for checked in answer.checks}
    # The link has 2 Mbit/s, and a run 4 s.
    assert used.outcome is Outcome.PASS
    assert all(1 < each <= 2 for each in by_label["goodput"].each)
    assert all(0.5 < each <= 1 for each in by_label["every run"].each[:2])
    assert all(1 < each < 8 for each in by_label["rate"].each[:2]), "more than the mean"
    assert all(each > 10 for each in by_label["window"].each), "what is recorded beside the first is, too"
    assert result.made.real is not None
    # Five runs of cubic and of Vegas at each rate; the window is that of cubic at 2 Mbit/s.
    assert len(result.made.real.steal) == 20
    assert used.command.endswith("--over emulator --scheme cubic --case used")
    assert "in real time" in report.markdown(result)

    class Never:
        def __call__(self, *_: object) -> None:
            raise AssertionError("what is there runs again")

    again = running.run(suite, of, runs=5, store=store, real_time=Never())  # type: ignore[arg-type]
    assert [answer.checks for answer in again.answers] == [answer.checks for answer in result.answers]


def test_what_cannot_run_in_real_time_is_undecided_with_the_reason(tmp_path: Path) -> None:
    text = SUITE.replace('key = "windows"', f'key = "windows"\nat = "grown"\n{PAUSES}')
    where = folder(tmp_path / "small", text)
    pages = (where / "web.toml").read_text()
    home = pages.replace("[link.bottleneck]", 'topology = "home"\n[link.web]').replace(
        "[flow.media]", '[cell.home.station.pc]\n[flow.media]\nfrom = "web"\nto = "pc"'
    )
    (where / "web.toml").write_text(home)
    suite = loading.load(str(where))
    _, refused = compiled.paper(suite, running.subjects_of(suite, []), World.EMULATED)
    assert refused["windows", "newreno"].reason.startswith("a change at an instant of the run needs")
    assert "not a graph" in refused["pages", "newreno"].reason
    assert set(refused) == {("windows", "newreno"), ("pages", "newreno")}
    _, simulated = compiled.paper(suite, running.subjects_of(suite, []))
    assert not simulated


def test_a_place_that_there_is_not_is_named(tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["suite", str(folder(tmp_path / "small")), "--over", "emulater"])
    assert said.exit_code == 2
    assert "--over emulater: must be simulator or emulator" in said.stderr


def test_the_command_writes_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    monkeypatch.chdir(tmp_path)
    words = [
        "suite",
        str(folder(tmp_path / "small")),
        "--case",
        "used",
        "--over",
        "emulator",
        "--runs",
        "1",
        "--json",
    ]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert said.exit_code == 3, "one run has no interval"
    manifest = json.loads(said.stdout)
    assert manifest["over"] == "emulator"
    assert (tmp_path / "out" / "suite-small-emulator" / "index.html").exists()
    page = (tmp_path / "out" / "suite-small-emulator" / "index.html").read_text()
    assert "The emulators handed packets out" in page
