"""The returns of a policy, or of a baseline, over whole runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.gym import checks
from paceline.gym.environment import FlowVectorEnv
from paceline.statistics import Estimate, estimate

Policy = Callable[[NDArray[np.float32]], Any]
"""Maps observations to actions, a row per run."""


@dataclass(frozen=True)
class Returns:
    """The undiscounted returns of whole runs."""

    each: dict[int, float]
    """By seed."""
    estimate: Estimate
    """Their mean with its 95 % interval."""

    def __float__(self) -> float:
        """Their mean; NaN of none."""
        mean = self.estimate.mean
        return math.nan if mean is None else mean

    def __str__(self) -> str:
        mean, half = self.estimate.mean, self.estimate.half_width
        return f"{mean:.4g}" if half is None else f"{mean:.4g} ± {half:.2g}"


def returns(policy: Policy | None = None, *, seeds: Iterable[int] = range(10), **arguments: Any) -> Returns:
    """Runs each seed to its end under `policy`, or under the `baseline` among `arguments`, which are `FlowVectorEnv`'s.

        returns(mine, scenario="x.toml", reward="power").estimate
        returns(baseline="cubic", scenario="x.toml", reward="power").estimate

    With the same seeds both have the same random draws. A run's return is the sum of its rewards, so use the same step
    length on both sides. Raises ValueError unless exactly one of policy and baseline is given, without seeds, or for a
    repeated seed; ScenarioError.
    """
    if (policy is None) == (arguments.get("baseline") is None):
        raise ValueError("returns need a policy or a baseline: give exactly one")
    own = checks.distinct(list(seeds))
    env = FlowVectorEnv(len(own), **arguments)
    observations, _ = env.reset(seed=own)
    idle = np.zeros((len(own), 1), dtype=np.float32)
    sums, going = np.zeros(len(own)), np.ones(len(own), dtype=bool)
    while going.any():
        actions = idle if policy is None else policy(observations)
        observations, rewards, terminated, truncated, _ = env.step(actions)
        sums += np.where(going, rewards, 0.0)  # a run that has ended restarts, and no longer counts
        going &= ~(terminated | truncated)
    each = dict(zip(own, sums.tolist(), strict=True))
    return Returns(each, estimate(sums.tolist()))
