"""Runs in real time, by what stands for them: what runs side by side, what is made again, what is kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

import paceline
from paceline import _core
from paceline.emulator import paths, realtime_queue
from paceline.emulator.realtime_queue import ALONE, Budget, in_turn
from paceline.errors import Interrupted
from paceline.report import parts
from paceline.results.results import RunRecord
from paceline.results.store import Store
from paceline.simulate.points import Point, workers_of_machine
from paceline.studies.reproduction import RealTime
from stand_in import stand_in

LINK = """
duration = "1 s"
[link.bottleneck]
rate = "1 Mbit/s"
delay = "20 ms"
backward = { rate = "500 kbit/s" }
[flow.a]
"""

SLOW, FAST = (Point(paceline.parse(LINK), {"path": name}) for name in ("slow", "fast"))
WIDE = Point(paceline.parse(LINK.replace("1 Mbit/s", "30 Mbit/s")))
LOT = 'duration = "1 s"\ntopology = "parking-lot"\nhops = 3\n[link.hop]\nrate = "1 Mbit/s"\ndelay = "5 ms"\n[flow.a]\n'


def record(seed: int, lag_s: float = 1e-6, steal: float = 0.0) -> RunRecord:
    lag = {"p50_s": lag_s, "p99_s": 2 * lag_s}
    return RunRecord(seed, {"flows": [], "path": {"lag": lag, "host": {"steal_share": steal}}})


class Side:
    """Stands for a path: remembers how many ran at once, and what was asked for. Each run lasts until `together` runs
    have been there at once, and with `ends` until that is set or it is stopped."""

    def __init__(self, together: int = 1, ends: threading.Event | None = None) -> None:
        self.together = threading.Barrier(together, timeout=60)
        self.ends = ends
        self.seeds_run: list[int] = []
        self.peak = 0
        self.now = 0
        self.lock = threading.Lock()
        self.stopped = False

    def __call__(
        self, scenario: _core.Scenario, seed: int, record_: Sequence[str], every_s: float
    ) -> RunRecord:
        with self.lock:
            self.seeds_run.append(seed)
            self.now += 1
            self.peak = max(self.peak, self.now)
        self.together.wait()
        if self.ends is not None:
            assert self.ends.wait(60), "nobody ends it"
        with self.lock:
            self.now -= 1
        return record(seed)

    def stop(self) -> None:
        self.stopped = True
        if self.ends is not None:
            self.ends.set()


def test_what_runs_side_by_side_stays_within_runs_and_rates() -> None:
    assert SLOW.scenario.rates_bps == 1.5e6
    assert Point(paceline.parse(LOT)).scenario.rates_bps == 6e6
    # A way on which no flow begins carries what receivers say alone.
    wide_back = LINK.replace("500 kbit/s", "100 Mbit/s")
    assert paceline.parse(wide_back).rates_bps == 2e6
    other_way = '\nfrom = "right"\nto = "left"\n'
    assert paceline.parse(wide_back + other_way).rates_bps == 101e6
    assert paceline.parse(wide_back + "[flow.b]" + other_way).rates_bps == 101e6
    budget = Budget(3, 4e6)
    assert budget.takes([SLOW], FAST)
    assert not budget.takes([SLOW, SLOW], SLOW)
    assert not Budget(1, 1e9).takes([SLOW], SLOW)
    # what fits beside nothing runs alone
    assert budget.takes([], WIDE)
    assert not budget.takes([SLOW], WIDE)
    assert Budget.of_machine(1).runs == 1
    assert Budget.of_machine().runs == realtime_queue.RUNS_PER_CORE * workers_of_machine()


def test_several_run_at_once_and_come_in_order() -> None:
    side = Side(together=4)
    found = in_turn([SLOW, FAST], [1, 2], side, over="path", budget=Budget(4, 1e9))
    assert side.peak == 4
    assert [(run.seed, run.labels["path"]) for run in found] == [
        (1, "slow"),
        (2, "slow"),
        (1, "fast"),
        (2, "fast"),
    ]
    alone = Side()
    in_turn([SLOW, FAST], [1, 2], alone, over="path", budget=ALONE)
    assert (alone.peak, alone.seeds_run) == (1, [1, 1, 2, 2])


class Clock:
    """In the place of `time`: each look at it is a tenth of a second later."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.1
        return self.now

    def sleep(self, _: float) -> None:
        pass


