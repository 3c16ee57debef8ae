"""Fits a network to a rate trace: the rate over time and, in some traces, response times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paceline.emulator.fitting.measurements import MAX_BPS, MAX_STEPS, MIN_BPS, Measured
from paceline.scenarios.rate_traces import Trace


def of_trace(
    kind: str, lasts_s: float, times_s: Sequence[float], values: Sequence[float], latencies_s: Sequence[float]
) -> Measured:
    """The network of a trace, as `_core.trace` returns it. Raises ValueError for one that carries nothing."""
    trace = Trace(kind, lasts_s, np.array(times_s), np.array(values), np.array(latencies_s))
    if trace.mean_bps < 1:
        raise ValueError("its rates are all zero")
    found = Measured(
        f"a trace of rates ({kind}) of {lasts_s:.4g} s, which `rate_trace` would begin again at its end"
    )
    found.rate_bps = min(trace.mean_bps, MAX_BPS)
    if kind == "mahimahi" or len(times_s) > MAX_STEPS:
        every = max(lasts_s / MAX_STEPS, min(0.1, lasts_s))
        steps = [(number * every, float(rate)) for number, rate in enumerate(trace.rates_bps(every))]
    else:
        steps = list(zip(map(float, times_s), map(float, values), strict=True))
    if len(steps) > 1:
        found.rates = [(at, min(max(rate, MIN_BPS), MAX_BPS)) for at, rate in steps]
    if kind == "iperf3":
        found.notes.append(
            "The rates are of what iperf3 carried, without headers, which are 4 % more or less."
        )
    if len(latencies_s) > 0:
        found.rtt_min_s = min(latencies_s)
        found.notes.append("Its latencies are taken for round trips, the least for that of an empty queue.")
    return found
