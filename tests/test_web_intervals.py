"""The playground has the command line's intervals: both are held to the cases of web/tests/unit/intervals.json, which
`PACELINE_BLESS=1` writes; web/tests/unit/intervals.test.ts reads them."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from paceline import _core
from paceline.interval import averages, interval, median_rank
from paceline.results.results import endless_in
from pools.make import POOLS, WHERE, endless

CASES = Path(__file__).resolve().parent.parent / "web" / "tests" / "unit" / "intervals.json"
RUNS = (1, 2, 5, 6, 9, 10, 20)
MADE: dict[str, tuple[str, bool, list[float]]] = {
    "truths": ("began", False, [0, 1, 1, 1, 0, 1]),
    "one truth": ("began", False, [1, 1, 1, 1]),
    "alike": ("timeouts", True, [2] * 10),
    "one of five differs": ("timeouts", False, [0, 0, 0, 3, 0]),
    "two of ten differ": ("packets_lost", True, [4, 4, 4, 4, 7, 4, 4, 4, 1, 4]),
    "more than half alike": ("goodput_bps", True, [5, 5, 5, 5, 5, 5, 5, 1, 2, 3]),
    "percentiles nearly alike": ("rtt_p50_s", True, [0.1, 0.1001, 0.1, 0.0999, 0.1002, 0.3]),
    "a share near its bound": ("jain", True, [0.99, 1, 0.999, 0.5, 0.98, 0.97, 0.96, 0.9, 0.95, 0.94]),
    "near zero": ("mean_packets", True, [0, 0.1, 0.2, 9, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]),
    "below zero": ("goodput_bps", True, [-5.0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "no measure": ("cwnd_p50_packets", True, [*range(12)]),
    "unknown": ("of_no_table", True, [*range(12)]),
}


def found() -> dict[str, Any]:
    """What Python says of the cases."""
    pools = pl.read_parquet(WHERE)
    samples = dict(MADE)
    for name in list(POOLS)[::4]:
        pool = pools[name].drop_nulls().to_numpy().astype(np.float64)
        for runs in RUNS:
            drawn = np.random.default_rng(runs).choice(pool, runs)
            samples[f"{name}, {runs}"] = (POOLS[name][3], endless(name), drawn.tolist())
    cases = []
    for name, (measure, bulk, values) in samples.items():
        given = {
            key: value for key, value in asdict(interval(measure, values, bulk)).items() if value is not None
        }
        del given["mean"]  # of one run it is the value
        given.pop("sd", None)
        cases.append({"name": name, "measure": measure, "endless": bulk, "values": values, "found": given})
    tables = json.loads(_core.measures_json())
    for entry in (entry for entries in tables.values() for entry in entries):
        del entry["meaning"]
    names = sorted(
        {name for table, all_ in tables.items() if table != "classes" for e in all_ for name in e["columns"]}
    )
    flows = [[{"app": app}, {"app": "ftp"}] for app in ("ftp", "web", None)]
    flows += [[{"app": "ftp", "transfers_started": count}] for count in (0, 3, None)]
    return {
        "tables": tables,
        "means": [name for name in names if averages(name)],
        "ranks": [median_rank(runs) for runs in range(1, 1001)],
        "endless": [{"flows": rows, "found": endless_in(pl.DataFrame(rows))} for rows in flows],
        "cases": cases,
    }


def test_the_cases_of_the_playground_are_pythons() -> None:
    text = json.dumps(found(), separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n"
    if os.environ.get("PACELINE_BLESS") == "1":
        CASES.write_text(text)
    kinds = {case["found"]["kind"] for case in json.loads(text)["cases"]}
    assert kinds == {"t", "runs", "median", "none"}
    assert CASES.read_text() == text
