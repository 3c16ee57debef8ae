"""A sweep as tables for people: a row per point and name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from paceline.axes import short
from paceline.interval import Interval, interval
from paceline.results.results import Results
from paceline.tables import summaries
from paceline.tables.layout import Column, Layout

_SHOWN = {
    "flows": ("Flows", (("goodput_bps", "goodput"), ("rtt_mean_s", "RTT"), ("loss_rate", "loss"))),
    "frames": (
        "Frames",
        (
            ("complete_share", "complete"),
            ("reset_share", "reset"),
            ("dropped_share", "dropped"),
            ("frame_delay_p50_s", "delay"),
            ("frame_delay_p95_s", "delay 95 %"),
            ("freezes", "freezes"),
        ),
    ),
    "arrivals": (
        "Arrivals (one-way delay)",
        (("owd_p50_s", "delay"), ("owd_p95_s", "delay 95 %"), ("jitter_s", "jitter")),
    ),
    "streams": (
        "Streams",
        (
            ("throughput_bps", "throughput"),
            ("began", "began"),
            ("fill_s", "fill time"),
            ("late_share", "late"),
            ("stall_share", "stalled"),
            ("undelivered_share", "undelivered"),
        ),
    ),
    "queues": (
        "Queues (packets)",
        (("mean_packets", "mean"), ("sd_packets", "sd"), ("utilisation", "utilisation")),
    ),
}
_IF_ANY = {"began", "stall_share", "undelivered_share"}
"""Shown only if informative; the others whenever they have a value."""
_NAMED_BY = {
    "flows": "flow",
    "frames": "flow",
    "arrivals": "flow",
    "groups": "group",
    "streams": "flow",
    "queues": "link",
}

Shown = Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]
"""Table, as in `summaries.rows` -> its title, and the shown measures with their headings."""


def tables(results: Results, shown: Shown = _SHOWN) -> list[Layout]:
    """A table each of flows, frames, streams and queues by name: a row per point and name, blocks by point."""
    return [
        table
        for name, (title, measures) in shown.items()
        if (table := _table(results, name, title, measures)) is not None
    ]


def _table(results: Results, name: str, title: str, measures: Sequence[tuple[str, str]]) -> Layout | None:
    data = summaries.rows(results, name)
    if name == "queues":
        # The backward direction matters in few scenarios; --out has it.
        data = data.filter(pl.col("direction") == "forward")
    shown = [
        (m, head)
        for m, head in measures
        if m in data.columns
        and data[m].null_count() < len(data)
        and (m not in _IF_ANY or summaries.worth(data, m))
    ]
    if data.is_empty() or not shown:
        return None
    who = _NAMED_BY[name]
    # Average a flow's instances within a run, because only runs are independent. Count the rows with a value.
    means = data.group_by([*results.axes, who, "seed"], maintain_order=True).agg(
        *(pl.col(measure).cast(pl.Float64).mean() for measure, _ in shown),
        *(pl.col(measure).count().alias(f"{measure} there") for measure, _ in shown),
        pl.len().alias("rows"),
    )
    rows: list[list[str]] = []
    blocks = []
    met: list[Interval] = []
    for point in means.partition_by(results.axes, maintain_order=True):
        blocks.append(len(rows))
        for n, part in enumerate(point.partition_by(who, maintain_order=True)):
            at = [str(part[axis][0]) if n == 0 else "" for axis in results.axes]
            bulk = results.endless(part)
            found = [interval(measure, part[measure].to_list(), bulk) for measure, _ in shown]
            met += found
            cells = [_cell(part, measure, i) for (measure, _), i in zip(shown, found, strict=True)]
            rows.append([*at, str(part[who][0]), *cells])
    heads = [*short(results.axes).values(), who]
    texts = list(zip(*rows, strict=True))
    columns = [Column(h, c, right=False, repeat=True) for h, c in zip(heads, texts, strict=False)]
    columns += [Column(head, c) for (_, head), c in zip(shown, texts[len(heads) :], strict=True)]
    note = "\n".join([*(summaries.never_began(data) if name == "streams" else []), *summaries.explained(met)])
    # Points of a single row need no separation.
    return Layout(title, columns, blocks=blocks if len(blocks) < len(rows) else (), note=note)


def _cell(part: pl.DataFrame, measure: str, found: Interval) -> str:
    """A point's summary over its runs, with the number of rows if some have no value."""
    there, rows = int(part[f"{measure} there"].sum()), int(part["rows"].sum())
    return summaries.said(measure, found) + summaries.of_how_many(there, rows)
