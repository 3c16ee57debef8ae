"""`paceline send rtp://HOST:PORT`: our RTP and LDA+ to receivers that are no programs of ours, such as GStreamer."""

from __future__ import annotations

import itertools
import json
import shlex
import socket
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import paceline
from needs import require
from over_path import PACELINE, direction, measured, steal
from paceline.errors import LiveError, PacelineError, ScenarioError
from paceline.results import Results
from paceline.rtp import Receiver
from paceline.sending import send
from realtime import conclusive

pytestmark = pytest.mark.realtime

CAPS = "application/x-rtp,media=video,clock-rate=90000,encoding-name=RAW,payload=96"
SESSION = (
    "exec gst-launch-1.0 -q rtpsession name=s rtcp-min-interval=200000000 "
    f'udpsrc port=5004 caps="{CAPS}" ! s.recv_rtp_sink s.recv_rtp_src ! fakesink async=false '
    'udpsrc port=5005 caps="application/x-rtcp" ! s.recv_rtcp_sink s.sync_src ! fakesink async=false '
    "s.send_rtcp_src ! udpsink host=$PACELINE_PEER port=5005 sync=false async=false"
)
"""rtpbin's session by itself, which may report five times a second."""
NUMBERS = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
TRANSPORT = SESSION.replace(
    CAPS, f"{CAPS},extmap-5=(string){NUMBERS},rtcp-fb-transport-cc=(boolean)true"
).replace("name=s", "name=s rtp-profile=avpf")
"""The same with transport-wide feedback, by the extension with ID 5."""
RTPBIN = (
    "exec gst-launch-1.0 -q rtpbin name=b "
    f'udpsrc port=5004 caps="{CAPS}" ! b.recv_rtp_sink_0 b. ! application/x-rtp,media=video ! fakesink async=false '
    'udpsrc port=5005 caps="application/x-rtcp" ! b.recv_rtcp_sink_0 '
    "b.send_rtcp_src_0 ! udpsink host=$PACELINE_PEER port=5005 sync=false async=false"
)
"""rtpbin as it is: a report each five seconds."""


def path(where: Path, rate: str, queue: str) -> str:
    file = where / "path.toml"
    file.write_text(
        f'[link.bottleneck]\nrate = "{rate}"\ndelay = "25 ms"\nqueue = {{ kind = "droptail", limit = "{queue}" }}\n'
    )
    return str(file)


Sent = tuple[Results, dict[str, Any], dict[str, Any]]
"""What was measured of a flow, its notes, and the summary of its path."""


def sent(
    link: str, out: Path, far: str, *words: str, more: str = "", cc: str = "lda-plus"
) -> tuple[Sent, float]:
    """A flow to a receiver at the other end of a path."""
    command = shlex.join([PACELINE, "send", f"rtp://198.18.0.2:5004{more}", "--cc", cc, *words])
    # GStreamer takes a while to listen
    line = f"sleep 4; rm -rf {out}; {command} --out {out} --json"
    text, found = measured("--far", far, link, "--", "sh", "-c", line)
    notes = json.loads(text)["live"]["flows"][0]
    return (Results.read(out), notes, found), steal(found)


def rates(results: Results, first_s: float) -> list[float]:
    """The rate of sending from then on, over whole seconds, without the last."""
    rate = results.series("rate").filter(pl.col("time_s") > first_s)
    seconds = rate.group_by(pl.col("time_s").floor(), maintain_order=True).agg(pl.col("send_rate_bps").mean())
    return seconds["send_rate_bps"].to_list()[:-1]


def test_without_loss_the_rate_becomes_the_highest_allowed(tmp_path: Path) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "10 Mbit/s", "100 packets")
    fast = ("--set", "rtp.report_interval=500ms", "--set", "params.initial_increase=20000")

    def measure() -> tuple[Sent, float]:
        return sent(link, tmp_path / "out", SESSION, "--max-rate", "2Mbit/s", "--for", "16s", *fast)

    def check(found: Sent) -> None:
        results, notes, _ = found
        (row,) = results.flows.to_dicts()
        assert notes["well"]
        assert notes["sender_ended"] == "done"
        assert notes["reported"]["reports"] > 30
        # GStreamer counts the packet twice by which it came to trust the stream
        assert notes["reported"]["lost"] in (-1, 0)
        assert row["loss_rate"] == 0
        assert row["packets_lost"] == 0
        # what arrives is not known here but by the reports
        assert [row[name] for name in ("goodput_bps", "throughput_bps", "bytes_delivered")] == [None] * 3
        assert 0 <= row["packets_sent"] - row["packets_delivered"] < 400
        assert 0.050 <= row["rtt_min_s"] < 0.053
        # gaps are drawn from half of the mean to 1.5 times it, a deviation of 0.29: 167 of them make a second, whose
        # rate deviates by 2.2 %, and that of five seconds by 1 %
        late = rates(results, 11)
        assert all(0.91 * 2e6 < rate < 1.09 * 2e6 for rate in late), late
        assert sum(late) / len(late) == pytest.approx(2e6, rel=0.04)
        assert results.series("rtcp")["allowed_bps"][-1] == pytest.approx(2e6)

    conclusive(measure, check)