def test_progress_is_in_seconds_and_moves_within_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realtime_queue, "time", Clock())
    monkeypatch.setattr(realtime_queue, "_POLL_S", 0.01)
    seen: list[tuple[float, float]] = []
    within = threading.Event()

    def on_progress(done: float, of: float) -> None:
        seen.append((done, of))
        if 0.2 < done < 1.1:
            within.set()

    in_turn([SLOW], [1, 2], Side(ends=within), over="path", progress=on_progress, tries=1)
    assert seen[0] == (0.0, 2 * (1 + realtime_queue.SET_UP_S))
    assert any(0.2 < done < 1.1 for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(("lag_s", "steal"), [(2 * paths.LATE_S, 0.0), (1e-6, 0.02)])
def test_a_disturbed_run_is_made_again(lag_s: float, steal: float) -> None:
    made: list[int] = []

    def runner(_: _core.Scenario, seed: int, kinds: Sequence[str], every_s: float) -> RunRecord:
        made.append(seed)
        bad = seed == 2 or len(made) == 1
        return record(seed, lag_s, steal) if bad else record(seed)

    found = in_turn([SLOW], [1, 2], runner, over="path")
    assert made == [1, 1, 2, 2, 2]
    assert [realtime_queue.is_disturbed(run) for run in found] == [False, True]
    real = RealTime.of(found, ALONE)
    assert real is not None
    assert (real.disturbed, len(real.steal)) == (1, 2)
    assert "1 remained disturbed though made 3 times" in parts.real_words(real)


def test_what_is_done_is_kept_and_the_rest_ends_at_once(tmp_path: Path) -> None:
    side, long = Side(), Side(ends=threading.Event())

    def runner(scenario: _core.Scenario, seed: int, kinds: Sequence[str], every_s: float) -> RunRecord:
        return (side if seed == 1 else long)(scenario, seed, kinds, every_s)

    runner.stop = long.stop  # type: ignore[attr-defined]

    def on_progress(done: float, total: float) -> None:
        if len(list((tmp_path / "runs").glob("*.json"))) == 1 and not side.now:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="of 3 runs had finished"):
        in_turn(
            [SLOW],
            [1, 2, 3],
            runner,
            over="path",
            store=Store(tmp_path),
            progress=on_progress,
            budget=Budget(3, 1e9),
        )
    assert long.stopped
    again = Side()
    in_turn([SLOW], [1, 2, 3], again, over="path", store=Store(tmp_path))
    assert 1 not in again.seeds_run


def test_finished_runs_are_kept_on_ctrl_c_gone_on_with_and_made_anew_when_all_are_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = stand_in(monkeypatch, stops=[2])
    out = tmp_path / "out"

    def three() -> paceline.Results:
        return paceline.emulate(paceline.parse(LINK), seed=1, runs=3, record=["rate"], out=out)

    with pytest.raises(Interrupted, match=rf"Stopped\. 1 of 3 runs had finished; they are kept in {out}"):
        three()
    assert len(list((out / "runs").glob("*.json"))) == 1
    path.stops = []
    results = three()
    assert (path.made, results.seeds) == ([1, 2, 3], [1, 2, 3])
    kept = paceline.Results.read(out)
    assert [set(notes) for notes in kept.manifest["notes"]] == [{"server", "host", "flows"}] * 3
    assert kept.flows.equals(results.flows)
    assert kept.series("rate").equals(results.series("rate"))
    assert kept.series("rate")["seed"].unique().to_list() == [1, 2, 3]
    three()
    assert path.made == [1, 2, 3, 1, 2, 3]


def test_one_run_that_is_stopped_leaves_the_results_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, stops=[2])
    paceline.emulate(paceline.parse(LINK), seed=1, out=tmp_path)
    with pytest.raises(Interrupted, match="Stopped before a run had finished"):
        paceline.emulate(paceline.parse(LINK), seed=2, out=tmp_path)
    assert paceline.Results.read(tmp_path).seeds == [1]
