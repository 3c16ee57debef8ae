"""`paceline receive`: what others send by RTP is counted and told of, and what goes back is little.

Whether senders find a bottleneck by what they are told is tested in virtual time (`crates/live/tests/session`).
"""

from __future__ import annotations

import bisect
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import paceline
import ports
from needs import require
from paceline.errors import LiveError, PacelineError
from paceline.live.rtp import Listening
from paceline.results.results import Results


def _rtp(number: int, ssrc: int = 7, size: int = 1000) -> bytes:
    return struct.pack(">BBHII", 0x80, 96, number, number * 900, ssrc) + bytes(size)


def _bye(ssrc: int) -> bytes:
    """An empty report, its CNAME, and that the stream ends."""
    named = struct.pack(">BBHIBBcx", 0x81, 202, 2, ssrc, 1, 1, b"a")
    return struct.pack(">BBHI", 0x80, 201, 1, ssrc) + named + struct.pack(">BBHI", 0x81, 203, 1, ssrc)


@pytest.mark.realtime
def test_the_sender_alone_is_told_and_what_waits_is_counted_where_it_came(tmp_path: Path) -> None:
    """Over the loopback interface: the first host with a valid stream is heard, each port of it with reports of its
    own, and nobody else is told anything. Datagrams are as long as they are, and a BYE ends its stream alone. A process
    without its processor for half a second finds what came meanwhile at once."""
    out = tmp_path / "out"
    ours, control = ports.pair()
    second, second_control = ports.pair()
    with ours, control, second, second_control, ports.bound(host="127.0.0.2") as other:
        port = ports.free()
        words = ["receive", f"rtp://127.0.0.1:{port}?twcc=5", "--feedback", "rfc8888", "--for", "2500ms"]
        command = [sys.executable, "-m", "paceline", *words, "--out", str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            try:
                sent = _send_and_stop(program, ours, other, second, port)
            finally:
                program.send_signal(signal.SIGCONT)
                program.communicate(timeout=40)
        sent_from = [made.getsockname()[1] for made in (ours, second)]
        kinds = {datagram[1] for datagram in ports.waiting(control)}
        assert kinds == {201, 205}, "reports, and feedback on arrivals"
        assert {datagram[1] for datagram in ports.waiting(second_control)} == {201, 205}
        assert ports.waiting(other) == []
    results = Results.read(out)
    flow, long = sorted(results.flows.to_dicts(), key=lambda flow: str(flow["flow"]))
    assert (long["flow"], long["packets_lost"], long["ended"]) == ("00000008", 0, "peer closed")
    assert long["bytes_delivered"] == long["packets_delivered"] * LONG > 40 * LONG
    assert (flow["from"], long["from"]) == tuple(f"127.0.0.1:{port}" for port in sent_from)
    assert (flow["flow"], flow["packets_lost"], flow["ended"]) == ("00000007", 0, "done")
    assert flow["packets_delivered"] > 100
    rates = results.series("rate").filter(
        pl.col("flow") == "00000007", pl.col("time_s").is_between(0.3, 2.4)
    )["goodput_bps"]
    # some 100 packets of 1000 bytes a second, less what a loop of Python sleeps too long
    assert rates.len() > 9
    few, many = _bounds(sent)
    assert rates.is_between(few, many).all(), f"{few:.0f} to {many:.0f}: {[round(rate) for rate in rates]}"


EVERY_S = 0.2
LONG = 9000


def _bounds(sent: list[float]) -> tuple[float, float]:
    """The least and the highest rate of an interval of recordings, in bit/s, wherever it begins: over loopback a packet
    has arrived when it has been sent."""
    edges = [instant + moved for instant in sent for moved in (-1e-4, 1e-4 - EVERY_S)]
    within = [begin for begin in edges if sent[0] <= begin and begin + EVERY_S <= sent[-1]]
    counts = [bisect.bisect(sent, begin + EVERY_S) - bisect.bisect(sent, begin) for begin in within]
    # the packet at an edge is in either interval
    return (min(counts) - 1) * 8000 / EVERY_S, (max(counts) + 1) * 8000 / EVERY_S


def _send_and_stop(
    program: subprocess.Popen[str],
    ours: socket.socket,
    other: socket.socket,
    second: socket.socket,
    port: int,
) -> list[float]:
    """A packet each 10 ms until the receiver has ended, which stands still for a half one second in. When each was sent
    that it can have had. A second port sends until then."""
    begin = last_received = time.monotonic()
    number, stands = 0, False
    sent = []
    while program.poll() is None and time.monotonic() < begin + 40:
        ours.sendto(_rtp(number), ("127.0.0.1", port))
        sent.append(time.monotonic())
        # one packet alone is no stream; nor is what comes after the sender is known
        other.sendto(_rtp(5 if number == 0 else number, ssrc=9), ("127.0.0.1", port))
        if not stands:
            second.sendto(_rtp(number, ssrc=8, size=LONG), ("127.0.0.1", port))
        number += 1
        if not (stands or ports.is_taken(port)):
            last_received = time.monotonic()
        since = time.monotonic() - last_received
        if not stands and since > 1:
            second.sendto(_bye(8), ("127.0.0.1", port))
            program.send_signal(signal.SIGSTOP)
            stands = True
        elif since > 1.5:
            program.send_signal(signal.SIGCONT)
        time.sleep(0.01)
    assert stands
    return sent


@pytest.mark.realtime
def test_a_datagram_from_port_0_ends_nothing(tmp_path: Path) -> None:
    """No answer can go to port 0 (the kernel says "invalid argument"). In a sender's name such a report neither ends
    the receiver nor takes its reports away."""
    require("root")
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    out = tmp_path / "out"
    ours, control = ports.pair()
    with raw, ours, control:
        port = ports.free()
        words = ["receive", f"rtp://127.0.0.1:{port}", "--for", "1500ms", "--out", str(out)]
        with subprocess.Popen(
            [sys.executable, "-m", "paceline", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as program:
            begin, number = time.monotonic(), 0
            report = struct.pack(">BBHIIIIII", 0x80, 200, 6, 7, 0, 0, 0, 1, 1000)
            forged = struct.pack(">HHHH", 0, port, 8 + len(report), 0) + report
            while program.poll() is None and time.monotonic() < begin + 40:
                ours.sendto(_rtp(number), ("127.0.0.1", port))
                raw.sendto(forged, ("127.0.0.1", 0))
                number += 1
                time.sleep(0.01)
            said = program.communicate(timeout=40)[0]
        assert program.returncode == 0, said
        assert {datagram[1] for datagram in ports.waiting(control)} == {201}, "reports go where they went"
    (flow,) = Results.read(out).flows.to_dicts()
    assert (flow["ended"], flow["packets_lost"]) == ("done", 0)
    assert flow["packets_delivered"] > 50


def test_addresses() -> None:
    assert Listening.parse("rtp://:5004?twcc=5") == Listening(None, 5004, 5005, None, 5)
    assert Listening.parse("rtp://[::1]:5004?rtcpport=7&localrtcpport=9") == Listening(
        "::1", 5004, 9, 7, None
    )
    for address in ("5004", "rtp://:", "rtp://here", "rtp://:5004/x", "rtp://:5004?pt=96", "http://:5004"):
        with pytest.raises(PacelineError, match="is not rtp://:PORT, with"):
            Listening.parse(address)
    with pytest.raises(PacelineError, match="port 65536 must be"):
        Listening.parse("rtp://:65535")
    with pytest.raises(PacelineError, match="RTCP needs a separate port here"):
        Listening.parse("rtp://:5004?localrtcpport=5004")
    with pytest.raises(PacelineError, match="1 to 14"):
        Listening.parse("rtp://:5004?twcc=15")


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(PacelineError, match="twcc needs the ID of its extension"):
        paceline.receive("rtp://:5004", feedback="twcc")
    with pytest.raises(PacelineError, match="must be reports, twcc or rfc8888"):
        paceline.receive("rtp://:5004", feedback="remb")
    with pytest.raises(PacelineError, match="not an IP address of this host"):
        paceline.receive("rtp://there.example:5004", duration_s=1)
    with ports.bound() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LiveError, match="in use"):
            paceline.receive(f"rtp://127.0.0.1:{port}", duration_s=1)


def test_nothing_came() -> None:
    port = ports.free()
    words = ["receive", f"rtp://127.0.0.1:{port}", "--for", "0.3s"]
    done = subprocess.run(
        [sys.executable, "-m", "paceline", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "nothing came; 0 packets of RTCP sent" in " ".join(done.stdout.split())
