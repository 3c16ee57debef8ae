"""`paceline sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from rich.table import Table

from paceline.cli import show
from paceline.cli.options import File, Record, RecordEvery, Seed, Set, Vary, Workers, kinds
from paceline.cli.progress import progress
from paceline.errors import Interrupted
from paceline.results import Results
from paceline.scenario import assignments, axes, load
from paceline.statistics import estimate
from paceline.sweep import RECORD_EVERY_S
from paceline.sweep import sweep as run_sweep

_SHOWN = {
    "flows": (("goodput_bps", "goodput"), ("rtt_mean_s", "RTT"), ("loss_rate", "loss")),
    "streams": (("fill_s", "fill time"), ("late_share", "late")),
    "queues": (("mean_packets", "queue"), ("utilisation", "utilisation")),
}
_NAMED_BY = {"flows": ["flow"], "streams": ["flow"], "queues": ["link", "direction"]}


def sweep(
    file: File,
    vary: Vary,
    runs: Annotated[
        int, typer.Option("--runs", metavar="K", help="Runs per point, with the same seeds at each.")
    ] = 10,
    seed: Seed = None,
    set_: Set = None,
    record: Record = "",
    record_every: RecordEvery = RECORD_EVERY_S,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Where runs and tables go. Default: out/sweep-NAME.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: delete the finished runs in --out.")
    ] = False,
    workers: Workers = None,
) -> None:
    """Run a scenario at every combination of some values.

    Each finished run is kept at once. A sweep that was stopped goes on where it was when the same command is given
    again; more runs, or other values of the same paths, use what is there.

    \b
    Examples:
      paceline sweep examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas --runs 10
      paceline sweep examples/coffee-shop.toml --vary "link.bottleneck.delay=10 ms,50 ms" --runs 5
      paceline sweep examples/coffee-shop.toml --vary flow.browsing.count=5,10,20 --workers 4 --out out/browsing
    """
    changes, varied = assignments(set_ or []), axes(vary)
    directory = out or Path("out") / f"sweep-{load(file, changes).name}"
    try:
        with progress(file.stem) as show_progress:
            results = run_sweep(
                file,
                varied,
                runs=runs,
                seed=seed,
                set=changes,
                record=kinds(record),
                record_every_s=record_every,
                workers=workers,
                out=directory,
                fresh=fresh,
                progress=show_progress,
            )
    except Interrupted as stop:
        again = (
            " Give the same command again (without --fresh) to go on."
            if fresh
            else " Give the same command again to go on."
        )
        raise Interrupted(stop.finished, stop.total, f"{directory}.{again}"[:-1]) from None
    console = show.stdout()
    points = len(results.runs) // max(1, len(results.seeds))
    console.print(
        f"{points} points, {len(results.seeds)} runs each; mean ± half of the 95 % interval", markup=False
    )
    console.print(table(results))
    console.print(f"Tables (Parquet, CSV) and runs are in {directory}.", markup=False)


def table(results: Results) -> Table:
    """A row per point: the varied values, then the main measures of each flow, stream and queue by name."""
    found = Table()
    for axis in results.axes:
        found.add_column(axis)
    cells: list[pl.DataFrame] = []
    points = results.runs.select(results.axes).unique(maintain_order=True)
    for name, measures in _SHOWN.items():
        data = results.table(name)
        for who in data.select(_NAMED_BY[name]).unique(maintain_order=True).iter_rows(named=True):
            mine = data.filter(*(pl.col(key) == value for key, value in who.items()))
            if name == "queues" and who["direction"] == "backward":
                # Of interest in few scenarios; the tables have it.
                continue
            for measure, head in measures:
                if measure in mine.columns and mine[measure].null_count() < len(mine):
                    found.add_column(f"{' '.join(who.values())}\n{head}", justify="right")
                    # Instances of a flow are averaged within a run: runs are what is independent.
                    by = [*results.axes, "seed"]
                    cells.append(
                        mine.group_by(by, maintain_order=True).agg(pl.col(measure).cast(pl.Float64).mean())
                    )
    for row in points.iter_rows():
        texts = []
        for cell in cells:
            here = cell.filter(
                *(pl.col(axis) == value for axis, value in zip(results.axes, row, strict=True))
            )
            e = estimate(here[here.columns[-1]].to_list())
            texts.append(show.quantity(here.columns[-1], e.mean, e.half_width))
        found.add_row(*map(str, row), *texts)
    return found
