"""Runs in real time: in sequence, and concurrently as far as the machine can carry several paths.

An emulated path depends on the clock, and so on available processor time. Concurrent runs therefore stay within a
`Budget` of runs and of bits a second, and each reports its emulator's lag and the processor time used by others:
`disturbance`. Read `in_turn` first.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from paceline import _core
from paceline.emulator.paths import LATE_S, STEAL
from paceline.errors import InternalError, Interrupted, LiveError, PacelineError, PathError, StorageError
from paceline.live import real_runs
from paceline.messages import notebook_progress
from paceline.quantities import quantity
from paceline.results.results import Results, RunRecord
from paceline.results.store import Kept, Store, claim, is_whole
from paceline.simulate.points import Point, Progress, check_recorded, left_out, workers_of_machine
from paceline.threads import THREADS

RATE_EVERY_S = 1.0
"""Recording interval of rates, and the time scale of burstiness if a scenario has no `rate_bin`."""

SET_UP_S = 2.0
"""Approximate overhead of a run in real time beyond its duration."""

RUNS_PER_CORE = 4
"""Concurrent runs per core: each has two programs besides its emulator."""

BPS_PER_CORE = 10e6
"""Total link rates of concurrent runs, both ways, per core: emulators and ends wake for each packet, which takes an
emulator about a tenth of a core at 10 Mbit/s."""

CPU_LIMITED = 0.05
"""A call is disturbed if the browser reports the encoder as CPU-limited for more than this share of it."""

TRIES = 3
"""The limit on attempts at a disturbed run."""

_POLL_S = 0.2
_GRACE_S = 8.0

Runner = Callable[[_core.Scenario, int, Sequence[str], float], RunRecord]
"""Makes one run in real time: scenario, seed, recordings and their interval. If it has a method `stop`, that ends all
its current runs."""


class OnePath(Protocol):
    """A run over its own path; `stop` ends it from another thread, and it then raises PacelineError."""

    def __call__(
        self,
        scenario: _core.Scenario,
        seed: int,
        record: Sequence[str],
        record_every_s: float,
        *,
        stop: _core.PathStop,
    ) -> RunRecord: ...


class OverPaths:
    """A `Runner` whose runs each have their own path; several threads can run several at once."""

    def __init__(self, one: OnePath) -> None:
        self._one = one
        self._stop = _core.PathStop()

    def __call__(
        self, scenario: _core.Scenario, seed: int, record: Sequence[str], record_every_s: float
    ) -> RunRecord:
        """Runs once. Raises what `one` does; after `stop`, KeyboardInterrupt."""
        try:
            return self._one(scenario, seed, record, record_every_s, stop=self._stop)
        except PacelineError:
            if self._stop.stopped:
                raise KeyboardInterrupt from None
            raise

    def stop(self) -> None:
        """Ends the current runs; no further run can start."""
        self._stop.stop()


@dataclass(frozen=True)
class Budget:
    """The limits on concurrent runs."""

    runs: int
    bps: float

    @staticmethod
    def of_machine(max_runs: int | None = None) -> Budget:
        """This machine's limits, with at most `most` concurrent runs."""
        cores = workers_of_machine()
        return Budget(min(RUNS_PER_CORE * cores, max_runs or RUNS_PER_CORE * cores), BPS_PER_CORE * cores)

    def takes(self, running: Sequence[Point], one: Point) -> bool:
        """Whether `one` may start beside the running ones; if none is running, any may."""
        rates = sum(point.scenario.rates_bps for point in running) + one.scenario.rates_bps
        return not running or (len(running) < self.runs and rates <= self.bps)

    def seconds(self, points: Sequence[Point]) -> float:
        """Estimated time for one run of each of these points, at best with as many concurrent ones as fit."""
        share = [
            max(1 / self.runs, min(1.0, point.scenario.rates_bps / self.bps)) * expected_s(point)
            for point in points
        ]
        return max([sum(share), *map(expected_s, points)], default=0.0)


ALONE = Budget(1, math.inf)
"""One run at a time."""


def expected_s(point: Point) -> float:
    """The expected duration of a run of the point in real time."""
    return point.scenario.duration_s + SET_UP_S


def disturbance(run: RunRecord) -> tuple[float, float, float] | None:
    """For a run over an emulated path: the median and the 99th percentile of the emulator's lag (s), and the share of
    processor time used by others. None for a run over another path, or if nothing crossed it."""
    path = run.summary.get("path")
    if not path or path["lag"]["p50_s"] is None:
        return None
    return path["lag"]["p50_s"], path["lag"]["p99_s"], path["host"]["steal_share"]


def why_disturbed(run: RunRecord) -> list[str]:
    """Why the machine was too busy for a meaningful run: a median lag above `LATE_S`, more than `STEAL` of the
    processor time used by others, or a browser's encoder limited by the CPU for more than `CPU_LIMITED` of a call.
    Empty if it was not."""
    reasons = []
    found = disturbance(run)
    if found is not None and found[0] > LATE_S:
        reasons.append(f"packets left {quantity('p50_s', found[0])} late in the median")
    if found is not None and found[2] > STEAL:
        reasons.append(f"others took {quantity('steal_share', found[2])} of the processors' time")
    limited = ((flow["flow"], flow.get("cpu_limited_share") or 0.0) for flow in run.summary["flows"])
    reasons += [
        f"the processor limited the encoder of {name} in {quantity('cpu_limited_share', share)} of the call"
        for name, share in limited
        if share > CPU_LIMITED
    ]
    return reasons


