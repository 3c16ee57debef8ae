"""Quantities: a sweep's values as numbers, and the units in which people read numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from paceline import _core
from paceline.axes import number
from paceline.results.measures import measure

UNITS = {
    "_s": "s",
    "_bps": "bit/s",
    "_packets": "packets",
    "_bytes": "B",
}
"""Unit by a column name's suffix. Counts, shares, ratios and indices have none."""

SHARE = "_share"
"""The suffix of columns that hold percentages as shares."""

_SCALES = {
    "bit/s": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
}


_UNPRINTED = ("packets", "frames", "share", "ratio")
"""Units that are not printed where a number stands below its name."""


def unit_of(column: str) -> str:
    """The unit of a column or measure: "goodput_bps" is in "bit/s"; "" for numbers without one. For other columns the
    name's suffix decides."""
    found = measure(column)
    return found.unit if found else next((unit for end, unit in UNITS.items() if column.endswith(end)), "")


def is_share(column: str) -> bool:
    """Whether a measure lies between 0 and 1."""
    found = measure(column)
    return found is not None and found.is_share


def scale(column: str, reach: float) -> tuple[float, str]:
    """The factor and the name of the unit for a column's values up to `reach`: (1e6, "Mbit/s")."""
    unit = unit_of(column)
    if (is_share(column) and column != "jain") or column.endswith(SHARE):
        return 0.01, "%"
    if unit in _SCALES:
        if reach == 0:
            return next((f, u) for f, u in _SCALES[unit] if f == 1.0)
        return next(((f, u) for f, u in _SCALES[unit] if reach >= f), _SCALES[unit][-1])
    return 1.0, "" if unit in _UNPRINTED else unit


def quantity(measure: str, mean: float | None, half_width: float | None = None) -> str:
    """A value as people read it: ("goodput_bps", 3.948e6, 1.2e5) is "3.95 ± 0.12 Mbit/s". A missing one is "-"."""
    if mean is None or math.isnan(mean):
        return "-"
    factor, unit = scale(measure, max(abs(mean), half_width or 0.0))
    text = digits(mean / factor, None if half_width is None else half_width / factor)
    return f"{text} {unit}".rstrip()


_MAX_DECIMALS = 4


def decimals_of(length: float) -> int:
    """The decimals that show two significant digits of a half width or interval length; at most four, also for 0."""
    return min(_MAX_DECIMALS, max(0, 1 - math.floor(math.log10(length)))) if length > 0 else _MAX_DECIMALS


def round_up(end: float, decimals: int) -> float:
    """An upper end or half width, rounded up if `decimals` is the maximum, so that no interval is printed shorter than
    it is."""
    place = 10.0**decimals
    return math.ceil(end * place - 1e-6) / place if decimals == _MAX_DECIMALS else end


def digits(value: float, half: float | None = None) -> str:
    """A number with three significant digits, or with those that its half width justifies."""
    if half is None:
        return _alone(value)
    if half < 5e-5:
        return f"{value:.4f} ± < 0.0001" if half > 0 and abs(value) >= 5e-5 else _alone(value)
    decimals = decimals_of(half)
    half = round_up(half, decimals)
    return f"{value:.{decimals}f} ± {half:.{decimals}f}"


def _alone(value: float) -> str:
    if value == int(value) and abs(value) < 1e7:
        return str(int(value))
    if 0 < abs(value) < 1e-4:
        return "< 0.0001" if value > 0 else "> -0.0001"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 5)}f}"


def figures(value: float, count: int) -> str:
    """A number with `count` significant digits, or more if its integer part has more; without an exponent unless the
    number is extremely large or small."""
    text = f"{value:.{count}g}"
    if "e" not in text or not 1e-9 <= abs(value) < 1e15:
        return text
    return f"{float(text):.12f}".rstrip("0").rstrip(".")


def numbers(values: Sequence[Any]) -> tuple[str, dict[Any, float]] | None:
    """A path's values as numbers in a base unit, with the suffix of a column that holds them: for "20 ms" and "1 s",
    "_s" with 0.02 and 1. Plain numbers have the suffix "". None unless all are quantities of one kind.
    """
    if not values or any(isinstance(value, bool) for value in values):
        return None
    if all(isinstance(value, int | float) for value in values):
        return "", {value: float(value) for value in values}
    if not all(isinstance(value, str) for value in values):
        return None
    for end, read in _READ.items():
        try:
            return end, {text: read(text.strip().strip("\"'")) for text in values}
        except ValueError:
            continue
    return None


def _of(unit: str) -> Callable[[str], float]:
    return lambda text: _core.quantity(text, unit)


def _packets(text: str) -> float:
    count, _, unit = text.partition("packet")
    return _plain(count) if unit in ("", "s") and count != text else _refuse(text)


def _share(text: str) -> float:
    return _plain(text[:-1]) / 100 if text.endswith("%") else _plain(text)


def _plain(text: str) -> float:
    found = number(text.strip())
    return _refuse(text) if isinstance(found, str) else float(found)


def _refuse(text: str) -> float:
    raise ValueError(text)


_READ = {**{end: _of(unit) for end, unit in UNITS.items()}, "_packets": _packets, SHARE: _share}
"""How a text is read as a number, by the column's suffix. A ValueError means that it is not one."""
