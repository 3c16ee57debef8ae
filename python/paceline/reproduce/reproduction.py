"""A paper run from beginning to end: points, runs, metrics, verdicts."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from paceline import _core, files
from paceline.campaign import Runner, in_turn
from paceline.errors import PacelineError
from paceline.reproduce import measure, points
from paceline.reproduce.paper import Paper, Study, World
from paceline.reproduce.points import Place
from paceline.reproduce.verdict import Outcome
from paceline.results import RunRecord
from paceline.sweep import Point, Progress, Store, run_points, seeds_from, workers_of_machine

SET_UP_S = 2.0
"""What a run in real time takes beside its duration, about."""


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
    worlds: list[World]
    """Where each point runs."""
    runs: int
    seconds: float
    """Core seconds that the simulated points take on the machine of the paper's README."""
    real_seconds: float
    """How long those in real time take, one after the other."""

    def chosen(self, recorded: Recorded | None, world: World) -> list[int]:
        """The points of which this is recorded, in that world."""
        where = zip(self.recorded, self.worlds, strict=True)
        return [i for i, (r, w) in enumerate(where) if r == recorded and w is world]


def plan(paper: Paper, runs: int) -> Plan:
    """The points of all studies, those that are the same run merged. Raises PaperError for a bad scenario: nothing
    starts unless every point is valid."""
    found: dict[tuple[str, Recorded | None, World], tuple[Point, list[Place]]] = {}
    seconds = dict.fromkeys(World, 0.0)
    for study in paper.studies.values():
        for place, _, _ in points.places(study):
            point = points.point(paper, study, place)
            world = points.world(study, place)
            key = (point.scenario.to_toml(), recording(study), world)
            if key not in found:
                found[key] = (point, [])
                each = study.seconds if world is World.SIMULATED else point.scenario.duration_s + SET_UP_S
                seconds[world] += each * points.runs_of(paper, world, runs)
            found[key][1].append(place)
    return Plan(
        [point for point, _ in found.values()],
        [where for _, where in found.values()],
        [recorded for _, recorded, _ in found],
        [world for _, _, world in found],
        runs,
        seconds[World.SIMULATED],
        seconds[World.EMULATED],
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
    real_time: Runner | None = None,
) -> Reproduction:
    """Runs a paper; what is to run in real time with `real_time`, or not at all without it. Finished runs in `store`
    are used again.

    Raises PaperError before anything runs, Interrupted on Ctrl-C (what had finished is in the store), StorageError.
    """
    if runs < 1:
        raise PacelineError(f"the number of runs must be at least 1, not {runs}")
    began = time.monotonic()
    planned = plan(paper, runs)
    seeds = seeds_from(points.FIRST_SEED, runs)
    values: measure.Values = {}
    tables: dict[Place, pl.DataFrame] = {}
    running = [world for world in planned.worlds if world is World.SIMULATED or real_time]
    total = sum(points.runs_of(paper, world, runs) for world in running)
    before = 0
    # What runs in real time comes last: what is simulated takes moments, and is kept.
    for world, recorded in itertools.product(World, dict.fromkeys(sorted(planned.recorded, key=str))):
        chosen = planned.chosen(recorded, world)
        if not chosen:
            continue
        own_seeds = seeds[: points.runs_of(paper, world, runs)]

        def tell(done: float, _: int, before: int = before) -> None:
            if progress:
                progress(before + done, total)

        if world is World.SIMULATED:
            run_all = functools.partial(runner, workers=workers)
        elif real_time is not None:
            run_all = functools.partial(in_turn, runner=real_time, over="emulator")
        else:
            continue
        records = run_all(
            [planned.points[i] for i in chosen],
            own_seeds,
            record=(recorded.kind,) if recorded else (),
            record_every_s=recorded.every_s if recorded else 0.5,
            store=store,
            progress=tell,
        )
        before += len(records)
        for n, i in enumerate(chosen):
            own = records[n * len(own_seeds) : (n + 1) * len(own_seeds)]
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
