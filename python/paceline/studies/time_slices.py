"""Cuts a run into intervals of equal length, as papers cut the traces of long flows (Padhye et al., SIGCOMM 1998).

From the recording `losses`, with any recording interval: for each flow and each whole interval the packets sent, the
loss indications, the mean round-trip time and BaseRTT, and the maximum window. Metrics of table "intervals" are fields
of these rows.
"""

from __future__ import annotations

from typing import Any

import polars as pl

COUNTS = ("packets_sent", "packets_retransmitted", "fast_retransmits", "timeout_series")
"""Fields that are sums over the interval."""
MEANS = {"rtt_mean_s": "rtt_samples", "base_rtt_mean_s": "base_rtt_samples"}
"""Fields that are means over the interval -> the column with the number of samples."""


def cut(losses: pl.DataFrame, length_s: float) -> list[dict[str, Any]]:
    """The intervals (k length, (k+1) length] of each flow, in order; an incomplete last interval is left out.

    losses: the recording of one run. length_s: seconds. A row's `time_s` is the interval's end, `send_rate` the packets
    sent a second; a mean without a sample is None. `cwnd_max_packets` is the maximum of the recording's samples; a
    count that a real run does not know is None.
    """
    rows: list[dict[str, Any]] = []
    for (flow, instance), own in losses.group_by("flow", "instance", maintain_order=True):
        times = own["time_s"]
        # A recording ends up to one sample before the run does.
        spacing = float(times[1] - times[0]) if len(times) > 1 else 0.0
        whole = int((float(times[-1]) + spacing) / length_s + 1e-6) if len(times) else 0
        number = ((pl.col("time_s") - 1e-6) / length_s).floor().cast(pl.Int64)
        for k, part in own.with_columns(number.alias("k")).group_by("k", maintain_order=True):
            index = int(k[0])
            if index >= whole:
                continue
            row: dict[str, Any] = {"flow": flow, "instance": instance, "time_s": (index + 1) * length_s}
            row |= {name: _sum(part[name]) for name in COUNTS}
            row["send_rate"] = row["packets_sent"] / (float(part["time_s"][-1]) - index * length_s)
            for name, samples in MEANS.items():
                known = part.filter(pl.col(samples) > 0)
                number_of = float(known[samples].sum())
                row[name] = float((known[name] * known[samples]).sum()) / number_of if number_of else None
            windows = part["cwnd_packets"].drop_nulls().drop_nans()
            row["cwnd_max_packets"] = float(windows.max()) if len(windows) else None  # type: ignore[arg-type]
            rows.append(row)
    return rows


def _sum(counts: pl.Series) -> float | None:
    return float(counts.sum()) if counts.count() else None
