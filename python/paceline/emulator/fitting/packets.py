"""The TCP segments and UDP datagrams of a capture, over IPv4 and IPv6, also tunnelled in IP and GRE; fragments are
reassembled.

Captures come from anywhere: every length is checked before use, and incomplete headers are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, NamedTuple, TypeVar

from paceline.emulator.fitting.frames import Unread, frames, packet_in, packet_of

FIN, SYN, RST, ACK = 1, 2, 4, 16
TCP, UDP = 6, 17

MAX_NESTING = 8
"""The limit on nested IP packets."""
MAX_PARTIAL = 1000
"""The limit on packets whose fragments are pending."""
LONGEST_PARTIAL = 30_000_000_000
"""How long fragments are pending, in nanoseconds, as in Linux (net.ipv4.ipfrag_time)."""


class Segment(NamedTuple):
    """A TCP segment of a capture."""

    time: int
    """Nanoseconds."""
    interface: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    size: int
    """The IP packet's size in bytes."""
    seq: int
    ack: int
    flags: int
    payload: int
    """The size of its contents in bytes."""
    kept: bytes = b""
    """The captured part of the contents, where it was requested."""


class Datagram(NamedTuple):
    """A UDP datagram of a capture, or one that a TCP connection carried (`paceline.calls.tcp_streams`)."""

    time: int
    """Nanoseconds; of its last fragment or segment."""
    interface: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    size: int
    """The size of its contents in bytes."""
    kept: bytes
    """The captured part of the contents."""
    protocol: int = UDP
    """What carried it."""


def segments(file: IO[bytes], unread: Unread) -> Iterator[Segment]:
    """The TCP segments of a capture, in the file's order. Raises PacelineError, OSError."""
    return _parsed(file, {TCP: _segment}, unread)


def datagrams(file: IO[bytes], unread: Unread) -> Iterator[Datagram]:
    """The UDP datagrams of a capture, in the file's order. Raises PacelineError, OSError."""
    return _parsed(file, {UDP: _datagram}, unread)


def contents(file: IO[bytes], unread: Unread) -> Iterator[Datagram | Segment]:
    """The UDP datagrams of a capture and its TCP segments with their contents, in the file's order. Raises
    PacelineError, OSError."""
    return _parsed(file, {UDP: _datagram, TCP: _kept_segment}, unread)


class _Inner(NamedTuple):
    """The content of an IP packet: addresses, protocol, its own size, and where its contents begin, which may be
    truncated."""

    source: bytes
    target: bytes
    protocol: int
    size: int
    head: int
    fragment: tuple[int, int, bool] | None = None
    """Identification, offset of the contents in the whole packet, and whether more fragments follow."""


Read = TypeVar("Read", Segment, Datagram, Datagram | Segment)


def _parsed(
    file: IO[bytes], parsers: Mapping[int, Callable[[int, int, bytes, _Inner], Read | None]], unread: Unread
) -> Iterator[Read]:
    """Parses the capture's IP packets of these protocols; unparsable ones are skipped."""
    fragments = _Fragments()
    for time, interface, link, frame in frames(file, unread):
        packet = packet_in(link, frame, unread)
        for _ in range(MAX_NESTING):
            inner = None if packet is None else _inner(packet)
            if packet is None or inner is None:
                break
            parse = parsers.get(inner.protocol)
            if parse is None and inner.protocol not in (*_TUNNELS, *_EXTENSIONS):
                unread.kinds[f"IP protocol {inner.protocol}{_NAMES.get(inner.protocol, '')}"] += 1
                break
            if inner.fragment is not None:
                packet = fragments.joined(time, interface, packet, inner)
                inner = None if packet is None else _inner(packet)
            if packet is None or inner is None:
                break
            parse = parsers.get(inner.protocol)
            if parse is not None:
                found = parse(time, interface, packet, inner)
                if found is not None:
                    yield found
                break
            packet = _tunnelled(inner.protocol, packet[inner.head : inner.size], unread)
        else:
            unread.kinds[f"IP packets more than {MAX_NESTING} deep"] += 1
    unread.lacking = fragments.lacking + len(fragments.waiting)


_NAMES = {1: " (ICMP)", TCP: " (TCP)", UDP: " (UDP)", 47: " (GRE)", 50: " (ESP)", 58: " (ICMPv6)"}
_GRE = 47
_TUNNELS = (4, 41, _GRE)
"""IPv4 in IP (RFC 2003), IPv6 in IP (RFC 4213, RFC 2473), and GRE (RFC 2784, RFC 2890)."""
_ETHERNET = 0x6558
"""The EtherType of whole Ethernet frames."""


def _tunnelled(protocol: int, content: bytes, unread: Unread) -> bytes | None:
    """The IP packet in a tunnel."""
    if protocol != _GRE:
        return content if protocol in _TUNNELS else None
    if len(content) < 4:
        return None
    flags, kind = struct.unpack_from(">HH", content)
    # Version 1 is PPTP's; routing is from RFC 1701, and obsolete.
    if flags & 0x4007:
        unread.kinds[f"GRE with flags 0x{flags:04x}"] += 1
        return None
    head = 4 + 4 * sum(bool(flags & bit) for bit in (0x8000, 0x2000, 0x1000))
    if kind == _ETHERNET:
        return packet_in(1, content[head:], unread)
    return packet_of(kind, content[head:], unread)


_FRAGMENT = 44
_EXTENSIONS = (0, 43, _FRAGMENT, 60)
"""IPv6 extension headers: hop-by-hop options, routing, fragments, destination options (RFC 8200 section 4)."""


