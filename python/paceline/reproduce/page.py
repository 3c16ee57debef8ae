"""The page of a reproduction: one HTML file with plots, numbers, verdicts and settings, which needs nothing but itself.

plotly.js stands in it once; a content security policy forbids every request. The plots' data are also in tables, so
that the page can be read without a pointer, without scripts, and on paper.
"""

from __future__ import annotations

import json
import math
import shlex
import statistics
from pathlib import Path
from typing import Any

import jinja2
import plotly
from markupsafe import Markup

from paceline.reproduce import figures, measure, points, scatter
from paceline.reproduce.paper import Level, Plot, Series, Study, World
from paceline.reproduce.reproduction import RealTime, Reproduction
from paceline.reproduce.verdict import ABOUT_SHARE, Outcome
from paceline.statistics import Estimate, independent_difference
from paceline.turns import TRIES

_TEMPLATES = Path(__file__).parent / "templates"
_SENSIBLE_DIGITS = 3


def number(value: float | None, half_width: float | None = None) -> str:
    """A number with the decimals that its half width deserves (two digits of that, four of its own at most), else three
    digits."""
    if value is None or not math.isfinite(value):
        return "–"
    scale = half_width if half_width else abs(value)
    if scale == 0:
        return "0"
    decimals = (1 if half_width else 2) - math.floor(math.log10(scale))
    if value != 0:
        decimals = min(decimals, _SENSIBLE_DIGITS - math.floor(math.log10(abs(value))))
    text = f"{value:.{max(0, min(decimals, 6))}f}"
    # What rounds to nothing has no sign.
    return text.replace("-", "−" if float(text) else "")


def plus_minus(ours: Estimate | None) -> str:
    """ "2.49 ± 0.31"; "8.00, all 10" where all runs have one value; a dash where there is nothing."""
    if ours is None or ours.mean is None:
        return "–"
    if not ours.half_width:
        return number(ours.mean) + ("" if ours.half_width is None else f", all {ours.n}")
    mean = number(ours.mean, ours.half_width)
    decimals = len(mean.partition(".")[2])
    half = f"{ours.half_width:.{decimals}f}"
    if not float(half):
        half = f"less than {10.0**-decimals:.{decimals}f}"
    return f"{mean} ± {half}"


def _ours(result: measure.Result) -> str:
    ours, bound = result.ours, result.claim.bound
    if bound is not None and ours is not None and ours.mean is not None:
        # The expression is a distance from the bound; the page shows the number itself.
        return plus_minus(Estimate(ours.n, ours.mean + bound, ours.sd, ours.half_width))
    return plus_minus(ours)


def _name(figure: str) -> str:
    """A figure or table as the page calls it: "4" is "Figure 4", "table-2" "Table 2"; "" for others."""
    word, _, number = figure.rpartition("-")
    return f"{word.capitalize() or 'Figure'} {number}" if number.isdigit() and word in ("", "table") else ""


def _claim_row(result: measure.Result, labels: dict[str, str]) -> dict[str, str]:
    claim = result.claim
    says = claim.says
    for key, label in labels.items():
        says = says.replace(f"({key})", f"({label})").replace(f"; {key})", f"; {label})")
    return {
        "key": claim.key,
        "says": says,
        "where": claim.where,
        "kind": str(claim.published.kind),
        "published": claim.printed,
        "unit": claim.unit,
        "ours": _ours(result),
        "outcome": str(result.verdict.outcome),
        "beside": claim.beside,
        "because": result.verdict.because
        if claim.bound is None
        else result.verdict.because.replace("zero", f"{claim.bound:g}"),
        "why": claim.if_differs if result.verdict.outcome is Outcome.DIFFERS else "",
        "expression": claim.ours.text if claim.ours else "",
    }


def _clean(values: list[float]) -> list[float | None]:
    return [None if not math.isfinite(v) else round(v, 6) for v in values]


