"""The uncertainty of a mean over runs: an interval suited to the sample, or none.

Verdicts and comparisons use it; tables print `paceline.interval`.

The measure and the values decide together which one (docs/measures.md gives the error rates):

- **certain**: a steady measure with the same value in every run. No randomness affects it.
- **counts**: nearly all runs of an unsteady measure have one value, or each run is yes or no. Clopper and Pearson's
  bounds of the share of the other runs, times how far one of them can lie away.
- **t**: Student's t. At 95 % for a steady measure whose values are not skewed; with fewer than ten runs at 99 %, and at
  99.9 % if the measure is unsteady or skewed.
- **bootstrap**: skewed values, from ten runs on. The studentised bootstrap (Efron 1982; Hall 1988), whose ends follow
  the skew, at 99 %.
- **few**: with fewer than five runs there is no interval.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from paceline.interval import share_interval
from paceline.statistics import CONFIDENCE, t_quantile, welch_degrees

Array = NDArray[np.float64]
Ends = tuple[float, float]

MIN_RUNS = 5
"""Below this, nothing is judged."""
FEW_RUNS = 10
"""Below this, Student's t is taken at `STRICT`, for skewed measures at `STRICTEST`: there is no better method."""
SURE_SKEW_RUNS = 20
"""Below this, a sample can hide its skew: see `SKEW`."""
SKEW = (0.7, 1.0)
"""Student's t is used if the sample's skewness is below the first value, or the second from `SURE_SKEW_RUNS` on."""
RARE_RUNS = 40
"""Fewer runs may easily miss what one run in ten has: see `Sample.may_lack`."""
STRICT = 0.99
"""Confidence of the bootstrap, and of t with few runs: at it each errs in at most 5 % of cases, skewed or not."""
STRICTEST = 0.999
RARE = 5
"""If fewer runs than this differ from the common value, they are counted, not averaged."""
RESAMPLES = 2000


class Basis(StrEnum):
    """The method of an interval: see the module's docstring."""

    CERTAIN = "certain"
    T = "t"
    COUNTS = "counts"
    BOOTSTRAP = "bootstrap"
    FEW = "few"


