"""`paceline reproduce`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import completing
from paceline.cli.options import Batch, ExecutorName, executor_of
from paceline.cli.progress import duration, progress
from paceline.errors import PacelineError
from paceline.files import paper_folders
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.emulator.realtime_queue import Runner
    from paceline.papers.rereading import Planned
    from paceline.simulate.executor_like import ExecutorLike
    from paceline.studies.paper import Paper, Reading
    from paceline.studies.reproduction import Plan, Reproduction

COUNTED = {
    "agrees": "agree",
    "off": "off",
    "contradicts": "contradict",
    "undecided": "undecided",
    "open": "open",
}
"""Words for several outcomes, by the outcomes' values (importing `verdict.Outcome` would import libraries)."""


def reproduce(
    paper: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER]",
            autocompletion=completing.paper,
            help="Paper (see --list), or the folder of your own.",
            show_default=False,
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            autocompletion=completing.figure,
            metavar="N",
            help="Only this figure, numbered as in the paper or --list: 5, 5c, I.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="K",
            help="Runs per point, on the same seeds. Default: as many as the paper, or 10.",
            show_default=False,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            help="Runs at a time. Default: one per core; in real time, as many as the machine can carry.",
            show_default=False,
        ),
    ] = None,
    executor: ExecutorName = None,
    batch: Batch = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Output folder. Default: out/PAPER.", show_default=False),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Skip the points that run in real time over emulated paths.")
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="In real time, run as long and as often as the paper did."),
    ] = False,
    every_reading: Annotated[
        bool,
        typer.Option(
            "--readings",
            help="Also run every other reading of the paper, and show its totals and the causes that hold.",
        ),
    ] = False,
    reading: Annotated[
        str | None,
        typer.Option(
            "--reading",
            metavar="NAME",
            autocompletion=completing.reading,
            help="Make the page of another reading (see --list), in its own folder.",
            show_default=False,
        ),
    ] = None,
    listing: Annotated[
        bool,
        typer.Option("--list", help="List papers, figures and times; with --figure, the published numbers."),
    ] = False,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify",
            help="Compare with the results in the paper's folder: simulated points bit by bit, real time by "
            "intervals.",
        ),
    ] = False,
    write: Annotated[
        bool,
        typer.Option("--write", help="With --verify: replace the results in the paper's folder."),
    ] = False,
) -> None:
    """Re-run a paper: its figures beside ours with 95 % intervals, and a verdict per claim.

    Each finished run is saved: the same command resumes where it stopped, and more figures or runs reuse them. A
    page with less in it never replaces one with more.

    \b
    Examples:
      paceline reproduce --list
      paceline reproduce --list --figure 5
      paceline reproduce vegas-streaming
      paceline reproduce vegas-streaming --figure 5 --runs 5 --out out/red
      paceline reproduce tcp-vs-tfrc --simulated
      paceline reproduce vegas-streaming --readings
      paceline reproduce tfrc-veno --reading period-5 --figure 7 --simulated
      paceline reproduce vegas-streaming --verify
      paceline reproduce voap --verify --figure 3 --runs 1
    """
    from paceline.papers import loading

    if runs is not None and runs < 1:
        raise PacelineError(f"--runs {runs}: must be at least 1")
    if listing:
        listed = [loading.load(key) for key in ([paper] if paper else paper_folders.keys())]
        if paper is None and figure is not None:
            listed = [one for one in listed if one.has(figure)]
            if not listed:
                raise PacelineError(f"no paper has a figure {figure}; see paceline reproduce --list")
        for one in listed:
            _list(one, figure, runs, workers, alone=paper is not None)
        return
    if paper is None:
        raise PacelineError(
            f"which paper? There are {', '.join(paper_folders.keys())}; see paceline reproduce --list"
        )
    who = executor_of(executor, batch)
    if simulated and full:
        raise PacelineError("--simulated leaves out the runs that --full is about: give only one of them")
    if write and not verify:
        raise PacelineError("--write needs --verify")
    if verify:
        if full:
            raise PacelineError("--verify compares runs in real time in their short form: leave out --full")
        if every_reading or reading is not None:
            raise PacelineError(
                "--verify compares the paper's chosen reading: leave out --readings and --reading"
            )
        from paceline.cli import reproduce_verify

        loaded = loading.load(paper)
        out = out or Path("out") / loaded.key
        reproduce_verify.verify(loaded, figure, runs, workers, who, out, simulated=simulated, write=write)
        return
    form = Form.FULL if full else Form.SIMULATED if simulated else Form.SHORT
    if every_reading and reading is not None:
        raise PacelineError(
            "--readings runs all readings, --reading NAME makes the page of one: give only one"
        )
    _reproduce(loading.load(paper), figure, runs, workers, who, out, form, reading, every_reading)


