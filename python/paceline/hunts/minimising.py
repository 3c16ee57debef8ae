"""Minimises finds: moves each back towards the file's values, axis by axis.

First each axis is reset completely if possible, so that few are left; then the others are bisected; then values are
rounded. A find stays if it keeps a share (`KEPT_SHARE`) of its excess over the file's value, on the same seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from paceline.hunts.ranges import Axis, Candidate, Choices, Range, Value

KEPT_SHARE = 0.8
"""The share of its excess over the file's value that a find keeps while it is minimised."""
_HALVINGS = 4

Steps = Generator[Candidate, bool, Candidate]
"""Yields the next candidate to try, receives whether the find stays there, and returns the result."""


def smaller(find: Candidate, axes: Sequence[Axis], own: Sequence[Value]) -> Steps:
    """Minimises a find; `own` are the file's values, None if it has none."""
    now, before = find, None
    while now != before:  # an axis that had to stay may be reset once others are
        before = now
        for place in range(len(axes)):
            if now[place] is not None and (yield _with(now, place, None)):
                now = _with(now, place, None)
    for place, axis in enumerate(axes):
        if now[place] is not None and isinstance(axis, Range):
            now = yield from _nearer(now, place, axis, own[place])
    for place, axis in enumerate(axes):
        value = now[place]
        if value is None or isinstance(axis, Choices) or (rounder := axis.rounder(value)) == value:
            continue
        if (yield _with(now, place, rounder)):
            now = _with(now, place, rounder)
    return now


def _nearer(now: Candidate, place: int, axis: Range, own: Value) -> Steps:
    """Bisects between the file's value, where the find does not stay, and the find's."""
    value = now[place]
    near, far = None if own is None else axis.place(own), None if value is None else axis.place(value)
    if near is None or far is None:
        return now
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        text = axis.at(middle)
        if text in (now[place], own):
            break
        if (yield _with(now, place, text)):
            now, far = _with(now, place, text), middle
        else:
            near = middle
    return now


def _with(candidate: Candidate, place: int, value: Value) -> Candidate:
    return (*candidate[:place], value, *candidate[place + 1 :])


@dataclass
class Minimisation:
    """A find being minimised: the result so far, and the next candidate."""

    now: Candidate
    steps: Steps
    candidate: Candidate | None = None

    def answer(self, stays: bool) -> None:
        """Reports whether the find stays at `candidate`."""
        if stays and self.candidate is not None:
            self.now = self.candidate
        self._next(stays)

    def begin(self) -> None:
        """Gets the first candidate."""
        self._next(None)

    def _next(self, answer: bool | None) -> None:
        try:
            self.candidate = next(self.steps) if answer is None else self.steps.send(answer)
        except StopIteration as end:
            self.now, self.candidate = end.value, None


def minimise(
    finds: Sequence[Candidate],
    axes: Sequence[Axis],
    own: Sequence[Value],
    stay: Callable[[Sequence[tuple[int, Candidate]]], Sequence[bool]],
    left: list[Candidate],
) -> None:
    """Minimises all finds at once, so that the cores are busy. `stay` receives numbers of finds and their candidates,
    and returns whether each stays. `left` holds each result so far, even if `stay` raises."""
    under_way = [Minimisation(find, smaller(find, axes, own)) for find in finds]
    left[:] = finds
    for one in under_way:
        one.begin()
    while pending := [(n, one.candidate) for n, one in enumerate(under_way) if one.candidate is not None]:
        for (n, _), stays in zip(pending, stay(pending), strict=True):
            under_way[n].answer(stays)
            left[n] = under_way[n].now
