"""The figures of a reproduction as SVG and PNG: ours with 95 % intervals, and the published values where there are any.

A published number is a hollow diamond; a bound ("under 0.5") a triangle that points to where the value must lie. No
line joins them: the curves between the published numbers are lost.
"""

from __future__ import annotations

import io
import math
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from paceline import files
from paceline.reproduce import measure, scatter
from paceline.reproduce.paper import Plot, Study
from paceline.reproduce.points import Place
from paceline.reproduce.reproduction import Reproduction
from paceline.reproduce.where import PaperError
from paceline.variation import jain_over_time

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#882255")
"""One colour a series, in their order: Okabe and Ito's but for their yellow, and a wine red, which colour-blind
readers tell apart too. With markers and dashes, so that nothing rests on colour alone."""
MARKERS = ("o", "s", "^", "v", "P", "X", "p", "*")

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d8dbe0",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "paceline",
    "svg.fonttype": "none",
}


def colour(study: Study, series: int) -> int:
    """The index of a series' colour: a dashed one has that of the solid one that it belongs to."""
    solid = [i for i, s in enumerate(study.series) if not s.dashed]
    if study.series[series].dashed:
        return (series - len(solid) if series >= len(solid) else series) % len(COLOURS)
    # Vegas keeps its colour where it stands alone.
    kept = {"newreno": 0, "vegas": 1}
    if all(study.series[i].key in kept for i in solid):
        return kept[study.series[series].key]
    return series % len(COLOURS)


def published_points(reproduction: Reproduction, plot: Plot) -> list[tuple[str, str, float, str | None]]:
    """(series, level, value, bound) of every published number that belongs on the plot, each once."""
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
    """What stands beside the y axis."""
    return plot.label or _label(reproduction, plot.metric)


def x_label(reproduction: Reproduction, study: Study, plot: Plot) -> str:
    """What stands below the x axis."""
    named = f"{study.axis_label} ({study.axis_unit})" if study.axis_unit else study.axis_label
    return plot.x_label or (_label(reproduction, plot.over) if plot.over else named)


def _estimates(
    reproduction: Reproduction, study: Study, series: str, metric: str
) -> list[tuple[float, float, float, float]]:
    """(x, mean, how far its interval reaches below and above it) of the levels that were run."""
    found = []
    for level in study.levels:
        runs = reproduction.values.get(Place(study.key, series, level.label), {}).get(metric)
        ours = measure.mean(runs) if runs else None
        if ours is not None and ours.mean is not None:
            found.append((level.x, ours.mean, *reproduction.paper.metrics[metric].reach(ours)))
    return found


def _draw_line(axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    for i, series in enumerate(study.series):
        rows = _estimates(reproduction, study, series.key, plot.metric)
        if not rows:
            continue
        x, y, down, up = (np.array(column) for column in zip(*rows, strict=True))
        c = colour(study, i)
        style = "--" if series.dashed else "-"
        marker = MARKERS[c % len(MARKERS)]
        axes.errorbar(
            x, y, (down, up), color=COLOURS[c], linestyle=style, marker=marker, markersize=4, capsize=2.5,
            linewidth=1.3, label=series.label,
        )  # fmt: skip
    for series_key, level, value, bound in published_points(reproduction, plot):
        edge = COLOURS[colour(study, _index(study, series_key))]
        _mark(axes, study.levels[study.level(level)].x, value, bound, edge)
    _level_ticks(axes, study, plot)


def _level_ticks(axes: Axes, study: Study, plot: Plot) -> None:
    """A tick at each level, named as the level is."""
    if plot.log_x:
        axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([level.x for level in study.levels]))
    axes.xaxis.set_minor_locator(NullLocator())
    labels = [
        level.label.removesuffix(f" {study.axis_unit}") if study.axis_unit else level.label
        for level in study.levels
    ]
    axes.set_xticklabels(labels, rotation=30 if len(study.levels) > 8 else 0)


