"""`paceline call-log` of a capture: its RTP at each interface, held against the run that was captured."""

from __future__ import annotations

import io
import itertools
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import paceline
from paceline.calls import captures
from paceline.calls.streams import measures
from paceline.cli import app
from paceline.emulator.fitting import frames, packets
from paceline.emulator.fitting.frames import Unread
from paceline.emulator.fitting.packets import datagrams
from paceline.errors import PacelineError

CALL = """
duration = "20 s"
[link.bottleneck]
rate = "1 Mbit/s"
delay = "30 ms"
queue = { kind = "droptail", limit = "60 ms" }
loss = { kind = "uniform", rate = "1 %" }
[flow.call]
cc = "gcc"
stop = "18 s"
rtp = { bandwidth = "1.5 Mbit/s" }
app = { kind = "encoder", min_rate = "150 kbit/s", max_rate = "1.5 Mbit/s" }
delays = true
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    path = tmp_path_factory.mktemp("capture") / "call.pcapng"
    run = paceline.run(paceline.parse(CALL), seed=3, pcap=path)
    return path, run.flows.to_dicts()[0]


def reports(path: Path) -> tuple[int, int]:
    """The sender's own reports (RTCP) that left and arrived, which a run counts with its packets."""
    with path.open("rb") as file:
        told = [d for d in datagrams(file, Unread()) if d.source[1] % 2 and d.kept[1] == 200]
    return tuple(sum(d.interface == at for d in told) for at in sorted({d.interface for d in told}))  # type: ignore[return-value]


def test_both_ends_of_a_captured_call_tell_losses_and_delays(capture: tuple[Path, dict[str, object]]) -> None:
    path, of_run = capture
    sent, received = paceline.call_log(path).flows.to_dicts()
    assert sent["flow"] == received["flow"]
    left, arrived = reports(path)
    assert 3 <= arrived <= left <= 8
    assert sent["packets_delivered"] + left == of_run["packets_sent"]
    assert sent["packets_lost"] == 0
    # the flow stops before the run does, so that nothing is under way at its end
    assert received["packets_delivered"] + arrived == of_run["packets_delivered"]
    assert received["packets_lost"] + left - arrived == of_run["packets_lost"]
    assert received["packets_lost"] > 5
    # the run's delay begins with the frame's capture, the capture's when a packet leaves: the pacer lies between
    assert 0.9 * of_run["owd_mean_s"] < received["owd_mean_s"] < of_run["owd_mean_s"]  # type: ignore[operator]
    # fillers, of a type of their own, are no media
    fillers = sum(
        packet.size for packet in captures.read(path).streams[1].packets if packet.payload_type == 97
    )
    assert received["bytes_delivered"] - fillers == of_run["bytes_delivered"]


def test_logs_are_those_of_rfc_8868(capture: tuple[Path, dict[str, object]], tmp_path: Path) -> None:
    path, _ = capture
    words = ["call-log", str(path), "--rtp-logs", str(tmp_path / "logs"), "--json"]
    assert CliRunner().invoke(app, words, catch_exceptions=False).exit_code == 0
    first, second = sorted((tmp_path / "logs").iterdir())
    sent, received = ([line.split(" ") for line in log.read_text().splitlines()] for log in (first, second))
    counts = paceline.call_log(path).flows["packets_delivered"].to_list()
    assert [len(sent), len(received)] == counts
    ssrc = first.name.split("-")[0]
    for time, payload_type, name, number, timestamp, marker, size in sent:
        assert (payload_type in ("96", "97"), int(name, 16), marker in "01") == (True, int(ssrc, 16), True)
        assert 0 <= float(time) < 20
        assert (int(number) < 1 << 16, int(timestamp) < 1 << 32, 0 < int(size) <= 1472) == (True, True, True)
    numbers = [int(line[3]) for line in sent]
    assert all((b - a) % 65536 == 1 for a, b in itertools.pairwise(numbers))
    assert {tuple(line[3:5]) for line in received} <= {tuple(line[3:5]) for line in sent}


def test_what_is_cut_short_is_read_as_far_as_it_goes(
    capture: tuple[Path, dict[str, object]], tmp_path: Path
) -> None:
    path, _ = capture
    whole, cut = paceline.call_log(path).flows, tmp_path / "cut.pcapng"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    results = paceline.call_log(cut)
    half = results.flows
    assert results.notices["kind"].to_list() == ["log-cut"]
    assert 0.3 < half["packets_delivered"][0] / whole["packets_delivered"][0] < 0.7
    cut.write_bytes(path.read_bytes()[:700])
    with pytest.raises(PacelineError, match=r"cut\.pcapng: it has no stream of RTP"):
        paceline.call_log(cut)


