"""Makes runs: in threads of this process, or in an executor's workers, which may be elsewhere.

`points.run_points` hands jobs to a crew on demand and takes what is done. Threads suffice for compiled-in controllers,
because the core runs without the interpreter lock. Controllers in Python hold that lock, so several runs of them go to
processes. An executor receives batches of some seconds, whose results come back as Arrow.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from paceline import _core
from paceline.errors import ControllerError, PacelineError
from paceline.results.results import RunRecord
from paceline.results.series import series_tables
from paceline.simulate.executor_like import Opened
from paceline.threads import THREADS

_GRACE_S = 10.0
"""A cancelled run checks its watch many times a second; one that has not ended after this time is abandoned."""

BATCH_S = 2.0
"""Target duration of a batch: long enough that handing it over costs little, short enough that losing it does too."""
_MAX_BATCH = 10_000
"""A run returns some kilobytes, so a batch returns some ten megabytes."""
_AHEAD = 2
"""Runs queued per thread, including the one that it executes."""
_TRIES = 3
"""How often a batch is submitted again after its worker was lost."""


@dataclass(frozen=True)
class Made:
    """The result of a job: its number, and its record or its controller's error."""

    number: int
    record: RunRecord | ControllerError


class Crew(Protocol):
    """Workers that make runs, which are identified by their numbers."""

    def free_slots(self) -> int:
        """How many more jobs it can take now."""

    def submit(self, numbers: Sequence[int]) -> None:
        """Accepts those jobs."""

    def is_idle(self) -> bool:
        """Whether it has no jobs."""

    def made(self, timeout_s: float) -> list[Made]:
        """The finished jobs, after this time at the latest. Raises what stops all."""

    def share(self) -> float:
        """The finished share of unfinished jobs, in runs."""

    def stop(self) -> list[Made]:
        """Ends all jobs; returns those that had finished by then."""

    def close(self) -> None:
        """Releases its resources, once it is idle."""


class Threads:
    """The threads of this process."""

    def __init__(self, workers: int, work: Callable[[int, _core.Watch], RunRecord]) -> None:
        self._workers, self._work = workers, work
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=THREADS)
        self._running: dict[Future[Made], tuple[int, _core.Watch]] = {}

    def free_slots(self) -> int:
        # one more than each worker runs, so that none waits for the next
        return _AHEAD * self._workers - len(self._running)

    def submit(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            watch = _core.Watch()
            self._running[self._pool.submit(self._one, number, watch)] = (number, watch)

    def _one(self, number: int, watch: _core.Watch) -> Made:
        try:
            return Made(number, self._work(number, watch))
        except ControllerError as error:
            return Made(number, error)

    def is_idle(self) -> bool:
        return not self._running

    def made(self, timeout_s: float) -> list[Made]:
        finished, _ = wait(self._running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        done = []
        for future in finished:
            del self._running[future]
            done.append(future.result())
        return done

    def share(self) -> float:
        return sum(watch.progress for _, watch in self._running.values())

    def close(self) -> None:
        self._pool.shutdown()

    def stop(self) -> list[Made]:
        for _, watch in list(self._running.values()):
            watch.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in self._running if not future.cancelled()], timeout=_GRACE_S)
        ended = [f for f in self._running if f.done() and not f.cancelled() and not f.exception()]
        return [future.result() for future in ended]


@dataclass(frozen=True)
class Batch:
    """Some runs for a worker elsewhere."""

    build: str
    """The requesting core: results of another build would not be the same bits."""
    scenarios: Sequence[_core.Scenario]
    jobs: Sequence[tuple[int, int, int]]
    """The number of each job, the index of its scenario, and its seed."""
    record: Sequence[str]
    record_every_s: float


@dataclass(frozen=True)
class Answer:
    """The result of a batch: for each job its number, its summary as JSON and its recordings as Arrow, or its
    controller's error message; or the reason why there is none."""

    jobs: Sequence[tuple[int, str | None, Mapping[str, bytes], str | None]] = ()
    seconds: float = 0.0
    refused: str | None = None


def make(batch: Batch) -> Answer:
    """Makes the runs of a batch, one after the other, in a worker."""
    if batch.build != _core.build():
        where = f"{platform.node()}, process {os.getpid()}"
        return Answer(refused=f"a worker ({where}) has Paceline {_core.build()}, and this is {batch.build}")
    began = time.monotonic()
    done: list[tuple[int, str | None, Mapping[str, bytes], str | None]] = []
    for number, place, seed in batch.jobs:
        try:
            # keep a controller's output out of the results
            with contextlib.redirect_stdout(sys.stderr):
                output = _core.run(batch.scenarios[place], seed, list(batch.record), batch.record_every_s)
        except ControllerError as error:
            done.append((number, None, {}, str(error)))
            continue
        recorded = {kind: _arrow(table) for kind, table in series_tables(output.series).items()}
        done.append((number, output.summary_json, recorded, None))
    return Answer(done, time.monotonic() - began)


