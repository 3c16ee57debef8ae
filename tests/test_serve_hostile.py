"""`paceline serve` as a process, under flows that are meant to stop it: others are served, its memory is bounded, and
SIGINT ends it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paceline.live.send import send

pytestmark = [pytest.mark.realtime, pytest.mark.long]

HOSTILE = (
    # more than a processor makes, in segments of 16 bytes
    ("newreno", ("app.kind=cbr", "app.rate=100 Mbit/s", "segment=16 B")),
    ("cubic", ("app.kind=ftp", "segment=16 B", "receive_window=65536")),
    ("newreno", ("app.kind=web", "app.gap=1 us", "app.mean_size=1 B", "app.arrivals=open")),
    ("newreno", ("app.kind=pareto", "app.rate=5 Gbit/s", "app.burst=1000000 s", "app.idle=0 s")),
)
"""Flows that a server sends: controllers with settings."""

MEMORY = 200e6


ENDS = (
    "its application makes data faster than its sender's processor works through them",
    "more than 65536 writes of its application wait",
)
"""Why a server ends such a flow itself."""


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], int, list[str]]]:
    """A server on loopback, its port, and the lines of its log, which grow."""
    command = [sys.executable, "-m", "paceline", "serve", "--bind", "127.0.0.1", "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            found = re.search(r":(\d+),", server.stderr.readline())
            assert found is not None
            log: list[str] = []
            threading.Thread(target=log.extend, args=(server.stderr,), daemon=True).start()
            yield server, int(found[1]), log
        finally:
            if server.poll() is None:
                server.kill()


def hostile(port: int, cc: str, settings: tuple[str, ...]) -> subprocess.Popen[str]:
    """A client that asks for such a flow, in a process of its own, which takes no processor from the server: it would
    have a host of its own."""
    words = [word for setting in settings for word in ("--set", setting)]
    command = [
        "nice",
        "-n",
        "19",
        sys.executable,
        "-m",
        "paceline",
        "send",
        "127.0.0.1",
        "--port",
        str(port),
        "--reverse",
    ]
    return subprocess.Popen(
        [*command, "--cc", cc, "--for", "50s", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )


def resident(process: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_a_server_outlives_hostile_flows_and_ends_when_told() -> None:
    with serving("--max-memory", f"{MEMORY:.0f} B", "--max-duration", "60s") as (server, port, log):
        send("127.0.0.1", "tfrc", duration_s=0.5, port=port)
        before = resident(server.pid)
        clients = [hostile(port, cc, settings) for cc, settings in HOSTILE]
        try:
            end = time.monotonic() + 40
            while sum("to 127.0.0.1 for 50 s" in line for line in log) < len(HOSTILE):
                assert time.monotonic() < end, log
                time.sleep(0.1)
            for _ in range(3):
                began = time.monotonic()
                # TFRC sends a packet a second until the first feedback (RFC 5348, 4.2); one may be lost in the crowd
                row = send("127.0.0.1", "tfrc", duration_s=3.0, port=port).flows.row(0, named=True)
                # of three seconds; the rest is the agreement and the end
                assert row["packets_delivered"] > 10, row
                assert time.monotonic() - began < 6
            assert resident(server.pid) - before < MEMORY
            for client in clients:
                if client.poll() is not None:
                    text = " ".join(client.communicate()[0].split())
                    assert any(why in text for why in ENDS), text
            began = time.monotonic()
            server.send_signal(signal.SIGINT)
            server.wait(timeout=10)
            assert time.monotonic() - began < 2
        finally:
            for client in clients:
                client.kill()
                client.wait()


def test_recordings_count_in_sum_and_memory_comes_back() -> None:
    """Flows one after the other take no more than those of one moment, and what they had goes with them."""
    with serving("--max-memory", "64 MB", "--max-duration", "60s") as (server, port, _):
        send("127.0.0.1", "tfrc", duration_s=0.5, port=port)
        before = resident(server.pid)
        peak = 0
        for _ in range(4):
            send("127.0.0.1", "newreno", duration_s=1.0, direction="both", flows=2, port=port)
            peak = max(peak, resident(server.pid))
        assert peak - before < 64e6
        time.sleep(1)
        assert resident(server.pid) - before < 16e6
