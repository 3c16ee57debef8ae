"""The `--json` documents of simulated runs: one document, numbers in full precision."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from paceline import files

if TYPE_CHECKING:
    from paceline.results.results import Results

_LISTS = ("flows", "streams", "queues", "link_flows", "interfaces", "groups")


def say(document: Mapping[str, Any], to: TextIO | None = None) -> None:
    """Prints a document, by default on stdout."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    print(text, file=to or sys.stdout)


def of_runs(results: Results) -> dict[str, Any]:
    """The document for runs of one scenario.

    One run: its summary and the versions. Several: the same shape, each measure replaced by
    {"n", "mean", "sd", "kind", "low", "high", ...} (`Interval`, without nulls), and the summaries in "runs".
    """
    if len(results.records) == 1:
        return {**results.summaries[0], "versions": files.versions()}
    (point,) = _points(results)
    del point["at"]
    return {**_head(results), **point, **_notices(results), "runs": results.summaries}


def of_points(results: Results) -> dict[str, Any]:
    """The document for a sweep or a campaign: "points" has for each combination of the varied values, `at`, the content
    of `of_runs` for several runs. Instances of a flow are averaged within a run first, as in the tables."""
    points = _points(results, without=("instance", "from", "to"))
    return {**_head(results), "points": points, **_notices(results)}


def _head(results: Results) -> dict[str, Any]:
    from paceline.statistics import CONFIDENCE

    return {
        "name": results.manifest["name"],
        "seeds": results.seeds,
        "confidence": CONFIDENCE,
        "versions": files.versions(),
    }


def _notices(results: Results) -> dict[str, Any]:
    return {} if results.notices.is_empty() else {"notices": results.notices.to_dicts()}


def _points(results: Results, without: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """A document for each point: the varied values, and the rows of each table with their measures."""
    from paceline.results.columns import IDENTITY
    from paceline.results.results import is_measure

    axes = results.axes
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for table in (*_LISTS, "runs"):
        known = results.table(table).schema
        identity = [c for c in IDENTITY[table] if c in known and c not in without]
        words = {*results.varied, *IDENTITY[table], "seed"}
        measures = [c for c, kind in known.items() if c not in words and is_measure(kind)]
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in results.statistics(table, [*axes, *identity], measures).iter_rows(named=True):
            at = {name: row[name] for name in axes}
            empty = {"at": at, **{name: [] for name in _LISTS}, "run": {}}
            point = found.setdefault(tuple(at.values()), empty)
            who = {name: row[name] for name in identity}
            key = (*at.values(), *who.values())
            if key not in rows:
                rows[key] = point["run"] if table == "runs" else who
                if table != "runs":
                    point[table].append(who)
            rows[key][row["measure"]] = _entry(row)
    return list(found.values())


def _entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """A measure over several runs: some columns always exist, others only with a kind of interval."""
    from paceline.interval import COLUMNS

    always = ("n", "mean", "sd", "kind", "low", "high")
    return {c: row[c] for c in always} | {
        c: row[c] for c in COLUMNS if c not in always and row[c] is not None
    }
