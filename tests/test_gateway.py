"""`paceline gateway` without a gateway: mistakes, what is told and written, and what is plotted of it.

The program itself is in `test_gateway_real.py`, what it does to real connections in crates/gateway/tests.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from paceline import _core
from paceline.cli import app
from paceline.cli import gateway as command
from paceline.cli.gateway import table
from paceline.errors import PacelineError
from paceline.plots import gateway


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({}, "--lan IF is missing"),
        ({"lan": "a", "alpha": "20ms"}, "--alpha 20 ms must be at most --beta 15 ms"),
        ({"lan": "a", "algorithm": "sap-law"}, "--capacity RATE"),
        ({"lan": "a", "rate": "fast"}, "--rate fast: "),
        ({"lan": "a", "colour": "red"}, "colour"),
    ],
)
def test_mistakes_are_named(words: dict[str, str], part: str) -> None:
    with pytest.raises(ValueError, match=part):
        _core.Gateway(json.dumps(words))


REPORT: dict[str, Any] = {
    "lan": "lan0",
    "algorithm": "voap",
    "attached": "tcx",
    "delay_from": "shaper",
    "dry_run": False,
    "cleared": 0,
    "duration_s": 1.0,
    "intervals": 2,
    "delay_mean_s": 0.01,
    "delay_max_s": 0.02,
    "lowered": 3,
    "most_flows": 1,
    "queue_drops": 0,
    "host": {"before": {}, "after": {}, "steal_share": 0.0},
}
"""What a gateway says of its run: `tests/test_gateway_real.py` holds its keys."""


class Gateway:
    """In the place of `_core.Gateway`: has shown these intervals when it ends, by itself or (`lasts`) when stopped."""

    def __init__(self, *intervals: str, lasts: bool = False) -> None:
        self.intervals = list(intervals)
        self.words: dict[str, Any] = {}
        self.over = threading.Event()
        if not lasts:
            self.over.set()

    def __call__(self, words: str) -> Gateway:
        self.words = {key: value for key, value in json.loads(words).items() if value}
        return self

    def run(self) -> str:
        assert self.over.wait(60), "nobody ends it"
        return json.dumps(REPORT)

    def stop(self) -> None:
        self.over.set()

    def shown(self) -> list[str]:
        shown, self.intervals = self.intervals, []
        return shown


def test_a_run_is_written_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = INTERVAL.strip().replace('"time_s": 0.2', '"time_s": 1.4')
    core = Gateway(INTERVAL.strip(), later)
    monkeypatch.setattr(_core, "Gateway", core)
    monkeypatch.setattr(_core, "keep_gateway_privileges", lambda: None)
    out = tmp_path / "run.jsonl"
    words = ["gateway", "--lan", "lan0", "--rate", "20Mbit/s", "--for", "1s"]
    done = CliRunner().invoke(app, [*words, "--json", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert core.words == {"lan": "lan0", "rate": "20Mbit/s", "duration": "1s"}
    assert json.loads(done.stdout) == {"report": REPORT, "last": json.loads(later)}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines == [json.loads(INTERVAL), json.loads(later), REPORT]
    monkeypatch.setattr(_core, "Gateway", Gateway(INTERVAL.strip(), later))
    said = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert f"Written to {out}." in " ".join(said.stdout.split())
    assert "voap" in said.stdout
    assert len(said.stderr.strip().splitlines()) == 1, "a line a second, where no terminal is"
    assert len(out.read_text().splitlines()) == 3, "what stood there is gone"


def test_ctrl_c_ends_it_with_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Gateway(INTERVAL.strip(), lasts=True)
    monkeypatch.setattr(_core, "Gateway", core)
    monkeypatch.setattr(_core, "keep_gateway_privileges", lambda: None)
    monkeypatch.setattr(command, "_take", interrupted_once(command._take))
    done = CliRunner().invoke(app, ["gateway", "--lan", "lan0", "--json"])
    assert done.exit_code == 0, done.output
    assert core.over.is_set()
    assert json.loads(done.stdout)["report"] == REPORT


def interrupted_once(take: Callable[..., Any]) -> Callable[..., Any]:
    """`take` with Ctrl-C in its first call."""
    calls: list[int] = []

    def taken(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return take(*arguments)

    return taken


def test_the_table_goes_without_columns_before_it_cuts_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    status = {**json.loads(INTERVAL), "left_alone": 2}
    status["flows"][0]["station"] = "192.168.100.200:50000"

    def shown(width: int) -> str:
        console = Console(width=width, force_terminal=False, highlight=False)
        console.print(table(status, width))
        return capsys.readouterr().out

    wide, narrow = shown(100), shown(70)
    assert "announced" in wide
    assert "announced" not in narrow
    for text in (wide, narrow):
        assert "192.168.100.200:50000" in text
        assert "beside 2 that began before the gateway" in " ".join(text.split())
        assert "8 Mbit/s" in text
    status["flows"] = []
    assert "station" not in shown(70)


FLOW = (
    '{"station": "10.0.0.2:1", "remote": "192.0.2.1:443", "rate_bps": 8e6, "advertised_bytes": 65535, '
    '"window_bytes": 30000, "outstanding_bytes": 29000, "rtt_s": 0.02}'
)
INTERVAL = (
    f'{{"time_s": 0.2, "delay_s": 0.01, "udp_bps": 1e5, "lowered": 3, "left_alone": 0, "flows": [{FLOW}]}}\n'
)


def test_what_a_gateway_wrote_is_plotted(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    second = INTERVAL.replace('"time_s": 0.2', '"time_s": 0.4').replace("30000", "null")
    file.write_text(INTERVAL + second + INTERVAL[:50])  # it was killed while it wrote
    intervals = gateway.read(file)
    assert [one["time_s"] for one in intervals] == [0.2, 0.4]
    waits, rates, windows = gateway.figure(intervals, "run").axes
    assert float(np.asarray(waits.lines[0].get_ydata())[0]) == pytest.approx(10.0)
    assert sorted(float(np.asarray(line.get_ydata())[0]) for line in rates.lines) == pytest.approx([0.1, 8.0])
    drawn = [np.asarray(line.get_ydata()).tolist() for line in windows.lines]
    assert [30.0, math.nan] in [pytest.approx(line, nan_ok=True) for line in drawn]
    done = CliRunner().invoke(app, ["plot", str(file)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "run.png").exists()
    file.write_text(INTERVAL + "{}x\n" + INTERVAL)
    with pytest.raises(PacelineError, match=r"run\.jsonl:2: not an interval of a gateway"):
        gateway.read(file)
    file.write_text("{}\n")
    with pytest.raises(PacelineError, match="no interval of a gateway"):
        gateway.read(file)
