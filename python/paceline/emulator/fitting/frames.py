"""The frames of a capture, and the IP packets in them: pcap and pcapng (draft-ietf-opsawg-pcap, -pcapng), with
Ethernet, raw IP, loopback or Linux's cooked headers, behind any number of VLAN tags and MPLS labels, in PPPoE or not.

Captures come from anywhere: every length is checked before it is used.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from paceline.errors import PacelineError

LONGEST = 1 << 24
"""The limit on bytes of a block or packet; beyond it the file is damaged."""
MAX_PACKETS = 2_000_000
"""The limit on packets that are read of a capture."""

PCAP = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
"""The first bytes of a pcap file: byte order, and nanoseconds per unit of a time stamp's second number."""
PCAPNG = b"\x0a\x0d\x0d\x0a"


@dataclass
class Unread:
    """What was not read of a capture."""

    cut: bool = False
    """Whether it ends in the middle of a record."""
    more: bool = False
    """Whether it has more than `MAX_PACKETS`."""
    lacking: int = 0
    """Fragmented packets of which some fragments are missing."""
    holes: int = 0
    """Where bytes are missing in TCP connections that carry RTP, or are no packets."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Frames that carry no IP, and packets of protocols that were not requested, by kind."""

    def notices(self) -> Iterator[dict[str, Any]]:
        """Notices for the reader. Other kinds are only other traffic."""
        if self.cut:
            text = "The capture ends in the middle of a packet: it was cut off, or is still written."
            yield {"kind": "log-cut", "text": text}
        if self.more:
            text = (
                f"Only the first {MAX_PACKETS:,} packets of the capture are read: take another part of it with "
                "`editcap -A START -B STOP`, or leave out others' traffic with `tcpdump -r FILE -w PART FILTER`."
            )
            yield {"kind": "packets-unread", "text": text}
        if self.lacking:
            text = (
                "Packets that were sent in fragments are not whole in the capture, and count as lost: fragments were "
                "lost, or a filter by ports left them out, as only the first has ports."
            )
            yield {"kind": "fragments-lacking", "text": text, "cases": self.lacking}
        if self.holes:
            text = (
                "The capture lacks bytes of TCP connections with RTP, or bytes there are no packets: what was between "
                "them and the next packet that could be recognised counts as lost."
            )
            yield {"kind": "tcp-holes", "text": text, "cases": self.holes}

    def most_frequent(self) -> str:
        """The most frequent kinds, in words; empty if there are none."""
        return ", ".join(f"{count} of {kind}" for kind, count in self.kinds.most_common(4))


Frame = tuple[int, int, int, bytes]
"""Time in nanoseconds, interface, link type, bytes."""


def frames(file: IO[bytes], unread: Unread) -> Iterator[Frame]:
    """The frames of a capture, in the file's order. Raises PacelineError, OSError."""
    start = file.read(4)
    found = _pcapng(file, unread) if start == PCAPNG else _pcap(file, start, unread)
    for count, frame in enumerate(found):
        if count == MAX_PACKETS:
            unread.more = True
            return
        yield frame


def _pcap(file: IO[bytes], start: bytes, unread: Unread) -> Iterator[Frame]:
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
        frame = file.read(length)
        unread.cut = len(frame) < length
        yield seconds * 1_000_000_000 + fraction * unit, 0, link, frame
    unread.cut |= bool(head)