def test_a_dump_has_no_packets_to_log(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text("{}")
    with pytest.raises(PacelineError, match="neither a capture nor"):
        paceline.call_log(tmp_path / "dump.txt", rtp_logs=tmp_path / "logs")


HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
"""Of a capture of raw IP."""


def frame(payload: bytes, us: int = 0, *, back: bool = False) -> bytes:
    """A datagram from 10.0.0.1 to 10.0.0.2, or back, so long after the capture's first second."""
    ends = (b"\x0a\0\0\1", b"\x0a\0\0\2")
    udp = struct.pack(">HHHH", 5004, 5004, 8 + len(payload), 0) + payload
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, *(ends[::-1] if back else ends)
    )
    return struct.pack("<IIII", 1, us, len(ip + udp), len(ip + udp)) + ip + udp


def _pcap(*payloads: bytes) -> io.BytesIO:
    return io.BytesIO(HEAD + b"".join(map(frame, payloads)))


def _rtp(number: int, *, first: int = 0x80, more: bytes = b"", payload: bytes = b"1234") -> bytes:
    return struct.pack(">BBHII", first, 96, number % 65536, 0, 7) + more + payload


def test_headers_are_no_payload_and_numbers_go_round() -> None:
    extension = struct.pack(">HHI", 0xBEDE, 1, 0)
    plain = [_rtp(65530 + i) for i in range(10)]
    rich = _rtp(65540, first=0x80 | 0x20 | 0x10 | 2, more=b"c" * 8 + extension, payload=b"12345\0\0\3")
    capture = captures.calls(_pcap(*plain, rich, b"\x80\xc8" + bytes(26), b"not RTP at all"))
    (stream,) = capture.streams
    assert len(capture.controls) == 1
    assert [packet.size for packet in stream.packets] == [4] * 10 + [5]
    assert stream.numbers() == list(range(65530, 65541))


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(0, 400))
def test_garbage_is_passed_over(payloads: list[bytes], cut: int) -> None:
    text = _pcap(*payloads, *(_rtp(i, more=payload) for i, payload in enumerate(payloads))).getvalue()
    capture = captures.calls(io.BytesIO(text[:24] + text[24:][: len(text) - cut]))
    for stream in capture.streams:
        assert len(stream.packets) >= captures.MIN_PACKETS
        measures(stream)


