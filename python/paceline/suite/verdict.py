"""Whether a measurement lies within a threshold.

`Rule.INTERVAL`: passes if the whole interval lies within the threshold, fails if it lies wholly beyond, and is
undecided if it overlaps: more runs would decide. `paceline.statistics.sample_intervals` makes the interval; below five
runs there is none. If nearly all runs have one value, the mean has no useful interval, and every run within the
threshold passes. If a few rare runs dominate the measure, with fewer than forty runs each run must also lie where the
interval does. `Rule.WORST`, for authorities that require it: passes if every run is within, fails if any run is beyond;
the interval is shown beside it. The bound itself is within.

A number without a threshold is reported, not judged. What could not run, or has no value, is undecided with the
reason; nothing passes without a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.interval import share_interval
from paceline.statistics.sample_intervals import RARE_RUNS, Basis, Sample


class Outcome(StrEnum):
    """The outcome of a check or case."""

    PASS = "pass"  # noqa: S105 (no password)
    FAIL = "fail"
    UNDECIDED = "undecided"
    NUMBER = "number"


class Rule(StrEnum):
    """How several runs are compared with a threshold."""

    INTERVAL = "interval"
    WORST = "worst"


@dataclass(frozen=True)
class Threshold:
    """The allowed range, `least` to `most`, in the measure's unit."""

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
        return self.is_reached(value) and self.is_kept(value)

    def is_reached(self, value: float) -> bool:
        """Whether a value is at least `least`; equality up to rounding counts."""
        return value >= self.least or math.isclose(value, self.least)

    def is_kept(self, value: float) -> bool:
        """Whether a value is at most `most`; equality up to rounding counts."""
        return value <= self.most or math.isclose(value, self.most)


@dataclass(frozen=True)
class Verdict:
    """An outcome and the sentence that explains it."""

    outcome: Outcome
    because: str


def judge(threshold: Threshold | None, ours: Sample | None) -> Verdict:
    """Compares a measurement (None: not run; without values: no result) with a threshold (None: none)."""
    if ours is None or not ours.values:
        missing = "it was not run" if ours is None else "the runs give no value for it"
        return Verdict(Outcome.UNDECIDED, missing)
    if threshold is None:
        return Verdict(Outcome.NUMBER, "reported, not judged")
    return (_worst if threshold.rule is Rule.WORST else _interval)(threshold, ours)


def _interval(threshold: Threshold, ours: Sample) -> Verdict:
    if ours.interval is None:
        return Verdict(Outcome.UNDECIDED, ours.why_few)
    counted = ours.basis is Basis.COUNTS and not ours.yes_no
    well = sum(map(threshold.holds, ours.each))
    low, high = ours.interval
    within = threshold.is_reached(low) and threshold.is_kept(high)
    beyond = not (threshold.is_kept(low) and threshold.is_reached(high))
    if well == ours.n and (counted or (within and ours.may_lack)):
        max_percent = 100 * share_interval(0, ours.n)[1]
        return Verdict(
            Outcome.PASS,
            f"each of {ours.n} runs is {threshold.said}; at most {max_percent:.0f} % of all are not",
        )
    if ours.may_lack and (well if beyond else within):
        says = (
            f"{well} of {ours.n} runs are {threshold.said}; a few rare runs make it, and it takes {RARE_RUNS}"
        )
        return Verdict(Outcome.UNDECIDED, says)
    if within:
        return Verdict(Outcome.PASS, f"the whole interval is {threshold.said}")
    if beyond or (counted and not well):
        none = f"none of {ours.n} runs" if counted and not well else "no part of the interval"
        return Verdict(Outcome.FAIL, f"{none} is {threshold.said}")
    return Verdict(Outcome.UNDECIDED, f"the interval is partly {threshold.said}: more runs would tell")


def _worst(threshold: Threshold, ours: Sample) -> Verdict:
    each = ours.each
    missing = sum(not math.isfinite(value) for value in each)
    beyond = sum(math.isfinite(value) and not threshold.holds(value) for value in each)
    if beyond:
        return Verdict(Outcome.FAIL, f"{beyond} of {len(each)} runs are not {threshold.said}")
    if missing:
        return Verdict(Outcome.UNDECIDED, f"{missing} of {len(each)} runs give no value for it")
    return Verdict(Outcome.PASS, f"the worst of {len(each)} runs is {threshold.said}")


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a case from those of its checks: a failure dominates, then undecided."""
    for outcome in (Outcome.FAIL, Outcome.UNDECIDED, Outcome.PASS):
        if outcome in outcomes:
            return outcome
    return Outcome.NUMBER
