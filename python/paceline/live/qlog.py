"""`paceline.qlog`: the connection logs of QUIC programs, read as a run on a real path."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from paceline import _core
from paceline import files as regular
from paceline.arguments import PLACE, checked
from paceline.errors import PacelineError, StorageError
from paceline.files.file_kinds import begin, inside, is_qlog, is_run
from paceline.live.real_runs import live_record, live_results
from paceline.results.results import Results, RunRecord
from paceline.results.store import claim

EVERY_S = 0.01
"""The minimum interval between the rows of a recording."""

SUFFIXES = (".qlog", ".sqlog", ".qlog.gz", ".sqlog.gz")
"""The file-name endings of logs."""

_JSON = (".json", ".json.gz")
"""Endings that logs share with many other files."""
_MAX_NAMED = 3
"""The number of logs that an error names."""


@checked(files=PLACE.or_several())
def qlog(
    files: str | Path | Sequence[str | Path],
    *,
    every_s: float = EVERY_S,
    out: str | Path | None = None,
) -> Results:
    """Reads logs of QUIC connections (qlog, any version from draft-00 on), compressed with gzip or not.

    A folder stands for the logs in it. Each connection is a flow named after its file, prefixed with as many folders as
    needed to be unique, in the direction of most of its payload. Recordings are `qlog`, `cwnd` and `rate`
    (docs/qlog.md), with a row for each interval of `every_s` seconds in which something was logged, or for each instant
    if that is 0. A truncated file is read up to its end. The manifest's `notes` say what a reader should know, such as
    what is derived; `qlog` has each connection's file, end and connection ID, and the skipped events, by name. With
    `out` everything is also written there.

    Raises PacelineError for an invalid qlog, with the place of the mistake, and StorageError.
    """
    named = [Path(files)] if isinstance(files, str | Path) else [Path(path) for path in files]
    if not named:
        raise PacelineError("files is empty: give the name of a qlog, or a list of them")
    paths = [path for one in named for path in (logs_in(one) if one.is_dir() else [one])]
    twice = sorted({str(path) for path in paths if paths.count(path) > 1})
    if twice:
        raise PacelineError(f"{twice[0]} is named twice")
    if not 0 <= every_s <= 3.2e9:
        raise PacelineError(f"every_s = {every_s}: it must be 0 to 3.2e9")
    for path in paths:
        try:
            regular.check_regular(path)
        except regular.IrregularError as error:
            raise regular.refused(path, error, "read") from error
        except OSError:
            pass  # the core reports what is wrong
    flows = flows_of(paths)
    name = _together([paths[0].name] if len(paths) == 1 else flows)
    with claim(out, "watch"):
        try:
            output, about_text = _core.qlog(list(zip(paths, flows, strict=True)), every_s, name)
        except ValueError as error:
            raise PacelineError(str(error)) from None
        except OSError as error:
            raise StorageError(str(error)) from None
        about = json.loads(about_text)
        record = _with_states(live_record(output), about.pop("states"))
        more: dict[str, Any] = {
            "watch": {"whose": "files", "files": [str(path) for path in paths]},
            "every_s": every_s,
            "qlog": about,
            "interrupted": False,
            "exit_code": None,
            "notes": record.summary["notes"],
        }
        results = live_results([record], "watch", name, more)
        if out is not None:
            results.write(out)
        return results


def is_log(name: str | Path) -> bool:
    """Whether a file is a log, by its name or its first bytes."""
    path = Path(name)
    if path.name.lower().endswith(SUFFIXES):
        return True
    try:
        return path.is_file() and is_qlog(begin(path))
    except (OSError, StorageError):
        return False


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder, by name. Raises PacelineError if there are none."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and is_log(path))
    if not found:
        deeper = inside(folder, is_log)
        if is_run(folder):
            instead = f"it is a run directory: `paceline plot {folder}` draws it"
        elif deeper:
            instead = f"name one of {deeper}, or the folder that it is in"
        else:
            instead = f"no name ends with {' or '.join(SUFFIXES[:2])}, and no file begins as a qlog"
        raise PacelineError(f"the folder {folder} has no log in it: {instead}")
    return found


def flow_of(path: Path) -> str:
    """The name of a file's flows: its own without the ending."""
    name = path.name
    for suffix in sorted((*SUFFIXES, *_JSON), key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or "quic"
    return path.stem or "quic"


def flows_of(paths: Sequence[Path]) -> list[str]:
    """The names of several files' flows: their own, prefixed with as many folders as needed to be unique."""
    names = [flow_of(path) for path in paths]
    for depth in range(1, max((len(path.parts) for path in paths), default=0)):
        count = Counter(names)
        names = [
            "/".join((*path.parts[:-1][-depth:], flow_of(path))) if count[name] > 1 else name
            for name, path in zip(names, paths, strict=True)
        ]
    count = Counter(names)
    # in one folder their endings make them unique
    return [str(path) if count[name] > 1 else name for name, path in zip(names, paths, strict=True)]


def _together(names: Sequence[str]) -> str:
    rest = len(names) - _MAX_NAMED
    return ", ".join(names[:_MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _with_states(record: RunRecord, states: Sequence[str]) -> RunRecord:
    """The record with names instead of numbers for the controllers' states."""
    if "qlog" not in record.series:
        return record
    names = {float(number): name for number, name in enumerate(states)}
    table = record.series["qlog"]
    named = pl.col("state").replace_strict(names, default=None, return_dtype=pl.String)
    return replace(record, series={**record.series, "qlog": table.with_columns(named)})
