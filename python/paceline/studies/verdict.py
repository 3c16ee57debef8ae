"""Whether a reproduction agrees with what a paper published.

For a number, d is our deviation from it, and *slack* what is allowed in any case:

- **printed**, a number as printed: half its last digit;
- **within**, a number with its own margin, and **same**, an equality (a ratio of 1, a difference of 0) with a stated
  margin: that margin;
- **about**, a number that the text calls approximate: 15 % of it.

A number that is the mean of some `runs` of the paper's has scatter: `sd` if the paper gives it, else ours. It is
**off** if d exceeds slack plus the scatter of both means, and **agrees** if d plus the half width of our interval is
within slack plus the scatter of the paper's mean. So agreement needs precision, and few runs never help. In between
it is undecided, with the number of runs that would settle it.

For a direction our interval must exclude zero, on the published side to agree; on the other side it **contradicts**:

- **ordering**, one thing above another, or above or below a bound: the interval of the paired difference;
- **trend**, a rise or a fall along a sweep: the interval of the slope.

`paceline.statistics.sample_intervals` makes the intervals, and says when there is none. A measure dominated by rare
runs is judged below forty runs only by counts: ten runs without the rare one look as good as any. The verdicts' error
rates are in docs/measures.md.
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
    MIN_RUNS,
    RARE_RUNS,
    STRICT,
    Basis,
    Sample,
    fisher,
)


class Kind(StrEnum):
    """How a published statement is compared with our value."""

    PRINTED = "printed"
    WITHIN = "within"
    ABOUT = "about"
    SAME = "same"
    ORDERING = "ordering"
    TREND = "trend"


NUMBERS = (Kind.PRINTED, Kind.WITHIN, Kind.ABOUT, Kind.SAME)
"""Kinds of statements that have a number."""


class Outcome(StrEnum):
    """The outcome: `OFF` if the number differs, `CONTRADICTS` if the sign, order or trend differs, `UNDECIDED` if the
    runs cannot tell, `OPEN` if our side has no number."""

    AGREES = "agrees"
    OFF = "off"
    CONTRADICTS = "contradicts"
    UNDECIDED = "undecided"
    OPEN = "open"


REFUTED = (Outcome.OFF, Outcome.CONTRADICTS)
"""Outcomes in which our value differs from the published one."""

ABOUT_SHARE = 0.15
"""The allowed relative deviation from a number called approximate."""
MAX_RUNS = 10_000
"""The limit on advised numbers of runs."""


@dataclass(frozen=True)
class Published:
    """A published statement: `value` and `last_digit` (the step of the last printed digit) of a number, or `margin`;
    `sign` (1 or -1) of an ordering or a trend; `runs`, the number of the paper's runs that a number is the mean of, and
    their standard deviation `sd` if the paper gives it."""

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
            raise ValueError(f"{self.kind}: only within and same have a margin, which must be above zero")
        if self.kind is Kind.ABOUT and self.value == 0:
            raise ValueError("about: 15 % of zero allows nothing; use printed")
        if self.runs is not None and not (number and self.runs >= 1):
            raise ValueError(f"{self.kind}: runs, 1 or more, is the number of runs behind a published mean")
        if self.sd is not None and not (self.runs and self.runs >= 2 and self.sd >= 0):
            raise ValueError(f"{self.kind}: sd, 0 or more, is the standard deviation of two or more runs")
        numbers = (self.value, self.last_digit, self.margin, self.sd)
        if not all(number is None or math.isfinite(number) for number in numbers):
            raise ValueError(f"{self.kind}: its numbers must be finite")

    @property
    def slack(self) -> float:
        """The allowed deviation from a published number, without scatter."""
        if self.kind is Kind.PRINTED:
            return (self.last_digit or 0.0) / 2
        if self.kind is Kind.ABOUT:
            return ABOUT_SHARE * abs(self.value or 0.0)
        return self.margin or 0.0


@dataclass(frozen=True)
class Verdict:
    """An outcome and the sentence that explains it."""

    outcome: Outcome
    because: str
    settles: int | None = None
    """If undecided: the number of runs that would settle it, if mean and scatter stay."""


def judge(published: Published, ours: Sample | None) -> Verdict:
    """Compares ours (None: not run; without values: no result) with the published value; see the module's docstring."""
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
    many = f"about {runs:,} runs" if runs <= MAX_RUNS else f"more than {MAX_RUNS:,} runs"
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
    # A tolerance for rounding: 0.5 printed and 0.55 ours are not exactly 0.05 apart in binary.
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
    """The verdict if nearly all runs have one value: how many differ, here and, at least, in the paper's runs."""
    value, slack, runs = published.value or 0.0, published.slack, published.runs
    low, high = ours.interval or (-math.inf, math.inf)
    if value - slack > ours.maximum or value + slack < ours.minimum:
        return Verdict(Outcome.OFF, f"{says}; no run can have that much")
    if value - slack <= low and high <= value + slack:
        return Verdict(Outcome.AGREES, says)
    usual, others = ours.usual
    says += f"; {others} of {ours.n} runs have another value than {figures(usual, 3)}"
    share = share_interval(others, ours.n)[1]
    if abs(value - usual) <= slack:
        # As many of the paper's runs as possible have the usual value.
        if (
            runs is not None
            and not published.sd  # its runs are not all equal
            and runs >= MIN_RUNS
            and ours.n >= 2 * runs
            and share <= share_interval(0, runs)[1]
        ):
            return Verdict(Outcome.AGREES, f"{says}, as none of {runs} in the paper")
        return Verdict(Outcome.UNDECIDED, says)
    fewest = _min_others(published, ours, runs or 1)
    if abs(value - ours.mean) > slack and fisher(fewest, runs or 1, others, ours.n) <= (1 - CONFIDENCE) / 2:
        return Verdict(Outcome.OFF, f"{says}, and {fewest} or more of {_runs(runs or 1)} in the paper")
    return Verdict(Outcome.UNDECIDED, says)


