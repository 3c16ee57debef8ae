"""Seconds of media in the play-out buffer over time."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a stream's buffer."""
    axes.plot(line.data["time_s"], line.data["buffer_s"], **look)


KIND = Kind("playout", lambda _span: "play-out buffer (s of media)", draw, ("flow", "instance"))
