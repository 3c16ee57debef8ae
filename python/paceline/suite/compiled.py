"""A suite and its subjects as input for the runner of papers: a study per case, a series per subject."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from paceline import realtime
from paceline.errors import PacelineError, PacelineWarning
from paceline.files.paper_folders import PaperError
from paceline.results.recordings import SERIES
from paceline.simulate.points import Point
from paceline.studies import points
from paceline.studies.paper import Claim, Paper
from paceline.studies.points import Place
from paceline.studies.study import Series, Study, World
from paceline.studies.verdict import Kind, Published
from paceline.suite.suite import MAX_RUNS, Case, Subject, Suite
from paceline.suite.suite_folders import SUITE


def study(case: Case, subjects: Sequence[Subject], world: World) -> Study:
    """The case with its subjects and comparisons, in this world."""
    series = [Series(s.text, s.text, case.settings_of(s), world=world) for s in subjects]
    beside = [Series(s.key, s.label, case.settings + s.settings, s.dashed, world) for s in case.beside]
    return Study(
        key=case.key,
        figure=case.section,
        title=case.title,
        text=case.text,
        scenario=case.scenario,
        axis_label=case.axis_label,
        axis_unit=case.axis_unit,
        series=(*series, *beside),
        levels=case.levels,
        plots=case.plots,
        change=case.change,
        record=case.record[0] if case.record else None,
        record_also=case.record[1:],
        record_every_s=case.record_every_s,
    )


def claims(case: Case, subjects: Sequence[Subject]) -> list[Claim]:
    """The checks in the form in which the runner measures them; the suite judges them itself."""
    return [
        Claim(
            key=claim_key(case, check.key, subject),
            figure=case.section,
            where=check.source,
            says=check.says,
            study=case.key,
            ours=check.expression(subject),
            published=Published(Kind.ORDERING, sign=1),
            unit=check.unit,
            shows=(),
            if_differs="",
            bound=None,
        )
        for subject in subjects
        for check in case.checks
    ]


def claim_key(case: Case, check: str, subject: Subject) -> str:
    """The key of a subject's check."""
    return f"{case.key}/{check}/{subject.text}"


@dataclass(frozen=True)
class Refusal:
    """Why a case is not run with a subject."""

    reason: str
    applies: bool = True
    """False if the case does not concern the subject ("not applicable"); True if it does but cannot run."""

    def __str__(self) -> str:
        return f"it cannot run: {self.reason}" if self.applies else f"not applicable: {self.reason}"


Refused = dict[tuple[str, str], Refusal]
"""(case, subject) -> why it is not run."""


def paper(suite: Suite, subjects: Sequence[Subject], world: World = World.SIMULATED) -> tuple[Paper, Refused]:
    """All cases with the subjects that can run in this world, and why others cannot. Raises PaperError if a case's
    comparison cannot run: that is a mistake in the suite."""
    studies, found = {}, []
    refused: Refused = {}
    for case in suite.cases:
        if case.refused:
            refused |= {(case.key, subject.text): Refusal(case.refused) for subject in subjects}
            continue
        whole = study(case, subjects, world)
        able = []
        for subject in subjects:
            if subject.name in case.not_for:
                refused[case.key, subject.text] = Refusal(case.not_for[subject.name], applies=False)
                continue
            reason = _refusal(suite, whole, subject)
            if reason is None:
                able.append(subject)
            else:
                refused[case.key, subject.text] = Refusal(reason)
        if able:
            studies[case.key] = study(case, able, world)
            found += claims(case, able)
    return _paper(suite, studies, found), refused


def _paper(suite: Suite, studies: dict[str, Study], found: Sequence[Claim]) -> Paper:
    return Paper(
        key=suite.key,
        folder=suite.folder,
        place=suite.place,
        title=suite.title,
        authors="",
        published_in=suite.source,
        summary=suite.summary,
        metrics=suite.metrics,
        studies=studies,
        claims=tuple(found),
        findings=(),
        runs=suite.runs,
        emulated_runs=MAX_RUNS,
        real_record=tuple(sorted({str(m.table) for m in suite.metrics.values() if m.table in SERIES})),
        file=SUITE,
    )


def _refusal(suite: Suite, whole: Study, subject: Subject) -> str | None:
    """Why a subject cannot run in a case; None if it can."""
    empty = _paper(suite, {}, ())
    for level in whole.levels:
        try:
            with warnings.catch_warnings():
                # Warnings appear when the runs are planned.
                warnings.simplefilter("ignore", PacelineWarning)
                place = Place(whole.key, subject.text, level.label)
                point = points.point(empty, whole, place)
                points.check_change(empty, whole, place, point)
                if whole.is_emulated:
                    _check_real(whole, point)
        except PaperError as error:
            # Use the scenario's own message: the caller knows the point.
            return str(error.__context__ or error).replace(
                f"{suite.folder}{os.sep}", f"{suite.place.as_posix()}/"
            )
        except PacelineError as error:
            return str(error)
    return None


def _check_real(whole: Study, point: Point) -> None:
    """Raises PacelineError if a point cannot run in real time."""
    if whole.change:
        raise PacelineError(
            "a change at an instant of the run needs a second run that repeats the first; real time cannot repeat one"
        )
    realtime.check(point.scenario, points.FIRST_SEED)
