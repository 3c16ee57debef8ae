"""Runs candidates: each once, with common seeds, many at a time, until a deadline."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from paceline import _core
from paceline.errors import Cancelled, ControllerError, Interrupted, PacelineError, PacelineWarning
from paceline.hunts.objective import Goal, known_mean
from paceline.hunts.ranges import Axis, Candidate
from paceline.results.results import RunRecord
from paceline.results.store import Store
from paceline.scenarios.scenario import load
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.executors import PROCESSES, opened
from paceline.simulate.points import Point, run_points, workers_of_machine


class TimeIsUp(Exception):  # noqa: N818 (not an error: the budget is spent)
    """The budget is spent; unfinished runs are abandoned."""


@dataclass(frozen=True)
class Outcome:
    """The result of a candidate, or of one run of it."""

    values: tuple[float, ...]
    """The value of each run, in the order of the seeds; nan for a run without one."""
    crashes: tuple[str, ...] = ()
    """The controller's error message of each failed run."""
    marks: tuple[float, ...] = ()
    """For each run in the order of the seeds: 1 if it failed, else 0."""
    refused: str = ""
    """Why it could not run: it is no valid scenario."""
    unfit: str = ""
    """Why the expression is no single number in its runs, for example because it names several rows."""

    @property
    def mean(self) -> float:
        """The mean of the runs that have a value; nan if none has."""
        return known_mean(self.values)

    @property
    def failing(self) -> float:
        """The share of the runs that failed."""
        return len(self.crashes) / len(self.values) if self.values else 0.0


class Runner:
    """Runs candidates. A context manager: the executor lives as long as the block."""

    def __init__(
        self,
        base: _core.Scenario,
        axes: Sequence[Axis],
        goal: Goal,
        *,
        workers: int | None,
        executor: ExecutorLike | None,
        ends_s: float,
        on_progress: Callable[[float], None],
    ) -> None:
        """`ends_s`: the end of the budget, by the monotonic clock. `on_progress` receives the finished share of
        runs."""
        self._base, self._axes, self._goal, self._on_progress = base, axes, goal, on_progress
        self._workers = workers_of_machine() if workers is None else workers
        self._executor: ExecutorLike | None = executor
        self.ends_s = ends_s
        self.store: Store | None = None
        """The store of finished runs."""
        self._held = ExitStack()
        self._known: dict[tuple[str, int], Outcome] = {}
        self._spent = False

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: Any) -> None:
        self._held.close()

    def scenario(self, candidate: Candidate) -> _core.Scenario:
        """The scenario of a candidate. Raises ScenarioError, PacelineError if it is invalid."""
        changes: dict[str, str] = {}
        for axis, value in zip(self._axes, candidate, strict=True):
            changes |= {} if value is None else axis.changes(value)
        with warnings.catch_warnings():
            # settings without effect are expected in a search
            warnings.simplefilter("ignore", PacelineWarning)
            return load(self._base, changes) if changes else self._base

    def outcomes(self, candidates: Sequence[Candidate], seeds: Sequence[int]) -> list[Outcome]:
        """The outcomes of candidates, each with all seeds. Raises TimeIsUp, Interrupted, and any exception of a run
        that is not its controller's failure."""
        points: dict[str, Point] = {}
        wanted: list[str | None] = []
        refused: dict[int, str] = {}
        for place, candidate in enumerate(candidates):
            try:
                point = Point(self.scenario(candidate))
            except ControllerError:
                raise
            except PacelineError as error:
                refused[place] = str(error)
                wanted.append(None)
                continue
            points.setdefault(point.identity, point)
            wanted.append(point.identity)
        self._run(points, seeds)
        return [
            Outcome((), refused=refused[place]) if key is None else self._outcome(key, seeds)
            for place, key in enumerate(wanted)
        ]

    def _outcome(self, key: str, seeds: Sequence[int]) -> Outcome:
        found = [self._known[key, seed] for seed in seeds]
        return Outcome(
            tuple(value for one in found for value in one.values),
            tuple(words for one in found for words in one.crashes),
            tuple(mark for one in found for mark in one.marks),
            unfit=next((one.unfit for one in found if one.unfit), ""),
        )

    def _run(self, points: dict[str, Point], seeds: Sequence[int]) -> None:
        jobs = [
            (key, Point(point.scenario, seeds=tuple(new)))
            for key, point in points.items()
            if (new := [seed for seed in seeds if (key, seed) not in self._known])
        ]
        if not jobs:
            return
        failures: dict[int, ControllerError] = {}
        self._spent = False
        try:
            records = run_points(
                [point for _, point in jobs],
                [],
                workers=self._workers,
                executor=self._who(points),
                store=self.store,
                progress=self._progress,
                failures=failures,
            )
        except Interrupted:
            if self._spent:
                raise TimeIsUp from None
            raise
        if not self._known and not failures:
            # The first runs are the file's own: a mistake in the expression is reported before the search.
            self._goal.check(records[0])
        where = [(key, seed) for key, point in jobs for seed in point.seeds or ()]
        for place, (key, seed) in enumerate(where):
            failure = failures.get(place)
            self._known[key, seed] = (
                self._measured(records[place])
                if failure is None
                else Outcome((math.nan,), (str(failure),), (1.0,))
            )

    def _measured(self, record: RunRecord) -> Outcome:
        try:
            return Outcome((self._goal.of(record),), (), (0.0,))
        except PacelineError as error:
            # A candidate may have more rows than the file; that must not end the hunt.
            return Outcome((math.nan,), (), (0.0,), unfit=str(error))

    def _progress(self, done: float, total: float) -> None:
        self._on_progress(done / max(total, 1.0))
        if time.monotonic() >= self.ends_s:
            self._spent = True
            raise Cancelled

    def _who(self, points: dict[str, Point]) -> ExecutorLike | None:
        """The executor of the runs. It is opened once, because opening takes a second."""
        if isinstance(self._executor, str) or (
            # controllers in Python run one at a time in a process
            self._executor is None
            and self._workers > 1
            and any(p.scenario.in_python for p in points.values())
        ):
            self._executor = self._held.enter_context(opened(self._executor or PROCESSES, self._workers))
        return self._executor
