"""The search space of a hunt: paths with ranges and choices.

    "link.bottleneck.delay=5 ms..200 ms"      a range, including both ends
    "flow.film.cc=vegas,cubic"                choices, as in `paceline sweep --vary`

A place on a range is a number, 0 at its low end and 1 at its high end; choices are known by their index. Values are
text as in a scenario, so that the values that run are exactly those that are written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.arguments import plain
from paceline.axes import axis, check_set, number, read, split
from paceline.errors import ArgumentError, PacelineError
from paceline.messages.argument_names import option
from paceline.quantities import numbers
from paceline.scenarios.scenario import assignment, toml_value

LOGARITHMIC_FROM = 10.0
"""A range whose ends, both above zero, differ by this factor is searched by its logarithm."""

_FIGURES = 3
_STEPS = 100.0
"""A linear range has at least this number of steps, and at most ten times as many."""

_IDLE = ("name", "description")
"""Paths that do not affect results."""

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)

Value = str | None
"""A value tried on an axis, as text; None is the file's own value."""
Candidate = tuple[Value, ...]
"""A value for each axis."""


@dataclass(frozen=True)
class Unit:
    """A range's unit, and its factor to the base unit."""

    name: str
    factor: float

    def text(
        self, value: float, *, figures: int | None = None, decimals: int = 12, whole: bool = False
    ) -> str:
        """A value in base units as text, rounded to significant figures, or to decimals."""
        shown = value / self.factor
        if whole:
            shown = float(round(shown))
        elif figures is not None and shown:
            shown = round(shown, figures - 1 - math.floor(math.log10(abs(shown))))
        else:
            shown = round(shown, decimals)
        return f"{np.format_float_positional(shown, trim='-')} {self.name}".rstrip()


@dataclass(frozen=True)
class Range:
    """Paths with a common value, from `low` to `high` in base units."""

    paths: tuple[str, ...]
    low: float
    high: float
    ends: tuple[Unit, Unit]
    whole: bool

    @property
    def logarithmic(self) -> bool:
        """Whether it is searched by its logarithm."""
        return self.low > 0 and self.high / self.low >= LOGARITHMIC_FROM

    def place(self, value: str) -> float | None:
        """The place of a value, outside 0 to 1 if it is outside the range; None for another kind of text."""
        found = numbers([f"{self.low / self.ends[0].factor:.17g} {self.ends[0].name}".strip(), value])
        if found is None:
            return None
        base = found[1][value]
        if self.logarithmic:
            return math.log(base / self.low) / math.log(self.high / self.low) if base > 0 else None
        return (base - self.low) / (self.high - self.low)

    def at(self, place: float) -> str:
        """The value at a place, rounded."""
        low, high = self.low, self.high
        value = low * (high / low) ** place if self.logarithmic else low + (high - low) * place
        unit = self._unit(value)
        if self.logarithmic:
            text = unit.text(value, figures=_FIGURES, whole=self.whole)
        else:
            step = (high - low) / _STEPS / unit.factor
            text = unit.text(value, decimals=max(0, -math.floor(math.log10(step))), whole=self.whole)
        if not 0 <= place <= 1:
            return text
        # rounding must not leave the range
        there = self.place(text)
        if there is None or there < 0:
            return self._end(0)
        return self._end(1) if there > 1 else text

    def rounder(self, value: str) -> str:
        """The value with one significant figure less: "197 ms" is "200 ms"."""
        place = self.place(value)
        if place is None or self.whole:
            return value
        base = (
            self.low * (self.high / self.low) ** place
            if self.logarithmic
            else self.low + (self.high - self.low) * place
        )
        text = self._unit(base).text(base, figures=2)
        there = self.place(text)
        return text if there is not None and 0 <= there <= 1 else value

    def _unit(self, value: float) -> Unit:
        low, high = self.ends
        return high if abs(value) >= high.factor * (1 - 1e-9) or high.factor <= low.factor else low

    def _end(self, which: int) -> str:
        return self.ends[which].text((self.low, self.high)[which], whole=self.whole)

    def changes(self, value: str) -> dict[str, str]:
        """The settings for a value."""
        return dict.fromkeys(self.paths, value)

    def ends_text(self) -> list[str]:
        """The values at its ends."""
        return [self._end(0), self._end(1)]


@dataclass(frozen=True)
class Choices:
    """Paths that vary together, and their allowed values, a text for each path."""

    paths: tuple[str, ...]
    steps: tuple[tuple[str, ...], ...]

    def values(self) -> list[str]:
        """The choices as texts, with colons between values of several paths."""
        return [":".join(step) for step in self.steps]

    def place(self, value: str) -> float | None:
        """The index of a choice; None for another value."""
        there = self.values()
        return float(there.index(value)) if value in there else None

    def changes(self, value: str) -> dict[str, str]:
        """The settings for a value."""
        return dict(zip(self.paths, self.steps[self.values().index(value)], strict=True))


