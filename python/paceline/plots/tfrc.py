"""Rate control over time: a TFRC sender's allowed rate; for a single flow also the reported receive rate."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line, draw_beside


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate."""
    finite = line.data.filter(pl.col("allowed_bps").is_finite())
    axes.plot(finite["time_s"], finite["allowed_bps"] / 1e6, **look)
    draw_beside(axes, line, "receive_bps", "receive rate")


KIND = Kind("tfrc", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
