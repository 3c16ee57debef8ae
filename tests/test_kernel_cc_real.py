"""`paceline kernel-cc` and the kernel: Vegas and Veno for its TCP, beside the simulator's profile `linux`."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

import paceline
from needs import require, unprivileged
from paceline import _core
from paceline.errors import PacelineError
from paceline.live import kernel_cc
from paceline.realtime import Emulator
from paceline.results.results import RunRecord
from realtime import conclusive

pytestmark = pytest.mark.realtime

PATH = """
duration = "10 s"
warmup = "2 s"
profile = "linux"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { limit = "20 packets" }
[flow.a]
kernel = true
"""


def explains_how_to_get_it() -> bool:
    """Whether a flow without its program is told so; not where this kernel has Vegas."""
    if {"vegas", "pl_vegas"} & set(kernel_cc.available()):
        return True
    server = _core.Server("127.0.0.1:0", 10**9, 60.0, 16)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(server.run)
        try:
            port = int(server.address.rpartition(":")[2])
            results = paceline.send("127.0.0.1", "kernel:vegas", duration_s=0.2, port=port)
            return "`paceline kernel-cc load vegas` loads it" in results.flows["ended"][0]
        finally:
            server.stop()


@pytest.fixture
def both() -> Iterator[list[str]]:
    """Vegas and Veno of these sources, loaded; unloaded afterwards."""
    require("struct_ops")
    names = kernel_cc.programs()
    for name in names:
        # Of another version, or of a test that was killed.
        if kernel_cc.known(name) in kernel_cc.available():
            kernel_cc.unload(name)
    assert explains_how_to_get_it()
    for name in names:
        kernel_cc.load(name)
    yield names
    for name in names:
        kernel_cc.unload(name)
    left = {kernel_cc.known(name) for name in names} & set(kernel_cc.available())
    assert not left, "nothing is left behind"


def named(text: str, name: str) -> str:
    """A program with another TCP name."""
    return text.replace("pl_vegas", name)


def test_programs_are_taken_in_and_connections_outlive_them(both: list[str], tmp_path: Path) -> None:
    assert both == ["vegas", "veno"]
    assert {"pl_vegas", "pl_veno"} <= set(kernel_cc.available())
    assert {one.name for one in kernel_cc.loaded()} >= {"pl_vegas", "pl_veno"}
    program = tmp_path / "mine.c"
    program.write_text(named(kernel_cc.source("vegas").read_text(), "plt_outlived"))
    assert kernel_cc.load(str(program)).name == "plt_outlived"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"plt_outlived")
        client.connect(server.getsockname())
        (there, _) = server.accept()
        with there:
            assert kernel_cc.unload(str(program)).name == "plt_outlived"
            assert "plt_outlived" not in kernel_cc.available()
            client.sendall(b"x" * 100_000)
            got = 0
            while got < 100_000:
                got += len(there.recv(65_536))
        used = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert used.startswith(b"plt_outlived\0")


REFUSED = (
    (("u32 samples;", "u32 samples"), PacelineError, ["clang cannot compile", "error: expected ';'"]),
    (
        ("TCP(sk)->snd_nxt;", "TCP(sk)->snd_nxt; TCP(sk)->snd_nxt = 0;"),
        kernel_cc.KernelCcError,
        [
            "bpf(BPF_PROG_LOAD) of plt_refused_init: Permission denied",
            "verifier says",
            "no write support to tcp_sock",
        ],
    ),
    (
        ('.name = "pl_vegas"', '.name = "reno"'),
        kernel_cc.KernelCcError,
        ["bpf(BPF_MAP_UPDATE_ELEM) was refused", "EEXIST", "change `.name`"],
    ),
    (
        ("tcp_slow_start(tp, acked);", "tcp_fast_start(tp, acked);"),
        PacelineError,
        ["clang cannot compile", "tcp_fast_start"],
    ),
)
"""A change to Vegas, and what is said of it."""


@pytest.mark.long
def test_what_clang_the_kernel_and_privileges_refuse_is_said(tmp_path: Path) -> None:
    require("struct_ops", "namespaces")
    program = tmp_path / "mine.c"
    text = kernel_cc.source("vegas").read_text()
    before = kernel_cc.loaded()
    for change, error, parts in REFUSED:
        assert change[0] in text
        program.write_text(named(text.replace(*change, 1), "plt_refused"))
        with pytest.raises(error) as raised:
            kernel_cc.load(str(program))
        for part in parts:
            assert part in str(raised.value), raised.value
        assert len(str(raised.value).splitlines()) <= 8
    assert kernel_cc.loaded() == before
    program.write_text(text)
    load = [sys.executable, "-m", "paceline", "kernel-cc", "load", str(program)]
    for command, part in (
        (unprivileged(*load), "EPERM): congestion controls are loaded by root"),
        (["unshare", "--user", "--map-root-user", *load], "namespace's root is not enough"),
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert part in done.stderr, done.stderr


def median_delay_s(frame: pl.DataFrame) -> float:
    """How long packets had waited at the bottleneck half of the time, in the measured part of the flow. A path in real
    time is there some seconds before its flows: it is counted back from their end."""
    queue = frame.filter(pl.col("direction") == "forward")
    end = float(queue.filter(pl.col("packets") > 0)["time_s"].to_numpy().max())
    found = queue.filter(pl.col("time_s").is_between(end - 7.5, end - 0.2))["delay_s"].median()
    assert isinstance(found, float)
    return found


@pytest.mark.long
def test_on_the_same_path_they_do_what_the_simulators_do(both: list[str]) -> None:
    require("namespaces")
    scenarios = {cc: paceline.parse(f'{PATH}cc = "{cc}"\n', name=cc) for cc in both}
    simulated = {cc: paceline.run(s, record=("queue",), record_every_s=0.02) for cc, s in scenarios.items()}

    def measure() -> tuple[dict[str, RunRecord], float]:
        with ThreadPoolExecutor(len(both)) as threads:
            runs = {cc: threads.submit(Emulator(), s, 1, ["queue"], 0.02) for cc, s in scenarios.items()}
            done = {cc: run.result() for cc, run in runs.items()}
        return done, max(run.summary["path"]["host"]["steal_share"] for run in done.values())

    def check(runs: dict[str, RunRecord]) -> None:
        for cc, run in runs.items():
            (real,) = run.summary["flows"]
            (expected,) = simulated[cc].flows.to_dicts()
            assert real["cc"] == f"pl_{cc}"
            assert real["goodput_bps"] == pytest.approx(expected["goodput_bps"], rel=0.05), cc
            delay, its = median_delay_s(run.series["queue"]), median_delay_s(simulated[cc].series("queue"))
            # Vegas rests anywhere between alpha and beta, two packets of 3 ms; and a kernel's flow begins with a short
            # packet, whose round trip is a base that lies most of a packet lower.
            low, high = (-0.009, 0.006) if cc == "vegas" else (-0.15 * its, 0.15 * its)
            assert low < delay - its < high, (cc, delay, its)
            # Veno grows half as fast on a long queue, and so loses a fourth as often as Reno (14 times).
            assert real["packets_retransmitted"] <= 2 * expected["packets_retransmitted"], (cc, real)

    conclusive(measure, check)
