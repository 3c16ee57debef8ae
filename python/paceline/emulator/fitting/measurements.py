"""A network's measured properties, and reading numbers from untrusted files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import PacelineError


@dataclass
class Measured:
    """A network's measured properties; None was not measured. Forward is the direction of the data or probes."""

    how: str
    """The kind of recording, and its extent, in a sentence."""
    rate_bps: float | None = None
    """The bottleneck's rate, in IP packets, if it was filled."""
    rates: list[tuple[float, float]] = field(default_factory=list)
    """If the rate varies: from which second on, and bit/s."""
    min_rate_bps: float = 0.0
    """The rate that the link carried at least."""
    rtt_min_s: float | None = None
    rtt_max_s: float | None = None
    """With a full queue; None if no queue is known to have been full."""
    delays_s: tuple[float, float] | None = None
    """One-way delays, forward and backward, if known."""
    loss: float | None = None
    """The share of packets lost forward other than by a full queue."""
    loss_back: float | None = None
    notes: list[str] = field(default_factory=list)
    """Further comments for the path file's reader."""


def number(document: Mapping[str, Any], *keys: str, low: float, high: float) -> float | None:
    """The number at this place of a JSON document; None if there is none.

    Raises PacelineError if it is not a number, or outside its range.
    """
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    if value is None:
        return None
    place = ".".join(keys)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PacelineError(f"{place} is not a number")
    if not (low <= value <= high) or not math.isfinite(value):
        raise PacelineError(f"{place} is not from {low:g} to {high:g}")
    return float(value)


def entries(document: Mapping[str, Any], *keys: str) -> list[Mapping[str, Any]]:
    """The objects of the list at this place of a JSON document; empty if it is missing."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def quantile(values: list[float], share: float) -> float:
    """The value below which this share of the sorted `values` lies."""
    return values[min(len(values) - 1, int(share * len(values)))]


def of_windows(rates: list[tuple[float, float]], found: Measured) -> None:
    """Set the rate from those of windows: (first second, bit/s) each.

    Three quarters of the windows are at or below the rate: fast windows include data that waited for a retransmission,
    slow ones have capacity that a flow did not use.
    """
    ordered = sorted(rate for _, rate in rates)
    fast, slow = quantile(ordered, 0.75), quantile(ordered, 0.1)
    found.rate_bps = fast
    if slow >= VARIES * fast or len(ordered) < 10:
        return
    found.notes.append(
        f"The rate varied from {slow / 1e6:.3g} (10 %) to {fast / 1e6:.3g} Mbit/s (75 % of the windows). A flow that "
        "sends less than the link could carry looks the same: then put `rate` in the place of `rate_schedule`."
    )
    step = -(-len(rates) // MAX_STEPS)
    for first in range(0, len(rates), step):
        part = rates[first : first + step]
        mean = sum(rate for _, rate in part) / len(part)
        found.rates.append((part[0][0], min(max(mean, MIN_BPS), MAX_BPS)))


VARIES = 0.5
"""The rate varies if slow windows are below this share of fast ones."""
MAX_STEPS = 300
"""The limit on steps of a varying rate."""
MAX_BPS = 1e12
"""The maximum rate of a link."""
MIN_BPS = 1000.0
"""The rate of a window without data: the link may have been up."""
