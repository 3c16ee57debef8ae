"""Rate control by per-packet acknowledgements over time: the allowed rate of a RAP or TFRCP sender."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate."""
    axes.plot(line.data["time_s"], line.data["allowed_bps"] / 1e6, **look)


KIND = Kind("acks", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
