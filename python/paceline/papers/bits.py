"""Hashes of simulated points that every run of them must reproduce: a paper's `bits.csv`.

A run is hashed as the simulator returned it, its summary and its recordings, each float by its bits. The hash contains
no mean computed by a library, since another processor may sum in another order.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from paceline import files
from paceline.files.paper_folders import PaperError
from paceline.results.results import RunRecord
from paceline.simulate.points import Point, run_points, seeds_from
from paceline.studies.points import Place
from paceline.studies.reproduction import Plan
from paceline.studies.study import World

BITS = "bits.csv"
"""The file of a paper's hashes."""

_HEAD = ("study", "series", "level", "runs", "first", "all")
_DIGITS = 16


@dataclass(frozen=True)
class Bits:
    """The hashes of a point's runs."""

    runs: int
    first: str
    """The hash of its first run."""
    all: str
    """The hash of all its runs, in the order of their seeds."""


def of_run(record: RunRecord) -> str:
    """The hash of a run: its summary as JSON with sorted keys, and each recorded column."""
    digest = hashlib.sha256(json.dumps(record.summary, sort_keys=True, separators=(",", ":")).encode())
    for kind in sorted(record.series):
        table = record.series[kind]
        for name in sorted(table.columns):
            digest.update(f"\n{kind}.{name} {len(table)}\n".encode())
            _take(digest, table[name])
    return digest.hexdigest()[:_DIGITS]


def _take(digest: Any, column: pl.Series) -> None:
    if column.dtype == pl.String:
        digest.update(json.dumps(column.to_list()).encode())
        return
    digest.update(column.is_null().to_numpy().astype(np.uint8).tobytes())
    if not column.dtype.is_float():
        digest.update(column.fill_null(0).cast(pl.Int64).to_numpy().astype("<i8").tobytes())
        return
    values = column.fill_null(0.0).to_numpy()
    # Processors produce NaNs of different sign.
    digest.update(np.where(np.isnan(values), np.nan, values).astype("<f8").tobytes())


def of_runs(hashes: Sequence[str]) -> str:
    """The hash of several runs: of their hashes in order; for one run its own."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:_DIGITS]


class Witness:
    """Makes runs as `run_points` does, and keeps their hashes."""

    def __init__(self, make: Callable[..., list[RunRecord]] = run_points) -> None:
        self._make = make
        # By the first of a point's places, then by seed; second runs are kept separately.
        self._once: dict[Place, dict[int, str]] = {}
        self._again: dict[Place, dict[int, str]] = {}

    def __call__(self, what: Sequence[Point], seeds: Sequence[int], **how: Any) -> list[RunRecord]:
        """Makes the runs. Raises what `run_points` does."""
        records = self._make(what, seeds, **how)
        jobs = [(point, seed) for point in what for seed in point.seeds or seeds]
        for (point, seed), record in zip(jobs, records, strict=True):
            # A point with its own seed is a second run: see `second_runs`.
            kept = self._once if point.seeds is None else self._again
            kept.setdefault(Place(**point.labels), {})[seed] = of_run(record)
        return records

    def hashes(self, planned: Plan) -> dict[Place, list[str]]:
        """The hashes of each simulated place's runs, in the order of the seeds."""
        found: dict[Place, list[str]] = {}
        for point, places, world in zip(planned.points, planned.places, planned.worlds, strict=True):
            if world is not World.SIMULATED:
                continue
            once = self._once[Place(**point.labels)]
            for place in places:
                again = self._again.get(place, {})
                found[place] = [
                    of_runs([one, *filter(None, [again.get(seed)])]) for seed, one in once.items()
                ]
        return found


def bits(hashes: Sequence[str]) -> Bits:
    """The stored hashes of a point whose runs have these hashes."""
    return Bits(len(hashes), hashes[0], of_runs(hashes))


def read(folder: Path) -> dict[Place, Bits] | None:
    """The hashes in a paper's folder; None if it has none. Raises PaperError for an invalid file, StorageError."""
    rows = table(folder / BITS, _HEAD)
    if rows is None:
        return None
    found = {}
    for number, row in enumerate(rows, 2):
        if not row["runs"].isdigit() or int(row["runs"]) < 1:
            raise PaperError(
                f"{folder / BITS}: line {number}: runs must be a number from 1 on, not {row['runs']!r}"
            )
        place = Place(row["study"], row["series"], row["level"])
        found[place] = Bits(int(row["runs"]), row["first"], row["all"])
    return found


def write(folder: Path, found: Mapping[Place, Bits]) -> Path:
    """Writes a paper's hashes; returns the file. Raises StorageError."""
    rows = [(p.study, p.series, p.level, b.runs, b.first, b.all) for p, b in found.items()]
    return write_table(folder / BITS, _HEAD, rows)


def table(path: Path, head: Sequence[str]) -> list[dict[str, str]] | None:
    """The rows of a CSV file with these columns; None if it is missing. Raises PaperError, StorageError."""
    if not path.exists():
        return None
    rows = csv.DictReader(io.StringIO(files.read_text(path)), strict=True)
    if tuple(rows.fieldnames or ()) != tuple(head):
        raise PaperError(f"{path}: its first line must be {','.join(head)}: rewrite it with --verify --write")
    found = list(rows)
    for number, row in enumerate(found, 2):
        if None in row or None in row.values():
            raise PaperError(f"{path}: line {number}: needs {len(head)} values, as named in the first line")
    return found


def write_table(path: Path, head: Sequence[str], rows: Sequence[Sequence[object]]) -> Path:
    """Writes a CSV file. Raises StorageError."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerows([head, *rows])
    files.write_whole(path, text.getvalue())
    return path


def seeds(runs: int) -> str:
    """The seeds of `runs` runs in words: "seed 1", "seeds 1 to 10"."""
    own = seeds_from(1, runs)
    return "seed 1" if runs == 1 else f"seeds {own[0]} to {own[-1]}"
