"""A paper's metrics from the summaries of runs, for its claims and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from paceline.files.paper_folders import PaperError
from paceline.results.recordings import SERIES
from paceline.statistics import Estimate, estimate
from paceline.statistics.sample_intervals import Sample
from paceline.studies import points
from paceline.studies.expression import Array, Column, ExpressionError
from paceline.studies.metric import EACH, Metric
from paceline.studies.over_time import REDUCTIONS, Recordings
from paceline.studies.paper import Claim, Paper
from paceline.studies.points import Place
from paceline.studies.sample import sample
from paceline.studies.study import Curve, Study, World
from paceline.studies.verdict import Outcome, Verdict, judge

Values = dict[Place, dict[str, list[float]]]
"""By metric, the value of each run of a point, in the order of the seeds; nan if a run has none."""


def _value(row: Mapping[str, Any], field: str) -> Any:
    """A value of a row: "goodput_bps", or "drops.early" of a nested table; None if it is missing."""
    outer, _, inner = field.partition(".")
    value = row.get(outer)
    if inner:
        return value.get(inner) if isinstance(value, Mapping) else None
    return value


OF_THE_RUN = "run"
"""The table of a metric that is a number of the whole run: its only row is the summary itself."""
INTERVALS = "intervals"
"""The table of the intervals that a run is cut into: see `time_slices`."""


def _field(metric: Metric, summary: Mapping[str, Any], recordings: Recordings) -> float | Array:
    if metric.table in SERIES:
        return recordings.value(metric)
    found = []
    for row in [summary] if metric.table == OF_THE_RUN else summary.get(str(metric.table), []):
        if all(row.get(key) == value for key, value in metric.match.items()):
            value = _value(row, str(metric.field))
            if value is None and metric.if_null is not None:
                value = _value(row, metric.if_null)
            found.append(math.nan if value is None else float(value) * metric.scale)
            if metric.rows == "first":
                break
    if not found:
        return math.nan
    if metric.rows == EACH:
        return np.array(found)
    return found[0] if metric.rows == "first" else REDUCTIONS[metric.rows](np.array(found))


def check_found(where: str, metric: Metric, summaries: Sequence[Mapping[str, Any]]) -> None:
    """Raises PaperError if none of these summaries has a metric's rows or field, although they have its table: the
    metric would silently be missing everywhere."""
    if metric.table in (None, INTERVALS, *SERIES):
        return
    rows = [
        row
        for summary in summaries
        for row in ([summary] if metric.table == OF_THE_RUN else summary.get(str(metric.table), []))
    ]
    for column, value in metric.match.items():
        there = list(dict.fromkeys(str(row.get(column)) for row in rows))
        rows = [row for row in rows if row.get(column) == value]
        if there and not rows:
            raise PaperError(
                f"{where}.match: no row of {metric.table} has {column} {value!r}; there are {', '.join(there)}"
            )
    outer = str(metric.field).partition(".")[0]
    if rows and not any(outer in row for row in rows):
        there = list(dict.fromkeys(key for row in rows for key in row))
        raise PaperError(f"{where}.field: {metric.table} has no {outer}; there are {', '.join(there)}")


_Series = Mapping[str, pl.DataFrame]
_NOTHING: _Series = MappingProxyType({})


def _all_of_run(
    metrics: Mapping[str, Metric], summary: Mapping[str, Any], series: _Series = _NOTHING
) -> dict[str, Array]:
    found: dict[str, Array] = {}
    names: dict[str, Column | Array] = {}
    recordings = Recordings(series)
    for key, metric in metrics.items():
        if metric.expression is None:
            value = np.asarray(_field(metric, summary, recordings))
        else:
            value = metric.expression.value(names, np.ones(1))
        if value.ndim and metric.rows != EACH:
            raise PaperError(f'metric {key}: has many values in a run; that needs rows = "{EACH}"')
        names[key] = found[key] = value
    return found


def of_run(
    metrics: Mapping[str, Metric], summary: Mapping[str, Any], series: _Series = _NOTHING
) -> dict[str, float]:
    """Every metric of one run that is a single number, from its summary and recordings; nan if the run has none."""
    found = _all_of_run(metrics, summary, series)
    return {key: float(value) for key, value in found.items() if metrics[key].rows != EACH}


def each_of_run(metrics: Mapping[str, Metric], summary: Mapping[str, Any]) -> dict[str, list[float]]:
    """Every metric of one run with a number for each interval; those with as many values as intervals."""
    found = _all_of_run(metrics, summary)
    several = (key for key, value in found.items() if metrics[key].rows == EACH and value.ndim)
    return {key: found[key].tolist() for key in several}


def of_point(
    metrics: Mapping[str, Metric],
    summaries: Sequence[Mapping[str, Any]],
    series: Sequence[_Series] | None = None,
) -> dict[str, list[float]]:
    """Every metric of every run of a point, from its summaries and recordings. Raises PaperError for a metric of a
    table that no summary has."""
    runs = [of_run(metrics, *run) for run in zip(summaries, series or [{}] * len(summaries), strict=True)]
    found = {key: [run[key] for run in runs] for key in metrics if metrics[key].rows != EACH}
    for key, metric in metrics.items():
        if (
            metric.table not in (None, OF_THE_RUN, INTERVALS, *SERIES)
            and summaries
            and not any(metric.table in s for s in summaries)
        ):
            raise PaperError(f"metric {key}: a run's summary has no {metric.table}")
    return found


@dataclass(frozen=True)
class _Swept:
    """A metric over the levels of a study: see `expression.Column`."""

    study: Study
    metric: str
    values: Values

    def mean(self, series: str, level: str, seeds: Array) -> float:
        """The mean over the kept seeds; raises LookupError if the point was not run."""
        runs = self.values.get(Place(self.study.key, series, level), {}).get(self.metric)
        if runs is None or len(runs) < len(seeds):
            raise LookupError(f"{self.study.key} at {level}, {series}")
        kept = np.asarray(runs[: len(seeds)])[seeds > 0]
        there = kept[np.isfinite(kept)]
        return float(there.mean()) if there.size else math.nan

    def select(self, series: str, levels: str | tuple[str | None, str | None] | None, seeds: Array) -> Array:
        """Means over the kept seeds."""
        if isinstance(levels, str):
            return np.asarray(self.mean(series, levels, seeds))
        low, high = levels or (None, None)
        first = 0 if low is None else self.study.level(low)
        last = len(self.study.levels) - 1 if high is None else self.study.level(high)
        labels = [level.label for level in self.study.levels[first : last + 1]]
        return np.array([self.mean(series, label, seeds) for label in labels])


@dataclass(frozen=True)
class _Pooled:
    """A metric over all points of several studies, each point's mean being one value."""

    studies: Sequence[Study]
    metric: str
    values: Values

    def select(self, series: str, levels: str | tuple[str | None, str | None] | None, seeds: Array) -> Array:
        """The means of all points over the kept seeds."""
        if levels is not None:
            raise ExpressionError(f"{self.metric}: a pool of studies has no levels to choose")
        return np.concatenate(
            [_Swept(s, self.metric, self.values).select(series, None, seeds) for s in self.studies]
        )


