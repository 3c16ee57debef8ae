"""Systems that are not Linux: the simulator works, and what takes Linux says so in one sentence.

There is none at hand, so a process is made to look like one: without what the extension module lacks there, and without
what Python has on Linux alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ELSEWHERE = """
import os, platform, signal, sys
platform.system = lambda: "Windows"
for name in ("fcntl", "termios", "resource", "pwd", "grp"):
    sys.modules[name] = None
for module, names in ((signal, ("SIGHUP", "SIGKILL", "SIGCHLD")), (os, ("sched_getaffinity", "geteuid", "fork"))):
    for name in names:
        delattr(module, name)
# from Python 3.13 on; on Linux it asks for what was taken away
os.process_cpu_count = os.cpu_count
import paceline._core
for name in {left_out}:
    delattr(paceline._core, name)
sys.argv = ["paceline", *{words}]
from paceline.cli import main
main()
"""


def left_out() -> list[str]:
    """The names that the extension module has on Linux alone, as its source registers them."""
    source = (ROOT / "crates/python/src/lib.rs").read_text()
    body = source.partition("fn in_real_time(")[2]
    names = re.findall(r'add\("(\w+)"|add_class::<\w+::(\w+)>|wrap_pyfunction!\(\w+::(\w+)', body)
    return ["".join(found) for found in names]


def elsewhere(where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line on a system that is not Linux."""
    code = ELSEWHERE.format(left_out=left_out(), words=list(words))
    return subprocess.run(
        [sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=False
    )


def test_the_list_is_that_of_the_source() -> None:
    assert {"Path", "PathOutput", "Gateway", "HostWatch", "send", "run_path"} <= set(left_out())
    assert not {"run", "Scenario", "Watch", "schemes", "quantity"} & set(left_out())


@pytest.mark.parametrize(
    "words",
    [
        ("path", "--list"),
        ("path", "--show", "umts"),
        ("path", "umts", "--", "true"),
        ("emulate", str(ROOT / "examples/loss.toml")),
        ("campaign", str(ROOT / "examples/campaigns/wide-area.toml"), "--over", "emulator"),
        ("campaign", str(ROOT / "examples/campaigns/wide-area.toml"), "--over", "127.0.0.1"),
        ("send", "127.0.0.1", "--cc", "cubic"),
        ("send", "rtp://127.0.0.1:5004", "--cc", "lda-plus", "--max-rate", "2Mbit/s"),
        ("receive", "rtp://:5004?twcc=5"),
        ("serve",),
        ("gateway", "--lan", "eth0"),
        ("kernel-cc", "load", "vegas"),
        ("kernel-cc", "unload", "vegas"),
        ("kernel-cc", "list"),
        ("watch", "--port", "80"),
        ("watch", "--", "true"),
    ],
    ids=lambda words: " ".join(Path(word).name for word in words),
)
def test_what_takes_linux_says_so(tmp_path: Path, words: tuple[str, ...]) -> None:
    ran = elsewhere(tmp_path, *words)
    assert ran.returncode == 1, ran.stderr
    assert not ran.stdout
    (line,) = ran.stderr.splitlines()
    assert re.fullmatch(
        r"paceline: [\w' ]+ needs Linux, and this is Windows; simulation works here: .+", line
    )


def test_the_simulator_works(tmp_path: Path) -> None:
    scenario = str(ROOT / "examples/loss.toml")
    short = ("--set", "duration=3 s", "--set", "warmup=1 s")
    ran = elsewhere(tmp_path, "run", scenario, *short, "--record", "cwnd", "--out", "run")
    assert ran.returncode == 0, ran.stderr
    assert "Flows" in ran.stdout
    ran = elsewhere(tmp_path, "run", scenario, *short, "--pcap", "run.pcapng")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "run.pcapng").stat().st_size > 0
    ran = elsewhere(
        tmp_path,
        "sweep",
        scenario,
        *short,
        "--vary",
        "flow.newreno.cc=reno,vegas",
        "--runs",
        "2",
        "--out",
        "sweep",
    )
    assert ran.returncode == 0, ran.stderr
    ran = elsewhere(tmp_path, "plot", "run")
    assert ran.returncode == 0, ran.stderr
    for words in (("--help",), ("controllers",), ("schema",), ("reproduce", "--list")):
        ran = elsewhere(tmp_path, *words)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout


def test_a_paper_leaves_open_what_would_run_in_real_time(tmp_path: Path) -> None:
    code = ELSEWHERE.format(left_out=left_out(), words=[]).replace(
        "from paceline.cli import main\nmain()", "from paceline import realtime\nprint(realtime.refused())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "needs Linux" in ran.stdout
