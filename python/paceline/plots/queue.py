"""Packets waiting in queues over time."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a queue's length, which holds from one sample to the next."""
    axes.step(line.data["time_s"], line.data["packets"], where="post", **{"linewidth": 0.8, **look})


def empty(data: pl.DataFrame) -> bool:
    """Whether the queue was empty at every sample."""
    return not (data["packets"] > 0).any()


KIND = Kind("queue", lambda _span: "queue (packets)", draw, ("link", "direction"), empty)
