"""The RTP of a capture: its streams at each interface, what they measure, and their logs in the format of RFC 8868."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl

from paceline import files
from paceline.errors import PacelineError
from paceline.fitting.packets import PCAP, PCAPNG, Datagram, datagrams
from paceline.results import RunRecord

LEAST = 8
"""Packets that make a stream: fewer may be anything that begins with the same bits."""
_HEAD = struct.Struct(">BBHII")
_AHEAD = 1 << 15


class Packet(NamedTuple):
    """A packet of a stream, as a line of RFC 8868's log has it."""

    time: int
    """Nanoseconds since 1970."""
    payload_type: int
    ssrc: int
    number: int
    timestamp: int
    marker: int
    size: int
    """Of the payload, in bytes."""


@dataclass
class Stream:
    """A stream of RTP at one interface of a capture."""

    interface: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    packets: list[Packet] = field(default_factory=list)

    @property
    def ssrc(self) -> int:
        """Its name."""
        return self.packets[0].ssrc

    def numbers(self) -> list[int]:
        """The packets' sequence numbers, counted on where their 16 bits go round."""
        found: list[int] = []
        last = self.packets[0].number
        for packet in self.packets:
            last += ((packet.number - last + _AHEAD) & 0xFFFF) - _AHEAD
            found.append(last)
            last = max(last, found[-1])
        return found


def is_capture(start: bytes) -> bool:
    """Whether a file that begins so is a capture."""
    return start == PCAPNG or start in PCAP


def read(path: Path) -> list[Stream]:
    """The streams of a capture, in the order of their first packets. Raises PacelineError for what is none, or has
    none."""
    try:
        with path.open("rb") as file:
            found = streams(file)
    except OSError as error:
        raise PacelineError(f"{path}: {error.strerror}") from None
    except PacelineError as error:
        raise PacelineError(f"{path}: {error}") from None
    if not found:
        raise PacelineError(f"{path}: no stream of RTP is in it, of {LEAST} packets or more")
    return found


def streams(file: IO[bytes]) -> list[Stream]:
    """The same of a file that is open."""
    found: dict[tuple[object, ...], Stream] = {}
    for datagram in datagrams(file):
        packet = _packet(datagram)
        if packet is not None:
            key = (datagram.interface, datagram.source, datagram.target, packet.ssrc)
            one = found.setdefault(key, Stream(datagram.interface, datagram.source, datagram.target))
            one.packets.append(packet)
    return [one for one in found.values() if _is_stream(one.packets)]


def _packet(datagram: Datagram) -> Packet | None:
    """The packet that a datagram is, if it may be one (RFC 3550 section 5.1; RFC 7983, RFC 5761)."""
    kept = datagram.kept
    if len(kept) < 12 or kept[0] >> 6 != 2 or 192 <= kept[1] <= 223:
        return None
    first, second, number, timestamp, ssrc = _HEAD.unpack_from(kept)
    head = 12 + 4 * (first & 15)
    if first & 16:
        if len(kept) < head + 4:
            return None
        head += 4 + 4 * struct.unpack_from(">H", kept, head + 2)[0]
    size = datagram.size - head
    if first & 32 and len(kept) == datagram.size:
        size -= kept[-1]
    if size < 0:
        return None
    return Packet(datagram.time, second & 0x7F, ssrc, number, timestamp, second >> 7, size)


def _is_stream(packets: Sequence[Packet]) -> bool:
    """Whether most of the numbers follow one another."""
    steps = [(b.number - a.number) & 0xFFFF for a, b in itertools.pairwise(packets)]
    near = sum(step < 1000 or step > 0xFFFF - 1000 for step in steps)
    return len(packets) >= LEAST and near > 0.9 * len(steps)


def record(name: str, found: Sequence[Stream]) -> RunRecord:
    """The streams as the flows of a run; times count from the first packet of all."""
    begin = min(stream.packets[0].time for stream in found)
    lasts = (max(stream.packets[-1].time for stream in found) - begin) / 1e9
    flows, rates = [], []
    firsts: dict[int, Stream] = {}
    for number, stream in enumerate(found):
        first = firsts.setdefault(stream.ssrc, stream)
        row = {"flow": f"{stream.ssrc:08x}", "instance": number}
        flows.append(row | _measures(stream, None if first is stream else first))
        rates.append(_rate(stream, begin).select(*(pl.lit(v).alias(k) for k, v in row.items()), pl.all()))
    summary = {
        "name": name,
        "seed": 1,
        "duration_s": lasts,
        "warmup_s": 0.0,
        "end_s": lasts,
        "measured_s": lasts,
        "flows": flows,
    }
    return RunRecord(1, summary, {"rate": pl.concat(rates)})


def _measures(stream: Stream, before: Stream | None) -> dict[str, Any]:
    """The row of a stream. `before` is the same at another interface that it passed first: its delays from there, and
    what was lost between them; else losses are gaps in the numbers."""
    numbers = stream.numbers()
    came = set(numbers)
    lasts = (stream.packets[-1].time - stream.packets[0].time) / 1e9
    moved = sum(packet.size for packet in stream.packets)
    expected, arrived = max(came) - min(came) + 1, len(came)
    delays: list[float] = []
    if before is not None:
        left, mine = _by_number(before), _by_number(stream)
        delays = sorted((mine[at] - left[at]) / 1e9 for at in set(mine) & set(left))
        expected, arrived = len(left), len(delays)
    return {
        "group": "rtp",
        "cc": "unknown",
        "profile": "capture",
        "from": _place(stream.source),
        "to": _place(stream.target),
        "goodput_bps": moved * 8 / lasts if lasts > 0 else None,
        "packets_delivered": len(stream.packets),
        "packets_lost": expected - arrived,
        "loss_rate": 1 - arrived / expected if expected else None,
        "bytes_delivered": moved,
        "owd_mean_s": math.fsum(delays) / len(delays) if delays else None,
        "owd_p95_s": delays[math.ceil(0.95 * len(delays)) - 1] if delays else None,
    }


def _by_number(stream: Stream) -> dict[tuple[int, int], int]:
    """When each packet passed, the first of copies, by its number and its timestamp: numbers go round."""
    found: dict[tuple[int, int], int] = {}
    for packet in stream.packets:
        found.setdefault((packet.number, packet.timestamp), packet.time)
    return found


def _rate(stream: Stream, begin: int) -> pl.DataFrame:
    """Payload over each second."""
    seconds = [(packet.time - begin) // 1_000_000_000 for packet in stream.packets]
    frame = pl.DataFrame({"second": seconds, "bits": [packet.size * 8 for packet in stream.packets]})
    whole = pl.DataFrame({"second": range(min(seconds), max(seconds) + 1)}, {"second": pl.Int64})
    summed = whole.join(frame.group_by("second").agg(pl.col("bits").sum()), on="second", how="left")
    return summed.select(
        (pl.col("second") + 1.0).alias("time_s"),
        pl.col("bits").fill_null(0).cast(pl.Float64).alias("goodput_bps"),
    )


def _place(of: tuple[bytes, int]) -> str:
    address = ip_address(of[0])
    return f"[{address}]:{of[1]}" if address.version == 6 else f"{address}:{of[1]}"


def write_logs(found: Sequence[Stream], out: Path) -> list[Path]:
    """Writes a log of each stream at each interface in the format of RFC 8868, section 3.1: a line for each packet with
    time (sec.usec), payload type, SSRC (hexadecimal), sequence number, RTP timestamp, marker, and size of the payload.
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