class Form(Enum):
    """The extent of runs in real time."""

    SIMULATED = "nothing"
    SHORT = "in short"
    FULL = "as long and as often as the paper did"


def _reproduce(
    whole: Paper,
    figure: str | None,
    runs: int | None,
    workers: int | None,
    executor: ExecutorLike | None,
    out: Path | None,
    form: Form,
    reading: str | None,
    every_reading: bool,
) -> None:
    # Importing matplotlib and others is slow: not for --list and --help.
    from paceline.papers import rereading, writing
    from paceline.results.store import Store, alone_in
    from paceline.simulate.points import workers_of_machine
    from paceline.studies import readings, reproduction
    from paceline.studies.study import World
    from paceline.studies.verdict import Outcome

    console = layout.stdout()
    read = None if reading is None else _reading(whole, reading)
    out = out or Path("out") / (whole.key if read is None else f"{whole.key}-{read.key}")
    chosen = whole if figure is None else whole.only(figure)
    chosen = chosen if read is None else readings.under(chosen, read)
    chosen = chosen.full() if form is Form.FULL else chosen
    runs = chosen.runs if runs is None else runs
    real_time = _real_time(chosen, form)
    planned = reproduction.plan(chosen, runs)
    at_a_time = workers if workers is not None else workers_of_machine()
    others = rereading.plan(chosen, runs) if every_reading else []
    kept, spared_s = planned.kept(out)
    takes = duration(reproduction.seconds_on(planned.seconds - spared_s, at_a_time))
    of = planned.runs * planned.worlds.count(World.SIMULATED)
    writing.check_whole(
        out, whole, figure, runs, real=real_time is not None, full=form is Form.FULL, readings=every_reading
    )
    layout.say(
        console,
        f"{whole.key}: {len(planned.points)} points, {runs} {'run' if runs == 1 else 'runs'} each: about {takes} "
        f"with {at_a_time} at a time, and some more to draw.\n"
        + (f"{kept} of {of} simulated runs are there from before.\n" if kept else "")
        + (_real_words(planned, workers) if real_time else "")
        + (_reading_words(others, at_a_time) if every_reading else "")
        + "\n",
    )
    with alone_in(out):
        with progress(whole.key, "s" if real_time else "runs") as show:
            done = reproduction.run(
                chosen,
                runs=runs,
                workers=workers,
                executor=executor,
                store=Store(out),
                progress=show,
                real_time=real_time,
            )
        if others:
            with progress(f"{whole.key}, readings", "runs") as show:
                done.readings = rereading.run(
                    others, runs=runs, workers=workers, executor=executor, store=Store(out), progress=show
                )
        done.figure, done.reading, done.full = figure, read, form is Form.FULL
        page = writing.write(done, out)
    counts = done.counts()
    rows = []
    for name in chosen.figures():
        own = [r.verdict.outcome for r in done.counted if chosen.studies[r.claim.study].figure == name]
        if own:
            rows.append((name, *(str(own.count(o)) for o in Outcome)))
    if rows:
        _show("Verdicts", ("figure", *COUNTED.values()), rows)
    differ = [
        f"{counts[o]} {'are ' if o in ('off', 'undecided') else ''}{word}"
        for o, word in list(COUNTED.items())[1:]
        if counts[o]
    ]
    agree = f"{counts['agrees']} of {len(done.counted)} published statements agree"
    if not done.counted:
        agree = "No statement is counted here" if done.results else "Nothing is published about this figure"
    layout.say(
        console,
        f"\n{agree}" + "".join(f", {one}" for one in differ) + f". It took {duration(done.seconds)}.",
    )
    near = done.near()
    if near["numbers"]:
        numbers = f"{near['numbers']} published number{'s' if near['numbers'] != 1 else ''}"
        layout.say(
            console,
            f"Of {numbers} ours is within 5 % of {near['within_5']}, and within 15 % of {near['within_15']}.",
        )
    if done.readings:
        _totals(done)
    layout.say(console, f"The page: {page}\nFigures (SVG, PNG) and tables (Parquet, CSV) lie beside it.")


def _reading(paper: Paper, key: str) -> Reading:
    found = next((one for one in paper.readings if one.key == key), None)
    if found is None:
        there = ", ".join(one.key for one in paper.readings) or "none"
        raise PacelineError(f"{paper.key} has no reading {key}: there are {there}")
    return found


def _totals(done: Reproduction) -> None:
    """Prints a row per reading, the chosen one first."""
    from paceline.papers import summary

    heads = ("agree", "off by a little", "off", "contradict", "undecided")
    rows = [
        (
            row.get("key", row["title"]),
            *map(str, (c["agrees"], c["near"], c["off"], c["contradicts"], c["undecided"])),
        )
        for row in summary.reading_rows(done)
        if (c := row["counts"])
    ]
    _show("Readings", ("reading", *heads), rows)
    causes = summary.causes_line(done)
    layout.say(layout.stdout(), f"{causes}\n" if causes else "")


