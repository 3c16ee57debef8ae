"""An event log of libwebrtc (RtcEventLog): its streams, and its own controller's estimates."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from paceline import _core, files
from paceline.calls.streams import Packet, Stream
from paceline.errors import PacelineError

MAGIC = b"\x82\x01"
"""The first bytes of a log: the key of the message that holds its beginning."""
_OLD = b"\x0a"
MAX_BYTES = 256 << 20
"""Chromium's own logs end at 60 MB."""


def is_event_log(start: bytes) -> bool:
    """Whether a file with these first bytes is an event log, in this format or the previous one; text has no such
    second byte."""
    return start[:2] == MAGIC or (start[:1] == _OLD and not start[1:2].isspace() and start[1:2] not in b'{["')


def read(path: Path) -> _core.CallLog:
    """Reads a log. Raises PacelineError for an unsupported version, a damaged log or one that is too long."""
    try:
        with files.opened(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise PacelineError(f"{path} is longer than {MAX_BYTES >> 20} MB")
        return _core.CallLog.rtc_event_log(content)
    except OSError as error:
        raise PacelineError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise PacelineError(f"{path}: {error}") from None


def streams(log: _core.CallLog) -> list[tuple[Stream, bool]]:
    """Its streams in the order of their first packets, and whether each was sent; times are since 1970 if the log has
    its beginning."""
    zero = (log.began_ms or 0) * 1_000_000
    found: dict[tuple[int, bool], Stream] = {}
    for at, left, ssrc, payload_type, number, timestamp, marker, payload, beside, _ in log.rtp():
        ends = ("here", "there") if left else ("there", "here")
        stream = found.setdefault((ssrc, left), Stream(f"{ssrc:08x} {'out' if left else 'in'}", *ends))
        stream.packets.append(
            Packet(zero + at, payload_type, ssrc, number, timestamp, int(marker), payload, beside)
        )
    return [(stream, left) for (_, left), stream in found.items()]


def estimates(log: _core.CallLog, begin_s: float) -> pl.DataFrame:
    """Its controller's estimates over time, under the names of a simulated `gcc`: `allowed_bps`, the final one, and
    `delay_based_bps`."""
    rows = [
        {"time_s": at - begin_s, ("delay_based_bps" if part == "delay" else "allowed_bps"): float(rate)}
        for at, part, rate in log.estimates()
    ]
    schema = dict.fromkeys(("time_s", "allowed_bps", "delay_based_bps"), pl.Float64)
    return pl.DataFrame(rows, schema).select(pl.col("time_s"), pl.exclude("time_s").forward_fill())