def _line_data(reproduction: Reproduction, study: Study, plot: Plot) -> dict[str, Any]:
    series = []
    for i, one in enumerate(study.series):
        rows = []
        for n, level in enumerate(study.levels):
            runs = reproduction.values.get(points.Place(study.key, one.key, level.label), {}).get(plot.metric)
            ours = measure.mean(runs) if runs else None
            if ours is not None and ours.mean is not None:
                low, high = reproduction.paper.metrics[plot.metric].reach(ours)
                rows.append(
                    (level.x if plot.kind == "line" else n, ours.mean, ours.half_width or 0.0, low, high, n)
                )
        series.append(
            {
                "key": one.key,
                "label": one.label,
                "colour": figures.colour(study, i),
                "dashed": one.dashed,
                "x": [r[0] for r in rows],
                "y": _clean([r[1] for r in rows]),
                "half": _clean([r[2] for r in rows]),
                "down": _clean([r[3] for r in rows]),
                "up": _clean([r[4] for r in rows]),
                "level": [r[5] for r in rows],
            }
        )
    return {"series": series, "published": _published_data(reproduction, study, plot)}


def _curve_data(reproduction: Reproduction, study: Study, plot: Plot) -> dict[str, Any]:
    series = []
    for curve in plot.curves:
        found = measure.curve_points(reproduction.paper, study, curve, reproduction.values)
        series.append(
            {
                "key": curve.key,
                "label": curve.label,
                "colour": curve.colour,
                "dashed": curve.dashed,
                "mode": "+".join(["lines"] * curve.joined + ["markers"] * curve.marked),
                "x": [p.x for p in found],
                "y": _clean([p.y.mean or 0.0 for p in found]),
                "half": _clean([(p.y.half_width or 0.0) * curve.marked for p in found]),
                "level": [p.level for p in found],
            }
        )
    colours = {curve.key: curve.colour for curve in plot.curves}
    labels = {curve.key: curve.label for curve in plot.curves}
    published = [
        {
            "series": key,
            "colour": colours[key],
            "index": 0,
            "x": study.levels[study.level(level)].x,
            "y": value,
            "bound": bound,
            "text": f"{labels[key]}, {level}: published {f'{bound} ' if bound else ''}{value:g}",
        }
        for key, level, value, bound in figures.published_points(reproduction, plot)
    ]
    return {"series": series, "published": published, "ownX": bool(plot.x_label)}


def _spots(reproduction: Reproduction, study: Study, plot: Plot) -> list[dict[str, Any]]:
    found = []
    for spot in scatter.spots(reproduction, study, plot):
        x, y = spot.x.mean or 0.0, spot.y.mean or 0.0
        found.append(
            {
                "key": study.series[spot.series].key,
                "label": spot.label,
                "colour": spot.level % len(figures.COLOURS),
                "marker": figures.MARKERS.index(figures.marker_of(spot.level)),
                "open": spot.series > 0,
                "level": [spot.level],
                "x": _clean([x]),
                "y": _clean([y]),
                "across": _clean(list(spot.across)),
                "up": _clean(list(spot.up)),
                "text": f"{plus_minus(spot.y)}, at {plus_minus(spot.x)}",
            }
        )
    return found


def _published_data(reproduction: Reproduction, study: Study, plot: Plot) -> list[dict[str, Any]]:
    keys = [s.key for s in study.series]
    found = []
    for key, label, value, bound in figures.published_points(reproduction, plot):
        i, n = keys.index(key), study.level(label)
        text = f"{study.series[i].label}, {label}: published {f'{bound} ' if bound else ''}{value:g}"
        found.append(
            {
                "series": key,
                "colour": figures.colour(study, i),
                "index": i,
                "x": study.levels[n].x if plot.kind == "line" else n,
                "y": value,
                "bound": bound,
                "text": text,
            }
        )
    return found


