"""The summary of a measure over several runs: an interval of the mean where one is valid, else another statistic.

The measure's kind decides, not the look of a few values: ten values without the rare one that dominates the mean look
as good as normal ones, so a test of their skewness would pass the worst samples (docs/decisions/intervals.md).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from paceline.quantities import is_share
from paceline.results.measures import measure
from paceline.statistics import CONFIDENCE, Number, estimate, present, special_functions

EXTREMES = frozenset(["max", "min", "p95", "p99"])
"""Name parts of extremes and near-extremes: their distributions have far outliers, as have measures that a few rare
events dominate (`Measure.scatter` "rare")."""
LEAST_RUNS = 10
"""With fewer runs there is no interval of the mean: of the t intervals of 5 runs, one in seven covered below 90 %."""
STRICTER = 0.2
"""The bounds on the share of differing runs miss this much less often than other intervals: 99 % for 95 %. They are
printed for samples that are alike, which are more alike than all runs: bounds of 95 % covered 76 to 85 %."""
RESOLUTION = 0.002
"""Percentile values that differ by less are equal: this is the resolution of the histograms behind them."""
COARSE = ("rtt_p", "owd_p", "interarrival_p", "transfer_time_p")
"""Beginnings of the names of percentiles from histograms."""


class Kind(enum.StrEnum):
    """The statistic given besides the mean."""

    T = "t"
    """An interval of the mean: Student's t, widened for skewed values, cut at the measure's bounds."""
    RUNS = "runs"
    """At least four runs in five have the same value: how many differ, and a bound on the share of such runs."""
    MEDIAN = "median"
    """No interval of the mean; one of the median, by order statistics."""
    NONE = "none"
    """None: too few runs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The summary of a measure over several runs, in its unit."""

    kind: Kind
    n: int
    """The number of values."""
    mean: float | None
    """None without values."""
    sd: float | None
    """Sample standard deviation (n - 1); None below two values."""
    low: float | None = None
    """Lower end of the interval of the mean; only with `Kind.T`."""
    high: float | None = None
    """Upper end."""
    half_width: float | None = None
    """Half the interval's width; None if it was cut and so is not symmetrical."""
    median: float | None = None
    """None without values."""
    median_low: float | None = None
    """Lower end of the interval of the median, valid for any distribution; None with too few values."""
    median_high: float | None = None
    """Upper end."""
    usual: float | None = None
    """With `Kind.RUNS`: the value that most runs have."""
    others: int | None = None
    """The number of runs with another value."""
    others_low: float | None = None
    """Lower end of Clopper and Pearson's interval of the share of such runs; at 99 % where others have 95 %."""
    others_high: float | None = None
    """Upper end."""

    @property
    def apart(self) -> bool:
        """Whether the mean lies outside the median's interval, which is the only one there is (`Kind.MEDIAN`)."""
        if self.kind is not Kind.MEDIAN or self.mean is None:
            return False
        return not (self.median_low or 0.0) <= self.mean <= (self.median_high or 0.0)


COLUMNS = tuple(f.name for f in fields(Interval) if f.name != "half_width")
"""The fields of an interval in tables and JSON."""


def steady(name: str) -> bool:
    """Whether a measure averages many packets or a long time, instead of being dominated by rare events."""
    found = measure(name)
    return (found is None or found.scatter != "rare") and not EXTREMES.intersection(name.split("_"))


def averages(name: str) -> bool:
    """Whether the interval of the mean of a measure is valid over at least ten runs of endless transfers, as
    tests/test_coverage.py measures. It is not for measures at a bound in most runs, nor for medians within a run, which
    take one of a few values."""
    found = measure(name)
    restless = (found is not None and found.scatter == "restless") or "p50" in name.split("_")
    return steady(name) and not restless


def interval(
    name: str, values: Iterable[Number], endless: bool = True, confidence: float = CONFIDENCE
) -> Interval:
    """Summarises a measure over independent runs. Raises ArgumentError for an infinite value.

    `endless`: whether all traffic is endless transfers that send as fast as they may. Only their measures, and those of
    queues that they fill, have an interval of the mean: an application's traffic is the same in most runs, or varies by
    orders of magnitude.
    """
    x = present(values)
    e = estimate(x, confidence)
    if e.mean is None:
        return Interval(Kind.NONE, 0, None, None)
    low, high = median_interval(x, confidence) or (None, None)
    found = Interval(
        Kind.NONE, e.n, e.mean, e.sd, median=float(np.median(x)), median_low=low, median_high=high
    )
    if e.n == 1:
        return found
    usual, others = _usual(name, x)
    if 5 * others <= e.n or _are_truths(x):
        bounds = share_interval(others, e.n, 1 - STRICTER * (1 - confidence))
        return replace(
            found, kind=Kind.RUNS, usual=usual, others=others, others_low=bounds[0], others_high=bounds[1]
        )
    if 2 * others < e.n or e.n < LEAST_RUNS or not (endless and averages(name)):
        return found if low is None else replace(found, kind=Kind.MEDIAN)
    half = half_width(x, confidence)
    ends, lower = (e.mean - half, e.mean + half), 0.0 if float(x.min()) >= 0 else -math.inf
    upper = 1.0 if is_share(name) else math.inf
    whole = half if lower <= ends[0] and ends[1] <= upper else None
    return replace(found, kind=Kind.T, low=max(ends[0], lower), high=min(ends[1], upper), half_width=whole)


