"""The tables of a reproduction: every run, every point with its intervals, every verdict, as Parquet and CSV."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl

from paceline.files import table_files
from paceline.papers import summary
from paceline.report import table_schema
from paceline.studies import measure, points
from paceline.studies.reproduction import Reproduction
from paceline.studies.verdict import REFUTED


def runs(reproduction: Reproduction) -> pl.DataFrame:
    """A row per study, point and run: the settings' names, the seed, and every metric (units: see `metrics`)."""
    rows: list[dict[str, Any]] = []
    for study in reproduction.studies():
        for place, series, level in points.places(study):
            measured = reproduction.values.get(place, {})
            count = max((len(runs) for runs in measured.values()), default=0)
            for i, seed in enumerate(reproduction.seeds[:count]):
                row: dict[str, Any] = {
                    "study": study.key,
                    "figure": study.figure,
                    "series": series.key,
                    "level": level.label,
                    "world": str(study.world(series, level)),
                    "x": level.x,
                    "seed": seed,
                }
                rows.append(row | {key: _present(runs[i]) for key, runs in measured.items()})
    return table_schema.runs(reproduction.paper.metrics).frame(rows)


def _present(value: float) -> float | None:
    return None if math.isnan(value) else value


def points_table(reproduction: Reproduction) -> pl.DataFrame:
    """A row per study, point and metric: mean, sd, half width of the 95 % interval, unit, and the command to run it."""
    rows: list[dict[str, Any]] = []
    for study in reproduction.studies():
        for place, series, level in points.places(study):
            again = points.command(reproduction.paper, study, place, reproduction.runs)
            for key, values in reproduction.values.get(place, {}).items():
                ours = measure.mean(values)
                rows.append(
                    {
                        "study": study.key,
                        "figure": study.figure,
                        "series": series.key,
                        "level": level.label,
                        "world": str(study.world(series, level)),
                        "x": level.x,
                        "metric": key,
                        "unit": reproduction.paper.metrics[key].unit,
                        "runs": ours.n,
                        "mean": ours.mean,
                        "sd": ours.sd,
                        "half_width": ours.half_width,
                        "command": again,
                    }
                )
    return table_schema.POINTS.frame(rows)


def _ends(result: measure.Result) -> tuple[float, float] | None:
    """The ends of the interval that was judged; None if it does not exist, or lacks an end."""
    ends = result.sample.interval if result.sample and result.sample.values else None
    return ends if ends and all(map(math.isfinite, ends)) else None


def verdicts(reproduction: Reproduction) -> pl.DataFrame:
    """A row per claim: what was published and where, our value with its half width, the verdict and the reason."""
    rows = [
        {
            "claim": r.claim.key,
            "figure": r.claim.figure,
            "where": r.claim.where,
            "says": r.claim.says,
            "kind": str(r.claim.published.kind),
            "published": r.claim.published.value,
            "sign": {1: "+", -1: "-", None: None}[r.claim.published.sign],
            "unit": r.claim.unit,
            "bound": r.claim.bound,
            "expression": r.claim.ours.text if r.claim.ours else None,
            "ours": r.ours.mean if r.ours else None,
            "half_width": r.ours.half_width if r.ours else None,
            "runs": r.ours.n if r.ours else 0,
            "verdict": str(r.verdict.outcome),
            "because": r.verdict.because,
            "basis": None if r.sample is None or not r.sample.values else str(r.sample.basis),
            "low": None if (ends := _ends(r)) is None else ends[0],
            "high": None if ends is None else ends[1],
            "off_share": r.off_share,
            "settling_runs": r.verdict.settles,
            "beside": r.claim.beside,
            "cause": None if (cause := summary.cause(tried)) is None else cause.key,
            "cause_kind": None if cause is None else str(cause.kind),
            "tried": ", ".join(f"{t.cause.key}: {t.outcome or 'not run'}" for t in tried),
            "if_differs": r.claim.if_differs if r.verdict.outcome in REFUTED else "",
        }
        for r in reproduction.results
        for tried in [summary.trials(reproduction, r)]
    ]
    return table_schema.VERDICTS.frame(rows)


def readings(reproduction: Reproduction) -> pl.DataFrame:
    """A row for each reading that was run and each claim that it may change: our value with its half width, and the
    verdict."""
    rows = [
        {
            "reading": key,
            "claim": r.claim.key,
            "ours": r.ours.mean if r.ours else None,
            "half_width": r.ours.half_width if r.ours else None,
            "verdict": str(r.verdict.outcome),
        }
        for key, results in reproduction.readings.items()
        for r in results
    ]
    return table_schema.READINGS.frame(rows)


def _kept_as(reproduction: Reproduction, place: points.Place) -> str:
    """The recording at the point: "rate", for example, or "intervals" for runs that were cut."""
    study = reproduction.paper.studies[place.study]
    return measure.INTERVALS if study.cut_s else str(study.record)


def recorded(reproduction: Reproduction, kind: str) -> pl.DataFrame:
    """The recordings of the studies that record `kind`; "intervals" means runs that were cut."""
    parts = [
        table.select(
            pl.lit(place.study).alias("study"),
            pl.lit(place.series).alias("series"),
            pl.lit(place.level).alias("level"),
            pl.all(),
        )
        for place, table in reproduction.recorded.items()
        if _kept_as(reproduction, place) == kind and not table.is_empty()
    ]
    # Real runs lack some columns of simulated ones.
    return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()


def write(reproduction: Reproduction, folder: Path) -> None:
    """Writes runs, points, verdicts, those under other readings, recordings ("rates" and so on), and the columns'
    descriptions. Raises StorageError."""
    metrics = reproduction.paper.metrics
    tables = [
        (table_schema.runs(metrics), runs(reproduction)),
        (table_schema.POINTS, points_table(reproduction)),
        (table_schema.VERDICTS, verdicts(reproduction)),
    ]
    if reproduction.readings:
        tables.append((table_schema.READINGS, readings(reproduction)))
    for kind in sorted({_kept_as(reproduction, place) for place in reproduction.recorded}):
        name, own = kind if kind.endswith("s") else f"{kind}s", recorded(reproduction, kind)
        tables.append((table_schema.recorded(name, own, metrics), own))
    for table, frame in tables:
        table_files.write_parquet(folder / f"{table.name}.parquet", frame)
        table_files.write_csv(folder / f"{table.name}.csv", frame)
    table_schema.write(folder, reproduction.paper, [table for table, _ in tables])