def columns(paper: Paper, study: Study, values: Values) -> dict[str, Column | Array]:
    """The names that a claim about the study may use: every metric, and x, the levels' positions on the axis."""
    if study.pool:
        pooled = [paper.studies[key] for key in study.pool]
        return {key: _Pooled(pooled, key, values) for key in paper.metrics}
    names: dict[str, Column | Array] = {key: _Swept(study, key, values) for key in paper.metrics}
    names["x"] = np.array([level.x for level in study.levels])
    return names


@dataclass(frozen=True)
class Result:
    """A claim, our value (None: not run), and the verdict."""

    claim: Claim
    ours: Estimate | None
    verdict: Verdict
    sample: Sample | None = None
    """The runs themselves; None if `ours` is."""

    @property
    def off_share(self) -> float | None:
        """Our value's relative deviation from a published number; None for zero and for claims without a number."""
        value = self.claim.published.value
        if not value or self.ours is None or self.ours.mean is None:
            return None
        return abs(self.ours.mean - value) / abs(value)


def results(paper: Paper, values: Values) -> list[Result]:
    """Every claim of the paper compared with the runs."""
    found = []
    for claim in paper.claims:
        study = paper.studies[claim.study]
        runs = _runs(paper, claim, values)
        ours: Sample | None = None
        if claim.ours is not None and runs > 0:
            try:
                ours = sample(claim.ours, paper.metrics, columns(paper, study, values), runs)
            except LookupError:
                ours = None
        verdict = (
            Verdict(Outcome.OPEN, f"not yet run: {study.later}") if study.later else too_short(paper, claim)
        )
        shown = None if ours is None else _shown(ours, runs)
        found.append(Result(claim, shown, verdict or judge(claim.published, ours), ours))
    return found


