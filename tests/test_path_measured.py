"""Real programs over emulated paths, measured: the kernel's TCP, a full queue, and a path fitted to what they met."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

import paceline
from needs import require
from over_path import FIRST, IPERF3, LINK, PACELINE, direction, measured, run, steal, summary, times
from realtime import conclusive

pytestmark = [pytest.mark.realtime, pytest.mark.long]

HEADERS = 52
"""Of a segment of the kernel's TCP: IPv4, TCP, time stamps."""


@pytest.fixture
def link(tmp_path: Path) -> str:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    return str(file)


@pytest.mark.parametrize("cc", ["reno", "cubic", "bbr"])
def test_kernel_tcp_fills_the_path(link: str, cc: str) -> None:
    require("namespaces", "iperf3", cc)

    def measure() -> tuple[float, float]:
        line = f"{IPERF3} -C {cc} -t 4 -O 1"
        text, found = measured("--far", "iperf3 -s -1", link, "--", "sh", "-c", line)
        return json.loads(text)["end"]["sum_received"]["bits_per_second"], steal(found)

    def check(rate: float) -> None:
        payload = 10e6 * (1500 - HEADERS) / 1500
        assert 0.95 * payload < rate < 1.02 * payload

    conclusive(measure, check)


def test_a_filled_queue_is_as_deep_as_set(link: str) -> None:
    """Datagrams at 1.3 times the rate: what is lost, how long what is left waits, and what is recorded over time."""
    require("namespaces", "iperf3", "ping")

    def measure() -> tuple[tuple[dict[str, Any], str, dict[str, Any]], float]:
        # iperf3 speaks first; the pings begin when the queue is full. iperf3 sends at each millisecond, and a ping's
        # interval is whole milliseconds: one that once finds no room may never find any, so there are several.
        pings = "for _ in 1 2 3 4 5 6; do ping -n -c 5 -i 0.05 -W 0.2 $PACELINE_PEER >&2; done"
        line = f"{IPERF3} -u -b 13M -l 1472 -t 5 & sleep 1.5; {pings}; wait"
        done = run("--json", "--far", "iperf3 -s -1", link, "--", "sh", "-c", line, before=FIRST)
        assert done.returncode == 0, done.stderr
        found = summary(done)
        return (json.loads(done.stdout), done.stderr, found), steal(found)

    def check(of_all: tuple[dict[str, Any], str, dict[str, Any]]) -> None:
        datagrams, text, found = of_all
        (queue,) = [q for q in found["queues"] if q["direction"] == "forward"]
        assert queue["max_packets"] == 60
        # one that finds 59 waiting may find another one's transmission begun
        assert 59 * 1500 * 8 / 10e6 < queue["delay_max_s"] <= 60 * 1500 * 8 / 10e6
        # Little's law: the packets that wait in the mean are those that come in a mean wait
        rate = queue["departures"] / found["end_s"]
        assert abs(queue["mean_packets"] / rate / queue["delay_mean_s"] - 1) < 0.02
        assert times(text), text
        # 60 packets of 1500 bytes at 10 Mbit/s, and the delays of both ways
        assert abs(statistics.median(times(text)) - (60 * 1500 * 8 / 10e6 * 1e3 + 40)) < 4, text
        received = datagrams["end"]["sum_received"]
        assert abs(received["bits_per_second"] / (10e6 * 1472 / 1500) - 1) < 0.05
        forward = direction(found, "forward")
        assert forward["drops"]["overflow"] == queue["drops"]["overflow"] > 500
        assert (
            forward["entered"] == forward["delivered"] + sum(forward["drops"].values()) + forward["in_flight"]
        )

    conclusive(measure, check)


