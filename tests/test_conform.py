"""`paceline conform`: built-in controllers pass, known faults are found, and what fails can be run again."""

from __future__ import annotations

import inspect
import json
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import paceline
import screen
from own_controllers import ROOT, TWINS
from paceline import _core, conform, events, own_controllers, parameter
from paceline.errors import ControllerError, PacelineError

CONTROLLED = [one["name"] for one in json.loads(_core.schemes()) if one["machine"] != "udp"]

FAILS = {"tfrcp": {"alone", "outage", "rate-drop", "two"}}
"""Built-in ones that do not pass all: docs/your-own-controller.md says why."""


@pytest.mark.parametrize("cc", CONTROLLED)
def test_built_in_controllers_pass(cc: str) -> None:
    found = conform.run(cc, runs=2)
    failed = {one.check: one.wrong for one in found if not one.passes}
    assert failed.keys() == FAILS.get(cc, set()), failed
    assert len([one for one in found if not one.skipped]) > 12


def test_the_twins_pass() -> None:
    for cc in ("reno_twin.py:RenoTwin", "nada_twin.py:NadaTwin"):
        found = conform.run(f"python:{TWINS / cc}", runs=1)
        assert all(one.passes for one in found), [one for one in found if not one.passes]


class Sound(paceline.WindowController):
    """Additive increase, multiplicative decrease"""

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        match event:
            case events.Established(window) | events.Idle(window):
                self.window = window
            case events.Acked(segments):
                self.grow(segments)
            case events.Lost() | events.EcnEcho():
                self.cut()
            case events.Timeout():
                self.window = 1

    def grow(self, segments: int) -> None:
        self.window = min(self.window + min(segments / self.window, 1), 1e6)

    def cut(self) -> None:
        self.window = max(self.window / 2, 1)


class DrawsElsewhere(Sound):
    def grow(self, segments: int) -> None:
        self.window = min(self.window + random.random() * min(segments / self.window, 1), 1e6)


class NeverGrows(Sound):
    def grow(self, segments: int) -> None:
        self.window = min(self.window, 2)


class HeedsNoMark(Sound):
    def on_feedback(self, event: Any, path: events.PathView) -> None:
        if not isinstance(event, events.EcnEcho):
            super().on_feedback(event, path)


class HalvesBelowOne(Sound):
    def cut(self) -> None:
        self.window /= 2


class ShortOfLongRoundTrips(Sound):
    def on_feedback(self, event: Any, path: events.PathView) -> None:
        if path.srtt_s > 1:
            raise OverflowError("a round trip of more than a second")
        super().on_feedback(event, path)


@dataclass
class BreaksAtItsBound(Sound):
    gain: float = parameter(1.0, 0, 2)

    def grow(self, segments: int) -> None:
        self.window = min(self.window + min(segments / self.window, 1) / self.gain, 1e6)


class KeepsSending(paceline.MediaController):
    """Sends twice as much where nothing comes back"""

    timer_s = 1.0

    def __init__(self) -> None:
        self.rate_bps = self.target_bps = 5e5
        self.last_s = 0.0

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        self.last_s = path.now_s

    def on_timer(self, path: events.PathView) -> None:
        silent = path.now_s - self.last_s > 2
        self.rate_bps = self.target_bps = 2e6 if silent else 5e5


