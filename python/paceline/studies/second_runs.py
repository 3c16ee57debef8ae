"""The second runs of studies with a change at an instant that the first runs determine: see `changes`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.files.paper_folders import PaperError
from paceline.results.results import RunRecord
from paceline.simulate.points import Point
from paceline.studies import measure, points
from paceline.studies.changes import Change
from paceline.studies.metric import EACH
from paceline.studies.paper import Paper
from paceline.studies.points import Place


@dataclass(frozen=True)
class SecondRuns:
    """The second runs of one place."""

    place: Place
    change: Change
    firsts: Sequence[RunRecord]
    instants: tuple[float, ...]
    """The instant of each first run, in seconds; nan if it never comes."""

    @property
    def never(self) -> bool:
        """Whether some run never reaches the instant: then there are no second runs, and the change is unknown."""
        return not all(map(math.isfinite, self.instants))

    def points(self, paper: Paper) -> list[Point]:
        """The points to run, one for each seed. Raises PaperError."""
        study = paper.studies[self.place.study]
        if self.never:
            return []
        pairs = zip(self.firsts, self.instants, strict=True)
        return [points.point(paper, study, self.place, at_s=at_s, seed=first.seed) for first, at_s in pairs]

    def check(self, paper: Paper, made: Sequence[RunRecord]) -> None:
        """Raises PaperError if a second run differs from the first one before the instant: a change must not affect its
        own instant."""
        for first, then, record in zip(self.instants, _instants(paper, self.change, made), made, strict=True):
            if then != first:
                raise PaperError(
                    f"{paper.name}/{paper.file}: {self.place.study}, {self.place.series}: with seed {record.seed} "
                    f"`{self.change.metric}` is {first:g} s, but {then:g} s with the settings of `then`: these must "
                    "not change the run before the instant"
                )


def of_place(paper: Paper, place: Place, firsts: Sequence[RunRecord]) -> SecondRuns | None:
    """The second runs of a place, after its first runs; None if nothing changes there."""
    change = paper.studies[place.study].change
    if change is None:
        return None
    return SecondRuns(place, change, firsts, tuple(_instants(paper, change, firsts)))


def unknown(paper: Paper, runs: int) -> dict[str, list[float]]:
    """The metrics of a place without second runs: no value in any run."""
    return {key: [math.nan] * runs for key, metric in paper.metrics.items() if metric.rows != EACH}


def _instants(paper: Paper, change: Change, records: Sequence[RunRecord]) -> list[float]:
    # An expression may use any metric above it; a metric of a recording needs no other.
    metric = paper.metrics[change.metric]
    wanted = paper.metrics if metric.expression else {change.metric: metric}
    return [measure.of_run(wanted, record.summary, record.series)[change.metric] for record in records]
