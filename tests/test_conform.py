"""`paceline conform`: built-in controllers pass, known faults are found, and what fails can be run again."""

from __future__ import annotations

import json
import random
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import paceline
import screen
from own import TWINS
from paceline import _core, conform, events, foreign, parameter
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
        self.window = min(self.window + segments / self.window, 1e6)

    def cut(self) -> None:
        self.window = max(self.window / 2, 1)


class DrawsElsewhere(Sound):
    def grow(self, segments: int) -> None:
        self.window = min(self.window + random.random() * segments / self.window, 1e6)


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
        self.window = min(self.window + segments / self.window / self.gain, 1e6)


class KeepsSending(paceline.MediaController):
    """Sends twice as much where nothing comes back"""

    timer_s = 1.0

    def __init__(self) -> None:
        self.rate_bps = self.target_bps = 5e5
        self.heard_s = 0.0

    def on_feedback(self, event: Any, path: events.PathView) -> None:
        self.heard_s = path.now_s

    def on_timer(self, path: events.PathView) -> None:
        silent = path.now_s - self.heard_s > 2
        self.rate_bps = self.target_bps = 2e6 if silent else 5e5


def test_a_sound_one_passes() -> None:
    found = conform.run("own", schemes={"own": Sound}, runs=2)
    assert all(one.passes for one in found), [one for one in found if not one.passes]


@pytest.mark.parametrize(
    ("cls", "check", "said"),
    [
        (DrawsElsewhere, "same-bits", "two runs of one seed differ"),
        (NeverGrows, "alone", "less than 5 Mbit/s"),
        (HeedsNoMark, "marks", "the mean queue is 1\\d\\.\\d ms, not less than 15 ms"),
        (HalvesBelowOne, "extremes", "is not from 1 to 1e9 segments"),
        (ShortOfLongRoundTrips, "tiny", "OverflowError: a round trip of more than a second"),
        (ShortOfLongRoundTrips, "extremes", "OverflowError"),
        (BreaksAtItsBound, "bounds", "gain = 0.0: the controller of flow own"),
        (KeepsSending, "silence", "sends .* while nothing comes back"),
    ],
)
def test_known_faults_are_found(cls: type, check: str, said: str, tmp_path: Path) -> None:
    (found,) = conform.run("own", schemes={"own": cls}, checks=[check], runs=3)
    assert not found.passes
    assert any(re.search(said, words) for words in found.wrong.values()), found.wrong
    written = conform.write([found], tmp_path)
    assert bool(written) == (check != "extremes")
    if written and check not in ("same-bits", "alone", "marks", "silence"):
        with pytest.raises(ControllerError):
            paceline.run(written[0], schemes={"own": cls}, seed=min(found.wrong))


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
    assert foreign.named("one.py") == "python:one.py:One"
    assert foreign.named("two.py:Two") == "python:two.py:Two"
    assert foreign.named("mine.so:x") == "library:mine.so:x"
    assert foreign.named("cubic") == "cubic"
    with pytest.raises(ControllerError, match=r"name one, as two\.py:CLASS; there is One, Two"):
        foreign.named("two.py")


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
