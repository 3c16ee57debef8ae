"""Whether a reproduction agrees with what a paper published.

Of a number d is how far ours lies from it, and *slack* what is allowed for certain:

- **printed**, a number as it stands there: half its last digit;
- **within**, a number that is held to a margin of its own, and **same**, a likeness (a ratio of 1, a difference of 0)
  with a stated margin: that margin;
- **about**, a number that the text calls approximate: 15 % of it.

A number that is the mean of some `runs` of the paper's scatters: by `sd` where the paper shows it, else as ours does.
It is **off** if d is more than slack and the scatter of both means together, and **agrees** if d and the half width of
our interval are within slack and the scatter of the paper's mean. So agreement is earned by our precision, and few
runs never help. It is undecided between, with the number of runs that would settle it.

Of a direction our interval must exclude zero, on the side that was published to agree; on the other it **contradicts**:

- **ordering**, one thing above another, or above or below a bound: the interval of the paired difference;
- **trend**, a rise or a fall along a sweep: the interval of the slope.

What the intervals rest on, and when there is none, is in `paceline.statistics.sample_intervals`. Of a measure that a
few rare runs make nothing is judged below forty runs but by counts: ten runs without the rare one look as good as any.
How often the verdicts err is in docs/measures.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from paceline.interval import share_interval
from paceline.quantities import figures
from paceline.statistics import CONFIDENCE, t_quantile
from paceline.statistics.sample_intervals import (
    FEW_RUNS,
    LEAST_RUNS,
    RARE_RUNS,
    STRICT,
    Basis,
    Sample,
    fisher,
)


class Kind(StrEnum):
    """How a published statement is held against ours."""

    PRINTED = "printed"
    WITHIN = "within"
    ABOUT = "about"
    SAME = "same"
    ORDERING = "ordering"
    TREND = "trend"


NUMBERS = (Kind.PRINTED, Kind.WITHIN, Kind.ABOUT, Kind.SAME)
"""Kinds of statements that have a number."""


class Outcome(StrEnum):
    """What came out: `OFF` of a number that is another, `CONTRADICTS` where the sign, the order or the trend is
    another, `UNDECIDED` where the runs do not tell, `OPEN` where our side has no number."""

    AGREES = "agrees"
    OFF = "off"
    CONTRADICTS = "contradicts"
    UNDECIDED = "undecided"
    OPEN = "open"


REFUTED = (Outcome.OFF, Outcome.CONTRADICTS)
"""What says that ours is not what was published."""

ABOUT_SHARE = 0.15
"""How far from a number called approximate ours may lie, as a share of it."""
MOST_RUNS = 10_000
"""More runs than these are not advised."""


@dataclass(frozen=True)
class Published:
    """What was published: `value` and `last_digit` (the step of the last printed digit) of a number, or `margin`;
    `sign` (1 or -1) of an ordering or a trend; `runs` of the paper's that a number is the mean of, and the standard
    deviation `sd` of these where the paper shows it."""

    kind: Kind
    value: float | None = None
    last_digit: float | None = None
    sign: int | None = None
    margin: float | None = None
    runs: int | None = None
    sd: float | None = None

    def __post_init__(self) -> None:
        number = self.kind in NUMBERS
        if number and (self.value is None or self.sign is not None):
            raise ValueError(f"{self.kind}: needs a published number and no sign")
        if not number and (self.sign not in (1, -1) or self.value is not None):
            raise ValueError(f"{self.kind}: needs sign '+' or '-' and no published number")
        if self.kind is Kind.PRINTED and not (self.last_digit and self.last_digit > 0):
            raise ValueError("printed: needs last_digit, the step of the last printed digit")
        if self.kind is not Kind.PRINTED and self.last_digit is not None:
            raise ValueError(f"{self.kind}: last_digit is for printed numbers")
        if (self.kind in (Kind.WITHIN, Kind.SAME)) != (self.margin is not None and self.margin > 0):
            raise ValueError(f"{self.kind}: a margin above zero is what within and same need, and no other")
        if self.kind is Kind.ABOUT and self.value == 0:
            raise ValueError("about: 15 % of zero is no bound; use printed")
        if self.runs is not None and not (number and self.runs >= 1):
            raise ValueError(f"{self.kind}: runs is how many a published number is the mean of, one or more")
        if self.sd is not None and not (self.runs and self.runs >= 2 and self.sd >= 0):
            raise ValueError(f"{self.kind}: sd, 0 or more, is the standard deviation of runs, two at least")
        numbers = (self.value, self.last_digit, self.margin, self.sd)
        if not all(number is None or math.isfinite(number) for number in numbers):
            raise ValueError(f"{self.kind}: its numbers are finite")

    @property
    def slack(self) -> float:
        """How far ours may lie from a published number, scatter apart."""
        if self.kind is Kind.PRINTED:
            return (self.last_digit or 0.0) / 2
        if self.kind is Kind.ABOUT:
            return ABOUT_SHARE * abs(self.value or 0.0)
        return self.margin or 0.0


@dataclass(frozen=True)
class Verdict:
    """An outcome and the sentence that says how it came about."""

    outcome: Outcome
    because: str
    settles: int | None = None
    """Of what is undecided: so many runs would settle it, if mean and scatter stay."""


def judge(published: Published, ours: Sample | None) -> Verdict:
    """Holds ours (None: not run; without values: nothing came out) against the published; see the module's text."""
    if ours is None or not ours.values or not math.isfinite(ours.mean):
        missing = "not all of its points were run" if ours is None else "our runs give no value for it"
        return Verdict(Outcome.OPEN, missing)
    if ours.may_lack:
        says = f"a few rare runs make it, and {ours.n} may lack them: it takes {RARE_RUNS}"
        return Verdict(Outcome.UNDECIDED, says, RARE_RUNS)
    found = _number(published, ours) if published.value is not None else _sign(published.sign or 1, ours)
    if found.outcome is not Outcome.UNDECIDED:
        return found
    runs = settling(published, ours)
    if runs is None:
        return found
    many = f"about {runs:,} runs" if runs <= MOST_RUNS else f"more than {MOST_RUNS:,} runs"
    return Verdict(Outcome.UNDECIDED, f"{found.because}; {many} would settle it", runs)