Axis = Range | Choices


def over_of(texts: Sequence[str]) -> dict[str | tuple[str, ...], Any]:
    """Reads repeated options PATH=LOW..HIGH or PATH=A,B,...: paths, or tuples of those that vary together, with a range
    as text or a list of choices. Raises PacelineError."""
    found: dict[str | tuple[str, ...], Any] = {}
    for text in texts:
        names, values = assignment(text)
        paths = tuple(split(names, ","))
        if _is_range(values):
            key: str | tuple[str, ...] = paths if len(paths) > 1 else names
            value: Any = values
        else:
            key, value = axis(text)
        if key in found:
            raise PacelineError(f"{names} is given twice: give its values in one option")
        found[key] = value
    return found


def _is_range(text: str) -> bool:
    """Whether it looks like a range: two dots, and a number before or after them."""
    low, dots, high = text.partition("..")
    return bool(dots) and (_QUANTITY.fullmatch(low.strip()) or _QUANTITY.fullmatch(high.strip())) is not None


def axes_of(over: Mapping[Any, Any], changes: Mapping[str, Any]) -> list[Axis]:
    """The axes of a hunt over these paths, with these settings. Raises PacelineError."""
    if not over:
        raise PacelineError(f"nothing to search: give {option('over', 'PATH=LOW..HIGH')}")
    found: list[Axis] = []
    for key, given in over.items():
        paths = (key,) if isinstance(key, str) else tuple(key)
        if idle := [path for path in paths if path in _IDLE]:
            raise PacelineError(f"{option('over', idle[0])}: leave it out, since no result depends on it")
        value = plain(given)
        if isinstance(value, str):
            found.append(_range(paths, value))
        elif isinstance(value, list | tuple):
            found.append(_choices(paths, [plain(one) for one in value]))
        else:
            raise ArgumentError(
                f'over {", ".join(paths)}: give a range as "5 ms..200 ms", or a list of choices, not {given!r}'
            )
    # paths within others, repeated paths, and seeds raise the same errors as in a sweep
    vary = {one.paths: [("",) * len(one.paths)] for one in found}
    read(vary)
    check_set(changes, vary)
    return found


def _choices(paths: tuple[str, ...], values: Sequence[Any]) -> Choices:
    what = option("over", ", ".join(paths))
    if len(values) < 2:
        raise PacelineError(
            f"{what}: one value leaves nothing to search; give a range, LOW..HIGH, or several values"
        )
    steps = [value if isinstance(value, list | tuple) else (value,) for value in values]
    if any(len(step) != len(paths) for step in steps):
        raise PacelineError(f"{what}: each choice has {len(paths)} values, with colons between")
    return Choices(paths, tuple(tuple(toml_value(value) for value in step) for step in steps))


def _range(paths: tuple[str, ...], text: str) -> Range:
    where = option("over", f"{', '.join(paths)}={text}")
    low, dots, high = (part.strip() for part in text.partition(".."))
    if not (low and dots and high):
        raise PacelineError(f'{where}: a range is LOW..HIGH, as "5 ms..200 ms"')
    first, last = _QUANTITY.fullmatch(low), _QUANTITY.fullmatch(high)
    if first and last and last[2] and not first[2]:
        low = f"{low} {last[2]}"
        first = _QUANTITY.fullmatch(low)
    both = numbers([low, high])
    if both is None or first is None or last is None:
        raise PacelineError(
            f'{where}: {low} and {high} must be quantities of one kind, as "5 ms..200 ms", "1..20" or "0 %..5 %"'
        )
    ends = (both[1][low], both[1][high])
    if not ends[0] < ends[1]:
        raise PacelineError(f"{where}: the low end must come first and be below the high one: {high}..{low}")
    end, units = both[0], (_unit(first[2]), _unit(last[2]))
    plainly = all(isinstance(number(part), int) for part in (low, high))
    in_bytes = end == "_bytes" and units[0].factor == units[1].factor == 1.0
    return Range(paths, ends[0], ends[1], units, plainly or in_bytes or end == "_packets")


def _unit(name: str) -> Unit:
    found = numbers([f"1 {name}".rstrip()])
    return Unit(name, 1.0 if found is None else next(iter(found[1].values())))


def apart(axes: Sequence[Axis], one: Sequence[str], other: Sequence[str]) -> float:
    """The distance of two candidates, the maximum over the axes: 1 between the ends of a range, and between different
    choices."""
    far = 0.0
    for of, a, b in zip(axes, one, other, strict=True):
        here, there = of.place(a), of.place(b)
        if isinstance(of, Choices) or here is None or there is None:
            far = max(far, float(a != b))
        else:
            far = max(far, abs(here - there))
    return far
