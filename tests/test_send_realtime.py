"""Flows over the loopback interface in real time: one of each kind.

What flows do and measure is tested in virtual time (`crates/live/tests/session`); here is what a real clock, real
sockets and processes add.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import paceline
import ports
import qlog_schema
from needs import require
from own_controllers import TWINS
from paceline import realtime
from paceline.errors import LiveError
from paceline.live.keys import new_key, read_key
from paceline.live.send import listen, send
from paceline.results.results import Results

pytestmark = pytest.mark.realtime

PROGRAM = [sys.executable, "-m", "paceline"]


def served(key: bytes | None = None, qlog: Path | None = None) -> contextlib.AbstractContextManager[int]:
    """The port of a server."""
    logs = None if qlog is None else (str(qlog), 100, 100_000_000)
    return ports.serving(listen("127.0.0.1", 0, 20_000_000, 60.0, 16, key, qlogs=logs))


def test_a_flow_of_each_kind(tmp_path: Path) -> None:
    """Side by side to a server with a key: TCP both ways, TFRC, the kernel's TCP, calls that share, a stream."""
    require("reno")
    key, out, logs, of_calls = (tmp_path / name for name in ("key", "out", "logs", "calls"))
    new_key(key)
    coupled = {"app.kind": "encoder", "coupled.group": "call"}
    media = {"app.length": "1 s", "app.media_rate": "500 kbit/s", "app.buffer": "10 %"}
    with served(read_key(key)) as port, ThreadPoolExecutor(5) as threads:

        def begin(cc: str, lasts_s: float, **options: Any) -> Future[Results]:
            return threads.submit(
                send, "127.0.0.1", cc, duration_s=lasts_s, port=port, key_file=key, **options
            )

        window = {"receive_window": 20}
        tcp = begin("vegas", 1.0, direction="both", flows=2, set=window, log_events=logs, out=out)
        tfrc = begin("tfrc", 1.0, direction="reverse")
        kernel = begin("kernel:reno", 1.0, direction="both")
        calls = begin("nada", 2.0, flows=2, set=coupled, log_events=of_calls)
        stream = begin("newreno", 2.0, app="stream", set=media)
    _tcp(tcp.result(), logs, out)
    (row,) = tfrc.result().flows.to_dicts()
    assert (row["flow"], row["from"], row["to"], row["ended"]) == ("tfrc", "127.0.0.1", "here", "done")
    assert 1e5 < row["goodput_bps"] < 21e6
    assert row["loss_event_rate"] is not None or row["packets_lost"] == 0
    for row in kernel.result().flows.to_dicts():
        assert 1e6 < row["goodput_bps"] < 21e6, row
        assert (row["cc"], row["app"]) == ("reno", "ftp"), row
        assert 0 < row["rtt_min_s"] <= row["rtt_mean_s"], row
    one, other = calls.result().flows["goodput_bps"]
    assert one == pytest.approx(other, rel=0.2)
    events = list(of_calls.glob("*.events"))
    assert len(events) == 2
    for log in events:
        inputs, datagrams, _, unread = paceline.replay(log)
        assert (inputs > 100, datagrams > 20, unread) == (True, True, 0), log
    (played,) = stream.result().table("streams").to_dicts()
    assert (played["flow"], played["completed"]) == ("newreno", True)
    assert 0 < played["fill_s"] < 1


def _tcp(results: Results, logs: Path, out: Path) -> None:
    """Two flows each way, as they are told of, written and logged."""
    rows = results.flows.to_dicts()
    names = [("vegas", 0), ("vegas", 1), ("vegas-back", 0), ("vegas-back", 1)]
    assert [(row["flow"], row["instance"]) for row in rows] == names
    for row in rows:
        assert 1e5 < row["goodput_bps"] < 21e6, row
        assert row["packets_sent"] >= row["packets_delivered"] > 0, row
        assert 0 < row["rtt_min_s"] <= row["rtt_mean_s"], row
    assert all(flow["well"] for flow in results.manifest["notes"]["flows"]), results.manifest["notes"]
    assert set(results.recorded()) >= {"cwnd", "rate", "sequence"}
    again = Results.read(out)
    assert again.flows.height == 4
    assert again.series("rate").height == results.series("rate").height > 10
    events = sorted(logs.iterdir())
    assert len(events) == 4
    for log in events:
        inputs, datagrams, _, unread = paceline.replay(log)
        assert (inputs > 10, datagrams > 1, unread) == (True, True, 0), log
    spoilt = bytearray(events[0].read_bytes())
    spoilt[-1] ^= 1
    events[0].write_bytes(spoilt)
    with pytest.raises(LiveError, match="figure was"):
        paceline.replay(events[0])


