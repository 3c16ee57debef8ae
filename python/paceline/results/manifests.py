"""The manifest of a results directory, and each finished run. Anybody may have written these files, so they are
validated against one model first.

Entries not named here are for readers, and may have any value.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import polars as pl

from paceline import _core, files
from paceline.axes import MOST_POINTS
from paceline.errors import StorageError
from paceline.messages.foreign_text import line
from paceline.results.columns import dtype
from paceline.results.recordings import ALL_SERIES

MAX_SEEDS = 1_000_000

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Whole | Annotated[float, msgspec.Meta(ge=-(2.0**63), lt=2.0**63)] | None
"""Read as an integer; counts measured on real paths may have a decimal point."""
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seeds = Annotated[list[Seed], msgspec.Meta(max_length=MAX_SEEDS)]
Label = bool | Whole | float | str
Cell = bool | Whole | float | str | None
Row = dict[str, Cell | list[Any] | dict[str, Cell]]


class Manifest(TypedDict, total=False):
    """The entries of every kind of directory."""

    kind: str
    name: str
    scenario: str | list[str]
    identity: str | list[str]
    version: str
    build: str
    vary: dict[str, Annotated[list[Label], msgspec.Meta(min_length=1)]]
    together: list[list[str]]
    seeds: Seeds | dict[str, Seeds]
    record: list[str]
    record_every_s: float
    shard: Annotated[list[Whole], msgspec.Meta(min_length=2, max_length=2)]
    interrupted: bool
    exit_code: Whole | None


class Sweep(TypedDict):
    """The further entries of a sweep, needed to merge its parts."""

    vary: dict[str, list[Label]]
    seeds: Seeds
    record: list[Literal[ALL_SERIES]]  # type: ignore[valid-type]


class Notice(TypedDict):
    """One of a run's notices."""

    kind: str
    text: str
    cases: NotRequired[Whole | None]
    of: NotRequired[Whole | None]


class Run(TypedDict):
    """A finished run."""

    seed: Seed
    series: list[Literal[ALL_SERIES]]  # type: ignore[valid-type]
    labels: NotRequired[dict[str, Label]]
    summary: dict[str, Any]


def manifest(path: Path) -> dict[str, Any]:
    """A directory's manifest. Raises StorageError, with the key and its allowed values, if it is invalid."""
    found = files.read_json(path)
    _check(path, found, Manifest)
    _check_axes(path, found.get("vary", {}), found.get("together", []))
    if "name" in found:
        found["name"] = line(found["name"])
    return found


def check_sweep(path: Path, found: Mapping[str, Any]) -> None:
    """Raises StorageError if a sweep's manifest does not say which runs it has."""
    _check(path, found, Sweep)


def check_varied(path: Path, varied: Collection[str], columns: Sequence[str]) -> None:
    """Raises StorageError if the runs table has a varied path (a column before the seed) that the manifest lacks: the
    sweep's points would be taken for runs of one."""
    before = columns[: columns.index("seed")]
    unknown = [name for name in before if name not in varied]
    if unknown:
        raise StorageError(
            f"{path} is damaged: `vary` lacks {json.dumps(unknown[0])}, which its tables have as a varied path"
        )


def run(path: Path) -> dict[str, Any]:
    """A finished run as stored. Raises StorageError, with the key and its allowed values, if it is invalid."""
    found = files.read_json(path)
    _check(path, found, Run)
    for kind in (Rows, _summary()):
        _check(path, found["summary"], kind, "summary.")
    return found


def _check(path: Path, value: object, kind: Any, before: str = "") -> None:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        said, _, where = str(error).rpartition(" - at `$")
        place = (
            f"`{before}{where[:-1].removeprefix('.')}`: " if said else f"`{before[:-1]}`: " if before else ""
        )
        raise StorageError(f"{path} is damaged: {place}{said or error}") from error


def _check_axes(path: Path, vary: Mapping[str, list[Any]], together: list[list[str]]) -> None:
    """Raises StorageError for paths that cannot vary together, and for too many points."""
    named = [name for names in together for name in names]
    for names in together:
        unknown = [name for name in names if name not in vary]
        if unknown or not names or any(named.count(name) > 1 for name in names):
            said = (
                f"`together` names {json.dumps(unknown[0])}, which is not in `vary`"
                if unknown
                else ("`together` must name paths of `vary`, each once")
            )
            raise StorageError(f"{path} is damaged: {said}")
        if len({len(vary[name]) for name in names}) > 1:
            raise StorageError(
                f"{path} is damaged: paths that vary together must have equally many values in `vary`"
            )
    steps = [len(vary[names[0]]) for names in together] + [
        len(vary[name]) for name in vary if name not in named
    ]
    if math.prod(steps) > MOST_POINTS:
        raise StorageError(f"{path} is damaged: `vary` makes more than {MOST_POINTS:,} points")


_TYPES: dict[type[pl.DataType], Any] = {
    pl.Int64: Count,
    pl.Float64: float | None,
    pl.Boolean: bool | None,
    pl.String: str | None,
}


def _row(table: str, columns: list[str]) -> Any:
    """The type of a row: {"drops": {"overflow": 3}} is in the column drops_overflow."""
    fields: dict[str, Any] = {column: _TYPES[dtype(table, column)] for column in columns}
    within: dict[str, dict[str, Any]] = {}
    for column, kind in fields.items():
        parts = column.split("_")
        for end in range(1, len(parts)):
            within.setdefault("_".join(parts[:end]), {})["_".join(parts[end:])] = kind
    nested = {name: TypedDict(name, inner, total=False) for name, inner in within.items()}  # type: ignore[operator]
    return TypedDict(table, {**nested, "drops": dict[str, Count], **fields}, total=False)  # type: ignore[operator]


@functools.cache
def _summary() -> Any:
    """The type of a run's summary, whose values fill the tables' columns."""
    rows = {table: _row(table, columns) for table, columns in json.loads(_core.columns_json()).items()}
    runs = rows.pop("runs")
    lists = {table: list[row] for table, row in rows.items()}  # type: ignore[valid-type]
    fields = {**runs.__annotations__, **lists, "name": str, "engine": runs, "notices": list[Notice]}
    return TypedDict("Summary", fields, total=False)  # type: ignore[operator]


class Rows(TypedDict, total=False):
    """The parts of a summary that become tables, with any column names: other versions have other columns."""

    flows: list[Row]
    streams: list[Row]
    queues: list[Row]
    link_flows: list[Row]
    interfaces: list[Row]
    groups: list[Row]
    engine: Row
