"""Draws a `sweeps.Chart` for print: points with their intervals, in distinct colours, markers and dashes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, LogLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform

from paceline.errors import PacelineError
from paceline.interval import Kind
from paceline.plots import legend, style
from paceline.plots.sweeps import APART, POINT, Chart, Curve
from paceline.plots.wording import along, of_path, said, texts, what
from paceline.quantities import scale, unit_of

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""One per curve, like colours and dashes, so that curves differ in grey too."""
PANEL_IN = 2.3
"""The minimum width of a panel beside others, in inches."""
FIRST_IN, NEXT_IN = 2.0, 1.5
"""Heights of the first row of panels and of others, in inches."""
LETTERS_AN_INCH = 13
"""Letters per inch of a label: 8 points, on average."""
MIN_LOG_SPAN = 8.0
"""Spans of fewer than three doublings have a linear axis."""

_RC: Any = {
    **style.RC,
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "lines.markersize": 3.8,
    "lines.linewidth": 1.0,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
}
_GREY = "#505050"
_DOTS = (0, (1, 1.5))
"""The line style of the median's intervals."""


def figure(charts: Chart | Sequence[Chart], width: str) -> Figure:
    """The figure, with a width as in `style.inches`; several charts of one sweep are panels below each other or side by
    side. Raises PacelineError for an invalid width, and for measures with curves by different paths."""
    several = [charts] if isinstance(charts, Chart) else list(charts)
    first = several[0]
    if other := next((chart for chart in several if chart.by != first.by), None):
        raise PacelineError(
            f"{other.measure} has curves by {', '.join(other.by) or 'nothing'}, {first.measure} by "
            f"{', '.join(first.by) or 'nothing'}: name paths by which both have curves"
        )
    cells = [(chart, panel) for chart in several for panel in chart.panels]
    across = style.inches(width)
    per_row = min(max(1, int(across / PANEL_IN)), 3, len(cells))
    rows = math.ceil(len(cells) / per_row)
    alike = len(several) == 1 and first.alike
    with mpl.rc_context(_RC):
        made = style.Shown(figsize=(across, FIRST_IN + NEXT_IN * (rows - 1)), layout="constrained")
        FigureCanvasAgg(made)  # which measures the legends
        grid = made.subplots(rows, per_row, sharey=alike, squeeze=False)
        spots: list[Axes] = list(grid.flatten())
        for axes in spots[len(cells) :]:
            axes.set_axis_off()
        curves = list(dict.fromkeys(curve.values for _, panel in cells for curve in panel.curves))
        for i, ((chart, panel), axes) in enumerate(zip(cells, spots, strict=False)):
            factor, _ = scale(chart.measure, chart.reach)
            for curve in panel.curves:
                _draw(axes, chart, curve, factor, curves.index(curve.values), len(curves))
            if len(chart.panels) > 1:
                axes.set_title(said(chart, chart.rest, panel.values))
            _up(axes, chart, (chart if alike else panel).reach / factor)
            _across(axes, chart, across / per_row, named=i + per_row >= len(cells))
            if len(several) > 1:
                axes.set_ylabel(_measure(chart, made.get_figheight() / rows))
        if len(several) == 1:
            label = _measure(first, made.get_figheight(), "" if alike else "; each panel has its own scale")
            if rows == 1:
                grid[0, 0].set_ylabel(label)
            else:
                made.supylabel(label, fontsize=8)
        title = textwrap.fill(", ".join(map(of_path, first.by)), int(LETTERS_AN_INCH * across))
        above, below = _curves_of(first, curves), _kinds_of(several)
        legend.outside(made, above, "outside upper center", title, **_legend_look(above))
        legend.outside(made, below, "outside lower center", **_legend_look(below))
    return made


def _measure(chart: Chart, inches: float, more: str = "") -> str:
    """The measure with its unit, in lines that fit a height."""
    _, unit = scale(chart.measure, chart.reach)
    label = _labelled(what(chart), unit or unit_of(chart.measure)) + more
    return textwrap.fill(label, int(LETTERS_AN_INCH * inches))


