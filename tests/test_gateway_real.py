"""`paceline gateway` and the access point as a part of `paceline path`, in real time. What the gateway does to real
connections is tested in crates/gateway/tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from needs import require
from paceline import paths
from test_gateway import REPORT

pytestmark = pytest.mark.realtime


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
    assert report.keys() == REPORT.keys()
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


@pytest.mark.long
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
