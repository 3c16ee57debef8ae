"""What only a real clock shows of flows between hosts, and takes its time: emulated flows beside simulated ones,
GStreamer at the other end, a flood."""

from __future__ import annotations

import itertools
import json
import os
import random
import shlex
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import paceline
from needs import require
from over_path import PACELINE, direction, measured, steal
from paceline import realtime
from paceline.live.send import send
from paceline.results.results import Results
from paceline.statistics import estimate, independent_difference
from realtime import conclusive

pytestmark = [pytest.mark.realtime, pytest.mark.long]

SCENARIO = """
duration = "8 s"
warmup = "2 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.bulk]
cc = "newreno"
transport = "quic"
"""


def test_emulated_flows_are_as_simulated_ones() -> None:
    """Means differ by no more than 3 % or their joint 95 % interval, whichever is larger. Of BBR 3 and C4 that is asked
    without a busy host, whose jitter they take for a faster link (docs/live.md): by crate live's tests, in memory."""
    require("namespaces")
    scenario = paceline.parse(SCENARIO)
    simulated = paceline.run(scenario, runs=10).flows

    def measured() -> tuple[list[dict[str, float]], float]:
        runs = [realtime.emulate(scenario, seed) for seed in (1, 2, 3)]
        rows = [row for run in runs for row in run.summary["flows"]]
        return rows, max(run.summary["path"]["host"]["steal_share"] for run in runs)

    def near(emulated: list[dict[str, float]]) -> None:
        for measure in ("goodput_bps", "rtt_mean_s"):
            ours = [row[measure] for row in emulated]
            apart = independent_difference(simulated[measure], ours)
            mean = estimate(simulated[measure]).mean
            assert mean is not None
            assert apart.mean is not None
            assert apart.half_width is not None
            share, half = apart.mean / mean, apart.half_width / mean
            assert half < 0.1, (measure, ours, "runs that differ so much say nothing")
            assert abs(share) <= max(0.03, half), (measure, ours, share, half)

    conclusive(measured, near)


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


def path(where: Path, rate: str, queue: str, more: str = "") -> str:
    file = where / "path.toml"
    limit = f'queue = {{ kind = "droptail", limit = "{queue}" }}'
    file.write_text(f'[link.bottleneck]\nrate = "{rate}"\ndelay = "25 ms"\n{limit}\n{more}')
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


def test_gstreamers_transport_wide_feedback_brings_a_call_to_the_bottlenecks_rate(tmp_path: Path) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "1 Mbit/s", "200 ms")

    def measure() -> tuple[Sent, float]:
        words = ("--app", "encoder", "--max-rate", "3Mbit/s", "--for", "22s")
        return sent(link, tmp_path / "out", TRANSPORT, *words, more="?twcc=5", cc="gcc")

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


Received = tuple[Results, dict[str, Any], str]
"""What was measured at the receiver, the summary of the path, and what the sender said."""


def received_from(link: str, out: Path, words: list[str], sender: str) -> tuple[Received, float]:
    """What a sender at the near end of a path has sent to a receiver at its other end."""
    far = shlex.join([PACELINE, "receive", *words, "--out", str(out)])
    line = f"sleep 2; {sender}; sleep 2"
    text, found = measured("--far", far, link, "--", "sh", "-c", f"rm -rf {out}; {line}")
    return (Results.read(out), found, text), steal(found)


GSTREAMER = (
    "timeout -s INT 12 gst-launch-1.0 -q -e rtpsession name=s rtcp-min-interval=500000000 "
    "audiotestsrc is-live=true samplesperbuffer=160 ! audio/x-raw,rate=8000 ! alawenc ! "
    "rtppcmapay max-ptime=20000000 ! s.send_rtp_sink s.send_rtp_src ! "
    "udpsink host=198.18.0.2 port=5004 s.send_rtcp_src ! udpsink host=198.18.0.2 port=5005 sync=false async=false "
    "udpsrc port=5005 ! s.recv_rtcp_sink s.sync_src ! fakesink async=false"
)
"""A telephone's voice: 50 packets of 160 bytes a second, with reports."""


def test_gstreamers_voice_is_counted(tmp_path: Path) -> None:
    require("namespaces", "gstreamer")
    link = path(tmp_path, "1 Mbit/s", "200 ms", 'loss = { kind = "uniform", rate = "5 %" }\n')

    def measure() -> tuple[Received, float]:
        return received_from(link, tmp_path / "out", ["rtp://:5004?rtcpport=5005", "--for", "9s"], GSTREAMER)

    def check(found: Received) -> None:
        results, _, _ = found
        (row,) = results.flows.to_dicts()
        assert row["ended"] == "done"
        expected = row["packets_delivered"] + row["packets_lost"]
        assert 430 <= expected <= 470, "50 a second"
        assert 0.02 < row["loss_rate"] < 0.09
        assert row["goodput_bps"] == pytest.approx(64_000 * (1 - row["loss_rate"]), rel=0.05)
        assert 0 < row["feedback_share"] < 0.05

    conclusive(measure, check)


SERVE = """
import paceline
from paceline import _core
server = _core.Server("127.0.0.1:0", 20_000_000, 60.0, 16, None)
print(server.address, flush=True)
server.run()
"""


def _resident(process: int) -> int:
    """Bytes of memory that a process has."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _flood(port: int, count: int) -> None:
    """Datagrams of 40 senders: messages of every type of connections that there are not, and none at all."""
    noise = random.Random(1)
    senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(40)]
    try:
        for i in range(count):
            head = b"PT" + bytes([0x10 | i % 12, i % 32]) if i % 4 else b""
            senders[i % len(senders)].sendto(head + noise.randbytes(noise.randrange(80)), ("127.0.0.1", port))
    finally:
        for sender in senders:
            sender.close()


def test_a_flood_leaves_a_servers_memory_as_it_was() -> None:
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(":")[2])
            send("127.0.0.1", "tfrc", duration_s=0.5, port=port)
            before = _resident(server.pid)
            with ThreadPoolExecutor(1) as threads:
                flooded = threads.submit(_flood, port, 100_000)
                while not flooded.done():
                    row = send("127.0.0.1", "tfrc", duration_s=0.5, port=port).flows.row(0, named=True)
                    assert row["goodput_bps"] > 1e5
                flooded.result()
            # 30 bytes for each datagram would be 3 MB; a flow's own tables are less than one.
            assert _resident(server.pid) - before < 2e6
        finally:
            server.terminate()
