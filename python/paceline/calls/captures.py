"""The RTP and RTCP of a capture: its streams at each interface, and each sender's packets and feedback."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import IO

from paceline import _core, files
from paceline.calls.relayed import Relays
from paceline.calls.streams import Packet, Stream
from paceline.calls.tcp_streams import datagrams
from paceline.emulator.fitting.frames import PCAP, PCAPNG, Unread
from paceline.emulator.fitting.packets import TCP, UDP, Datagram
from paceline.errors import PacelineError

MIN_PACKETS = 8
"""The minimum packets of a stream: fewer may be anything that begins with the same bits."""
_HEAD = struct.Struct(">BBHII")
_ONE_BYTE = 0xBEDE

_AGREE = 0.9
"""The share of a stream's packets at an interface that must also be at another for both to be the same stream."""
_DTLS = (b"\xfe\xff", b"\xfe\xfd")
_QUIC = (b"\x00\x00\x00\x01", b"\x6b\x33\x43\xcf", b"\xff\x00\x00")
"""Versions of QUIC: 1 (RFC 9000), 2 (RFC 9369), and the prefix of the drafts'."""

_BELOW = {UDP: 8, TCP: 32 + 2}
"""Bytes of headers between IP and RTP: UDP's, or TCP's with time stamps and RFC 4571's length, if each packet has a
segment."""

_Key = tuple[int, int, int, tuple[bytes, int], tuple[bytes, int], int]
_Place = tuple[int, bytes, bytes, int]
"""Interface, source address, target address, and the protocol that carries it, UDP or TCP."""


@dataclass
class Capture:
    """The calls in a capture."""

    streams: list[Stream] = field(default_factory=list)
    """Each stream at each interface, in the order of their first packets."""
    places: list[_Place] = field(default_factory=list)
    """Each stream's place."""
    controls: list[tuple[int, Datagram]] = field(default_factory=list)
    """RTCP: its interface, and the datagram."""
    sealed: Counter[str] = field(default_factory=Counter)
    """Encrypted datagrams: DTLS, and those that open QUIC connections."""
    padded: int = 0
    """Packets whose padding cannot be told from payload, and counts as payload."""
    unread: Unread = field(default_factory=Unread)

    def before(self) -> list[int | None]:
        """For each stream the index in `streams` of the same stream at the interface that it passed first, or None if
        it is that one: another interface, and matching packets. An SSRC alone is not enough: each end chooses its own
        (RFC 3550 section 8)."""
        firsts: dict[int, list[tuple[int, set[tuple[int, int, int]]]]] = {}
        found: list[int | None] = []
        for number, stream in enumerate(self.streams):
            own = {(packet.number, packet.timestamp, packet.size) for packet in stream.packets}
            interface, source, *_ = self.places[number]
            same = (
                first
                for first, theirs in firsts.get(stream.ssrc, ())
                if self.places[first][0] != interface
                and self.places[first][2] != source
                and len(own & theirs) >= _AGREE * len(own)
            )
            found.append(next(same, None))
            if found[-1] is None:
                firsts.setdefault(stream.ssrc, []).append((number, own))
        return found


def is_capture(start: bytes) -> bool:
    """Whether a file with these first bytes is a capture."""
    return start[:4] == PCAPNG or start[:4] in PCAP


def read(path: Path) -> Capture:
    """Reads the calls of a capture. Raises PacelineError if it is invalid or has no stream of RTP."""
    try:
        with files.opened(path) as file:
            found = calls(file)
    except OSError as error:
        raise PacelineError(f"{path}: {error.strerror}") from None
    except PacelineError as error:
        raise PacelineError(f"{path}: {error}") from None
    if not found.streams:
        sealed = ", ".join(f"{count} {name}" for name, count in found.sealed.items())
        others = found.unread.most_frequent()
        raise PacelineError(
            f"{path}: it has no stream of RTP with at least {MIN_PACKETS} packets"
            + (f"; datagrams that are encrypted: {sealed}" if sealed else "")
            + (f"; not read are {others}" if others else "")
            + "".join(f". {notice['text']}" for notice in found.unread.notices())
        )
    return found


