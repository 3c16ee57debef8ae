"""Feedback over time: packets' delays above the minimum of the log, and a cross for losses."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws the delays and losses that each feedback packet reports."""
    known = line.data.filter(pl.col("delay_s").is_finite())
    axes.plot(known["time_s"], known["delay_s"] * 1e3, **look)
    lost = known.filter(pl.col("lost_packets") > 0)
    axes.plot(lost["time_s"], lost["delay_s"] * 1e3, "x", color=look.get("color"), markersize=4, zorder=3)


KIND = Kind(
    "feedback", lambda _span: "delay above the least, crosses: losses (ms)", draw, ("flow", "instance")
)
