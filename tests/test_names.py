"""Names of files that are no UTF-8: a clear error, wherever they stand, or they just work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import paceline
from paceline import cli
from paceline.errors import ArgumentError, PacelineError
from screen import here

NAME = os.fsdecode(b"a\xff.toml")
SHOWN = r"a\xff.toml is not UTF-8 text"
SCENARIO = """
duration = "1 s"
[link.bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
[flow.media]
cc = "vegas"
transport = "quic"
"""


@pytest.mark.parametrize("command", list(cli.COMMANDS))
def test_every_command_says_which_name_is_no_text(command: str, tmp_path: Path) -> None:
    """Of each command that takes words, and each of its options that take some."""
    parameters = cli.Commands()[command].params
    options = [
        p for p in parameters if isinstance(p, click.Option) and not p.is_flag and p.opts[0] != "--help"
    ]
    lines = [[command, p.opts[-1], NAME] for p in options] + [
        [command, f"{p.opts[-1]}={NAME}"] for p in options
    ]
    if any(isinstance(p, click.Argument) for p in parameters):
        lines.append([command, NAME])
    for words in lines:
        done = here(words, tmp_path, dict(os.environ))
        assert (done.code, SHOWN in done.text) == (2, True), f"{words}: {done.text}"
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="names are text there")
@pytest.mark.parametrize(
    "words",
    [
        ["run", "a.toml", "--out", "out", "--qlog", "logs", "--pcap", "a.pcapng"],
        ["run", "a.toml", "--json"],
        ["sweep", "a.toml", "--vary", "flow.media.cc=vegas,cubic", "--out", "sweep"],
        ["compare", "a.toml", "--vary", "flow.media.cc=vegas,cubic", "--runs", "2", "--out", "compared"],
        ["check", "a.toml"],
        ["init", "b.toml"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_folder_whose_name_is_no_text_is_as_any_other(words: list[str], tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"f\xff")
    folder.mkdir()
    (folder / "a.toml").write_text(SCENARIO)
    done = subprocess.run(
        [sys.executable, "-m", "paceline", *words], cwd=folder, capture_output=True, check=False, timeout=60
    )
    said = done.stderr.decode(errors="replace")
    assert "Traceback" not in said
    assert done.returncode == 0, said


def test_arguments_of_calls() -> None:
    for call in (
        lambda: paceline.load(NAME),
        lambda: paceline.run(NAME),
        lambda: paceline.run(Path(NAME)),
        lambda: paceline.Results.read(NAME),
    ):
        with pytest.raises(PacelineError, match=r"a\\xff.toml is not UTF-8 text"):
            call()
    with pytest.raises(ArgumentError, match=r"a\\xff.toml is not UTF-8 text"):
        paceline.sweep(SCENARIO, {"seed": [1]}, out=NAME)
