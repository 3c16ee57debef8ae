"""What a paper's text leaves open, and the causes of statements that differ from it.

A **reading** resolves an open question differently from the paper's scenarios: with other settings, or another way of
counting. Run as a whole, it has its own verdicts. Pages show readings side by side, so that readers can see that the
chosen one was not picked by its score. A **cause** explains why statements differ. It counts only for statements that
agree once it is removed: under a reading, within some per cent, or compared with the paper's own statement on the same
thing elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from paceline.studies.measure import Result
from paceline.studies.paper import Cause, Paper, Reading
from paceline.studies.verdict import Kind, Outcome, Published, Verdict, judge


@dataclass(frozen=True)
class Trial:
    """A cause removed from a statement that differs; `outcome` is None if nothing was run without it."""

    cause: Cause
    outcome: Outcome | None


def under(paper: Paper, reading: Reading) -> Paper:
    """The paper under this reading."""
    studies = dict(paper.studies)
    for part in reading.parts:
        for key in part.studies:
            study = studies.get(key)
            if study is None:  # of another figure
                continue
            studies[key] = replace(
                study, parts=(*study.parts, part), scenario=part.scenario or study.scenario
            )
    claims = tuple(replace(c, ours=reading.counted.get(c.key, c.ours)) for c in paper.claims)
    return replace(paper, studies=studies, claims=claims, readings=(), causes=(), abstract=())


def touched(paper: Paper, reading: Reading) -> Paper | None:
    """The paper under this reading, with only the statements that it may change and their studies; None if there are
    none (for a single figure, for example)."""
    changed = {key for part in reading.parts for key in part.studies}
    changed |= {key for key, study in paper.studies.items() if changed & set(study.pool)}
    claims = [c.key for c in paper.claims if c.study in changed or c.key in reading.counted]
    if not claims:
        return None
    read = under(paper, reading)
    kept = tuple(c for c in read.claims if c.key in claims)
    needed = {c.study for c in kept}
    needed |= {key for study in needed for key in read.studies[study].pool}
    return replace(read, claims=kept, studies={k: s for k, s in read.studies.items() if k in needed})


def merged(taken: list[Result], other: list[Result]) -> list[Result]:
    """All verdicts under a reading; those of the chosen reading where it changes nothing, or where it would have to run
    in real time."""
    by_key = {r.claim.key: r for r in other if r.verdict.outcome is not Outcome.OPEN}
    return [by_key.get(r.claim.key, r) for r in taken]


def trials(
    result: Result, causes: tuple[Cause, ...], taken: list[Result], readings: Mapping[str, list[Result]]
) -> list[Trial]:
    """Each cause that is named for a statement, and the outcome without it."""
    found = []
    for cause in causes:
        if result.claim.key in (cause.instead or cause.claims):
            verdict = _without(result, cause, taken, readings)
            found.append(Trial(cause, None if verdict is None else verdict.outcome))
    return found


def _without(
    result: Result, cause: Cause, taken: list[Result], readings: Mapping[str, list[Result]]
) -> Verdict | None:
    key = result.claim.key
    if cause.within is not None:
        published = result.claim.published
        margin = cause.within * abs(published.value or 0.0)
        near = Published(Kind.WITHIN, published.value, margin=margin, runs=published.runs, sd=published.sd)
        return judge(near, result.sample)
    if cause.instead is not None:
        return next((r.verdict for r in taken if r.claim.key == cause.instead[key]), None)
    other = readings.get(str(cause.reading))
    return None if other is None else next((r.verdict for r in other if r.claim.key == key), None)
