"""`paceline.compare`: alternatives under common seeds, and which of their differences are significant."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from paceline.arguments import checked
from paceline.axes import Vary, check_set, combinations, recorded
from paceline.errors import PacelineError
from paceline.files import table_files
from paceline.interval import Kind
from paceline.quantities import unit_of
from paceline.results.columns import check_metrics
from paceline.results.recordings import RECORD_EVERY_S
from paceline.results.results import Results
from paceline.results.store import Kept, write_tables
from paceline.results.subjects import SUBJECT, alone, metrics_in
from paceline.scenarios.scenario import ScenarioLike, Schemes, load, written
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Progress, run_points, seeds_from
from paceline.statistics import CONFIDENCE, Estimate, holm, paired_difference
from paceline.statistics.sample_intervals import MIN_RUNS
from paceline.sweeps.sweep import grid

KIND = "comparison"
"""The kind in the manifest of such a directory."""
_ROWS, _VALUES = "rows of all", "rows with a value"
_COUNTS = ("first_values", "first_rows", "second_values", "second_rows")
_NOTHING_LOST = {"began": 1.0, "complete_share": 1.0, "undelivered_share": 0.0}
"""Values of loss-like measures when nothing is lost."""


@dataclass(frozen=True)
class Comparison:
    """The differences, a row per pair of alternatives, metric and subject, and the runs behind them."""

    table: pl.DataFrame
    """first, second, metric, subject, unit, n, first_mean, second_mean, difference, low, high, p, p_holm, real,
    first_values, first_rows, second_values, second_rows, kind.

    difference = second - first, its mean over the seeds, low to high its 95 % interval. real: p_holm < 0.05; null below
    five runs, where coarse values can differ equally in all runs by chance. The value and row counts say how many rows
    (flows, streams, ...) of a side's runs had a value, and how many there are. kind: "t", by Student's t; "runs", the
    difference is the same in all n runs; "none", too few runs.
    """
    results: Results

    def _repr_html_(self) -> str:
        from paceline.tables import comparison, notebook  # noqa: PLC0415 (tables for people, which few need)

        said = [comparison.verdict(self), *comparison.left_out(self)]
        return notebook.tables(comparison.tables(self, sys.maxsize), said)


def differences(
    results: Results, metrics: Sequence[str] | None = None, confidence: float = CONFIDENCE
) -> pl.DataFrame:
    """The table of `Comparison` from a sweep's results: every pair of its points, seed by seed.

    A flow's instances are averaged within a run first, so that flows are compared by name. A seed in which a side has
    no value is left out of that comparison: see `n`. An instance without a value is left out of that mean: see
    `first_values`.
    """
    axes = results.axes
    points = results.runs.select(axes).unique(maintain_order=True).rows()
    rows: list[dict[str, Any]] = []
    pairs = metrics_in(results, metrics)
    for table, measure in pairs:
        subject = list(SUBJECT[table])
        means = (
            results.table(table)
            .group_by([*axes, *subject, "seed"], maintain_order=True)
            .agg(
                pl.len().alias(_ROWS),
                pl.col(measure).count().alias(_VALUES),
                pl.col(measure).cast(pl.Float64).mean(),
            )
        )
        if table in ("flows", "streams"):
            # Leave out flows that never have the measure, such as the frames of a download, unless none has it.
            having = means.filter(pl.col(measure).is_not_null().any().over(subject))
            means = having if metrics is None or len(having) else means
        if table == "groups" and ("flows", measure) in pairs:
            # A group of one flow repeats that flow; counting it twice would make the correction stricter.
            means = means.filter(~pl.col("group").is_in(alone(results)))
        if metrics is None:
            means = _worth_comparing(results, table, measure, means)
        values: dict[tuple[Any, ...], dict[tuple[Any, ...], dict[int, float | None]]] = {}
        there: dict[tuple[Any, ...], tuple[int, int]] = {}
        for found in means.iter_rows():
            *names, seed, of, with_value, mean = found
            point, who = tuple(names[: len(axes)]), tuple(names[len(axes) :])
            values.setdefault(who, {}).setdefault(point, {})[seed] = mean
            before = there.get((*who, *point), (0, 0))
            there[(*who, *point)] = (before[0] + with_value, before[1] + of)
        for (who, by_point), (a, b) in itertools.product(values.items(), itertools.combinations(points, 2)):
            first, second = by_point.get(a, {}), by_point.get(b, {})
            seeds = [s for s in first if s in second]
            d = paired_difference([first[s] for s in seeds], [second[s] for s in seeds], confidence)
            sides = [there.get((*who, *point), (0, 0)) for point in (a, b)]
            rows.append(
                {
                    "first": _named(axes, a),
                    "second": _named(axes, b),
                    "metric": f"{table}.{measure}",
                    "subject": " ".join(map(str, who)),
                    "unit": unit_of(measure),
                    "n": d.estimate.n,
                    "first_mean": d.first.mean,
                    "second_mean": d.second.mean,
                    "difference": d.estimate.mean,
                    "low": d.estimate.low,
                    "high": d.estimate.high,
                    # A difference that is equal for all seeds needs no test, which would make the correction stricter.
                    "p": None
                    if d.estimate.low == d.estimate.high == 0 or d.estimate.n < MIN_RUNS
                    else d.p_value,
                    **dict(zip(_COUNTS, (*sides[0], *sides[1]), strict=True)),
                    "kind": _kind(d.estimate).value,
                }
            )
    adjusted = holm([row["p"] for row in rows])
    for row, p in zip(rows, adjusted, strict=True):
        row["p_holm"] = p
        same = row["low"] == row["high"] == 0
        row["real"] = False if same else None if p is None else p < 1 - confidence
    words = ("first", "second", "metric", "subject", "unit")
    numbers = ("first_mean", "second_mean", "difference", "low", "high", "p", "p_holm")
    schema: dict[str, Any] = {**dict.fromkeys(words, pl.String), "n": pl.Int64}
    schema |= {**dict.fromkeys(numbers, pl.Float64), "real": pl.Boolean, **dict.fromkeys(_COUNTS, pl.Int64)}
    schema["kind"] = pl.Enum([kind.value for kind in (Kind.T, Kind.RUNS, Kind.NONE)])
    return pl.DataFrame(rows, schema=schema)


def _kind(difference: Estimate) -> Kind:
    """The interval's kind: t, whatever the measure, because it matches the t test; none for equal differences."""
    if difference.sd is None:
        return Kind.NONE
    return Kind.T if difference.sd > 0 else Kind.RUNS


