"""The medium of 802.11 cells over time: each transmitter's share."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws the share of the medium's time that an interface's exchanges took."""
    axes.plot(line.data["time_s"], line.data["airtime_share"], **look)


KIND = Kind("airtime", lambda _span: "airtime (share)", draw, ("cell", "interface"))
