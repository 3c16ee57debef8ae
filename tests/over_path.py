"""`paceline path` as a program, and what is left of a run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import Any

from dev_package import PROGRAM

PACELINE = str(PROGRAM)
IPERF3 = "iperf3 -c $PACELINE_PEER --connect-timeout 3000 -J"

FIRST = ["chrt", "--fifo", "1"] if os.geteuid() == 0 and shutil.which("chrt") else []
"""Before what is timed: other programs of this machine are not stolen time, and would be in it."""

LINK = """
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { kind = "droptail", limit = "60 packets" }
"""


def run(
    *words: str, before: list[str] | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """`paceline path`, with what is to stand before it."""
    return subprocess.run(
        [*(before or []), PACELINE, "path", *words],
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def measured(*words: str, before: list[str] | None = None) -> tuple[str, dict[str, Any]]:
    """What a command said, and the summary of its path; `before` stands before it. What else the machine does waits,
    where that is allowed."""
    done = run("--json", *words, before=[*FIRST, *(before or [])])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, summary(done)


def summary(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stderr[done.stderr.index("{\n") :])
    return found


def steal(found: dict[str, Any]) -> float:
    return float(found["path"]["host"]["steal_share"])


def direction(found: dict[str, Any], name: str) -> dict[str, Any]:
    (row,) = [row for row in found["path"]["directions"] if row["direction"] == name]
    return dict(row)


def times(text: str) -> list[float]:
    """The round-trip times that ping prints, in ms."""
    return [float(ms) for ms in re.findall(r"time=([\d.]+) ms", text)]
