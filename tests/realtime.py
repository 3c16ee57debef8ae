"""Tests in real time on a host that may be busy with others.

Others are whoever takes the processors from a test: a hypervisor, which the kernel counts as stolen time, and the
other programs of this system. What a test's own processes take is never an excuse for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from paceline import _core

MAX_STEAL = 0.01
"""The share of the processors' time, stolen by a hypervisor, above which what was measured is inconclusive."""

MUCH_STEAL = 0.1
"""The same for a test that measures nothing: what it asserts does not fail for a hundredth of the time."""

SOME_OTHERS = 0.1
"""The share that other programs had, above which a test that failed is tried again."""

MUCH_OTHERS = 0.5
"""The same, above which it may be inconclusive: tests that run beside it, two at a time, have less."""

TRIES = 3

PROC = Path("/proc")

T = TypeVar("T")


@dataclass(frozen=True)
class Taken:
    """Shares of all processors' time."""

    steal: float = 0.0
    others: float = 0.0

    @property
    def some(self) -> bool:
        """Whether a test that failed may be disturbed."""
        return self.steal > MAX_STEAL or self.others > SOME_OTHERS

    @property
    def much(self) -> bool:
        """Whether it says nothing, if that is so each time."""
        return self.steal > MUCH_STEAL or self.others > MUCH_OTHERS

    def most(self, other: Taken) -> Taken:
        """The larger of each."""
        return Taken(max(self.steal, other.steal), max(self.others, other.others))

    def __str__(self) -> str:
        return (
            f"a hypervisor took {self.steal:.1%} of the processors' time and other programs {self.others:.1%}"
        )


class Watch:
    """The processors from now on."""

    def __init__(self) -> None:
        self._host = _core.HostWatch()
        self._before = (_ticks(), _own_ticks())

    def taken(self) -> Taken:
        """What others have had of them since."""
        (total, busy), own = self._before
        now_total, now_busy = _ticks()
        # the kernel counts busy time by the tick, a process's by the nanosecond
        others = max(0, now_busy - busy - max(0, _own_ticks() - own))
        steal = float(json.loads(self._host.report())["steal_share"])
        return Taken(steal, min(1.0, others / max(1, now_total - total)))


def _ticks() -> tuple[int, int]:
    """All processors' time since boot, and what programs had of it (proc_stat(5)), in clock ticks."""
    line = (PROC / "stat").read_text().partition("\n")[0]
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
    busy = user + nice + system + irq + softirq
    return busy + idle + iowait + steal, busy


def _own_ticks() -> int:
    """What this process and all below it have had, and those below that have ended (proc_pid_stat(5))."""
    parents, had = {}, {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            try:
                # the command's name may have any character
                words = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            number = int(folder.name)
            parents[number], had[number] = int(words[1]), sum(map(int, words[11:15]))

    def is_own(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return sum(ticks for process, ticks in had.items() if is_own(process))


class Disturbance:
    """What others took while a test ran, or another of its module since the module's fixtures were made: what those
    measured may be what a later test looks at."""

    def __init__(self) -> None:
        self._module: Path | None = None
        self._worst = Taken()

    def begin(self, module: Path, restart: bool) -> None:
        """A test of `module` begins, whose fixtures are those of an earlier test unless they are made anew."""
        if restart or module != self._module:
            self._module, self._worst = module, Taken()
        self._watch = Watch()

    def taken(self) -> Taken:
        """The most of each."""
        self._worst = self._worst.most(self._watch.taken())
        return self._worst


def conclusive(measure: Callable[[], tuple[T, float]], check: Callable[[T], None]) -> None:
    """Measures, and checks what was measured, up to `TRIES` times: other programs on the same processors disturb it
    too.

    `measure` gives what `check` asserts something of, and the share of stolen time. A test that fails each time has
    failed, unless others had the processors in each: then it is inconclusive, which is a skip.
    """
    failure: AssertionError | None = None
    taken = Taken()
    for _ in range(TRIES):
        watch = Watch()
        measured, steal = measure()
        taken = Taken(steal, watch.taken().others)
        try:
            check(measured)
        except AssertionError as error:
            if not (taken.steal > MAX_STEAL or taken.much):
                failure = error
            continue
        return
    if failure is not None:
        raise failure
    pytest.skip(f"inconclusive: {taken}")


def undisturbed(measure: Callable[[], T]) -> T:
    """What `measure` gives on a host that was left alone meanwhile; after `TRIES` times the test is inconclusive."""
    for _ in range(TRIES):
        host = _core.HostWatch()
        found = measure()
        if json.loads(host.report())["steal_share"] <= MAX_STEAL:
            return found
    pytest.skip("inconclusive: the host's processors were given to others")
