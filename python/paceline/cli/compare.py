"""`paceline compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline import files
from paceline.axes import axes
from paceline.cli import documents
from paceline.cli.options import Batch, ExecutorName, File, Seed, Set, Vary, Workers, executor_of
from paceline.cli.progress import progress
from paceline.cli.run import read
from paceline.scenarios.scenario import assignments
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.sweeps.compare import Comparison


def compare(
    file: File,
    vary: Vary,
    runs: Annotated[
        int, typer.Option("--runs", metavar="K", help="Runs of each alternative, on common seeds.")
    ] = 10,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Measure to compare, such as goodput_bps (of flows, the first table that has it) or "
            "streams.late_share; repeatable.",
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
            help="Folder for finished runs and tables, with one of differences; the same command resumes.",
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
    """Compare alternatives on common seeds, and say which differences are more than chance.

    Each difference is the mean over the seeds of (second - first), with its 95 % t interval. "Shown" means that its
    t test stays below 5 % after Holm's correction for the number of comparisons. You need at least five runs.

    \b
    Examples:
      paceline compare examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas
      paceline compare examples/coffee-shop.toml --runs 5 --metric late_share \\
          --vary flow.film.cc=newreno,vegas,cubic
    """
    from paceline.sweeps.compare import compare as run_comparison
    from paceline.tables import comparison as comparison_tables
    from paceline.tables import summaries

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
    layout.show(console, comparison_tables.tables(comparison, console.width))
    layout.say(console, "\n" + comparison_tables.verdict(comparison))
    layout.note(console, [*comparison_tables.left_out(comparison), *summaries.notices(comparison.results)])
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