def _show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table whose first column has names, the others counts."""
    cells = enumerate(zip(heads, zip(*rows, strict=True), strict=True))
    columns = [Column(head, list(of), right=n > 0) for n, (head, of) in cells]
    layout.show(layout.stdout(), [Layout(title, columns)])


def _reading_words(others: list[Planned], at_a_time: int) -> str:
    """The time for the readings, at most: runs that a reading does not change are reused."""
    from paceline.studies import reproduction

    seconds = sum(one.plan.seconds for one in others)
    takes = duration(reproduction.seconds_on(seconds, at_a_time))
    return f"Then {len(others)} other readings, simulated: about {takes} more at most.\n"


def _real_time(paper: Paper, form: Form) -> Runner | None:
    """The runner of real-time points; None if there are none, or the system cannot run them."""
    if form is Form.SIMULATED or not any(study.is_emulated for study in paper.studies.values()):
        return None
    from paceline import realtime

    why = realtime.refused()
    if why is not None:
        console = layout.stdout()
        layout.say(console, f"Nothing runs in real time, and the page leaves it open: {why}\n\n")
        return None
    return realtime.Emulator()


def _real_words(planned: Plan, workers: int | None) -> str:
    from paceline.emulator.realtime_queue import Budget
    from paceline.studies.study import World

    many = sum(world is World.EMULATED for world in planned.worlds)
    budget = Budget.of_machine(workers)
    beside = "one after the other" if budget.runs == 1 else f"up to {budget.runs} side by side"
    return (
        f"Of these {many} run in real time, {beside}, {planned.real_runs} times each: "
        f"about {duration(planned.real_seconds(budget))} more.\n"
    )


def _list(paper: Paper, figure: str | None, runs: int | None, workers: int | None, *, alone: bool) -> None:
    console = layout.stdout()
    layout.say(console, f"{paper.key}: {paper.title}\n{paper.authors}, {paper.published_in}\n\n")
    if figure is None:
        _figures(paper, paper.runs if runs is None else runs, workers, alone=alone)
    else:
        _claims(paper.only(figure))


def _figures(paper: Paper, runs: int, workers: int | None, *, alone: bool) -> None:
    """Prints a row per figure: its subject, points, time, and number of published statements; for a paper listed
    `alone` also its readings."""
    from rich.text import Text

    from paceline.emulator.realtime_queue import Budget
    from paceline.simulate.points import workers_of_machine
    from paceline.studies import reproduction

    console = layout.stdout()
    at_a_time = workers if workers is not None else workers_of_machine()

    whole = reproduction.plan(paper, runs)

    def row(name: str, what: str, one: Paper) -> tuple[str, ...]:
        planned = whole.of(one.studies)
        real_s = planned.real_seconds(Budget.of_machine(workers))
        takes = duration(reproduction.seconds_on(planned.seconds, at_a_time) + real_s)
        return name, what, str(len(planned.points)), str(len(one.claims)), takes

    table = layout.plain()
    for head in ("figure", "what"):
        table.add_column(head, overflow="fold")
    for head in ("points", "claims", "takes"):
        table.add_column(head, justify="right", no_wrap=True, overflow="fold")
    for name in paper.figures():
        titles = [study.title for study in paper.studies.values() if study.figure == name]
        table.add_row(*map(Text, row(name, "; ".join(titles), paper.only(name))))
    table.add_row(*map(Text, row("all", "", paper)))
    console.print(table)
    if alone and paper.readings:
        others = layout.plain()
        for head in ("reading", "what it takes otherwise"):
            others.add_column(head, overflow="fold")
        for one in paper.readings:
            others.add_row(Text(one.key), Text(one.title))
        layout.say(console, "\n")
        console.print(others)
    layout.say(
        console,
        f"\nTimes with {runs} runs a point, {at_a_time} at a time; points that figures share run once. The claims"
        " of a figure: --list --figure N.",
    )


def _claims(paper: Paper) -> None:
    """Prints the published statements about a figure."""
    from rich.text import Text

    from paceline.studies.verdict import Kind

    console = layout.stdout()
    if not paper.claims:
        layout.say(console, "Nothing is published about this figure.")
        return
    table = layout.plain()
    for head in ("statement", "published", "where"):
        table.add_column(head, overflow="fold")
    for claim in paper.claims:
        says = f"{claim.says} [not counted: {claim.beside}]" if claim.beside else claim.says
        unit = "" if claim.published.kind is Kind.TREND else f" {claim.unit}"
        published = f"{claim.printed}{unit}"
        table.add_row(Text(says), Text(published), Text(claim.where))
    console.print(table)
