"""Environments that several threads step: the bits of one, threads that sleep, end, and tell what goes wrong."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paceline
import paceline.gym as learning
from paceline.errors import ControllerError
from paceline.gym import FlowVectorEnv

LOSSY = learning.LINK.replace("delay =", 'loss = { rate = "1 %" }\ndelay =')
SHORT = {"duration": "2 s"}
TASKS = Path("/proc/self/task")
linux = pytest.mark.skipif(not TASKS.exists(), reason="threads are counted by Linux's /proc")


def crew() -> list[Path]:
    """The threads of this process that step environments."""
    return [task for task in TASKS.iterdir() if name(task) == "paceline-crew"]


def name(task: Path) -> str:
    """A thread's, which it takes as it begins; of one that has just ended none."""
    try:
        return (task / "comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def comes(true: Callable[[], bool]) -> bool:
    """Whether it becomes true within 10 s."""
    end = time.monotonic() + 10
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def acted(workers: int, steps: int) -> list[Any]:
    """All that five environments tell, past the ends of their first runs."""
    many = FlowVectorEnv(5, LOSSY, changes=SHORT, step_s=0.1, workers=workers)
    seen: list[Any] = [many.reset(seed=3)[0].tolist()]
    draws = np.random.default_rng(1)
    for _ in range(steps):
        observations, *rest, infos = many.step(draws.uniform(-1, 1, (5, 1)).astype(np.float32))
        seen.append((observations.tolist(), [one.tolist() for one in rest], infos["told"].tolist()))
    # as text: what is not known is NaN, and equals nothing
    seen.append([many.results(place).summaries for place in range(5)] if steps == 20 else None)
    many.close()
    return seen


@pytest.mark.parametrize("steps", [20, 50], ids=["to the end", "past it"])
def test_the_bits_do_not_depend_on_the_workers(steps: int) -> None:
    alone = str(acted(1, steps))
    for workers in (2, 3, 5, 9):
        assert str(acted(workers, steps)) == alone, f"{workers} workers"


@linux
def test_threads_sleep_between_steps_and_end_with_their_environments() -> None:
    assert comes(lambda: not crew())
    many = FlowVectorEnv(6, LOSSY, changes=SHORT, workers=3)
    many.reset(seed=1)
    many.step(np.zeros((6, 1), dtype=np.float32))
    threads = crew()
    assert len(threads) == 2  # the caller's is the third

    def ticks() -> int:
        """What they have taken of a processor, in hundredths of a second."""
        stats = [(task / "stat").read_text().rpartition(")")[2].split() for task in threads]
        return sum(int(one[11]) + int(one[12]) for one in stats)

    time.sleep(0.05)
    before = ticks()
    time.sleep(0.4)
    assert ticks() - before <= 2
    many.step(np.zeros((6, 1), dtype=np.float32))
    assert sorted(crew()) == sorted(threads)
    many.close()
    many.close()
    assert comes(lambda: not crew())
    with pytest.raises(ValueError, match="closed: make them anew"):
        many.step(np.zeros((6, 1), dtype=np.float32))
    with pytest.raises(ValueError, match="closed: make them anew"):
        many.reset(seed=1)

    dropped = FlowVectorEnv(6, LOSSY, changes=SHORT, workers=2)
    assert comes(lambda: len(crew()) == 1)
    del dropped
    gc.collect()
    assert comes(lambda: not crew())


class Fails(paceline.WindowController):
    """Fails after a tenth of a second"""

    def on_feedback(self, event: Any, path: Any) -> None:
        if path.now_s > 0.1:
            raise KeyError("no more")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_fails_in_a_thread_is_told_by_the_step(workers: int) -> None:
    scenario = LOSSY + '[flow.other]\ncc = "mine"\n'
    many = FlowVectorEnv(
        4, scenario, "agent", changes=SHORT, step_s=1.0, workers=workers, schemes={"mine": Fails}
    )
    many.reset(seed=1)
    with pytest.raises(ControllerError, match=r"(?s)flow other\[0\] failed at .*KeyError: 'no more'"):
        many.step(np.zeros((4, 1), dtype=np.float32))


def test_what_cannot_be_made_is_closed_quietly() -> None:
    with pytest.raises(ValueError, match="workers"):
        FlowVectorEnv(2, workers=0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="systems without fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_of_the_process_is_told_that_the_threads_are_not_in_it() -> None:
    many = FlowVectorEnv(2, LOSSY, changes=SHORT, workers=2)
    many.reset(seed=1)
    child = os.fork()
    if child == 0:
        try:
            many.step(np.zeros((2, 1), dtype=np.float32))
        except ValueError as error:
            os._exit(0 if "forked from it: make them anew" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    many.step(np.zeros((2, 1), dtype=np.float32))
