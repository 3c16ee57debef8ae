"""Runs on real paths as results: with the same tables and recordings as a simulated run.

A kernel TCP flow's recordings are in `cwnd` and `rate` under the names of simulated flows, and in `kernel` with all
values that the kernel reported. `Results.write` stores them, and `paceline plot` and `paceline compare` read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from paceline import _core, files
from paceline.errors import StorageError, UnwrittenError
from paceline.results.results import Results, RunRecord

STATES = (
    "established",
    "syn-sent",
    "syn-received",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listen",
    "closing",
    "request",
)
"""States of a connection (RFC 9293, 3.3.2) by the kernel's number, from 1 on."""

CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
"""States of a congestion control by the kernel's number (`enum tcp_ca_state`)."""


def live_record(output: _core.RunOutput | _core.PathOutput, number: int = 1) -> RunRecord:
    """The record of a run on a real path, with `number` as its seed: values that are not numbers become null, and the
    kernel's states become names."""
    record = RunRecord.of(number, output)
    series = {
        kind: table.with_columns(_floats(table).fill_nan(None)) for kind, table in record.series.items()
    }
    if "kernel" in series:
        series["kernel"] = series["kernel"].with_columns(
            _named("state", STATES, 1), _named("ca_state", CA_STATES, 0)
        )
    return replace(record, series=series)


def _floats(table: pl.DataFrame) -> pl.Expr:
    return pl.col([name for name, kind in table.schema.items() if kind == pl.Float64])


def _named(column: str, names: Sequence[str], first: int) -> pl.Expr:
    numbers = {float(first + n): name for n, name in enumerate(names)}
    return pl.col(column).replace_strict(numbers, default=None, return_dtype=pl.String)


def live_results(
    records: Sequence[RunRecord], kind: str, name: str, more: Mapping[str, Any] | None = None
) -> Results:
    """The results of runs on real paths, with a manifest: what ran (`kind`: "watch", "live", ...), versions, host and
    time, and further entries, such as the host's state."""
    manifest = {
        "kind": kind,
        "name": name,
        "seeds": [record.seed for record in records],
        "version": _core.version(),
        **(more or {}),
        **files.provenance(),
    }
    return Results(records, manifest)


def kept(results: Results, out: str | Path | None, ran: object = None) -> None:
    """Writes the results of a run that cannot be repeated, if `out` is given. Raises UnwrittenError, which holds `ran`,
    or else the results."""
    if out is None:
        return
    try:
        results.write(out)
    except StorageError as error:
        raise UnwrittenError(str(error), results if ran is None else ran) from error
