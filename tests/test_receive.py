"""`paceline receive`: what others send by RTP is counted and told of, and what goes back is little."""

from __future__ import annotations

import json
import shlex
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import paceline
from needs import require
from over_path import PACELINE, direction, measured, steal
from paceline.errors import LiveError, PacelineError
from paceline.results import Results
from paceline.rtp import Listening
from realtime import conclusive

Heard = tuple[Results, dict[str, Any], str]
"""What was measured at the receiver, the summary of the path, and what the sender said."""


def path(where: Path, rate: str, more: str = "") -> str:
    file = where / "path.toml"
    queue = '{ kind = "droptail", limit = "200 ms" }'
    file.write_text(f'[link.bottleneck]\nrate = "{rate}"\ndelay = "25 ms"\nqueue = {queue}\n{more}')
    return str(file)


def heard(link: str, out: Path, words: list[str], sender: str) -> tuple[Heard, float]:
    """What a sender at the near end of a path has sent to a receiver at its other end."""
    far = shlex.join([PACELINE, "receive", *words, "--out", str(out)])
    line = f"sleep 2; {sender}; sleep 2"
    text, found = measured("--far", far, link, "--", "sh", "-c", f"rm -rf {out}; {line}")
    return (Results.read(out), found, text), steal(found)


@pytest.mark.realtime
@pytest.mark.parametrize(("cc", "kind"), [("scream-libwebrtc", "twcc"), ("nada", "rfc8888")])
def test_our_controllers_follow_the_feedback(cc: str, kind: str, tmp_path: Path) -> None:
    """The sender knows no more of the receiver than RTP has: it finds the bottleneck by what it is told."""
    require("namespaces")
    link = path(tmp_path, "1 Mbit/s")
    number = "?twcc=7" if kind == "twcc" else ""
    words = ["--cc", cc, "--app", "encoder", "--max-rate", "3Mbit/s", "--for", "18s", "--json"]
    sender = shlex.join([PACELINE, "send", f"rtp://198.18.0.2:5004{number}", *words])

    def measure() -> tuple[Heard, float]:
        return heard(link, tmp_path / "out", [f"rtp://:5004{number}", "--feedback", kind], sender)

    def check(found: Heard) -> None:
        results, of_path, said = found
        (row,) = results.flows.to_dicts()
        assert row["ended"] == "peer closed"
        assert row["feedback_share"] < 0.05
        late = results.series("rate").filter(pl.col("time_s").is_between(10, 17))["goodput_bps"].mean()
        assert isinstance(late, float)
        assert 0.5e6 < late < 1e6, "of 1 Mbit/s"
        # what is missed is what the path dropped, but for RTCP that went the same way, and what found no room at the
        # sender while it did not know the receiver
        way = direction(of_path, "forward")
        dropped = way["entered"] - way["delivered"] + json.loads(said)["live"]["flows"][0]["no_room"]
        assert dropped - 5 <= row["packets_lost"] <= dropped
        assert row["packets_delivered"] <= way["delivered"] <= row["packets_delivered"] + 12

    conclusive(measure, check)


GSTREAMER = (
    "timeout -s INT 12 gst-launch-1.0 -q -e rtpsession name=s rtcp-min-interval=500000000 "
    "audiotestsrc is-live=true samplesperbuffer=160 ! audio/x-raw,rate=8000 ! alawenc ! "
    "rtppcmapay max-ptime=20000000 ! s.send_rtp_sink s.send_rtp_src ! "
    "udpsink host=198.18.0.2 port=5004 s.send_rtcp_src ! udpsink host=198.18.0.2 port=5005 sync=false async=false "
    "udpsrc port=5005 ! s.recv_rtcp_sink s.sync_src ! fakesink async=false"
)
"""A telephone's voice: 50 packets of 160 bytes a second, with reports."""


@pytest.mark.realtime
def test_gstreamers_voice_is_counted(tmp_path: Path) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "1 Mbit/s", 'loss = { kind = "uniform", rate = "5 %" }\n')

    def measure() -> tuple[Heard, float]:
        return heard(link, tmp_path / "out", ["rtp://:5004?rtcpport=5005", "--for", "9s"], GSTREAMER)

    def check(found: Heard) -> None:
        results, _, _ = found
        (row,) = results.flows.to_dicts()
        assert row["ended"] == "done"
        expected = row["packets_delivered"] + row["packets_lost"]
        assert 430 <= expected <= 470, "50 a second"
        assert 0.02 < row["loss_rate"] < 0.09
        assert row["goodput_bps"] == pytest.approx(64_000 * (1 - row["loss_rate"]), rel=0.05)
        assert 0 < row["feedback_share"] < 0.05

    conclusive(measure, check)


def _rtp(number: int, ssrc: int = 7) -> bytes:
    return struct.pack(">BBHII", 0x80, 96, number, number * 900, ssrc) + bytes(1000)


