"""`paceline.call_log`: a call that a browser has logged, or a capture of it, as the tables and recordings of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from paceline import _core, files
from paceline.arguments import checked
from paceline.errors import PacelineError
from paceline.results import Results, RunRecord
from paceline.store import claim
from paceline.webrtc import captured, dump

KIND = "call-log"
"""What the manifest of such a run directory says."""
_STREAMS = {"outbound-rtp": "out", "inbound-rtp": "in"}


@checked()
def call_log(
    path: str | Path, *, out: str | Path | None = None, rtp_logs: str | Path | None = None
) -> Results:
    """Reads what a browser logged of calls, a dump of chrome://webrtc-internals; or the RTP of a capture, pcap or
    pcapng, of which `rtp_logs` is a folder for logs in the format of RFC 8868, section 3.1.

    Each stream of RTP is a flow, named after its connection, its kind and its direction. Recordings are `rate` and
    `rtcp`, with a row for each second; times count from the log's first row. What a log does not tell is null
    (docs/chromium.md). Raises PacelineError for what is no log, StorageError.
    """
    log = Path(path)
    if _is_capture(log):
        streams = captured.read(log)
        record = captured.record(log.name, streams)
    elif rtp_logs is not None:
        raise PacelineError(f"{log} is no capture: only of one there are packets to log")
    else:
        record = _record(log.name, dump.read(log))
    with claim(out, KIND):
        if rtp_logs is not None:
            captured.write_logs(streams, Path(rtp_logs))
        manifest = {
            "kind": KIND,
            "name": log.name,
            "seeds": [record.seed],
            "version": _core.version(),
            "record": sorted(record.series),
            **files.provenance(),
        }
        results = Results([record], manifest)
        if out is not None:
            results.write(out)
        return results


def _is_capture(log: Path) -> bool:
    try:
        with log.open("rb") as file:
            return captured.is_capture(file.read(4))
    except OSError:
        return False  # who reads it as a dump says why


def _record(name: str, connections: dict[str, dump.Connection]) -> RunRecord:
    times = [t for reports in connections.values() for report in reports.values() for t in report.times_s]
    begin, lasts = min(times), max(times) - min(times)
    flows: list[dict[str, Any]] = []
    rates: list[pl.DataFrame] = []
    gauges: list[pl.DataFrame] = []
    for connection, reports in connections.items():
        streams = [report for report in reports.values() if report.kind in _STREAMS]
        for number, stream in enumerate(streams):
            flow = f"{connection} {stream.last('kind') or 'stream'} {_STREAMS[stream.kind]}"
            of = (pl.lit(flow).alias("flow"), pl.lit(number, pl.Int64).alias("instance"))
            seconds = [t - begin for t in stream.times_s]
            flows.append({"flow": flow, "instance": number, **_measures(stream)})
            rates.append(_rate(stream, seconds).select(*of, pl.all()))
            if stream.kind == "outbound-rtp":
                gauges.append(_gauges(stream, reports, begin).select(*of, pl.all()))
    summary = {
        "name": name,
        "seed": 1,
        "duration_s": lasts,
        "warmup_s": 0.0,
        "end_s": lasts,
        "measured_s": lasts,
        "flows": flows,
    }
    series = {"rate": rates, "rtcp": gauges}
    return RunRecord(
        1, summary, {kind: pl.concat(parts, how="diagonal") for kind, parts in series.items() if parts}
    )


def _measures(stream: dump.Report) -> dict[str, Any]:
    """The row of `flows` of one stream: what its counters grew by from the first row to the last one."""
    sends = stream.kind == "outbound-rtp"
    lasts = stream.times_s[-1] - stream.times_s[0]
    moved = _grew(stream, "bytesSent" if sends else "bytesReceived")
    packets = _grew(stream, "packetsSent" if sends else "packetsReceived")
    lost = None if sends else _grew(stream, "packetsLost")
    total = None if lost is None or packets is None else lost + packets
    return {
        "group": stream.kind,
        "cc": "webrtc",
        "profile": "log",
        "from": "here" if sends else "there",
        "to": "there" if sends else "here",
        "goodput_bps": moved * 8 / lasts if moved is not None and lasts > 0 and not sends else None,
        "send_rate_bps": moved * 8 / lasts if moved is not None and lasts > 0 and sends else None,
        "packets_sent": packets if sends else None,
        "packets_delivered": None if sends else packets,
        "packets_lost": lost,
        "packets_retransmitted": _grew(stream, "retransmittedPacketsSent"),
        "loss_rate": lost / total if lost is not None and total else None,
        "bytes_delivered": None if sends else moved,
        "frames_sent": _grew(stream, "framesSent"),
        "frames_complete": _grew(stream, "framesReceived"),
        "freezes": _grew(stream, "freezeCount"),
        "freeze_s": _grew(stream, "totalFreezesDuration"),
    }


def _grew(stream: dump.Report, key: str) -> float | None:
    known = [value for value in stream.numbers(key) if value is not None]
    return known[-1] - known[0] if known else None


def _rate(stream: dump.Report, seconds: Sequence[float]) -> pl.DataFrame:
    """The stream's payload between one row and the next."""
    sends = stream.kind == "outbound-rtp"
    moved = stream.numbers("bytesSent" if sends else "bytesReceived")
    frame = pl.DataFrame({"time_s": seconds, "bytes": moved}, {"time_s": pl.Float64, "bytes": pl.Float64})
    frame = frame.drop_nulls().sort("time_s").unique("time_s", keep="last", maintain_order=True)
    rate = (pl.col("bytes").diff() * 8 / pl.col("time_s").diff()).alias("bps")
    none = pl.lit(None, pl.Float64)
    return (
        frame.select("time_s", rate)
        .drop_nulls()
        .select(
            "time_s",
            (none if sends else pl.col("bps")).alias("goodput_bps"),
            (pl.col("bps") if sends else none).alias("send_rate_bps"),
        )
    )


def _gauges(stream: dump.Report, reports: dump.Connection, begin: float) -> pl.DataFrame:
    """Gauges under the names that a simulated `gcc` has: see `paceline.call`."""
    frame = _columns(stream, begin, {"targetBitrate": "encoder_bps"})
    used = {
        report.last("selectedCandidatePairId") for report in reports.values() if report.kind == "transport"
    }
    for name, pair in reports.items():
        if pair.kind == "candidate-pair" and name in used:
            names = {"availableOutgoingBitrate": "allowed_bps", "currentRoundTripTime": "rtt_s"}
            return frame.join_asof(
                _columns(pair, begin, names), on="time_s", strategy="nearest", tolerance=1.0
            )
    return frame


def _columns(report: dump.Report, begin: float, names: dict[str, str]) -> pl.DataFrame:
    columns = {
        "time_s": [t - begin for t in report.times_s],
        **{n: report.numbers(k) for k, n in names.items()},
    }
    return pl.DataFrame(columns, dict.fromkeys(columns, pl.Float64)).sort("time_s")
