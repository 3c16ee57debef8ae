"""Which rows of results a comparison or a figure is about, and which of their measures."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from paceline.results.columns import IDENTITY, TABLES, matching
from paceline.results.results import Results, is_measure

DEFAULT_METRICS = (
    "flows.goodput_bps",
    "flows.rtt_mean_s",
    "flows.loss_rate",
    "flows.complete_share",
    "flows.reset_share",
    "flows.dropped_share",
    "flows.frame_delay_p95_s",
    "flows.freezes",
    "flows.owd_p95_s",
    "streams.began",
    "streams.fill_s",
    "streams.late_share",
    "streams.stall_share",
    "streams.undelivered_share",
    "queues.mean_packets",
    "groups.jain",
    "groups.friendliness",
)
"""The default metrics: TABLE.MEASURE."""

SUBJECT = {
    "flows": ("flow",),
    "streams": ("flow",),
    "queues": ("link", "direction"),
    "link_flows": ("link", "direction", "flow"),
    "interfaces": ("cell", "interface"),
    "groups": ("group",),
    "runs": (),
}
"""The identity of a table's rows once a flow's instances are averaged."""


def metrics_in(results: Results, metrics: Sequence[str] | None) -> list[tuple[str, str]]:
    """Table and measure of each metric, given as TABLE.MEASURE, or MEASURE in the first table that has it. Raises
    PacelineError for an unknown one."""
    there = {
        table: [
            c
            for c in results.table(table).columns
            if c not in (*IDENTITY[table], *results.varied, "seed")
            and is_measure(results.table(table).schema[c])
        ]
        for table in TABLES
        if len(results.table(table))
    }
    if metrics is None:
        pairs = [tuple(name.split(".", 1)) for name in DEFAULT_METRICS]
        return [(table, measure) for table, measure in pairs if measure in there.get(table, [])]
    # As in `plot --y`, the first table that has a measure is taken.
    return list(dict.fromkeys(matching(name, there)[0] for name in metrics))


def alone(results: Results) -> list[str]:
    """The groups of one flow, whose Jain index is meaningless."""
    largest = results.groups.group_by("group").agg(pl.col("flows").max())
    return largest.filter(pl.col("flows") < 2)["group"].to_list()
