"""RTP over time: the rate that a sender allows itself between reports; for a lone flow also the bottleneck's rate."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate, which stays from one report to the next."""
    axes.plot(line.data["time_s"], line.data["allowed_bps"] / 1e6, drawstyle="steps-post", **look)
    if line.count > 1:
        return
    known = line.data.filter(pl.col("bottleneck_bps").is_finite())
    axes.plot(
        known["time_s"],
        known["bottleneck_bps"] / 1e6,
        color="#B8B8B8",
        linewidth=0.7,
        zorder=2,
        label="bottleneck",
    )


KIND = Kind("rtcp", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
