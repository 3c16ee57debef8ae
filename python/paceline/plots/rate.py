"""Goodput over time, averaged over bins long enough to be read."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import Kind, Line

_BINS_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
_MOST_BINS = 250


def bin_s(span_s: float) -> float:
    """The length of the averages for a time span: the shortest round one that gives at most 250 of them."""
    return next((b for b in _BINS_S if span_s / b <= _MOST_BINS), _BINS_S[-1])


def averaged(data: pl.DataFrame, length_s: float) -> pl.DataFrame:
    """Means of goodput_bps over bins of a length, each at its end; recorded bins (of one length) end at time_s."""
    # A recorded bin that ends at a boundary lies before it; the margin takes in rounding.
    number = (pl.col("time_s") / length_s - 1e-6).ceil().cast(pl.Int64)
    return (
        data.group_by(number.alias("bin"), maintain_order=True)
        .agg(pl.col("goodput_bps").mean())
        .select((pl.col("bin") * length_s).alias("time_s"), "goodput_bps")
    )


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's goodput: each mean over the time that it stands for."""
    length = bin_s(span_s)
    means = averaged(line.data, length)
    if means.is_empty():
        return
    times, rates = means["time_s"].to_list(), (means["goodput_bps"] / 1e6).to_list()
    axes.step([times[0] - length, *times], [rates[0], *rates], where="pre", **look)


KIND = Kind(
    "rate", lambda span: f"goodput (Mbit/s, means over {bin_s(span):g} s)", draw, ("flow", "instance")
)
