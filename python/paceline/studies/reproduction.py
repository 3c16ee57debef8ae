"""Runs a paper from beginning to end: points, runs, metrics, verdicts."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from paceline import _core, files
from paceline.emulator.realtime_queue import Budget, Runner, disturbance, in_turn, is_disturbed
from paceline.errors import Interrupted
from paceline.results.results import RunRecord
from paceline.results.series import sparse
from paceline.results.store import Store, kept_in
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.executors import opened
from paceline.simulate.points import Point, Progress, run_points, seeds_from, workers_of_machine
from paceline.studies import measure, points, second_runs, time_slices
from paceline.studies.metric import Metric
from paceline.studies.paper import Paper, Reading
from paceline.studies.points import Place
from paceline.studies.second_runs import SecondRuns
from paceline.studies.study import Level, Study, World
from paceline.studies.verdict import Outcome

REAL_EVERY_S = 0.5
"""Recording interval of runs in real time; shorter if a study needs it."""


@dataclass(frozen=True)
class RealTime:
    """The accuracy of runs in real time: each run's median and 99th percentile of its emulator's lag (s), and the share
    of processor time that others took meanwhile."""

    budget: Budget
    lag_p50_s: tuple[float, ...]
    lag_p99_s: tuple[float, ...]
    steal: tuple[float, ...]
    disturbed: int
    """Runs that were disturbed at every attempt."""

    @staticmethod
    def of(records: Sequence[RunRecord], budget: Budget) -> RealTime | None:
        """The accuracy of these runs; None if no run recorded it."""
        found = [said for record in records if (said := disturbance(record))]
        if not found:
            return None
        p50, p99, steal = zip(*found, strict=True)
        return RealTime(budget, p50, p99, steal, sum(map(is_disturbed, records)))


@dataclass
class Reproduction:
    """The result: values of every metric, recordings, verdicts, and provenance."""

    paper: Paper
    runs: int
    values: measure.Values
    recorded: dict[Place, pl.DataFrame]
    """The recordings of points in studies that record: seed, flow, instance, time_s, and the recording's columns."""
    results: list[measure.Result]
    provenance: dict[str, Any]
    figure: str | None = None
    reading: Reading | None = None
    """The reading, if it is not that of the paper's scenarios."""
    full: bool = False
    """Whether runs in real time had the paper's length and number."""
    seconds: float = 0.0
    workers: int = 1
    real: RealTime | None = None
    """The accuracy of the runs in real time, if there were any."""
    scenarios: dict[str, str] = field(default_factory=dict)
    """Scenario file -> its text with every default filled in."""
    readings: dict[str, list[measure.Result]] = field(default_factory=dict)
    """Reading -> the verdicts on the claims that it may change, for those that were run."""

    @property
    def seeds(self) -> list[int]:
        """The seeds that all points share."""
        return seeds_from(points.FIRST_SEED, self.runs)

    def studies(self) -> list[Study]:
        """The studies in the paper's order."""
        return list(self.paper.studies.values())

    def counts(self) -> dict[str, int]:
        """The number of claims by outcome, without those that are only shown."""
        return {str(outcome): sum(r.verdict.outcome is outcome for r in self.counted) for outcome in Outcome}

    def near(self) -> dict[str, int]:
        """Counts of relative deviations, regardless of intervals: the counted numbers for which we have a value, and
        those within 5 and 15 % of the published one. Keys: numbers, within_5, within_15."""
        off = [share for result in self.counted if (share := result.off_share) is not None]
        return {
            "numbers": len(off),
            "within_5": sum(share <= 0.05 for share in off),
            "within_15": sum(share <= 0.15 for share in off),
        }

    @property
    def counted(self) -> list[measure.Result]:
        """The claims that count for verdicts."""
        return [result for result in self.results if not result.claim.beside]


