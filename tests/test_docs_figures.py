"""The figure that the documents show is of the numbers that the command above it gives.

After a change of these numbers, or of how they are drawn:
PACELINE_BLESS=1 .venv/bin/python -m pytest tests/test_docs_figures.py
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from golden import as_text, fingerprint
from paceline.cli import app
from paceline.plots import sweeps
from paceline.results import Results
from test_docs_output import BLOCK, ROOT, entries

PAGE = ROOT / "docs" / "cli.md"
FIGURE = ROOT / "docs" / "figures" / "film.svg"


def test_the_figure_is_of_the_command_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, _, _ = PAGE.read_text().partition(f"](figures/{FIGURE.name})")
    block = BLOCK.findall(before)[-1]
    commands = [
        shlex.split(c.removeprefix("$ paceline ").replace("\\\n", "").split("|")[0])
        for c, _ in entries(block)
    ]
    assert [words[0] for words in commands] == ["sweep", "plot"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    sweep, plot = commands
    drawn = tmp_path / FIGURE.name
    plot[plot.index("--out") + 1] = str(drawn)
    for words in (sweep, plot):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    options = dict(zip(plot[2::2], plot[3::2], strict=True))
    assert options.keys() == {"--y", "--flow", "--out"}
    found = sweeps.chart(Results.read(plot[1]), options["--y"], flows=[options["--flow"]])
    said = f"<!-- numbers: {fingerprint(as_text(found.data.select('x', 'mean', 'low', 'high')))} -->"
    if os.environ.get("PACELINE_BLESS") == "1":
        # Matplotlib pads the ends of lines.
        text = re.sub(r" +$", "", drawn.read_text(), flags=re.MULTILINE)
        FIGURE.write_text(text.replace("</svg>", f"{said}\n</svg>"))
    assert said in FIGURE.read_text(), f"docs/figures/{FIGURE.name} is of other numbers"
