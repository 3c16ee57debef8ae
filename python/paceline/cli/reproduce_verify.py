"""`paceline reproduce --verify`: verifies a paper's points, or writes the results that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paceline.cli.progress import duration, progress
from paceline.errors import PacelineError
from paceline.tables import layout
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.emulator.realtime_queue import Runner
    from paceline.papers.verifying import Compared, Made, Verification
    from paceline.simulate.executor_like import ExecutorLike
    from paceline.statistics import Estimate
    from paceline.studies.paper import Paper
    from paceline.studies.points import Place
    from paceline.studies.reproduction import Plan

DIFFERS = 1
"""The exit code if a point differs."""


def verify(
    whole: Paper,
    figure: str | None,
    runs: int | None,
    workers: int | None,
    executor: ExecutorLike | None,
    out: Path,
    *,
    simulated: bool,
    write: bool,
) -> None:
    """Makes a paper's runs, or reuses those in `out` from this build, and compares them with what the paper ships; with
    `write`, makes the paper ship them. Raises typer.Exit if one differs, and what `reproduction.run` raises."""
    from paceline.papers import verifying, writing
    from paceline.results.store import Store, alone_in
    from paceline.studies import reproduction

    if write and (figure is not None or runs not in (None, whole.runs)):
        raise PacelineError(
            f"--write rewrites what is shipped for all figures, with the default {whole.runs} runs: leave out "
            "--figure and --runs"
        )
    console = layout.stdout()
    chosen = whole if figure is None else whole.only(figure)
    runs = chosen.runs if runs is None else runs
    known = {} if write else verifying.shipped(chosen)
    planned = reproduction.plan(chosen, runs)
    real_time, left_out = _real_time(chosen, planned, simulated=simulated, write=write)
    writing.check_paper(out, whole)
    layout.say(console, _before(whole, planned, out, workers, real=real_time is not None) + left_out + "\n")
    with alone_in(out):
        with progress(whole.key, "s" if real_time else "runs") as show:
            made = verifying.make(
                chosen,
                runs,
                workers=workers,
                executor=executor,
                store=Store(out),
                progress=show,
                real_time=real_time,
            )
        if write:
            _say_written(whole, made)
            return
        found = verifying.compare(chosen, figure, runs, made, known)
        path = found.write(out)
    _say(whole, found)
    layout.say(console, f"The result, and what machine gave it: {path}")
    if not found.is_confirmed:
        raise typer.Exit(DIFFERS)


def _before(whole: Paper, planned: Plan, out: Path, workers: int | None, *, real: bool) -> str:
    """The planned runs, and how many exist already."""
    from paceline.emulator.realtime_queue import Budget
    from paceline.simulate.points import workers_of_machine
    from paceline.studies import reproduction
    from paceline.studies.study import World

    at_a_time = workers if workers is not None else workers_of_machine()
    kept, spared_s = planned.kept(out)
    many = planned.worlds.count(World.SIMULATED)
    takes = reproduction.seconds_on(max(0.0, planned.seconds - spared_s), at_a_time)
    takes += planned.real_seconds(Budget.of_machine(workers)) if real else 0.0
    reused = (
        f"{kept} of {planned.runs * many} simulated runs are there from before, made by this very build.\n"
    )
    return (
        f"{whole.key}: {many} simulated points, {planned.runs} {'run' if planned.runs == 1 else 'runs'} each: about "
        f"{duration(takes)} with {at_a_time} at a time.\n{reused if kept else ''}"
    )


def _real_time(chosen: Paper, planned: Plan, *, simulated: bool, write: bool) -> tuple[Runner | None, str]:
    """The runner of real-time points, or None; and in words why points are left out, if any."""
    from paceline import realtime
    from paceline.papers import verifying
    from paceline.studies.study import World

    many = planned.worlds.count(World.EMULATED)
    if not many:
        return None, ""
    left_out = f"Left out: {many} points in real time, "
    if simulated:
        return None, left_out + "by --simulated.\n"
    if planned.real_runs < verifying.MIN_RUNS:
        return None, left_out + "whose means have no interval below two runs.\n"
    if not write and not (chosen.folder / verifying.INTERVALS).exists():
        return None, left_out + f"of which the paper ships no {verifying.INTERVALS}.\n"
    if why := realtime.refused():
        return None, f"{left_out}which this machine cannot run: {why}\n"
    return realtime.Emulator(), ""


def _say_written(whole: Paper, made: Made) -> None:
    from paceline.papers import verifying

    console = layout.stdout()
    for path in verifying.write(whole, made):
        layout.say(console, f"Written: {path}")
    layout.say(console, f"{len(made.hashes)} simulated points, {len(made.real)} means in real time.")


def _say(whole: Paper, found: Verification) -> None:
    """Prints the result: bit by bit, then by interval."""
    from paceline.papers import bits

    console = layout.stdout()
    many = found.same + len(found.differing)
    if many:
        in_all = bits.seeds(found.runs) if found.whole == found.same else bits.seeds(1)
        layout.say(
            console, f"{found.same} of {many} points of the figures are the same bit by bit ({in_all})."
        )
    if found.differing:
        rows = [
            (*_place(one.place), one.seeds, one.shipped or "not shipped", one.here) for one in found.differing
        ]
        _table("Not the same", ("study", "series", "level", "runs", "shipped", "here"), rows)
        layout.say(
            console,
            "\nEither the simulator or the paper's scenarios differ from those that were shipped, or this machine "
            f"computes otherwise. The command of each point stands in the page that `paceline reproduce {whole.name}` "
            "writes.",
        )
    if found.compared:
        _say_compared(found.compared)


def _say_compared(compared: Sequence[Compared]) -> None:
    console = layout.stdout()
    differ = [one for one in compared if one.differs]
    places = len({one.place for one in compared})
    layout.say(
        console,
        f"{places} points in real time, by interval and not bit by bit: {len(compared) - len(differ)} of "
        f"{len(compared)} means do not differ from the shipped ones (Welch's test, Holm's correction, 95 %).",
    )
    if differ:
        rows = [
            (*_place(one.place), one.metric, _mean(one.shipped), _mean(one.here), f"{one.p_value:.2g}")
            for one in differ
        ]
        _table("Means that differ", ("study", "series", "level", "metric", "shipped", "here", "p"), rows)


def _place(place: Place) -> tuple[str, str, str]:
    return place.study, place.series, place.level


def _mean(estimate: Estimate) -> str:
    from paceline.report.numbers import plus_minus

    return plus_minus(estimate)


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    cells = zip(heads, zip(*rows, strict=True), strict=True)
    columns = [
        Column(head, of, right=False, repeat=head in ("study", "series", "level")) for head, of in cells
    ]
    layout.stdout().print()
    layout.show(layout.stdout(), [Layout(title, columns)])
