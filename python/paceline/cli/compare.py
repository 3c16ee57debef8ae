"""`paceline compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from paceline import files
from paceline.cli import show
from paceline.cli.options import File, Seed, Set, Vary, Workers
from paceline.cli.progress import progress
from paceline.comparing import Comparison
from paceline.comparing import compare as run_comparison
from paceline.scenario import assignments, axes


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
            help="What to compare, as goodput_bps or streams.late_share; repeatable.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    set_: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Write the table of differences there.", show_default=False
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead of a table.")
    ] = False,
    workers: Workers = None,
) -> None:
    """Compare alternatives under common seeds, and say which differences are real.

    Each difference is the mean over the seeds of (second - first) with its 95 % t interval. A difference is called real
    if its t test stays below 5 % after Holm's correction for the number of comparisons.

    \b
    Examples:
      paceline compare examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas --runs 10
      paceline compare examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas,cubic --metric late_share
    """
    if out:
        files.make_directory(out)
    with progress(file.stem) as show_progress:
        comparison = run_comparison(
            file,
            axes(vary),
            runs=runs,
            metrics=metric,
            seed=seed,
            set=assignments(set_ or []),
            workers=workers,
            progress=show_progress,
        )
    if out:
        files.write_parquet(out / "differences.parquet", comparison.table)
        files.write_csv(out / "differences.csv", comparison.table)
        comparison.results.write(out)
    if as_json:
        print(json.dumps(document(comparison), indent=2, ensure_ascii=False, allow_nan=False))
        return
    console = show.stdout()
    console.print(table(comparison))
    console.print(verdict(comparison), markup=False)
    if out:
        console.print(f"Written to {out}.", markup=False)


def document(comparison: Comparison) -> dict[str, Any]:
    """The JSON of `--json`."""
    return {
        "name": comparison.results.manifest["name"],
        "seeds": comparison.results.seeds,
        "confidence": 0.95,
        "versions": files.versions(),
        "differences": comparison.table.to_dicts(),
    }


def table(comparison: Comparison) -> Table:
    """A row per comparison."""
    found = Table(
        title="Differences: second - first, mean and 95 % interval", title_justify="left", title_style="bold"
    )
    for head in ("metric", "of"):
        found.add_column(head)
    for head in ("first", "second", "difference", "95 % interval", "p (Holm)"):
        found.add_column(head, justify="right")
    found.add_column("real?")
    count = len(comparison.results.seeds)
    pair = None
    for row in comparison.table.iter_rows(named=True):
        if (row["first"], row["second"]) != pair and comparison.table.select(
            "first", "second"
        ).n_unique() > 1:
            pair = (row["first"], row["second"])
            found.add_section()
            found.add_row(f"[bold]{pair[0]} -> {pair[1]}[/bold]")
        measure = row["metric"].partition(".")[2]
        interval = (
            "-"
            if row["low"] is None
            else f"{show.quantity(measure, row['low'])} to {show.quantity(measure, row['high'])}"
        )
        p = "-" if row["p_holm"] is None else "< 0.001" if row["p_holm"] < 0.001 else f"{row['p_holm']:.3f}"
        few = "" if row["n"] == count else f" ({row['n']} of {count} runs)"
        answer = "too few values" if row["real"] is None else "yes" if row["real"] else "no"
        found.add_row(
            measure,
            row["subject"],
            show.quantity(measure, row["first_mean"]),
            show.quantity(measure, row["second_mean"]),
            show.quantity(measure, row["difference"]),
            interval,
            p,
            answer + few,
        )
    return found


def verdict(comparison: Comparison) -> str:
    """What the table says, in words."""
    rows = comparison.table
    tested, real = rows["real"].is_not_null().sum(), rows["real"].sum()
    pairs = rows.select("first", "second").unique(maintain_order=True).rows()
    names = f"first: {pairs[0][0]}, second: {pairs[0][1]}. " if len(pairs) == 1 else ""
    count = len(comparison.results.seeds)
    return (
        f"{names}{real} of {tested} differences are real at 5 % after Holm's correction; {count} runs each."
    )
