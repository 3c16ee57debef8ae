"""How often the intervals hold that are printed of every measure of every row, and those of `compare`.

    PYTHONPATH=tests .venv/bin/python -m pools.every_row OUT [RUNS]

The eleven scenarios of `make.py` and all shipped examples are run RUNS (400) times. For each measure of each row 400
samples of 3, 5, 6, 10 and 20 runs are drawn, and each kind of interval that a tenth of them have is counted. The
eleven are run again with another queue, and the differences, seed by seed, are drawn likewise. OUT gets one line a
kind, as CSV; the table printed has the counts. It takes half an hour of two cores.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import paceline
from paceline.interval import Kind, interval
from paceline.results.columns import IDENTITY
from paceline.results.results import is_measure
from paceline.statistics import paired_difference
from pools.holding import holds
from pools.make import SCENARIOS

RUNS = 400
SAMPLES = 400
SIZES = (3, 5, 6, 10, 20)
MIN_COVERAGE = 0.90
ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.toml") if "python:" not in path.read_text())
OTHER_QUEUE = {"link.bottleneck.queue": {"kind": "codel", "limit": "200 packets"}}
"""What the second side of each comparison has."""

Values = NDArray[np.float64]
Pool = tuple[str, str, str, bool, Values]
"""Scenario, row, measure, whether endless, a value for each run; not a number where it has none."""
Line = tuple[str, str, str, bool, int, str, float, float]
"""Scenario, row, measure, whether endless, runs, kind, how many samples have it, and of these how many hold."""


def pools(
    name: str, scenario: str | Path, runs: int, changes: dict[str, Any] | None = None
) -> Iterator[Pool]:
    """Those of a scenario: each measure of each row that is not the same in all runs."""
    results = paceline.run(
        paceline.parse(scenario) if isinstance(scenario, str) else scenario, seed=1, runs=runs, set=changes
    )
    for table in IDENTITY:
        rows = results.table(table)
        if rows.is_empty() or not IDENTITY[table]:
            continue
        who = list(IDENTITY[table])
        measures = [c for c in rows.columns if c not in {*who, "seed"} and is_measure(rows.schema[c])]
        for part in rows.partition_by(who, maintain_order=True):
            endless = results.endless(part)
            row = " ".join([table, *(str(part[c][0]) for c in who)])
            by_seed = part.unique("seed", maintain_order=True).sort("seed")
            for measure in measures:
                values = by_seed[measure].cast(pl.Float64).to_numpy().astype(np.float64)
                if (
                    len(values) == runs
                    and np.isfinite(values).any()
                    and np.nanmin(values) < np.nanmax(values)
                ):
                    yield name, row, measure, endless, values


def coverage(pool: Pool) -> list[Line]:
    """What an interval of each number of runs prints, and how often it holds."""
    name, row, measure, endless, values = pool
    values = values[np.isfinite(values)]
    middle = float(values.mean()), float(np.median(values))
    rows = []
    for n in SIZES:
        printed: Counter[str] = Counter()
        right: Counter[str] = Counter()
        for sample in np.random.default_rng(20).choice(values, (SAMPLES, n)):
            found = interval(measure, sample, endless)
            if found.kind is not Kind.NONE:
                printed[found.kind.value] += 1
                right[found.kind.value] += holds(found, measure, values, middle)
        rows += [
            (name, row, measure, endless, n, kind, times / SAMPLES, right[kind] / times)
            for kind, times in printed.items()
        ]
    return rows


def differences(pair: tuple[Pool, Pool]) -> list[Line]:
    """The same of `compare`'s interval of the difference of two sides, whose runs have the same seeds."""
    (name, row, measure, endless, first), (*_, second) = pair
    both = np.isfinite(first) & np.isfinite(second)
    first, second = first[both], second[both]
    true, rows = float((second - first).mean()), []
    for n in SIZES:
        printed = right = 0
        for at in np.random.default_rng(20).choice(len(first), (SAMPLES, n)):
            d = paired_difference(first[at].tolist(), second[at].tolist()).estimate
            if d.low is not None and d.high is not None and d.low < d.high:
                printed += 1
                right += d.low <= true <= d.high
        if printed:
            rows.append((name, row, measure, endless, n, "difference", printed / SAMPLES, right / printed))
    return rows


def main(out: Path, runs: int) -> None:
    texts = dict(SCENARIOS)
    found: list[Pool] = []
    pairs: list[tuple[Pool, Pool]] = []
    for name, text in texts.items():
        one = list(pools(name, text, runs))
        other = {
            (row, measure): pool
            for pool in pools(name, text, runs, OTHER_QUEUE)
            for row, measure in [pool[1:3]]
        }
        pairs += [(pool, other[pool[1:3]]) for pool in one if pool[1:3] in other]
        found += one
        print(f"{name}: {len(one)} measures", flush=True)
    for path in EXAMPLES:
        one = list(pools(path.stem, path, runs))
        found += one
        print(f"{path.stem}: {len(one)} measures", flush=True)
    columns = ["scenario", "row", "measure", "endless", "runs", "kind", "printed", "holds"]
    with ProcessPoolExecutor() as workers:
        rows = [row for part in workers.map(coverage, found, chunksize=20) for row in part]
        rows += [row for part in workers.map(differences, pairs, chunksize=20) for row in part]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    table.write_csv(out)
    often = table.filter(pl.col("printed") >= 0.1)
    below = pl.col("holds") < MIN_COVERAGE
    counts = often.group_by("kind", "runs").agg(
        pl.len().alias("kinds"), below.sum().alias("below 90 %"), pl.col("holds").min().alias("least")
    )
    with pl.Config(tbl_rows=-1, tbl_width_chars=160, fmt_str_lengths=60):
        print(counts.sort("kind", "runs"))
        print(often.filter(below).sort("holds"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else RUNS)