def _shared(published: Published, ours: Sample, says: str) -> Verdict:
    """The verdict on a share of runs: how many are yes, here and in the paper's runs."""
    value, slack, runs, span = (
        published.value or 0.0,
        published.slack,
        published.runs,
        ours.maximum - ours.minimum,
    )
    low, high = ours.interval or (ours.minimum, ours.maximum)
    if runs is None:
        beyond = low > value + slack or high < value - slack
        return Verdict(Outcome.OFF if beyond else Outcome.UNDECIDED, says)

    def count(of: float, rounded: Callable[[float], int]) -> int:
        return min(max(rounded((of - ours.minimum) / span * runs), 0), runs)

    theirs = count(value, round)
    # Of the counts that the printed number allows, take the one nearest to ours.
    lowest = min(theirs, count(value - slack - 1e-9 * span, math.ceil))
    highest = max(theirs, count(value + slack + 1e-9 * span, math.floor))
    says += f"; {ours.yes} of {ours.n} runs, and {theirs} of {runs} in the paper"
    p = min(fisher(lowest, runs, ours.yes, ours.n), fisher(runs - highest, runs, ours.n - ours.yes, ours.n))
    if abs(value - ours.mean) > slack and p <= (1 - CONFIDENCE) / 2:
        return Verdict(Outcome.OFF, says)
    lower, upper = (ours.minimum + span * end for end in share_interval(theirs, runs))
    within = lower - slack <= low and high <= upper + slack and ours.n >= 2 * runs
    return Verdict(Outcome.AGREES if within else Outcome.UNDECIDED, says)


def _min_others(published: Published, ours: Sample, runs: int) -> int:
    """The minimum number of the paper's runs with another value than our usual one: enough for its mean, and enough
    that they have no more scatter than printed (by Cauchy's inequality, the squares of k others with this mean sum to
    at least runs^2 away^2 / k)."""
    value, usual = published.value or 0.0, ours.usual[0]
    bound = ours.maximum if value > usual else ours.minimum
    away = abs(value - usual) - published.slack
    counts = [1.0, runs * away / abs(bound - usual) if math.isfinite(bound) else 0.0]
    if published.sd is not None:
        counts.append(runs * away**2 / (away**2 + published.sd**2 * (runs - 1) / runs))
    return math.ceil(max(counts) - 1e-9)


def settling(published: Published, ours: Sample) -> int | None:
    """How many runs would settle an undecided verdict, if mean and scatter stay; None if unknown."""
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

    low = high = max(ours.n + 1, MIN_RUNS if ours.steady else RARE_RUNS)
    while not settled(high):
        if high > MAX_RUNS:
            return high
        low, high = high, 2 * high
    while high - low > max(1, high // 20):
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high
