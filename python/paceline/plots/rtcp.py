"""RTP over time: the rate that a sender allows itself between reports.

For a lone flow also the bottleneck's rate as its receiver measures it, or else its encoder's.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line, draw_beside


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate, which stays from one report to the next."""
    axes.plot(line.data["time_s"], line.data["allowed_bps"] / 1e6, drawstyle="steps-post", **look)
    # Which of them there is goes by the controller.
    measured = "bottleneck_bps" in line.data.columns and line.data["bottleneck_bps"].is_finite().any()
    beside = ("bottleneck_bps", "bottleneck") if measured else ("encoder_bps", "encoder")
    draw_beside(axes, line, *beside)


KIND = Kind("rtcp", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
