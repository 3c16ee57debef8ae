"""The measures from the core's table: units, types, and their scatter between runs.

The table is in `crates/sim/src/measures`, and docs/measures.md prints it. Columns of recordings are not in it: their
names end with the unit.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

from paceline import _core


@dataclass(frozen=True)
class Measure:
    """A measure, in whatever table it is."""

    unit: str
    """As "s", "bit/s", "packets", "frames", "B"; "share" for values between 0 and 1, "ratio" for values that may exceed
    1."""
    dtype: str
    """One of "whole", "number", "truth" and "word"."""
    scatter: str
    """One of "steady", "rare" and "restless": it decides the interval of `paceline.interval`."""

    @property
    def is_share(self) -> bool:
        """Whether values lie between 0 and 1; the mean of 0/1 values over runs also does."""
        return self.unit == "share" or self.dtype == "truth"


def _entries() -> dict[str, dict[str, Measure]]:
    """The fields of the rows, by table."""
    return {
        table: {
            name: Measure(entry["unit"], dtype, entry["scatter"])
            for entry in entries
            for name, dtype in entry["columns"].items()
        }
        for table, entries in json.loads(_core.measures_json()).items()
    }


@functools.cache
def measures() -> dict[str, Measure]:
    """All measures by column name: for a map, and a class of packets, the name begins with the field's name."""
    tables = _entries()
    classes = tables.pop("classes")
    fields = {name: measure for table in tables.values() for name, measure in table.items()}
    found = dict(fields)
    for names in json.loads(_core.columns_json()).values():
        for name in names:
            of = next((field for field in fields if name.startswith(f"{field}_")), None)
            if name not in fields and of is not None:
                found[name] = (
                    classes[name.removeprefix(f"{of}_")] if fields[of].dtype == "class" else fields[of]
                )
    return found


def measure(name: str) -> Measure | None:
    """The measure of a column; None for a label or a column of a recording."""
    return measures().get(name)
