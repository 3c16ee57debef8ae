"""Directories of results: exclusive access, and storage of complete finished runs.

A directory of several runs has manifest.json (what makes them), runs/ (finished runs, each named by a hash of
everything that its result depends on), and, when all have finished, a table of each kind.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from paceline import _core, files
from paceline.errors import PacelineError, StorageError
from paceline.files import table_files
from paceline.messages.argument_names import option
from paceline.results import manifests
from paceline.results.columns import TABLES
from paceline.results.recordings import ALL_SERIES
from paceline.results.results import OnDisk, Results, RunRecord

_LOCK = ".lock"


@contextmanager
def alone_in(directory: Path, kind: str | None = None) -> Iterator[None]:
    """Creates the directory and locks it until the block ends. Raises PacelineError if it holds something other than
    results of this kind, or if another command writes there; StorageError."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 (only where there is a directory)

    if kind is not None:
        _refuse_file(directory)
    files.make_directory(directory)
    if kind is not None:
        check_kind(directory, kind)
    lock = FileLock(directory / _LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise PacelineError(
            f"{directory} is in use: another paceline command writes there. Wait until it ends, or give another "
            f"{option('out')}"
        ) from None
    except NotImplementedError:
        # A file system without locks cannot tell.
        pass
    except OSError as error:
        raise files.refused(directory / _LOCK, error) from error
    try:
        _clear_parts(directory)
        yield
    finally:
        lock.release()


def _clear_parts(directory: Path) -> None:
    """Removes partial files of commands that were killed."""
    for folder in (directory, directory / "runs"):
        for path in folder.iterdir() if folder.is_dir() else ():
            if files.is_part(path):
                files.remove(path)


_FIGURES = (".svg", ".png", ".pdf", ".eps", ".gif", ".jpeg", ".jpg", ".ps", ".tif", ".tiff", ".webp")
_TABLES = (".csv", ".json", ".parquet")


def _refuse_file(directory: Path) -> None:
    """Raises PacelineError for a directory that does not exist and has the name of a figure or table."""
    ending = directory.suffix.lower()
    if directory.is_dir() or ending not in (*_FIGURES, *_TABLES):
        return
    instead = (
        "`paceline plot DIR --out FILE` then draws what lies there, as .svg, .png or .pdf"
        if ending in _FIGURES
        else "in it are all tables (Parquet); `--json > FILE` makes one JSON document"
    )
    raise PacelineError(f"{directory}: results need a directory, and this is a file name: {instead}")


@contextmanager
def claim(directory: str | Path | None, kind: str) -> Iterator[None]:
    """Creates a directory of results, or takes over an earlier one of the same kind ("run", "watch", ...), and locks it
    until the block ends; does nothing for None. Raises PacelineError if it holds something else, or if another command
    writes there."""
    if directory is None:
        yield
        return
    with alone_in(Path(directory), kind):
        yield


def check_kind(directory: Path, kind: str) -> dict[str, Any] | None:
    """The manifest of a directory of results of this kind; None for an empty one. Raises PacelineError if it holds
    something else."""
    path = directory / "manifest.json"
    if path.exists():
        manifest = manifests.manifest(path)
        there = manifest.get("kind", "?")
        if there != kind:
            raise PacelineError(
                f"{directory} is the directory of a {there}, not of a {kind}: use another {option('out')}"
            )
        return manifest
    if any(entry.name != _LOCK and not files.is_part(entry) for entry in directory.iterdir()):
        raise PacelineError(f"{directory} is not empty and holds no {kind}: use another {option('out')}")
    return None


def kept_in(directory: Path) -> set[str]:
    """The names of the finished runs in a store's directory, which need not exist."""
    return {path.stem for path in (directory / "runs").glob("*.json")}


def is_whole(directory: str | Path | None) -> bool:
    """Whether all runs of a directory have finished, so that it has tables; False for None."""
    return directory is not None and (Path(directory) / _WHOLE).exists()


class Store:
    """A directory of finished runs, each named by what made it: scenario, seed, recording, version."""

    def __init__(self, directory: str | Path, *, to_write: bool = True) -> None:
        self.directory = Path(directory)
        self.runs = self.directory / "runs"
        if to_write:
            files.make_directory(self.runs)

    @staticmethod
    def key(scenario: str, seed: int, record: Sequence[str], every_s: float) -> str:
        """The name of a run: a hash of everything that its result depends on; `scenario` is its identity."""
        what = json.dumps([_core.build(), scenario, seed, sorted(record), every_s if record else None])
        return hashlib.sha256(what.encode()).hexdigest()[:24]

    def get(self, key: str, seed: int, record: Sequence[str]) -> RunRecord | None:
        """The finished run of that name, or None. A damaged file counts as missing."""
        path = self.runs / f"{key}.json"
        if not path.exists():
            return None
        try:
            kept = manifests.run(path)
            series = self.series(key, kept["series"])
            for file in series.paths.values():
                table_files.check_parquet(file)
        except StorageError:
            return None
        if kept["seed"] != seed or not set(series) <= set(record):
            return None
        return RunRecord(seed, kept["summary"], series, kept.get("labels", {}))

    def put(self, key: str, run: RunRecord) -> RunRecord:
        """Stores a finished run, whose recordings are then only on disk. The summary is written last: it marks the run
        as finished. Raises StorageError."""
        series = self.series(key, list(run.series))
        for kind, path in series.paths.items():
            table_files.write_parquet(path, run.series[kind])
        self.relabel(key, run)
        return RunRecord(run.seed, run.summary, series, run.labels)

    def relabel(self, key: str, run: RunRecord) -> None:
        """Stores a run again under its current labels: a further value can change the labels' type, to other numbers or
        to words. Raises StorageError."""
        kept = {"seed": run.seed, "labels": run.labels, "series": list(run.series), "summary": run.summary}
        files.write_whole(self.runs / f"{key}.json", json.dumps(kept))

    def series(self, key: str, kinds: Sequence[str]) -> OnDisk:
        """The recordings of the run of that name, of these kinds."""
        return OnDisk({kind: self.runs / f"{key}-{kind}.parquet" for kind in kinds})

    def clear(self) -> None:
        """Removes all runs."""
        # Remove the files that mark runs as finished first.
        for path in sorted(self.runs.iterdir(), key=lambda path: path.suffix != ".json"):
            files.remove(path)


class Kept:
    """The manifest of several runs, and with `out` the directory of the finished ones, which is locked until the `with`
    block ends.

    The same scenario may be resumed with more runs or other values of the same paths: finished runs are used again.
    Entering raises PacelineError if the directory holds other runs (unless `fresh`) or other files; StorageError.
    """

    def __init__(
        self, what: Mapping[str, Any], out: str | Path | None, *, fresh: bool = False, over: bool = False
    ) -> None:
        """`fresh`: finished runs are deleted; `over`: they are deleted silently if they are of another scenario."""
        self.manifest = {**what, "version": _core.version(), "build": _core.build(), **files.provenance()}
        self.store: Store | None = None
        self._directory = None if out is None else Path(out)
        self._fresh, self._over = fresh, over
        self._held = ExitStack()

    def __enter__(self) -> Kept:
        if self._directory is not None:
            with ExitStack() as held:
                held.enter_context(alone_in(self._directory, self.manifest["kind"]))
                self.store = self._open(self._directory)
                self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def _open(self, directory: Path) -> Store:
        old = check_kind(directory, self.manifest["kind"])
        changed = old and unlike(old, self.manifest)
        if changed and not self._fresh and not self._over:
            raise PacelineError(
                f"{directory} holds a {self.manifest['kind']} that this one cannot resume: {changed}. "
                f"Use another {option('out')}, or {option('fresh', True)} to start over (the finished runs there are "
                "then deleted)."
            )
        begin(directory, self.manifest)
        store = Store(directory)
        if self._fresh or changed:
            store.clear()
        return store

    def results(self, records: Sequence[RunRecord]) -> Results:
        """The results of all runs; also writes their tables, with the final manifest. Raises StorageError."""
        results = Results(records, self.manifest)
        if self.store is not None:
            files.write_json(self.store.directory / "manifest.json", self.manifest)
            write_tables(results, self.store.directory)
        return results


def unlike(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Why runs of one manifest cannot be used for the other; None if they can."""
    what = {
        "identity": "the scenario has changed",
        "build": "Paceline is another version, or was rebuilt from changed sources",
        "record": "other recordings are asked for",
        "record_every_s": "recordings are at another interval",
        "over": "it runs over something else",
    }
    for key, reason in what.items():
        if old.get(key) != new.get(key):
            return reason
    before, now = list(old.get("vary", {})), list(new.get("vary", {}))
    return None if before == now else f"it was over {', '.join(before)}, not {', '.join(now)}"


_WHOLE = "runs.parquet"
"""The table that is written when all runs have finished."""
_OURS = frozenset(
    ["differences", "notices", *TABLES]
    + [f"{name}-statistics" for name in TABLES]
    + [f"series-{kind}" for kind in ALL_SERIES]
)
"""The tables that a directory may have."""


def begin(directory: Path, manifest: Mapping[str, Any]) -> None:
    """Writes a directory's manifest before anything else, so that an interrupted one (by a full disk, for example) is
    recognised. Tables of an earlier content, which would be mistaken for the new one's, are removed. Raises
    StorageError."""
    files.remove(directory / _WHOLE)
    for path in sorted(directory.iterdir()):
        if path.suffix in (".parquet", ".csv") and path.stem in _OURS:
            files.remove(path)
    files.write_json(directory / "manifest.json", manifest)


def write_tables(results: Results, directory: Path, *, statistics: bool = True) -> None:
    """Writes the recordings, the notices and every table as Parquet; with `statistics` also as CSV, with statistics
    over the seeds. The table of runs is written last. Raises StorageError."""
    results.write_series(directory)
    tables = [("notices", results.notices)]
    for name in sorted(TABLES, key=lambda name: name == "runs"):
        tables += [(f"{name}-statistics", results.statistics(name))] if statistics else []
        tables.append((name, results.table(name)))
    for stem, table in tables:
        if statistics:
            table_files.write_csv(directory / f"{stem}.csv", table)
        table_files.write_parquet(directory / f"{stem}.parquet", table)
