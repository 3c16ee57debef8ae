"""The figures that the documents show are of the numbers that the commands give.

After a change of these numbers, or of how they are drawn:
PACELINE_BLESS=1 .venv/bin/python -m pytest tests/test_docs_figures.py
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from golden import as_text, fingerprint
from paceline.cli import app
from paceline.plots import sweeps
from paceline.results.results import Results
from test_docs_output import BLOCK, ROOT, entries

PAGE = ROOT / "docs" / "cli" / "plot.md"
FIGURE = ROOT / "docs" / "figures" / "film.svg"
COMPARED = FIGURE.with_name("compare.svg")


def test_the_figure_is_of_the_command_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, _, _ = PAGE.read_text().partition(f"](../figures/{FIGURE.name})")
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


def make() -> Any:
    """docs/figures/make.py, which makes the README's pictures."""
    spec = importlib.util.spec_from_file_location("make", FIGURE.with_name("make.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def words(svg: str) -> str:
    """What an SVG says: versions of rich lay it out in other pieces."""
    body = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    return re.sub(r"\s|&#160;", "", re.sub(r"<[^>]+>", "", body))


def test_the_picture_of_a_comparison_is_what_the_command_prints() -> None:
    making = make()
    fresh = making.terminal(making.printed())
    assert "@font-face" not in fresh
    assert "url(http" not in fresh.replace(" ", ""), "no font is fetched"
    if os.environ.get("PACELINE_BLESS") == "1":
        COMPARED.write_text(fresh)
    assert words(COMPARED.read_text()) == words(fresh)
    assert "differencesareshown" in words(fresh)


def test_the_readme_shows_pictures_that_are_there_and_not_heavy() -> None:
    named = re.findall(r'(?:src|srcset)="([^"]+)"', (ROOT / "README.md").read_text())
    assert {Path(name).name for name in named} == {
        "compare.svg",
        *(f"{what}-{how}.png" for what in ("playground", "reproduction") for how in ("light", "dark")),
    }
    for name in named:
        picture = ROOT / name
        assert picture.stat().st_size <= make().MAX_BYTES, name
        if picture.suffix == ".png":
            with Image.open(picture) as image:
                assert image.width == 1280, name
