"""The tables of results and what their columns hold."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import polars as pl

from paceline import _core
from paceline.errors import PacelineError
from paceline.messages.argument_names import meant
from paceline.results.measures import measure

IDENTITY: dict[str, tuple[str, ...]] = {
    "flows": ("flow", "instance", "group", "cc", "app", "profile", "from", "to"),
    "streams": ("flow", "instance"),
    "queues": ("link", "direction"),
    "link_flows": ("link", "direction", "flow", "instance"),
    "interfaces": ("cell", "interface"),
    "groups": ("group",),
    "runs": (),
}
"""The tables, and the columns that identify a row; the others are measures."""

TABLES = tuple(IDENTITY)
_COUNTED = frozenset(["seed", "instance"])
"""Identifying columns that are numbers."""


_DTYPES: dict[str, type[pl.DataType]] = {
    "whole": pl.Int64,
    "number": pl.Float64,
    "truth": pl.Boolean,
    "word": pl.String,
}


def dtype(table: str, column: str) -> type[pl.DataType]:
    """The type of a column in one of `TABLES`."""
    if column in _COUNTED:
        return pl.Int64
    if column in IDENTITY[table]:
        return pl.String
    found = measure(column)
    return _DTYPES[found.dtype] if found else pl.Float64


@functools.cache
def measures_by_table() -> Mapping[str, Sequence[str]]:
    """The measures that each table can have."""
    columns: dict[str, list[str]] = json.loads(_core.columns_json())
    return MappingProxyType(
        {table: tuple(c for c in names if c not in IDENTITY[table]) for table, names in columns.items()}
    )


def check_metrics(metrics: Sequence[str]) -> None:
    """Raises PacelineError for a metric that no scenario has."""
    known = measures_by_table()
    for name in metrics:
        matching(name, known)


def matching(name: str, there: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Each table that has a metric, given as TABLE.MEASURE or MEASURE, and the measure. Raises PacelineError if none
    does."""
    pairs = [(table, measure) for table, measures in there.items() for measure in measures]
    found = [(table, measure) for table, measure in pairs if name in (measure, f"{table}.{measure}")]
    if not found:
        names = [f"{table}.{measure}" for table, measure in pairs] if "." in name else [m for _, m in pairs]
        if hint := meant(name, names, 3, longer=True):
            raise PacelineError(f'no metric "{name}"{hint}')
        known = "; ".join(f"{table}: {', '.join(measures)}" for table, measures in there.items())
        raise PacelineError(f'no metric "{name}" in these results. There are: {known}')
    return found
