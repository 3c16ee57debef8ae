"""Runs points times seeds on all cores; each finished run is stored at once, and stopped ones resume.

`run_points` is the engine under `paceline run --runs`, `sweep`, `compare` and `reproduce`. It uses threads, since the
core runs without the interpreter lock. A run's result depends only on its scenario and seed, and results are in the
order of the request, so the number of workers changes nothing.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from paceline import _core, files
from paceline.errors import Cancelled, ControllerError, Interrupted, PacelineError
from paceline.messages import notebook_progress
from paceline.messages.warn import warn
from paceline.results.columns import TABLES
from paceline.results.recordings import RECORD_EVERY_S, SERIES
from paceline.results.results import RunRecord
from paceline.results.store import Store
from paceline.scenarios.scenario import identity
from paceline.simulate import memory
from paceline.simulate.executor_like import ExecutorLike, Opened
from paceline.simulate.executors import opened
from paceline.simulate.workers import Batches, Crew, Made, Threads, processes

MAX_RUNS = 1_000_000

_POLL_S = 0.1
_WORTH_PROCESSES_S = 4.0
"""Runs of Python controllers that take less in total are not worth the second that starting processes takes."""

Job = TypeVar("Job")

Progress = Callable[[float, float], None]
"""Called some times a second, in the calling thread, with the runs done (including shares of running ones) and the
runs in all; in real time with seconds of runs."""


@dataclass(frozen=True)
class Point:
    """A scenario to run with each seed, and the values that identify it among the points."""

    scenario: _core.Scenario
    labels: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None
    """Its own seeds, instead of the common ones."""

    @cached_property
    def identity(self) -> str:
        """The identity of its scenario, computed once: it hashes the traces."""
        return identity(self.scenario)


@dataclass(frozen=True)
class Shard:
    """Part `part` of `parts` disjoint parts of the runs. Raises PacelineError for an invalid part."""

    part: int
    parts: int

    def __post_init__(self) -> None:
        if not 1 <= self.part <= self.parts:
            raise PacelineError(f"there is no shard {self.part} of {self.parts}: the first of four is 1/4")

    def of(self, jobs: Sequence[Job]) -> list[Job]:
        """Every `parts`-th job, so that each part has runs of all points."""
        return list(jobs[self.part - 1 :: self.parts])


ALL = Shard(1, 1)


def left_out(seed: int, labels: Mapping[str, Any] | None = None) -> RunRecord:
    """The record of a run that failed: no table has a row for it."""
    return RunRecord(seed, {table: [] for table in TABLES if table != "runs"}, {}, dict(labels or {}))


def workers_of_machine() -> int:
    """The number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def check_recordings(
    record: Sequence[str], every_s: float = RECORD_EVERY_S, known: Sequence[str] = SERIES
) -> list[str]:
    """The requested recordings, each once. Raises PacelineError for an unknown one, or an interval out of range."""
    if not 1e-6 <= every_s <= 1e6:
        raise PacelineError(f"the recording interval must lie between 1e-6 and 1e6 seconds, not {every_s}")
    unknown = [kind for kind in record if kind not in known]
    if unknown:
        raise PacelineError(f'cannot record "{unknown[0]}"; there are {", ".join(known)}')
    return [kind for kind in known if kind in record]


def check_recorded(scenarios: Sequence[_core.Scenario], record: Sequence[str], every_s: float) -> None:
    """Warns of recordings that none of these scenarios has. Raises PacelineError if one ends before the first
    sample."""
    shortest = min((scenario.duration_s for scenario in scenarios), default=every_s)
    if record and every_s > shortest:
        raise PacelineError(
            f"recordings every {every_s:g} s have no sample in a run of {shortest:g} s: record more often"
        )
    possible = {kind for scenario in scenarios for kind in scenario.recordable}
    for kind in record:
        if kind in NEEDS and kind not in possible:
            warn(f"no {kind} is recorded: it needs {NEEDS[kind]}")


NEEDS = {
    "cwnd": "a flow of TCP",
    "acks": "a flow of RAP or TFRCP",
    "tfrc": "a flow of TFRC or MULTFRC",
    "rtcp": "a flow on RTP",
    "queue": "a link whose queue has a limit",
    "playout": "a flow whose app is a stream",
    "arrivals": "a flow with `delays = true`",
    "frames": "a flow whose app is an encoder",
    "airtime": "a cell",
    "windows": "a cell with `windows`",
}
"""What a scenario must have for a kind of recording; the other kinds always exist."""


