"""The search: an optimiser proposes candidates in batches, and runs evaluate them.

The optimiser is Optuna's tree-structured Parzen estimator; docs/decisions/hunt-optimiser.md gives the reasons. It sees
places from 0 to 1 for ranges, and indices of choices. Only the order of the scores matters to it, so crashes can rank
above all values, and candidates without a value below.
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
from paceline.hunts.candidates import Outcome, Runner, TimeIsUp
from paceline.hunts.ranges import Axis, Choices, apart

BATCH = 8
"""Candidates proposed at once, for any number of workers, so that the tries depend only on the seed."""
RANDOM = 2 * BATCH
"""Candidates drawn at random before the optimiser uses its scores."""
DRAWN = 2
"""Candidates of each batch that are always drawn at random: only they find faults without a slope towards them."""
MAX_REPEATS = BATCH
"""A crash seen this often no longer counts: the search goes on for others."""

_WORST, _NOTHING = 1e300, -1e300

Places = list[float | int]
"""For each axis the place on its range, or the index of its choice."""


class Sampler(Protocol):
    """An optimiser that proposes several candidates at once."""

    def ask(self, many: int) -> list[Places]:
        """Proposes candidates."""

    def tell(self, scores: Sequence[float]) -> None:
        """Reports the scores of the last proposals, in their order; greater is worse."""


class Tpe:
    """Optuna's TPE. Raises PacelineError if Optuna is not installed."""

    def __init__(self, axes: Sequence[Axis], seed: int) -> None:
        try:
            import optuna  # noqa: PLC0415 (an extra, and slow to import)
        except ImportError:
            raise PacelineError(
                f'hunting needs Optuna, the extra "hunt" of paceline: {sys.executable} -m pip install optuna'
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._spaces: dict[str, Any] = {
            str(place): optuna.distributions.CategoricalDistribution(range(len(axis.steps)))
            if isinstance(axis, Choices)
            else optuna.distributions.FloatDistribution(0.0, 1.0)
            for place, axis in enumerate(axes)
        }
        with warnings.catch_warnings():
            # Optuna warns about experimental options
            warnings.simplefilter("ignore")
            sampler = optuna.samplers.TPESampler(
                multivariate=True, constant_liar=True, n_startup_trials=RANDOM, seed=seed % 2**32
            )
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._random = random.Random(seed)  # noqa: S311 (no secret)
        self._open: list[Any] = []

    def ask(self, many: int) -> list[Places]:
        """Proposes candidates."""
        for _ in range(min(DRAWN, many)):
            self._study.enqueue_trial({name: self._drawn(space) for name, space in self._spaces.items()})
        self._open = [self._study.ask(self._spaces) for _ in range(many)]
        return [[trial.params[name] for name in self._spaces] for trial in self._open]

    def _drawn(self, space: Any) -> float | int:
        choices = getattr(space, "choices", None)
        return self._random.random() if choices is None else self._random.randrange(len(choices))

    def tell(self, scores: Sequence[float]) -> None:
        """Reports the scores."""
        for trial, score in zip(self._open, scores, strict=False):
            self._study.tell(trial, score)


@dataclass(frozen=True)
class Try:
    """A candidate and its outcome."""

    candidate: tuple[str, ...]
    outcome: Outcome

    @property
    def rank(self) -> tuple[float, float]:
        """Greater is worse: by the share of failed runs, then by the mean."""
        mean = self.outcome.mean
        return (self.outcome.failing, _NOTHING if math.isnan(mean) else mean)


def search(
    runner: Runner,
    axes: Sequence[Axis],
    seeds: Sequence[int],
    sampler: Sampler,
    tries: int | None,
    done: list[Try],
    on_progress: Callable[[], None] = lambda: None,
) -> None:
    """Appends tries to `done`, batch by batch, until there are `tries` or the time is up. Raises PacelineError if no
    candidate of the first batch is a valid scenario, and what runs raise."""
    met: dict[str, int] = {}
    while tries is None or len(done) < tries:
        places = sampler.ask(BATCH)
        candidates = [_candidate(axes, one) for one in places]
        if tries is not None:
            candidates = candidates[: tries - len(done)]
        try:
            outcomes = runner.outcomes(candidates, seeds)
        except TimeIsUp:
            return
        if not done and all(outcome.refused for outcome in outcomes):
            raise PacelineError(
                f"none of the first {len(outcomes)} candidates is a valid scenario: {outcomes[0].refused}"
            )
        batch = [Try(candidate, outcome) for candidate, outcome in zip(candidates, outcomes, strict=True)]
        sampler.tell([_score(one, met) for one in batch])
        done += batch
        on_progress()


def _candidate(axes: Sequence[Axis], places: Places) -> tuple[str, ...]:
    return tuple(
        axis.values()[int(place)] if isinstance(axis, Choices) else axis.at(float(place))
        for axis, place in zip(axes, places, strict=True)
    )


def _score(one: Try, met: dict[str, int]) -> float:
    """The score for the optimiser."""
    failing, mean = one.rank
    if not failing:
        return mean
    words = said(one.outcome)
    met[words] = met.get(words, 0) + 1
    return _NOTHING if met[words] > MAX_REPEATS else _WORST * failing


def kind_of(crash: str) -> str:
    """The kind of a crash: the last line of its message, without numbers."""
    return "".join("N" if letter.isdigit() else letter for letter in crash.strip().splitlines()[-1])


def said(outcome: Outcome) -> str:
    """The kind of the first crash; empty without one."""
    return kind_of(outcome.crashes[0]) if outcome.crashes else ""


def distinct(
    tries: Sequence[Try], axes: Sequence[Axis], min_mean: float, max_tries: int, min_distance: float
) -> list[Try]:
    """The worst few distinct tries: none within `min_distance` of a worse one or with the same kind of crash; only
    values above `min_mean`."""
    found: list[Try] = []
    for one in sorted(tries, key=lambda one: one.rank, reverse=True):
        crash = bool(one.outcome.crashes)
        if len(found) == max_tries or not (crash or one.outcome.mean > min_mean):
            break
        if crash:
            alike = any(said(one.outcome) == said(other.outcome) for other in found)
        else:
            alike = any(
                apart(axes, one.candidate, other.candidate) < min_distance
                for other in found
                if not other.outcome.crashes
            )
        if not alike:
            found.append(one)
    return found
