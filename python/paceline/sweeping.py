"""Many runs at once: points times seeds on all cores, each finished run kept at once and whole, resumed where stopped.

`run_points` is the engine under `paceline run --runs`, `sweep`, `compare` and `reproduce`. Threads do: the core runs
without the interpreter lock. A run's result depends on its scenario and seed alone, and results are put together in
the order of the request, so that the number of workers changes nothing.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from paceline import _core, files, notebook
from paceline.arguments import checked
from paceline.axes import Vary, check_set, combinations, recorded
from paceline.errors import Cancelled, Interrupted, PacelineError
from paceline.results import SERIES, Recording, Results, RunRecord
from paceline.scenario import ScenarioLike, identity, load, written
from paceline.store import Kept, Store
from paceline.threads import THREADS
from paceline.warned import warn

RECORD_EVERY_S = 0.02
MOST_RUNS = 1_000_000
"""Default interval of recordings, in seconds."""

_GRACE_S = 10.0
"""A cancelled run that has not ended after this is left to itself: it looks at its watch many times a second."""

Job = TypeVar("Job")

Progress = Callable[[float, float], None]
"""Told some times a second, in the calling thread: runs done (with the running ones' shares), runs in all; in real time
seconds of runs."""


@dataclass(frozen=True)
class Point:
    """A scenario to run with each seed, and the values that tell it from the other points."""

    scenario: _core.Scenario
    labels: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] | None = None
    """Its own seeds, in place of those that all points share."""

    @cached_property
    def identity(self) -> str:
        """That of its scenario, made once: it hashes the traces."""
        return identity(self.scenario)


@dataclass(frozen=True)
class Shard:
    """Part `part` of `parts` of the runs, each of them in one. Raises PacelineError for a part that is none."""

    part: int
    parts: int

    def __post_init__(self) -> None:
        if not 1 <= self.part <= self.parts:
            raise PacelineError(f"there is no shard {self.part} of {self.parts}: the first of four is 1/4")

    def of(self, jobs: Sequence[Job]) -> list[Job]:
        """Every `parts`-th one, so that each part has runs of all points."""
        return list(jobs[self.part - 1 :: self.parts])


ALL = Shard(1, 1)


def workers_of_machine() -> int:
    """The number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def grid(scenario: ScenarioLike, vary: Vary) -> list[Point]:
    """The points of a sweep: see `axes.combinations`. Raises PacelineError, and ScenarioError: nothing starts unless
    every point is valid, and none is another one under other labels."""
    base = load(scenario)
    points = [Point(load(base, changes), labels) for changes, labels in combinations(vary)]
    known: dict[str, Point] = {}
    for point in points:
        first = known.setdefault(point.identity, point)
        if first is not point:
            raise PacelineError(
                f"{_words(first.labels, point.labels)} and {_words(point.labels, first.labels)} are one and the same "
                "scenario: leave one out"
            )
    return points


def _words(labels: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The labels that another point has not."""
    return ", ".join(f"{path}={value}" for path, value in labels.items() if other[path] != value)


def check_recordings(
    record: Sequence[str], every_s: float = RECORD_EVERY_S, known: Sequence[str] = SERIES
) -> list[str]:
    """The recordings asked for, each once. Raises PacelineError for an unknown one, or an interval out of range."""
    if not 1e-6 <= every_s <= 1e6:
        raise PacelineError(
            f"the interval of recordings must lie between 1e-6 and 1e6 seconds, not at {every_s}"
        )
    unknown = [kind for kind in record if kind not in known]
    if unknown:
        raise PacelineError(f'cannot record "{unknown[0]}"; there are {", ".join(known)}')
    return [kind for kind in known if kind in record]


def check_recorded(scenarios: Sequence[_core.Scenario], record: Sequence[str], every_s: float) -> None:
    """Warns of what none of these scenarios can record. Raises PacelineError if one ends before the first sample."""
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
    "airtime": "a cell",
    "windows": "a cell with `windows`",
}
"""What a scenario must have that there is something to record of a kind; the others are always there."""


def seeds_from(first: int, runs: int) -> list[int]:
    """`runs` seeds: first, first + 1, ... Raises PacelineError."""
    if not 1 <= runs <= MOST_RUNS:
        raise PacelineError(f"the number of runs must be from 1 to {MOST_RUNS}, not {runs}")
    if first < 0 or first + runs > 2**63:
        last = "" if runs == 1 else f" to {first + runs - 1}"
        raise PacelineError(f"seeds lie between 0 and {2**63 - 1}, not at {first}{last}")
    return list(range(first, first + runs))


@dataclass(frozen=True)
class Pcap:
    """A capture of a run: its file, and the names of the hosts to capture at (none: all)."""

    path: Path
    hosts: Sequence[str] = ()


def simulate(
    scenario: _core.Scenario,
    seed: int,
    record: Sequence[str],
    record_every_s: float,
    watch: _core.Watch,
    pcap: Pcap | None,
) -> _core.RunOutput:
    """One run. Raises what `_core.run` raises; of a capture StorageError and PacelineError."""
    if pcap is None:
        return _core.run(scenario, seed, list(record), record_every_s, watch)
    try:
        where = (str(pcap.path), list(pcap.hosts))
        return _core.run(scenario, seed, list(record), record_every_s, watch, where)
    except OSError as error:
        raise files.refused(pcap.path, error) from error
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
    pcap: Pcap | None = None,
    shard: Shard = ALL,
) -> list[RunRecord]:
    """Runs every point with every seed, or its own; records in the order of points, then seeds. Of those `shard`
    takes its part.

    Runs that `store` has are taken from it, others are kept there as they finish. Raises Interrupted on Ctrl-C (running
    ones are cancelled, and waited for some seconds), and whatever a run raises (the others are cancelled likewise).
    """
    record = check_recordings(record, record_every_s)
    check_recorded([point.scenario for point in points], record, record_every_s)
    workers = workers_of_machine() if workers is None else workers
    if workers < 1:
        raise PacelineError(f"the number of workers must be at least 1, not {workers}")
    progress = progress or notebook.progress("runs")
    jobs = shard.of([(point, seed) for point in points for seed in point.seeds or seeds])
    keys: list[str] = []
    done: dict[int, RunRecord] = {}
    if store:
        keys = [Store.key(point.identity, seed, record, record_every_s) for point, seed in jobs]
        for i, (point, seed) in enumerate(jobs):
            if kept := store.get(keys[i], seed, record):
                summary = kept.summary | {"name": point.scenario.name}
                done[i] = RunRecord(seed, summary, kept.series, point.labels)
    waiting = iter([i for i in range(len(jobs)) if i not in done])
    watches: dict[int, _core.Watch] = {}

    def work(i: int) -> RunRecord:
        point, seed = jobs[i]
        output = simulate(point.scenario, seed, record, record_every_s, watches[i], pcap)
        result = RunRecord.of(seed, output, point.labels)
        return store.put(keys[i], result) if store else result

    def report() -> None:
        if progress:
            progress(min(len(jobs), len(done) + sum(w.progress for w in watches.values())), len(jobs))

    pool = ThreadPoolExecutor(workers, thread_name_prefix=THREADS)
    running: dict[Future[RunRecord], int] = {}
    try:
        report()
        while True:
            # No more than the workers take: what is submitted early would have to be called back.
            for i in itertools.islice(waiting, workers - len(running)):
                watches[i] = _core.Watch()
                running[pool.submit(work, i)] = i
            if not running:
                break
            finished, _ = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in finished:
                i = running.pop(future)
                del watches[i]
                done[i] = future.result()
            report()
    except BaseException as error:
        for watch in list(watches.values()):
            watch.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        wait([future for future in running if not future.cancelled()], timeout=_GRACE_S)
        done |= {
            i: f.result() for f, i in running.items() if f.done() and not f.cancelled() and not f.exception()
        }
        if isinstance(error, KeyboardInterrupt | Cancelled):
            raise Interrupted(len(done), len(jobs), str(store.directory) if store else None) from None
        raise
    pool.shutdown()
    return [done[i] for i in range(len(jobs))]


@checked()
def sweep(
    scenario: ScenarioLike,
    vary: Vary,
    *,
    runs: int = 10,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record: Sequence[Recording] = (),
    record_every_s: float = RECORD_EVERY_S,
    workers: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    shard: tuple[int, int] = (1, 1),
    progress: Progress | None = None,
) -> Results:
    """Runs a scenario at every combination of the values in `vary`, each with the same `runs` seeds.

    `vary` maps TOML paths to values, and tuples of paths that go together to tuples of values (see `paceline.axes`);
    every table of the results has a column per path. With `out`, finished runs are kept there and a sweep that was
    stopped goes on where it was; at the end the directory holds the tables too. `shard` (k, n) makes part k of n of the
    runs, as one of n machines does: `out` then has no tables, and `merge` makes one sweep of the parts.
    Raises ScenarioError, PacelineError, StorageError, Interrupted.
    """
    part = Shard(*shard)
    if part.parts > 1 and out is None:
        raise PacelineError(
            "a shard's runs are for others to merge: give out, the directory where they are kept"
        )
    check_set(set or {}, vary)
    base = load(scenario, set)
    points = grid(base, vary)
    seeds = seeds_from(base.seed if seed is None else seed, runs)
    what = {
        "kind": "sweep",
        "name": base.name,
        **written(base),
        **recorded(vary),
        "seeds": seeds,
        "record": check_recordings(record, record_every_s),
        "record_every_s": record_every_s,
        **({"shard": list(shard)} if part.parts > 1 else {}),
    }
    with Kept(what, out, fresh=fresh) as kept:
        records = run_points(
            points,
            seeds,
            record=record,
            record_every_s=record_every_s,
            workers=workers,
            store=kept.store,
            progress=progress,
            shard=part,
        )
        return kept.results(records) if part.parts == 1 else Results(records, kept.manifest)