@dataclass(frozen=True)
class Recorded:
    """What is recorded, at what interval, and the flows that are kept (None: all)."""

    kind: str
    every_s: float
    flows: tuple[str, ...] | None
    cut_s: float | None = None
    """The length of the intervals that the runs are cut into; their metrics are then kept instead."""
    also: tuple[str, ...] = ()
    """Further recordings, only for metrics."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of recordings."""
        return (self.kind, *self.also)

    def summaries(self, records: Sequence[RunRecord]) -> list[dict[str, Any]]:
        """The summaries of the runs, with their intervals if they are cut."""
        if self.cut_s is None:
            return [record.summary for record in records]
        # A run that failed has no recordings.
        parts = [record.series.get(self.kind) for record in records]
        cut = [[] if part is None else time_slices.cut(part, self.cut_s) for part in parts]
        return [record.summary | {measure.INTERVALS: rows} for record, rows in zip(records, cut, strict=True)]

    def table(
        self, metrics: Mapping[str, Metric], records: Sequence[RunRecord], world: World
    ) -> pl.DataFrame | None:
        """The kept part of the recordings: themselves, or the flow's metrics for each interval."""
        if self.cut_s is None:
            return self.kept(records, world)
        rows: list[dict[str, Any]] = []
        for record, summary in zip(records, self.summaries(records), strict=True):
            each = measure.each_of_run(metrics, summary)
            several = max(map(len, each.values()), default=0)
            columns = {key: column for key, column in each.items() if len(column) == several}
            for k in range(several):
                at = {"seed": record.seed, "flow": "", "instance": 0, "time_s": (k + 1) * self.cut_s}
                rows.append(at | {key: column[k] for key, column in columns.items()})
        return pl.DataFrame(rows, infer_schema_length=None)

    def kept(self, records: Sequence[RunRecord], world: World = World.SIMULATED) -> pl.DataFrame | None:
        """The recording of the runs, with their seeds; None if no run has it. Real-time recordings, which may be
        denser, are thinned to the requested interval."""
        parts = []
        for record in records:
            table = record.series.get(self.kind)
            if table is None:  # a run in real time that failed
                continue
            if self.flows is not None:
                table = table.filter(pl.col("flow").is_in(self.flows))
            if world is World.EMULATED:
                table = sparse(self.kind, table, self.every_s)
            parts.append(table.select(pl.lit(record.seed).alias("seed"), pl.all()))
        return pl.concat(parts, how="diagonal_relaxed") if parts else None


def recording(study: Study, level: Level | None = None) -> Recorded | None:
    """The study's recording at the level, of the flows in its traces if they name some."""
    if study.record is None:
        return None
    if cut_s := study.cut_at(level) if level else study.cut_s:
        return Recorded(study.record, study.record_every_s, None, cut_s)
    shown = [plot.trace.flows for plot in study.plots if plot.trace is not None]
    flows = (
        None if None in shown or not shown else tuple(sorted({flow for some in shown for flow in some or ()}))
    )
    return Recorded(study.record, study.record_every_s, flows, also=study.record_also)


