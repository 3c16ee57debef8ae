"""Statistics of runs: means with t intervals, paired differences, Holm's correction, Jain's index, trends.

Pure functions of numbers. A missing value (None or NaN: a measure that had no value in a run) is left out, and every
result gives the number of values it is based on (`n`). An infinite value is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import ArgumentError
from paceline.statistics import special_functions

Number = float | int | None

CONFIDENCE = 0.95
"""The default confidence of intervals."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its uncertainty, in the unit of the values."""

    n: int
    """The number of values."""
    mean: float | None
    """None without values."""
    sd: float | None
    """Sample standard deviation (n - 1); None below two values."""
    half_width: float | None
    """Half of the t interval of the mean; None below two values."""
    confidence: float = CONFIDENCE

    @classmethod
    def of(cls, n: int, mean: float | None, sd: float | None, confidence: float = CONFIDENCE) -> Estimate:
        """Estimate of n values with that mean and standard deviation: the interval is Student's."""
        if sd is None or n < 2:
            return cls(n, mean, None, None, confidence)
        return cls(n, mean, sd, t_quantile(confidence, n - 1) * sd / math.sqrt(n), confidence)

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return None if self.mean is None or self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return None if self.mean is None or self.half_width is None else self.mean + self.half_width

    def excludes_zero(self) -> bool:
        """Whether the interval exists and does not contain zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of paired differences second - first, with its t test."""

    estimate: Estimate
    first: Estimate
    second: Estimate
    p_value: float | None
    """Two-sided p of "the mean difference is zero"; None below two pairs."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A least-squares line y = intercept + slope x."""

    n: int
    slope: float | None
    """None if x takes fewer than two values."""
    intercept: float | None
    half_width: float | None
    """Half of the t interval of the slope; None below three points."""
    p_value: float | None
    """Two-sided p of "the slope is zero"; None below three points."""
    confidence: float = CONFIDENCE

    @property
    def sign(self) -> int:
        """+1 or -1 if the slope's interval lies on one side of zero, else 0."""
        if self.slope is None or self.half_width is None or abs(self.slope) <= self.half_width:
            return 0
        return 1 if self.slope > 0 else -1


def present(values: Iterable[Number]) -> NDArray[np.float64]:
    """The values that are not missing, in order. Raises ArgumentError for an infinite one."""
    array = np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)
    if np.isinf(array).any():
        raise ArgumentError("a mean needs finite values, and one is infinite")
    return array[~np.isnan(array)]


def t_quantile(confidence: float, degrees: float) -> float:
    """The two-sided quantile of Student's t: t lies within plus or minus it with probability `confidence`."""
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must lie between 0 and 1, not {confidence}")
    if degrees < 1:
        raise ArgumentError(f"degrees of freedom must be at least 1, not {degrees}")
    return special_functions.t_within(confidence, degrees)


def _two_sided_p(mean: float, standard_error: float, degrees: float) -> float:
    if standard_error == 0:
        return 1.0 if mean == 0 else 0.0
    return special_functions.t_beyond(abs(mean) / standard_error, degrees)


def estimate(values: Iterable[Number], confidence: float = CONFIDENCE) -> Estimate:
    """Mean, standard deviation and t interval of independent values."""
    x = present(values)
    n = len(x)
    if n == 0:
        return Estimate(0, None, None, None, confidence)
    mean = _mean(x)
    return Estimate.of(n, mean, _sd(x, mean) if n > 1 else None, confidence)


def _mean(x: NDArray[np.float64]) -> float:
    # fsum is exact, so the mean of equal values is exactly their value, in any order.
    return min(max(math.fsum(x) / len(x), float(x.min())), float(x.max()))


def _sd(x: NDArray[np.float64], mean: float) -> float:
    # Scaled, so that squares neither overflow nor underflow.
    deviations = x - mean
    scale = float(np.abs(deviations).max())
    if scale == 0:
        return 0.0
    return scale * math.sqrt(math.fsum((deviations / scale) ** 2) / (len(x) - 1))


