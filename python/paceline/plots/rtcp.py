"""RTP over time: a sender's allowed rate between reports.

For a single flow also the bottleneck's rate as measured by its receiver, or else its encoder's rate.
"""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line, draw_beside


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's allowed rate, which holds from one report to the next."""
    axes.plot(line.data["time_s"], line.data["allowed_bps"] / 1e6, drawstyle="steps-post", **look)
    # The controller determines which of them exists.
    measured = "bottleneck_bps" in line.data.columns and line.data["bottleneck_bps"].is_finite().any()
    beside = ("bottleneck_bps", "bottleneck") if measured else ("encoder_bps", "encoder")
    draw_beside(axes, line, *beside)


KIND = Kind("rtcp", lambda _span: "allowed rate (Mbit/s)", draw, ("flow", "instance"))
