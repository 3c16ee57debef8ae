"""The data of scatter plots: one metric over another, of all points of a pool, or of each point of a study."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.statistics import Estimate
from paceline.studies import measure, points
from paceline.studies.metric import Metric
from paceline.studies.points import Place
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import Plot, Study


def pooled(
    reproduction: Reproduction, study: Study, series: str, plot: Plot
) -> list[tuple[Place, float, float]]:
    """Every point of the pool's studies in one series, with x and y: means over its runs."""
    found = []
    for key in study.pool:
        for level in reproduction.paper.studies[key].levels:
            place = Place(key, series, level.label)
            measured = reproduction.values.get(place)
            if measured:
                x, y = measure.mean(measured[str(plot.over)]).mean, measure.mean(measured[plot.metric]).mean
                if x is not None and y is not None:
                    found.append((place, x, y))
    return found


@dataclass(frozen=True)
class Spot:
    """A point of a study: its level and series by index, and its position."""

    place: Place
    label: str
    series: int
    level: int
    x: Estimate
    y: Estimate
    across: tuple[float, float]
    """How far its interval extends to the left and to the right."""
    up: tuple[float, float]
    """How far it extends below and above."""


def spots(reproduction: Reproduction, study: Study, plot: Plot) -> list[Spot]:
    """The points of a study that were run and have both values."""

    def metric(key: str) -> Metric:
        return reproduction.paper.metrics[key]

    found = []
    for place, series, level in points.places(study):
        measured = reproduction.values.get(place)
        if not measured:
            continue
        x, y = measure.mean(measured[str(plot.over)]), measure.mean(measured[plot.metric])
        if x.mean is None or y.mean is None:
            continue
        label = level.label if len(study.series) == 1 else f"{level.label}, {series.label}"
        across, up = metric(str(plot.over)).reach(x), metric(plot.metric).reach(y)
        found.append(
            Spot(place, label, study.series.index(series), study.level(level.label), x, y, across, up)
        )
    return found
