"""A comparison as tables for people, and its verdict in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paceline.quantities import digits, scale, unit_of
from paceline.statistics.sample_intervals import MIN_RUNS
from paceline.tables.layout import Column, Layout, fits

if TYPE_CHECKING:
    import polars as pl

    from paceline.sweeps.compare import Comparison

LONGEST_HEAD = 12
"""The longest name of an alternative that is a column's heading."""

_LABELS = {
    "flows.goodput_bps": "goodput",
    "flows.rtt_mean_s": "RTT",
    "flows.loss_rate": "loss",
    "flows.complete_share": "complete frames",
    "flows.reset_share": "frames reset",
    "flows.dropped_share": "frames dropped",
    "flows.frame_delay_p95_s": "frame delay 95 %",
    "flows.freezes": "freezes",
    "flows.owd_p95_s": "delay 95 %",
    "streams.began": "began to play",
    "streams.fill_s": "fill time",
    "streams.late_share": "late",
    "streams.stall_share": "stalled",
    "streams.undelivered_share": "undelivered",
    "queues.mean_packets": "queue",
    "groups.jain": "Jain index",
}


def tables(comparison: Comparison, width: int) -> list[Layout]:
    """A table per pair of alternatives, a row per metric and subject. p is shown if the width allows it."""
    pairs = comparison.table.partition_by("first", "second", maintain_order=True)
    wide = [_table(pair, len(comparison.results.seeds), with_p=True) for pair in pairs]
    if all(fits(table, width) for table in wide):
        return wide
    return [_table(pair, len(comparison.results.seeds), with_p=False) for pair in pairs]


def _table(pair: pl.DataFrame, runs: int, *, with_p: bool) -> Layout:
    first, second = pair["first"][0], pair["second"][0]
    # The alternatives' names are the headings, unless they are too long.
    heads = (first, second) if max(len(first), len(second)) <= LONGEST_HEAD else ("first", "second")
    rows = [_row(row, runs) for row in pair.iter_rows(named=True)]
    metrics, subjects, befores, afters, changes, units, ps, answers = zip(*rows, strict=True)
    # A metric is named once, in the first of its rows.
    named = ["" if n and metrics[n - 1] == metric else metric for n, metric in enumerate(metrics)]
    columns = [
        Column("metric", named, right=False, repeat=True),
        Column("of", subjects, right=False, repeat=True),
        Column(heads[0], befores),
        Column(heads[1], afters),
        Column("difference", changes),
        Column("unit", units, right=False),
        *([Column("p (Holm)", ps)] if with_p else []),
        Column("shown", answers, right=False),
    ]
    return Layout(f"{first} -> {second}: difference, mean ± half of the 95 % interval", columns)


def _row(row: dict[str, Any], runs: int) -> tuple[str, ...]:
    measure = row["metric"].partition(".")[2]
    numbers = [row[k] for k in ("first_mean", "second_mean", "difference")]
    factor, unit = scale(measure, max((abs(v) for v in numbers if v is not None), default=0.0))
    before, after, change = ("-" if v is None else digits(v / factor) for v in numbers)
    if row["kind"] == "runs":
        change += f", all {row['n']}"
    elif row["kind"] == "t":
        change = digits(row["difference"] / factor, (row["high"] - row["low"]) / 2 / factor)
    p = "-" if row["p_holm"] is None else "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
    answer = "too few runs" if row["real"] is None else "yes" if row["real"] else "not shown"
    if row["n"] < runs:
        answer += f" ({row['n']} of {runs})"
    unit = unit or unit_of(measure)
    return (
        _label(row["metric"]),
        row["subject"].removesuffix(" forward"),
        before,
        after,
        change,
        unit,
        p,
        answer,
    )


def _label(metric: str) -> str:
    table, _, measure = metric.partition(".")
    return _LABELS.get(metric) or (measure if table == "flows" else metric)


def left_out(comparison: Comparison) -> list[str]:
    """What means leave out, a sentence each: rows without a value, and unfinished transfers."""
    said = []
    for part in comparison.table.partition_by("metric", "subject", maintain_order=True):
        counts: dict[str, tuple[int, int]] = {}
        for row in part.iter_rows(named=True):
            for side in ("first", "second"):
                counts[row[side]] = (row[f"{side}_values"], row[f"{side}_rows"])
        if any(there < rows for there, rows in counts.values()):
            each = ", ".join(f"{there} of {rows} ({name})" for name, (there, rows) in counts.items())
            what = f"{_label(part['metric'][0])} of {part['subject'][0]}"
            said.append(f"Note: {what} is a mean over the rows that have a value: {each}.")
    flows = comparison.results.flows
    if "flows.transfer_time_mean_s" in comparison.table["metric"] and "transfers_unfinished" in flows.columns:
        ended, open_ = (int(flows[f"transfers_{c}"].sum()) for c in ("completed", "unfinished"))
        if open_:
            said.append(
                f"Note: transfer_time_mean_s leaves out {open_} transfers that had not finished when the runs ended, "
                f"and covers {ended}: also compare transfers_unfinished."
            )
    return said


def verdict(comparison: Comparison) -> str:
    """The tables' conclusion, in words."""
    rows, runs = comparison.table, len(comparison.results.seeds)
    if runs < MIN_RUNS:
        return f"{runs} runs are too few to tell differences from chance: at least {MIN_RUNS} are needed."
    # A measure that is equal in every run has no test, and does not count for the correction.
    tested, real = rows["p_holm"].drop_nulls().len(), int(rows["real"].sum() or 0)
    same = rows["real"].drop_nulls().len() - tested
    what = "difference is" if tested == 1 else "differences are"
    hidden = " One that is not shown may be there." if real < tested else ""
    if not tested and same:
        return f"Nothing that was compared differs in any run, with {runs} runs each."
    alike = f" {same} more {'does' if same == 1 else 'do'} not differ in any run." if same else ""
    return (
        f"{real} of {tested} {what} shown at 5 % after Holm's correction for their number,"
        f" with {runs} runs each.{hidden}{alike}"
    )
