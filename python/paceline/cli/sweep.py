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
    "flows": ("Flows", (("goodput_bps", "goodput"), ("rtt_mean_s", "RTT"), ("loss_rate", "loss"))),
    "streams": (
        "Streams",
        (("throughput_bps", "throughput"), ("fill_s", "fill time"), ("late_share", "late")),
    ),
    "queues": (
        "Queues (packets)",
        (("mean_packets", "mean"), ("sd_packets", "sd"), ("utilisation", "utilisation")),
    ),
}
_NAMED_BY = {"flows": "flow", "streams": "flow", "queues": "link"}


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
    for table in tables(results):
        console.print(table)
    console.print(f"Tables (Parquet, CSV) and runs are in {directory}.", markup=False)


def tables(results: Results) -> list[Table]:
    """A table each of flows, streams and queues by name: a row per point and name, points apart."""
    found = []
    for name, (title, measures) in _SHOWN.items():
        data = results.table(name)
        if name == "queues":
            # The other way is of interest in few scenarios; --out has it.
            data = data.filter(pl.col("direction") == "forward")
        shown = [(m, head) for m, head in measures if m in data.columns and data[m].null_count() < len(data)]
        if data.is_empty() or not shown:
            continue
        table = Table(title=title, title_justify="left", title_style="bold")
        for axis in results.axes:
            table.add_column(axis)
        who = _NAMED_BY[name]
        table.add_column(who)
        for _, head in shown:
            table.add_column(head, justify="right")
        # Instances of a flow are averaged within a run: runs are what is independent.
        means = data.group_by([*results.axes, who, "seed"], maintain_order=True).agg(
            pl.col(measure).cast(pl.Float64).mean() for measure, _ in shown
        )
        for point in means.partition_by(results.axes, maintain_order=True):
            table.add_section()
            for n, rows in enumerate(point.partition_by(who, maintain_order=True)):
                estimates = [(m, estimate(rows[m].to_list())) for m, _ in shown]
                cells = [show.quantity(m, e.mean, e.half_width) for m, e in estimates]
                at = [str(rows[axis][0]) if n == 0 else "" for axis in results.axes]
                table.add_row(*at, str(rows[who][0]), *cells)
        found.append(table)
    return found