def plot_data(reproduction: Reproduction, study: Study, plot: Plot) -> dict[str, Any]:
    """What the page's script draws a plot from."""
    data: dict[str, Any] = {
        "id": f"plot-{plot.key}",
        "study": study.key,
        "kind": plot.kind,
        "title": plot.title,
        "logX": plot.log_x,
        "logY": plot.log_y,
        "from": plot.y_from,
        "levels": [level.label for level in study.levels],
        "ticks": [level.x for level in study.levels],
        "lines": list(plot.lines_at),
        "x": figures.x_label(reproduction, study, plot),
        "y": figures.y_label(reproduction, plot),
    }
    if plot.kind in ("line", "bars"):
        return data | _line_data(reproduction, study, plot)
    if plot.kind == "curves":
        return data | _curve_data(reproduction, study, plot)
    if plot.kind == "scatter" and not study.pool:
        return data | {"kind": "spots", "series": _spots(reproduction, study, plot)}
    series = []
    for i, one in enumerate(study.series):
        if plot.kind == "scatter":
            xs, ys = scatter.pooled(reproduction, study, one.key, plot)
            series.append(
                {
                    "key": one.key,
                    "label": one.label,
                    "colour": figures.colour(study, i),
                    "x": _clean(xs),
                    "y": _clean(ys),
                }
            )
            continue
        columns = max(1, len(plot.trace.columns)) if plot.trace else 1
        for n, line in enumerate(figures.traces(reproduction, study, one.key, plot)):
            x, y = _clean(line.time_s), _clean(line.y)
            pen = {"colour": n // columns, "dashed": line.dashed}
            series.append({"label": line.label, **pen, "panel": i, "x": x, "y": y})
    data["series"] = series
    if plot.kind == "trace":
        data["x"], data["panels"] = "Time (s)", [s.label for s in study.series]
        data["named"] = figures.has_names(study, plot, len(series) // len(study.series))
    return data


def _point_rows(reproduction: Reproduction, study: Study) -> list[dict[str, Any]]:
    rows = []
    metrics = _shown_metrics(reproduction, study)
    for place, series, level in points.places(study):
        measured = reproduction.values.get(place)
        if measured:
            rows.append(
                {
                    "level": level.label,
                    "series": series.label,
                    "cells": [plus_minus(measure.mean(measured[key])) for key in metrics],
                    "command": points.command(reproduction.paper, study, place, reproduction.runs),
                }
            )
    return rows


def _at(study: Study, series: Series, level: Level) -> str:
    """What a point in real time is called beside its twin: by its series, and by its level where that is no world."""
    return series.label if level.world is World.EMULATED else f"{series.label}, {level.label}"


def _gap_rows(reproduction: Reproduction, study: Study) -> list[dict[str, Any]]:
    """Each point in real time beside the same point simulated: of every metric shown both, and the difference."""
    rows = []
    for place, series, level in points.places(study):
        settings = points.settings(study, place)
        twin = next(
            (
                other
                for other, of, at in points.places(study)
                if study.world(of, at) is World.SIMULATED
                and points.settings(study, other) == settings
                and study.cut_at(at) == study.cut_at(level)
            ),
            None,
        )
        emulated = reproduction.values.get(place)
        if study.world(series, level) is World.SIMULATED or twin is None or emulated is None:
            continue
        simulated = reproduction.values[twin]
        for key in _shown_metrics(reproduction, study):
            metric = reproduction.paper.metrics[key]
            rows.append(
                {
                    "metric": f"{metric.label}{f', {metric.unit}' if metric.unit else ''}",
                    "series": _at(study, series, level),
                    "simulated": plus_minus(measure.mean(simulated[key])),
                    "emulated": plus_minus(measure.mean(emulated[key])),
                    "difference": plus_minus(independent_difference(simulated[key], emulated[key])),
                }
            )
    return rows


def _shown_metrics(reproduction: Reproduction, study: Study) -> list[str]:
    wanted = study.drawn | {"throughput", "late"}
    return [key for key in reproduction.paper.metrics if key in wanted]


def _study_view(reproduction: Reproduction, study: Study) -> dict[str, Any]:
    labels = {s.key: s.label for s in study.series}
    claims = [_claim_row(r, labels) for r in reproduction.results if r.claim.study == study.key]
    metrics = reproduction.paper.metrics
    return {
        "key": study.key,
        "name": _name(study.figure),
        "title": study.title,
        "text": study.text,
        "scenario": study.scenario,
        "plots": [plot_data(reproduction, study, plot) for plot in study.plots],
        "claims": claims,
        "counts": {o: sum(c["outcome"] == o and not c["beside"] for c in claims) for o in Outcome},
        "axis": study.axis_label,
        "metrics": [
            f"{metrics[k].label}{f', {metrics[k].unit}' if metrics[k].unit else ''}"
            for k in _shown_metrics(reproduction, study)
        ],
        "points": _point_rows(reproduction, study),
        "gaps": _gap_rows(reproduction, study),
    }


def _real_words(real: RealTime | None) -> str:
    """How exact the runs in real time were."""
    if real is None:
        return ""
    runs, most = len(real.steal), real.budget.runs
    beside = (
        "one after the other"
        if most == 1
        else f"up to {most} side by side, with at most {real.budget.bps / 1e6:g} Mbit/s of links"
    )
    middle = [_time(statistics.median(values)) for values in (real.lag_p50_s, real.lag_p99_s)]
    worst = [_time(max(values)) for values in (real.lag_p50_s, real.lag_p99_s)]
    words = (
        f"{runs} runs, {beside}. The emulators handed packets out {middle[0]} late in the median and {middle[1]} in the"
        f" 99th percentile (medians over the runs; of the worst {worst[0]} and {worst[1]}); others took"
        f" {100 * statistics.fmean(real.steal):.2f} % of the processors' time in the mean,"
        f" {100 * max(real.steal):.2f} % at most."
    )
    # The median of a run's lag, or stolen time, beyond `turns.LATE_S` and `paths.STEAL`.
    bad = f" {real.disturbed} remained disturbed though made {TRIES} times." if real.disturbed else ""
    return words + bad


def _time(seconds: float) -> str:
    return f"{number(seconds * 1e3)} ms" if seconds >= 1e-3 else f"{number(seconds * 1e6)} us"


def plotly_source() -> str:
    """plotly.js as the installed plotly package carries it."""
    return (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_text(encoding="utf-8")


def _script_json(value: object) -> Markup:
    # A "<" inside a string could end the script element; written as an escape it is the same string.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (escaped for where it stands)


def _verbatim(name: str) -> Markup:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 (a file of this package)


def render(reproduction: Reproduction) -> str:
    """The whole page."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    paper = reproduction.paper
    studies = [_study_view(reproduction, study) for study in reproduction.studies()]
    commands = {
        study.key: [
            [row["command"] for row in _point_rows(reproduction, study)],
            [s.key for s in study.series],
        ]
        for study in reproduction.studies()
    }
    return environment.get_template("page.html.j2").render(
        paper=paper,
        again=shlex.quote(paper.name),
        runs=reproduction.runs,
        seeds=reproduction.seeds,
        counts=reproduction.counts(),
        total=len(reproduction.counted),
        about=f"{ABOUT_SHARE:.0%}".replace("%", " %"),
        others=len(reproduction.results) - len(reproduction.counted),
        studies=studies,
        toggles={
            s.key: s.label
            for study in reproduction.studies()
            for s in study.series
            if not s.dashed and any(result.claim.study == study.key for result in reproduction.results)
        },
        provenance=reproduction.provenance,
        scenarios=reproduction.scenarios,
        seconds=reproduction.seconds,
        real_time=_real_words(reproduction.real),
        workers=reproduction.workers,
        figure=reproduction.figure,
        css=_verbatim("page.css"),
        js=_verbatim("page.js"),
        plotly=Markup(plotly_source()),  # noqa: S704 (a library, not a text of ours)
        data=_script_json({"plots": [p for s in studies for p in s["plots"]], "commands": commands}),
    )
