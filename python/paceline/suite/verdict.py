"""Whether what was measured lies within a threshold.

By the interval (`Rule.INTERVAL`): the whole interval within the threshold passes, wholly beyond it fails, and what lies
on both sides is undecided: more runs would tell. What it rests on is in `paceline.evidence`: below five runs there is
none. Where nearly all runs have one value a mean has no interval worth its name, and every run
within the threshold passes. By the worst of the runs (`Rule.WORST`), for authorities that
ask for it: every run within passes, any run beyond fails; the interval is shown beside it. A bound itself is within.

What has no threshold is a number: reported, and not judged. What could not be run, or has no value, is undecided with
the reason; nothing passes that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.evidence import Basis, Sample
from paceline.interval import share_interval


class Outcome(StrEnum):
    """What came out."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    UNDECIDED = "undecided"
    NUMBER = "number"


class Rule(StrEnum):
    """How several runs are held against a threshold."""

    INTERVAL = "interval"
    WORST = "worst"


@dataclass(frozen=True)
class Threshold:
    """What is allowed: from `least` to `most`, in the unit of what is measured."""

    least: float = -math.inf
    most: float = math.inf
    rule: Rule = Rule.INTERVAL

    @property
    def said(self) -> str:
        """In words: "at most 5", "1 to 2"."""
        if self.least == -math.inf:
            return f"at most {self.most:g}"
        if self.most == math.inf:
            return f"at least {self.least:g}"
        return f"{self.least:g} to {self.most:g}"

    def holds(self, value: float) -> bool:
        """Whether a value lies within."""
        # What is equal but for rounding is equal.
        edge = 1e-9 * max(abs(value), min(abs(self.least), abs(self.most)))
        return self.least - edge <= value <= self.most + edge


@dataclass(frozen=True)
class Verdict:
    """An outcome and the sentence that says how it came about."""

    outcome: Outcome
    because: str


def judge(threshold: Threshold | None, ours: Sample | None, each: Sequence[float]) -> Verdict:
    """Holds what was measured (None: not run; without values: nothing came out), and the value of each run, against a
    threshold (None: there is none)."""
    if ours is None or not ours.values:
        missing = "it was not run" if ours is None else "the runs give no value for it"
        return Verdict(Outcome.UNDECIDED, missing)
    if threshold is None:
        return Verdict(Outcome.NUMBER, "reported, not judged")
    return _worst(threshold, each) if threshold.rule is Rule.WORST else _interval(threshold, ours, each)


def _interval(threshold: Threshold, ours: Sample, each: Sequence[float]) -> Verdict:
    if ours.interval is None:
        return Verdict(Outcome.UNDECIDED, ours.why_few)
    counted = ours.basis is Basis.COUNTS and not ours.yes_no
    if counted and all(map(threshold.holds, each)):
        most = share_interval(0, ours.n)[1]
        says = f"each of {ours.n} runs is {threshold.said}; at most {most:.0%} of all are not".replace(
            "%", " %"
        )
        return Verdict(Outcome.PASS, says)
    low, high = ours.interval
    # What is equal but for rounding is equal.
    edges = [1e-9 * max(abs(bound), abs(ours.mean)) for bound in (threshold.least, threshold.most)]
    above = threshold.least == -math.inf or low >= threshold.least - edges[0]
    below = threshold.most == math.inf or high <= threshold.most + edges[1]
    if above and below:
        return Verdict(Outcome.PASS, f"the whole interval is {threshold.said}")
    if counted and not any(map(threshold.holds, each)):
        return Verdict(Outcome.FAIL, f"none of {ours.n} runs is {threshold.said}")
    beyond = (threshold.most < math.inf and low > threshold.most + edges[1]) or (
        threshold.least > -math.inf and high < threshold.least - edges[0]
    )
    if beyond:
        return Verdict(Outcome.FAIL, f"no part of the interval is {threshold.said}")
    return Verdict(Outcome.UNDECIDED, f"the interval is partly {threshold.said}: more runs would tell")


def _worst(threshold: Threshold, each: Sequence[float]) -> Verdict:
    missing = sum(not math.isfinite(value) for value in each)
    beyond = sum(math.isfinite(value) and not threshold.holds(value) for value in each)
    if beyond:
        return Verdict(Outcome.FAIL, f"{beyond} of {len(each)} runs are not {threshold.said}")
    if missing:
        return Verdict(Outcome.UNDECIDED, f"{missing} of {len(each)} runs give no value for it")
    return Verdict(Outcome.PASS, f"the worst of {len(each)} runs is {threshold.said}")


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """What a case is of what its checks are: what fails weighs most, then what is undecided."""
    for outcome in (Outcome.FAIL, Outcome.UNDECIDED, Outcome.PASS):
        if outcome in outcomes:
            return outcome
    return Outcome.NUMBER
