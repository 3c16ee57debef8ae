"""Completion in a shell, as `paceline --show-completion` sets it up."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import paceline
from paceline import cli
from paceline.cli import completing

ROOT = Path(__file__).resolve().parent.parent


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


# Into a variable, as the shell's start file has it; then what a press of the tabulator calls.
SHELL = """
eval "$(_PACELINE_COMPLETE=source_bash paceline)"
registered=$(complete -p paceline)
case $registered in *"-o default"*) ;; *) exit 1 ;; esac
function=${registered##*-F }
while IFS= read -r line; do
    # Readline breaks words at "=" too.
    IFS=" " read -ra COMP_WORDS <<<"${line//=/ = }"
    [ "${line% }" = "$line" ] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    ${function% *} paceline
    echo "${COMPREPLY[@]}"
done
"""


def test_bash_completes(environment: dict[str, str], tmp_path: Path) -> None:
    lines = {
        "paceline se": "serve send",
        "paceline run --rec": "--record --record-every",
        "paceline kernel": "kernel-cc",
        "paceline ": " ".join(cli.COMMANDS),
        # nothing of ours: bash takes files
        "paceline run scen": "",
        "paceline send here --cc veg": "vegas",
        "paceline send here --cc=veg": "vegas",
        "paceline run examples/coffee-shop.toml --set flow.film.cc=ve": "vegas veno",
        "paceline sweep examples/coffee-shop.toml --vary flow.film.cc=vegas,cu": "vegas,cubic",
    }
    script = "\n".join(lines) + "\n"
    said = subprocess.run(
        ["bash", "--norc", "-c", SHELL],
        env=environment,
        cwd=tmp_path,
        input=script,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert dict(zip(lines, said.split("\n"), strict=False)) == lines


@pytest.fixture
def offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """What is offered in a folder for a line of fish's, which is handed over as it stands; in this process."""
    monkeypatch.chdir(tmp_path)
    # as `completing.prepare` has it in a process of its own
    monkeypatch.setitem(sys.modules, "rich", None)

    def complete(line: str) -> list[str]:
        monkeypatch.setenv(completing.COMPLETE_VARIABLE, "complete_fish")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        with pytest.raises(SystemExit):
            cli.app(prog_name="paceline")
        return [word.partition("\t")[0] for word in capsys.readouterr().out.splitlines() if word]

    return complete


COFFEE = "examples/coffee-shop.toml"


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("send here --cc veg", ["vegas"]),
        ("suite rfc9743 --scheme newr", ["newreno"]),
        ("league --schemes vegas,cub", ["vegas,cubic"]),
        ("call-log dump.gz --replay nad", ["nada"]),
        ("controllers veg", ["vegas"]),
        ("conform veg", ["vegas"]),
        ("examples coffee", ["coffee-shop"]),
        ("run examples/coff", [COFFEE]),
        ("campaign examples/campaigns/wide", ["examples/campaigns/wide-area.toml"]),
        ("check examples/campaigns/wide", ["examples/campaigns/wide-area.toml"]),
        ("run examples/campaigns/wide", []),
        (
            "run papers/voap/",
            sorted(f"papers/voap/{path.name}" for path in (ROOT / "papers/voap").glob("*.toml")),
        ),
        ("explore two", ["two-tcps"]),
        ("explore examples/coff", [COFFEE]),
        ("reproduce vegas", ["vegas-streaming"]),
        ("suite rfc9", ["rfc9743"]),
        ("path wi", ["wide-area", "wifi"]),
        ("path --show wide", ["wide-area"]),
        ("run x.toml --record cwnd,q", ["cwnd,queue"]),
        ("run x.toml --record del", []),
        ("emulate x.toml --record del", ["delay"]),
        (
            f"run {COFFEE} --set link.bottleneck.",
            [f"link.bottleneck.{k}=" for k in ("rate", "delay", "queue.limit")],
        ),
        (f"run {COFFEE} --set link.bottleneck.r", ["link.bottleneck.rate=10Mbit/s"]),
        (f"run {COFFEE} --set flow.film.cc=veg", ["flow.film.cc=vegas"]),
        (f"run {COFFEE} --set duration=5s --set flow.film.cc=veg", ["flow.film.cc=vegas"]),
        (f"run {COFFEE} --runs 3 --set link.bottleneck.d", ["link.bottleneck.delay=20ms"]),
        (f"sweep {COFFEE} --vary flow.film.cc=vegas,cub", ["flow.film.cc=vegas,cubic"]),
        (f"hunt {COFFEE} --over link.bottleneck.d", ["link.bottleneck.delay=20ms"]),
        (
            "path wide-area --set link.bottleneck.dela",
            ["link.bottleneck.delay=", "link.bottleneck.delay_variation.max="],
        ),
        ("suite rfc9743 --case aq", ["aqm"]),
        ("suite --queue dua", ["dualpi2"]),
        ("suite nothing --case ", []),
        ("league --classes wired,wi", ["wired,wifi"]),
        ("reproduce voap --figure up", ["uplink"]),
        ("reproduce --figure xf", ["xfactor"]),
        ("gateway --algorithm ", ["voap", "sap-law"]),
        ("path wifi --algorithm s", ["sap-law,capacity="]),
        ("send here --cc cubic --set params.", [f"params.{k}=" for k in ("c", "beta", "slow_start")]),
        ("send here --set rtp.n", ["rtp.nack="]),
        ("send here --set receive_w", ["receive_window="]),
        ("run nothing.toml --set link", []),
        ("run --set link", []),
        ("plot nothing --y good", []),
    ],
)
def test_values_are_completed(line: str, completed: list[str], offered: Callable[[str], list[str]]) -> None:
    assert offered(f"paceline {line}") == completed


