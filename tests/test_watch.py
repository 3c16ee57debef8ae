"""`paceline watch` without connections: mistakes, exit codes, Ctrl-C, and what is said and written.

Real connections are in `test_watch_real.py` and in `crates/live/tests/kernel_watch.rs`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import paceline
from paceline import _core
from paceline.cli import app
from paceline.errors import PacelineError
from paceline.live import watch as watch_module
from paceline.live.watch import CommandError
from stand_in import Watch, connection


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["watch", *map(str, arguments)], env={"COLUMNS": "150", "NO_COLOR": "1"})


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Watch]:
    """Puts a `Watch` in the place of the core's."""

    def put(*flows: dict[str, Any], lasts: bool = True) -> Watch:
        watch = Watch(flows, lasts=lasts)
        monkeypatch.setattr(_core, "TcpWatch", watch)
        return watch

    return put


PROGRAM = ["sh", "-c", "echo said by the program; exit 3"]


def test_a_command_s_exit_code_is_passed_on_and_its_output_is_its_own(
    watched: Callable[..., Watch], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    watch = watched(connection())
    done = run("--out", tmp_path / "w", "--", *PROGRAM)
    assert done.exit_code == 3, done.output
    assert (capfd.readouterr().out, done.stdout) == ("said by the program\n", "")
    assert watch.opened == ("children", [], 0.01, 0.05, None)
    for part in ("127.0.0.1:45589", "reno", f"Written to {tmp_path / 'w'}"):
        assert part in " ".join(done.stderr.split())
    results = paceline.Results.read(tmp_path / "w")
    (flow,) = results.flows.to_dicts()
    assert (flow["bytes_delivered"], flow["ended"], flow["pid"]) == (300_000, "closed", 17_888)
    manifest = results.manifest
    assert (manifest["kind"], manifest["exit_code"], manifest["interrupted"]) == ("watch", 3, False)
    assert manifest["watch"] == {"whose": "children", "numbers": [], "command": PROGRAM}
    assert 0 <= manifest["host_state"]["steal_share"] <= 1


def test_json_is_one_document_where_the_table_would_be(watched: Callable[..., Watch]) -> None:
    watched(connection())
    done = run("--json", "--", *PROGRAM)
    assert (done.exit_code, done.stdout) == (3, "")
    found = json.loads(done.stderr)
    assert (found["flows"][0]["bytes_delivered"], found["flows"][0]["to"]) == (300_000, "127.0.0.1:45589")
    assert (found["watch"]["exit_code"], found["watch"]["interrupted"]) == (3, False)
    assert {"notes", "versions", "end_s"} <= found.keys()
    watch = watched(lasts=False)
    done = run("--port", 80, "--port", 443, "--for", "200ms", "--every", "5ms", "--json")
    assert json.loads(done.stdout)["flows"] == []
    assert (done.exit_code, done.stderr) == (0, "")
    assert watch.opened == ("ports", [80, 443], 0.005, 0.05, 0.2)


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--for", "9s"), 130)])
def test_ctrl_c_keeps_what_is_done(
    words: tuple[str, ...],
    code: int,
    watched: Callable[..., Watch],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without --for Ctrl-C is its end."""
    watched(connection(ended="open"), connection(ended="open", instance=1))
    monkeypatch.setattr(watch_module, "_wait_for_end", interrupt)
    done = run("--port", 80, *words, "--out", tmp_path / "w")
    assert done.exit_code == code, done.output
    assert "Written to" in done.stdout
    results = paceline.Results.read(tmp_path / "w")
    assert len(results.flows) == 2
    assert set(results.flows["ended"]) == {"open"}
    assert results.manifest["interrupted"]


class Clock:
    """In the place of `time`: it passes over the first grace, in which a command may end by itself, and stands then."""

    def __init__(self) -> None:
        self.looks = 0

    def monotonic(self) -> float:
        self.looks += 1
        return min(self.looks, 3) * watch_module._GRACE_S


def test_a_command_that_is_stopped_is_ended(
    watched: Callable[..., Watch], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched()
    monkeypatch.setattr(watch_module, "time", Clock())
    found = paceline.watch(command=["sleep", "60"], view=interrupt)
    assert (found.manifest["interrupted"], found.manifest["exit_code"]) == (True, 128 + 15)
    assert found.flows.is_empty()
    monkeypatch.undo()
    watched()
    monkeypatch.setattr(watch_module, "_GRACE_S", 0.1)
    ready = tmp_path / "ready"

    def interrupted(_: dict[str, Any]) -> None:
        if ready.exists():
            raise KeyboardInterrupt

    stubborn = ["sh", "-c", f"trap '' TERM; touch {ready}; exec sleep 60"]
    found = paceline.watch(command=stubborn, view=interrupted)
    assert found.manifest["exit_code"] == 128 + 9


def test_mistakes_are_named(watched: Callable[..., Watch], tmp_path: Path) -> None:
    for arguments, words in {
        (): "say what to watch",
        ("--port", "80", "--all"): "say what to watch",
        ("--port", "70000"): "no port 70000",
        ("--pid", "4194305"): "no process 4194305",
        ("--all", "--every", "soon"): "--every soon",
        ("--all", "--every", "1us", "--for", "1s"): "every_s",
    }.items():
        done = run(*arguments)
        assert done.exit_code == 2, done.output
        assert words in done.stderr, done.stderr
        assert len(done.stderr.strip().split("\n")) == 1, done.stderr
    with pytest.raises(PacelineError, match="say what to watch: one of port"):
        paceline.watch(port=1, pid=1)
    with pytest.raises(PacelineError, match="the command is empty"):
        paceline.watch(command=[])
    watched()
    done = run("--", "no-such-program-here")
    assert (done.exit_code, "no-such-program-here" in done.stderr) == (127, True)
    with pytest.raises(CommandError) as refused:
        paceline.watch(command=[str(tmp_path)])
    assert refused.value.exit_code == 126
