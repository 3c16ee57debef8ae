"""Plots of share over delay: each run a dot, each scheme an ellipse of one standard deviation with its median."""

from __future__ import annotations

import math

import matplotlib
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from matplotlib.ticker import FuncFormatter, MultipleLocator

from paceline.leagues.running import League
from paceline.report import picture
from paceline.report.colours import COLOURS, marker_of
from paceline.report.ellipses import contour
from paceline.report.figures import STYLE
from paceline.report.picture import POINTS_PER_INCH, Picture, tag

OVERALL = "overall"
_SIZE_IN = (4.0, 3.1)
_MIN_MS = 0.1
"""Smaller added delays are drawn at this value, because the axis is logarithmic."""


def draw_all(league: League) -> dict[str, Picture]:
    """A cloud for each class, and one over all."""
    drawn = {OVERALL: _draw(league, league.runs, "All classes", medians=True)}
    for of in league.classes:
        rows = league.runs.filter(pl.col("class") == of.key)
        drawn[of.key] = _draw(league, rows, of.title, medians=False)
    return drawn


def _draw(league: League, rows: pl.DataFrame, title: str, *, medians: bool) -> Picture:
    """Draws a cloud; with `medians` a dot is the median of a class, else a run."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=_SIZE_IN, dpi=POINTS_PER_INCH, layout="constrained")
        head = figure.suptitle(title, fontsize=9, x=0.02, ha="left", gid=picture.TITLE)
        drawn = Picture(figure, head)
        axes = figure.subplots()
        for n, entrant in enumerate(league.entrants):
            own = rows.filter(pl.col("scheme") == entrant.label)
            _cloud(drawn, axes, n, entrant.label, own, medians=medians)
        axes.set_xlabel("Added delay, 95 % (ms)")
        axes.set_ylabel("Share of what is fair (%)")
        axes.xaxis.set_major_locator(MultipleLocator(1))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{10**x:g}"))
        axes.autoscale_view()
        low = min([*(mark.y for mark in drawn.marks), float(rows["share"].min() or 0.0) * 100])  # type: ignore[arg-type]
        axes.set_ylim(20 * math.floor(low / 20) - 4, 106)
        axes.margins(x=0.06)
        drawn.legend()
        return drawn


def _cloud(drawn: Picture, axes: Axes, n: int, label: str, rows: pl.DataFrame, *, medians: bool) -> None:
    pen, marker = COLOURS[n % len(COLOURS)], marker_of(n)
    rows = rows.with_columns(
        x=((pl.col("delay_s") - pl.col("least_delay_s")) * 1e3).clip(lower_bound=_MIN_MS).log10(),
        y=pl.col("share").clip(upper_bound=1.0) * 100,
    ).drop_nulls("x")
    if medians:
        rows = rows.group_by("class", maintain_order=True).agg(pl.col("x", "y").median())
    x, y = rows["x"].to_list(), rows["y"].to_list()
    found = contour(x, y)
    if found is None:
        return
    patch = Ellipse(found.mean, found.width, found.height, angle=found.degrees, facecolor=pen, alpha=0.13)
    axes.add_patch(patch)
    dots = axes.plot(x, y, linestyle="none", marker=".", markersize=2.5, color=pen, alpha=0.45)
    across, up = found.median
    look = {
        "marker": marker,
        "markersize": 6,
        "linestyle": "none",
        "color": pen,
        "markeredgecolor": "white",
        "markeredgewidth": 0.6,
    }
    middle = axes.plot([across], [up], **look, zorder=5)  # type: ignore[arg-type]
    tag([patch, *dots, *middle], label)
    drawn.enter(Line2D([], [], label=label, **look), label)  # type: ignore[arg-type]
    drawn.mark(axes, across, up, label, f"{label}: median {up:.0f} % at {_ms(10**across)} more")
    if medians:
        for dot, class_x, class_y in zip(rows["class"], x, y, strict=True):
            text = f"{label}, {dot}: median {class_y:.0f} % at {_ms(10**class_x)} more"
            drawn.mark(axes, class_x, class_y, label, text)


def _ms(value: float) -> str:
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"
