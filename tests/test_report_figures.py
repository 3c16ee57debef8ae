"""What figures of reproductions are drawn with: legends, places side by side, thinned lines, ticks."""

from __future__ import annotations

import io
import itertools
import math
import re

import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from paceline.plots import legend
from paceline.report.axes import Slots, log_ticks
from paceline.report.traces import COLUMNS, Line


@pytest.mark.parametrize("words", ["TCP", "TFRC Veno, simulated, as short"])
def test_a_long_legend_lies_within_its_figure_below_the_data(words: str) -> None:
    figure = Figure(figsize=(4, 2.75), layout="constrained")
    axes = figure.subplots()
    handles = [Line2D([], [], label=f"{words} {i}") for i in range(10)]
    legend.outside(figure, handles, "outside lower center", fontsize=7.5)
    figure.savefig(io.BytesIO())
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= axes.get_window_extent().y0
    assert axes.get_window_extent().height > 0.4 * figure.bbox.height


def test_what_was_published_has_a_place_beside_ours() -> None:
    places = Slots([1, 2, 4], 2, log=True, published=True)
    assert places.ours(2, 0) < places.published(2, 0) < places.ours(2, 1) < places.published(2, 1)
    assert places.published(1, 1) < places.ours(2, 0), "no slot of one level reaches into the next"


def test_a_long_line_is_thinned_to_what_shows() -> None:
    times = [n / 100 for n in range(50_000)]
    values = [math.sin(n / 50) for n in range(50_000)]
    values[20_000], values[30_000], values[40_000] = 9.0, -9.0, math.nan
    thin = Line(0, "one", times, values).thinned()
    assert len(thin.y) <= 2 * COLUMNS + 3
    assert {9.0, -9.0} <= set(thin.y), "peaks remain"
    assert sum(map(math.isnan, thin.y)) == 1, "and gaps"
    assert (thin.time_s[0], thin.time_s[-1]) == (times[0], times[-1])
    assert thin.time_s == sorted(thin.time_s)
    short = Line(0, "one", times[:100], values[:100])
    assert short.thinned() is short


@pytest.mark.parametrize("highest", [4.0, 30.0, 5e3, 2e6])
def test_ticks_of_a_log_axis_can_be_read(highest: float) -> None:
    figure = Figure(figsize=(4, 2.75))
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_xlim(highest / 1e4 if highest > 1e3 else highest / 4, highest)
    log_ticks(axes, "x")
    figure.savefig(io.BytesIO())
    labels = [
        label for label in axes.get_xticklabels() if axes.get_xlim()[0] <= label.get_position()[0] <= highest
    ]
    assert 3 <= len(labels) <= 10
    assert all(re.fullmatch(r"[\d.]+", label.get_text()) for label in labels), "no exponents"
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(boxes))
