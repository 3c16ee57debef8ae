"""RTP over time: the rate that a sender allows itself between reports; for a lone flow also the bottleneck's rate."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line, draw_beside


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate, which stays from one report to the next."""
    axes.plot(line.data["time_s"], line.data["allowed_bps"] / 1e6, drawstyle="steps-post", **look)
    draw_beside(axes, line, "bottleneck_bps", "bottleneck")


KIND = Kind("rtcp", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
