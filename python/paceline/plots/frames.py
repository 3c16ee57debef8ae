"""Frames over time: their age when they were complete, or when a jitter buffer released them.

For a single flow also how long the picture has been frozen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from paceline.plots import style
from paceline.plots.timeline import Kind, Line

FROZEN_S = 0.15
"""A picture that has stood for a shorter time is not frozen, whatever the frame interval."""


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws the mean delay of a flow's frames; nothing for an interval without a frame."""
    shown = line.data.filter(pl.col("frame_delay_s").is_finite())
    axes.plot(shown["time_s"], shown["frame_delay_s"] * 1e3, **look)
    ages_s = line.data["picture_age_s"].to_numpy()
    if line.count == 1 and np.any(ages_s >= FROZEN_S):
        ms = np.where(ages_s >= FROZEN_S, ages_s * 1e3, np.nan)
        axes.plot(
            line.data["time_s"], ms, color=style.OTHERS, linewidth=1.2, zorder=2, label="picture stands"
        )


KIND = Kind("frames", lambda _span: "delay of frames (ms)", draw, ("flow", "instance"))
