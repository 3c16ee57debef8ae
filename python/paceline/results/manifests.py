"""What a directory of results says of itself: its manifest, and each finished run. Both are files that anybody may have
written, and are held against one model before anything is made of them.

What is not named here is for readers, and may be anything.
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

MOST_SEEDS = 1_000_000

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Whole | Annotated[float, msgspec.Meta(ge=-(2.0**63), lt=2.0**63)] | None
"""What becomes a whole number; counts that were measured on real paths may have a point."""
Seed = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seeds = Annotated[list[Seed], msgspec.Meta(max_length=MOST_SEEDS)]
Label = bool | Whole | float | str
Cell = bool | Whole | float | str | None
Row = dict[str, Cell | list[Any] | dict[str, Cell]]


class Manifest(TypedDict, total=False):
    """Of every kind of directory."""

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
    """What the manifest of a sweep must have beside, so that its parts can be merged."""

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
    """A directory's manifest. Raises StorageError, with the key and what it may be, for one that is none."""
    found = files.read_json(path)
    _check(path, found, Manifest)
    _check_axes(path, found.get("vary", {}), found.get("together", []))
    if "name" in found:
        found["name"] = line(found["name"])
    return found


def check_sweep(path: Path, found: Mapping[str, Any]) -> None:
    """Raises StorageError for a sweep's manifest that does not say which runs it has."""
    _check(path, found, Sweep)


def check_varied(path: Path, varied: Collection[str], columns: Sequence[str]) -> None:
    """Raises StorageError for a manifest that does not name a path which the table of runs has as varied: before its
    seed. The points of the sweep would be taken for runs of one."""
    before = columns[: columns.index("seed")]
    unknown = [name for name in before if name not in varied]
    if unknown:
        raise StorageError(
            f"{path} is damaged: `vary` has no {json.dumps(unknown[0])}, which tells the points of its tables apart"
        )


def run(path: Path) -> dict[str, Any]:
    """A finished run as it is kept. Raises StorageError, with the key and what it may be, for one that is none."""
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
    """Raises StorageError for paths that cannot go together, and for more points than a sweep has."""
    named = [name for names in together for name in names]
    for names in together:
        unknown = [name for name in names if name not in vary]
        if unknown or not names or any(named.count(name) > 1 for name in names):
            said = (
                f"`together` names {json.dumps(unknown[0])}, which `vary` has not"
                if unknown
                else ("`together` must name paths of `vary`, each once")
            )
            raise StorageError(f"{path} is damaged: {said}")
        if len({len(vary[name]) for name in names}) > 1:
            raise StorageError(
                f"{path} is damaged: paths that go together must have as many values each in `vary`"
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
    """The type of a run's summary: its values are what the columns of tables hold."""
    rows = {table: _row(table, columns) for table, columns in json.loads(_core.columns_json()).items()}
    runs = rows.pop("runs")
    lists = {table: list[row] for table, row in rows.items()}  # type: ignore[valid-type]
    fields = {**runs.__annotations__, **lists, "name": str, "engine": runs, "notices": list[Notice]}
    return TypedDict("Summary", fields, total=False)  # type: ignore[operator]


class Rows(TypedDict, total=False):
    """Of a summary what becomes tables, whatever the names of columns: those of other versions have others."""

    flows: list[Row]
    streams: list[Row]
    queues: list[Row]
    link_flows: list[Row]
    interfaces: list[Row]
    groups: list[Row]
    engine: Row