@dataclass
class _Candidate:
    """A possible stream."""

    stream: Stream
    place: _Place
    padding: dict[int, int] = field(default_factory=dict)
    """The last byte of packets with the padding bit, by index; -1 if the capture lacks it."""

    def without_padding(self, *, sealed: bool) -> int:
        """Subtracts the padding from the sizes; returns the number of packets for which that is impossible. If the
        payload is encrypted, so is the padding length, or an authentication tag takes its place: it may be any
        number."""
        packets = self.stream.packets
        known = {at: count for at, count in self.padding.items() if count >= 0}
        if sealed or not all(0 < count <= packets[at].size for at, count in known.items()):
            known = {}
        for at, count in known.items():
            packet = packets[at]
            packets[at] = packet._replace(size=packet.size - count, beside=packet.beside + count)
        return len(self.padding) - len(known)


def calls(file: IO[bytes]) -> Capture:
    """Reads the calls of an open capture."""
    found: dict[_Key, _Candidate] = {}
    agreed: set[frozenset[bytes]] = set()
    capture, relays = Capture(), Relays()
    for datagram in datagrams(file, capture.unread, MIN_PACKETS):
        channel, datagram = relays.carried(datagram)  # noqa: PLW2901 (the carried datagram replaces it)
        ends = datagram.source[0], datagram.target[0]
        packet = _packet(datagram)
        if packet is not None:
            key = (
                *(datagram.interface, datagram.protocol, channel),
                *(datagram.source, datagram.target, packet.ssrc),
            )
            if key not in found:
                stream = Stream(f"{packet.ssrc:08x}", _place(datagram.source), _place(datagram.target))
                found[key] = _Candidate(stream, (datagram.interface, *ends, datagram.protocol))
            candidate = found[key]
            if datagram.kept[0] & 0x20:
                whole = len(datagram.kept) == datagram.size
                candidate.padding[len(candidate.stream.packets)] = datagram.kept[-1] if whole else -1
            candidate.stream.packets.append(packet)
        elif _is_rtcp(datagram.kept):
            capture.controls.append((datagram.interface, datagram))
        elif (sealed := _sealed(datagram.kept)) is not None:
            capture.sealed[sealed] += 1
            if sealed == "DTLS":
                agreed.add(frozenset(ends))
    streams = []
    for candidate in found.values():
        padded = candidate.without_padding(sealed=frozenset(candidate.place[1:3]) in agreed)
        candidate.stream.packets.sort(key=lambda packet: packet.time)
        if _is_stream(candidate.stream.packets):
            capture.padded += padded
            streams.append((candidate.stream, candidate.place))
    # Merged captures, or those of several processors, are not sorted by time.
    streams.sort(key=lambda one: one[0].packets[0].time)
    capture.streams = [stream for stream, _ in streams]
    capture.places = [place for _, place in streams]
    capture.controls.sort(key=lambda control: control[1].time)
    return capture


def _sealed(kept: bytes) -> str | None:
    """The protocol of an encrypted datagram, if it can be recognised: a record of DTLS (RFC 7983), or the beginning of
    a QUIC connection (RFC 8999: a long header with its version)."""
    if len(kept) >= 13 and 20 <= kept[0] <= 26 and kept[1:3] in _DTLS:
        return "DTLS"
    if len(kept) >= 7 and kept[0] >> 6 == 3 and kept[1:5].startswith(_QUIC):
        return "QUIC"
    return None


def _is_rtcp(kept: bytes) -> bool:
    """Whether a datagram may be RTCP (RFC 5761 section 4)."""
    return len(kept) >= 8 and kept[0] >> 6 == 2 and 192 <= kept[1] <= 223


def _packet(datagram: Datagram) -> Packet | None:
    """A datagram as an RTP packet, if it may be one (RFC 3550 section 5.1; RFC 7983, RFC 5761), including padding."""
    kept = datagram.kept
    if len(kept) < 12 or kept[0] >> 6 != 2 or 192 <= kept[1] <= 223:
        return None
    first, second, number, timestamp, ssrc = _HEAD.unpack_from(kept)
    head = 12 + 4 * (first & 15)
    short: tuple[tuple[int, int], ...] = ()
    if first & 16:
        if len(kept) < head + 4:
            return None
        profile, words = struct.unpack_from(">HH", kept, head)
        short = tuple(_short(profile, kept[head + 4 : head + 4 + 4 * words]))
        head += 4 + 4 * words
    size = datagram.size - head
    if size < 0:
        return None
    return Packet(datagram.time, second & 0x7F, ssrc, number, timestamp, second >> 7, size, head, short)


