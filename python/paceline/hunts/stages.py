"""The stages of a hunt: the search, the check of its finds on other seeds, minimising, and the last runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from paceline import _core
from paceline.errors import PacelineError
from paceline.hunts.candidates import Outcome, Runner, TimeIsUp
from paceline.hunts.finds import Find, Hunt, changes
from paceline.hunts.minimising import minimise
from paceline.hunts.objective import Goal
from paceline.hunts.ranges import Axis, Candidate, Range, apart
from paceline.hunts.searching import Sampler, Try, distinct, kind_of, said, search
from paceline.messages.argument_names import option
from paceline.scenarios.scenario import load
from paceline.statistics import Estimate, estimate, holm, paired_difference

SEARCH_SHARE, MINIMISED_SHARE = 0.6, 0.85
"""The shares of the budget at which the search and the minimising end; the rest is for runs on fresh seeds, which are
always completed."""
MIN_DISTANCE = 0.25
"""Finds that are nearer to each other than this on every axis, in shares of the ranges, count as one."""
SPARE = 2
"""Additional finds, beyond the requested number, that are checked on other seeds, since some do not last."""


@dataclass
class Found:
    """A find in progress: its value in the search, on other seeds, and its minimised form."""

    seen: Try
    again: Outcome | None = None
    left: Candidate = ()
    fresh: Outcome | None = None

    def __post_init__(self) -> None:
        self.left = self.left or self.seen.candidate

    @property
    def crashes(self) -> bool:
        """Whether its runs fail."""
        return bool(self.seen.outcome.crashes)

    def numbers(self, outcome: Outcome) -> tuple[float, ...]:
        """The relevant numbers of an outcome, run by run: which failed in the same way, or the values."""
        if not self.crashes:
            return outcome.values
        words = iter(outcome.crashes)
        return tuple(float(mark > 0 and self.alike(next(words))) for mark in outcome.marks)

    def alike(self, crash: str) -> bool:
        """Whether a crash is of the kind that the search saw."""
        return kind_of(crash) == said(self.seen.outcome)

    def level(self, outcome: Outcome) -> float:
        """The badness of an outcome: the share of runs that failed in the same way, or the mean."""
        if not self.crashes:
            return outcome.mean
        marks = self.numbers(outcome)
        return sum(marks) / len(marks) if marks else 0.0


@dataclass
class Stages:
    """A hunt in progress."""

    base: _core.Scenario
    axes: list[Axis]
    goal: Goal
    own: list[str | None]
    seeds: dict[str, list[int]]
    max_finds: int
    keep: float
    began_s: float
    budget_s: float | None
    runner: Runner
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
        """Abandons runs from now on when this share of the budget is spent; None: never."""
        spent = math.inf if share is None or self.budget_s is None else self.began_s + share * self.budget_s
        self.runner.ends_s = spent

    def begin(self) -> None:
        """Runs the file itself, and checks the expression. Raises PacelineError, ControllerError."""
        seeds = self.seeds["search"]
        self.own_searched = self.runner.outcomes([self.itself], seeds)[0]
        if self.own_searched.crashes:
            raise PacelineError(
                f"{len(self.own_searched.crashes)} of {len(seeds)} runs of the file itself fail, so there is "
                f"nothing to hunt: {self.own_searched.crashes[0]}"
            )
        if math.isnan(self.own_searched.mean):
            raise PacelineError(
                f'{option("worst")} "{self.goal.text}": no run of the file itself has a value; coalesce(MEASURE, '
                "NUMBER) gives runs without one a number"
            )
        self._check_ends()

    def _check_ends(self) -> None:
        """Checks the expression on a run at each end of an axis, and with each choice, if its flows differ from the
        file's: it may have more rows. Raises PacelineError."""
        self.until(SEARCH_SHARE)
        flows = self._flows(self.itself)
        ends: list[tuple[str, Candidate]] = []
        for place, axis in enumerate(self.axes):
            for value in axis.ends_text() if isinstance(axis, Range) else axis.values():
                candidate = (*self.itself[:place], value, *self.itself[place + 1 :])
                if self._flows(candidate) not in (flows, None):
                    ends.append((f"{', '.join(axis.paths)}={value}", candidate))
        try:
            outcomes = self.runner.outcomes([candidate for _, candidate in ends], self.seeds["search"][:1])
        except TimeIsUp:
            return
        for (words, _), outcome in zip(ends, outcomes, strict=True):
            if outcome.unfit:
                raise PacelineError(f"{outcome.unfit} (with {words})")

    def _flows(self, candidate: Candidate) -> list[tuple[str, int]] | None:
        try:
            starts = self.runner.scenario(candidate).starts(self.seeds["search"][0])
        except PacelineError:
            # an invalid scenario, which the search counts
            return None
        return [(name, instance) for name, instance, _ in starts]

    def search(self, sampler: Sampler, tries: int | None, on_progress: Callable[[], None]) -> None:
        """Tries candidates until time or tries are up. Raises PacelineError if there was no time for any."""
        self.until(SEARCH_SHARE)
        search(self.runner, self.axes, self.seeds["search"], sampler, tries, self.tried, on_progress)
        if not self.tried:
            raise PacelineError(
                f"no try finished within {SEARCH_SHARE:.0%} of {option('budget', f'{self.budget_s:g}s')}, the search's "
                "share: give a longer budget, or shorten the runs"
            )

    def pick(self, spare: int = 0) -> None:
        """Takes the worst finds that differ from each other."""
        file_mean = self.own_searched.mean
        picked = distinct(self.tried, self.axes, file_mean, self.max_finds + spare, MIN_DISTANCE)
        self.found = [Found(one) for one in picked]

    def check(self) -> None:
        """Runs the search's finds on other seeds, and drops those that are no worse there."""
        self.until(None)
        outcomes = self.runner.outcomes(
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
        self.found = lasting[: self.max_finds]

    def minimise(self) -> None:
        """Moves the finds back towards the file's values while they stay; then merges those that became equal."""
        self.until(MINIMISED_SHARE)
        seeds = self.seeds["again"]
        own = self.runner.outcomes([self.itself], seeds)[0]

        def excess(one: Found, outcome: Outcome) -> float:
            return one.level(outcome) - (0.0 if one.crashes else own.mean)

        def stay(pending: Sequence[tuple[int, Candidate]]) -> list[bool]:
            outcomes = self.runner.outcomes([candidate for _, candidate in pending], seeds)
            return [
                # in an invalid scenario no find stays, since it has no value
                excess(one, outcome) >= self.keep * excess(one, one.again or one.seen.outcome)
                and not outcome.refused
                for (n, _), outcome in zip(pending, outcomes, strict=True)
                for one in [self.found[n]]
            ]

        left: list[Candidate] = []
        try:
            minimise([one.seen.candidate for one in self.found], self.axes, self.own, stay, left)
        except TimeIsUp:
            self.notes.append(
                f"The budget was spent before the finds were fully minimised: a longer {option('budget')} "
                "minimises them further."
            )
        finally:
            for one, candidate in zip(self.found, left, strict=False):
                one.left = candidate
        kept: list[Found] = []
        for one in self.found:
            kind = said(one.seen.outcome)
            if any(
                kind == said(other.seen.outcome) and self._apart(one, other) < MIN_DISTANCE for other in kept
            ):
                continue
            kept.append(one)
        if merged := len(self.found) - len(kept):
            self.notes.append(
                f"{merged} more became the same as another once {'it was' if merged == 1 else 'they were'} minimised."
            )
        self.found = kept

    def _apart(self, one: Found, other: Found) -> float:
        def whole(candidate: Candidate) -> list[str]:
            return [value or own or "" for value, own in zip(candidate, self.own, strict=True)]

        return apart(self.axes, whole(one.left), whole(other.left))

    def confirm(self) -> None:
        """Runs the minimised finds, and the file itself, on unused seeds."""
        self.until(None)
        outcomes = self.runner.outcomes([self.itself, *(one.left for one in self.found)], self.seeds["fresh"])
        self.own_fresh = outcomes[0]
        for one, outcome in zip(self.found, outcomes[1:], strict=True):
            one.fresh = outcome

    def result(self, manifest: dict[str, Any]) -> Hunt:
        """The result so far."""
        without = sum(
            math.isnan(one.outcome.mean)
            and not (one.outcome.crashes or one.outcome.refused or one.outcome.unfit)
            for one in self.tried
        )
        if without:
            self.notes.append(
                f"{without} of {len(self.tried)} tries had no value and rank lowest: coalesce(MEASURE, NUMBER) "
                "gives runs without one a number."
            )
        refused = [one.outcome.refused for one in self.tried if one.outcome.refused]
        if refused:
            self.notes.append(
                f"{len(refused)} of {len(self.tried)} tries were no valid scenario; the first: {refused[0]}"
            )
        unfit = [one.outcome.unfit for one in self.tried if one.outcome.unfit]
        if unfit:
            self.notes.append(
                f"{len(unfit)} of {len(self.tried)} tries have no single value and rank lowest; the first: "
                f"{unfit[0]}"
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
        crash, seed = self._shown_by(one)
        scenario = self.runner.scenario(one.left)
        if seed is not None:
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

    def _shown_by(self, one: Found) -> tuple[str | None, int | None]:
        """The controller's message in a failing find, and the seed with which the find's file shows it: preferably one
        by which it was not chosen. None: the file's own seed."""
        if not one.crashes:
            return None, None if one.fresh is None else self.seeds["fresh"][0]
        # the minimised find has been run on the check's seeds: this makes no runs
        again = None if one.again is None else self.runner.outcomes([one.left], self.seeds["again"])[0]
        for outcome, seeds in ((one.fresh, "fresh"), (again, "again"), (one.seen.outcome, "search")):
            if outcome is not None and 1.0 in (marks := one.numbers(outcome)):
                crash = next(words for words in outcome.crashes if one.alike(words))
                return crash, self.seeds[seeds][marks.index(1.0)]
        raise AssertionError("a find that fails was seen to fail in the search")