def is_disturbed(run: RunRecord) -> bool:
    """Whether there is evidence that the machine was too busy."""
    return bool(why_disturbed(run))


def in_turn(
    points: Sequence[Point],
    seeds: Sequence[int],
    runner: Runner,
    *,
    over: str,
    rest_s: float = 0.0,
    record: Sequence[str] = (),
    record_every_s: float = RATE_EVERY_S,
    store: Store | None = None,
    progress: Progress | None = None,
    budget: Budget = ALONE,
    tries: int = TRIES,
) -> list[RunRecord]:
    """Runs every point once for each seed before the next seed, as many concurrently as the budget allows, and with a
    rest between two if one runs at a time; records in the order of points, then seeds. `progress` counts seconds of
    runs.

    Runs in `store` are reused. A disturbed run is repeated, up to `tries` attempts; the last one counts. A failed run
    causes a warning and has no rows in any table; the next call tries it again. Raises Interrupted on Ctrl-C, and what
    stops all runs, PathError and StorageError.
    """
    check_recorded([point.scenario for point in points], record, record_every_s)
    progress = progress or notebook_progress.progress("s of runs")
    jobs = [
        _Job(point, seed, Store.key(f"{point.identity}\n# over {over}", seed, record, record_every_s))
        for seed in seeds
        for point in points
    ]
    for job in jobs:
        job.run = store.get(job.key, job.seed, record) if store else None
    waiting = [job for job in jobs if job.run is None]

    def work(job: _Job, rest_s: float) -> RunRecord:
        time.sleep(rest_s)
        job.since = time.monotonic()
        try:
            for left in reversed(range(tries)):
                run = runner(job.point.scenario, job.seed, record, record_every_s)
                if not left or not is_disturbed(run):
                    break
        except (StorageError, PathError, InternalError):
            raise
        except PacelineError as error:
            # A flow that fails in the third hour must not cost the remaining runs.
            warnings.warn(f"{error}; the run is left out", stacklevel=2)
            return left_out(job.seed)
        return store.put(job.key, run) if store else run

    def report() -> None:
        if progress:
            progress(sum(job.done_s() for job in jobs), sum(expected_s(job.point) for job in jobs))

    pool = ThreadPoolExecutor(budget.runs, thread_name_prefix=THREADS)
    running: dict[Future[RunRecord], _Job] = {}
    rest = 0.0
    try:
        report()
        while waiting or running:
            while waiting and budget.takes([job.point for job in running.values()], waiting[0].point):
                job = waiting.pop(0)
                running[pool.submit(work, job, rest)] = job
                rest = rest_s if budget.runs == 1 else 0.0
            finished, _ = wait(running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            for future in finished:
                job = running.pop(future)
                job.run = future.result()
            report()
    except BaseException as error:
        getattr(runner, "stop", lambda: None)()
        pool.shutdown(wait=False, cancel_futures=True)
        wait(running, timeout=_GRACE_S)
        if isinstance(error, KeyboardInterrupt):
            made = sum(job.run is not None for job in jobs)
            raise Interrupted(made, len(jobs), str(store.directory) if store else None) from None
        raise
    pool.shutdown()
    by_point = [job for n in range(len(points)) for job in jobs[n :: len(points)]]
    return [
        RunRecord(job.seed, job.run.summary, job.run.series, job.point.labels) for job in by_point if job.run
    ]


def kept_in_turn(
    scenario: _core.Scenario,
    seeds: Sequence[int],
    runner: Runner,
    what: Mapping[str, Any],
    out: str | Path | None,
    *,
    over: str,
    record: Sequence[str],
    record_every_s: float,
    progress: Progress | None = None,
) -> Results:
    """The results of a scenario's runs, one after the other, written to `out`; `what` is their manifest without the
    runs' notes and the version.

    Several runs are stored in `out` as they end, and the same call resumes after Ctrl-C; if all have ended, it runs
    them again. For a single run, the old results stay until the new ones exist. Raises what `in_turn` does, LiveError
    if no run ended well, and UnwrittenError, which has the results, if they cannot be written.
    """
    several = out if len(seeds) > 1 else None
    alone = claim(None if several else out, what["kind"])
    with Kept(what, several, over=True, fresh=is_whole(several)) as kept, alone:
        records = in_turn(
            [Point(scenario)],
            seeds,
            runner,
            over=over,
            record=record,
            record_every_s=record_every_s,
            store=kept.store,
            progress=progress,
            tries=1,
        )
        # Failed runs have tables without rows, and caused a warning.
        if not (made := [record for record in records if record.summary["flows"]]):
            raise LiveError(f"{scenario.name}: no run ended well, so there are no results")
        kept.manifest["notes"] = [record.summary["notes"] for record in made]
        results = Results(made, kept.manifest)
        real_runs.kept(results, out)
        return results


@dataclass
class _Job:
    """A run to make."""

    point: Point
    seed: int
    key: str
    run: RunRecord | None = None
    since: float | None = None

    def done_s(self) -> float:
        """Its elapsed seconds."""
        whole = expected_s(self.point)
        if self.run is not None or self.since is None:
            return whole if self.run is not None else 0.0
        return min(time.monotonic() - self.since, whole)