def paired_difference(
    first: Sequence[Number], second: Sequence[Number], confidence: float = CONFIDENCE
) -> Difference:
    """Mean of second - first over pairs (runs with a common seed), with a t interval and a t test.

    A pair with a missing value is left out. Raises ArgumentError if the lengths differ.
    """
    if len(first) != len(second):
        raise ArgumentError(f"pairs need two lists of equal length, not {len(first)} and {len(second)}")
    pairs = [
        (float(a), float(b))
        for a, b in zip(first, second, strict=True)
        if a is not None and b is not None and not math.isnan(a) and not math.isnan(b)
    ]
    a = estimate([p[0] for p in pairs], confidence)
    b = estimate([p[1] for p in pairs], confidence)
    d = estimate([p[1] - p[0] for p in pairs], confidence)
    p_value = None
    if d.mean is not None and d.sd is not None:
        p_value = _two_sided_p(d.mean, d.sd / math.sqrt(d.n), d.n - 1)
    return Difference(d, a, b, p_value)


def welch_degrees(a: float, m: int, b: float, n: int) -> float:
    """Degrees of freedom of the difference of two means of m and n values, whose squared errors are a and b, not both 0
    (Welch, Biometrika 34, 1947)."""
    return (a + b) ** 2 / (a**2 / (m - 1) + b**2 / (n - 1))


def independent_difference(
    first: Iterable[Number], second: Iterable[Number], confidence: float = CONFIDENCE
) -> Estimate:
    """Mean of the second values minus the mean of the first, unpaired, with Welch's interval (Biometrika 34, 1947): the
    variances may differ. There is no interval if a side has fewer than two values."""
    a, b = estimate(first, confidence), estimate(second, confidence)
    n = min(a.n, b.n)
    if a.mean is None or b.mean is None:
        return Estimate(n, None, None, None, confidence)
    if a.sd is None or b.sd is None:
        return Estimate(n, b.mean - a.mean, None, None, confidence)
    of_a, of_b = a.sd**2 / a.n, b.sd**2 / b.n
    variance = of_a + of_b
    if variance == 0:
        return Estimate(n, b.mean - a.mean, 0.0, 0.0, confidence)
    half = t_quantile(confidence, welch_degrees(of_a, a.n, of_b, b.n)) * math.sqrt(variance)
    return Estimate(n, b.mean - a.mean, math.sqrt(variance * n), half, confidence)


def welch_p_value(first: Estimate, second: Estimate) -> float | None:
    """Two-sided p of "both means are equal", by Welch's test; None if a side has fewer than two values."""
    if first.mean is None or first.sd is None or second.mean is None or second.sd is None:
        return None
    of_first, of_second = first.sd**2 / first.n, second.sd**2 / second.n
    error = math.sqrt(of_first + of_second)
    degrees = welch_degrees(of_first, first.n, of_second, second.n) if error else 1.0
    return _two_sided_p(second.mean - first.mean, error, degrees)


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two means, second by first, over pairs."""

    n: int
    """The number of pairs."""
    ratio: float | None
    """None without pairs, or if the first mean is zero."""
    low: float | None
    """Lower end of Fieller's interval; None below two pairs, and if the first mean is too uncertain for a bound."""
    high: float | None
    """Upper end."""
    first: Estimate
    second: Estimate
    confidence: float = CONFIDENCE


