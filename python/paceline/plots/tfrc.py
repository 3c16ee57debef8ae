"""Rate control over time: the rate that a TFRC sender allows itself; for a lone flow also the receive rate reported."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate."""
    finite = line.data.filter(pl.col("allowed_bps").is_finite())
    axes.plot(finite["time_s"], finite["allowed_bps"] / 1e6, **look)
    if line.count > 1:
        return
    received = line.data.filter(pl.col("receive_bps").is_finite())
    axes.plot(
        received["time_s"],
        received["receive_bps"] / 1e6,
        color="#B8B8B8",
        linewidth=0.7,
        zorder=2,
        label="receive rate",
    )


KIND = Kind("tfrc", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