def _pcapng(file: IO[bytes], unread: Unread) -> Iterator[Frame]:
    order = "<"
    links: list[tuple[int, int, int]] = []
    kind = PCAPNG
    while len(kind) == 4:
        # A section's byte order is written after its length.
        head = 8 if kind == PCAPNG else 4
        raw = file.read(head)
        if len(raw) < head:
            unread.cut = True
            return
        if kind == PCAPNG:
            if raw[4:] not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                raise PacelineError("a section of it has no byte order: it is damaged")
            order = ">" if raw[4:] == b"\x1a\x2b\x3c\x4d" else "<"
            links = []
        length = struct.unpack(order + "I", raw[:4])[0]
        if not 8 + head <= length <= LONGEST:
            raise PacelineError(f"a block of {length} bytes is in it: it is damaged")
        body = file.read(length - 4 - head)
        unread.cut = len(body) < length - 4 - head
        number = struct.unpack(order + "I", kind)[0]
        if number == 1 and len(body) >= 12:
            links.append((struct.unpack_from(order + "H", body)[0], *_resolution(order, body[8:-4])))
        elif number == 3:
            raise PacelineError(
                "it has Simple Packet Blocks, which have no times, but a fit needs them: capture with "
                "tcpdump, dumpcap or Wireshark, which write times"
            )
        elif number in _TIMED and length >= 32 and len(body) >= 20:
            interface, high, low, kept = struct.unpack_from(order + _TIMED[number], body)
            if interface < len(links):
                link, units, offset = links[interface]
                time = ((high << 32) | low) * 1_000_000_000 // units + offset
                yield time, interface, link, body[20 : 20 + min(kept, length - 32)]
        kind = file.read(4)
    unread.cut |= bool(kind)


_TIMED = {2: "HxxIII", 6: "IIII"}
"""Block types with time stamps, the old one and the Enhanced Packet Block: interface, time, captured bytes."""


def _resolution(order: str, options: bytes) -> tuple[int, int]:
    """An interface's time units per second, and its offset in nanoseconds (if_tsresol, if_tsoffset)."""
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


_IP = (0x0800, 0x86DD)
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
"""EtherTypes of VLAN tags: IEEE 802.1Q's customer and provider tags, and older provider tags."""
_MPLS = (0x8847, 0x8848)
_PPPOE = 0x8864
_PPP = {0x0021: 0x0800, 0x0057: 0x86DD}
"""PPP's protocols that are IP, and their EtherTypes."""
_NAMES = {0x0806: " (ARP)", 0x8863: " (PPPoE discovery)", 0x88CC: " (LLDP)", 0x88E5: " (MACsec)"}

# By link type (https://www.tcpdump.org/linktypes.html): the offset of the EtherType, if any, and the offset of the
# content.
_LINKS: dict[int, tuple[int | None, int]] = {
    0: (None, 4),
    1: (12, 14),
    101: (None, 0),
    108: (None, 4),
    113: (14, 16),
    228: (None, 0),
    229: (None, 0),
    276: (0, 20),
}


def packet_in(link: int, frame: bytes, unread: Unread) -> bytes | None:
    """The IP packet in a frame. Raises PacelineError for an unknown link type."""
    if link not in _LINKS:
        raise PacelineError(
            f"it was taken on a link of type {link}; Ethernet, raw IP and Linux cooked are known"
        )
    place, begin = _LINKS[link]
    if place is None:
        return frame[begin:]
    return packet_of(int.from_bytes(frame[place : place + 2], "big"), frame[begin:], unread)


def packet_of(kind: int, content: bytes, unread: Unread) -> bytes | None:
    """The IP packet in the content of an EtherType."""
    begin = 0
    while kind in _TAGS:
        # A tag's two bytes precede the EtherType of its content.
        kind = int.from_bytes(content[begin + 2 : begin + 4], "big")
        begin += 4
    if kind == _PPPOE:
        # RFC 2516: version and type, code, session, length; then PPP's protocol, which is never compressed here.
        protocol = int.from_bytes(content[begin + 6 : begin + 8], "big")
        if content[begin : begin + 2] != b"\x11\0" or protocol not in _PPP:
            unread.kinds[f"PPPoE with PPP's protocol 0x{protocol:04x}"] += 1
            return None
        kind, begin = _PPP[protocol], begin + 8
    if kind in _MPLS:
        # RFC 3032: the ninth bit from a label's end marks the last label; the content's first bits identify it.
        while len(content) >= begin + 4 and not content[begin + 2] & 1:
            begin += 4
        begin += 4
        if content[begin : begin + 1] and content[begin] >> 4 in (4, 6):
            return content[begin:]
        unread.kinds["MPLS without IP"] += 1
        return None
    if kind in _IP:
        return content[begin:]
    # Smaller values are lengths (IEEE 802.3, 3.2.6).
    if kind >= 0x600:
        unread.kinds[f"EtherType 0x{kind:04x}{_NAMES.get(kind, '')}"] += 1
    return None
