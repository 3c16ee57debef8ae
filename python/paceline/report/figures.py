"""The figures of a reproduction as SVG and PNG: our values with 95 % intervals, and the published values if any.

A published number is a hollow diamond beside our point; a bound ("under 0.5") is a triangle that points to the allowed
side. No line joins them: the curves between the published numbers are unknown.
"""

from __future__ import annotations

import io
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from paceline import files
from paceline.report import colours, ellipses, picture, scatter
from paceline.report.axes import Slots, level_ticks, log_ticks, wrapped
from paceline.report.colours import COLOURS, HATCHES, MARKERS
from paceline.report.numbers import number, plus_minus, unit_of
from paceline.report.picture import POINTS_PER_INCH, PUBLISHED, Picture, tag
from paceline.report.traces import has_names, traces
from paceline.statistics import Estimate
from paceline.studies import measure
from paceline.studies.points import Place
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import Plot, Study

TEXT, QUIET, RULE, PAGE = "#1b1f24", "#57606a", "#d8dbe0", "#ffffff"
"""A figure's colours besides those of its series; the page substitutes its own."""
PNG_DOTS_PER_INCH = 300
_WIDTH_IN = 4.0
_AXES_POINTS = 225
"""Approximate width of a figure's axes."""

STYLE: dict[Any, Any] = {
    "font.size": 8.5,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "axes.edgecolor": QUIET,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "svg.hashsalt": "paceline",
    "svg.fonttype": "none",
}


def published_points(reproduction: Reproduction, plot: Plot) -> list[tuple[str, str, float, str | None]]:
    """(series, level, value, bound) of every published number in the plot, each once."""
    found = []
    for result in reproduction.results:
        for show in result.claim.shows:
            if show.plot == plot.key:
                value = show.value if show.value is not None else result.claim.published.value
                assert value is not None  # the loader has seen to it
                found.append((show.series, show.level, value, show.bound))
    return list(dict.fromkeys(found))


def _label(reproduction: Reproduction, metric: str) -> str:
    m = reproduction.paper.metrics[metric]
    return f"{m.label} ({m.unit})" if m.unit else m.label


def y_label(reproduction: Reproduction, plot: Plot) -> str:
    """The y axis' label."""
    return plot.label or _label(reproduction, plot.metric)


def x_label(reproduction: Reproduction, study: Study, plot: Plot) -> str:
    """The x axis' label."""
    named = f"{study.axis_label} ({study.axis_unit})" if study.axis_unit else study.axis_label
    return plot.x_label or (_label(reproduction, plot.over) if plot.over else named)


def _unit(reproduction: Reproduction, plot: Plot) -> str:
    own = unit_of(plot.label)
    return own if own or plot.label or not plot.metric else reproduction.paper.metrics[plot.metric].unit


def _with_unit(value: str, unit: str) -> str:
    return f"{value} {unit}".rstrip()


@dataclass(frozen=True)
class _Row:
    """One of our points: its level, its value, and how far its interval is drawn below and above."""

    level: int
    place: Place
    ours: Estimate
    down: float
    up: float

    @property
    def y(self) -> float:
        return self.ours.mean or 0.0


def _rows(reproduction: Reproduction, study: Study, series: str, metric: str) -> list[_Row]:
    """The levels that were run."""
    found = []
    for n, level in enumerate(study.levels):
        place = Place(study.key, series, level.label)
        runs = reproduction.values.get(place, {}).get(metric)
        ours = measure.mean(runs) if runs else None
        if ours is not None and ours.mean is not None:
            found.append(_Row(n, place, ours, *reproduction.paper.metrics[metric].reach(ours)))
    return found


def _says(reproduction: Reproduction, study: Study, plot: Plot, series: str, row: _Row) -> str:
    level = study.levels[row.level].label
    return f"{series}{f', {level}' if level else ''}: {_with_unit(plus_minus(row.ours), _unit(reproduction, plot))}"


