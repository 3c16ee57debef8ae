"""Controllers of a user's own, in Python and C: twins give the built-in ones' bits, and what is wrong is named."""

from __future__ import annotations

import importlib
import json
import math
import pickle
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import paceline
import screen
from needs import require
from own_controllers import LOSSY, PLAIN, ROOT, TWINS, same
from paceline import ControllerError, ScenarioError, events, own_controllers, parameter
from paceline.simulate import workers

RENO = f"python:{TWINS / 'reno_twin.py'}:RenoTwin"


def test_renos_twin_in_python_gives_the_same_bits() -> None:
    changes = {"flow.own.cc": RENO, "flow.pages.cc": RENO}
    built_in = paceline.run(LOSSY, runs=3, record=("cwnd",))
    same(paceline.run(LOSSY, runs=3, set=changes, record=("cwnd",)), built_in, "cwnd")
    assert built_in.flows["timeouts"].sum() > 0, "a case without timeouts would show less"


def test_nadas_twin_gives_the_same_numbers() -> None:
    twin = f"python:{TWINS / 'nada_twin.py'}:NadaTwin"
    call = ROOT / "examples" / "call.toml"
    # the bounds of what is built in follow the encoder unless given
    bounds = {"flow.call.params": {"min_rate": 150e3, "max_rate": 2.5e6}}
    ours, built_in = (paceline.run(call, runs=3, set={"flow.call.cc": cc} | bounds) for cc in (twin, "nada"))
    for name in ("goodput_bps", "loss_rate", "rtt_mean_s"):
        for own, its in zip(ours.flows[name], built_in.flows[name], strict=True):
            assert own == pytest.approx(its, rel=1e-6), name


@dataclass
class Drawn(paceline.WindowController):
    """A window that is drawn

    and a paragraph more.
    """

    source = "nobody"
    gauges = {"draws": "", "waited": "s"}  # noqa: RUF012 (as a user would write it)

    most: float = parameter(30.0, 2, 100, unit="segments", doc="the window at most")
    many: int = parameter(3, 1, 9)
    on: bool = True
    kind: str = parameter("a", choices=("a", "b"))
    seen: list[object] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.many, int)
        assert isinstance(self.on, bool)
        assert self.kind in ("a", "b")
        self.draws = 0
        self.waited: float | None = None

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        self.window = self.random.uniform(2, self.most)
        self.draws += 1
        if path.srtt_s:
            self.waited = path.srtt_s - path.min_rtt_s


def test_runs_hang_on_nothing_but_the_seed() -> None:
    changes = {"flow.own.count": 2, "duration": "5 s"}
    runs = [
        paceline.run(PLAIN, runs=4, set=changes, schemes={"own": Drawn}, workers=workers, record=("cwnd",))
        for workers in (1, 2, 4)
    ]
    for other in runs[1:]:
        same(other, runs[0], "cwnd")
    goodputs = runs[0].flows["goodput_bps"]
    assert goodputs.n_unique() == 8, "each flow and each seed has draws of its own"
    gauges = runs[0].series("cwnd")
    assert gauges["draws"].max() > 100  # type: ignore[operator]
    assert gauges["waited_s"].max() > 0  # type: ignore[operator]


def test_long_work_in_python_goes_to_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.simulate.points._WORTH_PROCESSES_S", 0.0)
    pools: list[int] = []
    handed: list[int] = []
    processes = workers.processes

    def counted(workers: int) -> Any:
        pools.append(workers)
        pool = processes(workers)
        submit = pool.submit

        def noted(make: Any, batch: Any) -> Any:
            handed.extend(number for number, _, _ in batch.jobs)
            return submit(make, batch)

        monkeypatch.setattr(pool, "submit", noted)
        return pool

    monkeypatch.setattr("paceline.simulate.points.processes", counted)
    several = paceline.run(PLAIN, runs=6, schemes={"own": Drawn}, workers=2, record=("cwnd",))
    assert pools == [2]
    assert handed == [1, 2, 3, 4, 5], "all but the first, which told how long they take"
    same(several, paceline.run(PLAIN, runs=6, schemes={"own": Drawn}, workers=1, record=("cwnd",)), "cwnd")


class Breaks(paceline.WindowController):
    """Fails in some runs"""

    wrong: float | None = None

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        if isinstance(event, events.Established):
            self.window = 10
        if path.now_s > 5 and self.random.random() < 0.001:
            if self.wrong is None:
                raise KeyError("by chance")
            self.window = self.wrong


