"""Arrivals over time: the mean one-way delay of the packets that arrived in each interval.

For real flows, whose ends' clocks differ, the interarrival jitter.
"""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's delays."""
    column = "owd_s" if "owd_s" in line.data.columns else "jitter_s"
    finite = line.data.filter(pl.col(column).is_finite())
    axes.plot(finite["time_s"], finite[column] * 1e3, **look)


KIND = Kind("arrivals", lambda _span: "one-way delay, or jitter (ms)", draw, ("flow", "instance"))
