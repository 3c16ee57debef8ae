"""The window limits that an access point sets, decision by decision; for a single flow also its outstanding data."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's window limit, from each decision to the next, where there is one."""
    data = line.data
    axes.step(data["time_s"], data["window_packets"], where="post", **look)
    if line.count == 1:
        axes.plot(
            data["time_s"], data["outstanding_packets"], color="#B8B8B8", linewidth=0.7, zorder=2, label="outstanding"
        )  # fmt: skip


KIND = Kind("windows", lambda _span: "lowered window (packets)", draw, ("flow", "instance"))
