"""Whether what was measured lies within a threshold.

By the interval (`Rule.INTERVAL`): the whole 95 % interval within the threshold passes, wholly beyond it fails, and what
lies on both sides is undecided: more runs would tell. By the worst of the runs (`Rule.WORST`), for authorities that
ask for it: every run within passes, any run beyond fails; the interval is shown beside it. A bound itself is within.

What has no threshold is a number: reported, and not judged. What could not be run, or has no value, is undecided with
the reason; nothing passes that was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.statistics import Estimate


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


def judge(threshold: Threshold | None, ours: Estimate | None, each: Sequence[float]) -> Verdict:
    """Holds what was measured (None: not run), and the value of each run, against a threshold (None: there is none)."""
    if ours is None or ours.mean is None:
        missing = "it was not run" if ours is None else "the runs give no value for it"
        return Verdict(Outcome.UNDECIDED, missing)
    if threshold is None:
        return Verdict(Outcome.NUMBER, "reported, not judged")
    return _worst(threshold, each) if threshold.rule is Rule.WORST else _interval(threshold, ours)


def _interval(threshold: Threshold, ours: Estimate) -> Verdict:
    if ours.low is None or ours.high is None:
        why = (
            "an interval needs at least two runs" if ours.n < 2 else "without one of the runs it has no value"
        )
        return Verdict(Outcome.UNDECIDED, why)
    if threshold.holds(ours.low) and threshold.holds(ours.high):
        return Verdict(Outcome.PASS, f"the whole interval is {threshold.said}")
    # Beyond on one side: an interval around all that is allowed decides nothing.
    if (ours.low > threshold.most or ours.high < threshold.least) and not (
        threshold.holds(ours.low) or threshold.holds(ours.high)
    ):
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
