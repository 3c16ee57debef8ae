"""How `conftest.py` tries tests in real time again: on hosts whose processors others have, and on a quiet one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

CONFTEST = """
import sys
sys.path.insert(0, {here!r})
import realtime
realtime.Steal.begin = lambda self, module, anew: None
realtime.Steal.share = lambda self: {steal}
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

def test_other():
    assert len(runs) == {runs}
    assert False
"""


@pytest.mark.parametrize(
    ("steal", "runs", "said"),
    [
        (0.5, 3, "2 failed, 2 passed, 2 skipped"),
        (0.05, 3, "4 failed, 2 passed"),
        (0.0, 1, "5 failed, 1 passed"),
    ],
)
def test_a_failure_counts_where_the_host_was_ones_own(
    tmp_path: Path, steal: float, runs: int, said: str
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(here=str(HERE), steal=steal))
    (tmp_path / "test_it.py").write_text(TESTS.format(runs=runs))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = realtime\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said in ended.stdout, ended.stdout + ended.stderr
    assert "assert False" in ended.stdout
    assert ("inconclusive: others took 50.0%" in ended.stdout) == (steal > 0.1)
