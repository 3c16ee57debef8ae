"""What several runs say of a measure: an interval of the mean where that can be had, and what else where not.

Which of them is decided by what the measure is, not by how a few values look: ten values without the rare one that
makes the mean look as good as normal ones, so that a test of their skewness keeps the worst samples
(docs/decisions/intervals.md).
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
"""Parts of the names of extremes and of what lies near them: their distributions have far outliers, as have those of
measures that a few rare events make (`Measure.scatter` "rare")."""
LEAST_RUNS = 10
"""Fewer have no interval of the mean: of those of 5 runs by t every seventh held less than 90 %."""
STRICTER = 0.2
"""Bounds of the share of runs that differ miss in so much less of all cases than other intervals do: at 99 % for 95 %.
They are printed of samples that are alike, which are more alike than all runs: those of 95 % held in 76 to 85 %."""
RESOLUTION = 0.002
"""Values of percentiles that differ by less are equal: so fine are the histograms that they come from."""


class Kind(enum.StrEnum):
    """What is known besides the mean."""

    T = "t"
    """An interval of the mean: Student's t, longer where values are skewed, cut at what the measure cannot exceed."""
    RUNS = "runs"
    """Four runs of five or more have the same value: how many have another, and a bound on the share of such runs."""
    MEDIAN = "median"
    """No interval of the mean; one of the median, by order statistics."""
    NONE = "none"
    """Nothing: too few runs."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Several runs' values of a measure, in its unit."""

    kind: Kind
    n: int
    """How many values it rests on."""
    mean: float | None
    """None without values."""
    sd: float | None
    """Sample standard deviation (n - 1); None below two values."""
    low: float | None = None
    """Lower end of the interval of the mean; None but for `Kind.T`."""
    high: float | None = None
    """Upper end."""
    half_width: float | None = None
    """Half of it; None where it was cut, and is not symmetrical."""
    median: float | None = None
    """None without values."""
    median_low: float | None = None
    """Lower end of the interval of the median, whatever the distribution; None where there are too few values."""
    median_high: float | None = None
    """Upper end."""
    usual: float | None = None
    """`Kind.RUNS`: the value that most runs have."""
    others: int | None = None
    """How many runs have another."""
    others_low: float | None = None
    """Lower end of Clopper and Pearson's interval of the share of such runs, of 99 % where others have 95 %."""
    others_high: float | None = None
    """Upper end."""

    @property
    def apart(self) -> bool:
        """Whether the mean lies outside the median's interval where that is all there is (`Kind.MEDIAN`)."""
        if self.kind is not Kind.MEDIAN or self.mean is None:
            return False
        return not (self.median_low or 0.0) <= self.mean <= (self.median_high or 0.0)


COLUMNS = tuple(f.name for f in fields(Interval) if f.name != "half_width")
"""What tables and JSON have of an interval."""


def steady(name: str) -> bool:
    """Whether a measure is an average over many packets or a long time, and not what rare events make."""
    found = measure(name)
    return (found is None or found.scatter != "rare") and not EXTREMES.intersection(name.split("_"))


def averages(name: str) -> bool:
    """Whether the mean of a measure over ten runs or more of transfers without an end has an interval that holds, as
    tests/test_coverage.py measures it. What is at a bound in most runs has none; nor have medians within a run, which
    stick to one of a few values."""
    found = measure(name)
    restless = (found is not None and found.scatter == "restless") or "p50" in name.split("_")
    return steady(name) and not restless


def interval(
    name: str, values: Iterable[Number], endless: bool = True, confidence: float = CONFIDENCE
) -> Interval:
    """What the values of independent runs say of a measure. Raises ArgumentError for an infinite value.

    `endless`: whether what sends is transfers without an end, as fast as they may. Of these alone, and of queues that
    they fill, the mean has an interval: what an application sends is the same in most runs, or of sizes that differ by
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
    ends, least = (e.mean - half, e.mean + half), 0.0 if float(x.min()) >= 0 else -math.inf
    most = 1.0 if is_share(name) else math.inf
    whole = half if least <= ends[0] and ends[1] <= most else None
    return replace(found, kind=Kind.T, low=max(ends[0], least), high=min(ends[1], most), half_width=whole)


def half_width(x: NDArray[np.float64], confidence: float = CONFIDENCE) -> float:
    """Half of an interval of the mean of skewed values: the longer side of that by Hall's transformation of t (Journal
    of the Royal Statistical Society B 54, 1992), and no less than Student's. Of two values or more.

    The transformation adds to t what the skewness g of n values moves it by, as a cubic that rises everywhere: with w
    the mean's error by the standard deviation, w + g w^2 / 3 + g^2 w^3 / 27 + g / (6 n).
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
    """The value that most runs have, and how many have another; of truths always 0."""
    if _are_truths(x):
        return 0.0, int(x.sum())
    if name.startswith(("rtt_p", "owd_p", "interarrival_p", "transfer_time_p")):
        middle = float(np.sort(x)[(len(x) - 1) // 2])
        return middle, int((np.abs(x - middle) > RESOLUTION * abs(middle)).sum())
    values, times = np.unique(x, return_counts=True)
    most = int(times.argmax())
    return float(values[most]), len(x) - int(times[most])


def _are_truths(x: NDArray[np.float64]) -> bool:
    """Whether some are 0, some 1, and none is anything else."""
    return bool(((x == 0) | (x == 1)).all()) and float(x.min()) < float(x.max())


def share_interval(k: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Bounds of a share of which k of n were seen: exact (Clopper and Pearson, Biometrika 26, 1934)."""
    tail = (1 - confidence) / 2
    low = 0.0 if k == 0 else special_functions.inverse(k, n - k + 1, tail)
    high = 1.0 if k == n else special_functions.inverse(k + 1, n - k, 1 - tail)
    return low, high


def median_interval(x: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Order statistics between which the median lies, whatever the distribution: of ten values the second and the
    ninth, with 97.9 %. None where even the least and the greatest hold less than `confidence`, for 95 % below six."""
    rank = median_rank(len(x), confidence)
    if rank == 0:
        return None
    ordered = np.sort(x)
    return float(ordered[rank - 1]), float(ordered[len(x) - rank])


_COUNTED = 100
"""Up to so many values chances are counted in whole numbers."""


@functools.lru_cache(maxsize=4096)
def median_rank(n: int, confidence: float = CONFIDENCE) -> int:
    """The greatest k for which the median of what n values come from lies between the k-th least and the k-th greatest
    of them with this chance; 0 if there is none.

    The median lies below the k-th value with the chance that fewer than k of n fall below it, of n tosses of a coin.
    """
    tail = (1 - confidence) / 2
    if n <= _COUNTED:
        # A float is a fraction: nothing is rounded, and where both sides are equal they are found equal.
        parts, whole = tail.as_integer_ratio()
        rank, ways, fewer = 0, 1, 1
        while fewer * whole <= parts << n:
            rank += 1
            ways = ways * (n - rank + 1) // rank
            fewer += ways
        return rank
    # Sums of binomial coefficients are the incomplete beta function (DLMF 8.17.5), which errs by less than neighbours
    # differ; the normal distribution's rank is off by one or two.
    rank = max(1, math.floor((n + NormalDist().inv_cdf(tail) * math.sqrt(n)) / 2))
    while rank and _fewer_than(rank, n) > tail:
        rank -= 1
    while _fewer_than(rank + 1, n) <= tail:
        rank += 1
    return rank


def _fewer_than(k: int, n: int) -> float:
    """The chance of fewer than k heads in n tosses, for k of 1 to n."""
    return special_functions.incomplete(n - k + 1, k, 0.5)
