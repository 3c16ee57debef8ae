"""Only regular files are read: a pipe that nobody writes to is waited for without end. And what memory does not hold is
refused before it is built."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline import files
from paceline.calls import captures, dump, event_log
from paceline.emulator import fitting
from paceline.errors import PacelineError
from paceline.live import replay
from paceline.scenarios import rate_traces
from paceline.simulate import memory
from paceline.suite import sim_specs

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")

PIPE = r"it is a pipe \(FIFO\), and only regular files are read"


def within(seconds: float, work: Callable[[], Any]) -> None:
    """Fails if the work takes longer; a thread that waits for a pipe is left to wait."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it waits for the pipe"
    if failed:
        raise failed[0]


def scenario(cc: str) -> str:
    return f'duration = "1 s"\n[link.bottleneck]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n[flow.a]\ncc = "{cc}"\n'


READERS: dict[str, Callable[[Path], Any]] = {
    "qlog": paceline.qlog,
    "fit": fitting.fit,
    "python:": lambda path: paceline.parse(scenario(f"python:{path}:Mine")),
    "library:": lambda path: paceline.parse(scenario(f"library:{path}")),
    "replay": replay.replay,
    "read_text": files.read_text,
    "trace": rate_traces.read,
    "capture": captures.read,
    "event log": event_log.read,
    "dump": dump.read,
    "specs": lambda path: sim_specs.case(path, "x"),
    "scenario": paceline.load,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_refused_in_words(tmp_path: Path, reader: str) -> None:
    path = tmp_path / "pipe.py"
    os.mkfifo(path)
    said = "not a regular file" if reader == "scenario" else PIPE
    with pytest.raises(PacelineError, match=rf"pipe\.py.*{said}"):
        within(10, lambda: READERS[reader](path))


def test_what_else_is_no_file_is_named(tmp_path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "socket"))
    kinds = {"socket": "it is a socket", ".": "Is a directory"}
    for name, said in kinds.items():
        with pytest.raises(PacelineError, match=said) as found:
            files.read_text(tmp_path / name)
        assert found.value.exit_code == 2
    listening.close()
    with pytest.raises(PacelineError, match="it is a device"):
        files.read_text(Path("/dev/null"))


def test_flows_without_memory_are_refused_with_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    many = paceline.parse(scenario("cubic") + "count = 100_000\n")
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000_000_000)
    said = r"100,000 flows need at least 2\.4 GB, and this process may have 1\.0 GB: use fewer flows \(`count`\)$"
    with pytest.raises(PacelineError, match=said):
        paceline.run(many)
    # side by side they take more
    some = paceline.parse(scenario("cubic") + "count = 30_000\n")
    with pytest.raises(
        PacelineError, match=r"2 runs at once of 30,000 flows need at least 1\.4 GB.*, or workers=1"
    ):
        paceline.run(some, runs=2, workers=2)


def test_a_control_groups_limit_counts_without_what_it_gives_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    whole = memory.free_bytes()
    for name, text in {"max": "5000", "current": "4000", "stat": "anon 9\ninactive_file 2500\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    assert memory.free_bytes() == 3500
    (tmp_path / "memory.max").write_text("max\n")
    assert whole is None or memory.free_bytes() != 3500


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are told by Linux")
def test_a_process_with_too_little_memory_says_so_and_lives() -> None:
    code = (
        "import paceline, resource\n"
        f"many = paceline.parse({scenario('cubic') + 'count = 100_000'!r})\n"
        "import polars\nused = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))\n"
        "try:\n    paceline.run(many, workers=1)\n"
        "except paceline.PacelineError as error:\n    print('refused:', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.match(
        r"refused: 100,000 flows need at least 2\.4 GB, and this process may have [01]\.\d GB", done.stdout
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is told by Linux")
def test_a_scenario_of_many_flows_is_checked_cheaply() -> None:
    """Only what is drawn tells the instances of a flow apart: a thousand of each are looked at."""
    code = (
        "import paceline, resource, time\n"
        f"text = {scenario('cubic') + 'count = 100_000'!r}\n"
        "before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()\n"
        "paceline.parse(text)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.process_time() - began)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    kilobytes, seconds = map(float, done.stdout.split())
    assert kilobytes < 100_000
    assert seconds < 1
