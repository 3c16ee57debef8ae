"""Runs a paper's readings: the verdicts under each."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.files.paper_folders import READINGS, PaperError
from paceline.results.store import Store
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Progress
from paceline.studies import readings, reproduction
from paceline.studies.measure import Result
from paceline.studies.paper import Paper, Reading
from paceline.studies.reproduction import Plan


@dataclass(frozen=True)
class Planned:
    """A reading, the part of the paper that it may change, and the plan of its runs."""

    reading: Reading
    paper: Paper
    plan: Plan


def plan(paper: Paper, runs: int) -> list[Planned]:
    """All readings that change something in the paper's runs. Raises PaperError if one's settings are no valid
    scenario: then nothing starts."""
    found = []
    for reading in paper.readings:
        read = readings.touched(paper, reading)
        if read is None:
            continue
        try:
            found.append(Planned(reading, read, reproduction.plan(read, runs)))
        except PaperError as error:
            raise PaperError(f"{paper.name}/{READINGS}: reading {reading.key}: {error}") from None
    return found


def run(
    planned: list[Planned],
    *,
    runs: int,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    store: Store | None = None,
    progress: Progress | None = None,
) -> dict[str, list[Result]]:
    """The verdicts under each reading, only in the simulator. Runs in `store`, such as those that a reading does not
    change, are used again; `progress` counts runs. Raises as `reproduction.run` does."""
    found = {}
    before, total = 0.0, float(sum(one.plan.runs_in_all for one in planned))
    for one in planned:

        def on_progress(done: float, of: float, before: float = before, one: Planned = one) -> None:
            if progress:
                progress(before + one.plan.runs_in_all * done / max(1.0, of), total)

        found[one.reading.key] = reproduction.run(
            one.paper, runs=runs, workers=workers, executor=executor, store=store, progress=on_progress
        ).results
        before += one.plan.runs_in_all
    return found