def test_an_exception_ends_its_run_alone() -> None:
    changes = {"duration": "10 s"}
    with pytest.warns(paceline.errors.PacelineWarning, match="by chance") as warned:
        results = paceline.run(PLAIN, runs=12, set=changes, schemes={"own": Breaks})
    said = str(warned[0].message)
    assert "the controller of flow own[0] failed at " in said
    assert "in on_feedback" in said
    left = results.flows["seed"].n_unique()
    assert 0 < left < 12
    assert f"{12 - left} of 12 runs failed" in said


@pytest.mark.parametrize("wrong", [math.nan, -1.0, 0.5, 1e30, math.inf])
def test_nonsense_is_refused_where_it_is_assigned(wrong: float) -> None:
    class Nonsense(Breaks):
        pass

    Nonsense.wrong = wrong
    with pytest.raises(ControllerError, match=r"self\.window = self\.wrong") as caught:
        paceline.run(PLAIN, set={"duration": "60 s"}, schemes={"own": Nonsense})
    assert "is not from 1 to 1e9 segments" in str(caught.value)
    assert "own[0] failed at " in str(caught.value)


def test_bases_refuse_what_no_machine_can_use() -> None:
    window, rate, media = (
        paceline.WindowController(),
        paceline.RateController(),
        paceline.MediaController(),
    )
    for own, name, value in [
        (window, "threshold", -1.0),
        (window, "pacing_bps", 0.0),
        (window, "send_quantum_bytes", math.nan),
        (rate, "rate_bps", 0.0),
        (rate, "pacing_bps", math.inf),
        (media, "rate_bps", -5.0),
        (media, "target_bps", math.nan),
        (media, "window_bytes", -1.0),
        (media, "filling_bps", math.inf),
    ]:
        with pytest.raises(ValueError, match=f"{name} = .* is not from"):
            setattr(own, name, value)
    window.pacing_bps = math.inf
    rate.pacing_bps, media.target_bps, media.window_bytes = None, None, None
    assert rate.pacing_bps == rate.rate_bps
    assert [media.probe(1e6, 5000), media.probe(2e6, 5000, packets=3)] == [1, 2]


@dataclass
class NoRange(paceline.WindowController):
    beta: float = 0.5

    def on_feedback(self, event: Any, path: Any) -> None: ...


class NoMethod(paceline.WindowController): ...


class FewArguments(paceline.WindowController):
    def on_feedback(self, event: Any) -> None: ...


class NoInterval(paceline.WindowController):
    every = 0.1


class Fine(paceline.WindowController):
    def on_feedback(self, event: Any, path: Any) -> None: ...


class OddUnit(Fine):
    gauges = {"x": "furlongs"}  # noqa: RUF012


class OddNeeds(Fine):
    needs = ("delivery",)


class OddRecovery(Fine):
    needs = ("pacing",)
    recovery = "sack"


class OddEvery(Fine):
    every = -1


class NoTimer(paceline.MediaController):
    timer_s = 0.1

    def on_feedback(self, event: Any, path: Any) -> None: ...


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (NoRange, "field beta has no range: write paceline.parameter"),
        (NoMethod, r"lacks the method on_feedback\(self, event, path\)"),
        (FewArguments, r"on_feedback must take \(self, event, path\)"),
        (NoInterval, "lacks the method on_interval"),
        (OddUnit, r"gauges\['x'\] is 'furlongs': the unit must be one of '', 'packets'"),
        (OddNeeds, "needs has 'delivery': it must be a tuple of 'deliveries', 'pacing'"),
        (OddRecovery, 'pacing requires recovery = "rack"'),
        (OddEvery, "every is -1, and must be a number from 0.0001 to 100"),
        (NoTimer, "lacks the method on_timer"),
        (int, "must derive from paceline.WindowController"),
    ],
)
def test_what_is_wrong_with_a_class_is_named(cls: type, said: str) -> None:
    with pytest.raises(ScenarioError, match=said) as caught:
        paceline.load(PLAIN, schemes={"own": cls})
    assert "flow.own.cc" in str(caught.value)
    assert cls.__name__ in str(caught.value)


