"""The TCP segments and UDP datagrams of a capture: pcap and pcapng (draft-ietf-opsawg-pcap, -pcapng), with Ethernet,
raw IP, loopback or Linux's cooked headers, IPv4 and IPv6.

Captures come from anywhere: every length is checked before it is used, and what is no whole header is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import IO, NamedTuple, TypeVar

from paceline.errors import PacelineError

LONGEST = 1 << 24
"""Bytes of a block or packet above which a file is damaged."""
MOST_PACKETS = 2_000_000
"""Packets of a capture that are looked at."""

FIN, SYN, RST, ACK = 1, 2, 4, 16

PCAP = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
"""The first bytes of a pcap file: byte order, and nanoseconds of the second number of a time."""
PCAPNG = b"\x0a\x0d\x0d\x0a"


class Segment(NamedTuple):
    """A TCP segment of a capture."""

    time: int
    """Nanoseconds."""
    interface: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    size: int
    """Of the IP packet, in bytes."""
    seq: int
    ack: int
    flags: int
    payload: int


class Datagram(NamedTuple):
    """A UDP datagram of a capture."""

    time: int
    """Nanoseconds."""
    interface: int
    source: tuple[bytes, int]
    target: tuple[bytes, int]
    size: int
    """Of its contents, in bytes."""
    kept: bytes
    """Of the contents, what the capture has."""


def segments(file: IO[bytes]) -> Iterator[Segment]:
    """The TCP segments of a capture, in the file's order. Raises PacelineError, OSError."""
    return _parsed(file, _segment)


def datagrams(file: IO[bytes]) -> Iterator[Datagram]:
    """The UDP datagrams of a capture, in the file's order. Raises PacelineError, OSError."""
    return _parsed(file, _datagram)


Read = TypeVar("Read", Segment, Datagram)


def _parsed(file: IO[bytes], parse: Callable[[int, int, bytes], Read | None]) -> Iterator[Read]:
    """What of the capture's IP packets can be read so."""
    start = file.read(4)
    frames = _pcapng(file) if start == PCAPNG else _pcap(file, start)
    for _, (time, interface, link, frame) in zip(range(MOST_PACKETS), frames, strict=False):
        packet = _ip(link, frame)
        found = None if packet is None else parse(time, interface, packet)
        if found is not None:
            yield found


Frame = tuple[int, int, int, bytes]
"""Time in nanoseconds, interface, kind of link, bytes."""


def _pcap(file: IO[bytes], start: bytes) -> Iterator[Frame]:
    order, unit = PCAP[start]
    head = file.read(20)
    if len(head) < 20:
        raise PacelineError("its header is cut off")
    link = struct.unpack(order + "I", head[16:20])[0] & 0xFFFF
    record = struct.Struct(order + "IIII")
    while len(head := file.read(16)) == 16:
        seconds, fraction, length, _ = record.unpack(head)
        if length > LONGEST:
            raise PacelineError(f"a packet of {length} bytes is in it: it is damaged")
        yield seconds * 1_000_000_000 + fraction * unit, 0, link, file.read(length)


def _pcapng(file: IO[bytes]) -> Iterator[Frame]:
    order = "<"
    links: list[tuple[int, int, int]] = []
    kind = PCAPNG
    while len(kind) == 4:
        raw = file.read(4)
        if len(raw) < 4:
            return
        body = b""
        if kind == PCAPNG:
            # The byte order stands behind the length that is written in it.
            body = file.read(4)
            if body not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                raise PacelineError("a section of it has no byte order: it is damaged")
            order = ">" if body == b"\x1a\x2b\x3c\x4d" else "<"
            links = []
        length = struct.unpack(order + "I", raw)[0]
        if not 12 + len(body) <= length <= LONGEST:
            raise PacelineError(f"a block of {length} bytes is in it: it is damaged")
        body += file.read(length - 8 - len(body))
        number = struct.unpack(order + "I", kind)[0]
        if number == 1 and len(body) >= 12:
            links.append((struct.unpack_from(order + "H", body)[0], *_resolution(order, body[8:-4])))
        elif number == 6 and len(body) >= 24:
            interface, high, low, kept, _ = struct.unpack_from(order + "IIIII", body)
            if interface < len(links):
                link, units, offset = links[interface]
                time = ((high << 32) | low) * 1_000_000_000 // units + offset
                yield time, interface, link, body[20 : 20 + min(kept, len(body) - 24)]
        kind = file.read(4)


