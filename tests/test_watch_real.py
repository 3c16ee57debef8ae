"""`paceline watch` follows programs that know nothing of it: real connections of the kernel's TCP."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl
import pytest

import paceline
from needs import require
from realtime import undisturbed

pytestmark = pytest.mark.realtime

Done = subprocess.CompletedProcess[str]

SERVER = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family)
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    while connection.recv(1 << 16):
        pass
    connection.close()
"""
CLIENT = """
import socket, sys, time
host, port, size, pause, cc = sys.argv[1], *sys.argv[2:6]
connection = socket.create_connection((host, int(port)))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, cc.encode())
piece = bytes(10_000)
for _ in range(int(size) // len(piece)):
    connection.sendall(piece)
    time.sleep(float(pause))
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""


def paceline_command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "paceline", "watch", *map(str, arguments)]


def call(*arguments: object, within: tuple[str, ...] = ()) -> Done:
    """The command in a process of its own."""
    environment = {**os.environ, "COLUMNS": "150", "NO_COLOR": "1"}
    return subprocess.run(
        [*within, *paceline_command(*arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """The process, which does not outlive the block."""
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def server(*within: str, host: str = "127.0.0.1", port: int = 0) -> Iterator[tuple[int, int]]:
    """A program that reads what it gets: its port and process."""
    command = [*within, sys.executable, "-c", SERVER, host, str(port)]
    with ended(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid


def client(
    port: int, size: int, pause_s: float = 0.0, cc: str = "reno", host: str = "127.0.0.1"
) -> list[str]:
    """The command of a program that sends."""
    return [sys.executable, "-c", CLIENT, host, str(port), str(size), str(pause_s), cc]


def test_a_command_is_followed_as_it_counts_itself(tmp_path: Path) -> None:
    require("iperf3", "cubic")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = ["iperf3", "-s", "-1", "-p", str(port)]
    with ended(subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True)):
        time.sleep(0.3)
        program = ["timeout", "20", "iperf3", "-c", "127.0.0.1", "-p", str(port), "--connect-timeout", "3000"]
        done = call("--out", tmp_path / "w", "--", *program, "-b", "20M", "-t", "1", "-C", "cubic", "-J")
    assert done.returncode == 0, done.stderr
    assert f"127.0.0.1:{port}" in done.stderr
    theirs = json.loads(done.stdout)["end"]["sum_sent"]
    results = paceline.Results.read(tmp_path / "w")
    assert len(results.flows) == 2, "control and data"
    data = results.flows.sort("bytes_delivered").row(1, named=True)
    # iperf3 sends a cookie of 37 bytes first, which it does not count.
    assert data["bytes_delivered"] - theirs["bytes"] in range(100)
    assert (data["cc"], data["profile"], data["program"]) == ("cubic", "kernel", "iperf3")
    assert data["packets_retransmitted"] == theirs["retransmits"]
    assert 0 < data["rtt_min_s"] <= data["rtt_mean_s"] < 0.1
    assert data["cwnd_max_packets"] >= 10
    assert (data["pid"] > 1, data["ended"]) == (True, "closed")
    own = pl.col("flow") == data["flow"], pl.col("instance") == data["instance"]
    kernel = results.series("kernel").filter(*own)
    assert kernel["acked_bytes"].max() == data["bytes_delivered"]
    assert kernel["acked_bytes"].is_sorted()
    assert len(kernel) > 10, "too few readings"
    assert set(kernel["state"].drop_nulls()) >= {"established", "closed"}
    # The log's rates add up to what was moved.
    rate = results.series("rate").filter(*own)
    lengths = rate["time_s"].diff().fill_null(rate["time_s"][0] - data["start_s"])
    moved = float((lengths * rate["goodput_bps"]).sum()) / 8
    assert moved == pytest.approx(data["bytes_delivered"], abs=1)
    # Its figures are drawn as a simulated run's.
    plot = [sys.executable, "-m", "paceline", "plot", str(tmp_path / "w"), "--out", str(tmp_path / "f.svg")]
    drawn = subprocess.run(plot, capture_output=True, text=True, timeout=60, check=False)
    assert drawn.returncode == 0, drawn.stderr
    assert {Path(line).name for line in drawn.stdout.split()} == {
        f"f-{kind}.svg" for kind in ("cwnd", "rate", "kernel", "gauges")
    }
    figure = (tmp_path / "f-kernel.svg").read_text()
    assert "smoothed RTT (ms)" in figure
    assert "run 1" not in figure
    assert results.series("cwnd").columns[-4:] == [
        "cwnd_packets",
        "ssthresh_packets",
        "srtt_s",
        "in_flight_packets",
    ]


@pytest.mark.long
def test_ports_processes_and_what_they_leave_behind_are_followed(tmp_path: Path) -> None:
    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").read_text():
        pytest.skip("this host has no IPv6")
    with server(host="::1") as (port, _):
        program = client(port, 200_000, 0.05, host="::1")
        with ended(subprocess.Popen(program, text=True)) as process:
            flows = paceline.watch(port=port, every_s=0.005, duration_s=0.7, out=tmp_path / "w").flows
            process.wait(20)
        assert len(flows) == 2, "both ends"
        assert set(flows["to"]) == {f"[::1]:{port}"}
        assert flows["cwnd_mean_packets"].null_count() == 1, (
            "what the sender's TCP does is not seen from the receiver"
        )
    with server() as (port, _):
        words = " ".join(f"'{word}'" for word in client(port, 100_000, 0.02))
        with ended(subprocess.Popen(["sh", "-c", f"sleep 0.5; {words}; true"], text=True)) as process:
            found = paceline.watch(pid=process.pid, duration_s=30)
        assert found.summaries[0]["end_s"] < 20, "it ends when the process has ended"
        (flow,) = found.flows.to_dicts()
        assert flow["bytes_delivered"] == 100_000
        assert flow["start_s"] > 0.2
        orphan = " ".join(f"'{word}'" for word in client(port, 50_000, 0.02))
        # The command waits for it, at most 20 s, without being its parent.
        done = tmp_path / "done"
        wait = f"n=0; while [ ! -e {done} ] && [ $n -lt 200 ]; do sleep 0.1; n=$((n+1)); done"
        found = paceline.watch(command=["sh", "-c", f"({orphan} && touch {done} & ) ; {wait}"])
    (flow,) = found.flows.to_dicts()
    assert (flow["bytes_delivered"], flow["program"][:6]) == (50_000, "python")
    assert found.manifest["exit_code"] == 0


@pytest.mark.long
def test_ones_own_connections_take_no_privilege_and_another_users_do() -> None:
    require("root")
    code = (
        "import os\n"
        "from paceline import PacelineError, watch  # before: modules may lie where this user cannot read\n"
        "os.setgroups([]); os.setuid(65534)\n"
        "try: watch(pid=1, duration_s=1)\nexcept PacelineError as e: print(e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert "which sockets process 1 has open" in done.stdout, done.stdout + done.stderr
    assert "root" in done.stdout
    # one's own
    code = """
