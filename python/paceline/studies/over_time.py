"""Metrics of recordings: reductions of a column over time, and of the times at which a condition holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from paceline.files.paper_folders import PaperError
from paceline.studies.expression import Array
from paceline.studies.metric import Episode, Metric

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
"""Reductions of several rows of a summary or recording: name -> function of their values."""


def _lasts(times: Array, held: Truths) -> float:
    """Seconds in which the condition holds: each row covers the time until the next."""
    return float(np.diff(times)[held[:-1]].sum()) if len(times) else 0.0


def _settles(times: Array, held: Truths) -> float:
    """The instant from which the condition holds to the end; the end itself if it does not hold there."""
    if not len(times):
        return math.nan
    broken = np.flatnonzero(~held)
    return float(times[min(broken[-1] + 1, len(times) - 1) if len(broken) else 0])


def _episodes(held: Truths) -> float:
    """How often the condition began to hold, including at the first row."""
    return float((held & ~_before(held)).sum())


RECORDED: dict[str, Callable[[Array, Truths], float]] = {
    "lasts": _lasts,
    "share": lambda _, held: float(held.mean()) if len(held) else math.nan,
    "episodes": lambda _, held: _episodes(held),
    "returns": lambda _, held: max(0.0, _episodes(held) - 1),
    "settles": _settles,
}
"""Reductions of a condition over a recording: name -> function of the rows' times and of whether it holds in each.
lasts: for how many seconds; share: in which share of the rows; episodes: how often it began; returns: how often it held
again after it had not; settles: the instant from which it holds to the last row, whose instant it is if it does not
hold there. A further entry here becomes a word of `rows`."""


def _before(held: Truths) -> Truths:
    """Whether the condition held in the previous row."""
    return np.concatenate((np.zeros(min(1, len(held)), dtype=bool), held[:-1]))


def _held(column: Array, during: Episode) -> Truths:
    """The rows in which the episode is; none where the value is unknown."""
    tests = {"is": np.equal, "above": np.greater, "below": np.less}
    held: Truths = np.asarray(tests[during.test](column, during.bound), dtype=bool)
    if during.until_below is not None:
        # Between the watermarks the state is that of the last crossing.
        known = held | (column < during.until_below)
        last = np.maximum.accumulate(np.where(known, np.arange(len(column)), -1))
        held = (last >= 0) & held[last]
    if during.nth == 0:
        return held
    begins = held & ~_before(held)
    nth: Truths = np.cumsum(begins) == during.nth
    return held & nth


def _averaged(times: Array, values: Array, metric: Metric, every_s: float) -> Array:
    """Means over intervals of `every_s` from the metric's beginning; a row covers the time before it, and an incomplete
    last interval is left out. nan if an interval has no value."""
    end = min(metric.to_s, float(times.max(initial=metric.from_s)))
    count = int((end - metric.from_s) / every_s + 1e-6)
    place = np.ceil((times - metric.from_s) / every_s - 1e-6).astype(int) - 1
    kept = (place >= 0) & (place < count) & ~np.isnan(values)
    sums = np.bincount(place[kept], weights=values[kept], minlength=count)
    rows = np.bincount(place[kept], minlength=count)
    means: Array = np.divide(sums, rows, out=np.full(count, np.nan), where=rows > 0)
    return means


def _alike(ours: Array, others: Array) -> Array:
    """min / max of two values, row by row; nan if both are zero."""
    smaller, larger = np.minimum(ours, others), np.maximum(ours, others)
    ratio: Array = np.divide(smaller, larger, out=np.full(len(larger), np.nan), where=larger > 0)
    return ratio


class Rows:
    """The matching rows of a recording, by column."""

    def __init__(self, table: pl.DataFrame) -> None:
        """The rows of `table`."""
        self.table = table
        self._columns: dict[str, Array] = {}

    def column(self, name: str) -> Array:
        """A column; nan where it has no value."""
        if name not in self._columns:
            values = self.table[name]
            self._columns[name] = (values.cast(pl.Float64) if values.null_count() else values).to_numpy()
        return self._columns[name]


class Recordings:
    """The recordings of a run, each read once for all metrics."""

    def __init__(self, series: Mapping[str, pl.DataFrame]) -> None:
        """`series` are the recordings by kind; they may be on disk."""
        self._series = series
        self._tables: dict[str, pl.DataFrame | None] = {}
        self._rows: dict[tuple[str, tuple[tuple[str, str], ...]], Rows] = {}

    def value(self, metric: Metric) -> float:
        """The reduction of a recorded column; nan if it was not recorded or has no value. Raises PaperError."""
        rows = self._matching(metric, metric.match)
        if rows is None:
            return math.nan
        times, column = self._during(metric, rows)
        during = metric.during
        held = _held(column(during.field), during) if during else np.ones(len(times), dtype=bool)
        if metric.rows in RECORDED:
            return RECORDED[metric.rows](times, held) * metric.scale
        values = column(str(metric.field))
        if metric.against is not None and (others := self._matching(metric, metric.against)) is not None:
            elsewhere, other = self._during(metric, others)
            _, here, there = np.intersect1d(times, elsewhere, return_indices=True)
            values, held = _alike(values[here], other(str(metric.field))[there]), held[here]
        values = values[held]
        if values.dtype.kind == "f":
            values = values[~np.isnan(values)]
        if not len(values):
            return math.nan
        first = metric.rows == "first"
        return (float(values[0]) if first else REDUCTIONS[metric.rows](values)) * metric.scale

    def _during(self, metric: Metric, rows: Rows) -> tuple[Array, Callable[[str], Array]]:
        """The instants of a metric's rows in its part of the run, and their columns: as recorded, or averaged."""
        times = rows.column("time_s")
        within = (times >= metric.from_s) & (times <= metric.to_s)
        every_s = metric.every_s
        if every_s is None:
            return times[within], lambda name: rows.column(name)[within]
        times = times[within]

        def averaged(name: str) -> Array:
            return _averaged(times, rows.column(name)[within], metric, every_s)

        ends: Array = metric.from_s + every_s * np.arange(
            1.0, len(averaged("time_s")) + 1.0, dtype=np.float64
        )
        return ends, lambda name: ends if name == "time_s" else averaged(name)

    def _matching(self, metric: Metric, match: Mapping[str, str]) -> Rows | None:
        kind = str(metric.table)
        if kind not in self._tables:
            self._tables[kind] = self._series.get(kind)
        table = self._tables[kind]
        if table is None:
            return None
        for column in (*match, str(metric.field), *([metric.during.field] if metric.during else [])):
            if column not in table.columns:
                there = ", ".join(table.columns)
                raise PaperError(
                    f"metric {metric.key}: the recording {kind} has no {column}; there are {there}"
                )
        key = (kind, tuple(match.items()))
        if key not in self._rows:
            for column, value in match.items():
                table = table.filter(pl.col(column) == value)
            self._rows[key] = Rows(table)
        return self._rows[key]
