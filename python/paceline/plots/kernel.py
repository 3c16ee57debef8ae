"""Round-trip times of the kernel's TCP over time, with a tick at each retransmission; for a single flow min_rtt."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def round_trips(axes: Axes, line: Line, look: dict[str, Any], counter: str, event: str) -> None:
    """Draws a flow's smoothed RTT, and a tick each time that the column `counter` grows, labelled `event`."""
    data = line.data
    axes.plot(data["time_s"], data["srtt_s"] * 1e3, **look)
    grew = data.filter(pl.col(counter).diff() > 0)
    if len(grew) == 0:
        return  # an empty line would be laid out at the figure's corner
    # Ticks lie on the time axis: they mark the times of losses, not RTTs.
    axes.plot(
        grew["time_s"],
        [0.0] * len(grew),
        linestyle="",
        marker="|",
        markersize=9,
        color=look["color"],
        clip_on=False,
        label=event,
        zorder=3,
    )


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's smoothed RTT."""
    round_trips(axes, line, look, "retransmits", "retransmission")
    if line.count == 1:
        min_rtt_ms = line.data["rtt_min_s"] * 1e3
        axes.plot(
            line.data["time_s"], min_rtt_ms, color="#B8B8B8", linewidth=0.7, zorder=2, label="least RTT"
        )


KIND = Kind("kernel", lambda _span: "smoothed RTT (ms)", draw, ("flow", "instance"))
