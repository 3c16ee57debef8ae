"""The recordings over time, and the default values of run options. The command line's help and shell completion read
this module, so it imports nothing."""

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
"""The kinds of recordings."""
SERIES: tuple[Recording, ...] = get_args(Recording)
GAUGES = ("cwnd", "acks", "tfrc", "rtcp")
"""Kinds whose columns are gauges of controllers and senders; null in the rows of a flow that has no such gauge."""
REAL_SERIES = (*SERIES, "kernel", "delay")
"""With the kernel's TCP on real paths, and the delays of an emulated path."""
ALL_SERIES = (*REAL_SERIES, "feedback", "reports", "qlog")
"""With the logs of other programs' calls and QUIC connections."""

RECORD_EVERY_S = 0.02
"""Default recording interval, in seconds."""
MAX_RUNS = 1000
"""Default limit on a point's runs if a precision is requested."""
PORT = 5050
"""Port on which `paceline serve` listens, over TCP and UDP."""
