"""`paceline suite`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paceline.cli import completing, documents
from paceline.cli.options import AsJson, Batch, ExecutorName, Workers, executor_of
from paceline.cli.progress import duration, progress
from paceline.errors import PacelineError
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.simulate.executor_like import ExecutorLike
    from paceline.studies.reproduction import Plan
    from paceline.studies.study import World
    from paceline.suite.running import Result
    from paceline.suite.suite import Suite


def suite(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[SUITE]",
            autocompletion=completing.suite,
            help="Suite (see --list), or the folder of your own.",
            show_default=False,
        ),
    ] = None,
    scheme: Annotated[
        list[str] | None,
        typer.Option(
            "--scheme",
            autocompletion=completing.scheme,
            metavar="CC[:KEY=VALUE,...]",
            help="Scheme to test, optionally with parameters; repeatable. Default: the suite's.",
            show_default=False,
        ),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            "--queue",
            autocompletion=completing.queue,
            metavar="KIND[:KEY=VALUE,...]",
            help="Queue to test, in a suite of queues; repeatable. Default: the suite's.",
            show_default=False,
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            "--case",
            autocompletion=completing.case,
            metavar="C",
            help="Run only this case; repeatable.",
            show_default=False,
        ),
    ] = None,
    specs: Annotated[
        Path | None,
        typer.Option(
            "--specs",
            metavar="DIR",
            help="Folder of specifications, for a suite made from them (c4: picoquic's sim_specs).",
            show_default=False,
        ),
    ] = None,
    over: Annotated[
        str,
        typer.Option(
            "--over",
            metavar="WHERE",
            help="simulator, or emulator: in real time over emulated paths, as many at a time as the machine can "
            "carry.",
        ),
    ] = "simulator",
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            metavar="K",
            help="Runs of each point. Default: the suite's; 5 over the emulator.",
            show_default=False,
        ),
    ] = None,
    workers: Workers = None,
    executor: ExecutorName = None,
    batch: Batch = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Output folder. Default: out/suite-SUITE, or out/suite-SUITE-emulator.",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit",
            metavar="FILE",
            help="Also write the verdicts to this file, as JUnit XML.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List suites, or a suite's cases; with --case, its questions.")
    ] = False,
) -> None:
    """Run a suite of cases with thresholds for a scheme or a queue: what passes, fails or is undecided.

    Each finished run is saved: the same command resumes where it stopped, and reuses cases, schemes and runs. Exit
    codes: 0 nothing fails, 1 a case fails, 3 none fails but one is undecided, 2 a mistake in the request.

    \b
    Examples:
      paceline suite --list
      paceline suite rfc9743 --scheme cubic
      paceline suite rfc9743 --scheme vegas:alpha=2,beta=4 --case bufferbloat
      paceline suite rfc7928 --queue codel --queue pie --junit junit.xml
      paceline suite c4 --specs sim_specs
      paceline suite rmcat --scheme gcc --case one --over emulator
    """
    from paceline.suite import loading, suite_folders
    from paceline.suite.suite import MAX_RUNS

    if runs is not None and not 1 <= runs <= MAX_RUNS:
        raise PacelineError(f"--runs {runs}: 1 to {MAX_RUNS}")
    if name is None:
        if not listing:
            raise PacelineError(
                f"which suite? There are {', '.join(suite_folders.keys())}; see paceline suite --list"
            )
        _suites([loading.load(key) for key in suite_folders.keys()])  # noqa: SIM118 (no dict)
        return
    read = loading.load(name, specs)
    if not read.cases:
        raise PacelineError(f"{read.name} takes its cases from files: --specs DIR ({read.source})")
    named = _named(read, scheme or [], queue or [])
    world = _world(over)
    chosen = read.only(case) if case else read
    if listing:
        _cases(chosen, checks=bool(case))
        return
    out = out or Path("out") / f"suite-{read.key}{'' if over == 'simulator' else f'-{over}'}"
    result, page = _run(
        chosen, named, runs, workers, executor_of(executor, batch), world, out, junit, case or []
    )
    if as_json:
        from paceline.suite import writing

        documents.say(writing.verdicts(result))
    else:
        _show(result, page)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _named(read: Suite, scheme: list[str], queue: list[str]) -> list[str]:
    """The suite's subjects. Raises PacelineError for subjects of another kind."""
    own, other, word = (scheme, queue, "queue") if read.kind == "scheme" else (queue, scheme, "scheme")
    if other:
        raise PacelineError(f"--{word} {other[0]}: {read.name} tests a {read.kind}: --{read.kind}")
    return own


def _world(over: str) -> World:
    """The world to run in. Raises PacelineError for an unknown one, and if nothing can run in real time here."""
    from paceline import realtime
    from paceline.studies.study import World
    from paceline.suite.running import OVER

    world = next((world for world, word in OVER.items() if word == over), None)
    if world is None:
        raise PacelineError(f"--over {over}: must be {' or '.join(OVER.values())}")
    if world is World.EMULATED and (why := realtime.refused()):
        raise PacelineError(f"--over {over}: {why}")
    return world


