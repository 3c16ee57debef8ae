"""Whether a reproduction agrees with what a paper published.

- **printed**, a number as it stands there: ours is off by at most half its last digit plus our 95 % half width;
- **within**, a number that is held to a margin of its own: ours is off by at most that plus our 95 % half width;
- **about**, a number that the text calls approximate: off by at most 15 % of it plus our half width;
- **ordering**, one thing above another, or above or below a bound: the interval of the paired difference has the sign
  and excludes zero;
- **trend**, a rise or a fall along a sweep: the interval of the slope has the sign and excludes zero.

A wide interval thus makes a number easy to agree with and an order hard: the half width stands beside every verdict.
With few runs an order or a trend whose interval includes zero is undecided; only from `FEW_RUNS` on does it differ.
"""

from __future__ import annotations

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
    """What came out: `UNDECIDED` where there are too few runs to tell, `OPEN` where our side has no number."""

    AGREES = "agrees"
    DIFFERS = "differs"
    UNDECIDED = "undecided"
    OPEN = "open"

    @property
    def text(self) -> str:
        """As the page has it."""
        return "undecided (too few runs)" if self is Outcome.UNDECIDED else str(self)


FEW_RUNS = 10
"""With fewer runs than these an interval that includes zero says nothing against an order or a trend."""

ABOUT_SHARE = 0.15
"""How far from a number called approximate ours may lie, as a share of it, our half width apart."""


@dataclass(frozen=True)
class Published:
    """What was published: `value` and `last_digit` (the step of the last printed digit) of a number, or `margin`;
    `sign` (1 or -1) of an ordering or a trend."""

    kind: Kind
    value: float | None = None
    last_digit: float | None = None
    sign: int | None = None
    margin: float | None = None

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

    @property
    def slack(self) -> float:
        """How far ours may lie from a published number, our half width apart."""
        if self.kind is Kind.PRINTED:
            return (self.last_digit or 0.0) / 2
        if self.kind is Kind.WITHIN:
            return self.margin or 0.0
        if self.kind is Kind.ABOUT:
            return ABOUT_SHARE * abs(self.value or 0.0)
        return 0.0


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
        off = abs(ours.mean - published.value)
        # The last part forgives rounding alone: 0.5 printed and 0.55 ours are not exactly 0.05 apart in binary.
        within = off <= (published.slack + ours.half_width) * (1 + 1e-9)
        return Verdict(
            Outcome.AGREES if within else Outcome.DIFFERS,
            f"off by {off:.3g}, allowed {published.slack:.3g} + {ours.half_width:.3g}",
        )
    sign = published.sign or 1
    sides = {1: "above", -1: "below"}
    if ours.mean * sign - ours.half_width > 0:
        return Verdict(Outcome.AGREES, f"the interval lies {sides[sign]} zero")
    if ours.mean * sign + ours.half_width < 0:
        return Verdict(Outcome.DIFFERS, f"the interval lies {sides[-sign]} zero")
    outcome = Outcome.UNDECIDED if ours.n < FEW_RUNS and ours.half_width > 0 else Outcome.DIFFERS
    right = ours.mean * sign > 0
    return Verdict(outcome, f"{'the sign is right, but ' if right else ''}the interval includes zero")
