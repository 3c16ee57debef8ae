"""`paceline gateway` and the access point as a part of `paceline path`, in real time. What the gateway does to real
connections is tested in crates/gateway/tests."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from needs import require
from paceline.emulator import paths
from test_gateway import REPORT

pytestmark = pytest.mark.realtime


def test_a_run_is_written_and_told_and_has_the_privileges_alone_that_it_needs(tmp_path: Path) -> None:
    """In all its threads."""
    require("root", "netns")
    out = tmp_path / "run.jsonl"
    command = f"{sys.executable} -m paceline gateway --lan lan0 --rate 20Mbit/s --for 2s --json --out {out}"
    made = "ip link add lan0 type veth peer name sta0; ip link set lan0 up"
    line = f"{made}; {command} & echo $!; wait $! && tc qdisc show dev lan0"
    with subprocess.Popen(
        ["unshare", "--net", "sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            assert running.stdout is not None
            task = Path("/proc") / running.stdout.readline().strip() / "task"
            end = time.monotonic() + 20
            while not (out.exists() and out.read_text()):
                assert time.monotonic() < end, "no interval is written"
                time.sleep(0.02)
            threads = [
                dict(line.split(":\t") for line in (one / "status").read_text().splitlines() if ":\t" in line)
                for one in task.iterdir()
            ]
            said, error = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 0, error
    # CAP_NET_ADMIN, CAP_BPF
    needed = f"{1 << 12 | 1 << 39:016x}"
    kept = [tuple(thread[name] for name in ("CapEff", "CapPrm", "NoNewPrivs")) for thread in threads]
    assert kept == [(needed, needed, "1")] * len(threads)
    assert len(threads) > 1
    said, left = said.rsplit("}\n", 1)
    report = json.loads(said + "}")["report"]
    assert report.keys() == REPORT.keys()
    assert (report["algorithm"], report["delay_from"], report["lowered"]) == ("voap", "shaper", 0)
    assert "tbf" not in left, "the shaper goes with the gateway"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[-1] == report
    assert len(lines) == report["intervals"] + 1
    assert all(line["flows"] == [] for line in lines[:-1])


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
    long, all_bytes = backward(None)
    short, bytes_ = backward("window=28960B")
    assert long > 0.15
    assert 0.04 < short < 0.11
    assert bytes_ > 0.85 * all_bytes