def test_a_name_of_a_built_in_one_is_not_taken() -> None:
    with pytest.raises(ScenarioError, match="`vegas` is the name of a built-in controller"):
        paceline.load(PLAIN, {"flow.own.cc": "vegas"}, schemes={"vegas": Fine})


@pytest.mark.parametrize(
    ("default", "more", "said"),
    [
        (0.5, {}, "give least and most"),
        (0.5, {"least": 1, "most": 2}, "with the default between them"),
        (0.5, {"least": 0, "most": math.inf}, "is not a finite range"),
        ("a", {}, "give choices"),
        (None, {}, "a number, True, False, or a name"),
    ],
)
def test_parameters_need_a_range(default: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(paceline.ArgumentError, match=said):
        parameter(default, **more)


@pytest.mark.parametrize(
    ("cc", "said"),
    [
        ("python:nowhere.py:Mine", "nowhere.py cannot be read: No such file"),
        ("python:mine.py", "is not of the form python:FILE:CLASS"),
        ("python:mine.py:Other", "there is no class Other in it; there is Mine"),
        ("python:broken.py:Mine", "(?s)cannot be loaded:.*broken.py., line 1.*SyntaxError"),
        ("python:raises.py:Mine", "(?s)cannot be loaded:.*line 2, in <module>.*ZeroDivisionError"),
        ("python:no.such.module:Mine", "there is no module no.such.module"),
        ("library:mine.py", "cannot be loaded"),
        ("library:nowhere.so", "nowhere.so cannot be read"),
    ],
)
def test_files_that_give_no_controller(tmp_path: Path, cc: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(
        "import paceline\nclass Mine(paceline.WindowController):\n    def on_feedback(self, event, path): ...\n"
    )
    (tmp_path / "broken.py").write_text("class Mine(:\n")
    (tmp_path / "raises.py").write_text("x = 0\ny = 1 / x\n")
    (tmp_path / "x.toml").write_text(PLAIN.replace('"own"', f'"{cc}"'))
    with pytest.raises(ScenarioError, match=said) as caught:
        paceline.load(tmp_path / "x.toml")
    assert "x.toml:8: flow.own.cc: " in str(caught.value)


def test_a_scenario_stays_what_it_was_when_it_was_loaded(tmp_path: Path) -> None:
    text = (
        "import paceline\nfrom help_of_mine import WINDOW\n"
        "class Mine(paceline.WindowController):\n    def on_feedback(self, event, path): self.window = WINDOW\n"
    )
    (tmp_path / "help_of_mine.py").write_text("WINDOW = 4\n")
    (tmp_path / "mine.py").write_text(text)
    (tmp_path / "x.toml").write_text(PLAIN.replace('"own"', '"python:mine.py:Mine"'))
    loaded = paceline.load(tmp_path / "x.toml")
    before = paceline.run(loaded)
    (tmp_path / "mine.py").write_text(text.replace("= WINDOW", "= 2 * WINDOW"))
    again = pickle.loads(pickle.dumps(loaded))
    assert again == loaded
    assert hash(again) == hash(loaded)
    same(paceline.run(again, record=("cwnd",)), paceline.run(loaded, record=("cwnd",)), "cwnd")
    changed = paceline.run(tmp_path / "x.toml")
    assert changed.flows["goodput_bps"][0] > 1.5 * before.flows["goodput_bps"][0]
    assert changed.manifest["identity"] != before.manifest["identity"], "a sweep must not mix both"


class RoundTrips(paceline.WindowController):
    """AIMD once a round trip"""

    every = own_controllers.ROUND_TRIP
    gauges = {"calls": ""}  # noqa: RUF012

    def on_begin(self, path: events.PathView) -> None:
        self.calls = 0
        self.window = 4

    def on_interval(self, interval: events.Interval, path: events.PathView) -> None:
        self.calls += 1
        assert interval.duration_s > 0
        assert interval.timeouts or interval.acked_bytes > 0
        if interval.timeouts:
            assert self.window == 1
            return
        assert interval.rtt_s is None or interval.least_rtt_s <= interval.rtt_s <= interval.most_rtt_s  # type: ignore[operator]
        assert interval.delivery_bps == pytest.approx(interval.acked_bytes * 8 / interval.duration_s)
        self.window = max(1, self.window * 0.8) if interval.loss else self.window + 1


class EveryTenth(RoundTrips):
    every = 0.1  # type: ignore[assignment]


def test_once_an_interval() -> None:
    by_round = paceline.run(PLAIN, schemes={"own": RoundTrips}, record=("cwnd",), runs=3)
    by_time = paceline.run(PLAIN, schemes={"own": EveryTenth}, record=("cwnd",), runs=3)
    # 20 s of round trips of 40 ms and what the queue adds; and of tenths of a second
    assert 200 < by_round.series("cwnd")["calls"].max() <= 500  # type: ignore[operator]
    assert 150 < by_time.series("cwnd")["calls"].max() <= 205  # type: ignore[operator]
    assert by_round.flows["goodput_bps"].min() > 1e6  # type: ignore[operator]
    with pytest.raises(ControllerError, match=r"assert interval\.acked_bytes < 0"):
        paceline.run(PLAIN, schemes={"own": WrongAboutIt})


class Counting(RoundTrips):
    """Counts what was sent and acknowledged"""

    gauges = {"sent": "bytes", "acked": "bytes"}  # noqa: RUF012

    def on_begin(self, path: events.PathView) -> None:
        super().on_begin(path)
        self.sent = self.acked = 0

    def on_interval(self, interval: events.Interval, path: events.PathView) -> None:
        super().on_interval(interval, path)
        self.sent += interval.sent_bytes
        self.acked += interval.acked_bytes


def test_an_interval_knows_what_was_sent() -> None:
    lossy = {"link.bottleneck.loss": {"rate": "1 %"}}
    counted = paceline.run(PLAIN, schemes={"own": Counting}, set=lossy, record=("cwnd",))
    last = counted.series("cwnd").row(-1, named=True)
    flow = counted.flows.row(0, named=True)
    segment = flow["bytes_delivered"] / (flow["packets_delivered"] - 1)
    assert flow["packets_retransmitted"] > 10
    # but for what an interval under way has sent
    assert last["sent_bytes"] == pytest.approx(flow["packets_sent"] * segment, rel=0.03)
    assert last["acked_bytes"] < last["sent_bytes"]


class WrongAboutIt(RoundTrips):
    """Fails when it is asked"""

    def on_interval(self, interval: events.Interval, path: events.PathView) -> None:
        assert interval.acked_bytes < 0


class HalfOfReceived(paceline.RateController):
    """A rate of what arrives"""

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        match event:
            case events.Started():
                self.rate_bps = 8 * path.segment_bytes
            case events.RateReport(rtt_s=rtt, receive_rate_bps=received, loss_event_rate=loss):
                assert rtt > 0
                self.in_slow_start = self.in_slow_start and loss == 0
                self.rate_bps = max(received, 8 * path.segment_bytes) * (2 if self.in_slow_start else 0.9)
                self.pacing_bps = self.rate_bps * 1.1
            case events.NoFeedback():
                self.rate_bps = max(self.rate_bps / 2, 1)


def test_a_rate_controller() -> None:
    results = paceline.run(PLAIN, schemes={"own": HalfOfReceived}, record=("tfrc",))
    assert 1e6 < results.flows["goodput_bps"][0] < 10e6
    assert results.series("tfrc")["allowed_bps"].max() > 1e6  # type: ignore[operator]


class CountingCall(paceline.MediaController):
    """Counts what it is told"""

    timer_s = 0.05
    tells_sending = True
    feedback_format = "twcc"
    feedback_interval_s = 0.05
    gauges = {"timers": "", "sent": "", "frames": "", "probed": "", "arrived": ""}  # noqa: RUF012

    def __init__(self) -> None:
        self.timers = self.sent = self.frames = self.probed = self.arrived = 0
        self.rate_bps = self.target_bps = 1e6

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        match event:
            case events.PacketSent():
                self.sent += 1
            case events.FrameWritten():
                self.frames += 1
            case events.Arrivals(packets):
                self.arrived += sum(packet.arrived for packet in packets)
                self.probed += sum(packet.probe is not None for packet in packets)

    def on_timer(self, path: events.PathView) -> None:
        self.timers += 1
        if self.timers == 100:
            self.probe(2e6, 10_000)


def test_a_media_controller() -> None:
    app = {"kind": "encoder", "frame_rate": 25, "max_rate": "2 Mbit/s"}
    results = paceline.run(PLAIN, set={"flow.own.app": app}, schemes={"own": CountingCall}, record=("rtcp",))
    last = results.series("rtcp").tail(1)
    assert 390 < last["timers"][0] <= 400
    assert 490 < last["frames"][0] <= 501
    assert last["arrived"][0] > 0.9 * last["sent"][0] > 1000
    assert 5 <= last["probed"][0] < 20
    assert 0.7e6 < results.flows["goodput_bps"][0] < 1.1e6


def test_events_can_be_made_and_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    acked = events.Acked(segments=2, in_flight=10, rtt_s=0.05)
    assert repr(acked) == "Acked(segments=2, in_flight=10, rtt_s=Some(0.05))" or "0.05" in repr(acked)
    match acked:
        case events.Acked(segments, in_flight, rtt_s):
            assert (segments, in_flight, rtt_s) == (2, 10, 0.05)
    path = events.PathView(1.0, 0.05, 0.01, 0.04, 10, 5, 15, 100, 1000)
    monkeypatch.syspath_prepend(TWINS)
    twin = importlib.import_module("reno_twin").RenoTwin()
    twin.on_feedback(events.Established(window=10.0), path)
    twin.on_feedback(acked, path)
    assert twin.window == 11.0
    twin.on_feedback(events.Timeout(cut=True), path)
    assert (twin.window, twin.threshold) == (1.0, 5.0)
    one, other = (type(twin.random)(seed=3) for _ in range(2))
    assert [one.random(), one.normal(), one.below(5)] == [other.random(), other.normal(), other.below(5)]
    with pytest.raises(ValueError, match="below"):
        one.below(0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["controllers", f"python:{TWINS / 'nada_twin.py'}:NadaTwin"], "x_ref"),
        (["include"], "include"),
        (["run", str(ROOT / "examples" / "own-controller.toml"), "--set", "duration=15 s"], "RenoTwin"),
    ],
)
def test_the_command_line(words: list[str], said: str) -> None:
    ran = screen.paceline(*words)
    assert said in ran.stdout


