"""The page of a reproduction: one HTML file with figures, numbers, verdicts and settings, which needs nothing else.

Its figures are those of `figures`; a content security policy forbids every request. Their numbers are also in tables,
so that the page can be read without a pointer, without scripts, and on paper.
"""

from __future__ import annotations

import json
import shlex
import statistics
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from paceline.reproduce import figures, inline, measure, points
from paceline.reproduce.inline import Styles
from paceline.reproduce.numbers import number, plus_minus
from paceline.reproduce.paper import Level, Plot, Series, Study, World
from paceline.reproduce.picture import Picture
from paceline.reproduce.points import Place
from paceline.reproduce.reproduction import RealTime, Reproduction
from paceline.reproduce.verdict import ABOUT_SHARE, Outcome
from paceline.statistics import Estimate, independent_difference
from paceline.turns import TRIES

_TEMPLATES = Path(__file__).parent / "templates"
_READINGS = "readings"
"""What figures.toml calls the figure of a study that tries other readings."""


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


def _row_names(reproduction: Reproduction) -> dict[Place, str]:
    """What the page calls a point's row, which holds its command."""
    places = (place for study in reproduction.studies() for place, _, _ in points.places(study))
    return {place: f"p{n}" for n, place in enumerate(places) if reproduction.values.get(place)}


def _point_rows(reproduction: Reproduction, study: Study, names: dict[Place, str]) -> list[dict[str, Any]]:
    rows = []
    metrics = _shown_metrics(reproduction, study)
    for place, series, level in points.places(study):
        measured = reproduction.values.get(place)
        if measured:
            rows.append(
                {
                    "name": names[place],
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


def _figure(
    reproduction: Reproduction, study: Study, plot: Plot, drawn: Picture, styles: Styles, use: str = "plot"
) -> dict[str, Any]:
    """A plot as it stands in the page: `use` tells two of them apart."""
    up, across = figures.y_label(reproduction, plot), figures.x_label(reproduction, study, plot)
    across = "Time (s)" if plot.kind == "trace" else across
    over = f" over {across}" if across else ""
    label = (
        f"{plot.title}: {up}{over}. The numbers stand in the tables of {_name(study.figure) or study.title}."
    )
    return {
        "key": plot.key,
        "title": plot.title,
        "kind": plot.kind,
        "figure": _name(study.figure),
        "svg": inline.svg(drawn, f"{use}-{plot.key}", label, styles),
    }


def _counts(claims: list[dict[str, Any]]) -> dict[str, int]:
    return {str(o): sum(c["outcome"] == o and not c["beside"] for c in claims) for o in Outcome}


def _study_view(
    reproduction: Reproduction,
    study: Study,
    pictures: dict[str, Picture],
    names: dict[Place, str],
    styles: Styles,
) -> dict[str, Any]:
    labels = {s.key: s.label for s in study.series}
    claims = [_claim_row(r, labels) for r in reproduction.results if r.claim.study == study.key]
    metrics = reproduction.paper.metrics
    return {
        "key": study.key,
        "figure": study.figure,
        "name": _name(study.figure),
        "title": study.title,
        "text": study.text,
        "plots": [
            _figure(reproduction, study, plot, pictures[plot.key], styles)
            for plot in study.plots
            if plot.key in pictures
        ],
        "claims": claims,
        "beside": sum(bool(c["beside"]) for c in claims),
        "counts": _counts(claims),
        "axis": study.axis_label,
        "metrics": [
            f"{metrics[k].label}{f', {metrics[k].unit}' if metrics[k].unit else ''}"
            for k in _shown_metrics(reproduction, study)
        ],
        "points": _point_rows(reproduction, study, names),
        "gaps": _gap_rows(reproduction, study),
    }


def _by_figure(studies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Verdicts of each figure that has some which count, its studies taken together."""
    found: dict[str, dict[str, Any]] = {}
    for study in studies:
        if any(not claim["beside"] for claim in study["claims"]):
            row = found.setdefault(study["figure"], {**study, "claims": []})
            row["claims"] = row["claims"] + study["claims"]
    return [{**row, "counts": _counts(row["claims"])} for row in found.values()]


def _parted(studies: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Studies that something published is held against, and the others; all, where there is nothing to tell apart."""
    main = [s for s in studies if s["claims"] and s["figure"] != _READINGS]
    return (main, [s for s in studies if s not in main]) if main else (studies, [])


def _key_figure(
    reproduction: Reproduction, pictures: dict[str, Picture], styles: Styles
) -> dict[str, Any] | None:
    for study in reproduction.studies():
        for plot in study.plots:
            if plot.key == reproduction.paper.key_figure and plot.key in pictures:
                return _figure(reproduction, study, plot, pictures[plot.key], styles, use="key")
    return None


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


def _script_json(value: object) -> Markup:
    # A "<" inside a string could end the script element; written as an escape it is the same string.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 (escaped for where it stands)


def _verbatim(name: str) -> Markup:
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))  # noqa: S704 (a file of this package)


def render(reproduction: Reproduction, pictures: dict[str, Picture] | None = None) -> str:
    """The whole page, with figures that are drawn already or drawn for it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    paper = reproduction.paper
    drawn = figures.draw_all(reproduction) if pictures is None else pictures
    names = _row_names(reproduction)
    styles = inline.Styles()
    studies = [_study_view(reproduction, study, drawn, names, styles) for study in reproduction.studies()]
    # What runs in real time alone has nothing on a page without it.
    studies = [s for s in studies if s["plots"] or s["claims"] or s["points"]]
    main, others = _parted(studies)
    key_figure = _key_figure(reproduction, drawn, styles)
    return environment.get_template("page.html.j2").render(
        paper=paper,
        again=shlex.quote(paper.name),
        runs=reproduction.runs,
        seeds=reproduction.seeds,
        counts=reproduction.counts(),
        total=len(reproduction.counted),
        about=f"{ABOUT_SHARE:.0%}".replace("%", " %"),
        beside=len(reproduction.results) - len(reproduction.counted),
        studies=main,
        others=others,
        by_figure=_by_figure(studies),
        key_figure=key_figure,
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
        looks=styles.rules(),
        js=_verbatim("page.js"),
        data=_script_json({key: inline.data(picture, names) for key, picture in drawn.items()}),
    )
