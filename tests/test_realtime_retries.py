"""How `conftest.py` tries tests in real time again: on hosts whose processors others have, and on a quiet one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import realtime

HERE = Path(__file__).resolve().parent

CONFTEST = """
import sys
sys.path.insert(0, {here!r})
import realtime
realtime.Disturbance.begin = lambda self, module, restart: None
realtime.Disturbance.taken = lambda self: realtime.Taken({steal}, {others})
exec(open({here!r} + "/conftest.py").read())
"""

TESTS = """
import pytest
made, runs = [], []

@pytest.fixture(scope="module")
def number():
    made.append(None)
    return len(made)

@pytest.mark.realtime
def test_fine():
    pass

@pytest.mark.realtime
def test_later(number, tmp_path):
    assert number == 3

@pytest.mark.realtime
def test_never():
    runs.append(None)
    assert len(runs) > 5

@pytest.mark.realtime
def test_of_an_object():
    assert not iter([])

@pytest.mark.realtime
def test_same():
    assert "this" == "that"

@pytest.mark.realtime
def test_busy():
    assert "fine" == "this host is too busy"

def test_other():
    assert len(runs) == {runs}
    assert False
"""


@pytest.mark.parametrize(
    ("steal", "others", "runs", "said"),
    [
        (0.5, 0.0, 3, "2 failed, 2 passed, 3 skipped"),
        (0.0, 0.8, 3, "2 failed, 2 passed, 3 skipped"),
        (0.05, 0.0, 3, "5 failed, 2 passed"),
        (0.0, 0.3, 3, "5 failed, 2 passed"),
        (0.0, 0.05, 1, "6 failed, 1 passed"),
    ],
)
def test_a_failure_counts_where_the_host_was_ones_own(
    tmp_path: Path, steal: float, others: float, runs: int, said: str
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(here=str(HERE), steal=steal, others=others))
    (tmp_path / "test_it.py").write_text(TESTS.format(runs=runs))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = realtime\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said in ended.stdout, ended.stdout + ended.stderr
    assert "assert False" in ended.stdout
    reason = f"a hypervisor took {steal:.1%} of the processors' time and other programs {others:.1%}"
    assert (f"inconclusive: {reason}" in ended.stdout) == (steal > 0.1 or others > 0.5)


def processes(proc: Path, total: int, busy: int, stolen: int, had: dict[int, tuple[int, int]]) -> None:
    """A kernel's word on its processors, and on processes: each one's parent and ticks."""
    proc.mkdir(exist_ok=True)
    idle = total - busy - stolen
    (proc / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 1 2 3\n")
    for number, (parent, ticks) in had.items():
        (proc / str(number)).mkdir(exist_ok=True)
        # user, system, and of children that have ended; the name of a command may look like more words
        after = f"S {parent} 1 1 0 -1 0 0 0 0 0 {ticks - 3} 1 1 1 20 0"
        (proc / str(number) / "stat").write_text(f"{number} (a) R 9) {after}\n")


@pytest.mark.parametrize(
    ("ours", "theirs", "busy", "others"),
    [
        (200, 0, 200, 0.0),  # a calm host: what is busy is the test
        (0, 0, 6, 0.006),
        (1000, 0, 1000, 0.0),  # a test that takes all there is has nobody to blame
        (150, 850, 1000, 0.85),  # a loaded one
        (300, 0, 290, 0.0),  # ticks are coarser than a process's own time
    ],
)
def test_others_are_who_is_no_process_of_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: int, theirs: int, busy: int, others: float
) -> None:
    own, proc = os.getpid(), tmp_path / "proc"
    monkeypatch.setattr(realtime, "PROC", proc)
    started = {own: (1, 50), own + 1: (own, 10), own + 2: (own + 1, 10), 1: (0, 70), own + 3: (1, 500)}
    processes(proc, 10_000, 4000, 100, started)
    watch = realtime.Watch()
    assert watch.taken().others == 0
    # what a child of a child does is the test's
    ended = {**started, own + 2: (own + 1, 10 + ours), own + 3: (1, 500 + theirs)}
    processes(proc, 11_000, 4000 + busy, 100, ended)
    assert watch.taken().others == pytest.approx(others)


def test_what_a_child_burns_is_no_excuse() -> None:
    """By the kernel's own count: a child that is busy for half a second and has ended is none of the others."""
    code = "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end: pass"
    before = realtime._own_ticks()
    subprocess.run([sys.executable, "-c", code], check=True)
    burnt = (realtime._own_ticks() - before) / os.sysconf("SC_CLK_TCK")
    assert 0.45 < burnt < 5


@pytest.mark.parametrize("others", [0.3, 0.9])
def test_a_measure_that_is_wrong_each_time_fails_where_others_had_less_than_half(
    monkeypatch: pytest.MonkeyPatch, others: float
) -> None:
    tries: list[None] = []

    def measure() -> tuple[int, float]:
        tries.append(None)
        return len(tries), 0.0

    def check(found: int) -> None:
        assert found > 3

    monkeypatch.setattr(realtime.Watch, "taken", lambda self: realtime.Taken(0.0, others))
    with pytest.raises(AssertionError if others < 0.5 else pytest.skip.Exception):
        realtime.conclusive(measure, check)
    assert len(tries) == 3
