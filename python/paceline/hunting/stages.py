"""The stages of a hunt: the search, the check of its finds on other seeds, what is left of these, and the last runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paceline import _core
from paceline.errors import PacelineError
from paceline.hunting.finds import Find, Hunt, changes
from paceline.hunting.goal import Goal
from paceline.hunting.minimising import minimise
from paceline.hunting.ranges import Axis, Candidate, apart
from paceline.hunting.searching import Sampler, Try, distinct, kind_of, said, search
from paceline.hunting.trying import Outcome, TimeIsUp, Trying
from paceline.scenario import load
from paceline.spoken import option
from paceline.statistics import Estimate, estimate, holm, paired_difference

SEARCHING, SMALLER = 0.6, 0.85
"""When the search ends, and when finds are no longer made smaller, in shares of the budget; the rest is for runs on
fresh seeds, which are all made."""
FAR = 0.25
"""Finds are nearer to each other than this, in shares of the ranges, on no axis, else they are one."""
SPARE = 2
"""So many more are checked on other seeds than are wanted, as some do not last."""


@dataclass
class Found:
    """A find on its way: as the search saw it, on other seeds, and what is left of it."""

    seen: Try
    again: Outcome | None = None
    left: Candidate = ()
    fresh: Outcome | None = None

    def __post_init__(self) -> None:
        self.left = self.left or self.seen.candidate

    @property
    def crashes(self) -> bool:
        """Whether runs of it fail."""
        return bool(self.seen.outcome.crashes)

    def numbers(self, outcome: Outcome) -> tuple[float, ...]:
        """What counts of an outcome: which runs failed, or the values."""
        return outcome.marks if self.crashes else outcome.values

    def level(self, outcome: Outcome) -> float:
        """How bad an outcome is: the share of runs that failed as the search saw it, or the mean."""
        if not self.crashes:
            return outcome.mean
        alike = [crash for crash in outcome.crashes if kind_of(crash) == said(self.seen.outcome)]
        return len(alike) / len(outcome.values) if outcome.values else 0.0


@dataclass
class Stages:
    """A hunt under way."""

    base: _core.Scenario
    axes: list[Axis]
    goal: Goal
    own: list[str | None]
    seeds: dict[str, list[int]]
    wanted: int
    keep: float
    began_s: float
    budget_s: float | None
    trying: Trying
    tried: list[Try] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    own_searched: Outcome = field(default_factory=lambda: Outcome(()))
    own_fresh: Outcome | None = None

    @property
    def itself(self) -> Candidate:
        """The file's own values."""
        return (None,) * len(self.axes)

    def until(self, share: float | None) -> None:
        """Runs from now on are given up where this share of the budget is spent; None: never."""
        spent = math.inf if share is None or self.budget_s is None else self.began_s + share * self.budget_s
        self.trying.ends_s = spent

    def begin(self) -> None:
        """Runs the file itself, and holds the expression against it. Raises PacelineError, ControllerError."""
        seeds = self.seeds["search"]
        self.own_searched = self.trying.outcomes([self.itself], seeds)[0]
        if self.own_searched.crashes:
            raise PacelineError(
                f"{len(self.own_searched.crashes)} of {len(seeds)} runs of the file itself fail, so that there is "
                f"nothing to hunt: {self.own_searched.crashes[0]}"
            )
        if math.isnan(self.own_searched.mean):
            raise PacelineError(
                f'{option("worst")} "{self.goal.text}": no run of the file itself has a value; coalesce(MEASURE, '
                "NUMBER) says what one without counts as"
            )

    def search(self, sampler: Sampler, tries: int | None, tell: Callable[[], None]) -> None:
        """Tries candidates until time or tries are up. Raises PacelineError if there was time for none."""
        self.until(SEARCHING)
        search(self.trying, self.axes, self.seeds["search"], sampler, tries, self.tried, tell)
        if not self.tried:
            raise PacelineError(
                f"no try had ended within {SEARCHING:.0%} of {option('budget', f'{self.budget_s:g}s')}, the search's "
                "share: give a longer one, or shorten the runs"
            )

    def pick(self, spare: int = 0) -> None:
        """Takes the worst that differ from each other."""
        least = self.own_searched.mean
        picked = distinct(self.tried, self.axes, least, self.wanted + spare, FAR)
        self.found = [Found(one) for one in picked]

    def check(self) -> None:
        """Runs what the search found on other seeds, and leaves out what is no worse there."""
        self.until(None)
        outcomes = self.trying.outcomes(
            [self.itself, *(one.seen.candidate for one in self.found)], self.seeds["again"]
        )
        level = outcomes[0].mean
        for one, outcome in zip(self.found, outcomes[1:], strict=True):
            one.again = outcome
        lasting = [
            one
            for one in self.found
            if one.again and (one.level(one.again) > (0.0 if one.crashes else level))
        ]
        if lost := len(self.found) - len(lasting):
            self.notes.append(
                f"{lost} more {'is' if lost == 1 else 'are'} left out: on other seeds no worse than the file itself."
            )
        lasting.sort(key=lambda one: (one.crashes, one.level(one.again or one.seen.outcome)), reverse=True)
        self.found = lasting[: self.wanted]

    def smaller(self) -> None:
        """Puts the finds back towards the file's own values as far as they stay; then those that are one are."""
        self.until(SMALLER)
        seeds = self.seeds["again"]
        own = self.trying.outcomes([self.itself], seeds)[0]

        def excess(one: Found, outcome: Outcome) -> float:
            return one.level(outcome) - (0.0 if one.crashes else own.mean)

        def stay(wanted: Sequence[tuple[int, Candidate]]) -> list[bool]:
            outcomes = self.trying.outcomes([candidate for _, candidate in wanted], seeds)
            return [
                # of a refused scenario nothing stays: it has no value
                excess(one, outcome) >= self.keep * excess(one, one.again or one.seen.outcome)
                and not outcome.refused
                for (n, _), outcome in zip(wanted, outcomes, strict=True)
                for one in [self.found[n]]
            ]

        left: list[Candidate] = []
        try:
            minimise([one.seen.candidate for one in self.found], self.axes, self.own, stay, left)
        except TimeIsUp:
            self.notes.append(
                f"The budget was spent before the finds were as small as they could be: a longer {option('budget')} "
                "leaves less of them."
            )
        finally:
            for one, candidate in zip(self.found, left, strict=False):
                one.left = candidate
        kept: list[Found] = []
        for one in self.found:
            kind = said(one.seen.outcome)
            if any(kind == said(other.seen.outcome) and self._apart(one, other) < FAR for other in kept):
                continue
            kept.append(one)
        if merged := len(self.found) - len(kept):
            self.notes.append(
                f"{merged} more came to the same as another once {'it was' if merged == 1 else 'they were'} small."
            )
        self.found = kept

    def _apart(self, one: Found, other: Found) -> float:
        def whole(candidate: Candidate) -> list[str]:
            return [value or own or "" for value, own in zip(candidate, self.own, strict=True)]

        return apart(self.axes, whole(one.left), whole(other.left))

    def confirm(self) -> None:
        """Runs what is left, and the file itself, on seeds that nothing before has used."""
        self.until(None)
        outcomes = self.trying.outcomes([self.itself, *(one.left for one in self.found)], self.seeds["fresh"])
        self.own_fresh = outcomes[0]
        for one, outcome in zip(self.found, outcomes[1:], strict=True):
            one.fresh = outcome

    def result(self, manifest: dict[str, Any]) -> Hunt:
        """All as far as it has come."""
        without = sum(
            math.isnan(one.outcome.mean) and not one.outcome.crashes and not one.outcome.refused
            for one in self.tried
        )
        if without:
            self.notes.append(
                f"{without} of {len(self.tried)} tries had no value, and count as the least: coalesce(MEASURE, NUMBER) "
                "says what a run without one counts as."
            )
        refused = [one.outcome.refused for one in self.tried if one.outcome.refused]
        if refused:
            self.notes.append(
                f"{len(refused)} of {len(self.tried)} tries were no scenario; the first: {refused[0]}"
            )
        finds = [self._find(n, one) for n, one in enumerate(self.found, 1)]
        corrected = holm([None if find.crash is not None else find.p_holm for find in finds])
        finds = [replace(find, p_holm=p) for find, p in zip(finds, corrected, strict=True)]
        return Hunt(
            worst=self.goal.text,
            goal=self.goal,
            axes=self.axes,
            own=self.own,
            base=self.base,
            finds=tuple(finds),
            own_searched=self.own_searched.mean,
            tried=self.tried,
            seeds=self.seeds,
            notes=tuple(self.notes),
            manifest=manifest,
        )

    def _find(self, number: int, one: Found) -> Find:
        def known(outcome: Outcome | None) -> Estimate | None:
            return None if outcome is None else estimate(one.numbers(outcome))

        difference, p, above = None, None, 0
        if one.fresh is not None and self.own_fresh is not None:
            pairs = one.numbers(self.own_fresh), one.numbers(one.fresh)
            found = paired_difference(*pairs)
            difference, p = found.estimate, found.p_value
            above = sum(there > own for own, there in zip(*pairs, strict=True))
        crash = None
        scenario = self.trying.scenario(one.left)
        if one.crashes:
            last = one.fresh or one.seen.outcome
            crash = (last.crashes or one.seen.outcome.crashes)[0]
            if {0.0, 1.0} <= {*last.marks}:
                # whoever runs the file is to see it
                seed = self.seeds["fresh" if one.fresh else "search"][last.marks.index(1.0)]
                scenario = load(scenario, {"seed": seed})
        return Find(
            number=number,
            candidate=one.left,
            changes=changes(self.base, self.axes, one.seen.candidate, one.left),
            crash=crash,
            searched=one.level(one.seen.outcome),
            again=known(one.again),
            value=known(one.fresh),
            own=None if self.own_fresh is None else estimate(one.numbers(self.own_fresh)),
            difference=difference,
            above=above,
            p_holm=p,
            scenario=scenario,
        )
