"""Loss indications over time: cumulative fast retransmissions and series of timeouts."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws the cumulative count."""
    # real QUIC reports no timeouts, only losses
    indications = line.data["fast_retransmits"] + line.data["timeout_series"].fill_null(0)
    axes.plot(line.data["time_s"], indications.cum_sum(), **look)


KIND = Kind("losses", lambda _span: "loss indications (so far)", draw, ("flow", "instance"))
