"""`paceline.call_log`: a logged or captured call, as the tables and recordings of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from paceline import _core, files
from paceline.arguments import NAMES, checked
from paceline.calls import captures, dump, event_log, tables
from paceline.calls.streams import Stream, measures, rate, write_logs
from paceline.errors import PacelineError
from paceline.files.file_kinds import inside
from paceline.results.results import Results, RunRecord
from paceline.results.series import series_tables
from paceline.results.store import claim
from paceline.scenarios import named_parameters

KIND = "call-log"
"""The kind in the manifest of such a run directory."""
_STREAMS = {"outbound-rtp": "out", "inbound-rtp": "in"}
_MAX_DAYS = 30
"""The limit on the days that a capture may span: it has a row for each second."""
_EVERY_S = 0.1
"""The interval of a replay's rows."""


@checked(replay=NAMES)
def call_log(
    path: str | Path,
    *,
    out: str | Path | None = None,
    rtp_logs: str | Path | None = None,
    replay: Sequence[str] = (),
) -> Results:
    """Reads logs of calls: a dump of chrome://webrtc-internals, an event log of libwebrtc (RtcEventLog), or a capture
    of RTP and RTCP, pcap or pcapng.

    For the last two, `rtp_logs` is a folder for logs in the format of RFC 8868, section 3.1, and `replay` names
    controllers, as "nada" or "gcc:start_rate=1e6", that receive the sender's packets and feedback: the result is what
    they would have allowed, open loop.

    Each stream of RTP is a flow. Recordings are `rate`, with a row for each second; `rtcp`, with the rate allowed by
    the sender's controller, and each replayed controller as a flow; for the last two formats also `feedback` and
    `reports`. Times count from the first packet or row. Values that a log lacks are null (docs/call-log.md). Raises
    PacelineError for an invalid log or one that cannot be replayed, StorageError.
    """
    log = Path(path)
    start = _start(log)
    if log.is_dir():
        near = inside(log, _is_of_calls)
        raise PacelineError(f"{log} is a folder: name a file in it{f', as {near}' if near else ''}")
    streams: list[Stream] = []
    if captures.is_capture(start):
        capture = captures.read(log)
        streams = capture.streams
        record = _of_capture(log, capture, replay)
    elif event_log.is_event_log(start):
        events = event_log.read(log)
        record, streams = _of_events(log, events, replay)
    elif rtp_logs is not None or replay:
        raise PacelineError(
            f"{log} is neither a capture nor an event log of libwebrtc: only these contain packets"
        )
    else:
        record = _record(log.name, dump.read(log))
    with claim(out, KIND):
        if rtp_logs is not None:
            write_logs(streams, Path(rtp_logs))
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


def _start(log: Path) -> bytes:
    try:
        with files.opened(log) as file:
            return file.read(4)
    except OSError:
        return b""  # reading it as a dump reports the error


def _is_of_calls(path: Path) -> bool:
    """Whether it is a capture or an event log. Dumps are JSON, like many other files."""
    start = _start(path)
    return captures.is_capture(start) or event_log.is_event_log(start)


def _of_capture(log: Path, capture: captures.Capture, replay: Sequence[str]) -> RunRecord:
    """The streams at each interface as the flows of a run, and the feedback to their senders."""
    begin = min(packet.time for stream in capture.streams for packet in stream.packets)
    end = max(packet.time for stream in capture.streams for packet in stream.packets)
    days = (end - begin) / (86_400 * 1e9)
    if days > _MAX_DAYS:
        raise PacelineError(
            f"{log}: its RTP packets span {days:.0f} days, and the limit is {_MAX_DAYS}: use a part of it, as "
            "with `editcap -A START -B STOP`"
        )
    rows, series, more = [], _Series(), [*capture.unread.notices(), *_of_sealed(capture)]
    for number, (stream, before) in enumerate(zip(capture.streams, capture.before(), strict=True)):
        row = {"flow": stream.name, "instance": number, "group": "rtp", "cc": "unknown", "profile": "capture"}
        rows.append(row | measures(stream, None if before is None else capture.streams[before]))
        series.add("rate", stream.name, rate(stream, begin), number)
    try:
        senders = captures.senders(capture, begin)
    except ValueError as error:
        if replay:
            raise PacelineError(f"{log}: {error}: it cannot be replayed") from None
        senders = {}
        more.append(
            {"kind": "feedback-unread", "text": f"The feedback to senders could not be read: {error}."}
        )
    for name, sender in senders.items():
        label = name if len(senders) > 1 else ""
        series.add_feedback(log, sender, replay, label=label)
    if replay and not senders:
        raise PacelineError(f"{log}: it has no RTCP, so there is no feedback to replay")
    return _run(log.name, (end - begin) / 1e9, rows, series, list(senders.values()), more)