def _draw(axes: Axes, chart: Chart, curve: Curve, factor: float, index: int, many: int) -> None:
    """Draws a curve: a line on a numerical axis, points side by side on a categorical one."""
    look = _look(index)
    rows = curve.data.with_columns(pl.col("x") / _unit_of_x(chart)[0])
    if chart.number is None:
        rows = rows.with_columns(pl.col("x") + (index - (many - 1) / 2) * min(0.16, 0.7 / many))
    rows = rows.with_columns(pl.col("mean", "low", "high", "median", "median_low", "median_high") / factor)
    rows = rows.with_columns(point=POINT)
    if chart.number is not None:
        axes.plot(rows["x"], rows["point"].fill_null(math.nan), zorder=2, **{**look, "marker": ""})
    # At a number, points and bars of several curves stand side by side, a fixed distance apart on paper.
    aside = 0.0 if chart.number is None else (index - (many - 1) / 2) * _ASIDE_IN
    moved = axes.transData + ScaledTranslation(aside, 0.0, axes.figure.dpi_scale_trans)
    for kind, (low, high) in _BOUNDS.items():
        own = rows.filter(pl.col("kind") == kind.value)
        middle, half = (own[low] + own[high]) / 2, (own[high] - own[low]) / 2
        dots = _DOTS if kind is Kind.MEDIAN else "-"
        _bars(axes, own["x"].to_list(), middle.to_list(), half.to_list(), look["color"], dots, moved)
    for face, which in _FACES.items():
        own = rows.filter(which, pl.col("mean").is_not_null())
        points = {**look, "linestyle": "none", "markerfacecolor": face or look["color"]}
        if len(own):  # matplotlib would reserve space for an empty set of points
            axes.plot(own["x"], own["point"], zorder=3, clip_on=False, transform=moved, **points)
    apart = rows.filter(APART)
    if len(apart):
        axes.plot(
            apart["x"], apart["mean"], zorder=3, clip_on=False, color=look["color"], transform=moved, **_MEAN
        )


_ASIDE_IN = 0.035
"""The distance of neighbouring curves' points at one number, in inches."""

_BOUNDS = {Kind.T: ("low", "high"), Kind.MEDIAN: ("median_low", "median_high")}
_MEAN: dict[str, Any] = {"marker": "x", "linestyle": "none"}
_HOLLOW = (pl.col("kind") != Kind.T.value) & (pl.col("n") > 1)
"""Whether a point of several runs has no interval of its mean."""
_FEW = "#bbbbbb"
"""The fill of points with too few runs for any interval."""
_FACES = {
    None: ~_HOLLOW,
    "white": _HOLLOW & (pl.col("kind") != Kind.NONE.value),
    _FEW: _HOLLOW & (pl.col("kind") == Kind.NONE.value),
}
"""The fill of each kind of points: None is the curve's colour."""


def _bars(
    axes: Axes,
    x: list[float],
    middle: list[float],
    half: list[float],
    colour: str,
    dots: Any,
    moved: Transform,
) -> None:
    if x:
        bars = axes.errorbar(
            x,
            middle,
            half,
            fmt="none",
            ecolor=colour,
            elinewidth=0.8,
            capsize=2,
            capthick=0.8,
            transform=moved,
        )
        bars.lines[2][0].set_linestyle(dots)


def _look(index: int) -> dict[str, Any]:
    """Colour, marker and dashes of a curve."""
    dashes = style.STYLES[index % len(style.STYLES)]
    return {"color": style.PALETTE[index], "marker": MARKERS[index], "linestyle": dashes}


def _unit_of_x(chart: Chart) -> tuple[float, str]:
    """The divisor of the numbers along the axis, and the resulting unit."""
    if chart.number is None or chart.number == chart.x:
        return 1.0, ""
    sizes = [abs(x) for x, _ in chart.ticks]
    factor, unit = scale(chart.number, float(np.median(sizes)))
    return factor, unit or unit_of(chart.number)


def _up(axes: Axes, chart: Chart, reach: float) -> None:
    """The y axis: from zero to a little beyond `reach`, or logarithmic."""
    if not _is_geometric_up(chart):
        axes.set_ylim(0, 1.05 * reach or 1.0)
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def _across(axes: Axes, chart: Chart, inches: float, *, named: bool) -> None:
    """The x axis: its scale, ticks at the values that were run, and a label in the last row."""
    factor, unit = _unit_of_x(chart)
    at = [x / factor for x, _ in chart.ticks]
    if chart.number is None:
        axes.set_xlim(-0.5, len(at) - 0.5)
        axes.grid(visible=False, axis="x")
        letters = max(5, int(inches * (LETTERS_AN_INCH - 2) / len(at)))
        names = [said(chart, [chart.x], [value]) for _, value in chart.ticks]
        texts = [textwrap.fill(name, letters, break_long_words=False) for name in names]
        long = max(len(line) for text in texts for line in text.split("\n")) > letters
        axes.set_xticks(at, texts, rotation=25 if long else 0, ha="right" if long else "center")
    else:
        if is_geometric(at):
            axes.set_xscale("log")
        _ticks(axes, at, inches)
    if named:
        axes.set_xlabel(_labelled(along(chart), unit))
    else:
        axes.tick_params(labelbottom=False)