def _short(profile: int, extension: bytes) -> Iterator[tuple[int, int]]:
    """The two-byte elements of a header extension, with one-byte and with two-byte headers (RFC 8285 sections 4.2 and
    4.3)."""
    at = 0
    while at < len(extension):
        if extension[at] == 0:  # padding
            at += 1
            continue
        if profile == _ONE_BYTE:
            name, length, head = extension[at] >> 4, (extension[at] & 15) + 1, 1
        elif profile >> 4 == 0x100 and at + 1 < len(extension):
            name, length, head = extension[at], extension[at + 1], 2
        else:
            return
        at += head
        if length == 2 and at + 2 <= len(extension):
            yield name, extension[at] << 8 | extension[at + 1]
        at += length


def _is_stream(packets: Sequence[Packet]) -> bool:
    """Whether most of the sequence numbers are consecutive."""
    steps = [(b.number - a.number) & 0xFFFF for a, b in itertools.pairwise(packets)]
    near = sum(step < 1000 or step > 0xFFFF - 1000 for step in steps)
    return len(packets) >= MIN_PACKETS and near > 0.9 * len(steps)


def _place(of: tuple[bytes, int]) -> str:
    address = ip_address(of[0])
    return f"[{address}]:{of[1]}" if address.version == 6 else f"{address}:{of[1]}"


def senders(capture: Capture, begin: int) -> dict[str, _core.CallLog]:
    """Each host's packets to each other host and its feedback on them, at the first interface that its packets passed;
    times are from `begin` on, in nanoseconds. Hosts without RTCP feedback are left out. Raises ValueError for a
    capture that lasts too long."""
    groups: dict[tuple[_Place, int], list[Packet]] = {}
    twins: Counter[tuple[_Place, int]] = Counter()
    for stream, place, before in zip(capture.streams, capture.places, capture.before(), strict=True):
        if before is None:
            # an SSRC on other ports of the same hosts is another stream, with its own sequence numbers
            twin = twins[place, stream.ssrc]
            twins[place, stream.ssrc] += 1
            groups.setdefault((place, twin), []).extend(stream.packets)
    found = {}
    for ((interface, source, target, protocol), twin), packets in groups.items():
        both = {(source, target): True, (target, source): False}
        control = [
            (max(0, datagram.time - begin), both[ends], datagram.kept)
            for at, datagram in capture.controls
            if at == interface and (ends := (datagram.source[0], datagram.target[0])) in both
        ]
        if all(left for _, left, _ in control):
            continue
        packets.sort(key=lambda packet: packet.time)
        number = _transport_id(packets)
        sent = [
            (
                *(
                    packet.time - begin,
                    True,
                    packet.ssrc,
                    packet.payload_type,
                    packet.number,
                    packet.timestamp,
                ),
                *(bool(packet.marker), packet.size, packet.beside, _transport(packet, number)),
            )
            for packet in packets
        ]
        overhead = (20 if len(source) == 4 else 40) + _BELOW[protocol]
        name = f"{ip_address(source)} to {ip_address(target)}" + (f" [{twin}]" if twin else "")
        found[name] = _core.CallLog.of_packets(sent, control, overhead)
    return found


def _transport(packet: Packet, name: int | None) -> int | None:
    return next((value for of, value in packet.short if of == name), None)


def _transport_id(packets: Sequence[Packet]) -> int | None:
    """The ID of the extension with transport-wide numbers, which count over all packets of a sender, whatever their
    stream. None if there is none."""
    steps: Counter[int] = Counter()
    counts: Counter[int] = Counter()
    last: dict[int, int] = {}
    for packet in packets:
        for name, value in packet.short:
            if name in last:
                counts[name] += 1
                steps[name] += (value - last[name]) & 0xFFFF == 1
            last[name] = value
    running = [name for name, count in counts.items() if steps[name] > 0.9 * count]
    return max(running, key=lambda name: counts[name], default=None)