def _arrow(table: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.write_ipc_stream(stream)
    return stream.getvalue()


@dataclass
class _RunningBatch:
    """A batch in progress."""

    numbers: list[int]
    tries: int = 1
    since: float = field(default_factory=time.monotonic)


class Batches:
    """An executor's workers. `jobs` gives a number's scenario, seed and labels; `keep` accepts each record."""

    def __init__(
        self,
        opened: Opened,
        jobs: Callable[[int], tuple[_core.Scenario, int, dict[str, Any]]],
        keep: Callable[[int, RunRecord], RunRecord],
        record: Sequence[str],
        record_every_s: float,
        *,
        renew: Callable[[], Executor] | None = None,
        run_s: float | None = None,
    ) -> None:
        """`renew` replaces an executor that broke when it lost a worker. `run_s` is the duration of a run, if known."""
        self._opened, self._executor, self._jobs, self._renew = opened, opened.executor, jobs, renew
        self._keep, self._record, self._every_s = keep, record, record_every_s
        self._running: dict[Future[Answer], _RunningBatch] = {}
        self._run_s = run_s

    def _size(self) -> int:
        """Runs in a batch: one until their duration is known."""
        if self._run_s is None:
            return 1
        batch_s = self._opened.batch_s or BATCH_S
        return max(1, min(_MAX_BATCH, round(batch_s / max(self._run_s, 1e-6))))

    def free_slots(self) -> int:
        free = self._opened.queue() - len(self._running)
        return max(0, free) * self._size()

    def submit(self, numbers: Sequence[int]) -> None:
        size = self._size()
        if self._opened.batch_s is None:
            # Divide what is left among all workers: the last batches are smaller.
            free = max(1, self._opened.queue() - len(self._running))
            size = max(1, min(size, -(-len(numbers) // free)))
        for first in range(0, len(numbers), size):
            self._submit(_RunningBatch(list(numbers[first : first + size])))

    def _submit(self, running: _RunningBatch) -> None:
        scenarios: list[_core.Scenario] = []
        places: dict[int, int] = {}
        jobs = []
        for number in running.numbers:
            scenario, seed, _ = self._jobs(number)
            if id(scenario) not in places:
                places[id(scenario)] = len(scenarios)
                scenarios.append(scenario)
            jobs.append((number, places[id(scenario)], seed))
        batch = Batch(_core.build(), scenarios, jobs, self._record, self._every_s)
        try:
            future = self._executor.submit(make, batch)
        except BrokenExecutor as error:
            # A process pool accepts nothing more once one of its processes has died.
            why = str(error).partition("\n")[0]
            raise PacelineError(
                f"the executor has lost a worker and makes no more runs ({why}): it may be out of memory. Repeat the "
                "call with out to resume"
            ) from error
        self._running[future] = running

    def is_idle(self) -> bool:
        return not self._running

    def made(self, timeout_s: float) -> list[Made]:
        finished, _ = wait(self._running, timeout=timeout_s, return_when=FIRST_COMPLETED)
        done: list[Made] = []
        lost: list[_RunningBatch] = []
        for future in finished:
            running = self._running.pop(future)
            try:
                done += self._taken(future.result())
            except PacelineError:
                raise
            except Exception as error:
                if not _lost_a_worker(error):
                    raise PacelineError(
                        f"a worker cannot make runs ({error}): Paceline {_core.version()} has to be installed where "
                        "they are made"
                    ) from error
                if running.tries >= _TRIES:
                    raise PacelineError(
                        f"a worker was lost {running.tries} times at the same {len(running.numbers)} runs ({error}): "
                        "it may be out of memory"
                    ) from error
                lost.append(_RunningBatch(running.numbers, running.tries + 1))
        if lost and self._renew is not None:
            # All jobs of a broken executor are lost.
            lost += [_RunningBatch(running.numbers, running.tries + 1) for running in self._running.values()]
            self._running.clear()
            self._executor = self._renew()
        for running in lost:
            self._submit(running)
        return done

    def _taken(self, answer: Answer) -> Iterator[Made]:
        if answer.refused:
            raise PacelineError(f"{answer.refused}: install the same version there")
        if answer.jobs:
            self._run_s = answer.seconds / len(answer.jobs)
        for number, summary, series, error in answer.jobs:
            _, seed, labels = self._jobs(number)
            if error is not None or summary is None:
                yield Made(number, ControllerError(error or ""))
                continue
            tables = {kind: pl.read_ipc_stream(data) for kind, data in series.items()}
            record = RunRecord(seed, json.loads(summary), tables, labels)
            yield Made(number, self._keep(number, record))

    def share(self) -> float:
        if self._run_s is None:
            return 0.0
        now = time.monotonic()
        # A batch that takes longer than the last one is not yet done.
        done = sum(min((now - h.since) / self._run_s, 0.9 * len(h.numbers)) for h in self._running.values())
        # Only as many batches as there are busy workers make progress.
        return done * min(1.0, self._opened.busy() / max(1, len(self._running)))

    def close(self) -> None:
        if self._renew is not None:
            self._executor.shutdown()

    def stop(self) -> list[Made]:
        done: list[Made] = []
        for future in self._running:
            if future.done() and not future.cancelled() and not future.exception():
                done += self._taken(future.result())
            else:
                future.cancel()
        if self._renew is not None:
            self._executor.shutdown(wait=False, kill_workers=True)  # type: ignore[call-arg]
        return done


def _lost_a_worker(error: Exception) -> bool:
    """Whether the worker failed, not the runs. Dask has its own exception."""
    return isinstance(error, BrokenExecutor) or type(error).__name__ in {"KilledWorker", "CommClosedError"}


def processes(workers: int) -> Executor:
    """Processes on this machine, which import nothing of the caller's script."""
    from loky import ProcessPoolExecutor  # noqa: PLC0415 (only for controllers in Python)

    pool: Executor = ProcessPoolExecutor(workers)
    return pool