def _ng(*frames: tuple[int, bytes]) -> io.BytesIO:
    """A pcapng of two interfaces of raw IP, of frames as pcap has them, each with its interface."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = struct.pack("<I", 12 + len(body))
        return struct.pack("<I", kind) + length + body + length

    found = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    found += 2 * block(1, struct.pack("<HHI", 101, 0, 0))
    for interface, whole in frames:
        _, us, kept, length = struct.unpack("<IIII", whole[:16])
        found += block(6, struct.pack("<IIIII", interface, 0, us, kept, length) + whole[16:])
    return io.BytesIO(found)


def _losses(file: io.BytesIO) -> list[int]:
    """What is lost of each stream of a capture."""
    capture = captures.calls(file)
    pairs = zip(capture.streams, capture.before(), strict=True)
    return [
        measures(stream, None if before is None else capture.streams[before])["packets_lost"]
        for stream, before in pairs
    ]


def test_an_ssrc_is_no_stream() -> None:
    """The same SSRC in the other direction, by another path or with other packets is another stream."""
    there = [frame(_rtp(100 + i), i * 1000) for i in range(20)]
    back = [frame(_rtp(100 + i), i * 1000 + 5, back=True) for i in range(20)]
    assert _losses(io.BytesIO(HEAD + b"".join(there + back))) == [0, 0]
    assert _losses(_ng(*((0, one) for one in there), *((1, one) for one in back))) == [0, 0]
    later = [frame(_rtp(9000 + i), 900_000 + i * 1000) for i in range(20)]
    assert _losses(_ng(*((0, one) for one in there), *((1, one) for one in later))) == [0, 0]
    # the same packets at another interface are the same stream, behind another address as well
    short = [one for i, one in enumerate(there) if i % 4]
    assert _losses(_ng(*((0, one) for one in there), *((1, one) for one in short))) == [0, 5]
    elsewhere = [one.replace(b"\x0a\0\0\1", b"\x0a\0\0\7") for one in short]
    assert _losses(_ng(*((0, one) for one in there), *((1, one) for one in elsewhere))) == [0, 5]


def test_what_a_turn_server_relays_is_read() -> None:
    """Each channel is a path of its own; what is no whole message of a channel is none (RFC 8656 section 12.4)."""

    def relayed(channel: int, i: int, *, pad: bytes = b"", less: int = 0) -> bytes:
        inner = _rtp(i)
        return struct.pack(">HH", channel, len(inner) - less) + inner + pad

    frames = [relayed(0x4000 + i % 2, i // 2, pad=bytes(i % 4)) for i in range(40)]
    capture = captures.calls(_pcap(*frames, relayed(0x4000, 99, less=9), relayed(0x4000, 99, pad=bytes(4))))
    assert [len(stream.packets) for stream in capture.streams] == [20, 20]
    assert {packet.size for stream in capture.streams for packet in stream.packets} == {4}
    assert capture.before() == [None, None]


def test_what_is_encrypted_is_said(tmp_path: Path) -> None:
    hello = b"\x16\xfe\xfd" + bytes(60)
    initial = b"\xc3\0\0\0\1\x08" + bytes(60)
    path = tmp_path / "call.pcap"
    path.write_bytes(_pcap(hello, initial, *[_rtp(i) for i in range(20)]).getvalue())
    kinds = {notice["kind"]: notice["cases"] for notice in paceline.call_log(path).summaries[0]["notices"]}
    assert kinds == {"srtp": 1, "quic-unread": 1}
    path.write_bytes(_pcap(hello, initial, initial).getvalue())
    with pytest.raises(
        PacelineError, match=r"no stream of RTP .*; datagrams that are encrypted: 1 DTLS, 2 QUIC"
    ):
        paceline.call_log(path)


def test_a_capture_of_a_week_is_read(tmp_path: Path) -> None:
    """But not what its sender heard, and none whose times are years apart."""

    def lasting(days: int) -> Path:
        path = tmp_path / f"{days}.pcap"
        frames = [frame(_rtp(i), i * 1000) for i in range(20)]
        frames[10:] = [struct.pack("<I", 1 + days * 86_400) + one[4:] for one in frames[10:]]
        report = struct.pack(">BBHII", 0x81, 201, 7, 9, 7) + bytes(20)
        path.write_bytes(HEAD + b"".join(frames) + frame(report, back=True))
        return path

    results = paceline.call_log(lasting(8))
    assert results.flows["packets_lost"].to_list() == [0]
    assert [notice["kind"] for notice in results.summaries[0]["notices"]] == ["feedback-unread"]
    with pytest.raises(
        PacelineError, match=r"8\.pcap: its times lie more than a week apart: it cannot be replayed"
    ):
        paceline.call_log(tmp_path / "8.pcap", replay=["gcc"])
    with pytest.raises(PacelineError, match=r"span 20000 days, and the limit is 30: use a part"):
        paceline.call_log(lasting(20_000))


def _record(packet: bytes, us: int = 0, keep: int = 65535) -> bytes:
    """An IP packet as pcap has it."""
    return struct.pack("<IIII", 1, us, min(keep, len(packet)), len(packet)) + packet[:keep]


def _notices(path: Path, content: bytes) -> dict[str, int | None]:
    """Kinds and cases of the notices of a capture."""
    path.write_bytes(content)
    return dict(paceline.call_log(path).notices.select("kind", "cases").iter_rows())


def _udp(payload: bytes) -> bytes:
    return struct.pack(">HHHH", 5004, 5004, 8 + len(payload), 0) + payload


def _ipv4(contents: bytes, number: int, place: int = 0, *, more: bool = False) -> bytes:
    """A fragment; only the first of them has options."""
    options = b"" if place else b"\1\1\1\0"
    head = (0x40 | 5 + len(options) // 4, 0, 20 + len(options + contents), number, more << 13 | place // 8)
    return struct.pack(">BBHHHBBH4s4s", *head, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2") + options + contents


def _ipv6(contents: bytes, protocol: int = 17) -> bytes:
    return struct.pack(">IHBB16s16s", 6 << 28, len(contents), protocol, 64, b"1" * 16, b"2" * 16) + contents


def _in_ipv6(contents: bytes, number: int, place: int, *, more: bool) -> bytes:
    """A fragment of what begins with an extension header."""
    return _ipv6(struct.pack(">BBHI", 60, 0, place | more, number) + contents, 44)


def _parts(number: int, version: int) -> list[bytes]:
    """A packet of RTP with 3000 bytes of payload in three fragments."""
    udp = _udp(_rtp(number, payload=bytes(3000)))
    if version == 4:
        return [_ipv4(udp[at : at + 1200], number, at, more=at < 2400) for at in (0, 1200, 2400)]
    udp = bytes((17, 0)) + bytes(6) + udp
    return [_in_ipv6(udp[at : at + 1200], number, at, more=at < 2400) for at in (0, 1200, 2400)]


HEADS = {4: 20 + 4 + 8, 6: 40 + 8 + 8 + 8}
"""Bytes of headers before the payload of the datagram of `_parts`."""


@pytest.mark.parametrize("version", [4, 6])
def test_fragments_are_put_together(version: int, tmp_path: Path) -> None:
    """In any order, as far as the capture has kept them; what lacks some is lost, and a notice says so."""
    path = tmp_path / "call.pcap"
    packets = [_parts(number, version) for number in range(20)]
    packets[3].reverse()
    packets[4], packets[5] = [], [one for pair in zip(packets[4], packets[5], strict=True) for one in pair]
    packets[6].insert(1, packets[6][0])  # twice
    times = [
        (part, number * 1000 + at) for number, parts in enumerate(packets) for at, part in enumerate(parts)
    ]
    whole = HEAD + b"".join(_record(part, us) for part, us in times)
    assert _notices(path, whole) == {}
    (row,) = paceline.call_log(path).flows.to_dicts()
    assert (row["packets_delivered"], row["packets_lost"], row["bytes_delivered"]) == (20, 0, 60_000)
    (stream,) = captures.read(path).streams
    assert stream.packets[0].time == 1_000_002_000
    short = HEAD + b"".join(_record(part, us, keep=100) for part, us in times)
    assert _notices(path, short) == {}
    assert paceline.call_log(path).flows["bytes_delivered"].to_list() == [60_000]
    assert {len(datagram.kept) for datagram in datagrams(io.BytesIO(short), Unread())} == {
        100 - HEADS[version]
    }
    lost = HEAD + b"".join(_record(part, us) for part, us in times if us not in (8001, 12000))
    assert _notices(path, lost) == {"fragments-lacking": 2}
    assert paceline.call_log(path).flows["packets_lost"].to_list() == [2]


def test_fragments_are_not_waited_for_without_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*records: bytes) -> tuple[int, int]:
        unread = Unread()
        return sum(1 for _ in datagrams(io.BytesIO(HEAD + b"".join(records)), unread)), unread.lacking

    first, *rest = _parts(1, 4)
    assert found(_record(first), *(_record(one, 29_000_000) for one in rest)) == (1, 0)
    # the number may be another packet's by then
    assert found(_record(first), *(_record(one, 31_000_000) for one in rest)) == (0, 2)
    # those that overlap, and leave a hole of that size, are of no packet
    overlap = _ipv4(bytes(64), 1, 600, more=True), _ipv4(bytes(64), 1, 1264)
    assert found(_record(first), *map(_record, overlap)) == (0, 1)
    monkeypatch.setattr(packets, "MAX_PARTIAL", 2)
    others = [_record(_parts(number, 4)[0]) for number in (2, 3)]
    assert found(_record(first), others[0], *map(_record, rest)) == (1, 1)
    assert found(_record(first), *others, *map(_record, rest)) == (0, 4)


def test_headers_of_ipv6_are_followed() -> None:
    options, routing = bytes((43, 1)) + bytes(14), bytes((44, 0)) + bytes(6)
    whole = bytes((60, 0)) + bytes(6)  # a fragment that is all of its packet
    behind = options + routing + whole + bytes((17, 0)) + bytes(6)
    frames = [_record(_ipv6(behind + _udp(_rtp(i)), 0) if i % 2 else _ipv6(_udp(_rtp(i)))) for i in range(20)]
    (stream,) = captures.calls(io.BytesIO(HEAD + b"".join(frames))).streams
    assert [packet.size for packet in stream.packets] == [4] * 20
    # one that is cut off in its headers is none
    frames = [_record(_ipv6(behind + _udp(_rtp(i)), 0), keep=40 + i) for i in range(48)]
    assert captures.calls(io.BytesIO(HEAD + b"".join(frames))).streams == []


def test_encrypted_padding_is_payload(tmp_path: Path) -> None:
    """Its last byte may be any number: no packet is dropped for it."""
    hello = frame(b"\x16\xfe\xfd" + bytes(60), back=True)
    path = tmp_path / "call.pcap"

    def sizes(*last: int, before: bytes = b"") -> tuple[set[int], dict[str, int | None]]:
        packets = [_rtp(i, first=0xA0, payload=b"12345" + bytes([one])) for i, one in enumerate(last)]
        kinds = _notices(path, HEAD + before + b"".join(map(frame, packets)))
        (stream,) = captures.read(path).streams
        assert len(stream.packets) == len(last)
        return {packet.size for packet in stream.packets}, kinds

    assert sizes(*[2] * 10) == ({4}, {})
    assert sizes(*[2] * 10, before=hello) == ({6}, {"srtp": 1, "padding-unread": 10})
    for impossible in (0, 7, 255):
        assert sizes(*[2] * 9, impossible) == ({6}, {"padding-unread": 10})
    # the last byte of the last one is cut off
    padded = HEAD + b"".join(frame(_rtp(i, first=0xA0, payload=b"1234\0\2")) for i in range(10))
    assert _notices(path, padded[:-1]) == {"log-cut": None, "padding-unread": 1}
    assert [packet.size for packet in captures.read(path).streams[0].packets] == [4] * 9 + [6]


def test_encapsulations_that_are_not_read_are_said(tmp_path: Path) -> None:
    path = tmp_path / "call.pcap"

    def refusal(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(PacelineError) as caught:
            paceline.call_log(path)
        return str(caught.value)

    ethernet = HEAD[:-4] + struct.pack("<I", 1)
    macsec = bytes(12) + b"\x88\xe5" + bytes(8) + frame(_rtp(1))[16:]
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    frames = [_record(macsec)] * 20 + [_record(arp)]
    text = refusal(ethernet + b"".join(frames))
    assert text.endswith("not read are 20 of EtherType 0x88e5 (MACsec), 1 of EtherType 0x0806 (ARP)")
    esp = bytearray(frame(_rtp(1)))
    esp[16 + 9] = 50
    assert refusal(HEAD + bytes(esp) * 20).endswith("not read are 20 of IP protocol 50 (ESP)")


def test_blocks_without_times_are_refused(tmp_path: Path) -> None:
    packet = frame(_rtp(1))[16:]
    block = (
        struct.pack("<III", 3, 16 + len(packet), len(packet)) + packet + struct.pack("<I", 16 + len(packet))
    )
    path = tmp_path / "call.pcapng"
    path.write_bytes(_ng().getvalue() + block * 20)
    with pytest.raises(
        PacelineError, match=r"call\.pcapng: it has Simple Packet Blocks, which have no times"
    ):
        paceline.call_log(path)


def test_captures_with_too_many_packets_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = _pcap(*(_rtp(i) for i in range(20))).getvalue()
    monkeypatch.setattr(frames, "MAX_PACKETS", 20)
    assert _notices(tmp_path / "call.pcap", many) == {}
    monkeypatch.setattr(frames, "MAX_PACKETS", 19)
    assert _notices(tmp_path / "call.pcap", many) == {"packets-unread": None}
    assert paceline.call_log(tmp_path / "call.pcap").flows["packets_delivered"].to_list() == [19]


def test_a_record_that_is_cut_short_is_read_and_said(tmp_path: Path) -> None:
    records = [frame(_rtp(i, payload=bytes(100)), i * 1000) for i in range(20)]
    for content in (HEAD + b"".join(records), _ng(*((0, one) for one in records)).getvalue()):
        assert _notices(tmp_path / "call", content) == {}
        end = len(content) - content.rindex(records[-1][16:])
        # in a payload, in a head, in pcapng also in a block's kind
        for less, counts in ((60, 20), (end + 3, 19), (end + 26, 19)):
            assert _notices(tmp_path / "call", content[:-less]) == {"log-cut": None}
            assert paceline.call_log(tmp_path / "call").flows["packets_delivered"].to_list() == [counts]


def test_copies_count_once_and_files_need_no_order(tmp_path: Path) -> None:
    path = tmp_path / "call.pcap"
    there = [frame(_rtp(i), i * 100_000) for i in range(20)]

    def told(*records: bytes) -> tuple[object, ...]:
        path.write_bytes(HEAD + b"".join(records))
        results = paceline.call_log(path)
        (row,) = results.flows.to_dicts()
        names = ("goodput_bps", "bytes_delivered", "packets_delivered", "packets_lost")
        return *(row[name] for name in names), results.series("rate")["goodput_bps"].to_list()

    plain = told(*there)
    assert plain == (20 * 32 / 1.9, 80, 20, 0, [320.0, 320.0])
    assert told(*there[1:], there[0]) == plain
    assert told(*there[::-1]) == plain
    twice = told(*there, *there)
    assert twice == (*plain[:2], 40, *plain[3:])
