"""`paceline gateway`, and the access point as a part of `paceline path`. What the gateway does to real connections is
tested in crates/gateway/tests."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from needs import require
from paceline import _core, paths
from paceline.cli import app
from paceline.cli.gateway import table
from paceline.errors import PacelineError
from paceline.plots import gateway

pytestmark = pytest.mark.realtime


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({}, "--lan IF is missing"),
        ({"lan": "a", "alpha": "20ms"}, "--alpha 20 ms must be at most --beta 15 ms"),
        ({"lan": "a", "algorithm": "sap-law"}, "--capacity RATE"),
        ({"lan": "a", "rate": "fast"}, "--rate fast: "),
        ({"lan": "a", "colour": "red"}, "colour"),
    ],
)
def test_mistakes_are_named(words: dict[str, str], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        _core.Gateway(json.dumps(words))


def test_a_run_is_written_and_told(tmp_path: Path) -> None:
    require("netns")
    out = tmp_path / "run.jsonl"
    command = f"{sys.executable} -m paceline gateway --lan lan0 --rate 20Mbit/s --for 1s --json --out {out}"
    made = "ip link add lan0 type veth peer name sta0; ip link set lan0 up"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"{made}; {command} && tc qdisc show dev lan0"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said, left = done.stdout.rsplit("}\n", 1)
    report = json.loads(said + "}")["report"]
    assert (report["algorithm"], report["delay_from"], report["lowered"]) == ("voap", "shaper", 0)
    assert "tbf" not in left, "the shaper goes with the gateway"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[-1] == report
    assert len(lines) == report["intervals"] + 1
    assert all(line["flows"] == [] for line in lines[:-1])


def test_it_keeps_the_privileges_alone_that_it_needs() -> None:
    """In all its threads."""
    require("root", "netns")
    command = f"{sys.executable} -m paceline gateway --lan lan0 --for 20s"
    made = "ip link add lan0 type veth peer name sta0; ip link set lan0 up"
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", f"{made}; exec {command}"], stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stderr is not None
            said = running.stderr.readline()
            threads = [
                dict(
                    line.split(":\t") for line in (task / "status").read_text().splitlines() if ":\t" in line
                )
                for task in Path(f"/proc/{running.pid}/task").iterdir()
            ]
            # CAP_NET_ADMIN, CAP_BPF
            needed = f"{1 << 12 | 1 << 39:016x}"
            kept = [tuple(thread[name] for name in ("CapEff", "CapPrm", "NoNewPrivs")) for thread in threads]
            assert kept == [(needed, needed, "1")] * len(threads), said
            assert len(threads) > 1
        finally:
            running.terminate()


def test_the_table_goes_without_columns_before_it_cuts_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    status = {**json.loads(INTERVAL), "left_alone": 2}
    status["flows"][0]["station"] = "192.168.100.200:50000"

    def shown(width: int) -> str:
        console = Console(width=width, force_terminal=False, highlight=False)
        console.print(table(status, width))
        return capsys.readouterr().out

    wide, narrow = shown(100), shown(70)
    assert "announced" in wide
    assert "announced" not in narrow
    for text in (wide, narrow):
        assert "192.168.100.200:50000" in text
        assert "beside 2 that began before the gateway" in " ".join(text.split())
        assert "8 Mbit/s" in text
    status["flows"] = []
    assert "station" not in shown(70)


FLOW = (
    '{"station": "10.0.0.2:1", "remote": "192.0.2.1:443", "rate_bps": 8e6, "advertised_bytes": 65535, '
    '"window_bytes": 30000, "outstanding_bytes": 29000, "rtt_s": 0.02}'
)
INTERVAL = (
    f'{{"time_s": 0.2, "delay_s": 0.01, "udp_bps": 1e5, "lowered": 3, "left_alone": 0, "flows": [{FLOW}]}}\n'
)


def test_what_a_gateway_wrote_is_plotted(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    second = INTERVAL.replace('"time_s": 0.2', '"time_s": 0.4').replace("30000", "null")
    file.write_text(INTERVAL + second + INTERVAL[:50])  # it was killed while it wrote
    intervals = gateway.read(file)
    assert [one["time_s"] for one in intervals] == [0.2, 0.4]
    waits, rates, windows = gateway.figure(intervals, "run").axes
    assert float(np.asarray(waits.lines[0].get_ydata())[0]) == pytest.approx(10.0)
    assert sorted(float(np.asarray(line.get_ydata())[0]) for line in rates.lines) == pytest.approx([0.1, 8.0])
    drawn = [np.asarray(line.get_ydata()).tolist() for line in windows.lines]
    assert [30.0, math.nan] in [pytest.approx(line, nan_ok=True) for line in drawn]
    done = CliRunner().invoke(app, ["plot", str(file)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run.png").exists()
    file.write_text(INTERVAL + "{}x\n" + INTERVAL)
    with pytest.raises(PacelineError, match=r"run\.jsonl:2: not an interval of a gateway"):
        gateway.read(file)
    file.write_text("{}\n")
    with pytest.raises(PacelineError, match="no interval of a gateway"):
        gateway.read(file)


def test_an_access_point_on_a_path_keeps_its_queue_short() -> None:
    require("namespaces", "iperf3")
    download = ["sh", "-c", "sleep 0.5; exec iperf3 -c 198.18.0.2 -C cubic -R -t 5 >/dev/null"]

    def backward(algorithm: str | None) -> tuple[float, float]:
        ran = paths.path("wide-area", download, far="iperf3 -s -1 >/dev/null", algorithm=algorithm)
        assert ran.status == 0
        (row,) = (row for row in ran.report["directions"] if row["direction"] == "backward")
        point = ran.report.get("access_point")
        assert (point is None) == (algorithm is None)
        assert point is None or point["lowered"] > 20
        return row["delay"]["p50_s"], row["delivered_bytes"]

    # The path's own delay is 36 ms, its rate 2 Mbit/s: 20 kB fill it, and of 29 kB 9 wait in the queue, 36 ms.
    long, most = backward(None)
    short, bytes_ = backward("window=28960B")
    assert long > 0.15
    assert 0.04 < short < 0.11
    assert bytes_ > 0.85 * most