def _resolution(order: str, options: bytes) -> tuple[int, int]:
    """An interface's units of time in a second, and its offset in nanoseconds (if_tsresol, if_tsoffset)."""
    units, offset = 1_000_000, 0
    while len(options) >= 4:
        code, length = struct.unpack_from(order + "HH", options)
        value = options[4 : 4 + length]
        if code == 9 and len(value) == 1:
            power = value[0] & 0x7F
            units = 2**power if value[0] & 0x80 else 10 ** min(power, 18)
        elif code == 14 and len(value) == 8:
            offset = struct.unpack(order + "q", value)[0] * 1_000_000_000
        elif code == 0:
            break
        options = options[4 + (length + 3) // 4 * 4 :]
    return units, offset


def _ethernet(frame: bytes) -> bytes | None:
    at = 12
    # VLAN tags
    while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    return frame[at + 2 :] if frame[at : at + 2] in (b"\x08\x00", b"\x86\xdd") else None


# By the numbers of https://www.tcpdump.org/linktypes.html.
_LINKS: dict[int, Callable[[bytes], bytes | None]] = {
    0: lambda frame: frame[4:],
    1: _ethernet,
    101: lambda frame: frame,
    108: lambda frame: frame[4:],
    113: lambda frame: frame[16:],
    228: lambda frame: frame,
    229: lambda frame: frame,
    276: lambda frame: frame[20:],
}


def _ip(link: int, frame: bytes) -> bytes | None:
    if link not in _LINKS:
        raise PacelineError(
            f"it was taken on a link of type {link}; Ethernet, raw IP and Linux cooked are known"
        )
    return _LINKS[link](frame)


class _Inner(NamedTuple):
    """What an IP packet carries: addresses, its own size, and where its contents begin."""

    source: bytes
    target: bytes
    size: int
    head: int


def _inner(packet: bytes, protocol: int) -> _Inner | None:
    """The contents of an IP packet of this protocol, of which the end may be cut off; None of another, or of a later
    fragment."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and len(packet) >= 20:
        head, size = (packet[0] & 15) * 4, packet[2] << 8 | packet[3]
        if packet[9] != protocol or head < 20 or (packet[6] & 0x1F or packet[7]):
            return None
        source, target = packet[12:16], packet[16:20]
    elif version == 6 and len(packet) >= 40:
        head, size = 40, 40 + (packet[4] << 8 | packet[5])
        if packet[6] != protocol:
            return None
        source, target = packet[8:24], packet[24:40]
    else:
        return None
    if size == 0 or (version == 6 and size == 40):
        # A length of zero is one that the kernel left for its card to cut.
        size = len(packet)
    return _Inner(source, target, size, head)


_TCP = struct.Struct(">HHIIBB")


def _segment(time: int, interface: int, packet: bytes) -> Segment | None:
    inner = _inner(packet, 6)
    if inner is None or len(packet) < inner.head + 14:
        return None
    own, peer, seq, ack, offset, flags = _TCP.unpack_from(packet, inner.head)
    payload = inner.size - inner.head - (offset >> 4) * 4
    if payload < 0 or (offset >> 4) < 5:
        return None
    source, target = (inner.source, own), (inner.target, peer)
    return Segment(time, interface, source, target, inner.size, seq, ack, flags, payload)


_UDP = struct.Struct(">HHHH")


def _datagram(time: int, interface: int, packet: bytes) -> Datagram | None:
    inner = _inner(packet, 17)
    if inner is None or len(packet) < inner.head + 8:
        return None
    own, peer, length, _ = _UDP.unpack_from(packet, inner.head)
    if not 8 <= length <= inner.size - inner.head:
        return None
    kept = packet[inner.head + 8 : inner.head + length]
    return Datagram(time, interface, (inner.source, own), (inner.target, peer), length - 8, kept)