@dataclass(frozen=True)
class Plan:
    """The plan of a reproduction: each distinct point once, with all the places that show it."""

    points: list[Point]
    places: list[list[Place]]
    recorded: list[Recorded | None]
    """The recording of each simulated point."""
    worlds: list[World]
    """Where each point runs."""
    runs: int
    each_s: list[float]
    """Core seconds of a run of each simulated point on the machine of the paper's README."""
    real_runs: int
    """Number of runs of each point in real time."""
    kinds: tuple[str, ...]
    """Their recordings."""
    real_every_s: float
    """Their recording interval."""
    again: tuple[tuple[str, float], ...] = ()
    """The study of each place whose runs are made twice (see `changes`), and the core seconds of a second run."""

    @property
    def runs_in_all(self) -> int:
        """The number of runs, in the simulator and in real time."""
        return (len(self.points) + len(self.again)) * self.runs

    @property
    def seconds(self) -> float:
        """Core seconds of all simulated runs."""
        return (sum(self.each_s) + sum(seconds for _, seconds in self.again)) * self.runs

    def of(self, studies: Collection[str]) -> Plan:
        """The part of the plan that these studies show."""
        shown = [any(place.study in studies for place in where) for where in self.places]
        return replace(
            self,
            points=list(itertools.compress(self.points, shown)),
            places=list(itertools.compress(self.places, shown)),
            recorded=list(itertools.compress(self.recorded, shown)),
            worlds=list(itertools.compress(self.worlds, shown)),
            each_s=list(itertools.compress(self.each_s, shown)),
            again=tuple(one for one in self.again if one[0] in studies),
        )

    def kept(self, directory: Path) -> tuple[int, float]:
        """How many of the simulated runs are in a store's directory, and their core seconds."""
        many, seconds = 0, 0.0
        names = kept_in(directory)
        if not names:
            return many, seconds  # the name of a run is a hash, and there are thousands
        for i in range(len(self.points)):
            if self.worlds[i] is not World.SIMULATED:
                continue
            recorded, identity = self.recorded[i], self.points[i].identity
            what = (recorded.kinds, recorded.every_s) if recorded else ((), 0.0)
            seeds = seeds_from(points.FIRST_SEED, self.runs)
            there = sum(Store.key(identity, seed, *what) in names for seed in seeds)
            many, seconds = many + there, seconds + there * self.each_s[i]
        return many, seconds

    def real_seconds(self, budget: Budget) -> float:
        """The time that the points in real time take."""
        pairs = zip(self.points, self.worlds, strict=True)
        return budget.seconds([point for point, world in pairs if world is World.EMULATED] * self.real_runs)

    def chosen(self, recorded: Recorded | None, world: World) -> list[int]:
        """The points with this recording, in that world."""
        where = zip(self.recorded, self.worlds, strict=True)
        return [i for i, (r, w) in enumerate(where) if r == recorded and w is world]


def plan(paper: Paper, runs: int) -> Plan:
    """The points of all studies, equal runs merged. Raises PaperError for a bad scenario: nothing starts unless every
    point is valid."""
    found: dict[tuple[str, Recorded | None, World], tuple[Point, list[Place], float]] = {}
    kinds, real_every_s = dict.fromkeys(paper.real_record), REAL_EVERY_S
    again = []
    for study in paper.studies.values():
        for place, _, level in points.places(study):
            if points.is_left_out(study, place):
                continue
            point = points.point(paper, study, place)
            world = points.world(study, place)
            recorded = recording(study, level)
            if study.change:
                points.check_change(paper, study, place, point)
                again.append((study.key, _run_s(study, point, recorded)))
            if world is World.EMULATED and recorded:
                # A run in real time is expensive: a single run makes all recordings.
                kinds |= dict.fromkeys(recorded.kinds)
                real_every_s = min(real_every_s, recorded.every_s)
                recorded = None
            key = (point.scenario.to_toml(), recorded, world)
            if key not in found:
                found[key] = (point, [], _run_s(study, point, recorded) if world is World.SIMULATED else 0.0)
            found[key][1].append(place)
    return Plan(
        [point for point, _, _ in found.values()],
        [where for _, where, _ in found.values()],
        [recorded for _, recorded, _ in found],
        [world for _, _, world in found],
        runs,
        [seconds for _, _, seconds in found.values()],
        points.runs_of(paper, World.EMULATED, runs),
        tuple(sorted(kinds)),
        real_every_s,
        tuple(again),
    )


RUN_S = 2e-3
ROW_S = 0.25e-6
"""Core seconds on an Intel Xeon that a run takes besides its packets, for each recorded row of a flow."""


