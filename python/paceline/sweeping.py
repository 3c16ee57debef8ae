"""Many runs at once: points times seeds on all cores, each finished run kept at once and whole, resumed where stopped.

`run_points` is the engine under `paceline run --runs`, `sweep`, `compare` and `reproduce`. Threads do: the core runs
without the interpreter lock. A run's result depends on its scenario and seed alone, and results are put together in
the order of the request, so that the number of workers changes nothing.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline.axes import Vary, check_set, combinations, recorded
from paceline.errors import Interrupted, PacelineError, PacelineWarning, StorageError
from paceline.results import SERIES, TABLES, Results, RunRecord
from paceline.scenario import ScenarioLike, identity, load
from paceline.threads import THREADS

RECORD_EVERY_S = 0.02
MOST_RUNS = 1_000_000
"""Default interval of recordings, in seconds."""

_GRACE_S = 10.0
"""A cancelled run that has not ended after this is left to itself: it looks at its watch many times a second."""

Progress = Callable[[float, float], None]
"""Told some times a second, in the calling thread: runs done (with the running ones' shares), runs in all; in real time
seconds of runs."""


@dataclass(frozen=True)
class Point:
    """A scenario to run with each seed, and the values that tell it from the other points."""

    scenario: _core.Scenario
    labels: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def identity(self) -> str:
        """That of its scenario, made once: it hashes the traces."""
        return identity(self.scenario)


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
                f"{_words(first.labels)} and {_words(point.labels)} are one and the same scenario: leave one out; "
                "of two paths one of which lies in the other, the outer one comes first"
            )
    return points


def _words(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{path}={value}" for path, value in labels.items())


class Store:
    """A directory that keeps finished runs, each named by what made it: scenario, seed, recording, version."""

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.runs = self.directory / "runs"
        files.make_directory(self.runs)

    @staticmethod
    def key(scenario: str, seed: int, record: Sequence[str], every_s: float) -> str:
        """The name of a run: a hash of everything that its result depends on; `scenario` is its identity."""
        what = json.dumps([files.build(), scenario, seed, sorted(record), every_s if record else None])
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    def get(self, key: str, seed: int, record: Sequence[str]) -> RunRecord | None:
        """The finished run of that name, or None. A damaged file counts as not there."""
        path = self.runs / f"{key}.json"
        if not path.exists():
            return None
        try:
            kept = files.read_json(path)
            series = {
                kind: files.read_parquet(self.runs / f"{key}-{kind}.parquet") for kind in kept["series"]
            }
            if kept["seed"] != seed or not set(series) <= set(record):
                return None
            return RunRecord(seed, kept["summary"], series)
        except (StorageError, KeyError):
            return None

    def put(self, key: str, run: RunRecord) -> None:
        """Keeps a finished run. The summary comes last: a run is there when it is. Raises StorageError."""
        for kind, table in run.series.items():
            files.write_parquet(self.runs / f"{key}-{kind}.parquet", table)
        kept = {"seed": run.seed, "series": list(run.series), "summary": run.summary}
        files.write_whole(self.runs / f"{key}.json", json.dumps(kept))

    def clear(self) -> None:
        """Forgets all runs."""
        shutil.rmtree(self.runs, ignore_errors=True)
        files.make_directory(self.runs)


def check_recordings(
    record: Sequence[str], every_s: float = RECORD_EVERY_S, known: Sequence[str] = SERIES
) -> list[str]:
    """The recordings asked for, each once. Raises PacelineError for an unknown one, or an interval out of range."""
    if not 1e-6 <= every_s <= 1e6:
        raise PacelineError(
            f"the interval of recordings must lie between 1e-6 and 1e6 seconds, not at {every_s}"
        )
    if isinstance(record, str):
        raise PacelineError(f'what to record is a list of names: record=["{record}"]')
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
            # stacklevel 1, as in `load`: once, whoever asks
            warnings.warn(f"no {kind} is recorded: it needs {NEEDS[kind]}", PacelineWarning, stacklevel=1)


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
) -> list[RunRecord]:
    """Runs every point with every seed; records in the order of points, then seeds.

    Runs that `store` has are taken from it, others are kept there as they finish. Raises Interrupted on Ctrl-C (running
    ones are cancelled, and waited for some seconds), and whatever a run raises (the others are cancelled likewise).
    """
    record = check_recordings(record, record_every_s)
    check_recorded([point.scenario for point in points], record, record_every_s)
    workers = workers_of_machine() if workers is None else workers
    if workers < 1:
        raise PacelineError(f"the number of workers must be at least 1, not {workers}")
    jobs = [(point, seed) for point in points for seed in seeds]
    keys: list[str] = []
    done: dict[int, RunRecord] = {}
    if store:
        for point in points:
            keys += [Store.key(point.identity, seed, record, record_every_s) for seed in seeds]
        for i, (point, seed) in enumerate(jobs):
            if kept := store.get(keys[i], seed, record):
                done[i] = RunRecord(seed, kept.summary, kept.series, point.labels)
    waiting = iter([i for i in range(len(jobs)) if i not in done])
    watches: dict[int, _core.Watch] = {}

    def work(i: int) -> RunRecord:
        point, seed = jobs[i]
        output = simulate(point.scenario, seed, record, record_every_s, watches[i], pcap)
        result = RunRecord.of(seed, output, point.labels)
        if store:
            store.put(keys[i], result)
        return result

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
        if isinstance(error, KeyboardInterrupt | _core.Cancelled):
            raise Interrupted(len(done), len(jobs), str(store.directory) if store else None) from None
        raise
    pool.shutdown()
    return [done[i] for i in range(len(jobs))]


def open_sweep(directory: Path, manifest: Mapping[str, Any], *, fresh: bool = False) -> Store:
    """The store of a sweep or a campaign. Raises PacelineError if the directory holds another (unless `fresh`), or
    other things.

    The same scenario may be resumed with more runs or other values of the same paths: finished runs are used again.
    """
    path = directory / "manifest.json"
    if path.exists():
        old = files.read_json(path)
        if old.get("kind") != manifest["kind"]:
            kind = old.get("kind", "?")
            raise PacelineError(
                f"{directory} is the directory of a {kind}, not of a {manifest['kind']}: use another --out"
            )
        if not fresh:
            _check_same(directory, old, manifest)
    elif directory.exists() and any(directory.iterdir()):
        raise PacelineError(f"{directory} is not empty and holds no {manifest['kind']}: use another --out")
    store = Store(directory)
    if fresh:
        store.clear()
    # Tables are of what is finished: those of the one before this would be mistaken for this one's.
    for table in [*directory.glob("*.parquet"), *directory.glob("*.csv")]:
        table.unlink(missing_ok=True)
    files.write_json(path, manifest)
    return store


def _check_same(directory: Path, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    what = {
        "scenario": "the scenario has changed",
        "build": "Paceline is another version, or was built anew from changed sources,",
        "record": "other recordings are asked for",
        "record_every_s": "recordings are at another interval",
        "over": "it runs over something else",
    }
    for key, reason in what.items():
        if old.get(key) != new.get(key):
            raise PacelineError(
                f"{directory} holds a {new['kind']} that this one cannot resume: {reason} since then. "
                "Use another --out, or --fresh to start over (the finished runs there are then deleted)."
            )
    if list(old.get("vary", {})) != list(new["vary"]):
        raise PacelineError(
            f"{directory} holds a {new['kind']} over {', '.join(old.get('vary', {}))}, "
            f"not {', '.join(new['vary'])}. Use another --out, or --fresh to start over."
        )


def sweep(
    scenario: ScenarioLike,
    vary: Vary,
    *,
    runs: int = 10,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record: Sequence[str] = (),
    record_every_s: float = RECORD_EVERY_S,
    workers: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Runs a scenario at every combination of the values in `vary`, each with the same `runs` seeds.

    `vary` maps TOML paths to values, and tuples of paths that go together to tuples of values (see `paceline.axes`);
    every table of the results has a column per path. With `out`, finished runs are kept there and a sweep that was
    stopped goes on where it was; at the end the directory holds the tables too.
    Raises ScenarioError, PacelineError, StorageError, Interrupted.
    """
    check_set(set or {}, vary)
    base = load(scenario, set)
    points = grid(base, vary)
    seeds = seeds_from(base.seed if seed is None else seed, runs)
    what = {
        "kind": "sweep",
        "name": base.name,
        "scenario": identity(base),
        **recorded(vary),
        "seeds": seeds,
    }
    kept = Kept(what, record, record_every_s, out, fresh=fresh)
    records = run_points(
        points,
        seeds,
        record=record,
        record_every_s=record_every_s,
        workers=workers,
        store=kept.store,
        progress=progress,
    )
    return kept.results(records)


class Kept:
    """What a sweep or a campaign is remembered by, and with `out` the directory where its finished runs are."""

    def __init__(
        self,
        what: Mapping[str, Any],
        record: Sequence[str],
        record_every_s: float,
        out: str | Path | None,
        *,
        fresh: bool,
    ) -> None:
        self.manifest = {
            **what,
            "version": _core.version(),
            "build": files.build(),
            "record": check_recordings(record, record_every_s),
            "record_every_s": record_every_s,
            **files.provenance(),
        }
        self.store = None if out is None else open_sweep(Path(out), self.manifest, fresh=fresh)

    def results(self, records: Sequence[RunRecord]) -> Results:
        """The results of all runs, whose tables are written too. Raises StorageError."""
        results = Results(records, self.manifest)
        if self.store is not None:
            write_tables(results, self.store.directory)
        return results


def write_tables(results: Results, directory: Path) -> None:
    """Writes every table, and its statistics over the seeds, as Parquet and CSV. Raises StorageError."""
    for name in TABLES:
        for stem, table in ((name, results.table(name)), (f"{name}-statistics", results.statistics(name))):
            files.write_parquet(directory / f"{stem}.parquet", table)
            files.write_csv(directory / f"{stem}.csv", table)
    files.write_parquet(directory / "notices.parquet", results.notices)
    files.write_csv(directory / "notices.csv", results.notices)
    for kind in results.recorded():
        files.write_parquet(directory / f"series-{kind}.parquet", results.series(kind))
