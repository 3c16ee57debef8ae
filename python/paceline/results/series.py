"""Recordings over time as tables: read from the core, and thinned."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from paceline import _core

# Polars imports NumPy when it first sees an array, and fails if several threads do so at once: its stand-in for NumPy
# then takes NumPy's `_globals` for its own. Threads make and write the tables below, so this import does it once, while
# other threads wait for this module.
pl.DataFrame({"time_s": np.zeros(1)}).write_parquet(io.BytesIO(), metadata={})


def series_tables(series: Iterable[_core.Series]) -> dict[str, pl.DataFrame]:
    """One table per kind of recording; labels and columns side by side, null if a flow lacks the column."""
    frames: dict[str, list[pl.DataFrame]] = {}
    for one in series:
        columns = {
            name: np.frombuffer(data, dtype="<f8").astype(np.float64, copy=sys.byteorder != "little")
            for name, data in one.columns.items()
        }
        labels = [
            pl.lit(int(value) if name == "instance" else value).alias(name)
            for name, value in one.labels.items()
        ]
        frames.setdefault(one.table, []).append(
            pl.DataFrame(columns).select(*_instance_as_integer(labels, one.labels), pl.all())
        )
    return {kind: pl.concat(parts, how="diagonal") for kind, parts in frames.items()}


def _instance_as_integer(literals: list[pl.Expr], labels: Mapping[str, str]) -> list[pl.Expr]:
    return [e.cast(pl.Int64) if name == "instance" else e for name, e in zip(labels, literals, strict=True)]


def sparse(kind: str, table: pl.DataFrame, every_s: float) -> pl.DataFrame:
    """A run's recording with at most one row every `every_s` seconds: for `rate` the mean over that time, otherwise the
    last state. Columns are unchanged, times are the ends of the intervals; the last interval is left out if less than
    half of it was recorded."""
    labels = [name for name in ("flow", "instance", "link", "direction") if name in table.columns]
    values = [name for name in table.columns if name not in (*labels, "time_s")]
    end = ((pl.col("time_s") / every_s - 1e-9).ceil() * every_s).alias("time_s")
    # A value of `rate` covers the interval that ends at its time.
    lasts = pl.col("time_s").diff().fill_null(pl.col("time_s"))
    thin = []
    for own in table.partition_by(labels, maintain_order=True):
        if kind == "rate":
            rows = own.with_columns(pl.col(values).fill_nan(None), lasts.alias("_lasts"))
            mean = [(pl.col(v) * pl.col("_lasts")).sum() / _where(v, "_lasts").sum() for v in values]
            columns = [m.alias(v) for m, v in zip(mean, values, strict=True)]
            rows = rows.group_by(end, maintain_order=True).agg(pl.col(labels).first(), *columns)
        else:
            rows = own.group_by(end, maintain_order=True).agg(pl.exclude("time_s").last())
        whole = pl.col("time_s") <= own["time_s"][-1] + every_s / 2
        thin.append(rows.filter(whole).select(table.columns))
    return pl.concat(thin) if thin else table


def _where(column: str, other: str) -> pl.Expr:
    """`other` in the rows where `column` has a value."""
    return pl.col(other).filter(pl.col(column).is_not_null())