def _run_s(study: Study, point: Point, recorded: Recorded | None) -> float:
    """Estimated core seconds of a run of the point: the study's figure if it has one, else by packets and rows."""
    if study.seconds is not None:
        return study.seconds
    scenario = point.scenario
    rows = len(scenario.flow_names()) * scenario.duration_s / recorded.every_s if recorded else 0.0
    return RUN_S + scenario.core_seconds() + ROW_S * rows


def seconds_on(core_seconds: float, workers: int) -> float:
    """Wall time of this many core seconds with `workers` workers on as many cores."""
    return core_seconds / max(1, min(workers, workers_of_machine()))


def run(
    paper: Paper,
    *,
    runs: int = 10,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
    runner: Callable[..., list[RunRecord]] = run_points,
    real_time: Runner | None = None,
) -> Reproduction:
    """Runs a paper; its real-time points with `real_time`, or not at all without it, as many runs side by side as the
    machine can carry and `workers` allows; `executor` makes the simulated ones. Finished runs in `store` are used
    again. `progress` counts runs, with `real_time` seconds.

    Raises PaperError before anything runs, Interrupted on Ctrl-C (finished runs are in the store), StorageError.
    """
    with opened(executor, workers or workers_of_machine()) as who:
        return _run(
            paper,
            runs=runs,
            workers=workers,
            store=store,
            progress=progress,
            runner=runner if who is None else functools.partial(runner, executor=who),
            real_time=real_time,
        )


def _run(
    paper: Paper,
    *,
    runs: int,
    workers: int | None,
    store: Store | None,
    progress: Progress | None,
    runner: Callable[..., list[RunRecord]],
    real_time: Runner | None,
) -> Reproduction:
    """The body of `run`, after the executor is opened."""
    began = time.monotonic()
    seeds = seeds_from(points.FIRST_SEED, runs)
    planned = plan(paper, runs)
    values: measure.Values = {}
    tables: dict[Place, pl.DataFrame] = {}
    budget = Budget.of_machine(workers)
    kept: list[RunRecord] = []
    firsts: dict[str, list[dict[str, Any]]] = {}
    # The unit of progress: a run, or the seconds that it takes.
    worth = dict.fromkeys(World, 1.0)
    counts = {world: planned.worlds.count(world) * points.runs_of(paper, world, runs) for world in World}
    counts[World.SIMULATED] += len(planned.again) * runs
    if real_time:
        worth[World.SIMULATED] = seconds_on(planned.seconds, workers or workers_of_machine()) / max(
            1, counts[World.SIMULATED]
        )
        worth[World.EMULATED] = planned.real_seconds(budget) / max(1, counts[World.EMULATED])
    total = sum(counts[world] * worth[world] for world in World if real_time or world is World.SIMULATED)
    before, ended = 0.0, 0

    def made(
        what: Sequence[Point], own_seeds: Sequence[int], recorded: Recorded | None, world: World
    ) -> list[RunRecord]:
        """Runs these points, as the next part of the whole."""
        nonlocal before, ended
        whole = sum(len(point.seeds or own_seeds) for point in what) * worth[world]

        def on_progress(done: float, of: float) -> None:
            if progress:
                progress(before + whole * done / of, total)

        if real_time is None or world is World.SIMULATED:
            run_all = functools.partial(runner, workers=workers)
        else:
            run_all = functools.partial(in_turn, runner=real_time, over="emulator", budget=budget)
        in_all = planned.kinds if world is World.EMULATED else ()
        try:
            records: list[RunRecord] = run_all(
                what,
                own_seeds,
                record=recorded.kinds if recorded else in_all,
                record_every_s=recorded.every_s if recorded else planned.real_every_s,
                store=store,
                progress=on_progress,
            )
        except Interrupted as stop:
            all_runs = sum(counts[world] for world in World if real_time or world is World.SIMULATED)
            raise Interrupted(
                ended + stop.finished, all_runs, str(store.directory) if store else None
            ) from None
        before, ended = before + whole, ended + len(records)
        return records

    # Real-time runs come last: simulated ones take little time, and are stored.
    for world, recorded in itertools.product(World, dict.fromkeys(sorted(planned.recorded, key=str))):
        chosen = planned.chosen(recorded, world)
        if not chosen or (world is World.EMULATED and real_time is None):
            continue
        own_seeds = seeds[: points.runs_of(paper, world, runs)]
        records = made([planned.points[i] for i in chosen], own_seeds, recorded, world)
        kept += records if world is World.EMULATED else []
        again: list[SecondRuns] = []
        for n, i in enumerate(chosen):
            own = records[n * len(own_seeds) : (n + 1) * len(own_seeds)]
            for place in planned.places[i] if world is World.SIMULATED else ():
                firsts.setdefault(place.study, []).append(own[0].summary)
            second = {place: second_runs.of_place(paper, place, own) for place in planned.places[i]}
            again += filter(None, second.values())
            _take(
                paper, [place for place in planned.places[i] if not second[place]], own, world, values, tables
            )
        make = functools.partial(made, own_seeds=own_seeds, recorded=recorded, world=world)
        _take_seconds(paper, again, make, values, tables)
    _check_found(paper, firsts)
    return Reproduction(
        paper,
        runs,
        values,
        tables,
        measure.results(paper, values),
        files.provenance(),
        seconds=time.monotonic() - began,
        workers=workers or workers_of_machine(),
        real=RealTime.of(kept, budget),
        scenarios={
            study.scenario: _core.Scenario.load(str(paper.folder / study.scenario)).to_toml()
            for study in paper.studies.values()
            if study.scenario
        },
    )


