"""`paceline call-log` of a capture whose RTP goes in other things: PPPoE, MPLS, IP in IP, GRE, and by TURN servers."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline
from paceline.calls import captures
from paceline.emulator.fitting.frames import Unread
from paceline.emulator.fitting.packets import MAX_NESTING, datagrams
from paceline.errors import PacelineError

ENDS = (("10.0.0.1", 5004), ("10.0.0.2", 5004))


def pcap(link: int, *packets: bytes) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    times = ((1 + i // 1000, i % 1000 * 1000) for i in range(len(packets)))
    return head + b"".join(
        struct.pack("<IIII", *time, len(one), len(one)) + one
        for time, one in zip(times, packets, strict=True)
    )


def rtp(number: int, size: int = 4) -> bytes:
    return struct.pack(">BBHII", 0x80, 96, number, number * 900, 7) + bytes(size)


def ip(payload: bytes, protocol: int, *, number: int = 0, place: int = 0, more: bool = False) -> bytes:
    head = (0x45, 0, 20 + len(payload), number, more << 13 | place // 8, 64, protocol, 0)
    return struct.pack(">BBHHHBBH4s4s", *head, *(ip_address(host).packed for host, _ in ENDS)) + payload


def ip6(payload: bytes, protocol: int) -> bytes:
    return struct.pack(">IHBB16s16s", 6 << 28, len(payload), protocol, 64, b"1" * 16, b"2" * 16) + payload


def udp(payload: bytes, *, back: bool = False) -> bytes:
    ports = [port for _, port in ENDS]
    made = struct.pack(">HHHH", *ports, 8 + len(payload), 0) + payload
    one = bytearray(ip(made, 17))
    if back:
        one[12:20] = one[16:20] + one[12:16]
    return bytes(one)


def ethernet(kind: int, content: bytes) -> bytes:
    return bytes(12) + struct.pack(">H", kind) + content


def pppoe(content: bytes, protocol: int = 0x21) -> bytes:
    return struct.pack(">BBHHH", 0x11, 0, 9, 2 + len(content), protocol) + content


def labels(*last: bool) -> bytes:
    return b"".join(struct.pack(">I", 1000 << 12 | one << 8 | 64) for one in last)


def gre(kind: int, content: bytes, flags: int = 0) -> bytes:
    options = bin(flags & 0xB000).count("1")
    return struct.pack(">HH", flags, kind) + b"\xff" * 4 * options + content


@pytest.mark.parametrize(
    ("link", "within"),
    [
        (1, lambda p: ethernet(0x8864, pppoe(p))),
        (1, lambda p: ethernet(0x8864, pppoe(p) + bytes(18))),  # what fills a frame up
        (1, lambda p: ethernet(0x8100, b"\0\x07\x88\x64" + pppoe(p))),
        (1, lambda p: ethernet(0x8864, pppoe(ip6(p, 4), 0x57))),
        (1, lambda p: ethernet(0x8847, labels(True) + p)),
        (1, lambda p: ethernet(0x8100, b"\0\x07\x88\x48" + labels(False, False, True) + p)),
        (101, lambda p: ip(p, 4)),
        (101, lambda p: ip6(p, 4)),
        (101, lambda p: ip(ip6(p, 4), 41)),
        (101, lambda p: ip(gre(0x0800, p), 47)),
        (101, lambda p: ip(gre(0x0800, p, 0xB000), 47)),
        (101, lambda p: ip(gre(0x8847, labels(True) + p, 0x2000), 47)),
        (101, lambda p: ip6(gre(0x6558, ethernet(0x0800, p)), 47)),
        (113, lambda p: bytes(14) + b"\x08\x00" + ip(gre(0x0800, ip(p, 4)), 47)),
    ],
)
def test_what_goes_in_another_packet_is_read(
    link: int, within: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "call.pcap"
    path.write_bytes(pcap(link, *(within(udp(rtp(i))) for i in range(20) if i != 5)))
    (flow,) = paceline.call_log(path).flows.to_dicts()
    assert (flow["packets_delivered"], flow["packets_lost"], flow["bytes_delivered"]) == (19, 1, 76)
    assert (flow["from"], flow["to"]) == tuple(f"{host}:{port}" for host, port in ENDS)


def test_fragments_of_the_outer_and_of_the_inner_packet() -> None:
    inner = udp(rtp(1, 2000))[20:]
    parts = [ip(inner[at : at + 1200], 17, number=1, place=at, more=at == 0) for at in (0, 1200)]
    outer = [ip(part, 4) for part in parts]
    outer += [
        ip(outer[1][20 + at : 20 + at + 400], 4, number=2, place=at, more=at < 800) for at in (0, 400, 800)
    ]
    unread = Unread()
    found = list(datagrams(io.BytesIO(pcap(101, outer[0], *outer[2:])), unread))
    assert [(one.size, len(one.kept), unread.lacking) for one in found] == [(2012, 2012, 0)]


def test_what_is_in_them_and_not_read_is_said(tmp_path: Path) -> None:
    path, call = tmp_path / "call.pcap", udp(rtp(1))
    deep = call
    for _ in range(MAX_NESTING):
        deep = ip(deep, 4)
    frames = [
        ethernet(0x8864, pppoe(call, 0xC021)),
        ethernet(0x8847, labels(True) + bytes(40)),
        ethernet(0x8847, labels(False)),
        ethernet(0x0800, ip(gre(0x880B, call, 0x3001), 47)),
        ethernet(0x0800, ip(gre(0x88CC, call), 47)),
        ethernet(0x0800, ip(b"\0\0", 47)),
        *[ethernet(0x0800, deep)] * 20,
    ]
    path.write_bytes(pcap(1, *frames))
    with pytest.raises(PacelineError, match="no stream of RTP") as caught:
        paceline.call_log(path)
    for said in (
        "20 of IP packets more than 8 deep",
        "2 of MPLS without IP",
        "1 of PPPoE with PPP's protocol 0xc021",
        "1 of GRE with flags 0x3001",
    ):
        assert said in str(caught.value)


COOKIE = 0x2112A442


def stun(kind: int, *attributes: tuple[int, bytes], cookie: int = COOKIE) -> bytes:
    padded = [struct.pack(">HH", n, len(v)) + v + bytes(-len(v) % 4) for n, v in attributes]
    body = b"".join(padded)
    return struct.pack(">HHI12s", kind, len(body), cookie, bytes([len(body) % 256]) * 12) + body


def peer(message: bytes, host: str, port: int = 4000) -> bytes:
    """As XOR-PEER-ADDRESS of a message has it (RFC 8489 section 14.2)."""
    packed = ip_address(host).packed
    mask = message[4:8] + message[8:20]
    family = 1 if len(packed) == 4 else 2
    value = bytes(a ^ b for a, b in zip(packed, mask, strict=False))
    return struct.pack(">BBH", 0, family, port ^ COOKIE >> 16) + value


def said_of(kind: int, host: str, *others: tuple[int, bytes], port: int = 4000) -> bytes:
    empty = peer(bytes(20), host)
    message = stun(kind, (0x12, empty), *others)
    return stun(kind, (0x12, peer(message, host, port)), *others)


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::7"])
def test_indications_of_a_turn_server_are_read_as_its_channels(host: str) -> None:
    """A stream is one that begins in indications and goes on over the channel that was bound to its peer."""

    def indication(i: int, kind: int = 0x16) -> bytes:
        return said_of(kind, host, (0x8022, b"soft"), (0x13, rtp(i, i % 4)))

    bind = said_of(0x0009, host, (0x0C, b"\x40\x01\0\0"))
    channel = [struct.pack(">HH", 0x4001, 12 + i % 4) + rtp(i, i % 4) for i in range(20, 40)]
    other = [said_of(0x16, host, (0x13, rtp(i, 1)), port=4001) for i in range(10)]
    there = [*map(indication, range(20)), bind, *channel, *other]
    back = [udp(indication(i, 0x17), back=True) for i in range(12)]
    capture = captures.calls(io.BytesIO(pcap(101, *map(udp, there), *back)))
    counts = [len(stream.packets) for stream in capture.streams]
    assert counts == [40, 10, 12], "to one peer, to another, and from one"
    assert [packet.size for packet in capture.streams[0].packets] == [i % 4 for i in range(40)]
    assert [packet.number for packet in capture.streams[0].packets] == list(range(40))


def test_what_is_no_indication_is_none() -> None:
    data = (0x13, rtp(1))
    none = [
        stun(0x16, data),  # of no peer
        said_of(0x16, "192.0.2.7"),  # of no data
        said_of(0x01, "192.0.2.7", data),
        said_of(0x16, "192.0.2.7", data)[:-30],
        stun(0x16, (0x12, b"\0\1"), data),
        stun(0x16, (0x12, bytes(8)), data),
        said_of(0x16, "192.0.2.7", data).replace(b"\x21\x12\xa4\x42", b"\x21\x12\xa4\x43", 1),
    ]
    capture = captures.calls(io.BytesIO(pcap(101, *(udp(one) for one in none for _ in range(20)))))
    assert (capture.streams, capture.controls) == ([], [])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 3), st.binary(max_size=80), st.integers(0, 120))
def test_whatever_is_in_a_tunnel_is_read_or_passed_over(kind: int, noise: bytes, cut: int) -> None:
    whole = ethernet(0x8864, pppoe(ip(gre(0x8847, labels(False, True) + udp(rtp(1)), 0xB000), 47)))
    frame = (
        whole[:cut],
        whole[:cut] + noise,
        ethernet((0x8864, 0x8847, 0x0800)[cut % 3], noise),
        ethernet(0x0800, udp(said_of(0x16, "192.0.2.7", (0x13, rtp(1)))[:cut] + noise)),
    )[kind]
    captures.calls(io.BytesIO(pcap(1, frame)))
