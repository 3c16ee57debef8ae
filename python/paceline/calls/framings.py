"""How RTP and RTCP lie in the bytes of a TCP connection: with a length before each packet (RFC 4571; ICE, RFC 6544),
between RTSP's messages (RFC 2326 section 10.12, RFC 7826 section 14), and from and to a TURN server (RFC 8656)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

NONE, MORE, WEAK, PROOF = -1, -2, -3, -4
"""What `content` says of bytes without an SSRC: nothing that such connections carry; too few bytes to say; perhaps; for
certain."""
_COOKIE = b"\x21\x12\xa4\x42"
"""STUN's magic cookie (RFC 8489 section 5)."""
_DTLS = (b"\xfe\xff", b"\xfe\xfd")
_TEXT = re.compile(
    rb"(?:RTSP/|(?:ANNOUNCE|DESCRIBE|GET_PARAMETER|OPTIONS|PAUSE|PLAY|PLAY_NOTIFY|RECORD|REDIRECT|SETUP|SET_PARAMETER"
    rb"|TEARDOWN) [!-~]+ RTSP/)[12]\.0[ \r]"
)
"""The beginning of RTSP's messages."""
_LENGTH = re.compile(rb"\r\ncontent-length[ \t]*:[ \t]*(\d{1,6})[ \t]*\r\n", re.IGNORECASE)
_LONGEST_HEAD = 8192
"""The limit on the head of an RTSP message."""


class Frame(NamedTuple):
    """A packet in a connection's bytes, whose end may not be known yet."""

    head: int
    """Bytes before the packet."""
    size: int
    """The packet's size; zero for what is none."""
    total: int
    """Bytes up to the next frame."""
    inner: int = 0
    """Bytes before the part of the packet that `content` knows."""


Framing = Callable[[bytearray, int], Frame | None]
"""Finds the frame that begins at an offset; None if none can. A `total` of zero means that more bytes are needed."""
_PENDING = Frame(0, 0, 0)
_FIRST = frozenset([*range(4), 16, *range(20, 27), *range(128, 192)])
"""The first bytes of STUN, ZRTP, DTLS, RTP and RTCP (RFC 7983)."""


def rfc4571(kept: bytearray, at: int) -> Frame | None:
    """A length of two bytes before each packet; packets may be empty (RFC 4571 section 2)."""
    if len(kept) < at + 2:
        return _PENDING
    size = kept[at] << 8 | kept[at + 1]
    if size and len(kept) > at + 2 and kept[at + 2] not in _FIRST:
        return None
    return Frame(2, size, 2 + size)


def turn(kept: bytearray, at: int) -> Frame | None:
    """STUN's messages, and ChannelData padded to four bytes (RFC 8656 section 12.5)."""
    if len(kept) < at + 4:
        return _PENDING
    first, size = kept[at], kept[at + 2] << 8 | kept[at + 3]
    if first < 4:
        return None if size % 4 else Frame(0, 20 + size, 20 + size)
    if 0x40 <= first <= 0x4F:
        return Frame(0, 4 + size, 4 + (size + 3) // 4 * 4, 4)
    return None


def rtsp(kept: bytearray, at: int) -> Frame | None:
    """A dollar sign, a channel and a length before each packet, and text between them."""
    if len(kept) < at + 4:
        return _PENDING
    if kept[at] == 0x24:
        size = kept[at + 2] << 8 | kept[at + 3]
        return Frame(4, size, 4 + size)
    if not 0x41 <= kept[at] <= 0x54:  # the first letters of its methods
        return None
    line = bytes(kept[at : at + _LONGEST_HEAD])
    if _TEXT.match(line) is None:
        # a longer one may still match
        return _PENDING if len(line) < 64 and b"\n" not in line and line.isascii() else None
    end = line.find(b"\r\n\r\n")
    if end < 0:
        return _PENDING if len(line) < _LONGEST_HEAD else None
    length = _LENGTH.search(line, 0, end + 2)
    total = end + 4 + (int(length[1]) if length else 0)
    return Frame(total, 0, total)


FRAMINGS: tuple[Framing, ...] = (rfc4571, turn, rtsp)


def content(kept: bytearray, at: int, frame: Frame) -> int:
    """The SSRC of the RTP packet in the frame at an offset, if it is one, or one of `NONE`, `MORE`, `WEAK` and `PROOF`
    (RFC 7983: they differ in the first byte)."""
    if frame.size == 0:
        return PROOF if frame.head > 4 else WEAK
    at, size = at + frame.head + frame.inner, frame.size - frame.inner
    if size < 8:
        return NONE if size else WEAK
    if len(kept) < at + min(size, 12):
        return MORE
    first, length = kept[at], kept[at + 2] << 8 | kept[at + 3]
    if first >> 6 == 2:
        if 192 <= kept[at + 1] <= 223:  # RTCP
            return WEAK if 4 + 4 * length <= size else NONE
        return int.from_bytes(kept[at + 8 : at + 12], "big") if size >= 12 + 4 * (first & 15) else NONE
    is_stun = first < 4 and size == 20 + length and kept[at + 4 : at + 8] == _COOKIE
    is_dtls = 20 <= first <= 26 and kept[at + 1 : at + 3] in _DTLS
    return PROOF if is_stun or is_dtls or kept[at + 4 : at + 8] == b"ZRTP" else NONE
