"""What can be recorded over time, and what the options of runs are by default. The command line's help and a shell's
completion read it: it imports nothing."""

from __future__ import annotations

from typing import Literal, get_args

Recording = Literal[
    "cwnd",
    "queue",
    "rate",
    "rtcp",
    "sequence",
    "losses",
    "acks",
    "tfrc",
    "playout",
    "arrivals",
    "frames",
    "airtime",
    "windows",
]
"""What can be recorded over time."""
SERIES: tuple[Recording, ...] = get_args(Recording)
GAUGES = ("cwnd", "acks", "tfrc", "rtcp")
"""Those whose columns are the gauges of controllers and machines; null in the rows of a flow that has no such gauge."""
REAL_SERIES = (*SERIES, "kernel", "delay")
"""Also what only the kernel's TCP on real paths tells, and the delays of an emulated path."""
ALL_SERIES = (*REAL_SERIES, "feedback", "reports", "qlog")
"""Also what the logs of others' calls and QUIC connections tell."""

RECORD_EVERY_S = 0.02
"""Default interval of recordings, in seconds."""
MOST = 1000
"""Runs of a point at most where a precision is asked for, unless told otherwise."""
PORT = 5050
"""Where a server of `paceline serve` listens, over TCP and UDP."""
