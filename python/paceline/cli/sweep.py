"""`paceline sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.axes import axes, short
from paceline.cli import documents
from paceline.cli.options import (
    AsJson,
    Batch,
    ExecutorName,
    File,
    Most,
    Record,
    RecordEvery,
    Seed,
    Set,
    Until,
    Vary,
    Workers,
    executor_of,
    kinds,
    span,
)
from paceline.cli.progress import progress
from paceline.cli.run import NAME, read
from paceline.errors import PacelineError
from paceline.results.recordings import MAX_RUNS
from paceline.scenarios.scenario import assignments, load
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.results.results import Results
    from paceline.simulate.points import Shard


def sweep(
    file: File,
    vary: Vary,
    runs: Annotated[int, typer.Option("--runs", metavar="K", help="Runs per point, on the same seeds.")] = 10,
    seed: Seed = None,
    set_: Set = None,
    record: Record = "",
    record_every: RecordEvery = "20ms",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for runs and tables. Default: out/sweep-NAME.",
            show_default=False,
        ),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over: delete the finished runs in --out.")
    ] = False,
    shard: Annotated[
        str,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Run part I of N, for `paceline merge`. Default: all.",
            show_default=False,
        ),
    ] = "1/1",
    as_json: AsJson = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
    until: Until = None,
    most: Most = MAX_RUNS,
) -> None:
    """Run a scenario at every combination of some values.

    Each finished run is saved: the same command resumes where it stopped, and more runs, or other values of the
    same paths, reuse them.

    \b
    Examples:
      paceline sweep examples/coffee-shop.toml --vary flow.film.cc=newreno,vegas
      paceline sweep examples/coffee-shop.toml --runs 5 --out out/delay \\
          --vary "link.bottleneck.delay=10 ms,50 ms" --vary flow.film.cc=vegas
      paceline sweep examples/coffee-shop.toml --runs 5 --out out/together \\
          --vary "flow.film.cc,flow.film.profile=vegas:rfc,cubic:linux"
      paceline sweep examples/coffee-shop.toml --shard 1/4 --out out/first \\
          --vary flow.film.cc=newreno,vegas
    """
    from paceline.sweeps.sweep import sweep as run_sweep

    every_s, mine = span(record_every, "--record-every"), part(shard)
    changes, varied = assignments(set_ or []), axes(vary)
    scenario = read(file)
    name = load(scenario, changes).name
    directory = out or Path("out") / f"sweep-{name if name != NAME else 'stdin'}"
    with progress(file.stem) as show_progress:
        results = run_sweep(
            scenario,
            varied,
            runs=runs,
            seed=seed,
            set=changes,
            record=kinds(record),
            record_every_s=every_s,
            workers=workers,
            executor=executor_of(executor, batch),
            until=until or [],
            most=most,
            out=directory,
            fresh=fresh,
            shard=(mine.part, mine.parts),
            progress=show_progress,
        )
    if mine.parts > 1:
        if as_json:
            documents.say(
                {"shard": mine.part, "shards": mine.parts, "runs": len(results.runs), "out": str(directory)}
            )
            return
        print(
            f"Shard {mine.part} of {mine.parts}: {len(results.runs)} runs are in {directory}. When all shards are "
            "done:\n    paceline merge DIR1 DIR2 ... --out DIR"
        )
        return
    show_sweep(results, directory, as_json=as_json)


def part(text: str) -> Shard:
    """Reads I/N. Raises PacelineError."""
    from paceline.simulate.points import Shard

    one, slash, of = text.partition("/")
    if not (slash and one.isdecimal() and of.isdecimal()):
        raise PacelineError(f"--shard {text}: write I/N, as 1/4 for the first of four")
    return Shard(int(one), int(of))


def show_sweep(results: Results, directory: Path, *, as_json: bool) -> None:
    """Prints a sweep's measures, and where they are."""
    from paceline.tables import summaries
    from paceline.tables import sweep as sweep_tables

    if as_json:
        documents.say(documents.of_points(results))
        return
    console = layout.stdout()
    points = len(results.runs) // max(1, len(results.seeds))
    runs = len(results.seeds)
    head = f"{points} points, {runs} run{'s' if runs != 1 else ''} each; mean ± half of the 95 % interval"
    names = short(results.axes)
    keys = [f"{name}: {axis}" for axis, name in names.items() if name != axis]
    layout.say(console, "\n".join([head, *keys]) + "\n\n")
    layout.show(console, sweep_tables.tables(results))
    layout.note(console, summaries.notices(results))
    layout.say(console, f"\nTables (Parquet, CSV) and runs are in {directory}.")