def ratio_of_means(
    first: Sequence[Number], second: Sequence[Number], confidence: float = CONFIDENCE
) -> Ratio:
    """mean(second) / mean(first) over pairs (runs with a common seed), with Fieller's interval (JRSS B 16, 1954).

    The interval contains the ratios r for which the mean of second - r first does not differ from zero at this
    confidence, by a paired t test. Unlike the delta method, it is valid for few and noisy pairs too. TCP friendliness
    is this ratio: throughput T2 of flows beside others, over T1, their throughput among themselves.

    A pair with a missing value is left out. Raises ArgumentError if the lengths differ.
    """
    difference = paired_difference(first, second, confidence)
    a, b, n = difference.first, difference.second, difference.estimate.n
    if a.mean is None or b.mean is None or a.mean == 0:
        return Ratio(n, None, None, None, a, b, confidence)
    ratio = b.mean / a.mean
    d = difference.estimate
    if n < 2 or a.sd is None or b.sd is None or d.sd is None:
        return Ratio(n, ratio, None, None, a, b, confidence)
    # var(second - r first) = vb - 2 r c + r^2 va, and c from var(second - first) = va + vb - 2 c
    va, vb = a.sd**2 / n, b.sd**2 / n
    c = (va + vb - d.sd**2 / n) / 2
    t2 = t_quantile(confidence, n - 1) ** 2
    # (mb - r ma)^2 = t2 (vb - 2 r c + r^2 va), a quadratic in r
    square = a.mean**2 - t2 * va
    if square <= 0:
        return Ratio(n, ratio, None, None, a, b, confidence)
    half = a.mean * b.mean - t2 * c
    root = math.sqrt(max(0.0, half**2 - square * (b.mean**2 - t2 * vb)))
    ends = sorted(((half - root) / square, (half + root) / square))
    return Ratio(n, ratio, ends[0], ends[1], a, b, confidence)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (Holm 1979): adjusted p values in the given order.

    If you reject every hypothesis with an adjusted p below q, the probability of even one false rejection is below q,
    for any dependence among the tests. None (a test that could not be made) stays None and is not counted.
    """
    order = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p))
        adjusted[i] = largest
    return adjusted


def jain(values: Iterable[Number]) -> float | None:
    """Jain's fairness index (sum x)^2 / (n sum x^2), from 1/n to 1 (Jain, Chiu, Hawe 1984).

    None if there is no value or all are zero. Raises ArgumentError for a negative value.
    """
    x = present(values)
    if len(x) == 0 or (float(x.max(initial=0.0)) == 0 and float(x.min(initial=0.0)) == 0):
        return None
    if float(x.min()) < 0:
        raise ArgumentError("Jain's index needs shares, which cannot be negative")
    x = x / x.max()
    return min(1.0, math.fsum(x) ** 2 / (len(x) * math.fsum(x * x)))


def trend(x: Sequence[Number], y: Sequence[Number], confidence: float = CONFIDENCE) -> Trend:
    """Least-squares slope of y over x with its t interval; points with a missing value are left out.

    Raises ArgumentError if the lengths differ.
    """
    if len(x) != len(y):
        raise ArgumentError(f"points need two lists of equal length, not {len(x)} and {len(y)}")
    points = [
        (float(a), float(b))
        for a, b in zip(x, y, strict=True)
        if a is not None and b is not None and not math.isnan(a) and not math.isnan(b)
    ]
    n = len(points)
    xs, ys = present(p[0] for p in points), present(p[1] for p in points)
    if n < 2 or float(xs.min()) == float(xs.max()):
        return Trend(n, None, None, None, None, confidence)
    x_mean, y_mean = _mean(xs), _mean(ys)
    dx, dy = xs - x_mean, ys - y_mean
    spread = math.fsum(dx * dx)
    if spread == 0:
        return Trend(n, None, None, None, None, confidence)
    slope = math.fsum(dx * dy) / spread
    intercept = y_mean - slope * x_mean
    if n < 3:
        return Trend(n, slope, intercept, None, None, confidence)
    residual = dy - slope * dx
    error = math.sqrt(math.fsum(residual * residual) / (n - 2) / spread)
    half_width = t_quantile(confidence, n - 2) * error
    return Trend(n, slope, intercept, half_width, _two_sided_p(slope, error, n - 2), confidence)
