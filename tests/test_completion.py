"""Completion in a shell, as `paceline --show-completion` sets it up."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from paceline import cli


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """That of a shell in which `paceline` is a command."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "paceline"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m paceline "$@"\n')
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def output(command: list[str], environment: dict[str, str], where: Path) -> str:
    return subprocess.run(
        command, env=environment, cwd=where, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("paceline se", ["serve", "send"]),
        ("paceline run --rec", ["--record", "--record-every"]),
        ("paceline kernel", ["kernel-cc"]),
        ("paceline ", list(cli.COMMANDS)),
        # nothing of ours: bash takes files
        ("paceline run scen", []),
    ],
)
def test_bash_completes(line: str, completed: list[str], environment: dict[str, str], tmp_path: Path) -> None:
    # Into a variable, as the shell's start file has it; then what a press of the tabulator calls.
    script = (
        'eval "$(_PACELINE_COMPLETE=source_bash paceline)"\n'
        "registered=$(complete -p paceline)\n"
        'case $registered in *"-o default"*) ;; *) exit 1 ;; esac\n'
        "function=${registered##*-F }\n"
        'IFS=" " read -ra COMP_WORDS <<<"$1"\n'
        '[ "${1% }" = "$1" ] || COMP_WORDS+=("")\n'
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
        "${function% *} paceline\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    said = output(["bash", "--norc", "-c", script, "bash", line], environment, tmp_path)
    assert said.split() == completed


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_what_each_command_does(
    shell: str, environment: dict[str, str], tmp_path: Path
) -> None:
    asked = {
        "_PACELINE_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "paceline sch",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    said = output(["paceline"], environment | asked, tmp_path)
    assert "schema" in said
    assert "Print the JSON Schema of a kind of file." in said
    script = output(["paceline"], environment | {"_PACELINE_COMPLETE": f"source_{shell}"}, tmp_path)
    assert f"complete_{shell}" in script
