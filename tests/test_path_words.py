"""What `paceline path` says of a path, of reports made up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("paceline._core")

import paceline
from paceline.cli import app, path
from paceline.emulator import paths

PING = """PING 10.0.0.1 (10.0.0.1): 56 data bytes
64 bytes from 10.0.0.1: seq=0 ttl=64 time=20.123 ms

--- 10.0.0.1 ping statistics ---
4 packets transmitted, 4 packets received, 0% packet loss
round-trip min/avg/max = 12.500/16.455/20.410 ms
"""


def report(lag: dict[str, float], *min_delays: float | None) -> dict[str, Any]:
    """A report with this lag and these least delays of its directions."""
    return {
        "far_status": None,
        "without": [],
        "lost_before": [0, 0],
        "host": {"steal_share": 0.0},
        "lag": {"count": 1000, "p50_s": 1e-6, "p99_s": 2e-6, **lag},
        "directions": [{"delay_min_s": delay} for delay in min_delays],
    }


@pytest.mark.parametrize(
    ("p99_s", "min_delays", "large"),
    [
        (3e-3, (0.02, 0.02), True),
        (1.9e-3, (0.02, 0.02), False),  # below a tenth of the delay
        (3e-3, (0.2, 0.02), True),  # of the shorter direction
        (3e-3, (0.02, None), True),  # nothing came back
        (0.9e-3, (0.001, 0.001), False),  # a tenth of little
        (1.1e-3, (0.0, 0.0), True),
        (1.1e-3, (None, None), True),
    ],
)
def test_a_large_lag_is_noted(p99_s: float, min_delays: tuple[float | None, ...], large: bool) -> None:
    notes = path.notes(report({"p99_s": p99_s}, *min_delays))
    assert len(notes) == large
    assert all("chrt -f 1" in note for note in notes)


def test_a_lag_of_most_packets_is_said_once() -> None:
    (note,) = path.notes(report({"p50_s": 2e-3, "p99_s": 9e-3}, 0.02, 0.02))
    assert "half of the packets" in note
    assert path.notes(report({"count": 0, "p99_s": 1.0}, None)) == []


def _said(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["path", *map(str, words)])
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--list", "lte"), "--list runs nothing over a path: leave out PROFILE"),
        (("lte", "--list", "extra"), "PROFILE, COMMAND"),
        (("--show", "lte", "--json"), "leave out --json"),
        (("--show", "lte", "--out", "x"), "leave out --out"),
        (("--fit", "x.json", "--json"), "leave out --json"),
        (("--fit", "x.json", "umts"), "leave out PROFILE"),
        (("--fit", "x.json", "--seed", 0), "leave out --seed"),
        (("--fit", "x.json", "--set", "a=b"), "leave out --set"),
        (("lte", "--force", "--", "true"), "--force needs --fit"),
    ],
)
def test_an_option_that_has_no_effect_is_refused(words: tuple[object, ...], named: str) -> None:
    code, said = _said(*words)
    assert code == 2
    assert named in " ".join(said.split())


@pytest.mark.skipif(sys.platform != "linux", reason="paths are emulated on Linux")
def test_the_list_is_one_document_too() -> None:
    code, said = _said("--list", "--json")
    assert code == 0
    assert "umts" in {one["name"] for one in json.loads(said)}


def test_a_fitted_path_replaces_nothing(tmp_path: Path) -> None:
    ping, out = tmp_path / "ping.txt", tmp_path / "fitted.toml"
    ping.write_text(PING)
    code, said = _said("--fit", ping, "--out", out)
    assert (code, "".join(said.split())) == (0, f"Writtento{out}.")
    out.write_text("mine")
    code, said = _said("--fit", ping, "--out", out)
    assert code == 2
    assert "exists already: --force replaces it" in said
    assert out.read_text() == "mine"
    assert _said("--fit", ping, "--out", out, "--force")[0] == 0
    assert "[link." in out.read_text()


def test_a_recording_that_is_not_there_is_a_mistake_of_the_request(tmp_path: Path) -> None:
    code, said = _said("--fit", tmp_path / "nope.txt")
    assert code == 2, "as of a scenario"
    assert "No such file" in said


@pytest.mark.skipif(sys.platform != "linux", reason="paths are emulated on Linux")
def test_a_path_takes_the_packages_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    paths.check("examples/loss.toml")
    with pytest.raises(paceline.ScenarioError, match=r"^examples/loss\.toml: link\.bottleneck\.delai"):
        paceline.path("examples/loss.toml", ["true"], set={"link.bottleneck.delai": "1 ms"})
