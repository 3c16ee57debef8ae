"""`paceline.qlog`: what QUIC programs logged of their connections, read as a run on a real path."""

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
"""How far apart the rows of a recording are, at least."""

SUFFIXES = (".qlog", ".sqlog", ".qlog.gz", ".sqlog.gz")
"""What the names of logs end with."""

_JSON = (".json", ".json.gz")
"""What the names of logs may end with, and those of much else."""
_MOST_NAMED = 3
"""Logs that are named where all together have one name."""


@checked(files=PLACE.or_several())
def qlog(
    files: str | Path | Sequence[str | Path],
    *,
    every_s: float = EVERY_S,
    out: str | Path | None = None,
) -> Results:
    """Reads logs of QUIC connections (qlog, of any version from draft-00 on), compressed with gzip or not.

    A folder stands for the logs in it. Each connection is a flow named after its file, with as many of its folders as
    tell it from others, in the direction of most of its payload; recordings are `qlog`, `cwnd` and `rate`
    (docs/qlog.md), with a row for each interval of `every_s` seconds in which something was logged, or each instant if
    that is 0. What is whole of a file that ends in the middle is read. The manifest's `notes` say
    what a reader should know, as what is derived; `qlog` has for each connection its file, end and connection ID, and
    the events that were skipped, by name. With `out` all is also written there.
    Raises PacelineError for a file that is no qlog, with the place of what is wrong, and StorageError.
    """
    named = [Path(files)] if isinstance(files, str | Path) else [Path(path) for path in files]
    if not named:
        raise PacelineError("say what to read: the name of a qlog, or a list of such")
    paths = [path for one in named for path in (logs_in(one) if one.is_dir() else [one])]
    twice = sorted({str(path) for path in paths if paths.count(path) > 1})
    if twice:
        raise PacelineError(f"{twice[0]} is named twice")
    if not 0 <= every_s <= 3.2e9:
        raise PacelineError(f"every_s = {every_s} is not in 0 to 3.2e9")
    for path in paths:
        try:
            regular.check_regular(path)
        except regular.IrregularError as error:
            raise regular.refused(path, error, "read") from error
        except OSError:
            pass  # the core says what is wrong
    flows = flows_of(paths)
    name = _together([paths[0].name] if len(paths) == 1 else flows)
    with claim(out, "watch"):
        try:
            output, told = _core.qlog(list(zip(paths, flows, strict=True)), every_s, name)
        except ValueError as error:
            raise PacelineError(str(error)) from None
        except OSError as error:
            raise StorageError(str(error)) from None
        about = json.loads(told)
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
    """Whether a file is a log: by its name, or by what it begins with."""
    path = Path(name)
    if path.name.lower().endswith(SUFFIXES):
        return True
    try:
        return path.is_file() and is_qlog(begin(path))
    except (OSError, StorageError):
        return False


def logs_in(folder: Path) -> list[Path]:
    """The logs in a folder, by name. Raises PacelineError if there is none."""
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
    """The name of the flows of a file: its own without the ending."""
    name = path.name
    for suffix in sorted((*SUFFIXES, *_JSON), key=len, reverse=True):
        if name.lower().endswith(suffix):
            return name[: -len(suffix)] or "quic"
    return path.stem or "quic"


def flows_of(paths: Sequence[Path]) -> list[str]:
    """The names of the flows of several files: their own, behind as many folders as it takes to tell them apart."""
    names = [flow_of(path) for path in paths]
    for depth in range(1, max((len(path.parts) for path in paths), default=0)):
        count = Counter(names)
        names = [
            "/".join((*path.parts[:-1][-depth:], flow_of(path))) if count[name] > 1 else name
            for name, path in zip(names, paths, strict=True)
        ]
    count = Counter(names)
    # in one folder their endings tell them apart
    return [str(path) if count[name] > 1 else name for name, path in zip(names, paths, strict=True)]


def _together(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _with_states(record: RunRecord, states: Sequence[str]) -> RunRecord:
    """The record with names in place of the numbers of the controllers' states."""
    if "qlog" not in record.series:
        return record
    names = {float(number): name for number, name in enumerate(states)}
    table = record.series["qlog"]
    named = pl.col("state").replace_strict(names, default=None, return_dtype=pl.String)
    return replace(record, series={**record.series, "qlog": table.with_columns(named)})