def test_losses_that_gstreamer_reports_keep_the_rate_at_the_bottlenecks(tmp_path: Path) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "1 Mbit/s", "20 packets")
    fast = ("--set", "rtp.report_interval=500ms")

    def measure() -> tuple[Sent, float]:
        return sent(link, tmp_path / "out", SESSION, "--max-rate", "2Mbit/s", "--for", "25s", *fast)

    def check(found: Sent) -> None:
        results, notes, of_path = found
        (row,) = results.flows.to_dicts()
        assert notes["well"]
        assert row["packets_lost"] > 5
        assert 0.01 < row["loss_rate"] < 0.3
        # what is reported as lost is what the path dropped, but for what the last report did not know yet
        way = direction(of_path, "forward")
        dropped = way["entered"] - way["delivered"]
        assert dropped - 60 <= row["packets_lost"] <= dropped
        late = rates(results, 10)
        mean = sum(late) / len(late)
        assert 0.5e6 < mean < 1.15e6, late
        # R is twice what the path has, and reports come faster than round trips: the rate climbs too far and falls far
        allowed = results.series("rtcp").filter(pl.col("time_s") > 10)["allowed_bps"].to_list()
        assert sum(rate < 1e6 for rate in allowed) > 0.3 * len(allowed)
        falls = sum(after < 0.8 * before for before, after in itertools.pairwise(allowed))
        assert falls > 4

    conclusive(measure, check)


@pytest.mark.parametrize("cc", ["gcc", "scream-libwebrtc", "nada"])
def test_gstreamers_transport_wide_feedback_brings_a_call_to_the_bottlenecks_rate(
    cc: str, tmp_path: Path
) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "1 Mbit/s", "200 ms")

    def measure() -> tuple[Sent, float]:
        words = ("--app", "encoder", "--max-rate", "3Mbit/s", "--for", "22s")
        return sent(link, tmp_path / "out", TRANSPORT, *words, more="?twcc=5", cc=cc)

    def check(found: Sent) -> None:
        results, notes, _ = found
        (row,) = results.flows.to_dicts()
        assert (notes["well"], notes["sender_ended"]) == (True, "done")
        assert notes["reported"]["expected"] > 1000
        assert 0.050 <= row["rtt_min_s"] < 0.056
        assert row["packets_lost"] < 0.05 * row["packets_sent"]
        late = rates(results, 17)
        assert 0.7e6 < sum(late) / len(late) < 1.1e6, late
        # 50 ms of the path, and a queue that is not full
        assert row["rtt_mean_s"] < 0.2

    conclusive(measure, check)


def test_rtpbin_as_it_is(tmp_path: Path) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "10 Mbit/s", "100 packets")

    def measure() -> tuple[Sent, float]:
        more = ("--set", "params.initial_increase=200000")
        return sent(link, tmp_path / "out", RTPBIN, "--max-rate", "1Mbit/s", "--for", "26s", *more)

    def check(found: Sent) -> None:
        results, notes, _ = found
        assert notes["well"]
        assert 3 <= notes["reported"]["reports"] <= 12
        # some reports are enough to grow by
        assert rates(results, 20)[-1] > 2 * rates(results, 1)[0]

    conclusive(measure, check)


