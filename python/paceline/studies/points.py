"""The points to run of a paper's studies, and the command that repeats one of them."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from paceline.errors import ScenarioError
from paceline.files.paper_folders import PaperError
from paceline.scenarios.scenario import load
from paceline.simulate.points import Point
from paceline.studies.paper import Paper
from paceline.studies.study import Level, Series, Settings, Study, World

FIRST_SEED = 1
"""The first of the seeds that all points of a paper share."""


@dataclass(frozen=True)
class Place:
    """A point's place: a study, and one of its series at one of its levels."""

    study: str
    series: str
    level: str


def places(study: Study) -> Iterator[tuple[Place, Series, Level]]:
    """The points of a study, level by level; none for a pool or a study that cannot run yet."""
    for level in study.levels:
        for series in study.series:
            yield Place(study.key, series.key, level.label), series, level


def settings(study: Study, place: Place) -> Settings:
    """The point's settings in its study's scenario: the series', then the level's, then a reading's."""
    series = next(s for s in study.series if s.key == place.series)
    own = series.settings + study.levels[study.level(place.level)].settings
    return own + tuple(
        itertools.chain.from_iterable(p.settings for p in study.parts if p.is_of(place.series, place.level))
    )


def point(
    paper: Paper, study: Study, place: Place, *, at_s: float | None = None, seed: int | None = None
) -> Point:
    """The point, ready to run; with its study's change `at_s`, and only for this seed, if they are given. Raises
    PaperError, which names the point and the mistake in its scenario.

    Name and description are the paper's in every point, so that equal points of two studies are one run.
    """
    then = study.change.settled(at_s) if study.change and at_s is not None else ()
    try:
        changes = {
            **dict(settings(study, place)),
            **dict(then),
            "name": json.dumps(paper.key, ensure_ascii=False),
            "description": '""',
        }
        scenario = load(paper.folder / str(study.scenario), changes)
    except ScenarioError as error:
        where = f"{paper.name}/{paper.file}: study.{study.key} at {place.level}, {place.series}"
        raise PaperError(f"{where}: {error}") from None
    labels = {"study": place.study, "series": place.series, "level": place.level}
    return Point(scenario, labels, None if seed is None else (seed,))


def check_change(paper: Paper, study: Study, place: Place, first: Point) -> None:
    """Raises PaperError if a study's change gives an invalid scenario, tested with an instant in mid-run."""
    if study.change:
        point(paper, study, place, at_s=first.scenario.duration_s / 2)


def world(study: Study, place: Place) -> World:
    """Where the point runs."""
    series = next(s for s in study.series if s.key == place.series)
    return study.world(series, study.levels[study.level(place.level)])


def is_left_out(study: Study, place: Place) -> bool:
    """Whether the point runs only in the full form, and this is the short one."""
    return study.levels[study.level(place.level)].full and world(study, place) is World.EMULATED


def runs_of(paper: Paper, where: World, runs: int) -> int:
    """The number of a point's runs if `runs` were requested: in real time the paper's limit applies."""
    return runs if where is World.SIMULATED else min(runs, paper.emulated_runs)


def command(paper: Paper, study: Study, place: Place, runs: int) -> str:
    """The command line that repeats the point with the same seeds: in the simulator it gives the same numbers."""
    path = paper.place / str(study.scenario)
    where = world(study, place)
    runs = runs_of(paper, where, runs)
    if study.change:
        # Each seed has its own scenario.
        of = [f"--{study.change.tests}", place.series, "--case", study.key, "--runs", str(runs)]
        return shlex.join(["paceline", "suite", paper.name, *of])
    words = ["paceline", "run" if where is World.SIMULATED else "emulate", path.as_posix()]
    for path_in, value in settings(study, place):
        words += ["--set", f"{path_in}={value}"]
    return shlex.join([*words, "--seed", str(FIRST_SEED), "--runs", str(runs)])
