"""Scenarios of controllers of a user's own, and what their twins are held to."""

from __future__ import annotations

from pathlib import Path

from polars.testing import assert_frame_equal

from paceline.results.results import Results

ROOT = Path(__file__).resolve().parent.parent
TWINS = ROOT / "examples" / "controllers"

LOSSY = """
duration = "30 s"
[link.bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
loss = { rate = "1 %" }
queue = { kind = "red", limit = "40 packets", ecn = true }
[flow.own]
cc = "sack"
ecn = true
[flow.pages]
cc = "sack"
app = { kind = "web", gap = "500 ms" }
[flow.other]
cc = "cubic"
"""
PLAIN = """
duration = "20 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
loss = { rate = "0.5 %" }
[flow.own]
cc = "own"
"""


def same(one: Results, other: Results, kind: str) -> None:
    """The same in every number, but for the controllers' names."""
    for table in ("flows", "queues", "runs"):
        own, its = one.table(table), other.table(table)
        assert_frame_equal(
            own.drop("cc", strict=False), its.drop("cc", strict=False), check_exact=True, check_dtypes=False
        )
    assert_frame_equal(one.series(kind), other.series(kind), check_exact=True)
