"""`paceline call-log` of a capture whose RTP goes over TCP: RFC 4571, ICE's connections, RTSP, and TURN servers."""

from __future__ import annotations

import io
import itertools
import random
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paceline
from needs import require
from paceline.calls import captures, tcp_streams
from paceline.calls.captures import Capture
from paceline.calls.streams import Packet
from tshark import fields

HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
SYN, ACK = 2, 16
ISN = 0xFFFF_F000
"""The sequence numbers of every connection here begin anew soon."""
STUN = struct.pack(">HHI12s", 1, 0, 0x2112A442, b"transaction.")
DTLS = b"\x17\xfe\xfd" + bytes(8) + b"\0\4abcd"
PIECE = tuple[int, bytes]
"""An offset in the bytes of a connection, and the bytes there."""


def rtp(number: int, ssrc: int = 7, size: int = 50) -> bytes:
    payload = random.Random(number).randbytes(size)
    return struct.pack(">BBHII", 0x80, 96, number % 65536, number * 900, ssrc) + payload


def framed(*packets: bytes) -> bytes:
    return b"".join(struct.pack(">H", len(packet)) + packet for packet in packets)


def segment(
    piece: PIECE, us: int = 0, *, flags: int = ACK, back: bool = False, keep: int = 1 << 16, port: int = 5004
) -> bytes:
    """A record of a segment from 10.0.0.1 to 10.0.0.2, or back."""
    offset, data = piece
    ends = (b"\x0a\0\0\1", b"\x0a\0\0\2")
    tcp = struct.pack(">HHIIBBHHH", port, port, (ISN + 1 + offset) & 0xFFFFFFFF, 0, 5 << 4, flags, 99, 0, 0)
    tcp += data
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, *(ends[::-1] if back else ends))
    whole = ip + tcp
    head = struct.pack("<IIII", 1 + us // 1_000_000, us % 1_000_000, min(keep, len(whole)), len(whole))
    return head + whole[:keep]


OPEN = segment((-1, b""), flags=SYN)


def read(*records: bytes) -> Capture:
    return captures.calls(io.BytesIO(HEAD + b"".join(records)))


def packets(capture: Capture) -> list[Packet]:
    (stream,) = capture.streams
    return stream.packets


def cut(data: bytes, places: Iterable[int]) -> list[PIECE]:
    edges = sorted({0, len(data), *(place for place in places if place < len(data))})
    return [(a, data[a:b]) for a, b in itertools.pairwise(edges)]


def sent(pieces: Sequence[PIECE]) -> list[bytes]:
    """The records of these pieces, a millisecond apart."""
    return [segment(piece, 1000 * (1 + at)) for at, piece in enumerate(pieces)]


def test_a_call_over_tcp_is_read_as_over_udp(tmp_path: Path) -> None:
    """With STUN and DTLS between its packets, which ICE's connections have (RFC 6544), and empty ones."""
    data = framed(STUN, DTLS, b"", *(rtp(65530 + i) for i in range(20)))
    path = tmp_path / "call.pcap"
    path.write_bytes(HEAD + OPEN + b"".join(sent(cut(data, range(0, len(data), 64)))))
    results = paceline.call_log(path)
    (flow,) = results.flows.to_dicts()
    assert (flow["packets_delivered"], flow["packets_lost"], flow["bytes_delivered"]) == (20, 0, 1000)
    assert (flow["from"], flow["to"]) == ("10.0.0.1:5004", "10.0.0.2:5004")
    assert results.notices["kind"].to_list() == ["srtp"]


@settings(max_examples=150)
@given(st.randoms(use_true_random=False), st.integers(1, 400), st.booleans())
def test_segments_may_be_cut_repeated_and_in_any_order(
    draw: random.Random, length: int, from_start: bool
) -> None:
    """A packet arrives when its last byte, and all bytes before it, have."""
    numbers = range(40)
    packets_ = [rtp(number, 7 + number % 2, draw.randrange(300)) for number in numbers]
    data = framed(*packets_)
    pieces = cut(data, (draw.randrange(len(data)) for _ in range(len(data) // length)))
    # copies and others of the same bytes, cut elsewhere
    again = [(a, data[a : a + draw.randrange(1, 700)]) for a in (draw.randrange(len(data)) for _ in range(5))]
    order = sorted(range(len(pieces)), key=lambda at: at + draw.uniform(0, 6))
    mixed = [pieces[at] for at in order]
    for one in (*again, *draw.sample(pieces, min(5, len(pieces)))):
        mixed.insert(draw.randrange(len(mixed) + 1), one)
    if not from_start:
        mixed.insert(0, pieces[0])  # what precedes the first captured byte is no part of it
    capture = read(*([OPEN] if from_start else []), *sent(mixed))
    found = sorted(
        (packet for stream in capture.streams for packet in stream.packets), key=lambda p: p.number
    )
    assert [(packet.number, packet.size) for packet in found] == [
        (number, len(packets_[number]) - 12) for number in numbers
    ]
    assert capture.unread.holes == 0
    arrived: dict[int, int] = {}
    for at, (offset, piece) in enumerate(mixed):
        for byte in range(offset, offset + len(piece)):
            arrived.setdefault(byte, 1_001_000_000 + 1_000_000 * at)
    complete = list(itertools.accumulate((arrived[byte] for byte in range(len(data))), max))
    ends = itertools.accumulate(len(packet) + 2 for packet in packets_)
    assert [packet.time for packet in found] == [complete[end - 1] for end in ends]


def test_the_first_copy_counts_and_syn_may_come_twice() -> None:
    data = framed(*(rtp(i) for i in range(20)))
    pieces = cut(data, range(0, len(data), 64))
    keepalive = segment((63, b"\xff"), 500_000)
    capture = read(OPEN, OPEN, *sent(pieces), OPEN, keepalive, *sent([(64, b"\xff" * 64)]))
    assert [packet.number for packet in packets(capture)] == list(range(20))
    # another connection of the same ports
    after = segment((10_000_000, b""), flags=SYN)
    other = [
        segment((10_000_001 + offset, data), 1) for offset, data in cut(framed(*map(rtp, range(20, 40))), [])
    ]
    assert len(packets(read(OPEN, *sent(pieces), after, *other))) == 40


@pytest.mark.parametrize("from_start", [True, False])
@pytest.mark.parametrize("length", [64, 100, 1000])
def test_a_hole_costs_what_is_in_it(length: int, from_start: bool) -> None:
    """Packets of which the capture has no first bytes are lost; it goes on with the next that is whole."""
    data = framed(*(rtp(i) for i in range(200)))
    pieces = cut(data, range(0, len(data), length))
    for missing in (3, len(pieces) // 2):
        begins, ends = pieces[missing][0], pieces[missing][0] + len(pieces[missing][1])
        there = pieces[:missing] + pieces[missing + 1 :]
        capture = read(*([OPEN] if from_start else []), *sent(there))
        # each packet takes 64 bytes; one whose beginning is known is as long as its length says
        expected = [i for i in range(200) if not begins < 64 * i + 14 <= ends + 13]
        found = [packet.number for packet in packets(capture)]
        assert set(expected) - set(found) <= {ends // 64}, (missing, found)
        assert found == sorted(set(found) & set(range(200)))
        assert capture.unread.holes == 1
        assert {packet.size for packet in packets(capture)} == {50}


def test_a_hole_is_said(tmp_path: Path) -> None:
    path = tmp_path / "call.pcap"
    pieces = cut(framed(*(rtp(i) for i in range(40))), range(0, 64 * 40, 64))
    path.write_bytes(HEAD + OPEN + b"".join(sent(pieces[:9] + pieces[12:])))
    results = paceline.call_log(path)
    assert results.flows["packets_lost"].to_list() == [3]
    assert dict(results.notices.select("kind", "cases").iter_rows()) == {"tcp-holes": 1}


def test_segments_that_the_capture_cut_short_are_read() -> None:
    pieces = cut(framed(*(rtp(i, size=1000) for i in range(40))), range(0, 1014 * 40, 1014))
    for begin in ([OPEN], []):
        records = [segment(piece, at * 1000, keep=96) for at, piece in enumerate(pieces)]
        capture = read(*begin, *records)
        assert {packet.size for packet in packets(capture)} == {1000}
        # a first one, whose beginning nothing confirms, may be missing
        assert len(packets(capture)) >= 40 - (not begin)
    # two a segment: the second's beginning is not there
    pieces = cut(framed(*(rtp(i, size=1000) for i in range(40))), range(0, 1014 * 40, 2028))
    capture = read(OPEN, *(segment(piece, at * 1000, keep=96) for at, piece in enumerate(pieces)))
    assert [packet.number for packet in packets(capture)] == list(range(0, 40, 2))
    assert capture.unread.holes == 20


@pytest.mark.parametrize(
    ("wrong", "lost", "holes"),
    [
        (b"\xff\xff", 0, 1),
        (b"\0\1\x80", 0, 1),
        (b"\0\x0c" + bytes(12), 0, 1),
        (b"\0\0", 0, 0),  # a packet without bytes
        (b"\0\x50" + rtp(50), 1, 1),  # longer than it is
        (b"\xff\xff" + rtp(50), 50, 0),  # and longer than all that follows
    ],
)
def test_hostile_lengths_cost_no_more_than_they_cover(wrong: bytes, lost: int, holes: int) -> None:
    whole = [framed(rtp(i)) for i in range(100)]
    data = b"".join([*whole[:50], wrong, *whole[50 + (len(wrong) > 60) :]])
    capture = read(OPEN, *sent(cut(data, range(0, len(data), 500))))
    assert (100 - len(packets(capture)), capture.unread.holes) == (lost, holes)


def test_waiting_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = framed(*(rtp(i) for i in range(400)))
    pieces = cut(data, range(0, len(data), 64))
    late = pieces[:10] + pieces[11:] + [pieces[10]]
    assert len(packets(read(OPEN, *sent(late)))) == 400
    monkeypatch.setattr(tcp_streams, "MAX_WAITING", 10_000)
    assert len(packets(read(OPEN, *sent(late)))) == 399
    monkeypatch.undo()
    monkeypatch.setattr(tcp_streams, "MAX_HELD", 10_000)
    assert len(packets(read(OPEN, *sent(late)))) == 399
    monkeypatch.undo()
    monkeypatch.setattr(tcp_streams, "LONGEST_WAITING", 100_000_000)
    assert len(packets(read(OPEN, *sent(late)))) == 399
    monkeypatch.undo()
    monkeypatch.setattr(tcp_streams, "MAX_DIRECTIONS", 1)
    other = [segment(piece, port=6000) for piece in pieces]
    assert len(packets(read(OPEN, *sent(pieces), *other))) == 400


def test_other_connections_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "call.pcap"
    web = [(0, b"GET / HTTP/1.1\r\n\r\n"), (18, random.Random(1).randbytes(40_000))]
    tls = [(0, b"\x16\x03\1\2\0\1\0\1\xfc\3\3"), (11, bytes(900))]
    other = [segment(piece, port=port) for port, pieces in ((80, web), (443, tls)) for piece in pieces]
    opened = [segment((-1, b""), flags=SYN, port=port) for port in (80, 443)]
    for begin in (opened, []):
        path.write_bytes(HEAD + b"".join(begin + other))
        with pytest.raises(
            paceline.PacelineError, match=r"no stream of RTP .*; not read are 4 of TCP without RTP"
        ):
            paceline.call_log(path)
    # they are not searched for long
    monkeypatch.setattr(tcp_streams, "MAX_SEARCHED_IN_ALL", 100)
    late = [segment((900, framed(*(rtp(i) for i in range(20)))), port=443)]
    assert read(*other, *late).streams == []


def test_rtsp_has_packets_between_its_messages() -> None:
    texts = [
        b"PLAY rtsp://host/film RTSP/1.0\r\nCSeq: 4\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nCSeq: 4\r\nContent-Length: 5\r\n\r\n$\0\0\2a",
        b"GET_PARAMETER rtsp://host/ RTSP/2.0\r\ncontent-length:0\r\n\r\n",
    ]
    report = struct.pack(">BBHII", 0x81, 201, 7, 9, 7) + bytes(20)
    parts = [b"$\0" + framed(rtp(i)) for i in range(30)]
    parts[3:3], parts[17:17], parts[20:20] = [texts[1]], [texts[2]], [b"$\1" + framed(report)]
    data = texts[0] + b"".join(parts)
    for places in (range(0, len(data), 37), range(0, len(data), 1400)):
        capture = read(OPEN, *sent(cut(data, places)))
        assert [packet.number for packet in packets(capture)] == list(range(30))
        assert (len(capture.controls), capture.unread.holes) == (1, 0)
    # from the middle on
    capture = read(*sent(cut(data, range(0, len(data), 37)))[20:])
    assert [packet.number for packet in packets(capture)] == list(range(30))[-len(packets(capture)) :]
    assert len(packets(capture)) > 15


def test_a_turn_server_is_reached_over_tcp() -> None:
    bind = struct.pack(">HHI12s", 9, 0, 0x2112A442, b"transaction.")
    parts = [struct.pack(">HH", 0x4000, 12 + i) + rtp(i, size=i) + bytes(-i % 4) for i in range(30)]
    capture = read(OPEN, *sent(cut(bind + b"".join(parts), range(0, 1000, 41))))
    assert [(packet.number, packet.size) for packet in packets(capture)] == [(i, i) for i in range(30)]


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(-200, 3000), st.integers(-(1 << 31), 1 << 31)),
            st.one_of(
                st.binary(max_size=60),
                st.integers(0, 40).map(lambda number: framed(rtp(number))),
                st.sampled_from(
                    [framed(STUN), STUN, b"$\0", b"PLAY a RTSP/1.0\r\n\r\n", b"\x40\0\0\x10", b"\0\0"]
                ),
            ),
            st.sampled_from([ACK, ACK, ACK, SYN, 1, 4]),
            st.integers(0, 100_000_000),
            st.sampled_from([1 << 16, 60, 40]),
        ),
        max_size=60,
    )
)
def test_any_segments_are_passed_over(pieces: list[tuple[int, bytes, int, int, int]]) -> None:
    records = [segment((at, data), us, flags=flags, keep=keep) for at, data, flags, us, keep in pieces]
    capture = read(*records)
    assert capture.unread.holes >= 0
    for stream in capture.streams:
        assert len(stream.packets) >= captures.MIN_PACKETS


def test_tshark_reads_the_same(tmp_path: Path) -> None:
    """Segments cut anywhere, one twice, two exchanged."""
    require("tshark")
    data = framed(*(rtp(i, 7 + i % 3, 100 + 7 * i) for i in range(100)))
    pieces = cut(data, range(0, len(data), 333))
    pieces.insert(7, pieces[5])
    pieces[20], pieces[21] = pieces[21], pieces[20]
    path = tmp_path / "call.pcap"
    path.write_bytes(HEAD + OPEN + b"".join(sent(pieces)))
    # the segments have no checksums
    settings_ = ("tcp.reassemble_out_of_order:TRUE", "tcp.check_checksum:FALSE", "ip.check_checksum:FALSE")
    options = ("-d", "tcp.port==5004,rtp", *(word for one in settings_ for word in ("-o", one)))
    theirs = fields(path, "rtp", "rtp.ssrc", "rtp.seq", "rtp.timestamp", options=options)
    rows = [
        (int(ssrc, 16), int(number), int(timestamp))
        for line in theirs
        for ssrc, number, timestamp in zip(*(column.split(",") for column in line), strict=True)
    ]
    ours = [(p.ssrc, p.number, p.timestamp) for stream in captures.read(path).streams for p in stream.packets]
    assert sorted(rows) == sorted(ours)
    assert len(ours) == 100
