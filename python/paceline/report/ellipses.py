"""Ellipses of one metric over another, each run a point, as RFC 7928 (section 2.7) draws delay and goodput.

"We take each individual run as one point, and then compute the 1-epsilon elliptic contour of the maximum-likelihood 2D
Gaussian distribution that explains the points", the median as a circle (Winstein and Balakrishnan, *TCP ex Machina*,
SIGCOMM 2013, section 5, as RFC 7928 quotes them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse

from paceline.report import colours
from paceline.report.colours import COLOURS, MARKERS
from paceline.report.numbers import number
from paceline.report.picture import Picture, tag
from paceline.studies.points import Place, places
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import Plot, Study


@dataclass(frozen=True)
class Contour:
    """One standard deviation around the runs of a point: axes in the units of x and y, turned by an angle."""

    median: tuple[float, float]
    mean: tuple[float, float]
    width: float
    height: float
    degrees: float


def contour(x: Sequence[float], y: Sequence[float]) -> Contour | None:
    """The contour of runs that have both values; None without any."""
    points = np.array([p for p in zip(x, y, strict=True) if math.isfinite(p[0]) and math.isfinite(p[1])])
    if not len(points):
        return None
    median, mean = np.median(points, axis=0), points.mean(axis=0)
    # Maximum likelihood divides by n, not n - 1.
    lengths, axes = np.linalg.eigh(np.cov(points.T, bias=True))
    width, height = 2 * np.sqrt(np.maximum(lengths[::-1], 0.0))
    degrees = math.degrees(math.atan2(axes[1, 1], axes[0, 1]))
    return Contour(
        (float(median[0]), float(median[1])),
        (float(mean[0]), float(mean[1])),
        float(width),
        float(height),
        degrees,
    )


def draw(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot, page: str) -> None:
    """Draws an ellipse for each point of the study, its median a circle; a series has one colour."""
    pens = dict(zip((s.key for s in study.series), colours.of_series(study), strict=True))
    of_x, of_y = reproduction.paper.metrics[str(plot.over)], reproduction.paper.metrics[plot.metric]
    for place, series, level in places(study):
        measured = reproduction.values.get(place, {})
        found = contour(measured.get(of_x.key, []), measured.get(of_y.key, []))
        if found is None:
            continue
        pen = COLOURS[pens[series.key]]
        patch = Ellipse(found.mean, found.width, found.height, angle=found.degrees, facecolor=pen, alpha=0.25)
        axes.add_patch(patch)
        look: dict[str, Any] = {
            "marker": MARKERS[pens[series.key] % len(MARKERS)], "markersize": 5, "linestyle": "none", "color": pen,
            "markerfacecolor": page if series.dashed else pen,
        }  # fmt: skip
        x, y = found.median
        tag([patch, *axes.plot([x], [y], **look)], series.key)
        drawn.enter(Line2D([], [], label=series.label, **look), series.key)
        name = f"{series.label}, {level.label}" if level.label else series.label
        text = f"{name}: median {number(y)} {of_y.unit} at {number(x)} {of_x.unit}"
        drawn.mark(axes, x, y, series.key, text, place=Place(study.key, series.key, level.label))
        if len(study.levels) > 1:
            axes.annotate(
                level.label, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=6.5, color=pen
            )
    axes.autoscale_view()