def _worth_comparing(results: Results, table: str, measure: str, means: pl.DataFrame) -> pl.DataFrame:
    """The rows without those that would only make Holm's correction stricter: queues of the way back, the Jain index of
    groups of one flow, and losses of flows that never lose anything."""
    if table == "queues":
        return means.filter(pl.col("direction") == "forward")
    if measure in _NOTHING_LOST:
        lost = pl.col(measure).is_not_null() & (pl.col(measure) != _NOTHING_LOST[measure])
        return means.filter(lost.any().over(list(SUBJECT[table])))
    return means.filter(~pl.col("group").is_in(alone(results))) if measure == "jain" else means


def _named(axes: Sequence[str], point: Sequence[Any]) -> str:
    if len(axes) == 1:
        return str(point[0])
    return ", ".join(f"{axis}={value}" for axis, value in zip(axes, point, strict=True))


@checked()
def compare(
    scenario: ScenarioLike,
    vary: Vary,
    *,
    runs: int = 10,
    metrics: Sequence[str] | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    out: str | Path | None = None,
    schemes: Schemes | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Runs alternatives with the same seeds and compares them pairwise: see `Comparison`.

    `metrics` are TABLE.MEASURE, or MEASURE in the first table that has it. Holm's correction covers all comparisons in
    the table; a group of one flow is not compared besides that flow. With `out`, finished runs are stored there, an
    interrupted comparison resumes, and at the end the directory also holds the tables, `differences` among them;
    another comparison's files there are removed. Raises as `sweep` does, and PacelineError if there is nothing to
    compare.
    """
    if runs < 2:
        raise PacelineError(f"a comparison needs at least 2 runs, not {runs}: one run has no interval")
    if len(combinations(vary)) < 2:
        raise PacelineError(
            "a comparison needs at least two alternatives: vary a path over two values or more"
        )
    check_metrics(metrics or ())
    check_set(set or {}, vary)
    base = load(scenario, set, schemes)
    points = grid(base, vary)
    seeds = seeds_from(base.seed if seed is None else seed, runs)
    what = {
        "kind": KIND,
        "name": base.name,
        **written(base),
        **recorded(vary),
        "seeds": seeds,
        "record": [],
        "record_every_s": RECORD_EVERY_S,
    }
    with Kept(what, out, over=True) as kept:
        records = run_points(
            points, seeds, workers=workers, executor=executor, store=kept.store, progress=progress
        )
        results = Results(records, kept.manifest)
        comparison = Comparison(differences(results, metrics), results)
        if out is not None:
            table_files.write_parquet(Path(out) / "differences.parquet", comparison.table)
            table_files.write_csv(Path(out) / "differences.csv", comparison.table)
            write_tables(results, Path(out), statistics=False)
    return comparison