def test_feedback_goes_to_the_sender_alone(tmp_path: Path) -> None:
    """Over the loopback interface: the first valid stream is heard, and nobody else is told anything."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours, _bound(0) as other:
        control = _bound(_next(ours))
        with control:
            port = _free()
            words = [
                "receive",
                f"rtp://127.0.0.1:{port}?twcc=5",
                "--feedback",
                "rfc8888",
                "--for",
                "1.5s",
                "--json",
            ]
            program = subprocess.Popen(
                [sys.executable, "-m", "paceline", *words], stdout=subprocess.PIPE, text=True
            )
            stranger = _rtp(5, ssrc=9)
            end = time.monotonic() + 30
            number = 0
            while program.poll() is None and time.monotonic() < end:
                ours.sendto(_rtp(number), ("127.0.0.1", port))
                # one packet alone is no stream; nor is what comes after the sender is known
                other.sendto(stranger if number == 0 else _rtp(number, ssrc=9), ("127.0.0.1", port))
                number += 1
                time.sleep(0.02)
            text, _ = program.communicate(timeout=20)
            kinds = {datagram[1] for datagram in _waiting(control)}
            assert kinds == {201, 205}, "reports, and feedback on arrivals"
            assert _waiting(other) == []
    document = json.loads(text)
    (flow,) = document["flows"]
    assert flow["flow"] == "00000007"
    assert flow["packets_lost"] == 0
    assert flow["packets_delivered"] > 50
    assert flow["ended"] == "done"


def test_what_comes_while_it_waits_is_recorded_where_it_came(tmp_path: Path) -> None:
    """A process without its processor for half a second finds what came meanwhile at once."""
    port, out = _free(), tmp_path / "out"
    words = ["receive", f"rtp://127.0.0.1:{port}", "--for", "4s", "--out", str(out)]
    program = subprocess.Popen([sys.executable, "-m", "paceline", *words], stdout=subprocess.PIPE, text=True)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ours:
            begin, number, waits = time.monotonic(), 0, False
            while program.poll() is None and time.monotonic() < begin + 30:
                ours.sendto(_rtp(number), ("127.0.0.1", port))
                number += 1
                # no packet before it listens is one of the stream's
                if number == 300:
                    waits = True
                    program.send_signal(signal.SIGSTOP)
                if number == 360:
                    program.send_signal(signal.SIGCONT)
                time.sleep(0.01)
        assert waits
    finally:
        program.send_signal(signal.SIGCONT)
        program.communicate(timeout=20)
    rates = Results.read(out).series("rate").filter(pl.col("time_s").is_between(0.3, 3.9))["goodput_bps"]
    # 100 packets of 1000 bytes a second, less what a loop of Python sleeps too long
    assert rates.len() > 15
    assert rates.is_between(0.4e6, 1.0e6).all(), str([round(rate) for rate in rates])


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", port))
    made.setblocking(False)
    return made


def _next(made: socket.socket) -> int:
    """Binds to a port whose next one is free too; that one."""
    for port in range(40_000, 60_000, 2):
        try:
            with _bound(port + 1):
                made.bind(("127.0.0.1", port))
                return port + 1
        except OSError:
            continue
    raise AssertionError("no two ports are free")


def _free() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        return _next(one) - 1


def _waiting(made: socket.socket) -> list[bytes]:
    found = []
    while True:
        try:
            found.append(made.recv(2048))
        except BlockingIOError:
            return found


def test_addresses() -> None:
    assert Listening.parse("rtp://:5004?twcc=5") == Listening(None, 5004, 5005, None, 5)
    assert Listening.parse("rtp://[::1]:5004?rtcpport=7&localrtcpport=9") == Listening(
        "::1", 5004, 9, 7, None
    )
    for address in ("5004", "rtp://:", "rtp://here", "rtp://:5004/x", "rtp://:5004?pt=96", "http://:5004"):
        with pytest.raises(PacelineError, match="is not rtp://:PORT, with"):
            Listening.parse(address)
    with pytest.raises(PacelineError, match="no port 65536"):
        Listening.parse("rtp://:65535")
    with pytest.raises(PacelineError, match="RTCP needs a port of its own here"):
        Listening.parse("rtp://:5004?localrtcpport=5004")
    with pytest.raises(PacelineError, match="1 to 14"):
        Listening.parse("rtp://:5004?twcc=15")


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(PacelineError, match="twcc needs the ID of its extension"):
        paceline.receive("rtp://:5004", feedback="twcc")
    with pytest.raises(PacelineError, match="is not reports, twcc or rfc8888"):
        paceline.receive("rtp://:5004", feedback="remb")
    with pytest.raises(PacelineError, match="no IP address of this host"):
        paceline.receive("rtp://there.example:5004", duration_s=1)
    with _bound(0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LiveError, match="in use"):
            paceline.receive(f"rtp://127.0.0.1:{port}", duration_s=1)


def test_nothing_came() -> None:
    port = _free()
    words = ["receive", f"rtp://127.0.0.1:{port}", "--for", "0.3s"]
    done = subprocess.run(
        [sys.executable, "-m", "paceline", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "nothing came; 0 packets of RTCP sent" in " ".join(done.stdout.split())
