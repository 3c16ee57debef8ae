"""The page of a suite: one HTML file, built like a reproduction's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paceline.report import figures, inline, parts
from paceline.report.picture import Picture
from paceline.studies.points import Place
from paceline.suite import wording
from paceline.suite.running import Answer, Result
from paceline.suite.suite import Case
from paceline.suite.verdict import Outcome

_TEMPLATES = Path(__file__).parent / "templates"


def render(result: Result, pictures: dict[str, Picture] | None = None, *, opened: bool = False) -> str:
    """The whole page, with the given figures or newly drawn ones; with links to the playground if it lies beside the
    page (`opened`)."""
    suite, made = result.suite, result.made
    drawn = figures.draw_all(made) if pictures is None else pictures
    names, styles = parts.row_names(made), inline.Styles()
    sections = [
        {
            "key": section.key,
            "title": section.title,
            "asks": section.asks,
            "later": section.later,
            "cases": [
                _case(result, case, drawn, names, styles, opened)
                for case in suite.cases
                if case.section == section.key
            ],
        }
        for section in suite.sections.values()
    ]
    return parts.template("suite.html.j2", _TEMPLATES).render(
        suite=suite,
        subjects=[subject.text for subject in result.subjects],
        runs=result.runs,
        seeds=made.seeds,
        summed=wording.summed(result),
        counts={str(outcome): count for outcome, count in result.counts().items()},
        said={str(outcome): text for outcome, text in wording.VERBS.items()},
        sections=sections,
        again=result.command,
        provenance=made.provenance,
        seconds=result.seconds,
        workers=made.workers,
        scenarios=made.scenarios,
        real_time=parts.real_words(made.real),
        opened=opened,
        **parts.frame(drawn, names, styles),
    )


def _case(
    result: Result,
    case: Case,
    drawn: dict[str, Picture],
    names: dict[Place, str],
    styles: inline.Styles,
    opened: bool,
) -> dict[str, Any]:
    study = result.made.paper.studies.get(case.key)
    answers = result.of(case)
    wanted = {
        name
        for subject in result.subjects
        for check in case.checks
        for name in check.expression(subject).names
    }
    wanted |= study.drawn if study else set()
    metrics = [key for key in result.suite.metrics if key in wanted]
    return {
        "key": case.key,
        "title": case.title,
        "text": case.text,
        "plots": [
            parts.figure_view(result.made, study, plot, drawn[plot.key], styles)
            for plot in case.plots
            if study and plot.key in drawn
        ],
        "outcomes": [(answer.subject.text, str(answer.outcome)) for answer in answers],
        "rows": _rows(answers),
        "axis": study.axis_label if study else "",
        "metrics": parts.metric_heads(result.made, metrics),
        **(
            parts.point_rows(result.made, study, metrics, names, opened=opened)
            if study
            else {"points": [], "closed": []}
        ),
        "commands": [answer.command for answer in answers],
    }


def _rows(answers: list[Answer]) -> list[dict[str, Any]]:
    """A row per check, with each subject's finding."""
    found = []
    for i, check in enumerate(answers[0].case.checks):
        of_each = [(answer.subject.text, answer.checks[i]) for answer in answers]
        found.append(
            {
                "says": check.says,
                "label": check.label,
                "asked": wording.required(of_each[0][1]),
                "source": wording.sourced(check.source),
                "found": [
                    {
                        "subject": subject,
                        "outcome": str(checked.verdict.outcome),
                        "ours": wording.ours(checked),
                        "because": checked.verdict.because
                        if checked.verdict.outcome is not Outcome.NUMBER
                        else "",
                    }
                    for subject, checked in of_each
                ],
            }
        )
    return found