def _sign(sign: int, ours: Sample) -> Verdict:
    if ours.interval is None:
        return Verdict(Outcome.UNDECIDED, ours.why_few)
    low, high = ours.interval
    for side, found, words in ((1, low > 0, "above"), (-1, high < 0, "below")):
        if found:
            outcome = Outcome.AGREES if side == sign else Outcome.CONTRADICTS
            return Verdict(outcome, f"the interval lies {words} zero")
    if low == high == 0:
        return Verdict(Outcome.CONTRADICTS, "it is zero in every run")
    if math.isinf(low) and math.isinf(high):
        usual, others = ours.usual
        says = f"{ours.n - others} of {ours.n} runs have the value {figures(usual, 3)}, and another may lie far off"
        return Verdict(Outcome.UNDECIDED, says)
    right = ours.mean * sign > 0
    return Verdict(
        Outcome.UNDECIDED, f"{'the sign is right, but ' if right else ''}the interval includes zero"
    )


def _number(published: Published, ours: Sample) -> Verdict:
    value, slack, mean = published.value or 0.0, published.slack, ours.mean
    d = value - mean
    # Rounding alone: 0.5 printed and 0.55 ours are not exactly 0.05 apart in binary.
    edge = 1e-9 * max(abs(mean), abs(value), slack)
    says = f"off by {figures(abs(d), 3)}{_share(d, value)}, allowed {figures(slack, 3)}"
    if ours.interval is None:
        return Verdict(Outcome.UNDECIDED, f"{ours.why_few} ({says})")
    if ours.basis is Basis.COUNTS:
        return (_shared if ours.yes_no else _counted)(published, ours, says)
    low, high = ours.interval
    scatter = apart = (0.0, 0.0)
    if published.runs is not None:
        scatter = ours.scatter(published.runs, published.sd)
        apart = ours.of_others(published.runs, published.sd)
        says += f" and {figures(_reach(scatter), 3)} by which {_runs(published.runs)} as the paper's scatter"
        if value and _reach(scatter) > ABOUT_SHARE * abs(value):
            says += f" (the paper's scatter: ± {100 * _reach(scatter) / abs(value):.0f} %)"
    else:
        apart = low - mean, high - mean
    if d - slack - edge > apart[1] or d + slack + edge < apart[0]:
        other = value * mean < 0 and low * high > 0
        return Verdict(Outcome.CONTRADICTS if other else Outcome.OFF, says)
    within = value - slack - scatter[1] <= low + edge and high - edge <= value + slack - scatter[0]
    return Verdict(Outcome.AGREES if within else Outcome.UNDECIDED, says)


def _share(d: float, value: float) -> str:
    if not value:
        return ""
    percent = 100 * abs(d / value)
    return f" ({percent:.0f} %)" if percent >= 10 else f" ({percent:.2g} %)"


def _reach(ends: tuple[float, float]) -> float:
    return max(abs(end) for end in ends)


def _runs(runs: int) -> str:
    return f"{runs} run" + ("s" if runs != 1 else "")


