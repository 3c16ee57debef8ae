"""The browsers' measurements, as the tables and recordings of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

HEADER_BYTES = 48
"""IPv6 and UDP headers, which getStats does not count. ICE prefers IPv6 if both exist."""

Rows = Sequence[Mapping[str, Any]]


MIN_STEP_S = 0.09
"""The minimum time between two rows that make a rate: almost half of the polling interval. A busy host answers several
polls at once, whose counters do not measure the time between them."""
_LATE_S = 0.3
"""How long after a call's stop its last row may arrive."""


def rows(path: Path, call: str, zero: float, until_s: float) -> list[dict[str, Any]]:
    """The rows of one call in one end's file, with `time_s` since the scenario began. A truncated last line is left
    out."""
    found = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        row["time_s"] = row["at"] - zero
        if row["call"] == call and row["time_s"] <= until_s + _LATE_S:
            found.append(row)
    return sorted(found, key=lambda row: float(row["time_s"]))


def rate(near: Rows, far: Rows, start_s: float) -> pl.DataFrame:
    """`goodput_bps` and `send_rate_bps` between rows from the call's start on, at the receiver's instants; before the
    start both are 0."""
    received = _rates(far, "transport_bytesReceived", start_s, "goodput_bps")
    sent = _rates(near, "transport_bytesSent", start_s, "send_rate_bps")
    return received.join_asof(sent, on="time_s", strategy="nearest")


def _rates(found: Rows, key: str, start_s: float, name: str) -> pl.DataFrame:
    known = [
        (row["time_s"], row[key]) for row in found if row.get(key) is not None and row["time_s"] > start_s
    ]
    schema = {"time_s": pl.Float64, "bytes": pl.Float64}
    frame = pl.DataFrame(apart([(start_s, 0.0), *known]), schema, orient="row")
    rates = pl.col("bytes").diff() * 8 / pl.col("time_s").diff()
    return frame.select("time_s", rates.fill_null(0.0).alias(name)).set_sorted("time_s")


def apart(known: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """From instants and counts, in order, those at least `MIN_STEP_S` after the previous one. The amounts between
    others are in the next one."""
    kept = [*known[:1]]
    for row in known[1:]:
        if row[0] - kept[-1][0] >= MIN_STEP_S:
            kept.append(row)
    return kept


def rtcp(near: Rows) -> pl.DataFrame:
    """Gauges under the names of a simulated `gcc`: its estimate (`availableOutgoingBitrate`), its encoder's target
    (`targetBitrate`), the round-trip time of the last STUN check."""
    names = {
        "rtt_s": "currentRoundTripTime",
        "allowed_bps": "availableOutgoingBitrate",
        "encoder_bps": "targetBitrate",
    }
    columns = {name: [_number(row.get(key)) for row in near] for name, key in names.items()}
    schema = {"time_s": pl.Float64, **dict.fromkeys(names, pl.Float64)}
    return pl.DataFrame({"time_s": [row["time_s"] for row in near], **columns}, schema=schema)


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def flow(call: Mapping[str, Any], near: Rows, far: Rows, warmup_s: float) -> dict[str, Any]:
    """The row of `flows` of one call: counts and rates between the first rows after the warm-up and the last ones."""
    begin, end = max(call["start_s"], warmup_s), call["stop_s"]
    lasts = end - begin
    received_bytes, packets = (_over(far, f"transport_{key}Received", begin) for key in ("bytes", "packets"))
    sent, sent_packets = (_over(near, f"transport_{key}Sent", begin) for key in ("bytes", "packets"))
    got, lost = (_over(far, key, begin) for key in ("packetsReceived", "packetsLost"))
    frozen = _over(far, "totalFreezesDuration", begin)
    trips = [row["currentRoundTripTime"] for row in near if row.get("currentRoundTripTime") is not None]
    limitations = [row.get("qualityLimitationReason") for row in near]
    encoded = _over(near, "framesEncoded", begin)
    return {
        "flow": call["name"],
        "instance": 0,
        "group": call["name"],
        "cc": "gcc",
        "profile": "chromium",
        "from": "left",
        "to": "right",
        "start_s": call["start_s"],
        "goodput_bps": received_bytes * 8 / lasts,
        "throughput_bps": (received_bytes + HEADER_BYTES * packets) * 8 / lasts,
        "send_rate_bps": (sent + HEADER_BYTES * sent_packets) * 8 / lasts,
        "packets_sent": round(sent_packets),
        "packets_delivered": round(packets),
        "packets_lost": round(lost),
        "packets_retransmitted": round(_over(near, "retransmittedPacketsSent", begin)),
        "loss_rate": lost / (got + lost) if got + lost > 0 else None,
        "rtt_mean_s": sum(trips) / len(trips) if trips else None,
        "bytes_delivered": round(received_bytes),
        "frames_sent": round(_over(near, "framesSent", begin)),
        "frames_complete": round(_over(far, "framesReceived", begin)),
        "freezes": round(_over(far, "freezeCount", begin)),
        "freeze_s": frozen,
        "encode_mean_s": _over(near, "totalEncodeTime", begin) / encoded if encoded else None,
        "pacer_mean_s": _over(near, "totalPacketSendDelay", begin) / sent_packets if sent_packets else None,
        "cpu_limited_share": limitations.count("cpu") / len(limitations) if limitations else None,
    }


def _over(found: Rows, key: str, from_s: float) -> float:
    """The growth of a counter from an instant to the last row; before the first row it is 0."""
    before, last = 0.0, 0.0
    for row in found:
        if row.get(key) is None:
            continue
        last = float(row[key])
        if row["time_s"] <= from_s:
            before = last
    return last - before


def queue(rows_of_path: pl.DataFrame, zero_s: float, until_s: float) -> pl.DataFrame:
    """A recording of the path with times since the scenario began, restricted to the scenario's duration."""
    moved = rows_of_path.drop("seed", strict=False).with_columns(pl.col("time_s") - zero_s)
    return moved.filter(pl.col("time_s").is_between(0.0, until_s))


def queues(
    summary: Sequence[Mapping[str, Any]], recorded: pl.DataFrame, share: float
) -> list[dict[str, Any]]:
    """The rows of `queues`: lengths as recorded during the scenario, which is this share of the path's time; counts
    over the whole life of the path."""
    made = []
    for row in summary:
        own = recorded.filter(link=row["link"], direction=row["direction"])
        lengths = {
            "mean_packets": own["packets"].mean(),
            "sd_packets": own["packets"].std(),
            "max_packets": own["packets"].max(),
            "mean_bytes": own["bytes"].mean(),
            "sd_bytes": own["bytes"].std(),
        }
        made.append({**row, **lengths, "utilisation": row["utilisation"] / share})
    return made
