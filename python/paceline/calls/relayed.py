"""Packets through a TURN server (RFC 8656), as ChannelData or in Send and Data indications, on its client's side."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from paceline.emulator.fitting.packets import Datagram

_CHANNEL_BIND = 0x0009
_INDICATIONS = (0x0016, 0x0017)
"""Send and Data."""
_CHANNEL_NUMBER, _PEER, _DATA = 0x000C, 0x0012, 0x0013
_COOKIE = b"\x21\x12\xa4\x42"
"""The magic cookie of each STUN message (RFC 8489 section 5)."""
_PEERS = 1 << 16
"""Peers have numbers from here on, channels smaller ones of 16 bits."""
MAX_CHANNELS = 10_000
"""The limit on channels with a known peer."""


class Relays:
    """The TURN servers of a capture, and which channel leads to which peer, as far as it shows."""

    def __init__(self) -> None:
        self._bound: dict[tuple[frozenset[tuple[bytes, int]], int], int] = {}

    def carried(self, datagram: Datagram) -> tuple[int, Datagram]:
        """The peer of a datagram through a TURN server, as a number (or its channel, if the capture does not show the
        peer), and the carried datagram; for others zero and the datagram itself."""
        kept = datagram.kept
        if len(kept) >= 4 and 0x40 <= kept[0] <= 0x4F:
            channel, length = struct.unpack_from(">HH", kept)
            # over UDP it may be padded to four bytes (RFC 8656 section 12.4)
            if 0 <= datagram.size - 4 - length <= 3:
                peer = self._bound.get((_ends(datagram), channel), channel)
                return peer, datagram._replace(size=length, kept=kept[4 : 4 + length])
        elif len(kept) >= 20 and kept[0] == 0 and kept[4:8] == _COOKIE:
            kind = int.from_bytes(kept[:2], "big")
            found = {name: (size, value) for name, size, value in reversed([*_attributes(kept)])}
            peer = _peer(kept, found.get(_PEER, (0, b""))[1])
            if kind in _INDICATIONS and _DATA in found and peer is not None:
                size, value = found[_DATA]
                return peer, datagram._replace(size=size, kept=value)
            channel = int.from_bytes(found.get(_CHANNEL_NUMBER, (0, b""))[1][:2], "big")
            if kind == _CHANNEL_BIND and channel and peer is not None and len(self._bound) < MAX_CHANNELS:
                self._bound[_ends(datagram), channel] = peer
        return 0, datagram


def _ends(datagram: Datagram) -> frozenset[tuple[bytes, int]]:
    return frozenset((datagram.source, datagram.target))


def _attributes(kept: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The attributes of a STUN message: type, length, and the captured part of the value (RFC 8489 section 14)."""
    at, end = 20, 20 + int.from_bytes(kept[2:4], "big")
    while at + 4 <= min(end, len(kept)):
        name, size = struct.unpack_from(">HH", kept, at)
        if at + 4 + size > end:
            return
        yield name, size, kept[at + 4 : at + 4 + size]
        at += 4 + (size + 3) // 4 * 4


def _peer(kept: bytes, value: bytes) -> int | None:
    """A peer's address and port as one number; they are XORed with the message's cookie and transaction ID (RFC 8489
    section 14.2)."""
    if (value[1:2], len(value)) not in ((b"\1", 8), (b"\2", 20)):
        return None
    place = int.from_bytes(value[2:], "big")
    mask = int.from_bytes((_COOKIE[:2] + kept[4:20])[: len(value) - 2], "big")
    return _PEERS + (place ^ mask)