def _of_sealed(capture: captures.Capture) -> Iterator[dict[str, Any]]:
    """Notices on the encrypted or truncated packets of a capture."""
    if count := capture.sealed["DTLS"]:
        text = (
            "Ends agreed on keys by DTLS: the payload is encrypted by SRTP, which leaves headers in the clear; its "
            "sizes have a tag of 4 to 16 bytes more each."
        )
        yield {"kind": "srtp", "text": text, "cases": count}
    if count := capture.padded:
        text = (
            "The padding of packets cannot be told, as where they are encrypted (SRTP) or the capture has not all of "
            "them: it counts as payload."
        )
        yield {"kind": "padding-unread", "text": text, "cases": count}
    if count := capture.sealed["QUIC"]:
        text = "Connections of QUIC are in the capture too: they are encrypted, and nothing of them is told."
        yield {"kind": "quic-unread", "text": text, "cases": count}


def _of_events(log: Path, events: _core.CallLog, replay: Sequence[str]) -> tuple[RunRecord, list[Stream]]:
    """The streams of one end as the flows of a run, its controller's estimates and the feedback it received."""
    found = event_log.streams(events)
    if not found:
        raise PacelineError(f"{log}: it has no RTP packets")
    begin = min(stream.packets[0].time for stream, _ in found)
    end = max(stream.packets[-1].time for stream, _ in found)
    zero_s = (begin - (events.began_ms or 0) * 1_000_000) / 1e9
    rows, series = [], _Series()
    for stream, left in found:
        row = {"flow": stream.name, "instance": 0, "group": "rtp", "cc": "webrtc", "profile": "log"}
        column = "send_rate_bps" if left else "goodput_bps"
        rows.append(row | (_sent(stream) if left else measures(stream)))
        series.add("rate", stream.name, rate(stream, begin, column))
    own = event_log.estimates(events, zero_s)
    if own.height:
        series.add("rtcp", "libwebrtc", own)
    series.add_feedback(log, events, replay, begin_s=zero_s)
    return _run(log.name, (end - begin) / 1e9, rows, series, [events]), [stream for stream, _ in found]


def _sent(stream: Stream) -> dict[str, Any]:
    """The row of a stream at its sender, who does not know its packets' fate."""
    of = measures(stream)
    return {
        "from": of["from"],
        "to": of["to"],
        "send_rate_bps": stream.bps(stream.packets),
        "packets_sent": of["packets_delivered"],
    }


class _Series:
    """Recordings by their kinds."""

    def __init__(self) -> None:
        self.kinds: dict[str, list[pl.DataFrame]] = {}

    def add(self, kind: str, flow: str, table: pl.DataFrame, instance: int = 0) -> None:
        """A flow's recording."""
        of = (pl.lit(flow).alias("flow"), pl.lit(instance, pl.Int64).alias("instance"))
        self.kinds.setdefault(kind, []).append(table.select(*of, pl.all()))

    def add_feedback(
        self, log: Path, sender: _core.CallLog, replay: Sequence[str], label: str = "", begin_s: float = 0.0
    ) -> None:
        """Adds the feedback that an end received on its packets, and the controllers' replay. Raises PacelineError if
        it lacks what they need."""
        after = pl.col("time_s") - begin_s
        named = f" {label}" if label else ""
        for table in _tables(sender.feedback()).values():
            if table.height:
                self.add("feedback", label or "feedback", table.with_columns(after))
        for table in _tables(sender.reports()).values():
            for (ssrc, way), own in table.group_by(("ssrc", "way"), maintain_order=True):
                if not label or way == "peer":
                    flow = f"{ssrc}" if label else f"{ssrc} {'out' if way == 'peer' else 'in'}"
                    self.add("reports", flow, own.drop("ssrc", "way").with_columns(after))
        for text in replay:
            scheme, params = _scheme(text)
            try:
                tables = _tables(sender.replay(scheme, params, _EVERY_S))
            except ValueError as error:
                raise PacelineError(f"{log}: {scheme}: {error}") from None
            for table in tables.values():
                self.add("rtcp", f"{text}{named}", table.with_columns(after))

    def tables(self) -> dict[str, pl.DataFrame]:
        """All recordings, by kind."""
        return {kind: pl.concat(parts, how="diagonal") for kind, parts in self.kinds.items()}


