"""The draws of a league's class: values between bounds, integers, choices, and schedules that wander.

A draw depends only on the league's seed, the class, the path and the round, so that adding another path or class
changes nothing. Only raw bits come from NumPy, whose distributions may change between versions.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from paceline import _core
from paceline.errors import PacelineError
from paceline.messages.argument_names import meant

_UNITS = {"s": (1e-3, "ms"), "bit/s": (1e6, "Mbit/s"), "B": (1e3, "kB"), "%": (0.01, "%")}
"""By unit, the factor and unit in which its values are written."""
OUT_BPS = 1000.0
"""The rate of a link during an outage: a schedule cannot have a rate of zero."""
OUT_S = 0.5
"""Mean duration of an outage."""


class Die:
    """The uniform random numbers of one path in one draw."""

    def __init__(self, seed: int, *names: object) -> None:
        digest = hashlib.sha256("\n".join(map(str, names)).encode()).digest()
        words = np.frombuffer(digest, dtype="<u4").tolist()
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, *words]))

    def __call__(self) -> float:
        """The next number, above 0 and below 1."""
        return ((int(self._bits.random_raw()) >> 11) + 0.5) * 2.0**-53


@dataclass(frozen=True)
class Quantity:
    """A number with its unit: "s", "bit/s", "B", "%", or "" for none."""

    value: float
    unit: str = ""

    @classmethod
    def read(cls, given: Any) -> Quantity:
        """Reads 3, "20 ms", "2 Mbit/s", "64 kB" or "1 %". Raises PacelineError."""
        if isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given):
            return cls(float(given))
        text = str(given).strip()
        if text.endswith("%"):
            try:
                return cls(float(text[:-1]) / 100, "%")
            except ValueError:
                raise PacelineError(f'"{text}": must be a number before %') from None
        for unit in ("s", "bit/s", "B"):
            try:
                return cls(_core.quantity(text, unit), unit)
            except ValueError:
                continue
        raise PacelineError(
            f'"{text}": must be a number, or one with a unit, as "20 ms", "2 Mbit/s", "64 kB" or "1 %"'
        )

    def written(self) -> Any:
        """The value as a scenario has it, to four digits."""
        if not self.unit:
            return int(self.value) if self.value == int(self.value) else float(_four(self.value))
        factor, name = _UNITS[self.unit]
        if self.unit == "B":
            # whole bytes
            return f"{max(1, round(self.value))} B"
        return f"{_four(self.value / factor)} {name}"

    def rounded(self) -> Quantity:
        """The value with the rounding of `written`."""
        return Quantity.read(self.written())


def _four(value: float) -> str:
    """A number to four digits, without an exponent."""
    text = f"{value:.4g}"
    return f"{float(text):.0f}" if "e+" in text else text


def _at(seconds: float) -> str:
    return f"{round(seconds, 6):.12g} s"


Drawn = Quantity | str | bool | list[dict[str, Any]] | dict[str, Any]
"""The value of a path: a quantity, a choice, a schedule, or a trace."""


@dataclass(frozen=True)
class Law:
    """The distribution of a path's value, described in `words`."""

    words: str
    draw: Callable[[Die, Mapping[str, Drawn], float], Drawn]
    """Draws a value, from a die, the values drawn before, and the duration of a run."""
    needs: str = ""
    """The path whose value it multiplies."""
    wanders: bool = False