def _counted(published: Published, ours: Sample, says: str) -> Verdict:
    """Where nearly all runs have one value: how many have another, here and, at least, in the paper's runs."""
    value, slack, runs = published.value or 0.0, published.slack, published.runs
    low, high = ours.interval or (-math.inf, math.inf)
    if value - slack > ours.most or value + slack < ours.least:
        return Verdict(Outcome.OFF, f"{says}; no run can have that much")
    if value - slack <= low and high <= value + slack:
        return Verdict(Outcome.AGREES, says)
    usual, others = ours.usual
    says += f"; {others} of {ours.n} runs have another value than {figures(usual, 3)}"
    share = share_interval(others, ours.n)[1]
    if abs(value - usual) <= slack:
        # As many of the paper's runs as can be have the usual value.
        if (
            runs is not None
            and not published.sd  # its runs are not all alike
            and runs >= LEAST_RUNS
            and ours.n >= 2 * runs
            and share <= share_interval(0, runs)[1]
        ):
            return Verdict(Outcome.AGREES, f"{says}, as none of {runs} in the paper")
        return Verdict(Outcome.UNDECIDED, says)
    least = _least_others(published, ours, runs or 1)
    if abs(value - ours.mean) > slack and fisher(least, runs or 1, others, ours.n) <= (1 - CONFIDENCE) / 2:
        return Verdict(Outcome.OFF, f"{says}, and {least} or more of {_runs(runs or 1)} in the paper")
    return Verdict(Outcome.UNDECIDED, says)


def _shared(published: Published, ours: Sample, says: str) -> Verdict:
    """A share of runs: how many say yes, here and in the paper's runs."""
    value, slack, runs, span = published.value or 0.0, published.slack, published.runs, ours.most - ours.least
    low, high = ours.interval or (ours.least, ours.most)
    if runs is None:
        beyond = low > value + slack or high < value - slack
        return Verdict(Outcome.OFF if beyond else Outcome.UNDECIDED, says)

    def count(of: float, rounded: Callable[[float], int]) -> int:
        return min(max(rounded((of - ours.least) / span * runs), 0), runs)

    theirs = count(value, round)
    # Of what the print allows the count that is nearest to ours.
    fewest = min(theirs, count(value - slack - 1e-9 * span, math.ceil))
    most = max(theirs, count(value + slack + 1e-9 * span, math.floor))
    says += f"; {ours.yes} of {ours.n} runs, and {theirs} of {runs} in the paper"
    p = min(fisher(fewest, runs, ours.yes, ours.n), fisher(runs - most, runs, ours.n - ours.yes, ours.n))
    if abs(value - ours.mean) > slack and p <= (1 - CONFIDENCE) / 2:
        return Verdict(Outcome.OFF, says)
    least, greatest = (ours.least + span * end for end in share_interval(theirs, runs))
    within = least - slack <= low and high <= greatest + slack and ours.n >= 2 * runs
    return Verdict(Outcome.AGREES if within else Outcome.UNDECIDED, says)


def _least_others(published: Published, ours: Sample, runs: int) -> int:
    """How many of the paper's runs have another value than our usual one, at least: as many as its mean takes, and as
    many as have no more scatter than it shows (by Cauchy's inequality, of k others with this mean the squares add up to
    runs^2 away^2 / k or more)."""
    value, usual = published.value or 0.0, ours.usual[0]
    bound = ours.most if value > usual else ours.least
    away = abs(value - usual) - published.slack
    counts = [1.0, runs * away / abs(bound - usual) if math.isfinite(bound) else 0.0]
    if published.sd is not None:
        counts.append(runs * away**2 / (away**2 + published.sd**2 * (runs - 1) / runs))
    return math.ceil(max(counts) - 1e-9)


def settling(published: Published, ours: Sample) -> int | None:
    """How many runs would settle what is undecided, if mean and scatter stay; None where nothing can be said."""
    if ours.sd == 0 or ours.basis is Basis.COUNTS:
        return None
    strict = (
        t_quantile(STRICT, 10**6) / t_quantile(CONFIDENCE, 10**6) if ours.basis is Basis.BOOTSTRAP else 1.0
    )

    def settled(n: int) -> bool:
        t = t_quantile(CONFIDENCE if n >= FEW_RUNS else STRICT, n - 1) * ours.sd * strict
        if published.value is None:
            return abs(ours.mean) > t / math.sqrt(n)
        off, slack = abs(ours.mean - published.value), published.slack
        theirs = 0.0
        if published.runs is not None:
            of_paper = ours.sd if published.sd is None else published.sd
            theirs = t_quantile(CONFIDENCE, n - 1) * of_paper / math.sqrt(published.runs)
        both = math.hypot(theirs, t / math.sqrt(n))
        return off > slack + both or off + t / math.sqrt(n) <= slack + theirs

    low = high = max(ours.n + 1, LEAST_RUNS if ours.steady else RARE_RUNS)
    while not settled(high):
        if high > MOST_RUNS:
            return high
        low, high = high, 2 * high
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high