import ctypes, json, os, socket, threading, time
from paceline import _core
"x".encode("idna")  # a module that this user may not be able to read later
os.setgroups([]); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, as a program has it that was started by this user
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
def talk():
    time.sleep(0.3)
    client.sendall(bytes(4321)); server.recv(5000); client.close(); server.close()
threading.Thread(target=talk).start()
found = _core.TcpWatch("processes", [os.getpid()], 0.01, 0.05, 1.0).run("mine")
for flow in json.loads(found.summary_json)["flows"]:
    print(flow["bytes_delivered"], flow["ended"], flow["pid"] == os.getpid())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    # The FIN that a receiver has counted is one byte, in a state that does not tell of it.
    assert re.fullmatch("(432[12] closed True\n){2}", done.stdout), done.stdout + done.stderr


@contextmanager
def shaped(rate: str, limit: str) -> Iterator[tuple[str, str, str]]:
    """Namespaces in a row: a sender's (10.9.1.1), a router's that shapes what it hands on, a receiver's (10.9.2.1).

    The queue does not stand at the sender, whose TCP would see to it that it stays short (TCP small queues).
    """
    names = [f"paceline-{role}-{os.getpid()}" for role in ("a", "router", "b")]
    a, router, b = names

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)

    with ExitStack() as stack:
        for name in names:
            ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False, capture_output=True)
        for net, (name, device) in enumerate(((a, "left"), (b, "right")), 1):
            ip("-n", router, "link", "add", device, "type", "veth", "peer", "name", "v", "netns", name)
            for where, end, last in ((name, "v", 1), (router, device, 2)):
                # A packet of the shaper is a packet of the wire.
                ip("-n", where, "link", "set", end, "gso_max_segs", "1")
                ip("-n", where, "addr", "add", f"10.9.{net}.{last}/24", "dev", end)
                ip("-n", where, "link", "set", end, "up")
            ip("-n", name, "route", "add", "default", "via", f"10.9.{net}.2")
        inside = ["ip", "netns", "exec", router]
        forward = [*inside, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]
        shape = [*inside, "tc", "qdisc", "add", "dev", "right", "root", "tbf", "rate", rate, "burst", "3kb"]
        for command in (forward, [*shape, "limit", limit]):
            subprocess.run(command, check=True, capture_output=True, timeout=20)
        yield a, router, b


