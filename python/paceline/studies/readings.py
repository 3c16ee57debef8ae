"""What a paper's text leaves open, and what statements that differ from it are put down to.

A **reading** takes something that the text leaves open otherwise than the paper's scenarios do: other settings, or
another way of counting. Run whole it has verdicts of its own, so that a page shows them side by side and nobody has to
ask whether the one that was taken was picked by its score. A **cause** says why statements differ. It counts for those
alone that agree once it is removed: under a reading, within some per cent, or held against what the paper says of the
same thing elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from paceline.studies.expression import Expression
from paceline.studies.verdict import Kind, Outcome, Published, Verdict, judge

if TYPE_CHECKING:
    from paceline.studies.measure import Result
    from paceline.studies.paper import Paper, Settings


@dataclass(frozen=True)
class Part:
    """What a reading sets, and where: after what series and levels set."""

    studies: tuple[str, ...]
    series: tuple[str, ...]
    """Of these studies; empty: all."""
    levels: tuple[str, ...]
    """The same."""
    settings: Settings
    scenario: str | None
    """The file that the studies run instead of theirs, if they do."""

    def is_of(self, series: str, level: str) -> bool:
        """Whether a point of its studies is one of its own."""
        return series in (self.series or (series,)) and level in (self.levels or (level,))


@dataclass(frozen=True)
class Reading:
    """Another reading of the paper."""

    key: str
    title: str
    where: str
    """In the paper."""
    text: str
    """What the text leaves open there."""
    taken: str
    """What the paper's scenarios have."""
    parts: tuple[Part, ...]
    counted: Mapping[str, Expression]
    """Claims whose side of ours is counted otherwise."""


class CauseKind(StrEnum):
    """Whose a difference is."""

    DIGITS = "digits"
    UNSAID = "unsaid"
    PAPER = "paper"
    OURS = "ours"

    @property
    def words(self) -> str:
        """As pages say it."""
        return {
            CauseKind.DIGITS: "printed digits missed by a little",
            CauseKind.UNSAID: "a setting that the paper does not give",
            CauseKind.PAPER: "the paper against itself",
            CauseKind.OURS: "ours",
        }[self]


MOST_DIGITS = 0.05
"""The largest share of a published number that its digits are said to be missed by."""


@dataclass(frozen=True)
class Cause:
    """Why some statements differ, and how that is removed: by exactly one of `reading`, `within` and `instead`."""

    key: str
    says: str
    kind: CauseKind
    claims: tuple[str, ...]
    reading: str | None = None
    """The reading that has it not."""
    within: float | None = None
    """The share of the published number that ours may be off by, at most `MOST_DIGITS`."""
    instead: Mapping[str, str] | None = None
    """Claim -> the claim that holds what the paper says of the same thing elsewhere."""


@dataclass(frozen=True)
class Abstract:
    """A finding of the paper's abstract, and our answer, in whose text {KEY} is what came out of that claim."""

    says: str
    answer: str
    claims: tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """A cause taken away from a statement that differs; `outcome` is None where nothing was run without it."""

    cause: Cause
    outcome: Outcome | None


def under(paper: Paper, reading: Reading) -> Paper:
    """The paper so read."""
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
    """The paper so read, with those statements alone that it may change, and the studies that they look at; None if
    there are none (of one figure, say)."""
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
    """All verdicts under a reading: where it has none, because it changes nothing there or what it takes runs in real
    time, those of the reading that was taken."""
    by_key = {r.claim.key: r for r in other if r.verdict.outcome is not Outcome.OPEN}
    return [by_key.get(r.claim.key, r) for r in taken]


def trials(
    result: Result, causes: tuple[Cause, ...], taken: list[Result], readings: Mapping[str, list[Result]]
) -> list[Trial]:
    """Each cause that is named for a statement, and what comes out without it."""
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
