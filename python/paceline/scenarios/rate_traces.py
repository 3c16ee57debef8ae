"""Rate traces: a link's rate over time, in each file format that `rate_trace` reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from paceline import _core, files
from paceline.arguments import TEXT, checked
from paceline.errors import PacelineError

FORMATS = ("mahimahi", "seconds-mbit", "csv", "json", "iperf3")
"""The file formats, by their names in `rate_trace`."""
WRITTEN = ("csv", "mahimahi")
"""Formats that traces can be converted to."""
OPPORTUNITY_BITS = 1500 * 8
"""The bits of one mahimahi delivery opportunity."""
MAX_OPPORTUNITIES = 20_000_000
"""The limit on mahimahi lines, for writing as for reading."""


@dataclass(frozen=True)
class Trace:
    """A link's rate over time, which repeats after its end."""

    format: str
    """One of `FORMATS`."""
    lasts_s: float
    times_s: NDArray[np.float64]
    """Instants, from 0 on."""
    values: NDArray[np.float64]
    """For mahimahi, the bytes of each instant's opportunities; otherwise the rate until the next instant (bit/s)."""
    latencies_s: NDArray[np.float64]
    """The network's response times, if the trace has them."""

    def _until(self, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Bits that the link can have carried by these instants within the first period."""
        if self.format == "mahimahi":
            sums = np.concatenate([[0.0], np.cumsum(self.values * 8)])
            return np.asarray(sums[np.searchsorted(self.times_s, at_s, side="right")])
        edges = np.append(self.times_s, self.lasts_s)
        sums = np.concatenate([[0.0], np.cumsum(self.values * np.diff(edges))])
        return np.asarray(np.interp(at_s, edges, sums))

    @property
    def mean_bps(self) -> float:
        """The mean rate."""
        return float(self._until(np.array([self.lasts_s]))[0]) / self.lasts_s

    def mean_between_bps(self, begins_s: float, ends_s: float) -> float:
        """The mean rate between two instants, over all periods."""
        rounds, rest = np.divmod(np.array([begins_s, ends_s]), self.lasts_s)
        whole = self._until(np.array([self.lasts_s]))[0]
        first, last = rounds * whole + self._until(rest)
        return float(last - first) / (ends_s - begins_s)

    def rates_bps(self, every_s: float) -> NDArray[np.float64]:
        """The mean rate of each interval of this length; the last interval may be shorter."""
        edges = np.arange(0.0, self.lasts_s, every_s)
        edges = np.append(edges[self.lasts_s - edges > 1e-9], self.lasts_s)
        bits = self._until(edges)
        if self.format == "mahimahi":
            bits[0] = 0.0  # opportunities at 0 ms belong to the first interval
        return np.diff(bits) / np.diff(edges)

    def step_s(self) -> float:
        """The interval length to show the trace with: a second, or a sixtieth of its duration if that is longer."""
        return max(1.0, self.lasts_s / 60) if self.lasts_s > 2 else self.lasts_s / 10


@checked(trace_format=TEXT)
def read(path: str | Path, trace_format: str | None = None) -> Trace:
    """Reads the trace in a file, in the named format or the one that it looks like. Raises PacelineError,
    StorageError."""
    return of_text(files.read_text(Path(path)), str(path), trace_format)


def of_text(text: str, name: str, trace_format: str | None = None) -> Trace:
    """Reads a trace from text; `name` is its file's. Raises PacelineError."""
    try:
        found, lasts_s, times, values, latencies = _core.trace(text, trace_format)
    except ValueError as error:
        raise PacelineError(f"{name}: {error}") from None
    return Trace(found, lasts_s, np.array(times), np.array(values), np.array(latencies))


def as_csv(trace: Trace, every_s: float | None = None) -> str:
    """The trace as a table with a header, `duration_s,rate_bps`: its own steps or, for opportunities and with
    `every_s`, the means of intervals."""
    if every_s is None and trace.format != "mahimahi":
        lasting = np.diff(np.append(trace.times_s, trace.lasts_s))
        rows = zip(lasting, trace.values, strict=True)
    else:
        step = every_s or 0.1
        rates = trace.rates_bps(step)
        ends = np.minimum(np.arange(1, len(rates) + 1) * step, trace.lasts_s)
        rows = zip(np.diff(ends, prepend=0.0), rates, strict=True)
    return "duration_s,rate_bps\n" + "".join(f"{lasts:.9g},{rate:.0f}\n" for lasts, rate in rows)


def as_mahimahi(trace: Trace) -> str:
    """The trace as opportunities to send 1500 bytes, a millisecond per line. A remainder at the end counts as one more
    opportunity, after which the trace repeats. Raises PacelineError if it has none, or too many."""
    if trace.format == "mahimahi":
        counts = np.round(trace.values * 8 / OPPORTUNITY_BITS).astype(int)
        instants = np.repeat(np.round(trace.times_s * 1e3).astype(int), counts)
        return "".join(f"{at}\n" for at in instants)
    last_ms = math.ceil(trace.lasts_s * 1e3 - 1e-9)
    if last_ms * max(1.0, trace.mean_bps / 1e3 / OPPORTUNITY_BITS) > MAX_OPPORTUNITIES:
        raise PacelineError(f"it would have more than {MAX_OPPORTUNITIES} lines: use a part of the trace")
    edges = np.minimum(np.arange(last_ms + 1) / 1e3, trace.lasts_s)
    whole = np.floor(trace._until(edges) / OPPORTUNITY_BITS + 1e-9).astype(int)
    counts = np.diff(whole)
    if counts[-1] == 0:
        # without a last line at its end, the trace would repeat too early
        counts[-1] = 1
    return "".join(f"{at}\n" * count for at, count in enumerate(counts, 1))