def _take(
    paper: Paper,
    places: Sequence[Place],
    own: Sequence[RunRecord],
    world: World,
    values: measure.Values,
    tables: dict[Place, pl.DataFrame],
) -> None:
    """Assigns the metrics and recordings of a point's runs to all of its places."""
    series = [record.series for record in own]
    # Studies cut the runs into different intervals.
    by_cut: dict[float | None, dict[str, list[float]]] = {}
    for place in places:
        study = paper.studies[place.study]
        shown = recording(study, study.levels[study.level(place.level)])
        cut = shown.cut_s if shown else None
        if cut not in by_cut:
            summaries = shown.summaries(own) if shown else [record.summary for record in own]
            by_cut[cut] = measure.of_point(paper.metrics, summaries, series)
        values[place] = by_cut[cut]
        table = shown.table(paper.metrics, own, world) if shown else None
        if table is not None:
            tables[place] = table


def _take_seconds(
    paper: Paper,
    again: Sequence[SecondRuns],
    make: Callable[[Sequence[Point]], list[RunRecord]],
    values: measure.Values,
    tables: dict[Place, pl.DataFrame],
) -> None:
    """Makes the second runs, and assigns their results."""
    what = [point for second in again for point in second.points(paper)]
    records = iter(make(what) if what else ())
    for second in again:
        if second.never:
            values[second.place] = second_runs.unknown(paper, len(second.firsts))
            continue
        own = list(itertools.islice(records, len(second.firsts)))
        second.check(paper, own)
        _take(paper, [second.place], own, World.SIMULATED, values, tables)


def _check_found(paper: Paper, firsts: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Raises PaperError for a metric that a study shows and that none of its runs has. `firsts` are summaries of
    simulated runs by study: real ones lack what cannot be measured there."""
    for key, summaries in firsts.items():
        study = paper.studies[key]
        wanted = set(study.drawn)
        wanted |= {
            name for claim in paper.claims if claim.study == key and claim.ours for name in claim.ours.names
        }
        for metric in reversed(list(paper.metrics.values())):
            # Expressions use metrics above them.
            if metric.key in wanted:
                measure.check_found(f"{paper.name}/{paper.file}: metric.{metric.key}", metric, summaries)
                wanted |= metric.expression.names if metric.expression else set()
