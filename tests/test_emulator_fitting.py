"""`paceline.fit`: path files from recordings of networks that are known."""

from __future__ import annotations

import json
import math
import re
import struct
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import paceline
from paceline import _core
from paceline.emulator.fitting.frames import Unread
from paceline.emulator.fitting.packets import Segment, segments
from paceline.errors import PacelineError

SETTINGS = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

SCENARIO = """
duration = "30 s"
[link.bottleneck]
{rate}
delay = "20 ms"
queue = {{ kind = "droptail", limit = "60 packets" }}
{loss}
[flow.film]
cc = "{cc}"
"""
PACKET_S = 1500 * 8 / 10e6
"""How long a packet of the sizes and rates here takes."""


def captured(
    folder: Path, at: str, *, rate: str = 'rate = "10 Mbit/s"', loss: str = "", cc: str = "newreno"
) -> Path:
    """A capture at one end of a simulated flow."""
    file, capture = folder / "scenario.toml", folder / f"{at}.pcapng"
    file.write_text(SCENARIO.format(rate=rate, loss=loss, cc=cc))
    command = [
        sys.executable,
        "-m",
        "paceline",
        "run",
        str(file),
        "--pcap",
        str(capture),
        "--pcap-at",
        f"film[0].{at}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return capture


def link(text: str, folder: Path) -> dict[str, Any]:
    """The link of a fitted path file, which the emulator takes."""
    if hasattr(_core, "Path"):
        file = folder / "fitted.toml"
        file.write_text(text)
        _core.Path.load(str(file), [], None, None)
    found: dict[str, Any] = tomllib.loads(text)["link"]["bottleneck"]
    return found


def value(text: str, unit: str) -> float:
    return _core.quantity(text, unit)


def share(loss: dict[str, Any]) -> float:
    return float(loss["rate"].removesuffix(" %")) / 100


def test_a_filled_link_seen_by_its_sender(tmp_path: Path) -> None:
    found = link(paceline.fit(captured(tmp_path, "source")), tmp_path)
    # The rate is counted in windows of 0.5 s and more, of whole packets, some acknowledged in pairs.
    assert abs(value(found["rate"], "bit/s") / 10e6 - 1) < 2 * PACKET_S / 0.5
    # A packet of the sender's own link, of 100 Mbit/s, each way and at both ends is not the path's: 0.25 ms in all.
    assert abs(value(found["delay"], "s") - 0.02) < 0.3e-3
    # 60 wait, one is in transmission; one of a hundred round trips is longer than what is taken for a full queue.
    limit = int(found["queue"]["limit"].removesuffix(" B"))
    assert 54 * 1500 < limit < 62 * 1500
    assert "loss" not in found, "all of it was the queue's"


def test_a_filled_link_seen_by_its_receiver(tmp_path: Path) -> None:
    with captured(tmp_path, "source").open("rb") as file:
        _, answer, data, *_ = segments(file, Unread())
    # How long the sender takes to send what it has, which no other end can know.
    own_s = (data.time - answer.time) / 1e9
    text = paceline.fit(captured(tmp_path, "sink"))
    found = link(text, tmp_path)
    assert abs(value(found["rate"], "bit/s") / 10e6 - 1) < PACKET_S / 0.5
    assert abs(value(found["delay"], "s") - 0.02 - own_s / 2) < 0.3e-3
    assert found["queue"]["limit"] == "100 ms", "not to be seen there"
    assert "Assumed: the queue takes 100 ms" in text


@pytest.mark.parametrize("at", ["source", "sink"])
def test_random_losses_are_told_from_the_queues(at: str, tmp_path: Path) -> None:
    capture = captured(tmp_path, at, loss='loss = { kind = "uniform", rate = "1 %" }')
    found = link(paceline.fit(capture), tmp_path)
    with capture.open("rb") as file:
        packets = sum(1 for segment in segments(file, Unread()) if segment.payload)
    # four standard deviations of a binomial count; what is sent again after a timeout was not all lost
    assert abs(share(found["loss"]) - 0.01) < 4 * math.sqrt(0.01 * 0.99 / packets) + 0.001


def test_a_rate_that_varies_is_a_schedule(tmp_path: Path) -> None:
    rate = 'rate_schedule = [{ at = "0 s", rate = "10 Mbit/s" }, { at = "15 s", rate = "2 Mbit/s" }]'
    text = paceline.fit(captured(tmp_path, "sink", rate=rate))
    steps = [
        (value(step["at"], "s"), value(step["rate"], "bit/s"))
        for step in link(text, tmp_path)["rate_schedule"]
    ]
    assert "The rate varied" in text
    for low, high, expected in ((2, 14, 10e6), (17, 28, 2e6)):
        rates = [rate for at, rate in steps if low < at < high]
        mean = sum(rates) / len(rates)
        # what the flow left unused after losses, and no more than the link carries
        assert 0.8 * expected < mean < 1.01 * expected


PING = """PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.
64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=31.2 ms

--- 192.0.2.1 ping statistics ---
200 packets transmitted, 196 received, 2% packet loss, time 199213ms
rtt min/avg/max/mdev = 30.500/34.812/61.004/4.120 ms
"""


def test_ping(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_text(PING)
    text = paceline.fit(file)
    found = link(text, tmp_path)
    assert found["delay"] == "15.25 ms"
    assert share(found["loss"]) == 0.02
    assert "Assumed: the rate (100 Mbit/s)" in text
    file.write_text(PING + PING.replace("30.500", "28.500").replace("196 received", "200 received"))
    found = link(paceline.fit(file), tmp_path)
    assert (found["delay"], share(found["loss"])) == ("14.25 ms", 0.01)


BUSYBOX = """PING 10.0.0.1 (10.0.0.1): 56 data bytes
64 bytes from 10.0.0.1: seq=0 ttl=64 time=0.123 ms
64 bytes from 10.0.0.1: seq=1 ttl=64 time=20.410 ms

--- 10.0.0.1 ping statistics ---
4 packets transmitted, 2 packets received, 50% packet loss
round-trip min/avg/max = 12.500/16.455/20.410 ms
"""


def test_the_ping_of_busybox(tmp_path: Path) -> None:
    file = tmp_path / "ping.txt"
    file.write_text(BUSYBOX)
    text = paceline.fit(file)
    found = link(text, tmp_path)
    assert (found["delay"], share(found["loss"])) == ("6.25 ms", 0.5)
    assert "Round trips took 12.5 ms at least, 16.45 ms in the mean, 20.41 ms at most" in text
    file.write_text(BUSYBOX[: BUSYBOX.index("round-trip")])
    with pytest.raises(PacelineError, match="the ping was cut off"):
        paceline.fit(file)


IRTT: dict[str, Any] = {
    "stats": {
        "rtt": {"min": 30_000_000, "mean": 31_000_000, "max": 40_000_000},
        "send_delay": {"min": 10_000_000},
        "receive_delay": {"min": 20_000_000},
        "packet_loss_percent": 3.0,
        "upstream_loss_percent": 1.0,
        "downstream_loss_percent": 2.0,
    }
}


def test_irtt(tmp_path: Path) -> None:
    file = tmp_path / "irtt.json"
    file.write_text(json.dumps(IRTT))
    found = link(paceline.fit(file), tmp_path)
    assert (found["delay"], found["backward"]["delay"]) == ("10 ms", "20 ms")
    assert (share(found["loss"]), share(found["backward"]["loss"])) == (0.01, 0.02)
    # clocks that differ by 15 ms
    stats = {**IRTT["stats"], "send_delay": {"min": -5_000_000}, "receive_delay": {"min": 35_000_000}}
    file.write_text(json.dumps({"stats": stats}))
    text = paceline.fit(file)
    assert link(text, tmp_path)["delay"] == "15 ms"
    assert "clocks differ" in text


def datagrams(lost: float) -> dict[str, Any]:
    """What iperf3 says of 10 Mbit/s of payload in datagrams of 1472 bytes."""
    of_all = {"bits_per_second": 10e6, "jitter_ms": 0.2, "lost_percent": lost}
    return {"start": {"test_start": {"blksize": 1472}}, "end": {"sum": of_all}}


def test_iperf3_datagrams(tmp_path: Path) -> None:
    file = tmp_path / "udp.json"
    file.write_text(json.dumps(datagrams(0.5)))
    found = link(paceline.fit(file), tmp_path)
    assert (share(found["loss"]), found["rate"]) == (0.005, "100000 kbit/s")
    file.write_text(json.dumps(datagrams(20.0)))
    found = link(paceline.fit(file), tmp_path)
    # 28 bytes of headers a datagram, four fifths of them
    assert abs(value(found["rate"], "bit/s") / (10e6 * 1500 / 1472 * 0.8) - 1) < 1e-3
    assert "loss" not in found


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    for content, text in [
        (b"", "neither a capture"),
        (b"\x1f\x8b\x08", "gunzip"),
        (b"{", "damaged JSON"),
        (b"[" * 100_000, "neither a capture"),
        (b'{"end":' + b"[" * 100_000, "damaged JSON"),
        (b'{"a": 1}', "neither iperf3's"),
        (b'{"error": "unable to connect"}', "unable to connect"),
        (b'{"end": {"sum_received": {"bits_per_second": "9"}}}', "is not a number"),
        (b'{"end": {"sum_received": {"bits_per_second": 1e400}}}', "is not from 0 to 1e+12"),
        (b'{"end": {"sum_received": {"bits_per_second": NaN}}}', "is not from 0 to 1e+12"),
        (b"5 packets transmitted, 0 received", "none of its pings was answered"),
        (b"5 packets transmitted, 5 received", "cut off"),
        (b"\x0a\x0d\x0d\x0a" + bytes(9), "no byte order"),
        (b"\xd4\xc3\xb2\xa1" + bytes(20), "no TCP data"),
        (b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x01\0\0\0" + bytes(8) + b"\xff" * 8, "damaged"),
        (b"\xd4\xc3\xb2\xa1" + bytes(16) + b"\x69\0\0\0" + bytes(16), "link of type 105"),
    ]:
        file = tmp_path / "recording"
        file.write_bytes(content)
        with pytest.raises(PacelineError, match=re.escape(text)) as caught:
            paceline.fit(file)
        assert str(file) in str(caught.value)
    with pytest.raises(PacelineError, match="cannot read"):
        paceline.fit(tmp_path / "no such file")


def ipv4(payload: int, seq: int) -> bytes:
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + payload, 1, 0, 64, 6, 0, b"\xc0\0\2\1", b"\xc0\0\2\2")
    return head + struct.pack(">HHIIBBHHH", 5, 6, seq, 7, 0x50, 16, 100, 0, 0) + bytes(payload)


def ipv6(payload: int, seq: int) -> bytes:
    head = struct.pack(">IHBB16s16s", 6 << 28, 20 + payload, 6, 64, bytes(16), bytes(15) + b"\1")
    return head + ipv4(payload, seq)[20:]


@pytest.mark.parametrize("packet", [ipv4, ipv6])
@pytest.mark.parametrize(
    ("kind", "before"),
    [
        (0, b"\2\0\0\0"),
        (1, bytes(12) + b"TYPE"),
        (1, bytes(12) + b"\x81\0\0\7TYPE"),
        (1, bytes(12) + b"\x88\xa8\0\1\x81\0\0\7TYPE"),
        (1, bytes(12) + b"\x91\0\0\1\x81\0\0\7TYPE"),
        (101, b""),
        (113, bytes(14) + b"TYPE"),
        (113, bytes(14) + b"\x81\0\0\7TYPE"),
        (276, b"TYPE" + bytes(18)),
        (276, b"\x81\0" + bytes(18) + b"\0\7TYPE"),
    ],
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_captures_of_every_link(
    packet: Callable[[int, int], bytes], kind: int, before: bytes, order: str, tmp_path: Path
) -> None:
    whole = packet(100, 9)
    frame = before.replace(b"TYPE", b"\x08\0" if packet is ipv4 else b"\x86\xdd") + whole
    pcap = struct.pack(order + "IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, kind)
    pcap += struct.pack(order + "IIII", 3, 5, len(frame), len(frame)) + frame
    padded = frame + bytes(-len(frame) % 4)

    def block(number: int, body: bytes) -> bytes:
        length = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", number) + length + body + length

    pcapng = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    pcapng += block(1, struct.pack(order + "HHIHHBxxxI", kind, 0, 0, 9, 1, 9, 0))
    pcapng += block(6, struct.pack(order + "IIIII", 0, 0, 3_000_000_005, len(frame), len(frame)) + padded)
    if order == ">":
        # Its number reads the same either way.
        assert pcapng[:4] == b"\x0a\x0d\x0d\x0a"
    for content in (pcap, pcapng):
        file = tmp_path / "capture"
        file.write_bytes(content)
        with file.open("rb") as opened:
            (found,) = segments(opened, Unread())
        addresses = whole[12:20] if packet is ipv4 else whole[8:40]
        half = len(addresses) // 2
        assert found == Segment(
            3_000_000_005, 0, (addresses[:half], 5), (addresses[half:], 6), len(whole), 9, 7, 16, 100
        )


def test_few_packets_are_no_rate(tmp_path: Path) -> None:
    """An initial window leaves as fast as its host can: of two packets a link of 70 Mbit/s was made."""

    def written(count: int) -> Path:
        file = tmp_path / "few.pcap"
        found = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
        for n in range(count):
            packet = ipv4(1400, 1400 * n)
            found += struct.pack("<IIII", 3, 160_000 * n, len(packet), len(packet)) + packet
        file.write_bytes(found)
        return file

    for count in (2, 19):
        with pytest.raises(
            PacelineError, match=f"rate: {count} packets with data, and a rate needs 20; capture a"
        ):
            paceline.fit(written(count))
    text = " ".join(paceline.fit(written(40)).replace("\n#", " ").split())
    assert "It is short, 40 packets in 0.00624 s: the rate is that of all of it" in text


def never_fails(content: bytes, folder: Path) -> None:
    """Whatever a file holds: a path file that the emulator takes, or an error of ours."""
    file = folder / "recording"
    file.write_bytes(content)
    try:
        text = paceline.fit(file)
    except PacelineError:
        return
    link(text, folder)


NUMBERS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.floats(0, 1e9)
)
LEAVES = st.one_of(NUMBERS, st.lists(NUMBERS, max_size=2))


@st.composite
def spoiled(draw: st.DrawFn, document: Any) -> Any:
    """The same document with values of other kinds here and there."""
    if draw(st.integers(0, 9)) == 0:
        return draw(LEAVES)
    if isinstance(document, dict):
        return {key: draw(spoiled(value)) for key, value in document.items()}
    if isinstance(document, list):
        return [draw(spoiled(value)) for value in document]
    return draw(NUMBERS) if draw(st.booleans()) else document


TCP: dict[str, Any] = {
    "start": {"tcp_mss_default": 1448, "test_start": {"reverse": 1}},
    "intervals": [
        {"sum": {"start": n, "bits_per_second": 1e6 * (1 + n % 3), "omitted": False}} for n in range(12)
    ],
    "end": {
        "streams": [{"sender": {"min_rtt": 40_000, "max_rtt": 90_000}}],
        "sum_sent": {"retransmits": 3},
        "sum_received": {"bits_per_second": 9e6},
    },
}


@SETTINGS
@given(st.one_of(spoiled(TCP), spoiled(datagrams(1.0)), spoiled(IRTT)))
@example(TCP)
def test_no_report_breaks_it(tmp_path: Path, document: Any) -> None:
    never_fails(json.dumps(document).encode(), tmp_path)


@SETTINGS
@given(st.text(alphabet="0123456789./ -e", max_size=30), st.integers(0, len(PING)))
@example("4000", 140)  # so many sent that what was lost rounds to all
def test_no_ping_breaks_it(tmp_path: Path, other: str, at: int) -> None:
    never_fails((PING[:at] + other + PING[at:]).encode(), tmp_path)
    never_fails(PING.replace("30.500/34.812", other).encode(), tmp_path)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The first packets of a capture."""
    return captured(tmp_path_factory.mktemp("capture"), "source").read_bytes()[:20_000]


def test_a_capture_that_is_cut_is_said(tmp_path: Path, capture: bytes) -> None:
    file = tmp_path / "cut.pcapng"
    file.write_bytes(capture)
    assert "capture ends in the middle of a packet" in " ".join(paceline.fit(file).replace("#", "").split())


@SETTINGS
@given(data=st.data())
def test_no_capture_breaks_it(tmp_path: Path, capture: bytes, data: st.DataObject) -> None:
    spoilt = bytearray(capture[: data.draw(st.integers(4, len(capture)))])
    for at in data.draw(st.lists(st.integers(0, len(spoilt) - 1), max_size=8)):
        spoilt[at] = data.draw(st.sampled_from([0, 1, 4, 0x45, 0x60, 0x7F, 0x80, 0xFF]))
    never_fails(bytes(spoilt), tmp_path)


@SETTINGS
@given(st.sampled_from([b"", b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1", b"{"]), st.binary(max_size=200))
def test_no_bytes_break_it(tmp_path: Path, start: bytes, rest: bytes) -> None:
    never_fails(start + rest, tmp_path)