def law(given: Any, where: str) -> Law:
    """Reads a law: `{ uniform = [a, b] }`, `{ loguniform = [a, b] }`, `{ whole = [a, b] }`, `{ choice = [...] }`, with
    `times = PATH` and `least = VALUE`; `{ each = LAW, every = TIME }` and `{ wander = LAW, ... }` for schedules. Raises
    PacelineError, which names `where`."""
    if not isinstance(given, Mapping):
        raise PacelineError(f"{where}: must be a law, as {{ uniform = [1, 2] }}, not {given!r}")
    table = dict(given)
    try:
        if "wander" in table:
            made = _wander(table)
        elif "each" in table:
            made = _steps(table, "delay" if where.endswith("delay_schedule") else "rate")
        elif "choice" in table:
            made = _choice(table.pop("choice"))
        else:
            made = _between(table)
    except KeyError as error:
        raise PacelineError(f"{where}: needs {error.args[0]}") from None
    except PacelineError as error:
        raise PacelineError(f"{where}: {error}") from None
    if table:
        raise PacelineError(f"{where}: no key {next(iter(table))!r}")
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choice(options: Any) -> Law:
    if not isinstance(options, list) or not options:
        raise PacelineError("choice: must be a list of values")
    for option in options:
        if not isinstance(option, str | bool):
            Quantity.read(option)
    many = len(options)

    def draw(die: Die, _before: Mapping[str, Drawn], _lasts: float) -> Drawn:
        chosen = options[int(die() * many)]
        return Quantity(float(chosen)) if _is_number(chosen) else chosen

    return Law("one of " + ", ".join(map(str, options)), draw)


def _bounds(table: dict[str, Any], kind: str) -> tuple[Quantity, Quantity]:
    ends = table.pop(kind)
    if not isinstance(ends, list) or len(ends) != 2:
        raise PacelineError(f"{kind}: needs two bounds, [least, greatest]")
    low, high = map(Quantity.read, ends)
    if low.unit != high.unit:
        raise PacelineError(f"{kind}: {ends[0]} and {ends[1]} must have the same unit")
    if not low.value <= high.value:
        raise PacelineError(f"{kind}: the range from {ends[0]} to {ends[1]} is empty")
    if kind == "loguniform" and low.value <= 0:
        raise PacelineError(f"{kind}: bounds must be above 0, not {ends[0]}")
    return low, high


def _number(table: dict[str, Any]) -> tuple[Callable[[Die], Quantity], str]:
    kinds = [kind for kind in ("uniform", "loguniform", "whole") if kind in table]
    if len(kinds) != 1:
        known = ("uniform", "loguniform", "whole", "choice", "each", "wander")
        strange = next((key for key in table if key not in (*known, "times", "least")), None)
        hint = "" if strange is None else f"{strange!r} is no law{meant(strange, known)}; "
        raise PacelineError(f"{hint}one of {', '.join(known)}")
    kind = kinds[0]
    shown = table[kind]
    low, high = _bounds(table, kind)
    span = high.value - low.value

    def draw(die: Die) -> Quantity:
        if kind == "uniform":
            return Quantity(low.value + die() * span, low.unit)
        if kind == "whole":
            return Quantity(math.floor(low.value + die() * (span + 1)), low.unit)
        return Quantity(math.exp(math.log(low.value) + die() * math.log(high.value / low.value)), low.unit)

    said = {"uniform": "", "loguniform": ", uniform in the logarithm", "whole": ", whole"}[kind]
    return draw, f"{shown[0]} to {shown[1]}{said}"


def _between(table: dict[str, Any]) -> Law:
    number, words = _number(table)
    times = str(table.pop("times", ""))
    minimum = Quantity.read(table.pop("least", 0))

    def draw(die: Die, before: Mapping[str, Drawn], _lasts: float) -> Drawn:
        found = number(die)
        if times:
            other = before.get(times)
            if not isinstance(other, Quantity) or found.unit:
                raise PacelineError(
                    f"times = {times!r}: must be a quantity drawn before, and its factors without a unit"
                )
            found = Quantity(found.value * other.value, other.unit)
        if minimum.value and minimum.unit != found.unit:
            raise PacelineError(
                f"least = {minimum.written()}: must be in {found.unit or 'no unit'}, as the drawn value"
            )
        return Quantity(max(found.value, minimum.value), found.unit).rounded()

    if times:
        words += f", times {times}"
    if minimum.value:
        words += f", at least {minimum.written()}"
    return Law(words, draw, times)