def _scheme(text: str) -> tuple[str, list[tuple[str, float]]]:
    """A controller and its parameters from CC[:KEY=VALUE,...]. Raises PacelineError."""
    try:
        name, values = named_parameters.read(text)
        return name, named_parameters.numbers(name, values)
    except ValueError:
        raise PacelineError(
            f"--replay {text}: after the name and a colon KEY=VALUE,..., as in gcc:start_rate=1e6 or "
            "scream:variant=ericsson"
        ) from None


def _tables(found: Sequence[_core.Series]) -> dict[str, pl.DataFrame]:
    """Recordings from the core, with null for missing numbers."""
    return {
        kind: table.with_columns(pl.col(pl.Float64).fill_nan(None))
        for kind, table in series_tables(found).items()
    }


def _run(
    name: str,
    lasts_s: float,
    flows: list[dict[str, Any]],
    series: _Series,
    logs: Sequence[_core.CallLog] = (),
    more: Sequence[dict[str, Any]] = (),
) -> RunRecord:
    summary = {
        "name": name,
        "seed": 1,
        "duration_s": lasts_s,
        "warmup_s": 0.0,
        "end_s": lasts_s,
        "measured_s": lasts_s,
        "flows": flows,
        "notices": [*more, *_notices(logs)],
    }
    return RunRecord(1, summary, series.tables())


def _notices(logs: Sequence[_core.CallLog]) -> Iterator[dict[str, Any]]:
    """Notices on what could not be read."""
    if any(log.is_cut for log in logs):
        yield {
            "kind": "log-cut",
            "text": "The log ends in the middle of a message: it was cut off, or is still written.",
        }
    unread, control = (sum(log.unread_rtcp[k] for log in logs) for k in (0, 1))
    if unread:
        text = (
            "Packets of RTCP could not be read, as where they are encrypted (SRTCP): of them nothing is told."
        )
        yield {"kind": "rtcp-unread", "text": text, "cases": unread, "of": control}


def _record(name: str, connections: dict[str, dump.Connection]) -> RunRecord:
    times = [t for reports in connections.values() for report in reports.values() for t in report.times_s]
    begin, lasts = min(times), max(times) - min(times)
    flows: list[dict[str, Any]] = []
    series = _Series()
    for connection, reports in connections.items():
        streams = [report for report in reports.values() if report.kind in _STREAMS]
        for number, stream in enumerate(streams):
            flow = f"{connection} {stream.last('kind') or 'stream'} {_STREAMS[stream.kind]}"
            seconds = [t - begin for t in stream.times_s]
            flows.append({"flow": flow, "instance": number, **_measures(stream)})
            series.add("rate", flow, _rate(stream, seconds), number)
            if stream.kind == "outbound-rtp":
                series.add("rtcp", flow, _gauges(stream, reports, begin), number)
    return _run(name, lasts, flows, series)


def _measures(stream: dump.Report) -> dict[str, Any]:
    """The row of `flows` for one stream: the growth of its counters from the first row to the last."""
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
    """The stream's payload rate between rows."""
    sends = stream.kind == "outbound-rtp"
    moved = stream.numbers("bytesSent" if sends else "bytesReceived")
    known = sorted((at, count) for at, count in zip(seconds, moved, strict=True) if count is not None)
    frame = pl.DataFrame(tables.apart(known), {"time_s": pl.Float64, "bytes": pl.Float64}, orient="row")
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
    """Gauges under the names of a simulated `gcc`: see `paceline.call`."""
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