PRINTS = """
import sys
import paceline
from paceline import events

print("loaded")


class Mine(paceline.WindowController):
    def on_feedback(self, event, path):
        match event:
            case events.Established(window):
                self.window = window
                print("begun")
                sys.stdout.write("and written\\n")
"""


@pytest.mark.parametrize("more", [["--runs", "1"], ["--runs", "3", "--workers", "2"]])
def test_what_a_controller_prints_is_no_result(more: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PRINTS)
    (tmp_path / "x.toml").write_text(PLAIN.replace('"own"', '"python:mine.py:Mine"'))
    command = [sys.executable, "-m", "paceline", "run", "x.toml", "--json", *more]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert "versions" in json.loads(done.stdout)
    assert all(word in done.stderr for word in ("loaded", "begun", "and written"))
    assert "Traceback" not in done.stderr


def test_a_failing_controller_is_said_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import paceline\nclass Mine(paceline.WindowController):\n"
        "    def on_feedback(self, event, path):\n        return 1 / 0\n"
    )
    (tmp_path / "x.toml").write_text(PLAIN.replace('"own"', '"python:mine.py:Mine"'))
    ran = screen.paceline("run", "x.toml", where=tmp_path)
    assert ran.returncode == 1
    assert "the controller of flow own[0] failed at 0.04" in ran.stderr
    assert "return 1 / 0" in ran.stderr


@pytest.mark.realtime
@pytest.mark.long
@pytest.mark.parametrize("flow", ["out", "back"])
def test_a_failing_controller_over_an_emulated_path(flow: str) -> None:
    require("netns")
    text = '[link.bottleneck]\nrate = "8 Mbit/s"\ndelay = "15 ms"\n[flow.out]\n[flow.back]\nfrom = "right"\n'
    text += 'to = "left"\n'
    with (
        pytest.raises(paceline.LiveError, match="no run ended well"),
        pytest.warns(UserWarning, match="(?s)failed at .*by chance") as warned,
    ):
        paceline.emulate(
            'duration = "1 s"\n' + text, set={f"flow.{flow}.cc": "breaks"}, schemes={"breaks": Soon}
        )
    assert flow == "back" or "flow out[0]" in str(warned[0].message)


class Soon(paceline.WindowController):
    """Fails after half a second"""

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        if isinstance(event, events.Established):
            self.window = 10
        if path.now_s > 0.5:
            raise KeyError("by chance")
