"""Notices: what a reader of results should know and no number shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

SCHEMA: dict[str, Any] = {
    "kind": pl.String,
    "text": pl.String,
    "runs": pl.Int64,
    "cases": pl.Int64,
    "of": pl.Int64,
}
OLDER = (
    "older-measures",
    "These results come from a version of Paceline that related late packets to the whole medium instead of the "
    "packets due so far, and counted no late packets of streams that never began to play: late_share and "
    "stall_s have another meaning now. Run them again.",
)


_COUNTED = {"streams-cut": "streams", "transfers-cut": "flows"}
"""The table that has a row for each item that this kind of notice counts, of the flow that it names first."""


def noticed(summaries: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of these runs' notices: equal texts are merged, and their cases are summed over all runs."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    runs_with: dict[tuple[str, str], set[int]] = {}
    for k, summary in enumerate(summaries):
        for notice in summary.get("notices", []):
            key = (notice["kind"], notice["text"])
            row = found.setdefault(
                key, {"kind": key[0], "text": key[1], "runs": 0, "cases": None, "of": None}
            )
            row["runs"] += 1
            runs_with.setdefault(key, set()).add(k)
            for count in ("cases", "of"):
                if notice.get(count) is not None:
                    row[count] = (row[count] or 0) + notice[count]
    for key, row in found.items():
        if row["of"] is not None:
            row["of"] += sum(
                _there(*key, summaries[k]) for k in range(len(summaries)) if k not in runs_with[key]
            )
    return pl.DataFrame(list(found.values()), schema=SCHEMA)


def _there(kind: str, text: str, summary: Mapping[str, Any]) -> int:
    """How many items of the kind that a notice counts are in a run without that notice."""
    name = re.search(r"`([^`]+)`", text)
    rows = summary.get(_COUNTED.get(kind, ""), [])
    return sum(row["flow"] == name[1] for row in rows) if name else 0