def _draw_curves(axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    for curve in plot.curves:
        found = measure.curve_points(reproduction.paper, study, curve, reproduction.values)
        c = curve.colour
        axes.errorbar(
            [p.x for p in found], [p.y.mean or 0.0 for p in found], [p.y.half_width or 0.0 for p in found],
            color=COLOURS[c % len(COLOURS)], linestyle=("--" if curve.dashed else "-") if curve.joined else "none",
            marker=MARKERS[c % len(MARKERS)] if curve.marked else "", markersize=4, capsize=2.5 if curve.marked else 0,
            linewidth=1.3, elinewidth=None if curve.marked else 0, label=curve.label,
        )  # fmt: skip
    by_key = {curve.key: curve for curve in plot.curves}
    for key, level, value, bound in published_points(reproduction, plot):
        _mark(
            axes, study.levels[study.level(level)].x, value, bound, COLOURS[by_key[key].colour % len(COLOURS)]
        )
    if plot.x_label:
        axes.set_xscale("log" if plot.log_x else "linear")
        if plot.log_x:
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        _level_ticks(axes, study, plot)


def _draw_bars(axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    lying = len(study.levels) > 4
    step = 0.8 / len(study.series)
    for i, series in enumerate(study.series):
        rows = _estimates(reproduction, study, series.key, plot.metric)
        at = {level.x: n for n, level in enumerate(study.levels)}
        places = np.array([at[x] for x, *_ in rows]) + (i - (len(study.series) - 1) / 2) * step
        means, half = [m for _, m, _, _ in rows], ([d for *_, d, _ in rows], [u for *_, u in rows])
        c = COLOURS[colour(study, i)]
        if lying:
            axes.barh(
                places, means, step * 0.92, xerr=half, color=c, alpha=0.8, label=series.label, capsize=2
            )
        else:
            axes.bar(places, means, step * 0.92, yerr=half, color=c, alpha=0.8, label=series.label, capsize=3)
    for series_key, level, value, bound in published_points(reproduction, plot):
        i = _index(study, series_key)
        place = study.level(level) + (i - (len(study.series) - 1) / 2) * step
        # On bars a mark in the bar's own colour would not be seen.
        _mark(axes, value if lying else place, place if lying else value, bound, "#1b1f24")
    ticks = range(len(study.levels))
    if lying:
        axes.set_yticks(ticks, [level.label for level in study.levels])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
    else:
        axes.set_xticks(ticks, [level.label for level in study.levels])
        axes.grid(visible=False, axis="x")


def _mark(axes: Axes, x: float, y: float, bound: str | None, edge: str) -> None:
    marker = {None: "D", "below": "v", "above": "^"}[bound]
    axes.plot(
        [x], [y], marker=marker, markersize=8, markerfacecolor="white", markeredgecolor=edge, markeredgewidth=1.6,
        linestyle="none", zorder=5, clip_on=False,
    )  # fmt: skip


def _index(study: Study, key: str) -> int:
    return next(i for i, s in enumerate(study.series) if s.key == key)


def _draw_spots(axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    for spot in scatter.spots(reproduction, study, plot):
        c = COLOURS[spot.level % len(COLOURS)]
        axes.errorbar(
            [spot.x.mean or 0.0], [spot.y.mean or 0.0], [[v] for v in spot.up], [[v] for v in spot.across], color=c,
            marker=marker_of(spot.level), markersize=6, markerfacecolor="none" if spot.series else c, capsize=2.5,
            linestyle="none", linewidth=1.1, label=spot.label,
        )  # fmt: skip
    if plot.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(left=0)


def marker_of(level: int) -> str:
    """The marker of a level's spots: where colours begin again, the markers are others."""
    return MARKERS[(level + level // len(COLOURS)) % len(MARKERS)]


def _draw_scatter(axes: Axes, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    for i, series in enumerate(study.series):
        xs, ys = scatter.pooled(reproduction, study, series.key, plot)
        c = colour(study, i)
        axes.plot(
            xs, ys, linestyle="none", marker=MARKERS[c], markersize=3.5, markerfacecolor="none", color=COLOURS[c],
            alpha=0.7, label=series.label,
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator([0.125, 0.25, 0.5, 1, 1.5, 2, 4, 8, 16]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
    if len(plot.lines_at) == 2:
        axes.axvline(
            plot.lines_at[0],
            color="#555",
            linestyle=":",
            linewidth=1.2,
            label=f"published {plot.lines_at[0]:g}",
        )
        axes.axhline(plot.lines_at[1], color="#555", linestyle="--", linewidth=0.8)


@dataclass(frozen=True)
class Line:
    """A line of a trace: of one flow at one level."""

    level: int
    label: str
    time_s: list[float]
    y: list[float]
    dashed: bool = False
    """Of several flows at several levels, those beyond the first level; of several columns, all but the first."""

    def since(self, from_s: float) -> Line:
        """What of it lies at this instant or later."""
        kept = [(t, y) for t, y in zip(self.time_s, self.y, strict=True) if t >= from_s]
        return replace(self, time_s=[t for t, _ in kept], y=[y for _, y in kept])


def traces(reproduction: Reproduction, study: Study, series: str, plot: Plot) -> list[Line]:
    """The lines of a trace over the first seed's runs, one for each level and flow; the flow is named where there are
    several."""
    assert plot.trace is not None  # the loader has seen to it
    found = []
    for i, level in enumerate(study.levels):
        table = reproduction.recorded.get(Place(study.key, series, level.label))
        if table is None:
            continue
        if table.is_empty():
            continue
        table = table.filter(pl.col("seed") == reproduction.seeds[0])
        for column in plot.trace.columns:
            if column not in table.columns:
                there = ", ".join(table.columns)
                raise PaperError(f"plot {plot.key}: {study.record} has no {column}; there are {there}")
        if plot.trace.flows is not None:
            table = table.filter(pl.col("flow").is_in(plot.trace.flows))
        if plot.trace.jain_s is not None:
            index = jain_over_time(table, plot.trace.jain_s)
            values = index["jain"].fill_null(float("nan")).to_list()
            found.append(Line(i, level.label, index["time_s"].to_list(), values))
            continue
        instances = table.group_by("flow").agg(pl.col("instance").n_unique())
        several_of = dict(instances.iter_rows())
        of_flow = table.partition_by("flow", "instance", maintain_order=True)
        order = {name: n for n, name in enumerate(plot.trace.flows or ())}
        of_flow.sort(key=lambda one: order.get(one["flow"][0], 0))
        for one in of_flow:
            flow = one["flow"][0]
            name = f"{flow}[{one['instance'][0]}]" if several_of[flow] > 1 else flow
            several = name if len(study.levels) == 1 else f"{level.label}, {name}"
            label = several if len(of_flow) > 1 else level.label
            for n, column in enumerate(plot.trace.columns):
                # What a real run cannot know at an instant is null.
                y = (one[column] * plot.trace.scale).fill_null(float("nan"))
                named = f"{label}, {plot.trace.labels[n]}" if plot.trace.labels else label
                dashed = n > 0 or (i > 0 and len(of_flow) > 1)
                found.append(Line(i, named, one["time_s"].to_list(), y.to_list(), dashed))
    return [line.since(plot.trace.from_s) for line in found]


def has_names(study: Study, plot: Plot, lines: int) -> bool:
    """Whether the lines of a trace's panel are told apart by name: levels, columns, and flows that the plot names."""
    columns = max(1, len(plot.trace.columns)) if plot.trace else 1
    named = plot.trace is not None and len(plot.trace.flows or ()) > 1
    return named or lines <= len(study.levels) * columns or len(study.levels) > 1


def _draw_traces(figure: Figure, reproduction: Reproduction, study: Study, plot: Plot) -> None:
    assert plot.trace is not None  # the loader has seen to it
    few, columns = True, max(1, len(plot.trace.columns))
    # Lines that belong together are held against each other, not against other panels.
    panels = figure.subplots(len(study.series), 1, sharex=True, sharey=columns == 1, squeeze=False)
    for panel, series in zip(panels[:, 0], study.series, strict=True):
        lines = traces(reproduction, study, series.key, plot)
        few = has_names(study, plot, len(lines))
        # The longest run first, so that the shorter ones lie on top of it.
        for i, line in reversed(list(enumerate(lines))):
            style, pen = "--" if line.dashed else "-", COLOURS[i // columns % len(COLOURS)]
            panel.plot(line.time_s, line.y, style, color=pen, linewidth=1, label=line.label)
        panel.set_title(series.label, fontsize=9, loc="left")
        panel.set_ylabel(plot.label)
    # Once all is drawn: a limit ends the scaling of an axis.
    for panel in panels[:, 0]:
        panel.set_ylim(bottom=0)
    panels[-1, 0].set_xlabel("Time (s)")
    if few:
        several = len(plot.trace.flows or ()) > 1 and plot.trace.jain_s is None
        # The names of several flows take more room than a corner below the lines has: they stand beside the title.
        place: dict[str, Any] = (
            {"ncols": len(plot.trace.flows or ()), "bbox_to_anchor": (1, 1), "borderaxespad": 0.1}
            if several
            else {"ncols": 3, "title": study.axis_label}
        )
        panels[0, 0].legend(fontsize=8, loc="lower right", reverse=True, **place)


def draw(reproduction: Reproduction, study: Study, plot: Plot) -> Figure:
    """One plot of a study."""
    with matplotlib.rc_context(_STYLE):
        lying = plot.kind == "bars" and len(study.levels) > 4
        size = (
            (6.4, 5.2)
            if plot.kind == "trace"
            else (6.4, 0.42 * len(study.levels) + 1.2)
            if lying
            else (5.2, 3.4)
        )
        figure = Figure(figsize=size, layout="constrained")
        figure.suptitle(_title(study, plot, across=size[0]), fontsize=10, x=0.02, ha="left")
        if plot.kind == "trace":
            _draw_traces(figure, reproduction, study, plot)
            return figure
        axes = figure.subplots()
        match plot.kind:
            case "line":
                _draw_line(axes, reproduction, study, plot)
            case "bars":
                _draw_bars(axes, reproduction, study, plot)
            case "curves":
                _draw_curves(axes, reproduction, study, plot)
            case "scatter" if not study.pool:
                _draw_spots(axes, reproduction, study, plot)
            case _:
                _draw_scatter(axes, reproduction, study, plot)
        across, up = x_label(reproduction, study, plot), y_label(reproduction, plot)
        axes.set_xlabel(up if lying else across)
        axes.set_ylabel("" if lying else up)
        if plot.log_y:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
        elif lying:
            axes.set_xlim(left=0)
        else:
            axes.set_ylim(bottom=plot.y_from)
        if published_points(reproduction, plot):
            axes.plot(
                [], [], marker="D", markerfacecolor="none", color="#555", linestyle="none", label="published"
            )
        labels = axes.get_legend_handles_labels()[1]
        if lying or len(labels) > 6:  # lying bars leave no corner free
            _legend_below(figure, labels)
        else:
            axes.legend(fontsize=8)
        return figure


def _legend_below(figure: Figure, labels: list[str]) -> None:
    """A legend under the axes, in as many columns as fit, for which the figure grows."""
    points = 7
    em = points / 72  # inches
    column = 0.6 * em * max(map(len, labels)) + 3.5 * em  # the letters' mean width; handle and gaps
    columns = max(1, min(4, int(figure.get_figwidth() / column)))
    rows = math.ceil(len(labels) / columns)
    figure.set_figheight(figure.get_figheight() + 1.5 * em * max(0, rows - 2))
    figure.legend(
        fontsize=points, loc="outside lower center", ncols=columns, columnspacing=1.0, handlelength=1.4
    )


def _title(study: Study, plot: Plot, across: float) -> str:
    """Study and plot, in as many lines as the width in inches needs. CoV and T2/T1 keep their capitals."""
    first = plot.title.split(" ", 1)[0]
    word = first.isalpha() and first[1:].islower()
    own = plot.title[0].lower() + plot.title[1:] if word else plot.title
    return textwrap.fill(f"{study.title}: {own}", width=int(across * 13))


def write(reproduction: Reproduction, folder: Path) -> None:
    """Writes every plot as SVG and PNG. Raises StorageError."""
    for study in reproduction.studies():
        for plot in study.plots:
            with matplotlib.rc_context(_STYLE):
                figure = draw(reproduction, study, plot)
                for kind, metadata in (("svg", {"Date": None}), ("png", {})):
                    buffer = io.BytesIO()
                    figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
                    files.write_whole(folder / f"figure-{plot.key}.{kind}", buffer.getvalue())