def _inner(
    given: Any, word: str, unit: str | None = None, minimum: float = -math.inf, maximum: float = math.inf
) -> tuple[Callable[[Die], Quantity], str]:
    """A nested law or value, in this unit (a share may be a plain number), from `minimum` to `maximum`."""
    if isinstance(given, Mapping):
        table = dict(given)
        ends = [Quantity.read(end) for kind in table.values() if isinstance(kind, list) for end in kind]
        number, words = _number(table)
        if table:
            raise PacelineError(f"{word}: no key {next(iter(table))!r}")
    else:
        fixed = Quantity.read(given)
        ends, words = [fixed], str(given)

        def number(_die: Die) -> Quantity:
            return fixed

    for end in ends:
        if unit is not None and end.unit != unit and not (unit == "%" and not end.unit):
            raise PacelineError(f"{word}: {given} is not in {unit or 'a number without a unit'}")
        if not minimum <= end.value <= maximum:
            raise PacelineError(f"{word}: {given} lies beyond {minimum:g} to {maximum:g}")
    return number, words


def _every(table: dict[str, Any]) -> float:
    every = Quantity.read(table.pop("every"))
    if every.unit != "s" or not 1e-3 <= every.value <= 1e6:
        raise PacelineError("every: must be a time of at least 1 ms")
    return every.value


def _steps(table: dict[str, Any], key: str) -> Law:
    """A schedule of independent values."""
    number, words = _inner(table.pop("each"), "each")
    every = _every(table)

    def draw(die: Die, _before: Mapping[str, Drawn], lasts: float) -> Drawn:
        return [{"at": _at(n * every), key: number(die).written()} for n in range(math.ceil(lasts / every))]

    return Law(f"another each {every:g} s: {words}", draw)


def _wander(table: dict[str, Any]) -> Law:
    """A schedule of rates whose logarithm is an Ornstein-Uhlenbeck process, with outages."""
    mean, mean_words = _inner(table.pop("wander"), "wander", "bit/s", 1.0)
    spread, spread_words = _inner(table.pop("spread"), "spread", "", 0.0)
    memory, memory_words = _inner(table.pop("memory"), "memory", "s", 1e-3)
    out, out_words = _inner(table.pop("out", 0), "out", "%", 0.0, 0.99)
    every = _every(table)
    normal = NormalDist()

    def draw(die: Die, _before: Mapping[str, Drawn], lasts: float) -> Drawn:
        middle, sd, tau, share = mean(die).value, spread(die).value, memory(die).value, out(die).value
        keeps = math.exp(-every / tau)
        renewed = sd * math.sqrt(1 - keeps**2)
        ends = min(1.0, every / OUT_S)
        begins = min(1.0, ends * share / (1 - share)) if share < 1 else 1.0
        at, is_out, steps = sd * normal.inv_cdf(die()), die() < share, []
        for n in range(math.ceil(lasts / every)):
            rate = OUT_BPS if is_out else max(OUT_BPS, middle * math.exp(at - sd**2 / 2))
            steps.append(
                {
                    "at": _at(n * every),
                    "rate": Quantity(rate, "bit/s").written(),
                }
            )
            at = keeps * at + renewed * normal.inv_cdf(die())
            is_out = die() >= ends if is_out else die() < begins
        return steps

    words = (
        f"wanders each {every:g} s about a mean of {mean_words}: standard deviation of its natural logarithm "
        f"{spread_words}; memory {memory_words}; {out_words} of the time out"
    )
    return Law(words, draw, wanders=True)


def mean_rate_bps(schedule: list[dict[str, Any]], begins: float, ends: float) -> float:
    """The time-weighted mean of a schedule of rates between two instants, in bit/s."""
    times = [Quantity.read(step["at"]).value for step in schedule] + [math.inf]
    total = 0.0
    for n, step in enumerate(schedule):
        since, until = max(begins, times[n]), min(ends, times[n + 1])
        if until > since:
            total += Quantity.read(step["rate"]).value * (until - since)
    return total / (ends - begins)
