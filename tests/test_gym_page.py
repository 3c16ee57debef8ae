"""docs/learning.md: what it prints in Python runs as it stands there, and its numbers are those that come out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paceline
import paceline.gym as learning

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "learning.md").read_text()
NAMES = {"nada": "NADA", "ndtc": "NDTC", "gcc": "GCC", "scream": "SCReAM (draft)", "": "always 1 Mbit/s"}
"""What the table of calls calls each row, by what the snippet prints before its return."""


def test_the_snippets_run_and_print_what_the_page_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(snippets) == 4
    names: dict[str, Any] = {}
    for snippet in snippets:  # one after the other, as a reader goes
        exec(snippet, names)
        printed = capsys.readouterr().out
        said = re.findall(r"^print\(.*\)  # (.* ± .*)$", snippet, flags=re.MULTILINE)
        if said:
            assert printed.splitlines() == said
        elif printed:
            rows = re.findall(r"^(\w*?) ?(\d+ ± \d+)$", printed, flags=re.MULTILINE)
            assert len(rows) == len(NAMES)
            assert "".join(f"| {NAMES[cc]} | {its} |\n" for cc, its in rows) in PAGE


@pytest.mark.parametrize(
    ("cc", "its"),
    [("nada", "1768 ± 89"), ("ndtc", "1735 ± 76"), ("gcc", "1612 ± 40"), ("scream", "1497 ± 35")],
)
def test_ceilings_by_default_stand_with_their_numbers(cc: str, its: str) -> None:
    changes = {"flow.call.cc": cc, "flow.call.params": {}}
    call: dict[str, Any] = {"scenario": ROOT / "examples" / "call.toml", "flow": "call", "reward": "call"}
    assert str(learning.returns(baseline=cc, changes=changes, step_s=0.1, **call)) == its
    assert its in PAGE


def test_the_example_trains_and_runs_what_it_learned(tmp_path: Path) -> None:
    example = ROOT / "examples" / "learning" / "train.py"
    command = [sys.executable, str(example), "--generations", "2", "--out", str(tmp_path / "policy.json")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "generation 2: mean" in ran.stdout
    assert [line.split()[0] for line in ran.stdout.splitlines()[-3:]] == ["learned", "cubic", "nada"]
    kept = json.loads((tmp_path / "policy.json").read_text())
    assert len(kept["weights"]) == 10
    assert kept["generations"] == 2


def test_what_was_learned_stands_with_its_numbers() -> None:
    link = {"link.bottleneck.rate": "8 Mbit/s", "link.bottleneck.delay": "20 ms", "warmup": "5 s"}
    queue = {"link.bottleneck.queue": {"kind": "droptail", "limit": "100 ms"}}
    cc = {"flow.agent.cc": f"python:{ROOT / 'examples' / 'learning' / 'policy.py'}:Learned"}
    row = paceline.run(learning.LINK, runs=3, set=link | queue | cc).flows
    assert row["goodput_bps"].mean() == pytest.approx(7.45e6, rel=0.01)
    assert row["rtt_mean_s"].mean() == pytest.approx(0.0455, abs=0.0003)