def test_quic_both_ways_with_logs(tmp_path: Path) -> None:
    near, far, events = (tmp_path / name for name in ("near", "far", "events"))
    far.mkdir()
    with served(qlog=far) as port:
        results = send(
            f"quic://127.0.0.1:{port}", "bbr3", duration_s=1.5, direction="both", qlog=near, log_events=events
        )
    rows = {row["flow"]: row for row in results.flows.to_dicts()}
    for row in rows.values():
        assert 1e6 < row["goodput_bps"] < 20e6, row
        assert row["packets_sent"] >= row["packets_delivered"] > 100, row
        assert 0 < row["rtt_min_s"] <= row["rtt_mean_s"] <= row["rtt_max_s"], row
        assert (row["timeouts"], row["ended"]) == (None, "done"), row
    logs = {
        near / "bbr3-client.sqlog": ("client", "bbr3"),
        far / "127.0.0.1-1-server.sqlog": ("server", "bbr3"),
        far / "127.0.0.1-2-client.sqlog": ("client", "bbr3-back"),
        near / "bbr3-back-server.sqlog": ("server", "bbr3-back"),
    }
    assert {*near.iterdir(), *far.iterdir()} == {*logs}
    validators = [qlog_schema.validator(kind) for kind in ("Header", "Event")]
    for file, (vantage, flow) in logs.items():
        header, *records = qlog_schema.read_records(file)
        validators[0].validate(header)
        for event in records[:: max(1, len(records) // 150)]:
            validators[1].validate(event)
        assert header["trace"]["vantage_point"]["type"] == vantage
        (read,) = paceline.qlog(file, every_s=0.0).flows.to_dicts()
        assert read["ended"] == "closed", file
        if vantage == "client":
            # what `paceline watch` reads of it is what the flow has measured
            assert read["packets_sent"] == pytest.approx(rows[flow]["packets_sent"], abs=5)
            assert read["rtt_min_s"] == pytest.approx(rows[flow]["rtt_min_s"], rel=0.15)
    _replays(events, rows["bbr3"], tmp_path / "cut")


def _replays(folder: Path, row: dict[str, Any], other: Path) -> None:
    """The event log of what is sent from here; what comes from the server is decided there."""
    (file,) = folder.iterdir()
    calls, packets, seconds, _ = paceline.replay(file)
    assert packets == row["packets_sent"]
    assert calls > packets > 100
    assert 1.4 < seconds < 5
    other.write_bytes(file.read_bytes()[:-3])
    again = paceline.replay(other)
    assert again.inputs == calls - 1
    assert 3 < again.unread < 60
    changed = bytearray(file.read_bytes())
    changed[-1] ^= 1
    other.write_bytes(changed)
    with pytest.raises(LiveError, match=rf"cut: input {calls - 1} at .* the pacing rate was"):
        paceline.replay(other)


def test_ctrl_c_keeps_what_an_own_controller_has_sent(tmp_path: Path) -> None:
    cc, out, events = f"python:{TWINS / 'reno_twin.py'}:RenoTwin", tmp_path / "out", tmp_path / "events"
    with served() as port:
        words = ["send", f"quic://127.0.0.1:{port}", "--cc", cc, "--for", "60s", "--json"]
        command = [*PROGRAM, *words, "--log-events", str(events), "--out", str(out)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            try:
                until = time.monotonic() + 40
                while not (events.is_dir() and any(events.iterdir())):
                    assert time.monotonic() < until, "no flow has begun"
                    time.sleep(0.02)
                time.sleep(1.0)
                client.send_signal(signal.SIGINT)
                said, _ = client.communicate(timeout=40)
            finally:
                client.kill()
    assert client.returncode == 130
    (row,) = json.loads(said)["flows"]
    assert row["goodput_bps"] > 1e6
    assert 0.2 < row["active_s"] < 20
    assert json.loads((out / "manifest.json").read_text())["interrupted"]
    assert Results.read(out).flows["bytes_delivered"][0] > 0


def test_plain_rtp_to_a_receiver_that_tells_when_packets_arrive() -> None:
    port, watch = ports.free(), ThreadPoolExecutor(1)
    with watch:
        receiving = watch.submit(
            paceline.receive, f"rtp://127.0.0.1:{port}", duration_s=20.0, feedback="rfc8888"
        )
        ports.wait_until_taken(port)
        sent = send(
            f"rtp://127.0.0.1:{port}?localrtpport={ports.free()}",
            "nada",
            app="encoder",
            max_rate="1Mbit/s",
            duration_s=3.0,
        )
        received = receiving.result(40)
    (notes,) = sent.manifest["notes"]["flows"]
    assert (notes["well"], notes["sender_ended"]) == (True, "done"), notes
    assert notes["reported"]["reports"] >= 1
    (near,), (far,) = sent.flows.to_dicts(), received.flows.to_dicts()
    # what arrives is not known at the sender but by the reports
    assert [near[name] for name in ("goodput_bps", "bytes_delivered")] == [None] * 2
    assert far["ended"] == "peer closed"
    # a stream is one from its second packet in sequence on
    left = near["packets_sent"] - notes["no_room"]
    assert left - 5 <= far["packets_delivered"] <= left > 50
    assert far["packets_lost"] <= notes["no_room"]
    assert 0 < far["feedback_share"] < 0.05
    assert far["goodput_bps"] > 50e3


EMULATED = """
duration = "3 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
queue = { limit = "60 packets" }
[flow.bulk]
transport = "quic"
[flow.pair]
cc = "cubic"
transport = "quic"
count = 2
from = "right"
to = "left"
[flow.tcp]
cc = "cubic"
profile = "linux"
kernel = true
[flow.own]
cc = "cubic"
[flow.call]
cc = "gcc"
app = { kind = "encoder", max_rate = "500 kbit/s" }
"""


def test_an_emulated_run_has_logs_of_both_ends_and_a_calls_frames(tmp_path: Path) -> None:
    """Beside flows that are no connections over QUIC; delays of frames are whole, as the two ends' clocks are one."""
    require("namespaces")
    logs = tmp_path / "logs"
    results = paceline.emulate(
        paceline.parse(EMULATED), qlog=logs, record=("frames",), record_every_s=realtime.RECORD_EVERY_S
    )
    names = ("bulk", "pair.0", "pair.1")
    files = {f"{name}-{end}.sqlog" for name in names for end in ("client", "server")}
    assert {file.name for file in logs.iterdir()} == files
    # The path's queue drops and holds what neither end knows of: what came is what left, but for that.
    for name in names:
        near, far = (paceline.qlog(logs / f"{name}-{end}.sqlog", every_s=0.0) for end in ("client", "server"))
        (sent,), (came,) = near.flows.to_dicts(), far.flows.to_dicts()
        flow, _, instance = name.partition(".")
        (row,) = results.flows.filter(flow=flow, instance=int(instance or 0)).to_dicts()
        assert sent["cc"] == row["cc"]
        # a run ends at its time, which may be before its connections' end
        assert {sent["ended"], came["ended"]} <= {"closed", "open"}
        assert sent["packets_sent"] == pytest.approx(row["packets_sent"], rel=0.02, abs=10)
        left, arrived = near.series("qlog")["sent_packets"], far.series("qlog")["received_packets"]
        assert 0.8 * left.to_list()[-1] < arrived.to_list()[-1] <= left.to_list()[-1] > 100, name
    rows = results.series("frames")
    (call,) = results.flows.filter(flow="call").to_dicts()
    assert rows["flow"].unique().to_list() == ["call"]
    assert abs(rows["frames"].sum() - call["frames_complete"]) <= 3, call
    known = rows.filter(pl.col("frames") > 0)
    mean = np.average(known["frame_delay_s"], weights=known["frames"])
    assert mean == pytest.approx(call["frame_delay_mean_s"], abs=0.005)
    assert min(known["frame_delay_s"].to_list()) > 0.019
    assert (known["frame_delay_max_s"] >= known["frame_delay_s"]).all()