def _inner(packet: bytes) -> _Inner | None:
    """The contents of an IP packet; None if it is invalid."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        size, identification, place = struct.unpack_from(">HHH", packet, 2)
        head, protocol = (packet[0] & 15) * 4, packet[9]
        if head < 20:
            return None
        source, target = packet[12:16], packet[16:20]
        part = (identification, (place & 0x1FFF) * 8, bool(place & 0x2000))
        fragment = part if part[1:] != (0, False) else None
    elif version == 6 and len(packet) >= 40:
        size = 40 + (packet[4] << 8 | packet[5])
        source, target = packet[8:24], packet[24:40]
        protocol, head, fragment = _behind_extensions(packet)
    else:
        return None
    if size == 0 or (version == 6 and size == 40):
        # A length of zero is left by the kernel for segmentation in the network card.
        size = len(packet)
    return _Inner(source, target, protocol, size, head, fragment)


def _behind_extensions(packet: bytes) -> tuple[int, int, tuple[int, int, bool] | None]:
    """The protocol after an IPv6 packet's extension headers, its offset, and the fragment's position if it is one."""
    protocol, head = packet[6], 40
    while protocol in _EXTENSIONS and len(packet) >= head + 8:
        if protocol == _FRAGMENT:
            place, identification = struct.unpack_from(">HI", packet, head + 2)
            protocol, head = packet[head], head + 8
            # An atomic fragment is a whole packet (RFC 6946).
            if place & 0xFFF9:
                return protocol, head, (identification, place & 0xFFF8, bool(place & 1))
        else:
            protocol, head = packet[head], head + 8 * (1 + packet[head + 1])
    return protocol, head, None


@dataclass
class _Partial:
    """The fragments of a packet received so far, by offset: their headers, their contents, which may be truncated, and
    the contents' sizes."""

    since: int
    parts: dict[int, tuple[bytes, bytes, int]] = field(default_factory=dict)
    there: int = 0
    """Bytes of contents received."""
    end: int | None = None
    """The size of all contents, once the last fragment is known."""

    def joined(self) -> bytes | None:
        """The whole packet, if no fragment is missing."""
        if self.there != self.end:
            return None
        at, contents = 0, b""
        while at in self.parts:
            _, part, size = self.parts[at]
            if len(contents) == at:
                contents += part
            at += size
        return _whole(self.parts[0][0], contents, at) if at == self.end else None


class _Fragments:
    """Pending fragments."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[int, bytes, bytes, int, int], _Partial] = {}
        self.lacking = 0
        """Packets that were given up."""

    def joined(self, time: int, interface: int, packet: bytes, inner: _Inner) -> bytes | None:
        """The packet that this fragment completes, as if it had not been fragmented. It is truncated where the capture
        truncated a fragment."""
        size = inner.size - inner.head
        if inner.fragment is None or size <= 0:
            return None
        identification, place, more = inner.fragment
        key = (interface, inner.source, inner.target, inner.protocol, identification)
        max_waiting = MAX_PARTIAL - (key not in self.waiting)
        while self.waiting:
            oldest = next(iter(self.waiting))
            if len(self.waiting) <= max_waiting and time - self.waiting[oldest].since <= LONGEST_PARTIAL:
                break
            del self.waiting[oldest]
            self.lacking += 1
        partial = self.waiting.setdefault(key, _Partial(time))
        if place not in partial.parts:
            partial.parts[place] = packet[: inner.head], packet[inner.head : inner.size], size
            partial.there += size
        if not more:
            partial.end = place + size
        whole = partial.joined()
        if whole is not None:
            del self.waiting[key]
        return whole


def _whole(head: bytes, contents: bytes, size: int) -> bytes | None:
    """A packet with its first fragment's headers and all contents, which may be truncated."""
    found = bytearray(head + contents)
    first = 0 if head[0] >> 4 == 4 else 40
    if len(head) + size - first > 0xFFFF:
        return None
    if first == 0:
        found[2:4], found[6:8] = (len(head) + size).to_bytes(2, "big"), bytes(2)
    else:
        found[4:6] = (len(head) + size - first).to_bytes(2, "big")
        # The fragment header is the last of the headers.
        found[len(head) - 6 : len(head) - 4] = bytes(2)
    return bytes(found)


_TCP = struct.Struct(">HHIIBB")


def _segment(time: int, interface: int, packet: bytes, inner: _Inner) -> Segment | None:
    if len(packet) < inner.head + 14:
        return None
    own, peer, seq, ack, offset, flags = _TCP.unpack_from(packet, inner.head)
    payload = inner.size - inner.head - (offset >> 4) * 4
    if payload < 0 or (offset >> 4) < 5:
        return None
    source, target = (inner.source, own), (inner.target, peer)
    return Segment(time, interface, source, target, inner.size, seq, ack, flags, payload)


def _kept_segment(time: int, interface: int, packet: bytes, inner: _Inner) -> Segment | None:
    found = _segment(time, interface, packet, inner)
    return found and found._replace(kept=packet[inner.size - found.payload : inner.size])


_UDP = struct.Struct(">HHHH")


def _datagram(time: int, interface: int, packet: bytes, inner: _Inner) -> Datagram | None:
    if len(packet) < inner.head + 8:
        return None
    own, peer, length, _ = _UDP.unpack_from(packet, inner.head)
    if not 8 <= length <= inner.size - inner.head:
        return None
    kept = packet[inner.head + 8 : inner.head + length]
    return Datagram(time, interface, (inner.source, own), (inner.target, peer), length - 8, kept)
