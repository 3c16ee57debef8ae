"""Every scheme in real time beside the same simulated, on three paths.

What differs between the two programs is found in virtual time (`crates/live/src/endpoint/worlds/schemes.rs`); here it
is what clocks, sockets and the emulator's own path add.
"""

from __future__ import annotations

import json
import math
import statistics

import pytest

import paceline
from needs import require
from paceline import _core, realtime
from paceline.emulator.realtime_queue import Budget, in_turn
from paceline.results.results import RunRecord
from paceline.simulate.points import Point
from realtime import conclusive

pytestmark = [pytest.mark.realtime, pytest.mark.long]

PATHS = {
    "drop-tail": 'rate = "2 Mbit/s"\nqueue = { limit = "20 packets" }',
    "loss": 'rate = "1 Mbit/s"\nqueue = { limit = "20 packets" }\n'
    'loss = { kind = "uniform", rate = "1 %", on = "data" }',
    "codel": 'rate = "1500 kbit/s"\nqueue = { kind = "codel", limit = "100 packets" }',
}
APPS = {
    "rtp": 'app = { kind = "encoder", max_rate = "1 Mbit/s" }',
    "udp": 'app = { kind = "cbr", rate = "500 kbit/s" }',
}
SIMULATED = 20
STUDENT = 3.883
"""For one run beside twenty, once in a thousand: there are some 160 measures."""
SHARES = {"goodput_bps": 0.05, "rtt_mean_s": 0.05}
"""What the two may differ by whatever their scatter, besides the hosts' own delays."""
HOSTS_S = 3e-3


def scenario(cc: str, machine: str, path: str) -> _core.Scenario:
    """Hosts here take tens of microseconds, and no packet times as the simulator's do by default. Round trips are
    drawn: what phases decide is in the scatter."""
    return paceline.parse(
        'duration = "3500 ms"\nhost_delay = "100 us"\n[link.bottleneck]\ndelay = "15 ms"\n'
        f'backward = {{ rate = "300 kbit/s" }}\n{PATHS[path]}\n'
        f'[flow.a]\ncc = "{cc}"\nrtt = {{ uniform = ["38 ms", "44 ms"] }}\n{APPS.get(machine, "")}\n'
    )


DIFFER = {
    "c4": "takes rates from acknowledgements read late, and the longer round trip for the path's own: docs/live.md"
}
"""Schemes that differ, and why."""


def outside(point: Point, run: RunRecord) -> list[str]:
    """What of a run lies further from the simulated mean than one more run might."""
    if not run.summary.get("flows"):
        return [f"{point.labels}: there was no run"]
    rows = paceline.run(point.scenario, runs=SIMULATED).flows
    (real,) = run.summary["flows"]
    found = []
    for name, share in SHARES.items():
        if rows[name].null_count():
            continue  # datagrams have no way back
        simulated = rows[name].to_list()
        mean, scatter = statistics.mean(simulated), statistics.stdev(simulated)
        allowed = max(share * mean, STUDENT * scatter * math.sqrt(1 + 1 / SIMULATED))
        if abs(real[name] - mean) > allowed + (HOSTS_S if name == "rtt_mean_s" else 0.0):
            found.append(f"{point.labels}: {name} {real[name]}, simulated {mean} ± {scatter}")
    return found


@pytest.mark.filterwarnings("ignore::paceline.PacelineWarning")  # of schemes that go by marks
def test_every_scheme_has_the_simulators_goodput_and_round_trip() -> None:
    require("namespaces")
    schemes = [(one["name"], one["machine"]) for one in json.loads(_core.schemes())]
    left = [
        Point(scenario(cc, machine, path), {"cc": cc, "path": path})
        for cc, machine in schemes
        if cc not in DIFFER
        for path in PATHS
    ]
    assert len(left) > 75

    def measure() -> tuple[list[RunRecord], float]:
        runs = in_turn(left, [1], realtime.Emulator(), over="emulator", budget=Budget.of_machine(), tries=1)
        hosts = [run.summary["path"]["host"] for run in runs if "path" in run.summary]
        return runs, max((host["steal_share"] for host in hosts), default=0.0)

    def check(runs: list[RunRecord]) -> None:
        found = [outside(point, run) for point, run in zip(left, runs, strict=True)]
        left[:] = [point for point, wrong in zip(left, found, strict=True) if wrong]
        assert not left, "\n".join(line for wrong in found for line in wrong)

    conclusive(measure, check)