def _labelled(what: str, unit: str) -> str:
    return f"{what} ({unit})" if unit else what


def _ticks(axes: Axes, at: list[float], inches: float) -> None:
    """A tick at each value that was run, if there is space; else matplotlib's."""
    places = axes.transData.transform([(x, 0) for x in at])[:, 0]
    span = (places.max() - places.min()) or 1.0
    gaps = np.diff(np.sort(places)) / span * (inches - 0.8)
    texts = [f"{x:.6g}" for x in at]
    if all(
        gap > 0.07 * max(len(a), len(b)) + 0.04 for gap, a, b in zip(gaps, texts, texts[1:], strict=False)
    ):
        axes.xaxis.set_major_locator(FixedLocator(at))
        axes.xaxis.set_major_formatter(FixedFormatter(texts))
        axes.xaxis.set_minor_locator(NullLocator())
    elif axes.get_xscale() == "log":
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())


def is_geometric(values: Sequence[float]) -> bool:
    """Whether sorted values are spaced geometrically: over at least three doublings, their ratios vary less than their
    differences."""
    x = np.array(values, dtype=float)
    if len(x) < 3 or x.min() <= 0 or x.max() / x.min() < MIN_LOG_SPAN:
        return False
    even, ratios = np.diff(x), np.diff(np.log(x))
    return bool(ratios.max() / ratios.min() < even.max() / even.min())


def _is_geometric_up(chart: Chart) -> bool:
    """Whether the measure suits a logarithmic axis: every curve changes by a factor of ten or more, and none is 0."""
    if chart.number is None or not is_geometric([x for x, _ in chart.ticks]):
        return False
    minimum = chart.data.select("mean", "low", "median_low").min_horizontal().min()
    wide = [
        (curve.data["mean"].max() or 0) >= 10 * (curve.data["mean"].min() or 0)  # type: ignore[operator]
        for panel in chart.panels
        for curve in panel.curves
    ]
    return isinstance(minimum, float) and minimum > 0 and all(wide)


def _curves_of(chart: Chart, curves: Sequence[tuple[Any, ...]]) -> list[Line2D]:
    """The legend entries of the curves, if there are several."""
    joined = {} if chart.number is not None else {"linestyle": "none"}
    names = [", ".join(texts(chart, chart.by, values)) for values in curves]
    handles = [Line2D([], [], label=name, **{**_look(i), **joined}) for i, name in enumerate(names)]
    return handles if len(handles) > 1 else []


def _kinds_of(charts: Sequence[Chart]) -> list[Line2D]:
    """The legend entries of points with another interval than the mean's."""
    hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "color": _GREY}
    kinds = {kind for chart in charts for kind in chart.data.filter(_HOLLOW)["kind"]}
    found = []
    if Kind.MEDIAN in kinds:
        found.append(Line2D([], [], label="median and its interval", linestyle=_DOTS, **hollow))
    if not all(chart.data.filter(APART).is_empty() for chart in charts):
        found.append(Line2D([], [], label="mean beyond it", color=_GREY, **_MEAN))
    if Kind.RUNS in kinds:
        found.append(Line2D([], [], label="most runs equal: no interval", linestyle="none", **hollow))
    if Kind.NONE in kinds:
        few = {**hollow, "linestyle": "none", "markerfacecolor": _FEW}
        found.append(Line2D([], [], label="too few runs for an interval", **few))
    return found


def _legend_look(handles: Sequence[Line2D]) -> dict[str, Any]:
    """Legend options: lines with dashes need more space than markers."""
    lines = any(handle.get_linestyle() != "None" for handle in handles)
    return {"columnspacing": 1.2, "handlelength": 2.4 if lines else 1.0, "handletextpad": 0.5}
