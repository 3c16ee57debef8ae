"""Scenarios as text for another directory: what names a file does so from there, all else stays as it is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import paceline
from paceline.hunts import hunt
from paceline.scenarios.rebase import text_from
from paceline.scenarios.scenario import load

OWN = """
import paceline
from beside import STEP


class Mine(paceline.WindowController):
    def on_feedback(self, event, path):
        self.window = STEP
"""
SCENARIO = """
name = "droptail"
duration = "2 s"
[link.bottleneck]
delay = "10 ms"
rate_trace = { file = "traces/down" }
queue = { kind = "droptail", limit = "30 packets" }
[link.bottleneck.backward]
rate_trace = { file = "traces/up", format = "seconds-mbit" }
[flow."a.b"]
cc = "python:own.py:Mine"
[flow.film]
cc = "udp"
app = { kind = "video-trace", file = "frames", format = "sizes" }
[flow.call]
cc = "gcc"
[flow.call.app]
kind = "encoder"
skip_frames = 0
traces = [{ rate = "300 kbit/s", file = "frames" }, { rate = "1 Mbit/s", file = "sack" }]
[flow.other]
cc = "sack"
"""
LINK = """
duration = "1.5 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "30 packets" }
[flow.mine]
cc = "sack"
[flow.other]
cc = "cubic"
"""
WORDS = ("droptail", "sack", "udp", "2 s", "gcc")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    there = tmp_path / "there"
    (there / "traces").mkdir(parents=True)
    (there / "own.py").write_text(OWN)
    (there / "beside.py").write_text("STEP = 7.0")
    for word in (*WORDS, "frames"):
        (there / word).write_text("1000\n2000\n")
    (there / "traces" / "down").write_text("1\n2\n3\n")
    (there / "traces" / "up").write_text("0 2\n")
    (there / "x.toml").write_text(SCENARIO)
    return there


def test_a_scenario_runs_from_another_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out" / "deep"
    out.mkdir(parents=True)
    (out / "x.toml").write_text(text_from(load(folder / "x.toml"), out))
    monkeypatch.chdir(tmp_path)
    table = tomllib.loads((out / "x.toml").read_text())
    link, flow = table["link"]["bottleneck"], table["flow"]
    assert link["rate_trace"]["file"] == "../../there/traces/down"
    assert link["backward"]["rate_trace"]["file"] == "../../there/traces/up"
    assert link["queue"]["kind"] == table["name"] == "droptail"
    assert flow["a.b"]["cc"] == "python:../../there/own.py:Mine"
    assert flow["film"]["app"]["file"] == "../../there/frames"
    assert [one["file"] for one in flow["call"]["app"]["traces"]] == [
        "../../there/frames",
        "../../there/sack",
    ]
    assert [flow[name]["cc"] for name in ("film", "call", "other")] == ["udp", "gcc", "sack"]
    here, there = (
        paceline.run(file, workers=1).flows.drop("cc") for file in (out / "x.toml", folder / "x.toml")
    )
    assert here.equals(there)


def test_a_scenario_of_a_dict_names_files_from_the_current_directory(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    trace = str(folder / "traces" / "down")
    scenario = load(
        {
            "duration": "1 s",
            "link": {
                "bottleneck": {
                    "delay": "10 ms",
                    "rate_trace": {"file": trace},
                    "backward": {"rate": "1 Mbit/s"},
                }
            },
            "flow": {"mine": {"cc": "python:own.py:Mine"}, "given": {"cc": "own.py"}},
        },
        schemes={"own.py": type("Given", (paceline.WindowController,), {"on_feedback": lambda *_: None})},
    )
    table = tomllib.loads(text_from(scenario, tmp_path / "out"))
    assert table["link"]["bottleneck"]["rate_trace"]["file"] == trace
    assert table["flow"]["mine"]["cc"] == "python:../there/own.py:Mine"
    assert table["flow"]["given"]["cc"] == "own.py"


def test_a_scenario_that_names_no_file_keeps_its_text(tmp_path: Path) -> None:
    scenario = load(Path(__file__).parent.parent / "examples" / "coffee-shop.toml")
    assert text_from(scenario, tmp_path) == scenario.__getnewargs__()[0]


def test_only_the_names_of_files_change(folder: Path, tmp_path: Path) -> None:
    loaded = load(folder / "x.toml")
    before, after = (
        text.splitlines() for text in (loaded.__getnewargs__()[0], text_from(loaded, tmp_path / "out"))
    )
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == 6
    assert all("../there/" in line for line in changed)


def test_a_find_beside_files_with_the_names_of_its_words_runs_from_there(tmp_path: Path) -> None:
    for word in ("droptail", "sack", "cubic", "1.5 s"):
        (tmp_path / word).write_text("")
    (tmp_path / "x.toml").write_text(LINK)
    over = {"link.bottleneck.delay": "10 ms..100 ms"}
    found = hunt(
        tmp_path / "x.toml", over, "rtt_mean_s[mine]", tries=8, again=2, workers=1, out=tmp_path / "out"
    )
    assert (
        load(str(found.finds[0].file)).to_toml()
        == load(found.finds[0].scenario, {"name": "x-find-1"}).to_toml()
    )
