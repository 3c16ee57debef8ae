"""`paceline compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import files
from paceline.axes import axes
from paceline.cli import documents, layout
from paceline.cli.layout import Column, Layout
from paceline.cli.options import Batch, ExecutorName, File, Seed, Set, Vary, Workers, executor_of
from paceline.cli.progress import progress
from paceline.cli.run import read
from paceline.quantities import digits, scale, unit_of
from paceline.scenario import assignments

if TYPE_CHECKING:
    import polars as pl

    from paceline.comparing import Comparison


LONGEST_HEAD = 12
"""The longest name of an alternative that stands over a column."""

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


def compare(
    file: File,
    vary: Vary,
    runs: Annotated[
        int, typer.Option("--runs", metavar="K", help="Runs of each alternative, with common seeds.")
    ] = 10,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="What to compare, as goodput_bps (of flows, the first table that has it) or streams.late_share; "
            "repeatable.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    set_: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Keep finished runs there, go on where the same command was stopped, and "
            "write the tables, that of differences among them.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a table.")
    ] = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
) -> None:
    """Compare alternatives under common seeds, and say which differences are shown.

    Each difference is the mean over the seeds of (second - first) with its 95 % t interval. A difference is called
    shown if its t test stays below 5 % after Holm's correction for the number of comparisons. It takes five runs.

    \b
    Examples:
      paceline compare examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas
      paceline compare examples/coffee-shop.toml --runs 5 --metric late_share \\
          --vary flow.film.cc=newreno,vegas,cubic
    """
    from paceline.cli import show
    from paceline.comparing import compare as run_comparison

    scenario = read(file)
    with progress(file.stem) as show_progress:
        comparison = run_comparison(
            scenario,
            axes(vary),
            runs=runs,
            metrics=metric,
            seed=seed,
            set=assignments(set_ or []),
            workers=workers,
            executor=executor_of(executor, batch),
            out=out,
            progress=show_progress,
        )
    if as_json:
        documents.say(document(comparison))
        return
    console = layout.stdout()
    layout.show(console, tables(comparison, console.width))
    layout.say(console, "\n" + verdict(comparison))
    layout.note(console, [*left_out(comparison), *show.notices(comparison.results)])
    if out:
        layout.say(console, f"Written to {out}.")


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON of `--json`."""
    return {
        "name": comparison.results.manifest["name"],
        "seeds": comparison.results.seeds,
        "confidence": 0.95,
        "versions": files.versions(),
        "differences": comparison.table.to_dicts(),
        "notices": comparison.results.notices.to_dicts(),
    }


def tables(comparison: Comparison, width: int) -> list[Layout]:
    """A table per pair of alternatives, a row per metric and what it is of. p stands there if the width has room."""
    pairs = comparison.table.partition_by("first", "second", maintain_order=True)
    wide = [_table(pair, len(comparison.results.seeds), with_p=True) for pair in pairs]
    if all(layout.fits(table, width) for table in wide):
        return wide
    return [_table(pair, len(comparison.results.seeds), with_p=False) for pair in pairs]


def _table(pair: pl.DataFrame, runs: int, *, with_p: bool) -> Layout:
    first, second = pair["first"][0], pair["second"][0]
    # The alternatives stand over their columns unless their names are too long for it.
    heads = (first, second) if max(len(first), len(second)) <= LONGEST_HEAD else ("first", "second")
    rows = [_row(row, runs) for row in pair.iter_rows(named=True)]
    metrics, subjects, befores, afters, changes, units, ps, answers = zip(*rows, strict=True)
    # A metric is named once, over the rows that follow.
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
    """What means leave out, a sentence each: rows without a value, and transfers that had not ended."""
    said = []
    for part in comparison.table.partition_by("metric", "subject", maintain_order=True):
        counts: dict[str, tuple[int, int]] = {}
        for row in part.iter_rows(named=True):
            for side in ("first", "second"):
                counts[row[side]] = (row[f"{side}_values"], row[f"{side}_rows"])
        if any(there < rows for there, rows in counts.values()):
            each = ", ".join(f"{there} of {rows} ({name})" for name, (there, rows) in counts.items())
            what = f"{_label(part['metric'][0])} of {part['subject'][0]}"
            said.append(f"Note: {what} is a mean over those that have one: {each}.")
    flows = comparison.results.flows
    if "flows.transfer_time_mean_s" in comparison.table["metric"] and "transfers_unfinished" in flows.columns:
        ended, open_ = (int(flows[f"transfers_{c}"].sum()) for c in ("completed", "unfinished"))
        if open_:
            said.append(
                f"Note: transfer_time_mean_s leaves out transfers that had not ended with the runs, {open_} beside "
                f"{ended} that had: compare transfers_unfinished with it."
            )
    return said


def verdict(comparison: Comparison) -> str:
    """What the tables say, in words."""
    from paceline.evidence import LEAST_RUNS

    rows, runs = comparison.table, len(comparison.results.seeds)
    if runs < LEAST_RUNS:
        return (
            f"{runs} runs are too few to say which differences are more than chance: it takes {LEAST_RUNS}."
        )
    # what is the same in every run has no test, and is not of those that are corrected for
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
