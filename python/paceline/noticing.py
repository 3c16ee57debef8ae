"""Notices: what a reader of results should know, and no number says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    "These results are of a version of Paceline that counted late packets by the whole medium, whatever was due, and "
    "gave streams that never began to play no late packets: late_share and stall_s mean something "
    "else in them than now. Run them again.",
)


def noticed(said: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """The table of notices: equal texts are one, their cases are summed up."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for notice in said:
        key = (notice["kind"], notice["text"])
        row = found.setdefault(key, {"kind": key[0], "text": key[1], "runs": 0, "cases": None, "of": None})
        row["runs"] += 1
        for count in ("cases", "of"):
            if notice.get(count) is not None:
                row[count] = (row[count] or 0) + notice[count]
    return pl.DataFrame(list(found.values()), schema=SCHEMA)
