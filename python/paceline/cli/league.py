"""`paceline league`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import completing, documents
from paceline.cli.options import AsJson, Batch, ExecutorName, Workers, executor_of
from paceline.cli.progress import duration, progress
from paceline.errors import PacelineError
from paceline.tables import layout

if TYPE_CHECKING:
    from paceline.leagues.running import League

_SIMULATOR, _EMULATOR = "simulator", "emulator"


def league(
    schemes: Annotated[
        str | None,
        typer.Option(
            "--schemes",
            autocompletion=completing.schemes,
            metavar="CC,...",
            help="Schemes: names, names with values (cubic:profile=linux), or your own (python:mine.py:Mine). "
            "Default: twelve.",
            show_default=False,
        ),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option(
            "--classes",
            autocompletion=completing.classes,
            metavar="CLASS,...",
            help="Classes of scenarios (see --list), or your own files. Default: all.",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[
        int,
        typer.Option("--rounds", metavar="K", help="Scenarios drawn per class."),
    ] = 30,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed of the draw and of the first round.")
    ] = 1,
    delay_weight: Annotated[
        float,
        typer.Option(
            "--delay-weight", metavar="W", help="Value of halving the delay, in doublings of the rate."
        ),
    ] = 1.0,
    traces: Annotated[
        Path | None,
        typer.Option(
            "--traces",
            metavar="DIR",
            help="Recorded rates for the cellular class (mahimahi, or seconds and Mbit/s), instead of drawn ones.",
            show_default=False,
        ),
    ] = None,
    over: Annotated[
        str,
        typer.Option(
            "--over",
            metavar="WHERE",
            help="simulator, or emulator: the first --sample rounds also in real time, with the difference.",
        ),
    ] = _SIMULATOR,
    sample: Annotated[
        int, typer.Option("--sample", metavar="K", help="Rounds in real time with --over emulator.")
    ] = 1,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Output folder.")] = Path("out/league"),
    as_json: AsJson = False,
    listing: Annotated[bool, typer.Option("--list", help="List the classes and what each draws.")] = False,
) -> None:
    """Rank schemes over the same drawn scenarios, class by class, with intervals.

    The score of a run is log2 of its share of what is fair, less log2 of its delay over the least possible delay.
    Ranks hold at 95 % for all schemes at once. Each finished run is saved: the same command resumes a stopped
    league, and more schemes, classes or rounds reuse the runs. The output folder has the page, tables, figures, and
    worst/SCHEME.toml: the scenario in which each scheme was furthest behind.

    \b
    Examples:
      paceline league --list
      paceline league --schemes cubic,bbr,gcc --classes wired,media --rounds 5
      paceline league --schemes cubic,examples/controllers/reno_twin.py \\
          --classes lossy --rounds 5
      paceline league --schemes cubic,bbr --classes cellular \\
          --traces examples/traces --rounds 5
    """
    if listing:
        _list()
        return
    for text, option in ((schemes, "--schemes"), (classes, "--classes")):
        if text is not None and not words(text):
            raise PacelineError(f"{option} {text}: must be names between commas")
    if over not in (_SIMULATOR, _EMULATOR):
        raise PacelineError(f"--over {over}: must be {_SIMULATOR} or {_EMULATOR}")
    from paceline.leagues import emulated, running, writing
    from paceline.results.store import alone_in

    if over == _EMULATOR:
        emulated.refuse(sample, rounds)
    with alone_in(out, writing.KIND):
        writing.begin(out)
        with progress("league") as show:
            found = running.league(
                words(schemes),
                words(classes),
                rounds=rounds,
                seed=seed,
                delay_weight=delay_weight,
                traces=traces,
                workers=workers,
                executor=executor_of(executor, batch),
                out=out,
                progress=show,
            )
        if over == _EMULATOR:
            takes = duration(emulated.seconds(found, sample, workers))
            layout.say(layout.stderr(), f"{sample} of {rounds} rounds in real time: about {takes}.")
            with progress("league", "s") as show:
                emulated.sample(found, sample, workers=workers, out=out, progress=show)
        found.command = _command(found, schemes, classes, traces, over, sample)
        page = writing.write(found, out)
    if as_json:
        documents.say(_document(found))
    else:
        _show(found, page)


def words(text: str | None) -> list[str]:
    """Names between commas; a comma before KEY=VALUE continues a scheme's values."""
    found: list[str] = []
    for part in (text or "").split(","):
        if found and "=" in part and ":" not in part.partition("=")[0]:
            found[-1] += f",{part.strip()}"
        elif part.strip():
            found.append(part.strip())
    return found


def _command(
    found: League, schemes: str | None, classes: str | None, traces: Path | None, over: str, sample: int
) -> str:
    line = ["paceline", "league"]
    line += ["--schemes", schemes] if schemes else []
    line += ["--classes", classes] if classes else []
    line += ["--rounds", str(found.rounds)]
    line += ["--seed", str(found.seed)] if found.seed != 1 else []
    line += ["--delay-weight", f"{found.weight:g}"] if found.weight != 1 else []
    line += ["--traces", str(traces)] if traces else []
    line += ["--over", over, "--sample", str(sample)] if over == _EMULATOR else []
    return shlex.join(line)


def _list() -> None:
    from rich.text import Text

    from paceline.leagues import classes

    console = layout.stdout()
    table = layout.plain()
    for head in ("class", "what", "draws"):
        table.add_column(head, overflow="fold")
    for one in classes.find([]):
        laws = "\n".join(f"{path}: {law.words}" for path, law in one.laws.items())
        table.add_row(Text(one.key), Text(one.text), Text(laws))
    console.print(table)


def _document(found: League) -> dict[str, Any]:
    from paceline.leagues import writing

    return writing.manifest(found) | {
        "standings": found.table.to_dicts(),
        "worst": {
            label: {
                "class": day.game.of.key,
                "round": day.game.draw.number,
                "ahead": day.ahead.label,
                "behind": day.behind,
                "behind_afresh": day.again.estimate.mean,
            }
            for label, day in found.worst.items()
        },
        "gap": None if found.gap is None else found.gap.to_dicts(),
    }


def _show(found: League, page: Path) -> None:
    from paceline.leagues import tables as league_tables

    console = layout.stdout()
    layout.show(console, league_tables.tables(found))
    layout.say(
        console,
        f"\nIt took {duration(found.seconds)}. The page: {page}\n"
        "Worst days, tables and figures lie beside it.",
    )
