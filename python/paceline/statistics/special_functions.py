"""The regularised incomplete beta function and its inverse, for Student's t and bounds of shares.

They are the only special functions that the package needs; SciPy would be a quarter of the installation
(docs/decisions/what-is-installed.md).
"""

from __future__ import annotations

import functools
import math

from paceline.errors import ArgumentError

_EPSILON = 2.0**-53
_TINY = 1e-300
_MAX_STEPS = 100_000


def incomplete(a: float, b: float, x: float) -> float:
    """I_x(a, b), from 0 at x = 0 to 1 at x = 1 (DLMF 8.17), for a and b above 0."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    # The continued fraction converges fast below the mean; above it, use the symmetry (DLMF 8.17.4).
    if x > (a + 1) / (a + b + 2):
        return 1 - _below(b, a, 1 - x)
    return _below(a, b, x)


def _below(a: float, b: float, x: float) -> float:
    """I_x(a, b) by its continued fraction (DLMF 8.17.22), with Lentz's method (Thompson and Barnett 1986)."""
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b)) / a
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            change = c * d
            fraction *= change
        if abs(change - 1) < 4 * _EPSILON:
            return front * fraction
    raise ArithmeticError(f"I_x({a}, {b}) at {x} does not converge")


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@functools.lru_cache(maxsize=4096)
def inverse(a: float, b: float, p: float) -> float:
    """The x at which I_x(a, b) is p: Newton's method, with bisection where a step leaves the bracket."""
    if not 0 < p < 1:
        raise ArgumentError(f"p must lie between 0 and 1, not {p}")
    low, high, x = 0.0, 1.0, a / (a + b)
    for _ in range(2000):
        error = incomplete(a, b, x) - p
        if abs(error) <= 2 * _EPSILON * p:
            return x
        low, high = (low, x) if error > 0 else (x, high)
        slope = (a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - _log_beta(a, b)
        # The slope may exceed a float's range where the function is flat or steep.
        step = error / math.exp(slope) if abs(slope) < 700 else math.inf
        after = x - step if low < x - step < high else (low + high) / 2
        if abs(after - x) <= 2 * _EPSILON * x:
            return after
        x = after
    return x


def t_beyond(t: float, degrees: float) -> float:
    """The probability that Student's t lies further from zero than `t`, on either side (DLMF 8.17, Abramowitz and
    Stegun 26.7.1)."""
    if t < 1:
        # Here 1 - x would cancel.
        return 1 - incomplete(0.5, degrees / 2, t * t / (degrees + t * t))
    return incomplete(degrees / 2, 0.5, degrees / (degrees + t * t))


def t_within(confidence: float, degrees: float) -> float:
    """The distance from zero within which Student's t lies with this probability."""
    if confidence < 0.5:
        y = inverse(0.5, degrees / 2, confidence)
        return math.sqrt(degrees * y / (1 - y))
    x = inverse(degrees / 2, 0.5, 1 - confidence)
    return math.sqrt(degrees * (1 - x) / x)