def test_kernel_tcp_fills_the_path_each_way_at_its_rate(tmp_path: Path) -> None:
    require("namespaces", "iperf3")
    file = tmp_path / "adsl.toml"
    file.write_text(LINK.replace('"20 ms"', '"5 ms"') + 'backward = { rate = "2 Mbit/s" }\n')

    def measure() -> tuple[list[float], float]:
        line = f"{IPERF3} -C cubic -t 3 -O 1; sleep 0.2; {IPERF3} -C cubic -t 3 -O 1 -R"
        text, found = measured("--far", "iperf3 -s", str(file), "--", "sh", "-c", line)
        # two documents, one after the other
        parts = [json.loads(part) for part in re.split(r"(?<=^\})\n(?=\{)", text, flags=re.MULTILINE)]
        return [part["end"]["sum_received"]["bits_per_second"] for part in parts], steal(found)

    def check(rates: list[float]) -> None:
        for rate, set_rate in zip(rates, (10e6, 2e6), strict=True):
            payload = set_rate * (1500 - HEADERS) / 1500
            assert 0.93 * payload < rate < 1.05 * payload, rates

    conclusive(measure, check)


def test_a_path_is_fitted_to_what_programs_measured_over_another(link: str, tmp_path: Path) -> None:
    """ping without load, iperf3 filling the queue, and the capture of the latter."""
    require("namespaces", "ping", "iperf3", "reno")
    ping, report, capture = tmp_path / "ping.txt", tmp_path / "iperf3.json", tmp_path / "path.pcapng"
    out = tmp_path / "out"
    line = f"ping -n -c 10 -i 0.05 $PACELINE_PEER > {ping}; {IPERF3} -C reno -t 4 > {report}"

    def fitted(file: Path) -> tuple[float, float, float]:
        done = run("--fit", str(file))
        assert done.returncode == 0, done.stderr
        (tmp_path / "fitted.toml").write_text(done.stdout)
        found = tomllib.loads(done.stdout)["link"]["bottleneck"]
        limit = float(found["queue"]["limit"].split()[0])
        return (
            paceline._core.quantity(found["rate"], "bit/s"),
            paceline._core.quantity(found["delay"], "s"),
            limit,
        )

    def measure() -> tuple[list[tuple[float, float, float]], float]:
        words = ("--out", str(out), "--pcap", str(capture), "--far", "iperf3 -s -1", link)
        _, found = measured(*words, "--", "sh", "-c", line)
        return [fitted(file) for file in (ping, report, capture)], steal(found)

    def check(found: list[tuple[float, float, float]]) -> None:
        (_, of_ping, _), (rate, delay, limit), (of_capture, bare, filled) = found
        assert abs(of_ping - 0.02) < 0.5e-3
        assert 0.9 * 10e6 < rate < 1.02 * 10e6, "slow start is in it"
        # smoothed round trips: a quarter of the queue of 72 ms may be in the shortest, and be missing in the longest
        assert 0.02 <= delay < 0.02 + 0.072 / 4
        assert 60 * 1500 / 2 < limit < 62 * 1500
        assert abs(of_capture / 10e6 - 1) < 0.02
        assert abs(bare - 0.02) < 0.5e-3
        # 60 wait and one is in transmission; one round trip of a hundred is longer; the host answers late
        assert 54 * 1500 < filled < 66 * 1500

    conclusive(measure, check)
    assert run("--for", "200ms", str(tmp_path / "fitted.toml"), "--", "true").returncode == 0
    # and what was recorded of it is a run directory as others
    results = paceline.Results.read(out)
    assert results.manifest["kind"] == "path"
    queue = results.series("queue").filter(direction="forward", link="bottleneck")
    assert queue["time_s"].is_sorted()
    assert len(queue) > 100
    assert 0.3 < results.queues.filter(direction="forward")["utilisation"][0] <= 1
    delay = results.series("delay").filter(direction="forward")["delay_mean_s"]
    assert 0.02 < delay.min() < delay.max() < 0.02 + 60 * 1500 * 8 / 10e6 + 0.005  # type: ignore[operator]
    drawn = [PACELINE, "plot", str(out), "--out", str(tmp_path / "figures")]
    plotted = subprocess.run(drawn, capture_output=True, text=True, check=False)
    assert plotted.returncode == 0, plotted.stderr
    # what the iperf3 server had not flushed when it was asked to end
    assert "Accepted connection" in (out / "far.txt").read_text()
