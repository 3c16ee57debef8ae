"""Hunts: what is searched, what is worst, what is left of a find, and that known faults are found."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import paceline
from paceline.errors import ControllerError, HuntStopped, Interrupted, PacelineError
from paceline.hunting import Hunt, hunt
from paceline.hunting.goal import GREATEST, Goal
from paceline.hunting.minimising import minimise
from paceline.hunting.ranges import Candidate, Range, apart, axes_of, over_of
from paceline.hunting.searching import SEEN_ENOUGH, Try, distinct, said
from paceline.hunting.trying import Outcome
from paceline.results import Results
from paceline.scenario import load
from paceline.sweeping import Point, run_points

ROOT = Path(__file__).resolve().parent.parent
STUCK = ROOT / "examples" / "stuck.toml"
STARVED = "log2(flows.goodput_bps[sound] / flows.goodput_bps[mine])"
OVER = {
    "link.bottleneck.queue.limit": "2 packets..500 packets",
    "link.bottleneck.delay": "1 ms..200 ms",
    "link.bottleneck.rate": "1 Mbit/s..20 Mbit/s",
    "flow.sound.cc": ["sack", "newreno"],
}
LINK = """
duration = "5 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "30 packets" }
[flow.mine]
cc = "sack"
[flow.other]
cc = "cubic"
count = 2
"""
LOCKOUT = """
duration = "60 s"
warmup = "10 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "60 packets" }
[flow.a]
rtt = "40 ms"
[flow.b]
rtt = "40 ms"
start = { uniform = ["0 s", "1 s"] }
"""
FAILING = '''
import math
import paceline
from paceline import events

STEPS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)


class Failing(paceline.WindowController):
    """Looks its step up by the round trip, and has none above 300 ms"""

    def on_feedback(self, event, path):
        match event:
            case events.Established(window) | events.Idle(window):
                self.window = window
            case events.Acked(segments):
                self.window += STEPS[int(path.srtt_s / 0.05)] * segments / self.window
            case events.Lost():
                self.window = max(self.window / 2, 1)
            case events.Timeout():
                self.window = 1
'''


def span(text: str) -> Range:
    (axis,) = axes_of({"link.bottleneck.delay": text}, {})
    assert isinstance(axis, Range)
    return axis


# Where it looks.


@pytest.mark.parametrize(
    ("text", "logarithmic", "shown"),
    [
        ("5 ms..200 ms", True, ["5 ms", "31.6 ms", "200 ms"]),
        ("20 ms..60 ms", False, ["20 ms", "40 ms", "60 ms"]),
        ("40 ms..44 ms", False, ["40 ms", "42 ms", "44 ms"]),
        ("0 s..2 s", False, ["0 s", "1 s", "2 s"]),
        ("1 Mbit/s..1 Gbit/s", True, ["1 Mbit/s", "31.6 Mbit/s", "1 Gbit/s"]),
        ("1 ms..2 s", True, ["1 ms", "44.7 ms", "2 s"]),
        ("5..200 ms", True, ["5 ms", "31.6 ms", "200 ms"]),
        ("2 packets..200 packets", True, ["2 packets", "20 packets", "200 packets"]),
        ("1..9", False, ["1", "5", "9"]),
        ("0.5..2", False, ["0.5", "1.25", "2"]),
        ("0 %..5 %", False, ["0 %", "2.5 %", "5 %"]),
        ("40 B..60 B", False, ["40 B", "50 B", "60 B"]),
    ],
)
def test_a_range_says_its_values_in_its_units(text: str, logarithmic: bool, shown: list[str]) -> None:
    axis = span(text)
    assert axis.logarithmic == logarithmic
    assert [axis.at(0.0), axis.at(0.5), axis.at(1.0)] == shown
    assert axis.ends_text() == [shown[0], shown[2]]


@pytest.mark.parametrize(
    "text", ["5 ms..200 ms", "40 ms..44 ms", "1 Mbit/s..1 Gbit/s", "0 %..5 %", "3..3000"]
)
def test_values_are_short_within_the_range_and_where_they_were_asked_for(text: str) -> None:
    axis = span(text)
    for step in range(101):
        value = axis.at(step / 100)
        there = axis.place(value)
        assert there is not None
        assert 0 <= there <= 1
        assert abs(there - step / 100) < 0.06 if axis.whole else abs(there - step / 100) < 0.006
        assert sum(letter.isdigit() for letter in value.split()[0].lstrip("0.")) <= 4


def test_whole_numbers_stay_whole_and_beyond_the_range_values_go_on() -> None:
    assert {span("1..20").at(step / 50) for step in range(51)} == {str(n) for n in range(1, 21)}
    assert span("20 ms..60 ms").at(-0.5) == "0 ms"
    assert span("20 ms..60 ms").place("80 ms") == pytest.approx(1.5)
    assert span("20 ms..60 ms").place("vegas") is None
    assert span("5 ms..200 ms").rounder("197 ms") == "200 ms"


def test_options_read_as_those_of_a_sweep() -> None:
    texts = [
        "a.b=5 ms..200 ms",
        "c=x,y",
        "d,e=1:2,3:4",
        "f,g=1..9",
        "h=python:../mine.py:Mine,sack",
    ]
    assert over_of(texts) == {
        "a.b": "5 ms..200 ms",
        "c": ["x", "y"],
        ("d", "e"): [("1", "2"), ("3", "4")],
        ("f", "g"): "1..9",
        "h": ["python:../mine.py:Mine", "sack"],
    }
    both = axes_of(over_of(texts[2:4]), {})
    assert both[0].changes("3:4") == {"d": "3", "e": "4"}
    assert both[1].changes("7") == {"f": "7", "g": "7"}


@pytest.mark.parametrize(
    ("over", "says"),
    [
        ({"a": "200 ms..5 ms"}, "low end comes first"),
        ({"a": "5 ms..5 ms"}, "low end comes first"),
        ({"a": "5 ms..20 packets"}, "no quantities of one kind"),
        ({"a": "5 ms"}, "a range is LOW..HIGH"),
        ({"a": ["x"]}, "one value leaves nothing to search"),
        ({"a": 3}, "a range as"),
        ({"seed": "1..9"}, "seed is not varied"),
        ({"a.b": "1..9", "a": ["x", "y"]}, "is varied"),
        ({}, "nothing to search"),
    ],
)
def test_what_is_no_range_is_refused(over: dict[str, Any], says: str) -> None:
    with pytest.raises(PacelineError, match=says):
        axes_of(over, {})


def test_candidates_are_apart_by_the_axis_on_which_they_are_furthest() -> None:
    axes = axes_of({"a": "1 ms..100 ms", "b": ["x", "y"]}, {})
    assert apart(axes, ("1 ms", "x"), ("10 ms", "x")) == pytest.approx(0.5)
    assert apart(axes, ("1 ms", "x"), ("1 ms", "y")) == 1.0
    assert apart(axes, ("1 ms", "x"), ("none", "x")) == 1.0


# What is worst.


@pytest.fixture(scope="module")
def ran() -> Results:
    return paceline.run(LINK, workers=1)


def test_expressions_are_those_over_the_tables(ran: Results) -> None:
    (record,) = ran.records
    flows = {(row["flow"], row["instance"]): row for row in ran.flows.iter_rows(named=True)}
    mine, others = flows["mine", 0], [row for (name, _), row in flows.items() if name == "other"]
    assert Goal("flows.goodput_bps[mine]").of(record) == mine["goodput_bps"]
    assert Goal("goodput_bps[mine] / 1e6 - 1").of(record) == pytest.approx(mine["goodput_bps"] / 1e6 - 1)
    assert Goal("most(flows.rtt_mean_s)").of(record) == max(row["rtt_mean_s"] for row in flows.values())
    assert Goal('least(goodput_bps["other"])').of(record) == min(row["goodput_bps"] for row in others)
    forward = ran.queues.filter(ran.queues["direction"] == "forward")["mean_packets"][0]
    assert Goal("queues.mean_packets[bottleneck]").of(record) == forward
    assert Goal("queues.mean_packets[bottleneck backward]").of(record) < forward
    jain = ran.groups.filter(ran.groups["group"] == "other")["jain"][0]
    assert Goal("1 - groups.jain[other]").of(record) == pytest.approx(1 - jain)


def test_a_division_by_zero_is_the_greatest_and_what_is_null_has_no_value(ran: Results) -> None:
    (record,) = ran.records
    assert Goal("goodput_bps[mine] / 0").of(record) == GREATEST
    assert math.isnan(Goal("flows.frame_delay_p95_s[mine]").of(record))
    assert Goal("coalesce(flows.frame_delay_p95_s[mine], 10)").of(record) == 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("flows.goodputbps[mine]", "did you mean flows.goodput_bps"),
        ("goodput_bps[min]", "did you mean mine.*there are mine, other"),
        ("queues.mean_packets[other]", "there are bottleneck"),
        ("streams.late_share[mine]", "a run has no streams"),
        ("goodput_bps[other]", "has 2 rows.*mean, least or most"),
        ("most", "is a function"),
        ("1 +", "invalid syntax"),
        ("sine(goodput_bps[mine])", "no function 'sine'"),
        ("3", "has no measure"),
        (" ", "is empty"),
    ],
)
def test_what_cannot_be_evaluated_is_named(text: str, says: str, ran: Results) -> None:
    with pytest.raises(PacelineError, match=says):
        Goal(text).check(ran.records[0])


def test_a_value_has_the_unit_of_its_measure() -> None:
    assert Goal("flows.goodput_bps[mine]").shown(2e6, 1e5) == "2.00 ± 0.10 Mbit/s"
    assert Goal("flows.goodput_bps[mine] / 1").shown(2.0, 0.1) == "2.00 ± 0.10"


# What is left of a find.


def left_of(find: Candidate, own: Sequence[str], stays: Any) -> tuple[Candidate, int]:
    axes = axes_of({"a": "1 ms..100 ms", "b": "0..100", "c": ["x", "y"]}, {})
    asked = 0

    def stay(wanted: Sequence[tuple[int, Candidate]]) -> list[bool]:
        nonlocal asked
        asked += len(wanted)
        return [
            stays(*(value or mine for value, mine in zip(candidate, own, strict=True)))
            for _, candidate in wanted
        ]

    left: list[Candidate] = []
    minimise([find], axes, own, stay, left)
    return left[0], asked


def test_only_what_a_find_needs_is_left_and_as_near_to_the_file_as_it_stays() -> None:
    own = ("10 ms", "5", "x")
    left, asked = left_of(("90 ms", "80", "y"), own, lambda a, b, c: int(b) >= 20)
    assert left[0] is None
    assert left[2] is None
    assert 20 <= int(left[1] or 0) < 25
    assert asked < 20


def test_of_two_values_either_of_which_does_one_is_left() -> None:
    left, _ = left_of(("90 ms", "80", "x"), ("10 ms", "5", "x"), lambda a, b, c: a != "10 ms" or int(b) > 50)
    assert sum(value is not None for value in left) == 1


def test_a_find_that_needs_all_of_it_stays_as_it_is() -> None:
    find = ("90 ms", "80", "y")
    assert left_of(find, ("10 ms", "5", "x"), lambda *now: now == find)[0] == find


def outcome(mean: float, crash: str | None = None) -> Outcome:
    return Outcome((math.nan,), (crash,), (1.0,)) if crash else Outcome((mean,), (), (0.0,))


def test_finds_differ_and_crashes_come_first_each_kind_once() -> None:
    axes = axes_of({"a": "0..100"}, {})
    tries = [
        Try((str(a),), outcome(float(a), crash))
        for a, crash in [
            (99, None),
            (98, None),
            (50, None),
            (10, None),
            (3, "IndexError: 7"),
            (4, "IndexError: 8"),
        ]
    ]
    found = distinct(tries, axes, least=20.0, most=5, far=0.25)
    assert [one.candidate[0] for one in found] == ["3", "99", "50"]
    assert said(tries[4].outcome) == said(tries[5].outcome)


# Whole hunts.


def paths_left(found: Hunt, number: int = 0) -> set[str]:
    return {change.path for change in found.finds[number].changes if change.to is not None}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hunt, Path, float]:
    out = tmp_path_factory.mktemp("hunt") / "found"
    began = time.monotonic()
    found = hunt(STUCK, OVER, STARVED, tries=40, workers=1, out=out, set={"duration": "20 s"})
    return found, out, time.monotonic() - began


def test_a_known_fault_is_found_and_holds_on_fresh_seeds(stuck: tuple[Hunt, Path, float]) -> None:
    found, _, took = stuck
    worst = found.finds[0]
    assert took < 300
    assert worst.is_shown
    assert worst.value is not None
    assert worst.value.low is not None
    assert worst.value.low > 1.0  # twice as much to the sound one
    assert worst.above >= 9
    assert abs(found.own_searched) < 1.0
    assert "link.bottleneck.queue.limit" in paths_left(found)
    assert len(paths_left(found)) <= 2
    # no seed was seen twice
    seeds = [seed for some in found.seeds.values() for seed in some]
    assert len(seeds) == len(set(seeds)) == 23


def test_the_fault_and_not_the_place_is_what_starves_it(stuck: tuple[Hunt, Path, float]) -> None:
    _, out, _ = stuck
    sound = paceline.run(out / "find-1.toml", runs=5, seed=900, set={"flow.mine.cc": "sack"}, workers=1)
    faulty = paceline.run(out / "find-1.toml", runs=5, seed=900, workers=1)
    goal = Goal(STARVED)
    of_sound, of_faulty = (sum(map(goal.of, ran.records)) / 5 for ran in (sound, faulty))
    assert abs(of_sound) < 1.0
    assert of_faulty > of_sound + 1.0


def test_a_find_is_a_file_that_runs_from_anywhere(stuck: tuple[Hunt, Path, float], tmp_path: Path) -> None:
    found, out, _ = stuck
    ran = subprocess.run(
        [sys.executable, "-m", "paceline", "run", str(out / "find-1.toml"), "--json", "--seed", "14"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    summary = json.loads(ran.stdout)
    flows = {row["flow"]: row["goodput_bps"] for row in summary["flows"]}
    value = found.finds[0].value
    assert value is not None
    assert value.mean is not None
    assert math.log2(flows["sound"] / flows["mine"]) == pytest.approx(value.mean, abs=4)
    text = (out / "find-1.toml").read_text()
    assert "link.bottleneck.queue.limit: 50 packets ->" in text
    assert "which the search had not used" in text


def test_a_hunt_leaves_its_tries_and_a_figure(stuck: tuple[Hunt, Path, float]) -> None:
    found, out, _ = stuck
    tries = found.tries
    assert len(tries) == 40
    assert set(tries.columns) == {"try", *OVER, "value", "failed"}
    assert {path.name for path in out.iterdir()} >= {
        "tries.csv",
        "tries.parquet",
        "hunt.svg",
        "hunt.png",
        "manifest.json",
    }
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["kind"] == "hunt"
    assert manifest["over"]["link.bottleneck.delay"] == "1 ms..200 ms (logarithmic)"


def test_the_number_of_workers_changes_nothing(stuck: tuple[Hunt, Path, float]) -> None:
    found, _, _ = stuck
    again = hunt(STUCK, OVER, STARVED, tries=40, workers=3, executor="threads", set={"duration": "20 s"})
    assert again.tries.equals(found.tries)
    assert [find.candidate for find in again.finds] == [find.candidate for find in found.finds]
    assert [find.value for find in again.finds] == [find.value for find in found.finds]


def test_a_crash_is_the_worst_of_all(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    file = tmp_path / "x.toml"
    file.write_text(LINK.replace('cc = "sack"', 'cc = "python:failing.py:Failing"'))
    found = hunt(
        file,
        {"link.bottleneck.delay": "1 ms..400 ms", "link.bottleneck.rate": "1 Mbit/s..10 Mbit/s"},
        "flows.goodput_bps[mine]",
        tries=24,
        again=4,
        workers=1,
        out=tmp_path / "out",
    )
    worst = found.finds[0]
    assert worst.crash is not None
    assert "IndexError" in worst.crash
    assert worst.value is not None
    assert worst.value.mean == 1.0
    assert worst.is_shown
    assert paths_left(found) == {"link.bottleneck.delay"}
    assert float(str(worst.changes[0].to).split()[0]) < 200
    # the search goes on for others once a crash has been met so often
    assert found.tries.filter(found.tries["failed"] == 0).height > 24 - 3 * SEEN_ENOUGH
    assert not any(find.crash for find in found.finds[1:])
    with pytest.raises(ControllerError, match="IndexError"):
        paceline.run(tmp_path / "out" / "find-1.toml", workers=1)


def test_the_lock_out_of_close_round_trips_is_found() -> None:
    found = hunt(
        LOCKOUT,
        {
            "flow.b.rtt": "38 ms..42 ms",
            "link.bottleneck.queue.limit": "10 packets..200 packets",
            "host_delay": ["2 packets", "0 s"],
        },
        "abs(log2(flows.goodput_bps[a] / flows.goodput_bps[b]))",
        tries=48,
        workers=1,
    )
    worst = found.finds[0]
    assert worst.is_shown
    assert worst.value is not None
    assert worst.value.low is not None
    assert worst.own is not None
    assert worst.own.high is not None
    assert worst.value.low > worst.own.high
    # without the hosts' delay alone do phases decide
    assert "host_delay" in paths_left(found)


def test_where_nothing_is_worse_nothing_is_found() -> None:
    found = hunt(
        LINK,
        {"link.bottleneck.rate": "1 Mbit/s..1.9 Mbit/s"},
        "queues.utilisation[bottleneck] - 2",
        tries=8,
        workers=1,
    )
    assert not [find for find in found.finds if find.is_shown]


def test_what_has_no_value_and_what_is_no_scenario_is_counted() -> None:
    found = hunt(
        LINK,
        {"flow.mine.app.kind": ["ftp", "web"], "link.bottleneck.loss.rate": "10 %..190 %"},
        "flows.transfer_time_mean_s[mine] + coalesce(flows.frame_delay_p95_s[mine], 0)",
        tries=16,
        workers=1,
        set={"flow.mine.app": '{ kind = "web" }'},
    )
    said_so = " ".join(found.notes)
    assert "tries were no scenario" in said_so
    assert found.tries["value"].null_count() > 0


def test_a_budget_ends_a_hunt() -> None:
    began = time.monotonic()
    found = hunt(STUCK, OVER, STARVED, budget_s=4, again=2, workers=1)
    took = time.monotonic() - began
    assert len(found.tried) >= 8
    assert 2 < took < 15


def test_ctrl_c_leaves_what_was_found_so_far(tmp_path: Path) -> None:
    def stop(done: float, total: float) -> None:
        if done >= 16:
            raise KeyboardInterrupt

    with pytest.raises(HuntStopped, match="Stopped after 16 tries") as stopped:
        hunt(
            STUCK,
            OVER,
            STARVED,
            tries=80,
            workers=1,
            out=tmp_path / "out",
            progress=stop,
            set={"duration": "10 s"},
        )
    assert isinstance(stopped.value, Interrupted)
    text = (tmp_path / "out" / "find-1.toml").read_text()
    assert "The hunt was stopped" in text
    load(tmp_path / "out" / "find-1.toml")


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PacelineError, match=r'pip install "paceline\[hunt\]"'):
        hunt(LINK, {"link.bottleneck.rate": "1 Mbit/s..2 Mbit/s"}, "goodput_bps[mine]", tries=8)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"runs": 0}, "at least 1"),
        ({"again": 1}, "at least 2"),
        ({"tries": 0}, "at least 1"),
        ({"budget_s": 0}, "more than 0 s"),
        ({"keep": 0}, "more than 0, and at most 1"),
        ({"over": {"link.bottleneck.dely": "1 ms..2 ms"}}, "did you mean `delay`"),
        (
            {"over": {"flow.mine.cc": ["sack", "none"]}, "set": {"flow.mine.cc": "vegas"}},
            "leave one of them out",
        ),
        ({"worst": "flows.frame_delay_p95_s[mine]"}, "no run of the file itself has a value; coalesce"),
    ],
)
def test_mistakes_are_named(given: dict[str, Any], says: str) -> None:
    usual: dict[str, Any] = {
        "over": {"link.bottleneck.rate": "1 Mbit/s..2 Mbit/s"},
        "worst": "goodput_bps[mine]",
    }
    with pytest.raises(PacelineError, match=says):
        hunt(LINK, workers=1, **(usual | given))


def test_the_command_prints_and_ends_as_others_do(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(LINK)

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "paceline", "hunt", "x.toml", "--tries", "8", "--again", "4", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    over = ("--over", "link.bottleneck.delay=5 ms..200 ms")
    shown = called(*over, "--worst", "rtt_mean_s[mine]")
    assert shown.returncode == 0, shown.stderr
    assert "made smaller" in shown.stdout
    assert "Shown at 5 %" in shown.stdout
    assert (tmp_path / "out" / "hunt-x" / "find-1.toml").is_file()
    document = json.loads(called(*over, "--worst", "rtt_mean_s[mine]", "--json").stdout)
    assert document["finds"][0]["shown"]
    wrong = called(*over, "--worst", "goodput_bps[min]")
    assert wrong.returncode == 2
    assert (
        'paceline: --worst "goodput_bps[min]": no row of flows is of min: did you mean mine?' in wrong.stderr
    )


def test_optuna_is_imported_by_a_hunt_alone() -> None:
    code = "import sys\nimport paceline.hunting, paceline.cli.hunt\nassert 'optuna' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_of_controllers_are_handed_over_where_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "x.toml").write_text(LINK.replace('cc = "sack"', 'cc = "python:failing.py:Failing"'))
    points = [
        Point(load(tmp_path / "x.toml", {"link.bottleneck.delay": delay})) for delay in ("10 ms", "390 ms")
    ]
    failures: dict[int, ControllerError] = {}
    records = run_points(points, [1, 2], workers=1, failures=failures)
    assert set(failures) == {2, 3}
    assert [bool(record.summary["flows"]) for record in records] == [True, True, False, False]
