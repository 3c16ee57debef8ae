"""Round-trip times of a QUIC connection over time, as its log tells them, with a tick at each loss; for a lone
connection the samples and the least RTT."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a connection's smoothed RTT."""
    data = line.data
    axes.plot(data["time_s"], data["srtt_s"] * 1e3, **look)
    lost = data.filter(pl.col("lost_packets").diff() > 0)
    # On the time axis: they show when losses were, whatever the RTT was.
    label = "loss" if line.count == 1 else None
    axes.plot(
        lost["time_s"],
        [0.0] * len(lost),
        linestyle="",
        marker="|",
        markersize=9,
        color=look["color"],
        clip_on=False,
        label=label,
        zorder=3,
    )
    if line.count == 1:
        for column, colour, name in (
            ("latest_rtt_s", "#D8D8D8", "latest RTT"),
            ("rtt_min_s", "#909090", "least RTT"),
        ):
            axes.plot(data["time_s"], data[column] * 1e3, color=colour, linewidth=0.7, zorder=1, label=name)


KIND = Kind("qlog", lambda _span: "smoothed RTT (ms)", draw, ("flow", "instance"))
