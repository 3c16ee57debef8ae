"""What programs over a path know of it, and a path made of what they measured."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import paceline
from needs import require
from over_path import IPERF3, LINK, PACELINE, measured, run, steal
from realtime import conclusive

pytestmark = pytest.mark.realtime


@pytest.fixture
def link(tmp_path: Path) -> str:
    file = tmp_path / "link.toml"
    file.write_text(LINK)
    return str(file)


def test_ends_with_ipv4_alone(link: str) -> None:
    require("namespaces")
    line = "env | grep PACELINE_PEER; cat /proc/net/if_inet6"
    done = subprocess.run(
        [PACELINE, "path", "--ipv4", "--far", f"{line} >&2; sleep 9", link, "--", "sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PACELINE_PEER6": "of an outer path"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for said in (done.stdout, done.stderr):
        assert re.findall(r"PACELINE_PEER\w*", said) == ["PACELINE_PEER"]
        assert "path0" not in said, "not even an address of the link"


def test_programs_know_when_the_clock_began(link: str, tmp_path: Path) -> None:
    """One ping: the times of day before and after it, from the clock's beginning on, enclose its row of `delay`."""
    require("namespaces", "ping")
    out, now = tmp_path / "out", "date +%s.%N"
    line = f"{now}; ping -n -c 1 $PACELINE_PEER > {tmp_path}/ping; {now}; echo $PACELINE_START"
    # The far command begins first; what the near one does lies well behind the clock's beginning.
    done = run("--out", str(out), "--far", "echo $PACELINE_START; sleep 9", link, "--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr
    before, after, start = done.stdout.split()
    assert re.fullmatch(r"\d{10}\.\d{9}", start)
    assert (out / "far.txt").read_text() == f"{start}\n"
    results = paceline.Results.read(out)
    assert results.manifest["report"]["start"] == start
    (row,) = results.series("delay").filter(direction="forward")["time_s"]
    # A row stands at the end of its interval of 20 ms; double precision has these times to 0.3 us.
    assert float(before) - float(start) < row < float(after) - float(start) + 0.02
    assert float(before) - float(start) > 1, "(the far command listens to nothing)"
    began = results.manifest["report"]["command_start_s"]
    assert 1 < began < row


def test_all_that_runs_at_an_end_is_asked_to_end(link: str, tmp_path: Path) -> None:
    """Children of a shell, which does not pass a signal on, and what the command has left running."""
    require("namespaces")
    out, near = tmp_path / "out", tmp_path / "near.txt"
    program = "sh -c 'trap \"echo whole; exit\" TERM; echo begun; while :; do sleep 0.05; done' 2> /dev/null"
    done = run(
        "--out",
        str(out),
        "--far",
        f"{program}; true",
        link,
        "--",
        "sh",
        "-c",
        f"{program} > {near} & sleep 0.5",
    )
    assert done.returncode == 0, done.stderr
    assert (out / "far.txt").read_text() == "begun\nwhole\n"
    assert near.read_text() == "begun\nwhole\n"


def test_a_path_is_fitted_to_what_programs_measured_over_another(link: str, tmp_path: Path) -> None:
    """ping without load, iperf3 filling the queue, and the capture of the latter."""
    require("namespaces", "ping", "iperf3", "reno")
    ping, report, capture = tmp_path / "ping.txt", tmp_path / "iperf3.json", tmp_path / "path.pcapng"
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
        _, found = measured("--pcap", str(capture), "--far", "iperf3 -s -1", link, "--", "sh", "-c", line)
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
