"""Axes of a reproduction's figures: readable ticks, and slots side by side for points that would overlap."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from paceline.studies.study import Plot, Study

_LETTER_POINTS = 5.2
"""The mean width of a letter in a tick label, in points."""
_SLOT = 0.026
"""The widest step between neighbouring slots, as a share of the axis."""
_USED_SHARE = 0.8
"""The share of the gap between two levels that the slots may take."""


def plain(value: float) -> str:
    """A number without an exponent."""
    if value == 0 or not math.isfinite(value):
        return "0"
    decimals = max(0, -math.floor(math.log10(abs(value))) + 2)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def log_ticks(axes: Axes, which: str) -> None:
    """Ticks of a logarithmic axis, as many as are readable, without exponents."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    decades = math.log10(high / low) if low > 0 else 3.0
    subs: tuple[float, ...] = (1.0, 2.0, 5.0) if decades < 2.2 else (1.0, 3.0) if decades < 3.2 else (1.0,)
    if decades < 0.8:
        subs = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    axis.set_major_locator(LogLocator(subs=subs, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(NullFormatter())


def level_ticks(axes: Axes, study: Study, plot: Plot, across_points: float) -> None:
    """A tick at each level with the level's label; slanted if the labels would touch."""
    if plot.log_x:
        axes.set_xscale("log", base=2)
    labels = [
        level.label.removesuffix(f" {study.axis_unit}") if study.axis_unit else level.label
        for level in study.levels
    ]
    xs = [math.log2(level.x) if plot.log_x else level.x for level in study.levels]
    axes.xaxis.set_major_locator(FixedLocator([level.x for level in study.levels]))
    axes.xaxis.set_minor_locator(NullLocator())
    placed = sorted(zip(xs, labels, strict=True))
    span = (placed[-1][0] - placed[0][0]) * 1.1 or 1.0
    tight = any(
        (b - a) / span * across_points < (len(p) + len(q) + 2) / 2 * _LETTER_POINTS
        for (a, p), (b, q) in itertools.pairwise(placed)
    )
    if tight:
        axes.set_xticklabels(labels, rotation=40, ha="right", rotation_mode="anchor")
    else:
        axes.set_xticklabels(labels)


def wrapped(label: str, room_points: float) -> str:
    """A label in as many lines as its room needs."""
    return textwrap.fill(label, width=max(10, int(room_points / _LETTER_POINTS)))


class Slots:
    """Slots around each level of a study: for every series our point and, next to it, the published ones."""

    def __init__(self, xs: Sequence[float], series: int, *, log: bool, published: bool) -> None:
        self._log = log and min(xs, default=0) > 0
        self._each = 2 if published else 1
        self._count = series * self._each
        at = sorted({self._to(x) for x in xs})
        span = (at[-1] - at[0]) if len(at) > 1 else 1.0
        gap = min((b - a for a, b in itertools.pairwise(at)), default=span)
        self._step = min(_SLOT * span, _USED_SHARE * gap / max(1, self._count))

    def _to(self, x: float) -> float:
        return math.log(x) if self._log else x

    def _shifted(self, x: float, slot: float) -> float:
        moved = self._to(x) + (slot - (self._count - 1) / 2) * self._step
        return math.exp(moved) if self._log else moved

    def ours(self, x: float, series: int) -> float:
        """The position of our point of a series."""
        return self._shifted(x, series * self._each)

    def published(self, x: float, series: int, nth: int = 0) -> float:
        """The position of a series' nth published point at this place."""
        return self._shifted(x, series * self._each + 1 + 0.5 * nth)
