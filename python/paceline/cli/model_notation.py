"""The notation of `paceline model`: names of options, and how values are read and results written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from paceline import _core
from paceline.errors import PacelineError
from paceline.quantities import figures, quantity

BITS = 8
MAX_ROWS = 100_000


@dataclass(frozen=True)
class Option:
    """A model argument's notation on the command line."""

    name: str
    unit: str = ""
    """The unit of quantities: "s", "B" or "bit/s"."""


OPTIONS = {
    "p": Option("--p"),
    "rate_bytes_per_s": Option("--rate", "bit/s"),
    "rtt_s": Option("--rtt", "s"),
    "gamma": Option("--gamma"),
    "base_rtt_s": Option("--base-rtt", "s"),
    "w_max_packets": Option("--w-max"),
    "theta1": Option("--theta1"),
    "theta2": Option("--theta2"),
    "beta_packets": Option("--beta"),
    "rto_s": Option("--rto", "s"),
    "packets_per_ack": Option("--packets-per-ack"),
    "segment_bytes": Option("--segment", "B"),
    "capacity_packets_per_s": Option("--capacity", "bit/s"),
    "backlog_packets": Option("--backlog"),
    "total_backlog_packets": Option("--total-backlog"),
}


def list_of(option: Option, text: str) -> list[float]:
    """The values of "1,2,3", "LOW..HIGH" and "LOW..HIGH/N"."""
    import numpy as np

    found: list[float] = []
    for part in text.split(","):
        low, dots, rest = part.partition("..")
        if not dots:
            found.append(_number(option, part))
            continue
        # a unit may contain a slash: only digits after it are a count
        high, slash, count = rest.rpartition("/")
        if not (slash and count.strip().isdigit()):
            high, count = rest, "25"
        ends = (_number(option, low), _number(option, high))
        if min(ends) <= 0 or not 2 <= int(count) <= MAX_ROWS:
            raise PacelineError(
                f"{option.name} {text}: a range needs ends above 0 and 2 to {MAX_ROWS} values"
            )
        found.extend(float(v) for v in np.geomspace(*ends, int(count)))
    return found


def _number(option: Option, text: str) -> float:
    text = text.strip()
    if not option.unit:
        try:
            return float(text[:-1]) / 100 if text.endswith("%") else float(text)
        except ValueError:
            raise PacelineError(f'{option.name}: "{text}" is not a number') from None
    try:
        whole = _core.quantity(text, option.unit)
    except ValueError as error:
        raise PacelineError(f"{option.name}: {error}") from None
    # Links have integer bits a second; a model's argument need not be an integer.
    rate = re.fullmatch(r"([\d.]+)\s*([A-Za-z/]+)", text) if option.unit == "bit/s" else None
    return float(rate[1]) * _core.quantity(f"1 {rate[2]}", option.unit) if rate else whole


def as_option(message: str) -> str:
    """The core's message about an argument, rewritten for the option, with the command line's units."""
    name, equals, rest = message.partition(" = ")
    if name not in OPTIONS:
        return message
    bits = name == "rate_bytes_per_s"

    def readable(match: re.Match[str]) -> str:
        value = float(match["number"]) * (BITS if bits else 1)
        if match["before"]:  # a bound that is named must itself be allowed
            value = _rounded(value, up=match["before"] == "at least ")
        elif not OPTIONS[name].unit:  # 1.0001 must not be shown as 1
            return f"{value:.15g}"
        return match["before"] + text_of("rate_bps" if bits else name, value)

    number = r"(?P<number>-?[\d.]+(e[+-]?\d+)?)"
    rest = re.sub(rf"(?P<before>^|at most |at least ){number}(?=:|$)", readable, rest)
    return f"{OPTIONS[name].name}{equals}{rest}"


def _rounded(value: float, *, up: bool) -> float:
    """Rounds to three digits, never below (up) or above the value."""
    if value == 0 or not math.isfinite(value):
        return value
    digits = 2 - math.floor(math.log10(abs(value)))
    # multiplying by a power of ten adds rounding errors
    scaled = round(value * 10.0**digits, 9)
    return float(f"{(math.ceil if up else math.floor)(scaled)}e{-digits}")


HEADS = {
    "rtt_s": "RTT",
    "base_rtt_s": "base RTT",
    "rto_s": "RTO",
    "w_max_packets": "W_max",
    "packets_per_ack": "packets per ACK",
    "rate_packets_per_s": "packets/s",
    "capacity_packets_per_s": "capacity",
}


def head_of(key: str) -> str:
    for end in ("_bps", "_bytes", "_packets", "_s"):
        if key not in HEADS and key.endswith(end):
            return key.removesuffix(end).replace("_", " ")
    return HEADS.get(key, key)


def text_of(key: str, value: float) -> str:
    if key == "capacity_packets_per_s":
        return f"{figures(value, 6)} packets/s"
    if key.endswith("_bytes"):
        return f"{figures(value, 6)} B"
    if key.endswith("_bps") or (key.endswith("_s") and not key.endswith("_per_s")):
        return quantity(key, value)
    return figures(value, 4)
