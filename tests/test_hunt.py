"""Hunts as a whole: known faults are found, hold on fresh seeds, and are written as files that run."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import paceline
import screen
from paceline.errors import ControllerError, HuntStopped, InternalError, Interrupted, PacelineError
from paceline.hunts import Hunt, hunt
from paceline.hunts.objective import Goal
from paceline.hunts.searching import MAX_REPEATS, kind_of
from paceline.scenarios.scenario import load
from paceline.simulate.points import Point, run_points

ROOT = Path(__file__).resolve().parent.parent
STUCK = ROOT / "examples" / "stuck.toml"
BRIEF = {"duration": "20 s", "access.rate": "100 Mbit/s"}
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
[access]
rate = "100 Mbit/s"
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


def paths_left(found: Hunt, number: int = 0) -> set[str]:
    return {change.path for change in found.finds[number].changes if change.to is not None}


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> tuple[Hunt, Path, float]:
    out = tmp_path_factory.mktemp("hunt") / "found"
    began = time.monotonic()
    found = hunt(STUCK, OVER, STARVED, tries=40, workers=1, out=out, set=BRIEF)
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
    ran = screen.paceline("run", out / "find-1.toml", "--json", "--seed", "14", where=tmp_path)
    summary = json.loads(ran.stdout)
    flows = {row["flow"]: row["goodput_bps"] for row in summary["flows"]}
    value = found.finds[0].value
    assert value is not None
    assert value.mean is not None
    assert math.log2(flows["sound"] / flows["mine"]) == pytest.approx(value.mean, abs=4)
    text = (out / "find-1.toml").read_text()
    assert "link.bottleneck.queue.limit: 50 packets ->" in text
    assert "which the search did not use. Its seed is the first of these." in " ".join(text.split("\n# "))
    assert load(out / "find-1.toml").seed == found.seeds["fresh"][0]


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
    again = hunt(STUCK, OVER, STARVED, tries=40, workers=3, executor="threads", set=BRIEF)
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
    assert found.tries.filter(found.tries["failed"] == 0).height > 24 - 3 * MAX_REPEATS
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
    assert "tries were no valid scenario" in said_so
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


def test_a_hunt_that_was_stopped_goes_on_with_its_runs(tmp_path: Path) -> None:
    over, worst = {"link.bottleneck.rate": "1 Mbit/s..20 Mbit/s"}, "-goodput_bps[mine]"
    given: dict[str, Any] = {"tries": 12, "runs": 2, "again": 2, "finds": 1}
    scenario = paceline.parse(LINK, name="link")

    def stop(done: float, _total: float) -> None:
        if done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(HuntStopped):
        hunt(scenario, over, worst, out=tmp_path / "out", progress=stop, **given)
    runs = tmp_path / "out" / "runs"
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) >= 12
    found = hunt(scenario, over, worst, out=tmp_path / "out", **given)
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}.items()
    undisturbed = hunt(scenario, over, worst, **given)
    assert found.tries.equals(undisturbed.tries)
    assert [one.value for one in found.finds] == [one.value for one in undisturbed.finds]
    # one over something else makes its own, those of the file's own values among them
    hunt(scenario, {"link.bottleneck.delay": "5 ms..50 ms"}, worst, out=tmp_path / "out", **given)
    assert len(kept.keys() & set(runs.glob("*.json"))) <= given["runs"] + 2 * given["again"]


def test_an_error_on_the_way_leaves_what_was_found_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise InternalError("a defect")

    monkeypatch.setattr("paceline.hunts.stages.minimise", full)
    with pytest.raises(InternalError, match="a defect"):
        hunt(
            LINK,
            {"link.bottleneck.delay": "5 ms..200 ms"},
            "rtt_mean_s[mine]",
            tries=8,
            again=2,
            workers=1,
            out=tmp_path,
        )
    assert "The hunt was stopped" in (tmp_path / "find-1.toml").read_text()


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(PacelineError, match=r"python\S* -m pip install optuna"):
        hunt(LINK, {"link.bottleneck.rate": "1 Mbit/s..2 Mbit/s"}, "goodput_bps[mine]", tries=8)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"runs": 0}, "at least 1"),
        ({"again": 1}, "at least 2"),
        ({"tries": 0}, "at least 1"),
        ({"budget_s": 0}, "above 0 s"),
        ({"keep": 0}, "above 0 and at most 1"),
        ({"over": {"link.bottleneck.dely": "1 ms..2 ms"}}, "did you mean `delay`"),
        (
            {"over": {"flow.mine.cc": ["sack", "none"]}, "set": {"flow.mine.cc": "vegas"}},
            "leave one of them out",
        ),
        (
            {"over": {"flow.mine.count": "1..4"}},
            r"has 4 rows: name one .*, least or most \(with flow.mine.count=4\)",
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
        return screen.paceline("hunt", "x.toml", "--tries", "8", "--again", "4", *words, where=tmp_path)

    over = ("--over", "link.bottleneck.delay=5 ms..200 ms")
    shown = called(*over, "--worst", "rtt_mean_s[mine]")
    assert shown.returncode == 0, shown.stderr
    assert "made smaller" in shown.stdout
    assert "Shown at 5 %" in shown.stdout
    assert "  paceline explore out/hunt-x/find-1.toml\n" in shown.stdout
    assert (tmp_path / "out" / "hunt-x" / "find-1.toml").is_file()
    document = json.loads(called(*over, "--worst", "rtt_mean_s[mine]", "--json").stdout)
    assert document["finds"][0]["shown"]
    wrong = called(*over, "--worst", "goodput_bps[min]")
    assert wrong.returncode == 2
    assert (
        'paceline: --worst "goodput_bps[min]": no row of flows matches min (did you mean mine?): there are mine'
        in wrong.stderr
    )


def test_optuna_is_imported_by_a_hunt_alone() -> None:
    code = "import sys\nimport paceline.hunts, paceline.cli.hunt\nassert 'optuna' not in sys.modules"
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


TWO_FAULTS = FAILING.replace(
    "            case events.Lost():\n",
    "            case events.Lost():\n"
    "                if self.window < 4 and self.random.random() < 0.5:\n"
    '                    raise RuntimeError("a window of " + str(self.window))\n',
)


def test_failures_of_two_kinds_are_two_finds_and_the_file_has_a_seed_that_fails(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(TWO_FAULTS)
    file = tmp_path / "x.toml"
    file.write_text(LINK.replace('cc = "sack"', 'cc = "python:failing.py:Failing"'))
    found = hunt(
        file,
        {
            "link.bottleneck.delay": "1 ms..400 ms",
            "link.bottleneck.queue.limit": "2 packets..200 packets",
        },
        "-flows.goodput_bps[mine]",
        tries=48,
        again=4,
        workers=1,
        out=tmp_path / "out",
        set={"duration": "3 s"},
    )
    kinds = {find.crash.strip().splitlines()[-1].partition(":")[0] for find in found.finds if find.crash}
    assert kinds == {"IndexError", "RuntimeError"}
    for find in found.finds:
        if find.crash:
            with pytest.raises(ControllerError) as failure:
                paceline.run(str(find.file), workers=1)
            assert kind_of(str(failure.value)) == kind_of(find.crash)
            assert f"With its seed, {find.scenario.seed}, it fails." in " ".join(
                find.file.read_text().split("\n# ") if find.file else []
            )
