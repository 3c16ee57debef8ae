"""Metrics of recordings: what becomes of a column over time, and of when something held."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from paceline.reproduce.expression import Array
from paceline.reproduce.paper import Episode, Metric
from paceline.reproduce.where import PaperError

Truths = npt.NDArray[np.bool_]


def _jain(values: Array) -> float:
    """Jain's index (sum x)^2 / (n sum x^2) (Jain, Chiu, Hawe 1984)."""
    squares = float((values * values).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else math.nan


REDUCTIONS: dict[str, Callable[[Array], float]] = {
    "mean": lambda values: float(values.mean()),
    "sum": lambda values: float(values.sum()),
    "least": lambda values: float(values.min()),
    "most": lambda values: float(values.max()),
    "jain": _jain,
    "last": lambda values: float(values[-1]),
}
"""What several rows of a summary, or of a recording, may become: name -> function of their values."""


def _lasts(times: Array, held: Truths) -> float:
    """Seconds in which it holds: each row stands for the time until the next."""
    return float(np.diff(times)[held[:-1]].sum()) if len(times) else 0.0


RECORDED: dict[str, Callable[[Array, Truths], float]] = {
    "lasts": _lasts,
    "share": lambda _, held: float(held.mean()) if len(held) else math.nan,
    "episodes": lambda _, held: float((held & ~_before(held)).sum()),
}
"""What may be said of when something held in a recording: name -> function of its rows' times and of whether it held
there. lasts: for how many seconds; share: in which share of the rows; episodes: how often it began. To register one
more is a line here; it is then a word of `rows`."""


def _before(held: Truths) -> Truths:
    """Whether it held in the row before."""
    return np.concatenate((np.zeros(min(1, len(held)), dtype=bool), held[:-1]))


def _held(column: Array, during: Episode) -> Truths:
    """In which rows the episode was; none of a value that was not known."""
    tests = {"is": np.equal, "above": np.greater, "below": np.less}
    held: Truths = np.asarray(tests[during.test](column, during.bound), dtype=bool)
    if during.nth == 0:
        return held
    begins = held & ~_before(held)
    nth: Truths = np.cumsum(begins) == during.nth
    return held & nth


class Rows:
    """The rows of a recording that match, by column."""

    def __init__(self, table: pl.DataFrame) -> None:
        """Those of `table`."""
        self.table = table
        self._columns: dict[str, Array] = {}

    def column(self, name: str) -> Array:
        """A column; nan where it has no value."""
        if name not in self._columns:
            values = self.table[name]
            self._columns[name] = (values.cast(pl.Float64) if values.null_count() else values).to_numpy()
        return self._columns[name]


class Recordings:
    """The recordings of a run, each read once however many metrics look at it."""

    def __init__(self, series: Mapping[str, pl.DataFrame]) -> None:
        """Those of these kinds; they may lie on disk."""
        self._series = series
        self._tables: dict[str, pl.DataFrame | None] = {}
        self._rows: dict[tuple[str, tuple[tuple[str, str], ...]], Rows] = {}

    def value(self, metric: Metric) -> float:
        """What becomes of a recorded column; nan where it was not recorded or has no value. Raises PaperError."""
        rows = self._matching(metric)
        if rows is None:
            return math.nan
        times = rows.column("time_s")
        within = (times >= metric.from_s) & (times <= metric.to_s)
        during = metric.during
        held = (
            _held(rows.column(during.field)[within], during) if during else np.ones(within.sum(), dtype=bool)
        )
        if metric.rows in RECORDED:
            return RECORDED[metric.rows](times[within], held) * metric.scale
        values = rows.column(str(metric.field))[within][held]
        if values.dtype.kind == "f":
            values = values[~np.isnan(values)]
        if not len(values):
            return math.nan
        first = metric.rows == "first"
        return (float(values[0]) if first else REDUCTIONS[metric.rows](values)) * metric.scale

    def _matching(self, metric: Metric) -> Rows | None:
        kind = str(metric.table)
        if kind not in self._tables:
            self._tables[kind] = self._series.get(kind)
        table = self._tables[kind]
        if table is None:
            return None
        for column in (*metric.match, str(metric.field), *([metric.during.field] if metric.during else [])):
            if column not in table.columns:
                there = ", ".join(table.columns)
                raise PaperError(
                    f"metric {metric.key}: the recording {kind} has no {column}; there are {there}"
                )
        key = (kind, tuple(metric.match.items()))
        if key not in self._rows:
            for column, value in metric.match.items():
                table = table.filter(pl.col(column) == value)
            self._rows[key] = Rows(table)
        return self._rows[key]
