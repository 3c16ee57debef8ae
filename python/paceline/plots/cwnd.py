"""Congestion windows over time; for a single flow also ssthresh and packets in flight."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.style import PALETTE
from paceline.plots.timeline import Kind, Line, without


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's window."""
    data = line.data
    axes.plot(data["time_s"], data["cwnd_packets"], **look)
    if line.count > 1:
        return
    # Before the first loss ssthresh is practically infinite; draw it only within the figure's range.
    highest = data.select(
        pl.max_horizontal(pl.col("cwnd_packets").max(), pl.col("in_flight_packets").max())
    ).item()
    # a controller without a threshold records none
    ssthresh = data["ssthresh_packets"].to_list() if "ssthresh_packets" in data.columns else []
    inside = [v if v is not None and v <= 1.3 * (highest or 0) else float("nan") for v in ssthresh]
    axes.plot(
        data["time_s"], data["in_flight_packets"], color="#B8B8B8", linewidth=0.7, zorder=2, label="in flight"
    )
    if not all(map(math.isnan, inside)):
        colour = PALETTE[1] if look.get("color") != PALETTE[1] else PALETTE[0]
        axes.plot(
            data["time_s"], inside, color=colour, linewidth=0.9, linestyle="--", zorder=3, label="ssthresh"
        )


KIND = Kind(
    "cwnd",
    lambda _span: "congestion window (packets)",
    draw,
    ("flow", "instance"),
    empty=without("cwnd_packets"),
)
