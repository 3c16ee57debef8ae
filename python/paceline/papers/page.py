"""The page of a reproduction: one self-contained HTML file with figures, numbers, verdicts and settings.

`figures` makes its figures; a content security policy forbids every request. Their numbers are also in tables, so that
the page can be read without a pointer, without scripts, and on paper.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from paceline.papers import summary
from paceline.report import figures, inline, parts
from paceline.report.inline import Styles
from paceline.report.numbers import plus_minus
from paceline.report.picture import Picture
from paceline.statistics import independent_difference
from paceline.studies import measure, points
from paceline.studies.points import Place
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import Level, Series, Study, World
from paceline.studies.verdict import ABOUT_SHARE, REFUTED

_TEMPLATES = Path(__file__).parent / "templates"
_READINGS = "readings"
"""The figure of studies that try other readings, in figures.toml."""


def _claim_row(reproduction: Reproduction, result: measure.Result, labels: dict[str, str]) -> dict[str, str]:
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
        "ours": summary.ours(result),
        "outcome": str(result.verdict.outcome),
        "tally": summary.tally(result),
        "beside": claim.beside,
        "because": result.verdict.because
        if claim.bound is None
        else result.verdict.because.replace("zero", f"{claim.bound:g}"),
        "cause": summary.cause_words(reproduction, result),
        "why": claim.if_differs if result.verdict.outcome in REFUTED else "",
        "expression": claim.ours.text if claim.ours else "",
    }


def _at(study: Study, series: Series, level: Level) -> str:
    """The label of a real-time point beside its simulated twin: its series, and its level unless that is a world."""
    return series.label if level.world is World.EMULATED else f"{series.label}, {level.label}"


def _gap_rows(reproduction: Reproduction, study: Study) -> list[dict[str, Any]]:
    """Each real-time point beside the same point simulated: every metric of both, and the difference."""
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
        for key in parts.shown_metrics(reproduction, study):
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


def _counts(claims: list[dict[str, Any]]) -> dict[str, int]:
    found = [claim["tally"] for claim in claims if not claim["beside"]]
    return {str(one): found.count(str(one)) for one in summary.TALLIES}


def _study_view(
    reproduction: Reproduction,
    study: Study,
    pictures: dict[str, Picture],
    names: dict[Place, str],
    styles: Styles,
    opened: bool,
) -> dict[str, Any]:
    labels = {s.key: s.label for s in study.series}
    claims = [_claim_row(reproduction, r, labels) for r in reproduction.results if r.claim.study == study.key]
    shown = parts.shown_metrics(reproduction, study)
    return {
        "key": study.key,
        "figure": study.figure,
        "name": parts.figure_name(study.figure),
        "title": study.title,
        "text": study.text,
        "plots": [
            parts.figure_view(reproduction, study, plot, pictures[plot.key], styles)
            for plot in study.plots
            if plot.key in pictures
        ],
        "claims": claims,
        "beside": sum(bool(c["beside"]) for c in claims),
        "counts": _counts(claims),
        "axis": study.axis_label,
        "metrics": parts.metric_heads(reproduction, shown),
        **parts.point_rows(reproduction, study, shown, names, opened=opened),
        "gaps": _gap_rows(reproduction, study),
    }


def _by_figure(studies: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Verdicts of each figure that has counted ones, over all of its studies."""
    found: dict[str, dict[str, Any]] = {}
    for study in studies:
        if any(not claim["beside"] for claim in study["claims"]):
            row = found.setdefault(study["figure"], {**study, "claims": []})
            row["claims"] = row["claims"] + study["claims"]
    return [{**row, "counts": _counts(row["claims"])} for row in found.values()]


def _parted(studies: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Studies with published statements, and the others; all together if one group is empty."""
    main = [s for s in studies if s["claims"] and s["figure"] != _READINGS]
    return (main, [s for s in studies if s not in main]) if main else (studies, [])


def _key_figure(
    reproduction: Reproduction, pictures: dict[str, Picture], styles: Styles
) -> dict[str, Any] | None:
    for study in reproduction.studies():
        for plot in study.plots:
            if plot.key == reproduction.paper.key_figure and plot.key in pictures:
                return parts.figure_view(reproduction, study, plot, pictures[plot.key], styles, use="key")
    return None


def render(
    reproduction: Reproduction, pictures: dict[str, Picture] | None = None, *, opened: bool = False
) -> str:
    """The whole page, with the given figures or newly drawn ones; with links to the playground if it lies beside the
    page (`opened`)."""
    paper = reproduction.paper
    drawn = figures.draw_all(reproduction) if pictures is None else pictures
    names = parts.row_names(reproduction)
    styles = inline.Styles()
    studies = [
        _study_view(reproduction, study, drawn, names, styles, opened) for study in reproduction.studies()
    ]
    # Studies that only run in real time have nothing to show on a page without them.
    studies = [s for s in studies if s["plots"] or s["claims"] or s["points"]]
    main, others = _parted(studies)
    key_figure = _key_figure(reproduction, drawn, styles)
    return parts.template("paper.html.j2", _TEMPLATES).render(
        paper=paper,
        again=shlex.quote(paper.name),
        runs=reproduction.runs,
        seeds=reproduction.seeds,
        counts=summary.counts(reproduction.results),
        reading=reproduction.reading,
        tried=bool(reproduction.readings),
        answers=summary.answers(reproduction),
        causes=summary.causes_line(reproduction),
        readings=summary.reading_rows(reproduction),
        total=len(reproduction.counted),
        near=reproduction.near(),
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
        real_time=parts.real_words(reproduction.real),
        workers=reproduction.workers,
        figure=reproduction.figure,
        opened=opened,
        **parts.frame(drawn, names, styles),
    )
