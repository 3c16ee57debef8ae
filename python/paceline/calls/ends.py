"""The programs at the two ends of the path: the server, the browser, and the flows that are not calls."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

from paceline import files, realtime
from paceline.calls import browser
from paceline.calls.server import DIAL_S, Server

READY_S = 12.0
"""Default time for two browsers to start."""
OTHERS = "others"
"""The folder of the flows that are not calls, as in emulation."""
ZERO = "zero.txt"
"""The file there with the scenario's beginning, by `time.monotonic`."""
FAILED = "failed.txt"
_AFTER_S = 1.5
"""The wait for the last rows at the end."""


def lead_s(ready_s: float) -> float:
    """How long the path runs before the scenario begins: meanwhile the browsers start and dial."""
    return ready_s + DIAL_S


def near(folder: str, program: str, seed: str, every_s: str, ready_s: str) -> None:
    """The sender's end, which lasts as long as the scenario."""
    where = Path(folder)
    zero = float(os.environ["PACELINE_START"]) + lead_s(float(ready_s))
    server = Server(where, "near", zero)
    browser.start(program, where, "near")
    if not server.ready.wait(max(0.0, zero - DIAL_S - time.time())):
        files.write_whole(
            where / FAILED,
            f"Chromium was not ready {float(ready_s):g} s after the path began: this host is too busy, or the browser "
            "does not start here. --ready-within 60s (in Python ready_s=60), up to 10 minutes, waits longer",
        )
        sys.exit(1)
    others = where / OTHERS
    if others.exists():
        time.sleep(max(0.0, zero - time.time()))
        files.write_whole(others / ZERO, repr(time.monotonic() + zero - time.time()))
        realtime.run_client(str(others), seed, every_s)
    time.sleep(max(0.0, zero + server.plan["duration_s"] + _AFTER_S - time.time()))


def far(folder: str, program: str, ready_s: str) -> None:
    """The receiver's end, until it is killed."""
    where = Path(folder)
    Server(where, "far", float(os.environ["PACELINE_START"]) + lead_s(float(ready_s)))
    browser.start(program, where, "far")
    if (where / OTHERS).exists():
        realtime.run_server(str(where / OTHERS))
    threading.Event().wait()
