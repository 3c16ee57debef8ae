"""Tests in real time on a host that may be busy with others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from paceline import _core

MOST_STEAL = 0.01
"""The share of the processors' time, taken by others, above which what was measured is inconclusive."""

MUCH_STEAL = 0.1
"""The same for a test that measures nothing: what it asserts does not fail for a hundredth of the time."""

TRIES = 3


T = TypeVar("T")


class Steal:
    """The time that others had of the processors while a test ran, or another of its module since the module's fixtures
    were made: what those measured may be what a later test looks at."""

    def __init__(self) -> None:
        self._module: Path | None = None
        self._worst = 0.0

    def begin(self, module: Path, anew: bool) -> None:
        """A test of `module` begins, whose fixtures are those of an earlier test unless they are made anew."""
        if anew or module != self._module:
            self._module, self._worst = module, 0.0
        self._watch = _core.HostWatch()

    def share(self) -> float:
        """The largest share of the processors' time."""
        self._worst = max(self._worst, json.loads(self._watch.report())["steal_share"])
        return self._worst


def conclusive(measure: Callable[[], tuple[T, float]], check: Callable[[T], None]) -> None:
    """Measures, and checks what was measured, up to `TRIES` times: other programs on the same processors disturb it
    too, which stolen time does not show.

    `measure` gives what `check` asserts something of, and the share of stolen time. A test that fails each time has
    failed, unless time was stolen in each: then it is inconclusive, which is a skip.
    """
    failure: AssertionError | None = None
    steal = 0.0
    for _ in range(TRIES):
        measured, steal = measure()
        try:
            check(measured)
        except AssertionError as error:
            if steal <= MOST_STEAL:
                failure = error
            continue
        return
    if failure is not None:
        raise failure
    pytest.skip(f"inconclusive: others took {steal:.1%} of the processors' time")


def undisturbed(measure: Callable[[], T]) -> T:
    """What `measure` gives on a host that was left alone meanwhile; after `TRIES` times the test is inconclusive."""
    for _ in range(TRIES):
        host = _core.HostWatch()
        found = measure()
        if json.loads(host.report())["steal_share"] <= MOST_STEAL:
            return found
    pytest.skip("inconclusive: the host's processors were given to others")
