"""A paper run from beginning to end: points, runs, metrics, verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from paceline import _core, files
from paceline.errors import PacelineError
from paceline.reproduce import measure, points
from paceline.reproduce.paper import Paper, Study
from paceline.reproduce.points import Place
from paceline.reproduce.verdict import Outcome
from paceline.results import RunRecord
from paceline.sweep import Point, Progress, Store, run_points, seeds_from, workers_of_machine


@dataclass
class Reproduction:
    """What came out: values of every metric, recordings, verdicts, and how it was made."""

    paper: Paper
    runs: int
    values: measure.Values
    recorded: dict[Place, pl.DataFrame]
    """What the points of studies that record recorded: seed, flow, instance, time_s, and the recording's columns."""
    results: list[measure.Result]
    provenance: dict[str, Any]
    figure: str | None = None
    seconds: float = 0.0
    workers: int = 1
    scenarios: dict[str, str] = field(default_factory=dict)
    """Scenario file -> its text with every default filled in."""

    @property
    def seeds(self) -> list[int]:
        """The seeds that all points share."""
        return seeds_from(points.FIRST_SEED, self.runs)

    def studies(self) -> list[Study]:
        """The studies in the paper's order."""
        return list(self.paper.studies.values())

    def counts(self) -> dict[str, int]:
        """How many claims agree, differ, are undecided, are open."""
        return {str(outcome): sum(r.verdict.outcome is outcome for r in self.results) for outcome in Outcome}


@dataclass(frozen=True)
class Recorded:
    """What is recorded, how often, and the flows that are kept of it (None: all)."""

    kind: str
    every_s: float
    flows: tuple[str, ...] | None

    def kept(self, records: Sequence[RunRecord]) -> pl.DataFrame:
        """The recording of the runs, with their seeds."""
        parts = []
        for record in records:
            table = record.series[self.kind]
            if self.flows is not None:
                table = table.filter(pl.col("flow").is_in(self.flows))
            parts.append(table.select(pl.lit(record.seed).alias("seed"), pl.all()))
        return pl.concat(parts)


def recording(study: Study) -> Recorded | None:
    """What the study records: of the flows that its traces show, if they name them."""
    if study.record is None:
        return None
    shown = {plot.trace.flow for plot in study.plots if plot.trace is not None}
    flows = None if None in shown or not shown else tuple(sorted(str(flow) for flow in shown))
    return Recorded(study.record, study.record_every_s, flows)


@dataclass(frozen=True)
class Plan:
    """What a reproduction will run: each distinct point once, with all the places where it is shown."""

    points: list[Point]
    places: list[list[Place]]
    recorded: list[Recorded | None]
    """What is recorded of each point."""
    runs: int
    seconds: float
    """Core seconds that it takes on the machine of the paper's README."""


def plan(paper: Paper, runs: int) -> Plan:
    """The points of all studies, those that are the same run merged. Raises PaperError for a bad scenario: nothing
    starts unless every point is valid."""
    found: dict[tuple[str, Recorded | None], tuple[Point, list[Place]]] = {}
    seconds = 0.0
    for study in paper.studies.values():
        for place, _, _ in points.places(study):
            point = points.point(paper, study, place)
            key = (point.scenario.to_toml(), recording(study))
            if key not in found:
                found[key] = (point, [])
                seconds += study.seconds * runs
            found[key][1].append(place)
    return Plan(
        [point for point, _ in found.values()],
        [where for _, where in found.values()],
        [recorded for _, recorded in found],
        runs,
        seconds,
    )


def seconds_on(core_seconds: float, workers: int) -> float:
    """Wall time of so many core seconds with so many workers, on as many cores."""
    return core_seconds / max(1, min(workers, workers_of_machine()))


def run(
    paper: Paper,
    *,
    runs: int = 10,
    workers: int | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
    runner: Callable[..., list[RunRecord]] = run_points,
) -> Reproduction:
    """Runs a paper. Finished runs in `store` are used again.

    Raises PaperError before anything runs, Interrupted on Ctrl-C (what had finished is in the store), StorageError.
    """
    if runs < 1:
        raise PacelineError(f"the number of runs must be at least 1, not {runs}")
    began = time.monotonic()
    planned = plan(paper, runs)
    seeds = seeds_from(points.FIRST_SEED, runs)
    values: measure.Values = {}
    tables: dict[Place, pl.DataFrame] = {}
    total = len(planned.points) * runs
    before = 0
    for recorded in dict.fromkeys(sorted(planned.recorded, key=str)):
        chosen = [i for i, r in enumerate(planned.recorded) if r == recorded]

        def tell(done: float, _: int, before: int = before) -> None:
            if progress:
                progress(before + done, total)

        records = runner(
            [planned.points[i] for i in chosen],
            seeds,
            record=(recorded.kind,) if recorded else (),
            record_every_s=recorded.every_s if recorded else 0.5,
            workers=workers,
            store=store,
            progress=tell,
        )
        before += len(records)
        for n, i in enumerate(chosen):
            own = records[n * runs : (n + 1) * runs]
            measured = measure.of_point(paper.metrics, [record.summary for record in own])
            for place in planned.places[i]:
                values[place] = measured
                if recorded:
                    tables[place] = recorded.kept(own)
    return Reproduction(
        paper,
        runs,
        values,
        tables,
        measure.results(paper, values),
        files.provenance(),
        seconds=time.monotonic() - began,
        workers=workers or workers_of_machine(),
        scenarios={
            study.scenario: _core.Scenario.load(str(paper.folder / study.scenario)).to_toml()
            for study in paper.studies.values()
            if study.scenario
        },
    )
