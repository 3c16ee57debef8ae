"""An event log of libwebrtc (RtcEventLog): its streams, and what its own controller thought."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from paceline import _core, files
from paceline.calls.streams import Packet, Stream
from paceline.errors import PacelineError

MAGIC = b"\x82\x01"
"""How one begins: the key of the message that says where it begins."""
_OLD = b"\x0a"
MOST_BYTES = 256 << 20
"""Chromium's own logs end at 60 MB."""


def is_event_log(start: bytes) -> bool:
    """Whether a file that begins so is an event log, of this format or the one before: text has no such second byte."""
    return start[:2] == MAGIC or (start[:1] == _OLD and not start[1:2].isspace() and start[1:2] not in b'{["')


def read(path: Path) -> _core.CallLog:
    """Reads a log. Raises PacelineError for one of another version, a damaged and a too long one."""
    try:
        with files.opened(path) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise PacelineError(f"{path} is longer than {MOST_BYTES >> 20} MB")
        return _core.CallLog.rtc_event_log(content)
    except OSError as error:
        raise PacelineError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise PacelineError(f"{path}: {error}") from None


def streams(log: _core.CallLog) -> list[tuple[Stream, bool]]:
    """Its streams in the order of their first packets, and whether each left; times are from 1970 on if the log tells
    when it began."""
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
    """What its controller thought over time, under the names that a simulated `gcc` has: `allowed_bps`, which it went
    by in the end, and `delay_based_bps`."""
    rows = [
        {"time_s": at - begin_s, ("delay_based_bps" if part == "delay" else "allowed_bps"): float(rate)}
        for at, part, rate in log.estimates()
    ]
    schema = dict.fromkeys(("time_s", "allowed_bps", "delay_based_bps"), pl.Float64)
    return pl.DataFrame(rows, schema).select(pl.col("time_s"), pl.exclude("time_s").forward_fill())
