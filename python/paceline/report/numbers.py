"""The notation of numbers on a page."""

from __future__ import annotations

import math
import re

from paceline.statistics import Estimate

_SENSIBLE_DIGITS = 3


def number(value: float | None, half_width: float | None = None) -> str:
    """A number with the decimals that its half width justifies (two digits of the half width, at most four decimals),
    else three digits."""
    if value is None or not math.isfinite(value):
        return "–"
    scale = half_width if half_width else abs(value)
    if scale == 0:
        return "0"
    decimals = (1 if half_width else 2) - math.floor(math.log10(scale))
    if value != 0:
        decimals = min(decimals, _SENSIBLE_DIGITS - math.floor(math.log10(abs(value))))
    text = f"{value:.{max(0, min(decimals, 6))}f}"
    # A number that rounds to zero has no sign.
    return text.replace("-", "−" if float(text) else "")


def plus_minus(ours: Estimate | None) -> str:
    """ "2.49 ± 0.31"; "8.00, all 10" if all runs have one value; a dash without a value."""
    if ours is None or ours.mean is None:
        return "–"
    if not ours.half_width:
        return number(ours.mean) + ("" if ours.half_width is None else f", all {ours.n}")
    mean = number(ours.mean, ours.half_width)
    decimals = len(mean.partition(".")[2])
    half = f"{ours.half_width:.{decimals}f}"
    if not float(half):
        half = f"less than {10.0**-decimals:.{decimals}f}"
    return f"{mean} ± {half}"


def unit_of(label: str) -> str:
    """The unit in brackets at the end of an axis' label; "" without one."""
    found = re.search(r" \(([^()]*)\)$", label)
    return found[1] if found else ""