@pytest.mark.parametrize(
    ("page", "name", "fails"),
    [
        ("docs/your-own-controller.md", "Aimd", set()),
        # the tutorial says so: it takes jitter for a queue
        ("docs/tutorials/write-a-controller.md", "Gentle", {"jitter"}),
    ],
)
def test_the_documents_classes_pass(page: str, name: str, fails: set[str], tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    file = tmp_path / "mine.py"
    file.write_text(next(block for block in blocks if f"class {name}(" in block))
    # with seed 4 one that grows by all of an acknowledgement that fills a hole loses a sixth of its packets
    found = [one for one in conform.run(f"python:{file}:{name}", seed=4, runs=1) if not one.passes]
    assert {one.check for one in found} == fails, found


def test_a_sound_one_passes() -> None:
    found = conform.run("own", schemes={"own": Sound}, seed=4, runs=2)
    assert all(one.passes for one in found), [one for one in found if not one.passes]


class GrowsByAll(Sound):
    def grow(self, segments: int) -> None:
        self.window += segments / self.window


def test_a_fault_that_shows_now_and_then_is_found_by_some_seed() -> None:
    (found,) = conform.run("own", schemes={"own": GrowsByAll}, checks=["alone"], runs=5)
    assert found.wrong.keys() == {4, 5}, found.wrong


SLOWEST = {"alone", "loss", "loss-of-answers", "duplicates", "jitter", "outage"}
"""What asks for a rate."""


@pytest.mark.parametrize(
    ("cls", "fails", "said"),
    [
        (DrawsElsewhere, {"same-bits"}, "two runs of one seed differ"),
        (NeverGrows, SLOWEST, "less than 5 Mbit/s"),
        (HeedsNoMark, {"marks"}, "the mean queue is 1\\d\\.\\d ms, not less than 15 ms"),
        (HalvesBelowOne, {"extremes"}, "is not from 1 to 1e9 segments"),
        (ShortOfLongRoundTrips, {"tiny", "extremes"}, "OverflowError: a round trip of more than a second"),
        (BreaksAtItsBound, {"bounds"}, "gain = 0.0: the controller of flow own"),
        (KeepsSending, {"silence"}, "sends .* while nothing comes back"),
    ],
)
def test_a_known_fault_fails_its_own_checks_and_no_other(
    cls: type, fails: set[str], said: str, tmp_path: Path
) -> None:
    found = [one for one in conform.run("own", schemes={"own": cls}, runs=1) if not one.passes]
    assert {one.check for one in found} == fails, found
    assert re.search(said, next(iter(found[0].wrong.values())))
    for written in conform.write(found, tmp_path):
        if written.stem in ("tiny", "bounds"):
            with pytest.raises(ControllerError):
                paceline.run(written, schemes={"own": cls}, seed=1)
    assert {path.stem for path in tmp_path.iterdir()} == fails - {"extremes"}


class Slow(Sound):
    """20 ms for each acknowledgement"""

    def grow(self, segments: int) -> None:
        super().grow(segments)
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass


class NeverReturns(Sound):
    def cut(self) -> None:
        while True:
            pass


@pytest.mark.parametrize("cls", [Slow, NeverReturns])
def test_what_takes_too_long_is_slow_and_no_fault(cls: type) -> None:
    told: list[float] = []
    began = time.monotonic()
    found = conform.run(
        "own",
        schemes={"own": cls},
        checks=["heavy-loss", "huge", "tiny"],
        limit_s=1.0,
        progress=lambda n, _: told.append(n),
    )
    assert time.monotonic() - began < 30
    slow = [one for one in found if one.slow]
    assert slow
    assert not any(one.wrong for one in found), found
    assert all(len(one.slow) == 1 for one in slow), "the seeds after it are not tried"
    assert all("it takes longer than 1 s, at " in words for one in slow for words in one.slow.values())
    assert not slow[0].passes
    assert len(told) > 10, "progress while it runs"
    assert told == sorted(told)
    with pytest.raises(PacelineError, match="limit_s"):
        conform.run("cubic", limit_s=0.0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_and_shows_what_is_done(number: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import pathlib\nimport paceline\nclass Mine(paceline.WindowController):\n"
        "    def on_feedback(self, event, path):\n"
        "        while path.srtt_s > 0.9:\n            pathlib.Path('stuck').touch()\n"
    )
    command = [
        sys.executable,
        "-m",
        "paceline",
        "conform",
        "mine.py",
        "--check",
        "small-window",
        "--check",
        "tiny",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        while child.poll() is None and not (tmp_path / "stuck").exists():
            time.sleep(0.05)
        child.send_signal(number)
        out, error = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Stopped" in error
    assert "small-window" in out


def test_the_limit_of_the_command_is_that_of_the_function() -> None:
    limit = inspect.signature(conform.run).parameters["limit_s"].default
    shown = " ".join(screen.said("paceline conform --help", ROOT, {}).text.split())
    assert f"counts as slow. Default: {limit:.0f}. --out" in shown


def test_mistakes() -> None:
    with pytest.raises(PacelineError, match="there is no check nothing; there are alone, loss"):
        conform.run("cubic", checks=["nothing"])
    with pytest.raises(PacelineError, match="udp controls nothing"):
        conform.run("udp")
    with pytest.raises(ControllerError, match="lacks the method on_feedback"):
        conform.run("own", schemes={"own": type("Bare", (paceline.WindowController,), {})})
    with pytest.raises(ControllerError, match="cannot be read"):
        conform.run("python:nowhere.py:Mine")


def test_files_are_named_as_people_name_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = (
        "import paceline\nclass {}(paceline.WindowController):\n    def on_feedback(self, event, path): ...\n"
    )
    Path("one.py").write_text(one.format("One"))
    Path("two.py").write_text(one.format("One") + one.format("Two"))
    assert own_controllers.named("one.py") == "python:one.py:One"
    assert own_controllers.named("two.py:Two") == "python:two.py:Two"
    assert own_controllers.named("mine.so:x") == "library:mine.so:x"
    assert own_controllers.named("cubic") == "cubic"
    with pytest.raises(
        ControllerError, match=r"name one of its controllers, as two\.py:CLASS; it has One, Two"
    ):
        own_controllers.named("two.py")


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import paceline\nclass Mine(paceline.WindowController):\n"
        "    def on_feedback(self, event, path):\n        if path.now_s > 3: raise ValueError('no more')\n"
    )

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        return screen.paceline(*words, where=tmp_path)

    failed = called("conform", "mine.py", "--check", "loss", "--check", "short", "--runs", "2")
    assert failed.returncode == 1
    assert "ValueError: no more" in failed.stdout
    assert "python:mine.py:Mine: 0 pass, 2 fail, 0 left out" in failed.stdout
    again = failed.stdout.split("  paceline ")[1].split("\n")[0].split()
    assert again[:2] == ["run", "out/conform-mine.py-Mine/loss.toml"]
    assert "ValueError: no more" in called(*again).stderr
    assert called("conform", "cubic", "--check", "loss").returncode == 0
    told = json.loads(called("conform", "mine.py", "--check", "loss", "--json").stdout)
    assert told["checks"][0]["verdict"] == "fail"
    assert "three packets in ten" in called("conform", "--list").stdout
    assert "which controller?" in called("conform").stderr