@dataclass(frozen=True)
class Sample:
    """The values of independent runs, in the unit of what is measured."""

    values: tuple[float, ...]
    """Run by run; for an expression over runs the jackknife's pseudo-values."""
    steady: bool = True
    """Whether the measure is an average over many packets or a long time: see `interval.steady`."""
    minimum: float = -math.inf
    """The minimum that a run can have."""
    maximum: float = math.inf
    """The maximum that a run can have."""
    about: float | None = None
    """The value over all runs, if it is not the mean of the values (for a ratio of means, for example)."""
    yes_no: bool = False
    """Whether each run says no (`minimum`) or yes (`maximum`), and the mean is a share of the runs."""
    lacking: bool = False
    """Whether leaving out one of the runs leaves no value: then there is no interval either."""
    own: tuple[float, ...] = ()
    """Each run's separate value, if `values` holds something else; nan if it has none."""

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.values)

    @property
    def each(self) -> tuple[float, ...]:
        """Each run's separate value."""
        return self.own or self.values

    @functools.cached_property
    def mean(self) -> float:
        """The value over all runs; meaningless without runs."""
        return math.fsum(self.values) / self.n if self.about is None else self.about

    @functools.cached_property
    def sd(self) -> float:
        """Sample standard deviation (n - 1); 0 for one run, and for equal ones."""
        if self.n < 2 or min(self.values) == max(self.values):
            return 0.0
        return float(np.std(self.values, ddof=1))

    @functools.cached_property
    def skewness(self) -> float:
        """The sample's skewness: the mean cubed deviation in standard deviations."""
        x = np.asarray(self.values)
        spread = float(x.std())
        return float((((x - x.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0

    @functools.cached_property
    def usual(self) -> tuple[float, int]:
        """The value that most runs have, and how many differ."""
        value, times = max(sorted(Counter(self.values).items()), key=lambda item: item[1])
        return value, self.n - times

    @property
    def why_few(self) -> str:
        """Why there is no interval."""
        if self.lacking:
            return "it has no value without one of the runs"
        return f"{self.n} run{'s' if self.n > 1 else ''}: it takes {MIN_RUNS}"

    @property
    def yes(self) -> int:
        """For yes/no runs: how many are yes."""
        return sum(value == self.maximum for value in self.values)

    @functools.cached_property
    def basis(self) -> Basis:
        """The method of the interval."""
        if self.n < MIN_RUNS or self.lacking:
            return Basis.FEW
        others = self.usual[1]
        if self.yes_no or (not self.steady and others < RARE and 5 * others <= self.n):
            return Basis.COUNTS
        if self.sd == 0:
            return Basis.CERTAIN
        return Basis.T if self.is_unskewed or self.n < FEW_RUNS else Basis.BOOTSTRAP

    @property
    def is_unskewed(self) -> bool:
        """Whether neither the measure nor these values are skewed."""
        return self.steady and abs(self.skewness) < SKEW[self.n >= SURE_SKEW_RUNS]

    @property
    def may_lack(self) -> bool:
        """Whether rare runs dominate the measure and the sample is small: the mean may have an interval and still lie
        far from that of many runs."""
        return not self.steady and self.n < RARE_RUNS and self.basis in (Basis.T, Basis.BOOTSTRAP)

    @property
    def confidence(self) -> float:
        """The confidence of the t interval."""
        if self.n >= FEW_RUNS:
            return CONFIDENCE
        return STRICT if self.is_unskewed else STRICTEST

    @functools.cached_property
    def interval(self) -> Ends | None:
        """The interval of the mean; None if there is none. Infinite ends if counts have no bound."""
        match self.basis:
            case Basis.FEW:
                return None
            case Basis.CERTAIN:
                return self.mean, self.mean
            case Basis.COUNTS:
                return self._of_counts()
            case Basis.T:
                half = t_quantile(self.confidence, self.n - 1) * self.sd / math.sqrt(self.n)
                low, high = self.mean - half, self.mean + half
            case Basis.BOOTSTRAP:
                below, above = self._studentised(None)
                error = self.sd / math.sqrt(self.n)
                low, high = self.mean - above * error, self.mean - below * error
        return max(low, self.minimum), min(high, self.maximum)

    def _of_counts(self) -> Ends:
        if self.yes_no:
            low, high = share_interval(self.yes, self.n)
            return self.minimum + low * (self.maximum - self.minimum), self.minimum + high * (
                self.maximum - self.minimum
            )
        usual, others = self.usual
        share = share_interval(others, self.n)[1]

        def end(bound: float) -> float:
            return usual if bound == usual else usual + share * (bound - usual)

        return end(self.minimum), end(self.maximum)

    def _studentised(self, runs: int | None) -> Ends:
        """The interval of the deviation of a resampled mean in its own standard errors: from the sample's mean, or from
        the mean of `runs` runs drawn from it."""
        x = np.asarray(self.values) - math.fsum(self.values) / self.n
        draw = np.random.default_rng(1)
        ours = x[draw.integers(0, self.n, (RESAMPLES, self.n))]
        away, factor = ours.mean(axis=1), 1 / self.n
        if runs is not None:
            away = x[draw.integers(0, self.n, (RESAMPLES, runs))].mean(axis=1) - away
            factor += 1 / runs
        error = ours.std(axis=1, ddof=1) * math.sqrt(factor)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(error > 0, away / error, np.sign(away) * np.inf)
        below, above = _ends(np.where(np.isnan(found), 0.0, found), STRICT)
        # If one run lies far from the others, resamples without it have almost no standard error.
        limit = t_quantile(STRICTEST, self.n - 1)
        return max(below, -limit), min(above, limit)

    def of_others(self, runs: int, sd: float | None = None) -> Ends:
        """How far the mean of `runs` foreign runs lies from this one if both have the same distribution: below and
        above. `sd`: the foreign runs' standard deviation, if known. Not for `COUNTS` and `FEW`."""
        if sd is not None:
            theirs, ours = sd**2 / runs, self.sd**2 / self.n
            degrees = _welch(theirs, runs, ours, self.n)
            half = t_quantile(self.confidence, degrees) * math.sqrt(theirs + ours)
            if self.basis is not Basis.BOOTSTRAP:
                return -half, half
            # The paper's few runs may miss the rare one too, and so show too little scatter.
            below, above = self.of_others(runs)
            return min(-half, below), max(half, above)
        spread = self.sd * math.sqrt(1 / runs + 1 / self.n)
        if self.basis is Basis.BOOTSTRAP:
            below, above = self._studentised(runs)
            return below * spread, above * spread
        half = t_quantile(self.confidence, self.n - 1) * spread if spread else 0.0
        return -half, half

    def scatter(self, runs: int, sd: float | None = None) -> Ends:
        """How far the mean of `runs` runs lies from its expectation, with 95 %: below and above."""
        if sd is not None:
            theirs, ours = sd**2 / runs, self.sd**2 / self.n
            half = t_quantile(CONFIDENCE, _welch(theirs, runs, ours, self.n)) * sd / math.sqrt(runs)
            return -half, half
        if self.basis is Basis.BOOTSTRAP:
            x = np.asarray(self.values) - math.fsum(self.values) / self.n
            drawn = x[np.random.default_rng(2).integers(0, self.n, (RESAMPLES, runs))]
            return _ends(drawn.mean(axis=1), CONFIDENCE)
        half = t_quantile(CONFIDENCE, self.n - 1) * self.sd / math.sqrt(runs)
        return -half, half


def _ends(values: Array, confidence: float) -> Ends:
    """The values between which the central share `confidence` lies."""
    ordered = np.sort(values)
    outside = int(len(ordered) * (1 - confidence) / 2)
    return float(ordered[outside]), float(ordered[-1 - outside])


def _welch(a: float, m: int, b: float, n: int) -> float:
    """Welch's degrees of freedom; without any scatter, those of the larger sample."""
    return welch_degrees(a, m, b, n) if a + b else max(m, n) - 1.0


def fisher(marked: int, runs: int, others: int, n: int) -> float:
    """The probability that at least `marked` of the marked runs are among the first `runs` of `runs` + `n`, given
    `marked` + `others` marked ones in all (Fisher's exact test)."""
    total, all_runs = marked + others, runs + n
    ways = math.comb(all_runs, total)
    if ways == 0:
        return 0.0
    counts = range(marked, min(runs, total) + 1)
    return sum(math.comb(runs, k) * math.comb(n, total - k) for k in counts if total - k <= n) / ways