def seeds_from(first: int, runs: int) -> list[int]:
    """`runs` seeds: first, first + 1, ... Raises PacelineError."""
    if not 1 <= runs <= MAX_RUNS:
        raise PacelineError(f"the number of runs must be from 1 to {MAX_RUNS}, not {runs}")
    if first < 0 or first + runs > 2**63:
        last = "" if runs == 1 else f" to {first + runs - 1}"
        raise PacelineError(f"seeds must be between 0 and {2**63 - 1}, not {first}{last}")
    return list(range(first, first + runs))


@dataclass(frozen=True)
class Captured:
    """Files written during a run: a packet capture at the named hosts (none: all), and a folder of logs (qlog)."""

    pcap: Path | None = None
    hosts: Sequence[str] = ()
    qlog: Path | None = None


def simulate(
    scenario: _core.Scenario,
    seed: int,
    record: Sequence[str],
    record_every_s: float,
    watch: _core.Watch,
    captured: Captured | None,
) -> _core.RunOutput:
    """Runs once. Raises what `_core.run` raises; for a capture StorageError and PacelineError."""
    if captured is None:
        return _core.run(scenario, seed, list(record), record_every_s, watch)
    try:
        pcap = None if captured.pcap is None else (str(captured.pcap), list(captured.hosts))
        qlog = None if captured.qlog is None else str(captured.qlog)
        return _core.run(scenario, seed, list(record), record_every_s, watch, pcap, qlog)
    except OSError as error:
        raise files.refused(Path(error.filename), error) from error
    except ValueError as error:
        raise PacelineError(f"capture: {error}") from error


def run_points(
    points: Sequence[Point],
    seeds: Sequence[int],
    *,
    record: Sequence[str] = (),
    record_every_s: float = RECORD_EVERY_S,
    workers: int | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
    captured: Captured | None = None,
    shard: Shard = ALL,
    executor: ExecutorLike | None = None,
    failures: dict[int, ControllerError] | None = None,
) -> list[RunRecord]:
    """Runs every point with every seed, or its own; records in the order of points, then seeds. `shard` selects its
    part of them. `executor` replaces this process' threads. If `failures` is given, the errors of runs whose controller
    failed go there, by their position in that order, and cause no warning or exception.

    Runs in `store` are reused, and others are stored there as they finish. Raises Interrupted on Ctrl-C (after running
    ones are cancelled, with a wait of some seconds), and any exception of a run (the others are cancelled too).
    """
    record = check_recordings(record, record_every_s)
    check_recorded([point.scenario for point in points], record, record_every_s)
    workers = workers_of_machine() if workers is None else workers
    if workers < 1:
        raise PacelineError(f"the number of workers must be at least 1, not {workers}")
    jobs = shard.of([(point, seed) for point in points for seed in point.seeds or seeds])
    if executor is None:
        memory.check([point.scenario for point in points], min(workers, len(jobs)))
    making = _Making(
        jobs, record, record_every_s, store, captured, progress or notebook_progress.progress("runs")
    )
    if captured is not None and executor is not None:
        raise PacelineError("this process writes the capture: leave out the executor")
    with opened(executor, workers) as who:
        return _made(making, making.crew(workers, who), workers, failures)


def _made(
    making: _Making, crew: Crew, workers: int, failures: dict[int, ControllerError] | None
) -> list[RunRecord]:
    """Lets a crew make the runs. Raises what `run_points` does."""
    try:
        while making.waiting or not crew.is_idle():
            making.report(crew)
            if making.waiting and (many := making.batch_size(crew)):
                crew.submit(making.waiting[:many])
                del making.waiting[:many]
            making.take(crew.made(_POLL_S))
            crew = making.next_crew(crew)
        making.report(crew)
    except BaseException as error:
        making.take(crew.stop())
        if isinstance(error, KeyboardInterrupt | Cancelled):
            raise making.interrupted() from None
        raise
    crew.close()
    return making.records(failures)


