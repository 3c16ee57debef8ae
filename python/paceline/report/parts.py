"""The parts of pages, for reproductions and suites: figures, points with their commands, and the frame."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from paceline.emulator.realtime_queue import TRIES
from paceline.report import figures, inline, playground_links
from paceline.report.inline import Styles
from paceline.report.numbers import number, plus_minus
from paceline.report.picture import Picture
from paceline.studies import measure, points
from paceline.studies.points import Place
from paceline.studies.reproduction import RealTime, Reproduction
from paceline.studies.study import Plot, Study

_TEMPLATES = Path(__file__).parent / "templates"


def figure_name(figure: str) -> str:
    """A figure's or table's name on the page: "4" is "Figure 4", "table-2" "Table 2"; "" for others."""
    word, _, number = figure.rpartition("-")
    return f"{word.capitalize() or 'Figure'} {number}" if number.isdigit() and word in ("", "table") else ""


def row_names(reproduction: Reproduction) -> dict[Place, str]:
    """The name of each point's row, which has its command."""
    places = (place for study in reproduction.studies() for place, _, _ in points.places(study))
    return {place: f"p{n}" for n, place in enumerate(places) if reproduction.values.get(place)}


def point_rows(
    reproduction: Reproduction, study: Study, metrics: list[str], names: dict[Place, str], *, opened: bool
) -> dict[str, Any]:
    """`points`: those of a study that were run, with these metrics and each one's command. If the playground is beside
    the page and the points are `opened`, also their links, and `closed`, why some have none."""
    rows = []
    closed: dict[str, None] = {}
    for place, series, level in points.places(study):
        measured = reproduction.values.get(place)
        if measured:
            link = (
                playground_links.of_point(reproduction, study, place)
                if opened
                else playground_links.Opening()
            )
            if link.why:
                closed[link.why] = None
            rows.append(
                {
                    "name": names[place],
                    "level": level.label,
                    "series": series.label,
                    "cells": [plus_minus(measure.mean(measured[key])) for key in metrics],
                    "command": points.command(reproduction.paper, study, place, reproduction.runs),
                    "href": link.href,
                }
            )
    return {"points": rows, "closed": list(closed)}


def shown_metrics(reproduction: Reproduction, study: Study) -> list[str]:
    """The metrics of a study's points on a paper's page."""
    wanted = study.drawn | {"throughput", "late"}
    return [key for key in reproduction.paper.metrics if key in wanted]


def metric_heads(reproduction: Reproduction, metrics: list[str]) -> list[str]:
    """The column headings of these metrics."""
    found = [reproduction.paper.metrics[key] for key in metrics]
    return [f"{metric.label}{f', {metric.unit}' if metric.unit else ''}" for metric in found]


def figure_view(
    reproduction: Reproduction, study: Study, plot: Plot, drawn: Picture, styles: Styles, use: str = "plot"
) -> dict[str, Any]:
    """A plot for the page; `use` distinguishes two copies."""
    up, across = figures.y_label(reproduction, plot), figures.x_label(reproduction, study, plot)
    across = "Time (s)" if plot.kind == "trace" else across
    over = f" over {across}" if across else ""
    label = f"{plot.title}: {up}{over}. The numbers stand in the tables of {figure_name(study.figure) or study.title}."
    return {
        "key": plot.key,
        "title": plot.title,
        "kind": plot.kind,
        "figure": figure_name(study.figure),
        "svg": inline.svg(drawn, f"{use}-{plot.key}", label, styles),
    }


def real_words(real: RealTime | None) -> str:
    """The accuracy of the runs in real time, in words."""
    if real is None:
        return ""
    runs, max_runs = len(real.steal), real.budget.runs
    beside = (
        "one after the other"
        if max_runs == 1
        else f"up to {max_runs} side by side, with at most {real.budget.bps / 1e6:g} Mbit/s of links"
    )
    middle = [_time(statistics.median(values)) for values in (real.lag_p50_s, real.lag_p99_s)]
    worst = [_time(max(values)) for values in (real.lag_p50_s, real.lag_p99_s)]
    words = (
        f"{runs} runs, {beside}. The emulators handed packets out {middle[0]} late in the median and {middle[1]} in the"
        f" 99th percentile (medians over the runs; of the worst {worst[0]} and {worst[1]}); others took"
        f" {100 * statistics.fmean(real.steal):.2f} % of the processors' time in the mean,"
        f" {100 * max(real.steal):.2f} % at most."
    )
    # Runs whose median lag or stolen time exceeds `realtime_queue.LATE_S` or `paths.STEAL`.
    bad = f" {real.disturbed} remained disturbed though made {TRIES} times." if real.disturbed else ""
    return words + bad


def _time(seconds: float) -> str:
    return f"{number(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{number(seconds * 1e6)} us"


def script_json(value: object) -> Markup:
    # A "<" inside a string could end the script element; the escape is the same string.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (escaped for where it stands)


def _verbatim(name: str) -> Markup:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 (a file of this package)


def template(name: str, folder: Path = _TEMPLATES) -> jinja2.Template:
    """A page's template, which may include those of this folder."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _TEMPLATES]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def frame(drawn: dict[str, Picture], names: dict[Place, str], styles: Styles) -> dict[str, Any]:
    """The common part of every page: style sheet, script, and the data of its figures."""
    return {
        "css": _verbatim("page.css"),
        "looks": styles.rules(),
        "js": _verbatim("page.js"),
        "data": script_json({key: inline.data(picture, names) for key, picture in drawn.items()}),
    }