def test_files_of_ones_own_are_completed_beside_the_packages(
    tmp_path: Path, offered: Callable[[str], list[str]]
) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples/coffin.toml").touch()
    (tmp_path / "exam.toml").touch()
    assert offered("paceline run examples/coff") == [COFFEE, "examples/coffin.toml"]
    assert "exam.toml" in offered("paceline run exam")


def test_what_a_sweep_has_is_completed(tmp_path: Path, offered: Callable[[str], list[str]]) -> None:
    text = 'duration = "2 s"\n[link.bottleneck]\nrate = "2 Mbit/s"\ndelay = "10 ms"\n[flow.a]\n'
    vary = {"link.bottleneck.delay": ["10 ms", "20 ms"], "flow.a.cc": ["newreno", "vegas"]}
    swept = paceline.sweep(text, vary, runs=1, record=("cwnd", "queue"), out=tmp_path / "out")
    assert set(offered("paceline plot out --y ")) > {
        "goodput_bps",
        "queues.mean_packets",
        "queues.drops_overflow",
    }
    assert offered("paceline plot out --y goodput_b") == ["goodput_bps"]
    assert offered("paceline plot out --x ") == list(vary)
    assert offered("paceline plot out --y goodput_bps --by flow.a.cc,l") == [
        "flow.a.cc,link.bottleneck.delay"
    ]
    assert offered("paceline plot out --kind cwnd,") == ["cwnd,queue"]
    for measure in offered("paceline plot out --y "):
        swept.plot(measure, flow="a" if "." not in measure else None)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_what_each_command_does(
    shell: str, environment: dict[str, str], tmp_path: Path
) -> None:
    variables = {
        "_PACELINE_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "paceline sch",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    said = output(["paceline"], environment | variables, tmp_path)
    assert "schema" in said
    assert "Print the JSON Schema of a kind of file." in said
    script = output(["paceline"], environment | {"_PACELINE_COMPLETE": f"source_{shell}"}, tmp_path)
    assert f"complete_{shell}" in script
