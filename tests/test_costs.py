"""What a packet costs where a simulator can waste its time: no more than some times a dumbbell's.

`bench/costs` measures these cases properly. Here each is short, and the bound is wide: what it is to notice took 40 to
1000 times a dumbbell's packet.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import paceline

SCENARIOS = Path(__file__).resolve().parent.parent / "bench" / "scenarios"

# File, a short and a long run, and what is set in it.
CASES: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "1000 flows, 10 us": ("C1", "500 ms", "1 s", {}),
    "500 flows, 1 ns": ("C3", "500 ms", "1 s", {}),
    "ns2-linux, a window of 50,000": ("C4", "1 ms", "600 ms", {}),
    "linux, 30 % overtaken": ("C5", "1 ms", "2 s", {}),
    "ns2-linux, 30 % overtaken": ("C5", "1 ms", "1 s", {"flow.tcp.profile": "ns2-linux"}),
    "FQ-CoDel of 65,536 queues": ("C6", "300 ms", "600 ms", {}),
}


def _run(file: str, duration: str, changes: dict[str, str]) -> tuple[int, float]:
    """Packets that left the bottleneck, and the CPU seconds of this process."""
    before = time.process_time()
    results = paceline.run(SCENARIOS / f"{file}.toml", set={**changes, "duration": duration})
    took = time.process_time() - before
    return int(results.queues.filter(direction="forward")["departures"].sum()), took


def _cost(file: str, short: str, long: str, changes: dict[str, str]) -> float:
    """CPU seconds of a packet; what both runs take, set-up and summary, is left out."""
    costs = []
    for _ in range(3):
        few, less = _run(file, short, changes)
        many, more = _run(file, long, changes)
        costs.append((more - less) / (many - few))
    return min(costs)


@pytest.fixture(scope="module")
def dumbbell() -> float:
    return _cost("S1", "2 s", "200 s", {})


@pytest.mark.parametrize("case", CASES)
def test_a_packet_costs_at_most_some_of_a_dumbbells(case: str, dumbbell: float) -> None:
    times = _cost(*CASES[case]) / dumbbell
    assert times < 12, f"{case}: a packet costs {times:.0f} of S1's"
