"""Links from a page's points into the playground, if it was built and lies beside the page."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

from paceline import _core, files, playground
from paceline.errors import PacelineWarning
from paceline.studies import points
from paceline.studies.points import FIRST_SEED, Place
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import Study, World

REAL = "Points in real time do not open in the playground: they take a path on this host."
OWN = "Points with a controller that is not built in do not open in the playground."
CHANGED = (
    "Points whose scenario changes with the seed do not open in the playground: a link holds one scenario."
)
LONG = "Points with long traces do not open in the playground: a link does not hold them."


@dataclass(frozen=True)
class Opening:
    """A link, or why there is none."""

    href: str = ""
    why: str = ""


def put_beside(folder: Path) -> bool:
    """Copies the playground into a page's folder, replacing an earlier build's; returns whether there is one. Raises
    StorageError."""
    page, beside = playground.page(), folder / playground.NAME
    if page is None:
        files.remove(beside)
        return False
    files.copy_whole(page, beside)
    return True


def of_scenario(scenario: _core.Scenario, runs: int = 1) -> Opening:
    """The link to a scenario, with its traces."""
    if playground.unplayable(scenario) is not None:
        return Opening(why=OWN)
    try:
        return Opening(f"{playground.NAME}#{playground.link(scenario, runs=runs)}")
    except playground.TooLongError:
        return Opening(why=LONG)


def of_point(reproduction: Reproduction, study: Study, place: Place) -> Opening:
    """The link to a point as it was run: with its settings, and over the same seeds."""
    if points.world(study, place) is World.EMULATED:
        return Opening(why=REAL)
    if study.change:
        return Opening(why=CHANGED)
    with warnings.catch_warnings():
        # warnings appeared before it ran
        warnings.simplefilter("ignore", PacelineWarning)
        scenario = points.point(reproduction.paper, study, place).scenario
        if scenario.seed != FIRST_SEED:
            scenario = scenario.set("seed", FIRST_SEED)
        return of_scenario(scenario, reproduction.runs)
