"""Round-trip times of the kernel's TCP over time, with a tick at each retransmission; for a lone flow the least RTT."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's smoothed RTT."""
    data = line.data
    axes.plot(data["time_s"], data["srtt_s"] * 1e3, **look)
    resent = data.filter(pl.col("retransmits").diff() > 0)
    # On the time axis: they show when losses were, whatever the RTT was.
    label = "retransmission" if line.count == 1 else None
    axes.plot(
        resent["time_s"],
        [0.0] * len(resent),
        linestyle="",
        marker="|",
        markersize=9,
        color=look["color"],
        clip_on=False,
        label=label,
        zorder=3,
    )
    if line.count == 1:
        least = data["rtt_min_s"] * 1e3
        axes.plot(data["time_s"], least, color="#B8B8B8", linewidth=0.7, zorder=2, label="least RTT")


KIND = Kind("kernel", lambda _span: "smoothed RTT (ms)", draw, ("flow", "instance"))