class _Making:
    """Runs in progress by number: waiting, done, and those whose controller failed."""

    def __init__(
        self,
        jobs: Sequence[tuple[Point, int]],
        record: Sequence[str],
        record_every_s: float,
        store: Store | None,
        captured: Captured | None,
        progress: Progress | None,
    ) -> None:
        self._jobs, self._record, self._every_s = jobs, record, record_every_s
        self._store, self._captured, self._progress = store, captured, progress
        self.done: dict[int, RunRecord] = {}
        self._failed: dict[int, ControllerError] = {}
        self._reported = 0.0
        self._keys: list[str] = []
        if store:
            self._keys = [Store.key(point.identity, seed, record, record_every_s) for point, seed in jobs]
            for i, (point, seed) in enumerate(jobs):
                if kept := store.get(self._keys[i], seed, record):
                    summary = kept.summary | {"name": point.scenario.name}
                    self.done[i] = RunRecord(seed, summary, kept.series, point.labels)
                    # 1 and 1.0 are equal, but their texts in a file differ
                    if json.dumps(kept.labels) != json.dumps(point.labels):
                        store.relabel(self._keys[i], self.done[i])
        self.waiting = [i for i in range(len(jobs)) if i not in self.done]
        self._began = time.monotonic()
        self._on_trial: Callable[[float], Crew | None] | None = None

    def interrupted(self) -> Interrupted:
        """The exception after Ctrl-C."""
        return Interrupted(
            len(self.done), len(self._jobs), str(self._store.directory) if self._store else None
        )

    def crew(self, workers: int, executor: Opened | None) -> Crew:
        """The crew for the runs. Controllers in Python run one at a time in a process, so long runs of them go to
        several processes; the first run measures how long they take."""
        if executor is not None:
            if executor.batch_s is None:
                return self._batches(executor)
            self._on_trial = partial(self._batches, executor)
            return Threads(1, self._make)
        in_python = self._captured is None and any(point.scenario.in_python for point, _ in self._jobs)
        if in_python and workers > 1:
            self._on_trial = partial(self._processes, workers)
        return Threads(1 if in_python else workers, self._make)

    def batch_size(self, crew: Crew) -> int:
        """How many more jobs to hand over: one, while it measures the time that a run takes."""
        return int(crew.is_idle()) if self._on_trial else crew.free_slots()

    def next_crew(self, crew: Crew) -> Crew:
        """The crew for the other runs, once the first is done."""
        if not self._on_trial or not crew.is_idle() or not self.waiting:
            return crew
        successor = self._on_trial(time.monotonic() - self._began)
        self._on_trial = None
        if successor is None:
            return crew
        crew.close()
        return successor

    def _processes(self, workers: int, run_s: float) -> Crew | None:
        if run_s * len(self.waiting) < _WORTH_PROCESSES_S:
            return None
        made = partial(processes, workers)
        return self._batches(Opened(made(), workers), run_s, made)

    def _batches(
        self, opened: Opened, run_s: float | None = None, renew: Callable[[], Executor] | None = None
    ) -> Crew:
        return Batches(opened, self._job, self._keep, self._record, self._every_s, renew=renew, run_s=run_s)

    def _job(self, i: int) -> tuple[_core.Scenario, int, dict[str, Any]]:
        point, seed = self._jobs[i]
        return point.scenario, seed, point.labels

    def _keep(self, i: int, run: RunRecord) -> RunRecord:
        return self._store.put(self._keys[i], run) if self._store else run

    def _make(self, i: int, watch: _core.Watch) -> RunRecord:
        point, seed = self._jobs[i]
        output = simulate(point.scenario, seed, self._record, self._every_s, watch, self._captured)
        return self._keep(i, RunRecord.of(seed, output, point.labels))

    def take(self, made: Sequence[Made]) -> None:
        """Accepts finished runs."""
        for one in made:
            if isinstance(one.record, ControllerError):
                self._failed[one.number] = one.record
            else:
                self.done[one.number] = one.record

    def report(self, crew: Crew) -> None:
        """Reports the progress."""
        if self._progress:
            # Summing the same shares in another order can give slightly less.
            over = len(self.done) + len(self._failed) + crew.share()
            self._reported = max(self._reported, min(len(self._jobs), over))
            self._progress(self._reported, len(self._jobs))

    def records(self, failures: dict[int, ControllerError] | None) -> list[RunRecord]:
        """All records; failed runs have no rows in any table. If `failures` is None, raises ControllerError if all
        failed."""
        if failures is not None:
            failures.update(self._failed)
        elif self._failed:
            first = self._failed[min(self._failed)]
            if not self.done:
                raise first
            warn(f"{first}\n{len(self._failed)} of {len(self._jobs)} runs failed and are left out")
        return [
            self.done[i] if i in self.done else left_out(seed, point.labels)
            for i, (point, seed) in enumerate(self._jobs)
        ]
