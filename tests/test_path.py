"""`paceline path` without a path: mistakes, what the emulator is asked for, and what is said of a run.

Programs over real paths are in `test_path_real.py`, what links do to frames in `crates/live/tests/path_core.rs`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import paceline
from over_path import LINK
from paceline import _core
from paceline.cli import app
from stand_in import Output, path_output


@pytest.fixture
def link(tmp_path: Path) -> str:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    return str(file)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["path", *words], env={"COLUMNS": "150"})


class Core:
    """In the place of `_core.run_path`: remembers what it was asked for, and gives `output`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, output: Output) -> None:
        self.requested: dict[str, Any] = {}
        self.output = output
        monkeypatch.setattr(_core, "run_path", self)

    def __call__(self, path: object, command: list[str], **options: Any) -> Output:
        self.requested = {"command": command, **options}
        return self.output


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("LINK",), 2, "give a command to run over the path"),
        (("LINK", "ping", "-c", "1"), 2, 'the command to run follows "--"'),
        ((), 2, "which path?"),
        (("umtz", "--", "true"), 2, "`umtz` is neither a profile"),
        (("LINK", "--set", "link.bottleneck.delai=1ms", "--", "true"), 2, "delai"),
        (("LINK", "--for", "soon", "--", "true"), 2, "--for soon"),
        (("LINK", "--device", "tap", "--", "true"), 2, "must be any, tun or packet"),
        (("--show", "umtz"), 2, "there are wide-area"),
        (("LINK", "--pcap", "/no/such/x", "--", "true"), 1, "cannot write"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], code: int, text: str, link: str) -> None:
    done = run(*[link if word == "LINK" else word for word in words])
    assert done.exit_code == code, done.output
    assert text in " ".join(done.stderr.split())


def test_what_is_no_file_of_text_is_refused(tmp_path: Path) -> None:
    """A pipe that nobody writes to would be waited for without end; and nothing of a file is told that is no trace."""
    pipe, key, named = tmp_path / "pipe", tmp_path / "key", tmp_path / "named.toml"
    os.mkfifo(pipe)
    key.write_text("secret 17 0123456789abcdef\n")
    for file, part in (
        (pipe, "is not a regular file"),
        (Path("/dev/zero"), "is not a regular file"),
        (tmp_path, "cannot be read: "),
        (key, "line 1: expected"),
    ):
        for text in (
            f'rate_trace = {{ file = "{file}" }}\nbackward = {{ rate = "1 Mbit/s" }}',
            f'rate_trace = {{ file = "{file}", format = "seconds-mbit" }}\nbackward = {{ rate = "1 Mbit/s" }}',
            f'rate = "1 Mbit/s"\n[flow.a]\ncc = "udp"\napp = {{ kind = "video-trace", file = "{file}" }}',
        ):
            named.write_text(f"[link.bottleneck]\n{text}\n")
            with pytest.raises(paceline.ScenarioError) as refused:
                paceline.path(named, ["true"])
            assert part in str(refused.value)
            assert "secret" not in str(refused.value)
    done = run(str(pipe), "--", "true")
    assert done.exit_code == 2, done.output
    assert "is not a regular file" in done.stderr


def test_no_command_is_a_mistake(link: str) -> None:
    with pytest.raises(paceline.PacelineError, match="no command"):
        paceline.path(link, [])


def test_the_emulator_is_asked_for_what_the_command_line_says(
    link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = Core(monkeypatch, path_output())
    capture = tmp_path / "path.pcapng"
    done = run(
        *("--far", "iperf3 -s -1", "--for", "500 ms", "--device", "packet", "--ipv4", "--pcap", str(capture)),
        *("--algorithm", "window=30kB", link, "--", "ping", "-c", "1", "a b"),
    )
    assert done.exit_code == 0, done.output
    requested = {key: value for key, value in core.requested.items() if value}
    assert requested == {
        "command": ["ping", "-c", "1", "a b"],
        "far": "iperf3 -s -1",
        "far_output": 2,
        "limit_s": 0.5,
        "device": "packet",
        "ipv4": True,
        "capture": (str(capture), 128),
        "access_point": "window=30kB",
    }
    assert run("--far", "host", link, "--", "true").exit_code == 0
    assert (core.requested["host"], core.requested["far"], core.requested["device"]) == (True, None, "any")
    assert core.requested["record_every_s"] is None
    assert run("--out", str(tmp_path / "out"), link, "--", "true").exit_code == 0
    assert core.requested["record_every_s"] == 0.02


@pytest.mark.parametrize(
    ("status", "changes", "code", "said"),
    [
        (0, {}, 0, "exit code 0"),
        (7, {}, 7, "exit code 7"),
        (137, {}, 137, "exit code 137"),
        (143, {"limited": True}, 0, "ended after its time"),
        (3, {"limited": True}, 3, "ended after its time"),
        (0, {"far_status": 3}, 0, "The far command ended before COMMAND, with exit code 3."),
        (0, {"failure": "a device is gone"}, 1, "the path ended early: a device is gone"),
        (0, {"lost_before": [2, 1]}, 0, "the kernel dropped 3 packets before the emulator read them"),
        (0, {"without": [{"why": "no TUN here"}, {"why": "no TUN here"}]}, 0, "Note: no TUN here."),
    ],
)
def test_the_commands_exit_code_and_what_the_path_did(
    status: int, changes: dict[str, Any], code: int, said: str, link: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Core(monkeypatch, path_output(status, **changes))
    done = run(link, "--", "sh", "-c", "true")
    assert (done.exit_code, done.stdout) == (code, ""), "stdout is the command's alone"
    flat = " ".join(done.stderr.split())
    assert said in flat
    assert "Emulator (lag: how late packets left, median)" in flat
    assert flat.count("no TUN here") <= 1


def test_of_no_packets_no_delay_is_known(link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"count": 0, "p50_s": None, "p95_s": None, "p99_s": None, "max_s": None}
    output = path_output(lag=nothing)
    found = json.loads(output.summary_json)
    for way in found["path"]["directions"]:
        way |= {"entered": 0, "delivered": 0, "delivered_bytes": 0, "delay": nothing, "delay_min_s": None}
    output.summary_json = json.dumps(found)
    Core(monkeypatch, output)
    done = run(link, "--", "true")
    assert done.exit_code == 0, done.output
    document = json.loads(run("--json", link, "--", "true").stderr)
    assert document["path"]["lag"]["p50_s"] is None
    assert "versions" in document


def test_a_run_directory_can_be_read(link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Core(monkeypatch, path_output(5))
    out = tmp_path / "out"
    done = run(
        "--out", str(out), "--far", "echo up", "--set", "link.bottleneck.delay=5ms", link, "--", "true"
    )
    assert done.exit_code == 5
    assert f"Written to {out}." in done.stderr
    manifest = paceline.Results.read(out).manifest
    assert (manifest["kind"], manifest["report"]["status"], manifest["far"]) == ("path", 5, "echo up")
    assert manifest["set"] == {"link.bottleneck.delay": "5ms"}
    assert manifest["scenario"] == LINK
    assert (out / "far.txt").read_text() == "", "it is there for the far command to write to"
