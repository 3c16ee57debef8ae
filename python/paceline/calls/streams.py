"""Logged streams of RTP, their measures, and their logs in the format of RFC 8868."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from paceline import files

_AHEAD = 1 << 15


class Packet(NamedTuple):
    """A packet of a stream, as in a line of RFC 8868's log."""

    time: int
    """Nanoseconds since 1970."""
    payload_type: int
    ssrc: int
    number: int
    timestamp: int
    marker: int
    size: int
    """The payload's size in bytes."""
    beside: int
    """Bytes of RTP header and padding."""
    short: tuple[tuple[int, int], ...] = ()
    """The two-byte elements of its header extension, with their IDs (RFC 8285)."""


@dataclass
class Stream:
    """A stream of RTP at one place, its packets in the order of their times."""

    name: str
    source: str
    target: str
    packets: list[Packet] = field(default_factory=list)

    @property
    def ssrc(self) -> int:
        """Its SSRC."""
        return self.packets[0].ssrc

    def numbers(self) -> list[int]:
        """The packets' sequence numbers, extended beyond 16 bits."""
        found: list[int] = []
        last = self.packets[0].number
        for packet in self.packets:
            last += ((packet.number - last + _AHEAD) & 0xFFFF) - _AHEAD
            found.append(last)
            last = max(last, found[-1])
        return found

    def once(self) -> list[Packet]:
        """Its packets without duplicates, which a network or a capture may make."""
        firsts: dict[tuple[int, int], Packet] = {}
        for number, packet in zip(self.numbers(), self.packets, strict=True):
            firsts.setdefault((number, packet.timestamp), packet)
        return list(firsts.values())

    def bps(self, packets: Sequence[Packet]) -> float | None:
        """The payload rate of some of its packets in bits a second, over the stream's duration; None if it has none."""
        lasts_s = (self.packets[-1].time - self.packets[0].time) / 1e9
        return sum(packet.size for packet in packets) * 8 / lasts_s if lasts_s > 0 else None


def measures(stream: Stream, before: Stream | None = None) -> dict[str, Any]:
    """The row of a stream. `before` is the same stream at the place that it passed first: delays and losses are then
    measured between the two; otherwise losses are gaps in the numbers."""
    numbers = stream.numbers()
    distinct = set(numbers)
    once = stream.once()
    expected, arrived = max(distinct) - min(distinct) + 1, len(distinct)
    delays: list[float] = []
    if before is not None:
        left, mine = _by_number(before), _by_number(stream)
        delays = sorted((mine[at] - left[at]) / 1e9 for at in set(mine) & set(left))
        expected, arrived = len(left), len(delays)
    return {
        "from": stream.source,
        "to": stream.target,
        "goodput_bps": stream.bps(once),
        "packets_delivered": len(stream.packets),
        "packets_lost": expected - arrived,
        "loss_rate": 1 - arrived / expected if expected else None,
        "bytes_delivered": sum(packet.size for packet in once),
        "owd_mean_s": math.fsum(delays) / len(delays) if delays else None,
        "owd_p95_s": delays[math.ceil(0.95 * len(delays)) - 1] if delays else None,
    }


def _by_number(stream: Stream) -> dict[tuple[int, int], int]:
    """The time of each packet, the first of duplicates, by sequence number and timestamp, since numbers repeat."""
    found: dict[tuple[int, int], int] = {}
    for packet in stream.packets:
        found.setdefault((packet.number, packet.timestamp), packet.time)
    return found


def rate(stream: Stream, begin: int, column: str = "goodput_bps") -> pl.DataFrame:
    """Payload rate in each second after `begin`: without duplicates for goodput, with them for `send_rate_bps`."""
    packets = stream.once() if column == "goodput_bps" else stream.packets
    seconds = [(packet.time - begin) // 1_000_000_000 for packet in packets]
    frame = pl.DataFrame({"second": seconds, "bits": [packet.size * 8 for packet in packets]})
    whole = pl.DataFrame({"second": range(min(seconds), max(seconds) + 1)}, {"second": pl.Int64})
    summed = whole.join(frame.group_by("second").agg(pl.col("bits").sum()), on="second", how="left")
    return summed.select(
        (pl.col("second") + 1.0).alias("time_s"),
        pl.col("bits").fill_null(0).cast(pl.Float64).alias(column),
    )


def write_logs(found: Sequence[Stream], out: Path) -> list[Path]:
    """Writes a log of each stream at each place in the format of RFC 8868, section 3.1: a line per packet with time
    (sec.usec), payload type, SSRC (hexadecimal), sequence number, RTP timestamp, marker, and size of the payload.
    Raises StorageError."""
    files.make_directory(out)
    paths = []
    for number, stream in enumerate(found):
        path = out / f"{stream.ssrc:08x}-{number}.log"
        files.write_whole(path, "".join(_lines(stream)))
        paths.append(path)
    return paths


def _lines(stream: Stream) -> Iterator[str]:
    for p in stream.packets:
        seconds, rest = divmod(p.time // 1000, 1_000_000)
        yield f"{seconds}.{rest:06} {p.payload_type} {p.ssrc:x} {p.number} {p.timestamp} {p.marker} {p.size}\n"
