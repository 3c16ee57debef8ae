"""`paceline sweep`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.axes import axes, short
from paceline.cli import documents, layout
from paceline.cli.layout import Column, Layout
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
from paceline.recordings import MOST
from paceline.scenario import assignments, load

if TYPE_CHECKING:
    import polars as pl

    from paceline.interval import Interval
    from paceline.results import Results
    from paceline.sweeping import Shard


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
"""Shown where they say something; the others wherever they have a value."""
_NAMED_BY = {
    "flows": "flow",
    "frames": "flow",
    "arrivals": "flow",
    "groups": "group",
    "streams": "flow",
    "queues": "link",
}


def sweep(
    file: File,
    vary: Vary,
    runs: Annotated[
        int, typer.Option("--runs", metavar="K", help="Runs per point, with the same seeds at each.")
    ] = 10,
    seed: Seed = None,
    set_: Set = None,
    record: Record = "",
    record_every: RecordEvery = "20ms",
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
    shard: Annotated[
        str,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Make part I of N of the runs, for `paceline merge`. Default: all.",
            show_default=False,
        ),
    ] = "1/1",
    as_json: AsJson = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
    until: Until = None,
    most: Most = MOST,
) -> None:
    """Run a scenario at every combination of some values.

    Each finished run is kept at once. A sweep that was stopped goes on where it was when the same command is given
    again; more runs, or other values of the same paths, use what is there.

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
    from paceline.sweeping import sweep as run_sweep

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
    from paceline.sweeping import Shard

    one, slash, of = text.partition("/")
    if not (slash and one.isdecimal() and of.isdecimal()):
        raise PacelineError(f"--shard {text}: write I/N, as 1/4 for the first of four")
    return Shard(int(one), int(of))


def show_sweep(results: Results, directory: Path, *, as_json: bool) -> None:
    """Prints what a sweep has measured, and where it is."""
    from paceline.cli import show

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
    layout.show(console, tables(results))
    layout.note(console, show.notices(results))
    layout.say(console, f"\nTables (Parquet, CSV) and runs are in {directory}.")


Shown = Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]
"""Table, as `show.rows` has it -> its title, and the measures shown of it with their heads."""


def tables(results: Results, shown: Shown = _SHOWN) -> list[Layout]:
    """A table each of flows, frames, streams and queues by name: a row per point and name, points apart."""
    return [
        table
        for name, (title, measures) in shown.items()
        if (table := _table(results, name, title, measures)) is not None
    ]


def _table(results: Results, name: str, title: str, measures: Sequence[tuple[str, str]]) -> Layout | None:
    import polars as pl

    from paceline.cli import show
    from paceline.interval import interval

    data = show.rows(results, name)
    if name == "queues":
        # The other way is of interest in few scenarios; --out has it.
        data = data.filter(pl.col("direction") == "forward")
    shown = [
        (m, head)
        for m, head in measures
        if m in data.columns
        and data[m].null_count() < len(data)
        and (m not in _IF_ANY or show.worth(data, m))
    ]
    if data.is_empty() or not shown:
        return None
    who = _NAMED_BY[name]
    # Instances of a flow are averaged within a run: runs are what is independent. How many had a value is told.
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
    note = "\n".join([*(show.never_began(data) if name == "streams" else []), *show.explained(met)])
    # Where a point is one row there is nothing to hold apart.
    return Layout(title, columns, blocks=blocks if len(blocks) < len(rows) else (), note=note)


def _cell(part: pl.DataFrame, measure: str, found: Interval) -> str:
    """What the runs of a point say, and over how many rows it is if some have no value."""
    from paceline.cli import show

    there, rows = int(part[f"{measure} there"].sum()), int(part["rows"].sum())
    return show.said(measure, found) + show.of_how_many(there, rows)
