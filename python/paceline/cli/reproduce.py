"""`paceline reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from paceline.cli.progress import duration, progress
from paceline.errors import Interrupted, PacelineError
from paceline.reproduce import loading, where
from paceline.reproduce import paper as papers

DEFAULT_RUNS = 10


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(metavar="[PAPER]", help="Which paper; see --list.", show_default=False)
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure", metavar="N", help="One figure alone, as --list names it.", show_default=False
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", metavar="K", help="Runs per point, with the same seeds at each.")
    ] = DEFAULT_RUNS,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", metavar="N", help="Runs at a time. Default: one per core.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Where everything goes. Default: out/PAPER.", show_default=False
        ),
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="List papers, figures, claims, and how long each takes.")
    ] = False,
) -> None:
    """Re-run a paper: its figures, ours with 95 % intervals beside what it published, and a verdict per claim.

    Each finished run is kept at once. A reproduction that was stopped goes on where it was when the same command is
    given again; other figures, or more runs, use what is there.

    \b
    Examples:
      paceline reproduce --list
      paceline reproduce vegas-streaming
      paceline reproduce vegas-streaming --figure 5 --runs 30 --out out/red
    """
    if listing:
        for key in [paper] if paper else where.keys():
            _list(loading.load(key), runs, workers)
        return
    if paper is None:
        raise PacelineError(
            f"which paper? There are {', '.join(where.keys())}; see paceline reproduce --list"
        )
    _reproduce(paper, figure, runs, workers, out or Path("out") / paper)


def _reproduce(key: str, figure: str | None, runs: int, workers: int | None, out: Path) -> None:
    # matplotlib and the rest are slow to import: not for --list and --help.
    from paceline.reproduce import reproduction, writing
    from paceline.sweep import Store, workers_of_machine

    console = Console(soft_wrap=True, highlight=False)
    whole = loading.load(key)
    chosen = whole if figure is None else whole.only(figure)
    planned = reproduction.plan(chosen, runs)
    at_a_time = workers if workers is not None else workers_of_machine()
    takes = duration(reproduction.seconds_on(planned.seconds, at_a_time))
    console.print(
        f"{key}: {len(planned.points)} points, {runs} runs each: about {takes} with {at_a_time} at a time,"
        " and some more to draw.",
        markup=False,
    )
    store = Store(out)
    try:
        with progress(key) as show:
            done = reproduction.run(chosen, runs=runs, workers=workers, store=store, progress=show)
    except Interrupted as stop:
        again = f"{out}. Give the same command again to go on"
        raise Interrupted(stop.finished, stop.total, again) from None
    done.figure = figure
    page = writing.write(done, out)
    counts = done.counts()
    table = Table("Figure", "agree", "differ", "open", title="Verdicts", title_justify="left")
    for name in chosen.figures():
        own = [r.verdict.outcome for r in done.results if chosen.studies[r.claim.study].figure == name]
        if own:
            table.add_row(name, *(str(own.count(o)) for o in type(own[0])))
    console.print(table)
    console.print(
        f"{counts['agrees']} of {len(done.results)} published statements agree, {counts['differs']} differ"
        + (f", {counts['open']} are open" if counts["open"] else "")
        + f". It took {duration(done.seconds)}.",
        markup=False,
    )
    console.print(
        f"The page: {page}\nFigures (SVG, PNG) and tables (Parquet, CSV) lie beside it.", markup=False
    )


def _list(paper: papers.Paper, runs: int, workers: int | None) -> None:
    from paceline.reproduce import reproduction

    console = Console(soft_wrap=True, highlight=False)
    console.print(f"{paper.key}: {paper.title}\n  {paper.authors}, {paper.published_in}", markup=False)
    table = Table("Figure", "What", "Points", "Takes", "Claims")
    from paceline.sweep import workers_of_machine

    at_a_time = workers if workers is not None else workers_of_machine()

    def takes(one: papers.Paper) -> tuple[str, str]:
        planned = reproduction.plan(one, runs)
        return str(len(planned.points)), duration(reproduction.seconds_on(planned.seconds, at_a_time))

    for study in paper.studies.values():
        one = paper.only(study.figure)
        claims = sum(c.study == study.key for c in paper.claims)
        table.add_row(study.figure, study.title, *takes(one), str(claims))
    table.add_row("all", "", *takes(paper), str(len(paper.claims)))
    console.print(table)
    console.print(
        f"Times with {runs} runs a point, {at_a_time} at a time; points that figures share run once.",
        markup=False,
    )
    statements = Table("Figure", "Claim", "Statement")
    for claim in paper.claims:
        statements.add_row(paper.studies[claim.study].figure, claim.key, claim.says)
    console.print(statements)
