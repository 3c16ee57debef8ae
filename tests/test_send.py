"""`paceline.send` to a server on the loopback interface: results, files, event logs, mistakes."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import paceline
from paceline import _core
from paceline.cli.send import now
from paceline.errors import LiveError, PacelineError, ScenarioError
from paceline.keys import new_key
from paceline.results import Results
from paceline.sending import controller_of, place, send
from paceline.spoken import by_command

pytestmark = pytest.mark.realtime

KEY = bytes(range(32))


def _serving(key: bytes | None) -> Iterator[int]:
    server = _core.Server("127.0.0.1:0", 20_000_000, 60.0, 16, key)
    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(server.run)
        try:
            yield int(server.address.rpartition(":")[2])
        finally:
            server.stop()
    done.result()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    yield from _serving(None)


@pytest.fixture
def guarded() -> Iterator[int]:
    yield from _serving(KEY)


def test_results_are_those_of_a_simulated_run(port: int, tmp_path: Path) -> None:
    out, logs = tmp_path / "out", tmp_path / "logs"
    results = send(
        "127.0.0.1",
        "vegas",
        duration_s=1.0,
        direction="both",
        flows=2,
        set={"receive_window": 20},
        port=port,
        log_events=logs,
        out=out,
    )
    rows = results.flows.to_dicts()
    assert [(row["flow"], row["instance"]) for row in rows] == [
        ("vegas", 0),
        ("vegas", 1),
        ("vegas-back", 0),
        ("vegas-back", 1),
    ]
    for row in rows:
        assert 1e5 < row["goodput_bps"] < 21e6
        assert row["packets_sent"] >= row["packets_delivered"] > 0
        assert 0 < row["rtt_min_s"] <= row["rtt_mean_s"]
    assert set(results.recorded()) >= {"cwnd", "rate", "sequence"}
    again = Results.read(out)
    assert again.flows.height == 4
    assert again.series("rate").height == results.series("rate").height > 10
    events = sorted(logs.iterdir())
    assert len(events) == 4
    for log in events:
        inputs, datagrams, _, unread = paceline.replay(log)
        assert inputs > 10
        assert datagrams > 1
        assert unread == 0
    spoilt = bytearray(events[0].read_bytes())
    spoilt[-1] ^= 1
    events[0].write_bytes(spoilt)
    with pytest.raises(LiveError, match="figure was"):
        paceline.replay(events[0])
    with pytest.raises(LiveError, match="no event log"):
        paceline.replay(__file__)


def test_shares_of_coupled_flows_are_in_their_event_logs(port: int, tmp_path: Path) -> None:
    coupled = {"app.kind": "encoder", "coupled.group": "call"}
    rows = send(
        "127.0.0.1", "nada", duration_s=2.0, flows=2, set=coupled, port=port, log_events=tmp_path
    ).flows.to_dicts()
    assert rows[0]["goodput_bps"] == pytest.approx(rows[1]["goodput_bps"], rel=0.2)
    logs = list(tmp_path.glob("*.events"))
    assert len(logs) == 2
    for log in logs:
        inputs, datagrams, _, unread = paceline.replay(log)
        assert inputs > 100
        assert datagrams > 20
        assert unread == 0


def test_a_stream_is_played(port: int) -> None:
    results = send(
        "127.0.0.1",
        "newreno",
        duration_s=3.0,
        app="stream",
        set={"app.length": "2 s", "app.media_rate": "500 kbit/s", "app.buffer": "10 %"},
        port=port,
    )
    (stream,) = results.table("streams").to_dicts()
    assert stream["flow"] == "newreno"
    assert stream["completed"]
    assert 0 < stream["fill_s"] < 1


def test_mistakes_are_said_before_anything_is_sent(port: int, tmp_path: Path) -> None:
    with pytest.raises(PacelineError, match=r"no controller tfrx \(did you mean tfrc\?\)"):
        send("127.0.0.1", "tfrx", port=port)
    with pytest.raises(ScenarioError, match=r"^set params.phi: "):
        send("127.0.0.1", "newreno", set={"params.phi": 2}, port=port)
    with pytest.raises(ScenarioError, match=r"^app: "):
        send("127.0.0.1", "tfrc", app="wev", port=port)
    with pytest.raises(ScenarioError, match=r"^rate: "):
        send("127.0.0.1", "udp", rate="2 apples", port=port)
    with pytest.raises(PacelineError, match="one of them"):
        send(f"127.0.0.1:{port}", "tfrc", port=port - 1)
    with pytest.raises(PacelineError, match='rate="2Mbit/s"'):
        send("127.0.0.1", "udp", port=port)
    with pytest.raises(PacelineError, match=r'^rate is the rate of cc="udp"; others find theirs'):
        send("127.0.0.1", "tfrc", rate="1 Mbit/s", port=port)
    with by_command():
        with pytest.raises(ScenarioError, match=r"^--set params.phi: "):
            send("127.0.0.1", "newreno", set={"params.phi": 2}, port=port)
        with pytest.raises(PacelineError, match=r"^--rate is the rate of --cc udp; others find theirs"):
            send("127.0.0.1", "tfrc", rate="1 Mbit/s", port=port)
    with pytest.raises(PacelineError, match="bulk transfer"):
        send("127.0.0.1", "kernel:reno", app="web", port=port)
    with pytest.raises(LiveError, match="--max-duration"):
        send("127.0.0.1", "tfrc", duration_s=61, port=port)
    with pytest.raises(LiveError, match="No `paceline serve` can be reached there: start one"):
        send("127.0.0.1", "tfrc", port=1)
    none = tmp_path / "key"
    none.write_text("a word\n")
    with pytest.raises(PacelineError, match="`paceline key FILE` makes one"):
        send("127.0.0.1", "tfrc", port=port, key_file=none)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("there.example", ("there.example", 5050)),
        ("there.example:6000", ("there.example", 6000)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("::1", ("::1", 5050)),
        ("[::1]", ("::1", 5050)),
        ("[fe80::1%eth0]:65535", ("fe80::1%eth0", 65535)),
    ],
)
def test_a_place_may_have_its_port(given: str, meant: tuple[str, int]) -> None:
    assert place(given) == meant
    assert place(given, meant[1]) == meant


@pytest.mark.parametrize(
    "given", ["", "there:", "there:port", "there:0", "there:65536", "http://there", "[::1", "a b", "[::1]:x"]
)
def test_what_is_no_place_is_said(given: str) -> None:
    with pytest.raises(PacelineError, match=r"HOST:PORT|no port"):
        place(given)


def test_schemes_have_the_names_that_papers_give_them() -> None:
    for given in ("vegas", "tcp-vegas", "TCP/Vegas", "tcp_vegas"):
        assert controller_of(given) == "vegas"
    assert [controller_of(given) for given in ("LDA-Plus", "kernel:BBR")] == ["lda-plus", "kernel:BBR"]
    with pytest.raises(PacelineError, match=r"no controller tcp-yeah.*kernel:NAME"):
        controller_of("tcp-yeah")


def test_a_port_beside_its_host_is_taken(port: int) -> None:
    results = send(f"127.0.0.1:{port}", "TCP-Vegas", duration_s=0.3)
    assert (results.manifest["port"], results.flows["cc"][0]) == (port, "vegas")


def test_a_key(guarded: int, port: int, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    new_key(right)
    right.write_text(f"paceline-key:{KEY.hex()}\n")
    new_key(wrong)
    with pytest.raises(LiveError, match="--key-file"):
        send("127.0.0.1", "tfrc", duration_s=0.3, port=guarded)
    with pytest.raises(LiveError, match="not the server's"):
        send("127.0.0.1", "tfrc", duration_s=0.3, port=guarded, key_file=wrong)
    with pytest.raises(LiveError, match="the server has no key"):
        send("127.0.0.1", "tfrc", duration_s=0.3, port=port, key_file=right)
    results = send("127.0.0.1", "tfrc", duration_s=0.3, port=guarded, key_file=right)
    assert results.manifest["notes"]["flows"][0]["well"]


def test_ctrl_c_keeps_what_is_done(port: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "paceline", "send", "127.0.0.1", "--port", str(port)]
    out = tmp_path / "out"
    with subprocess.Popen(
        [*command, "--cc", "tfrc", "--for", "50s", "--out", str(out)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    ) as running:
        stopper = threading.Timer(4.0, running.send_signal, [signal.SIGINT])
        begin = time.monotonic()
        stopper.start()
        said, _ = running.communicate(timeout=40)
        assert running.returncode == 130
        assert time.monotonic() - begin < 20
    assert "tfrc" in said
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["interrupted"]
    assert Results.read(out).flows["bytes_delivered"][0] > 0


def test_a_server_that_is_killed_ends_the_flow_in_seconds(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "paceline",
        "serve",
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--for",
        "60s",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = server.stderr.readline()
        where = int(said.partition(" on ")[2].partition(",")[0].rpartition(":")[2])
        killer = threading.Timer(1.5, server.kill)
        killer.start()
        begin = time.monotonic()
        results = send(
            "127.0.0.1", "tfrc", duration_s=50, set={"app.size": "1 GB"}, port=where, out=tmp_path / "out"
        )
        assert time.monotonic() - begin < 15
    (flow,) = results.manifest["notes"]["flows"]
    assert not flow["well"]
    assert "nobody takes datagrams" in flow["sender_ended"]
    assert results.flows["packets_sent"][0] > 0


def test_the_view_shows_rates_since_the_last_look() -> None:
    row = {
        "flow": "tfrc",
        "instance": 0,
        "forward": True,
        "time_s": 1.0,
        "packets": 10,
        "bytes": 125_000,
        "rtt_s": 0.05,
        "loss": 0.01,
        "figure": 1.0,
        "running": True,
        "over": False,
    }
    before: dict[tuple[str, int], tuple[float, int]] = {}
    first = now([row], before)
    assert [c.cells for c in first.columns if c.head == "rate"] == [["1 Mbit/s"]]
    second = now([{**row, "time_s": 2.0, "bytes": 375_000}], before)
    assert [c.cells for c in second.columns if c.head == "rate"] == [["2 Mbit/s"]]
    assert all(c.cells == [] for c in now([], {}).columns)


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


def test_what_comes_while_the_receiver_waits_is_counted_where_it_came() -> None:
    """A process without its processor for half a second finds what came meanwhile at once."""
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().rpartition(":")[2])
            threading.Timer(1.0, server.send_signal, [signal.SIGSTOP]).start()
            threading.Timer(1.5, server.send_signal, [signal.SIGCONT]).start()
            results = send("127.0.0.1", "udp", duration_s=2.5, rate="1 Mbit/s", port=port)
        finally:
            server.send_signal(signal.SIGCONT)
            server.terminate()
    rates = results.series("rate").filter(pl.col("time_s").is_between(0.3, 2.3))["goodput_bps"]
    # 1 Mbit/s is 8.3 packets of 1500 bytes each tenth of a second.
    assert rates.len() > 15
    assert rates.is_between(0.7e6, 1.3e6).all(), rates.to_list()


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
