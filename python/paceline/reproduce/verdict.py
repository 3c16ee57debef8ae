"""Whether a reproduction agrees with what a paper published.

Of a number our whole 95 % interval must lie within what is allowed for it to agree, and wholly beyond it to differ:

- **printed**, a number as it stands there: half its last digit is allowed;
- **within**, a number that is held to a margin of its own: that margin;
- **about**, a number that the text calls approximate: 15 % of it.

A number that is the mean of some runs of the paper's has a sampling error of its own. Where `runs` says of how many,
what the means of as many of our runs scatter by is allowed besides.

Of a direction the interval must exclude zero, on the side that was published to agree, on the other to differ:

- **ordering**, one thing above another, or above or below a bound: the interval of the paired difference;
- **trend**, a rise or a fall along a sweep: the interval of the slope.

Whatever else is undecided: more runs would tell. Noise is thus never rewarded; a sampling error of more than 15 % of
the number keeps it from differing, but does not help it to agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from paceline.statistics import Estimate


class Kind(StrEnum):
    """How a published statement is held against ours."""

    PRINTED = "printed"
    WITHIN = "within"
    ABOUT = "about"
    ORDERING = "ordering"
    TREND = "trend"


class Outcome(StrEnum):
    """What came out: `UNDECIDED` where the runs do not tell, `OPEN` where our side has no number."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    OPEN = "open"


ABOUT_SHARE = 0.15
"""How far from a number called approximate ours may lie, as a share of it; and how much a number's own runs may scatter
if it is to be agreed with."""
NORMAL = 1.96
"""The 97.5 % quantile of the normal distribution."""


@dataclass(frozen=True)
class Published:
    """What was published: `value` and `last_digit` (the step of the last printed digit) of a number, or `margin`;
    `sign` (1 or -1) of an ordering or a trend; `runs` of the paper's that a number is the mean of."""

    kind: Kind
    value: float | None = None
    last_digit: float | None = None
    sign: int | None = None
    margin: float | None = None
    runs: int | None = None

    def __post_init__(self) -> None:
        number = self.kind in (Kind.PRINTED, Kind.WITHIN, Kind.ABOUT)
        if number and (self.value is None or self.sign is not None):
            raise ValueError(f"{self.kind}: needs a published number and no sign")
        if not number and (self.sign not in (1, -1) or self.value is not None):
            raise ValueError(f"{self.kind}: needs sign '+' or '-' and no published number")
        if self.kind is Kind.PRINTED and not (self.last_digit and self.last_digit > 0):
            raise ValueError("printed: needs last_digit, the step of the last printed digit")
        if self.kind is not Kind.PRINTED and self.last_digit is not None:
            raise ValueError(f"{self.kind}: last_digit is for printed numbers")
        if (self.kind is Kind.WITHIN) != (self.margin is not None and self.margin > 0):
            raise ValueError(f"{self.kind}: a margin above zero is what within needs, and no other")
        if self.kind is Kind.ABOUT and self.value == 0:
            raise ValueError("about: 15 % of zero is no bound; use printed")
        if self.runs is not None and not (number and self.runs >= 1):
            raise ValueError(f"{self.kind}: runs is how many a published number is the mean of, one or more")

    @property
    def slack(self) -> float:
        """How far ours may lie from a published number, its sampling error apart."""
        if self.kind is Kind.PRINTED:
            return (self.last_digit or 0.0) / 2
        if self.kind is Kind.WITHIN:
            return self.margin or 0.0
        if self.kind is Kind.ABOUT:
            return ABOUT_SHARE * abs(self.value or 0.0)
        return 0.0

    def scatter(self, ours: Estimate) -> float:
        """How far the mean of as many runs as the published number is of lies from its own mean, with 95 % (normal, and
        by our standard deviation: Student's t would allow the more, the fewer runs we have); 0 if that is not known."""
        if self.runs is None or ours.sd is None:
            return 0.0
        return NORMAL * ours.sd / math.sqrt(self.runs)


@dataclass(frozen=True)
class Verdict:
    """An outcome and the sentence that says how it came about."""

    outcome: Outcome
    because: str


def judge(published: Published, ours: Estimate | None) -> Verdict:
    """Holds ours (None: not run) against the published; see the text of this module."""
    if ours is None or ours.mean is None:
        missing = "not all of its points were run" if ours is None else "our runs give no value for it"
        return Verdict(Outcome.OPEN, missing)
    if ours.half_width is None:
        return Verdict(Outcome.UNDECIDED, "an interval needs at least two runs")
    if published.value is not None:
        return _number(published, ours.mean, ours.half_width, published.scatter(ours))
    sign = published.sign or 1
    sides = {1: "above", -1: "below"}
    for side, outcome in ((sign, Outcome.AGREES), (-sign, Outcome.DIFFERS)):
        if ours.mean * side - ours.half_width > 0:
            return Verdict(outcome, f"the interval lies {sides[side]} zero")
    if ours.half_width == 0:
        return Verdict(Outcome.DIFFERS, "it is zero in every run")
    right = ours.mean * sign > 0
    return Verdict(
        Outcome.UNDECIDED, f"{'the sign is right, but ' if right else ''}the interval includes zero"
    )


def _number(published: Published, mean: float, half: float, scatter: float) -> Verdict:
    value = published.value or 0.0
    off, allowed = abs(mean - value), published.slack + scatter
    # Rounding alone: 0.5 printed and 0.55 ours are not exactly 0.05 apart in binary.
    edge = 1e-9 * max(abs(mean), abs(value), allowed)
    says = f"off by {off:.3g} ± {half:.3g}, allowed {published.slack:.3g}"
    if scatter:
        runs = f"{published.runs} run" + ("s" if published.runs != 1 else "")
        says += f" and the {scatter:.3g} by which {runs} as the paper's scatter"
    if off - half > allowed + edge:
        return Verdict(Outcome.DIFFERS, says)
    if scatter > max(published.slack, ABOUT_SHARE * abs(value)):
        allowed = published.slack
        says += f", which is too much of {value:g} to agree by"
    return Verdict(Outcome.AGREES if off + half <= allowed + edge else Outcome.UNDECIDED, says)