def half_width(x: NDArray[np.float64], confidence: float = CONFIDENCE) -> float:
    """Half width of an interval of the mean of skewed values: the longer side of Hall's transformed t interval (Journal
    of the Royal Statistical Society B 54, 1992), and at least Student's. Needs two values or more.

    The transformation corrects t for the skewness g of n values by a monotonic cubic: with w the error of the mean over
    the standard deviation, w + g w^2 / 3 + g^2 w^3 / 27 + g / (6 n).
    """
    e = estimate(x, confidence)
    if e.mean is None or not e.sd or e.half_width is None:
        return e.half_width or 0.0
    w = (x - e.mean) / e.sd
    g = float((w**3).mean() / (w**2).mean() ** 1.5)
    if abs(g) < 1e-6:
        return e.half_width
    t = e.half_width / e.sd
    sides = (abs(3 / g * (math.cbrt(1 + g * (end - g / (6 * e.n))) - 1)) for end in (t, -t))
    return max(t, *sides) * e.sd


def _usual(name: str, x: NDArray[np.float64]) -> tuple[float, int]:
    """The value that most runs have, and how many differ; for 0/1 values the value is always 0."""
    if _are_truths(x):
        return 0.0, int(x.sum())
    if name.startswith(COARSE):
        middle = float(np.sort(x)[(len(x) - 1) // 2])
        return middle, int((np.abs(x - middle) > RESOLUTION * abs(middle)).sum())
    values, times = np.unique(x, return_counts=True)
    commonest = int(times.argmax())
    return float(values[commonest]), len(x) - int(times[commonest])


def _are_truths(x: NDArray[np.float64]) -> bool:
    """Whether all values are 0 or 1, with at least one of each."""
    return bool(((x == 0) | (x == 1)).all()) and float(x.min()) < float(x.max())


def share_interval(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Exact bounds of a share, k of n observed (Clopper and Pearson, Biometrika 26, 1934)."""
    tail = (1 - confidence) / 2
    low = 0.0 if k == 0 else special_functions.inverse(k, n - k + 1, tail)
    high = 1.0 if k == n else special_functions.inverse(k + 1, n - k, 1 - tail)
    return low, high


def median_interval(x: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The order statistics between which the median lies, for any distribution: of ten values the second and the ninth,
    with 97.9 %. None if even minimum and maximum cover less than `confidence`: for 95 %, below six values."""
    rank = median_rank(len(x), confidence)
    if rank == 0:
        return None
    ordered = np.sort(x)
    return float(ordered[rank - 1]), float(ordered[len(x) - rank])


_COUNTED = 100
"""Up to this number of values, probabilities are computed exactly in integers."""


@functools.lru_cache(maxsize=4096)
def median_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """The largest k for which the distribution's median lies between the k-th smallest and the k-th largest of n values
    with this confidence; 0 if there is none.

    The median lies below the k-th value with the probability that n tosses of a coin give fewer than k heads.
    """
    tail = (1 - confidence) / 2
    if n <= _COUNTED:
        # A float is a fraction of integers: nothing is rounded, and equal sides compare equal.
        parts, whole = tail.as_integer_ratio()
        rank, ways, fewer = 0, 1, 1
        while fewer * whole <= parts << n:
            rank += 1
            ways = ways * (n - rank + 1) // rank
            fewer += ways
        return rank
    # The sum of binomial coefficients is the incomplete beta function (DLMF 8.17.5), whose error is smaller than the
    # difference between neighbours; the normal approximation's rank is off by one or two.
    rank = max(1, math.floor((n + NormalDist().inv_cdf(tail) * math.sqrt(n)) / 2))
    while rank and _fewer_than(rank, n) > tail:
        rank -= 1
    while _fewer_than(rank + 1, n) <= tail:
        rank += 1
    return rank


def _fewer_than(k: int, n: int) -> float:
    """The probability of fewer than k heads in n tosses, for k from 1 to n."""
    return special_functions.incomplete(n - k + 1, k, 0.5)
