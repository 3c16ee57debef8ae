"""The search: an optimiser proposes candidates by batches, runs say how bad each is.

Optuna's tree-structured Parzen estimator, of which docs/decisions/hunt-optimiser.md says why. It sees numbers from 0
to 1 for ranges and the numbers of choices; only the order of what it is told counts for it, so that crashes may stand
above all values, and what has no value below.
"""

from __future__ import annotations

import math
import random
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from paceline.errors import PacelineError
from paceline.hunts.candidates import Outcome, TimeIsUp, Trying
from paceline.hunts.ranges import Axis, Choices, apart

BATCH = 8
"""Candidates that are proposed at once, whatever the number of workers: so it is that what is tried is the seed's."""
RANDOM = 2 * BATCH
"""Candidates drawn at random before the optimiser goes by what it was told."""
DRAWN = 2
"""Of each batch so many are drawn at random all along: a fault without a slope towards it is found by these alone."""
SEEN_ENOUGH = BATCH
"""A crash that was met so often counts as nothing: the search goes on for others."""

_WORST, _NOTHING = 1e300, -1e300

Places = list[float | int]
"""Of each axis the place on its range, or the number of its choice."""


class Sampler(Protocol):
    """An optimiser that is asked for several candidates at once."""

    def ask(self, many: int) -> list[Places]:
        """Candidates to try."""

    def tell(self, scores: Sequence[float]) -> None:
        """How bad those were that it was last asked for, in their order; greater is worse."""


class Tpe:
    """Optuna's TPE. Raises PacelineError where Optuna is not installed."""

    def __init__(self, axes: Sequence[Axis], seed: int) -> None:
        try:
            import optuna  # noqa: PLC0415 (an extra, and slow to import)
        except ImportError:
            raise PacelineError(
                f'hunting takes Optuna, the extra "hunt" of paceline: {sys.executable} -m pip install optuna'
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spaces: dict[str, Any] = {
            str(place): optuna.distributions.CategoricalDistribution(range(len(axis.steps)))
            if isinstance(axis, Choices)
            else optuna.distributions.FloatDistribution(0.0, 1.0)
            for place, axis in enumerate(axes)
        }
        with warnings.catch_warnings():
            # what Optuna calls experimental
            warnings.simplefilter("ignore")
            sampler = optuna.samplers.TPESampler(
                multivariate=True, constant_liar=True, n_startup_trials=RANDOM, seed=seed % 2**32
            )
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._random = random.Random(seed)  # noqa: S311 (no secret)
        self._open: list[Any] = []

    def ask(self, many: int) -> list[Places]:
        """Candidates to try."""
        for _ in range(min(DRAWN, many)):
            self._study.enqueue_trial({name: self._drawn(space) for name, space in self._spaces.items()})
        self._open = [self._study.ask(self._spaces) for _ in range(many)]
        return [[trial.params[name] for name in self._spaces] for trial in self._open]

    def _drawn(self, space: Any) -> float | int:
        choices = getattr(space, "choices", None)
        return self._random.random() if choices is None else self._random.randrange(len(choices))

    def tell(self, scores: Sequence[float]) -> None:
        """How bad they were."""
        for trial, score in zip(self._open, scores, strict=False):
            self._study.tell(trial, score)


@dataclass(frozen=True)
class Try:
    """A candidate and what came of it."""

    candidate: tuple[str, ...]
    outcome: Outcome

    @property
    def rank(self) -> tuple[float, float]:
        """Greater is worse: by the share of failed runs, then by the mean."""
        mean = self.outcome.mean
        return (self.outcome.failing, _NOTHING if math.isnan(mean) else mean)


def search(
    trying: Trying,
    axes: Sequence[Axis],
    seeds: Sequence[int],
    sampler: Sampler,
    tries: int | None,
    done: list[Try],
    tell: Callable[[], None] = lambda: None,
) -> None:
    """Adds to `done` what was tried, batch by batch, until there are `tries`, or the time is up. Raises PacelineError
    if no candidate of the first batch can be a scenario, and what runs raise."""
    met: dict[str, int] = {}
    while tries is None or len(done) < tries:
        places = sampler.ask(BATCH)
        candidates = [_candidate(axes, one) for one in places]
        if tries is not None:
            candidates = candidates[: tries - len(done)]
        try:
            outcomes = trying.outcomes(candidates, seeds)
        except TimeIsUp:
            return
        if not done and all(outcome.refused for outcome in outcomes):
            raise PacelineError(
                f"none of the first {len(outcomes)} candidates is a scenario: {outcomes[0].refused}"
            )
        batch = [Try(candidate, outcome) for candidate, outcome in zip(candidates, outcomes, strict=True)]
        sampler.tell([_score(one, met) for one in batch])
        done += batch
        tell()


def _candidate(axes: Sequence[Axis], places: Places) -> tuple[str, ...]:
    return tuple(
        axis.values()[int(place)] if isinstance(axis, Choices) else axis.at(float(place))
        for axis, place in zip(axes, places, strict=True)
    )


def _score(one: Try, met: dict[str, int]) -> float:
    """What the optimiser is told of it."""
    failing, mean = one.rank
    if not failing:
        return mean
    words = said(one.outcome)
    met[words] = met.get(words, 0) + 1
    return _NOTHING if met[words] > SEEN_ENOUGH else _WORST * failing


def kind_of(crash: str) -> str:
    """What kind of crash it is: the last line of what it said, without its numbers."""
    return "".join("N" if letter.isdigit() else letter for letter in crash.strip().splitlines()[-1])


def said(outcome: Outcome) -> str:
    """The kind of the first crash; empty without one."""
    return kind_of(outcome.crashes[0]) if outcome.crashes else ""


def distinct(tries: Sequence[Try], axes: Sequence[Axis], least: float, most: int, far: float) -> list[Try]:
    """The worst few that differ: none nearer to a worse one than `far`, nor of the same kind of crash; values above
    `least` alone."""
    found: list[Try] = []
    for one in sorted(tries, key=lambda one: one.rank, reverse=True):
        crash = bool(one.outcome.crashes)
        if len(found) == most or not (crash or one.outcome.mean > least):
            break
        if crash:
            alike = any(said(one.outcome) == said(other.outcome) for other in found)
        else:
            alike = any(
                apart(axes, one.candidate, other.candidate) < far
                for other in found
                if not other.outcome.crashes
            )
        if not alike:
            found.append(one)
    return found