def _run(
    chosen: Suite,
    named: list[str],
    runs: int | None,
    workers: int | None,
    executor: ExecutorLike | None,
    world: World,
    out: Path,
    junit: Path | None,
    cases: list[str],
) -> tuple[Result, Path]:
    # Importing matplotlib and others is slow: not for --list and --help.
    from paceline import files, realtime
    from paceline.results.store import Store, alone_in
    from paceline.studies import reproduction
    from paceline.studies.study import World
    from paceline.suite import junit as xml
    from paceline.suite import running, writing

    subjects = running.subjects_of(chosen, named)
    runs = running.runs_of(chosen, world) if runs is None else runs
    compiled, _ = running.plan(chosen, subjects, world)
    planned = reproduction.plan(compiled, runs)
    layout.say(layout.stderr(), _announced(chosen, planned, out, workers, world))
    with alone_in(out, writing.KIND):
        writing.begin(chosen, subjects, runs, out)
        with progress(chosen.key, "runs" if world is World.SIMULATED else "s") as show:
            result = running.run(
                chosen,
                subjects,
                runs=runs,
                workers=workers,
                executor=executor,
                store=Store(out),
                progress=show,
                real_time=None if world is World.SIMULATED else realtime.Emulator(),
            )
        result.chosen = cases
        page = writing.write(result, out)
    if junit is not None:
        files.write_whole(junit, xml.xml(result))
    return result, page


def _announced(chosen: Suite, planned: Plan, out: Path, workers: int | None, world: World) -> str:
    """What is about to run, and the time it takes."""
    from paceline.emulator.realtime_queue import Budget
    from paceline.simulate.points import workers_of_machine
    from paceline.studies import reproduction
    from paceline.studies.study import World

    said = f"{chosen.key}: {len(chosen.cases)} case{'s' if len(chosen.cases) != 1 else ''}, {planned.runs_in_all} runs"
    if world is World.EMULATED:
        budget = Budget.of_machine(workers)
        beside = "one after the other" if budget.runs == 1 else f"up to {budget.runs} side by side"
        takes = duration(planned.real_seconds(budget))
        return f"{said} in real time, {beside}: about {takes}, less what is there from before."
    kept, spared_s = planned.kept(out)
    at_a_time = workers if workers is not None else workers_of_machine()
    takes = duration(reproduction.seconds_on(max(0.0, planned.seconds - spared_s), at_a_time))
    return f"{said}{f', {kept} of them there from before' if kept else ''}: about {takes}."


def _show(result: Result, page: Path) -> None:
    """Prints a table with a row for each check, and what fails or is undecided in words."""
    from paceline.suite import wording

    console = layout.stdout()
    several = len(result.subjects) > 1
    rows: list[tuple[str, ...]] = []
    for answer in result.answers:
        for n, checked in enumerate(answer.checks):
            case = "" if n else answer.case.key
            subject = "" if n else answer.subject.text
            measured, required = wording.ours(checked), wording.required(checked)
            rows.append(
                (case, subject, checked.check.label, measured, required, str(checked.verdict.outcome))
            )
    heads = ("case", str(result.suite.kind), "number", "measured", "asked", "verdict")
    columns = [
        Column(head, cells, right=head in ("measured", "asked"), repeat=head in ("case", "number"))
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
        if several or head != str(result.suite.kind)
    ]
    names = ", ".join(subject.text for subject in result.subjects)
    layout.show(console, [Layout(f"{result.suite.title}: {names}", columns)])
    said = [f"{a.case.key}, {a.subject.text}: {line}" for a in result.answers for line in wording.why(a)]
    if said:
        layout.say(console, "\n" + "\n".join(said))
    layout.say(console, f"\n{wording.summed(result)}. It took {duration(result.seconds)}.")
    layout.say(
        console, f"The page: {page}\nThe report (report.md), junit.xml, figures and tables lie beside it."
    )


def _suites(read: list[Suite]) -> None:
    from rich.text import Text

    console = layout.stdout()
    table = layout.plain()
    for head in ("suite", "what", "tests"):
        table.add_column(head, overflow="fold")
    for head in ("cases", "takes"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in read:
        table.add_row(*map(Text, (one.key, one.title, f"a {one.kind}", str(len(one.cases)), _takes(one))))
    console.print(table)


def _takes(one: Suite) -> str:
    """The time that a suite takes with its default subjects."""
    from paceline.simulate.points import workers_of_machine
    from paceline.studies import reproduction
    from paceline.suite import running

    if not one.cases:
        return "–"
    compiled, _ = running.plan(one, running.subjects_of(one, one.default[:1]))
    planned = reproduction.plan(compiled, one.runs)
    return duration(reproduction.seconds_on(planned.seconds, workers_of_machine()))


def _cases(chosen: Suite, *, checks: bool) -> None:
    from rich.text import Text

    from paceline.suite.running import Checked
    from paceline.suite.verdict import Outcome, Verdict
    from paceline.suite.wording import required

    console = layout.stdout()
    layout.say(console, f"{chosen.key}: {chosen.title}\nSource: {chosen.source}\n\n")
    table = layout.plain()
    heads = ("case", "number", "what", "asked", "by") if checks else ("case", "section", "what", "numbers")
    for head in heads:
        table.add_column(head, overflow="fold")
    for case in chosen.cases:
        if not checks:
            table.add_row(*map(Text, (case.key, case.section, case.title, str(len(case.checks)))))
        for check in case.checks if checks else ():
            words = required(Checked(check, None, (), Verdict(Outcome.NUMBER, "")))
            table.add_row(*map(Text, (case.key, check.label, check.says, words or "–", check.source)))
    console.print(table)