def _draw_line(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    published = published_points(reproduction, plot)
    xs = [level.x for level in study.levels]
    slots = Slots(xs, len(study.series), log=plot.log_x, published=bool(published))
    pens, dashes = colours.of_series(study), colours.dashes(study)
    for i, series in enumerate(study.series):
        rows = _rows(reproduction, study, series.key, plot.metric)
        if not rows:
            continue
        pen, marker = COLOURS[pens[i]], MARKERS[pens[i] % len(MARKERS)]
        look: dict[str, Any] = {
            "color": pen, "linestyle": dashes[i], "marker": marker, "markersize": 4, "linewidth": 1.3,
            "markerfacecolor": PAGE if series.dashed else pen,
        }  # fmt: skip
        x = [slots.ours(xs[row.level], i) for row in rows]
        reach = ([row.down for row in rows], [row.up for row in rows])
        tag(axes.errorbar(x, [row.y for row in rows], reach, capsize=2, elinewidth=1, **look), series.key)
        drawn.enter(Line2D([], [], label=series.label, **look), series.key)
        for at, row in zip(x, rows, strict=True):
            text = _says(reproduction, study, plot, series.label, row)
            drawn.mark(axes, at, row.y, series.key, text, place=row.place)
    keys = [series.key for series in study.series]
    labels = [series.label for series in study.series]
    _publish(drawn, axes, reproduction, study, plot, slots, (keys, labels, pens))
    level_ticks(axes, study, plot, _AXES_POINTS)


def _draw_curves(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    published = published_points(reproduction, plot)
    pens, unit = colours.of_curves(plot), _unit(reproduction, plot)
    marked = [curve.marked for curve in plot.curves]
    xs = [level.x for level in study.levels]
    slots = Slots(xs, len(plot.curves), log=plot.log_x, published=bool(published))
    for i, curve in enumerate(plot.curves):
        found = measure.curve_points(reproduction.paper, study, curve, reproduction.values)
        pen = COLOURS[pens[i]]
        look: dict[str, Any] = {
            "color": pen, "linestyle": ("--" if curve.dashed else "-") if curve.joined else "none",
            "marker": MARKERS[pens[i] % len(MARKERS)] if curve.marked else "", "markersize": 4, "linewidth": 1.3,
        }  # fmt: skip
        # If the x axis has its own quantity, points stand exactly at their values.
        own = bool(plot.x_label) or not curve.marked or sum(marked) < 2
        x = [p.x if own else slots.ours(p.x, i) for p in found]
        y, half = [p.y.mean or 0.0 for p in found], [p.y.half_width or 0.0 for p in found]
        reach = half if curve.marked else None
        tag(axes.errorbar(x, y, reach, capsize=2, elinewidth=1, **look), curve.key)
        drawn.enter(Line2D([], [], label=curve.label, **look), curve.key)
        for at, p in zip(x, found, strict=True):
            level = study.levels[p.level].label
            where = f", {level}" if level else ""
            text = f"{curve.label}{where}: {_with_unit(plus_minus(p.y), unit)}"
            # An expression may use several series: link to the point of the curve's key, if there is one.
            place = Place(study.key, curve.key, level)
            drawn.mark(axes, at, p.y.mean or 0.0, curve.key, text, place=place)
    keys, labels = [c.key for c in plot.curves], [c.label for c in plot.curves]
    _publish(drawn, axes, reproduction, study, plot, slots, (keys, labels, pens))
    if plot.x_label:
        axes.set_xscale("log" if plot.log_x else "linear")
        if plot.log_x:
            log_ticks(axes, "x")
    else:
        level_ticks(axes, study, plot, _AXES_POINTS)


def _publish(
    drawn: Picture,
    axes: Axes,
    reproduction: Reproduction,
    study: Study,
    plot: Plot,
    slots: Slots,
    lines: tuple[list[str], list[str], list[int]],
) -> None:
    """Draws the published values, each beside our point that it is compared with."""
    keys, labels, pens = lines
    seen: dict[tuple[str, str], int] = {}
    for key, level, value, bound in published_points(reproduction, plot):
        i, nth = keys.index(key), seen.get((key, level), 0)
        seen[key, level] = nth + 1
        x = slots.published(study.levels[study.level(level)].x, i, nth)
        _mark(axes, x, value, bound, COLOURS[pens[i]], key)
        said = _with_unit(f"{f'{bound} ' if bound else ''}{value:g}", _unit(reproduction, plot))
        where = f", {level}" if level else ""
        text = f"{labels[i]}{where}: published {said}"
        drawn.mark(axes, x, value, key, text, name=PUBLISHED)


def _shown_levels(reproduction: Reproduction, study: Study, plot: Plot) -> list[int]:
    """The levels that have a bar; levels without runs take no space."""
    rows = (_rows(reproduction, study, series.key, plot.metric) for series in study.series)
    return sorted({row.level for of_series in rows for row in of_series})


def _draw_bars(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    lying = _lies(study, plot)
    step = 0.8 / len(study.series)
    pens = colours.of_series(study)
    keys = [series.key for series in study.series]
    shown = _shown_levels(reproduction, study, plot)

    def at(level: int, series: int) -> float:
        return shown.index(level) + (series - (len(keys) - 1) / 2) * step

    for i, series in enumerate(study.series):
        rows = _rows(reproduction, study, series.key, plot.metric)
        places, means = [at(row.level, i) for row in rows], [row.y for row in rows]
        look: dict[str, Any] = {
            "facecolor": COLOURS[pens[i]], "edgecolor": PAGE, "hatch": HATCHES[i % len(HATCHES)], "linewidth": 0,
        }  # fmt: skip
        draw_bar = axes.barh if lying else axes.bar
        tag(draw_bar(places, means, step * 0.92, **look), series.key)
        reach = ([row.down for row in rows], [row.up for row in rows])
        ends: dict[str, Any] = {"xerr" if lying else "yerr": reach}
        x, y = (means, places) if lying else (places, means)
        tag(axes.errorbar(x, y, **ends, color=TEXT, linestyle="none", capsize=2, elinewidth=1.1), series.key)
        drawn.enter(Patch(label=series.label, **look), series.key)
        for across, up, row in zip(x, y, rows, strict=True):
            text = _says(reproduction, study, plot, series.label, row)
            drawn.mark(axes, across, up, series.key, text, place=row.place)
    seen: dict[tuple[str, str], int] = {}
    for key, level, value, bound in published_points(reproduction, plot):
        if study.level(level) not in shown:
            continue
        i, nth = keys.index(key), seen.get((key, level), 0)
        seen[key, level] = nth + 1
        # Beside the interval, alternating sides.
        place = at(study.level(level), i) + step * (0.3 if nth % 2 == 0 else -0.3)
        across, up = (value, place) if lying else (place, value)
        # A mark in the bar's own colour would be invisible.
        _mark(axes, across, up, bound, TEXT, key)
        said = _with_unit(f"{f'{bound} ' if bound else ''}{value:g}", _unit(reproduction, plot))
        where = f", {level}" if level else ""
        text = f"{study.series[i].label}{where}: published {said}"
        drawn.mark(axes, across, up, key, text, name=PUBLISHED)
    labels = [textwrap.fill(study.levels[n].label, 26 if lying else 16) for n in shown]
    if lying:
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
    else:
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.grid(visible=False, axis="x")


def _mark(axes: Axes, x: float, y: float, bound: str | None, edge: str, series: str) -> None:
    marker = {None: "D", "below": "v", "above": "^"}[bound]
    lines = axes.plot(
        [x], [y], marker=marker, markersize=5.5, markerfacecolor=PAGE, markeredgecolor=edge, markeredgewidth=1.3,
        linestyle="none", zorder=5, clip_on=False,
    )  # fmt: skip
    tag(lines, series, PUBLISHED)


def _draw_spots(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    pens = colours.of_levels(study)
    units = (reproduction.paper.metrics[str(plot.over)].unit, _unit(reproduction, plot))
    for n, spot in enumerate(scatter.spots(reproduction, study, plot)):
        pen, name, key = COLOURS[pens[spot.level]], f"spot {n}", study.series[spot.series].key
        look: dict[str, Any] = {
            "color": pen, "marker": colours.marker_of(spot.level), "markersize": 6, "linestyle": "none",
            "markerfacecolor": PAGE if spot.series else pen,
        }  # fmt: skip
        x, y = spot.x.mean or 0.0, spot.y.mean or 0.0
        reach: dict[str, Any] = {"yerr": [[v] for v in spot.up], "xerr": [[v] for v in spot.across]}
        tag(axes.errorbar([x], [y], **reach, capsize=2.5, elinewidth=1.1, **look), key, name)
        drawn.enter(Line2D([], [], label=spot.label, **look), key, name)
        across, up = (_with_unit(plus_minus(v), u) for v, u in zip((spot.x, spot.y), units, strict=True))
        drawn.mark(axes, x, y, key, f"{spot.label}: {up}, at {across}", name=name, place=spot.place)
    if plot.log_x:
        axes.set_xscale("log")
        log_ticks(axes, "x")
    else:
        axes.set_xlim(left=0)


def _draw_scatter(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    units = (reproduction.paper.metrics[str(plot.over)].unit, _unit(reproduction, plot))
    for series, c in zip(study.series, colours.of_series(study), strict=True):
        look: dict[str, Any] = {
            "linestyle": "none", "marker": MARKERS[c], "markersize": 3.5, "markerfacecolor": "none",
            "color": COLOURS[c],
        }  # fmt: skip
        found = scatter.pooled(reproduction, study, series.key, plot)
        tag(axes.plot([x for _, x, _ in found], [y for *_, y in found], alpha=0.7, **look), series.key)
        drawn.enter(Line2D([], [], label=series.label, **look), series.key)
        for place, x, y in found:
            across, up = (_with_unit(number(v), u) for v, u in zip((x, y), units, strict=True))
            text = f"{series.label}, {place.level}: {up}, at {across}"
            drawn.mark(axes, x, y, series.key, text, place=place)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([0.125, 0.25, 0.5, 1, 1.5, 2, 4, 8, 16]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    if len(plot.lines_at) == 2:
        x, y = plot.lines_at
        pen: dict[str, Any] = {"color": QUIET, "linestyle": ":", "linewidth": 1.2}
        lines = axes.axvline(x, **pen), axes.axhline(y, **{**pen, "linestyle": "--", "linewidth": 0.8})
        tag(lines, PUBLISHED)
        drawn.enter(Line2D([], [], label=f"published {x:g}", **pen), PUBLISHED)


def _draw_traces(drawn: Picture, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    assert plot.trace is not None  # the loader has seen to it
    few, columns = True, max(1, len(plot.trace.columns))
    # Compare lines within a panel, not across panels.
    panels = drawn.figure.subplots(len(study.series), 1, sharex=True, sharey=columns == 1, squeeze=False)[
        :, 0
    ]
    own = colours.of_series(study)
    unit = unit_of(plot.label)
    for n, (panel, series) in enumerate(zip(panels, study.series, strict=True)):
        lines = traces(reproduction, study, series.key, plot)
        few = has_names(study, plot, len(lines))
        groups = [line.label.rpartition(", ")[2] for line in lines[::columns]] if few else []
        pens = colours.assign([("", label) for label in groups]) if len(groups) > 1 else []
        drawn.panels.append((panel, unit))
        # Draw the longest run first, so that shorter ones lie on top of it.
        for i, line in reversed(list(enumerate(lines))):
            many = list(range(len(COLOURS)))
            c = (
                pens[i // columns]
                if pens
                else own[n]
                if len(lines) <= columns
                else many[i // columns % len(many)]
            )
            look: dict[str, Any] = {
                "linestyle": "--" if line.dashed else "-", "color": COLOURS[c], "linewidth": 1,
            }  # fmt: skip
            thin = line.thinned()
            (artist,) = panel.plot(thin.time_s, thin.y, **look)
            artist.set_gid(
                picture.gid("line", series.key, f"line {i}", str(n), f"{series.label}, {line.label}")
            )
            # One legend entry for lines of the same style, valid for all panels.
            if few and len(lines) > 1:
                drawn.enter(Line2D([], [], label=line.label, **look), "", f"line {i}")
        panel.set_title(series.label, fontsize=8.5, loc="left", pad=3)
        room = panel.get_position().height * drawn.figure.get_figheight() * POINTS_PER_INCH
        panel.set_ylabel(wrapped(plot.label, room))
        panel.yaxis.set_major_locator(MaxNLocator(4))
    # Last, because setting a limit ends automatic scaling of an axis.
    for panel in panels:
        panel.set_ylim(bottom=0)
    panels[-1].set_xlabel("Time (s)")
    drawn.entries.reverse()
    drawn.legend(study.axis_label if len(study.levels) > 1 else "")


def _lies(study: Study, plot: Plot) -> bool:
    return plot.kind == "bars" and len(study.levels) > 4


def _height_in(reproduction: Reproduction, study: Study, plot: Plot) -> float:
    if plot.kind == "trace":
        return 0.9 + 1.35 * len(study.series)
    if _lies(study, plot):
        each = max(0.26, 0.12 * len(study.series))
        return each * len(_shown_levels(reproduction, study, plot)) + 0.9
    return 2.75


def draw(reproduction: Reproduction, study: Study, plot: Plot) -> Picture:
    """Draws one plot of a study."""
    with matplotlib.rc_context(STYLE):
        # An SVG has 72 points per inch, and positions of marks are in points.
        size = (_WIDTH_IN, _height_in(reproduction, study, plot))
        figure = Figure(figsize=size, dpi=POINTS_PER_INCH, layout="constrained")
        title = figure.suptitle(
            _title(study, plot, across=size[0]), fontsize=9, x=0.02, ha="left", gid=picture.TITLE
        )
        drawn = Picture(figure, title)
        if plot.kind == "trace":
            _draw_traces(drawn, reproduction, study, plot)
            return drawn
        axes = figure.subplots()
        match plot.kind:
            case "line":
                _draw_line(drawn, axes, reproduction, study, plot)
            case "bars":
                _draw_bars(drawn, axes, reproduction, study, plot)
            case "curves":
                _draw_curves(drawn, axes, reproduction, study, plot)
            case "ellipses":
                ellipses.draw(drawn, axes, reproduction, study, plot, PAGE)
            case "scatter" if not study.pool:
                _draw_spots(drawn, axes, reproduction, study, plot)
            case _:
                _draw_scatter(drawn, axes, reproduction, study, plot)
        _finish(drawn, axes, reproduction, study, plot)
        return drawn


def _finish(drawn: Picture, axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    """Adds labels, limits and legend."""
    lying = _lies(study, plot)
    across, up = x_label(reproduction, study, plot), y_label(reproduction, plot)
    room = (size := drawn.figure.get_size_inches() * POINTS_PER_INCH)[1] * 0.72
    axes.set_xlabel(wrapped(up if lying else across, size[0] * 0.8))
    axes.set_ylabel("" if lying else wrapped(up, room))
    if plot.log_y:
        axes.set_yscale("log")
        log_ticks(axes, "y")
    elif lying:
        axes.set_xlim(_floor(drawn, axes.get_xlim()[1], bars=True, across=True))
    elif plot.kind == "ellipses":
        axes.margins(0.1)
    elif plot.y_from:
        axes.set_ylim(bottom=plot.y_from)
    else:
        axes.set_ylim(_floor(drawn, axes.get_ylim()[1], bars=plot.kind == "bars"))
    if published_points(reproduction, plot):
        diamond = Line2D(
            [], [], marker="D", markersize=5, markerfacecolor=PAGE, markeredgecolor=QUIET, linestyle="none",
            label="published",
        )  # fmt: skip
        drawn.enter(diamond, PUBLISHED)
    drawn.legend()


def _floor(drawn: Picture, top: float, *, bars: bool, across: bool = False) -> float:
    """The lower end of an axis from zero: slightly below zero if a point at zero would cover the labels."""
    values = [mark.x if across else mark.y for mark in drawn.marks]
    # A bar's end is its value, not a point.
    points = [v for v, mark in zip(values, drawn.marks, strict=True) if mark.name == PUBLISHED or not bars]
    lowest = min(values, default=0.0)
    if lowest < 0:
        return min(lowest * 1.1, -0.04 * top)
    return -0.05 * top if any(value < 0.03 * top for value in points) else 0.0


def _title(study: Study, plot: Plot, across: float) -> str:
    """Study and plot, in as many lines as the width in inches needs. CoV and T2/T1 keep their capitals."""
    first = plot.title.split(" ", 1)[0]
    word = first.isalpha() and first[1:].islower()
    own = plot.title[0].lower() + plot.title[1:] if word else plot.title
    return textwrap.fill(f"{study.title}: {own}", width=int(across * 13.5))


def draw_all(reproduction: Reproduction) -> dict[str, Picture]:
    """Every plot of a reproduction by its key, except those without runs: a page without real-time runs lacks their
    plots."""
    drawn = {plot.key: draw(reproduction, s, plot) for s in reproduction.studies() for plot in s.plots}
    return {key: picture for key, picture in drawn.items() if not picture.is_empty}


def _saved(drawn: Picture, kind: str) -> bytes:
    buffer = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        metadata = {"Date": None} if kind == "svg" else {}
        dpi = POINTS_PER_INCH if kind == "svg" else PNG_DOTS_PER_INCH
        drawn.figure.savefig(buffer, format=kind, dpi=dpi, metadata=metadata)
    return buffer.getvalue()


def svg(drawn: Picture) -> bytes:
    """The figure as SVG, made once: the page's positions depend on this layout."""
    if not drawn.svg:
        drawn.svg = _saved(drawn, "svg")
    return drawn.svg


def write(pictures: dict[str, Picture], folder: Path) -> None:
    """Writes every plot as SVG and PNG. Raises StorageError."""
    for key, drawn in pictures.items():
        files.write_whole(folder / f"figure-{key}.png", _saved(drawn, "png"))
        files.write_whole(folder / f"figure-{key}.svg", svg(drawn))
