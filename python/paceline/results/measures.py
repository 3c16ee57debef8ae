"""The measures, as the core's one table has them: units, types, and how they scatter from run to run.

`crates/sim/src/measures` has the table, docs/measures.md prints it. What a column of a recording holds is not here: its
name ends with its unit.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass

from paceline import _core


@dataclass(frozen=True)
class Measure:
    """What is known of a measure, whatever table it stands in."""

    unit: str
    """As "s", "bit/s", "packets", "frames", "B"; "share" of what lies between 0 and 1, "ratio" of what may be more."""
    dtype: str
    """One of "whole", "number", "truth" and "word"."""
    scatter: str
    """One of "steady", "rare" and "restless": what `paceline.interval` makes of runs depends on it."""

    @property
    def is_share(self) -> bool:
        """Whether values lie between 0 and 1; of truths those of several runs do."""
        return self.unit == "share" or self.dtype == "truth"


def _entries() -> dict[str, dict[str, Measure]]:
    """By table, the fields of its rows."""
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
    """All by the names of their columns: those of a map, and of a class of packets, begin with the field's name."""
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
    """That of a column; None if it is none, as a label, or a column of a recording."""
    return measures().get(name)
