"""Goodput over time, averaged over readable bins; for a log without payload sizes the sent or received rate."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.axes import Axes

from paceline.plots.timeline import MAX_MEANS, Kind, Line, without

_BINS_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)


def bin_s(span_s: float) -> float:
    """The bin length for a time span: the shortest round one that gives at most 250 bins."""
    return next((b for b in _BINS_S if span_s / b <= MAX_MEANS + 1e-6), _BINS_S[-1])


_INSTEAD = {"send_rate_bps": "sent", "receive_rate_bps": "received"}
"""Columns that are drawn if there is no goodput, and their names."""


def _column(data: pl.DataFrame) -> str:
    """The column to draw."""
    every = ("goodput_bps", *_INSTEAD)
    return next((column for column in every if not without(column)(data)), "goodput_bps")


def averaged(data: pl.DataFrame, length_s: float, column: str = "goodput_bps") -> pl.DataFrame:
    """Means of a column over bins of a length, each at its end. Recorded intervals end at time_s and begin at the
    previous row's: those of a log last as long as nothing was logged."""
    # A recorded interval that ends at a boundary lies before it; the margin allows for rounding.
    number = (pl.col("time_s") / length_s - 1e-6).ceil().cast(pl.Int64)
    lasts = pl.col("time_s").diff().fill_null(strategy="backward").fill_null(1.0)
    return (
        data.with_columns(lasts.alias("lasts"))
        .group_by(number.alias("bin"), maintain_order=True)
        .agg(((pl.col(column) * pl.col("lasts")).sum() / pl.col("lasts").sum()).alias(column))
        .select((pl.col("bin") * length_s).alias("time_s"), column)
    )


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a flow's rate: each mean over its bin."""
    length, column = bin_s(span_s), _column(line.data)
    means = averaged(line.data, length, column)
    if means.is_empty():
        return
    times, rates = means["time_s"].to_list(), (means[column] / 1e6).to_list()
    axes.step([times[0] - length, *times], [rates[0], *rates], where="pre", **look)


KIND = Kind(
    "rate",
    lambda span: f"goodput (Mbit/s, means over {bin_s(span):g} s)",
    draw,
    ("flow", "instance"),
    instead=lambda data: _INSTEAD.get(_column(data), ""),
    label_instead=lambda span: f"rate (Mbit/s, means over {bin_s(span):g} s)",
    empty=without("goodput_bps", *_INSTEAD),
)