def test_nobody_is_there(tmp_path: Path) -> None:
    """The network says so, and a port where somebody listens who never reports gets little, and not for long."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    begin = time.monotonic()
    results = send(f"rtp://127.0.0.1:{closed}?localrtpport={_free()}", "lda-plus", max_rate="1Mbit/s")
    assert time.monotonic() - begin < 3
    (notes,) = results.manifest["notes"]["flows"]
    assert "port unreachable" in notes["sender_ended"]
    assert not notes["well"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        begin = time.monotonic()
        address = f"rtp://127.0.0.1:{mute.getsockname()[1]}?localrtpport={_free()}&pt=100"
        results = send(address, "lda-plus", max_rate="1Mbit/s", duration_s=60, log_events=tmp_path)
        assert 14 < time.monotonic() - begin < 18
        first = mute.recv(2000)
    assert (first[0], first[1] & 0x7F) == (0x80, 100)
    (notes,) = results.manifest["notes"]["flows"]
    assert "no receiver's report" in notes["sender_ended"]
    (row,) = results.flows.to_dicts()
    assert row["send_rate_bps"] < 66e3
    assert row["loss_rate"] is None
    assert row["packets_delivered"] is None
    (log,) = tmp_path.iterdir()
    assert paceline.replay(log).inputs > 20


def _free() -> int:
    """A port that is free, and the next one."""
    while True:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
        ):
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            try:
                other.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def test_addresses() -> None:
    assert Receiver.parse("rtp://there.example:5004") == Receiver("there.example", 5004, 5005, 5004, 5005)
    assert Receiver.parse("rtp://[::1]:6000?localrtpport=7000") == Receiver("::1", 6000, 6001, 7000, 7001)
    named = "rtp://10.0.0.1:6000?rtcpport=6010&localrtcpport=7010&pt=33"
    assert Receiver.parse(named) == Receiver("10.0.0.1", 6000, 6010, 6000, 7010, 33)


@pytest.mark.parametrize(
    "address",
    [
        "rtp://host",
        "rtp://:5004",
        "rtp://host:5004/path",
        "rtp://host:port",
        "rtp://host:5004?what=1",
        "rtp://host:5004?rtcpport=x",
        "rtp://me@host:5004",
        "rtp://host:5004?rtcpport=0",
        "rtp://host:65535",
        "rtp://host:5004?pt=200",
        "rtp://host:5004?twcc=15",
        "rtp://[::1:5004",
    ],
)
def test_what_is_no_address_is_said(address: str) -> None:
    with pytest.raises(PacelineError, match=r"rtp://HOST:PORT|no port|payload type|1 to 14"):
        Receiver.parse(address)


def test_mistakes_are_said_before_anything_is_sent() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listens:
        listens.bind(("127.0.0.1", 0))
        listens.settimeout(0.3)
        there = f"rtp://127.0.0.1:{listens.getsockname()[1]}?localrtpport={_free()}"
        with pytest.raises(PacelineError, match='max_rate="2Mbit/s"'):
            send(there, "lda-plus")
        with pytest.raises(PacelineError, match='max_rate="2 apples"'):
            send(there, "lda-plus", max_rate="2 apples")
        with pytest.raises(
            PacelineError, match="one flow of one of our controllers, from here, without a key"
        ):
            send(there, "lda-plus", max_rate="1Mbit/s", flows=2)
        with pytest.raises(
            PacelineError, match="one flow of one of our controllers, from here, without a key"
        ):
            send(there, "kernel:reno", max_rate="1Mbit/s")
        with pytest.raises(PacelineError, match="serve --max-rate"):
            send("127.0.0.1", "lda-plus", max_rate="1Mbit/s")
        with pytest.raises(ScenarioError, match="use lda-plus"):
            send(there, "tfrc", max_rate="1Mbit/s")
        with pytest.raises(PacelineError, match='max_rate="2Mbit/s"'):
            send(there, "nada", app="encoder")
        with pytest.raises(ScenarioError, match="RFC 5761"):
            send(f"{there}&pt=72", "lda-plus", max_rate="1Mbit/s")
        with pytest.raises(ScenarioError, match="one receiver"):
            send("rtp://239.1.1.1:5004", "lda-plus", max_rate="1Mbit/s")
        with pytest.raises(LiveError, match="no-such-host"):
            send("rtp://no-such-host.invalid:5004", "lda-plus", max_rate="1Mbit/s")
        mine = listens.getsockname()[1]
        with pytest.raises(LiveError, match="localrtpport"):
            send(
                f"rtp://127.0.0.1:{mine}?localrtcpport={mine}&localrtpport={_free()}",
                "lda-plus",
                max_rate="1Mbit/s",
            )
        with pytest.raises(TimeoutError):
            listens.recv(2000)