def drops(namespace: str) -> int:
    done = subprocess.run(
        ["ip", "netns", "exec", namespace, "tc", "-s", "-j", "qdisc", "show", "dev", "right"],
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    )
    return int(json.loads(done.stdout)[0]["drops"])


@pytest.mark.long
def test_the_log_agrees_with_a_shaped_path(tmp_path: Path) -> None:
    """Over 10 Mbit/s and 50 kB: window by RTT is the rate, drops are retransmitted, the rate is the link's."""
    require("shaper")

    def measure() -> tuple[paceline.Results, int]:
        with (
            shaped("10mbit", "50kb") as (a, router, b),
            server("ip", "netns", "exec", b, host="10.9.2.1") as (port, _),
        ):
            before = drops(router)
            program = ["ip", "netns", "exec", a, *client(port, 6_000_000, host="10.9.2.1")]
            with ended(subprocess.Popen(program, text=True)) as process:
                # The program has the namespace's network by now, the watch has not.
                time.sleep(0.4)
                found = paceline.watch(pid=process.pid, duration_s=30)
            return found, drops(router) - before

    found, dropped = undisturbed(measure)
    (flow,) = found.flows.to_dicts()
    kernel = found.series("kernel").filter(pl.col("state") == "established")
    steady = kernel.filter(pl.col("time_s") > flow["start_s"] + 1.5)
    moved = steady["acked_bytes"][-1] - steady["acked_bytes"][0]
    lasted = steady["time_s"][-1] - steady["time_s"][0]
    measured = moved * 8 / lasted
    # 1448 bytes of payload in 1514 on the cable.
    assert measured == pytest.approx(10e6 * 1448 / 1514, rel=0.03)
    by_window = steady.select(
        (pl.col("cwnd_packets") * pl.col("mss_bytes") * 8 / pl.col("srtt_s")).median()
    ).item()
    assert by_window == pytest.approx(measured, rel=0.1)
    assert dropped > 5, "the queue never overflowed"
    resent = kernel["retransmits"].max()
    assert isinstance(resent, float)
    # Of the drops before the watch began none is counted; a lost retransmission is sent once more.
    assert 0.7 * dropped <= resent <= 1.2 * dropped + 3
    # The queue of 50 kB at 10 Mbit/s lasts 40 ms.
    assert 0.015 < flow["rtt_mean_s"] < 0.045
