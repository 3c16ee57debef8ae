"""Quantities: the values of a sweep's paths as numbers, and the units in which people read numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from paceline import _core
from paceline.axes import number
from paceline.files import UNITS, unit_of
from paceline.interval import SHARES

SHARE = "_share"
"""The end of columns that hold what was given in per cent."""

_SCALES = {
    "bit/s": [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
    "s": [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
    "B": [(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
}


def scale(measure: str, reach: float) -> tuple[float, str]:
    """The factor and the name of the unit for values of a measure up to `reach`: (1e6, "Mbit/s")."""
    unit = unit_of(measure)
    if (measure in SHARES and measure != "jain") or measure.endswith(SHARE):
        return 0.01, "%"
    if unit in _SCALES:
        if reach == 0:
            return next((f, u) for f, u in _SCALES[unit] if f == 1.0)
        return next(((f, u) for f, u in _SCALES[unit] if reach >= f), _SCALES[unit][-1])
    return 1.0, "" if unit == "packets" else unit


def numbers(values: Sequence[Any]) -> tuple[str, dict[Any, float]] | None:
    """Values of one path as numbers in a base unit, and the end of the name of a column that holds them: of "20 ms"
    and "1 s" 0.02 and 1, and "_s". What is a number by itself has the end "". None unless all are quantities of a kind.
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
"""How a text is read as a number, by the end of the column's name. A ValueError says that it is none."""
