"""`paceline hunt`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline import playground
from paceline.cli import completing, documents
from paceline.cli.options import AsJson, Batch, ExecutorName, File, Set, Workers, executor_of, span
from paceline.cli.progress import progress
from paceline.cli.run import NAME, read
from paceline.scenarios.scenario import assignments, load
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.hunts.finds import Find, Hunt


def hunt(
    file: File,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            autocompletion=completing.varied,
            metavar="PATH=RANGE",
            help="Values to search: PATH=LOW..HIGH, or choices PATH=A,B,...; repeatable.",
            show_default=False,
        ),
    ],
    worst: Annotated[
        str,
        typer.Option(
            "--worst",
            metavar="EXPR",
            help="Expression to maximise, such as flows.rtt_p95_s[call] or 1 - groups.jain.",
            show_default=False,
        ),
    ],
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SPAN",
            help="Time limit, with its unit. Default: 5min, or none with --tries.",
            show_default=False,
        ),
    ] = None,
    tries: Annotated[
        int | None,
        typer.Option("--tries", metavar="N", help="Maximum number of candidates.", show_default=False),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="K", help="Runs per candidate, on the same seeds for all.")
    ] = 3,
    again: Annotated[
        int, typer.Option("--again", metavar="K", help="Runs of each find on fresh seeds, made twice.")
    ] = 10,
    finds: Annotated[int, typer.Option("--finds", metavar="N", help="Maximum number of finds.")] = 3,
    keep: Annotated[
        float,
        typer.Option(
            "--keep", metavar="SHARE", help="Share of its excess that a find keeps while it is simplified."
        ),
    ] = 0.8,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="First seed, also of the search. Default: the scenario's.",
            show_default=False,
        ),
    ] = None,
    set_: Set = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for finds, tries and figure. Default: out/hunt-NAME.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
) -> None:
    """Search for the scenario in which an expression over measures is greatest: where something goes wrong.

    Each find is run again on new seeds, moved back towards the file's own values as far as it holds, run on fresh
    seeds once more, and written as a scenario file. A run whose controller fails is worse than any value. It needs
    Optuna, the package's extra "hunt"; without it, the command says how to install it.

    \b
    Examples:
      paceline hunt examples/stuck.toml --tries 40 \\
          --over "link.bottleneck.queue.limit=2 packets..200 packets" \\
          --over "link.bottleneck.delay=1 ms..200 ms" \\
          --worst "flows.goodput_bps[sound] / flows.goodput_bps[mine]"
      paceline hunt examples/coffee-shop.toml --tries 8 --runs 1 --again 3 \\
          --over "link.bottleneck.delay=5 ms..100 ms" \\
          --over "flow.film.cc=newreno,vegas,cubic" \\
          --worst "streams.late_share[film]"
    """
    from paceline.hunts import hunt as run_hunt
    from paceline.hunts.ranges import over_of

    budget_s = None if budget is None else span(budget, "--budget")
    changes, ranges = assignments(set_ or []), over_of(over)
    scenario = read(file)
    name = load(scenario, changes).name
    directory = out or Path("out") / f"hunt-{name if name != NAME else 'stdin'}"
    with progress(file.stem, "tries" if budget_s is None and tries is not None else "s") as show_progress:
        found = run_hunt(
            scenario,
            ranges,
            worst,
            budget_s=budget_s,
            tries=tries,
            runs=runs,
            again=again,
            finds=finds,
            keep=keep,
            seed=seed,
            set=changes,
            workers=workers,
            executor=executor_of(executor, batch),
            out=directory,
            progress=show_progress,
        )
    if as_json:
        documents.say(found.document())
        return
    show(found, directory)


def show(found: Hunt, directory: Path) -> None:
    """Prints a hunt's finds, and where they are."""
    console = layout.stdout()
    seeds = found.seeds
    layout.say(
        console,
        f"{found.worst}: {found.goal.shown(found.own_searched)} in the file itself, the greatest of {len(found.tried)} "
        f"tries on seed{'' if len(seeds['search']) == 1 else 's'} {_range(seeds['search'])}",
    )
    if not found.finds:
        layout.say(console, "\nNothing is worse than the file itself.")
    for find in found.finds:
        console.print()
        layout.show(console, tables(found, find))
        layout.say(console, verdict(found, find))
        if find.file is not None:
            commands = ["run"] if playground.unplayable(find.scenario) else ["run", "explore"]
            for command in commands:
                layout.say(console, f"  {shlex.join(['paceline', command, str(find.file)])}")
    layout.note(console, found.notes)
    layout.say(console, f"\nTries (Parquet, CSV) and hunt.svg are in {directory}.")


def _range(seeds: Sequence[int]) -> str:
    return f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def tables(found: Hunt, find: Find) -> list[Layout]:
    """How bad a find is on which seeds, and its changes to the file."""
    seeds = found.seeds
    rows = [
        ("in the search, which chose it by this", _range(seeds["search"]), _value(found, find, find.searched))
    ]
    if find.again is not None:
        rows.append(
            (
                "the same on other seeds",
                _range(seeds["again"]),
                _value(found, find, find.again.mean, find.again.half_width),
            )
        )
    if find.value is not None:
        fresh = _range(seeds["fresh"])
        rows.append(("made smaller", fresh, _value(found, find, find.value.mean, find.value.half_width)))
        own = find.own
        rows.append(
            ("the file itself", fresh, "-" if own is None else _value(found, find, own.mean, own.half_width))
        )
    what, on, values = zip(*rows, strict=True)
    first = Layout(
        f"Find {find.number}",
        [
            Column("", what, right=False, repeat=True),
            Column("seeds", on),
            Column("runs that fail" if find.crash else "value", values),
        ],
    )
    columns = [
        Column("path", [change.path for change in find.changes], right=False, repeat=True),
        Column("file", [change.own or "none" for change in find.changes]),
        Column("search", [change.seen or "" for change in find.changes]),
        Column("left of it", [change.to or "as the file" for change in find.changes]),
    ]
    return [first, Layout("", columns)]


def _value(found: Hunt, find: Find, mean: float | None, half: float | None = None) -> str:
    if find.crash is not None:
        return "-" if mean is None else f"{mean:.0%}".replace("%", " %")
    return found.goal.shown(mean, half)


def verdict(found: Hunt, find: Find) -> str:
    """Whether the find holds on fresh seeds, in words."""
    if find.value is None:
        return "Not run on other seeds to the end: the hunt was stopped."
    many = len(found.seeds["fresh"])
    if find.crash is not None:
        return f"The last line it said: {find.crash.strip().splitlines()[-1]}"
    answer = "Shown at 5 % after Holm's correction" if find.is_shown else "Not shown"
    return f"{answer}; above the file itself on {find.above} of {many} seeds."