def _shown(ours: Sample, runs: int) -> Estimate:
    """Mean and 95 % t interval, as tables show them."""
    if not ours.values:
        return Estimate.of(runs, None, None)
    return Estimate.of(runs, ours.mean, ours.sd if ours.n > 1 else None)


def _runs(paper: Paper, claim: Claim, values: Values) -> int:
    """The number of runs that all points in the claim have."""
    study = paper.studies[claim.study]
    keys = {s.key for s in [paper.studies[key] for key in study.pool] or [study]}
    chosen = claim.ours.selections if claim.ours and not study.pool else []
    named = {(series, level) for _, series, level in chosen if isinstance(level, str)}
    # A range, or all levels, includes all points of the series.
    whole = {series for _, series, level in chosen if not isinstance(level, str)}
    counts = [
        len(next(iter(v.values()), []))
        for p, v in values.items()
        if p.study in keys and (not chosen or p.series in whole or (p.series, p.level) in named)
    ]
    return min(counts, default=0)


def too_short(paper: Paper, claim: Claim) -> Verdict | None:
    """The verdict on a claim that needs longer real-time runs than there are; None if it does not."""
    study = paper.studies[claim.study]
    if claim.ours is None:
        return None
    chosen = {(series, level) for _, series, level in claim.ours.selections}
    for place, _, level in points.places(study):
        wanted = {(place.series, level.label), (place.series, None)} & chosen
        if wanted and points.world(study, place) is World.EMULATED:
            if points.is_left_out(study, place):
                return Verdict(Outcome.OPEN, "it is run in real time in the full form alone (--full)")
            lasts = points.point(paper, study, place).scenario.duration_s if claim.needs_s else 0.0
            if lasts < claim.needs_s:
                says = f"runs of {lasts:g} s are too short to test it: it takes {claim.needs_s:g} s (--full)"
                return Verdict(Outcome.OPEN, says)
    return None


@dataclass(frozen=True)
class CurvePoint:
    """A point of a curve: its level's index, its position, and its value."""

    level: int
    x: float
    y: Estimate


def curve_points(paper: Paper, study: Study, curve: Curve, values: Values) -> list[CurvePoint]:
    """The points of a curve that were run and have a value, from left to right."""
    names = columns(paper, study, values)
    runs = min(
        (len(next(iter(v.values()), [])) for p, v in values.items() if p.study == study.key), default=0
    )
    found = []
    for i, level in enumerate(study.levels if runs else ()):
        try:
            y = curve.y[i].estimate(names, runs)
            x = level.x if curve.x is None else curve.x[i].estimate(names, runs).mean
        except LookupError:
            continue
        if x is not None and y.mean is not None:
            found.append(CurvePoint(i, x, y))
    return sorted(found, key=lambda point: point.x)


def mean(values: Sequence[float]) -> Estimate:
    """Mean and 95 % interval of a point's runs that have a value."""
    return estimate(values)
