"""Validates the arguments of environments: each error names the argument, its value, and the allowed values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paceline.gym.pieces import Array

MAX_COUNT = 2**32 - 1
"""The largest count that the core takes."""
MAX_SEED = 2**64 - 1
"""The largest seed of a run."""


def whole(name: str, value: Any, minimum: int = 1, maximum: int = MAX_COUNT) -> int:
    """An integer within these bounds. Raises ValueError."""
    if not isinstance(value, (int, np.integer)) or not minimum <= value <= maximum:
        raise ValueError(f"{name} = {value!r}: a whole number from {minimum} to {maximum}")
    return int(value)


def seed(value: Any) -> int:
    """A run's seed. Raises ValueError."""
    return whole("seed", value, 0, MAX_SEED)


def no_options(options: Any) -> None:
    """Raises ValueError for options of a reset, of which there are none."""
    if options:
        raise ValueError(
            f"options = {options!r}: a reset has no options; `seed` sets the scenario's random draws, and `changes` "
            "are given when the environment is made"
        )


def seeds(given: Any, many: int) -> list[int | None]:
    """A seed for each of `many` environments: a number means it and its successors, a list its items. Raises
    ValueError."""
    if given is None:
        return [None] * many
    if not isinstance(given, (Sequence, np.ndarray)):
        first = whole("seed", given, 0, MAX_SEED + 1 - many)
        return list(range(first, first + many))
    if len(given) != many:
        raise ValueError(f"seed = {given!r}: a seed for each of the {many} environments")
    return [None if one is None else seed(one) for one in given]


def distinct(given: Sequence[Any]) -> list[int]:
    """The seeds of independent runs. Raises ValueError."""
    if not given:
        raise ValueError("seeds = []: one or more, each a run")
    own: dict[int, None] = {}
    for one in given:
        if one is None:
            raise ValueError(
                "seeds has None: a whole number for each run, so that others can meet the same draws"
            )
        if seed(one) in own:
            raise ValueError(
                f"seeds has {one} more than once: counting one run twice makes the interval too narrow"
            )
        own[seed(one)] = None
    return list(own)


def step_s(value: Any) -> float:
    """The length of a step in seconds. Raises ValueError."""
    if not isinstance(value, Real) or not 1e-5 <= float(value) <= 1e4:
        raise ValueError(f"step_s = {value!r}: seconds, as 0.03; a step is of 10 us to 10000 s")
    return float(value)


def weights(reward: Any) -> dict[Any, float]:
    """The pieces of a reward and their weights; a single piece has weight 1. Raises ValueError."""
    if not isinstance(reward, Mapping):
        return {reward: 1.0}
    if not reward:
        raise ValueError("reward = {}: one piece or more, each with its weight")
    for piece, weight in reward.items():
        if not isinstance(weight, Real) or not math.isfinite(weight):
            raise ValueError(f"reward: the weight of {piece!r} is {weight!r}: a finite number")
    return dict(reward)


def pieces(observation: Any) -> list[Any]:
    """The pieces of an observation. Raises ValueError."""
    # A string is a sequence too, and would be read as names of one letter each.
    if isinstance(observation, str) or not len(observation):
        raise ValueError(f"observation = {observation!r}: a list of one piece or more")
    return list(observation)


def numbers(given: ArrayLike | None, many: int, places: Sequence[int], what: str = "actions") -> Array:
    """A number for each of `many` environments, required of those at `places`. Raises ValueError."""
    if given is None:  # a policy that returns nothing
        given = np.full(many, np.nan)
    whole_batch = np.asarray(given, dtype=np.float64)
    if whole_batch.shape not in ((many,), (many, 1)) and not whole_batch.size == many == 1:
        raise ValueError(
            f"{what} of the shape {whole_batch.shape}: it must be ({many}, 1), a number for each environment"
        )
    flat = whole_batch.reshape(many)
    # The core skips environments whose action is NaN, so such a run would never advance.
    if np.isnan(flat).any():
        for place in places:
            if math.isnan(flat[place]):
                raise ValueError(f"action of environment {place} is not a number")
    return flat
