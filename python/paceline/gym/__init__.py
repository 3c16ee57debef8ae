"""Learning to control congestion: any scenario as an environment of Gymnasium's, any flow the agent.

    import gymnasium, paceline.gym
    env = gymnasium.make("paceline/Scenario-v0", scenario="x.toml", flow="mine", reward={"goodput": 1, "delay": 5})

Needs the extra: `pip install "paceline[gym]"`, in a clone `.venv/bin/python -m pip install gymnasium`. Start with
`environment.py`. `pieces.py` has observations, actions and rewards; `evaluation.py` has the returns of policies and
baselines over whole runs; `checks.py` validates arguments.
"""

from __future__ import annotations

import sys

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        f'paceline.gym needs Gymnasium, the extra "gym" of paceline: {sys.executable} -m pip install gymnasium'
    ) from error

from paceline.gym.environment import LINK, FlowEnv, FlowVectorEnv
from paceline.gym.evaluation import Returns, returns
from paceline.gym.pieces import (
    ACTIONS,
    FEATURES,
    OBSERVATIONS,
    REWARDS,
    Action,
    Features,
    Observation,
    Reward,
)
from paceline.messages.warn import warn

IDS = ("paceline/Link-v0", "paceline/Scenario-v0")
"""The environments: one flow on a link of 12 Mbit/s, and any scenario; both take the arguments of `FlowEnv`."""


def __getattr__(name: str) -> type:
    """The former name of `Features`, until 0.3."""
    if name == "Told":
        warn("paceline.gym.Told is paceline.gym.Features now")
        return Features
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _id in IDS:
    gymnasium.register(
        id=_id,
        entry_point="paceline.gym.environment:FlowEnv",
        vector_entry_point="paceline.gym.environment:FlowVectorEnv",
    )

__all__ = [
    "ACTIONS",
    "FEATURES",
    "IDS",
    "LINK",
    "OBSERVATIONS",
    "REWARDS",
    "Action",
    "Features",
    "FlowEnv",
    "FlowVectorEnv",
    "Observation",
    "Returns",
    "Reward",
    "returns",
]
