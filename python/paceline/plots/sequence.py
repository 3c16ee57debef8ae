"""Sequence numbers over time: data packets sent for the first time. Steeper is faster; parallel lines are fair."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's sequence numbers."""
    axes.plot(line.data["time_s"], line.data["sequence_packets"], **look)


KIND = Kind("sequence", lambda _span: "data sent (packets)", draw, ("flow", "instance"))
