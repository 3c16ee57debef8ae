"""Environments for learners: what is asked wrongly is refused with words, before a run stands still or pays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paceline.errors import ScenarioError
from paceline.gym import Action, FlowEnv, FlowVectorEnv, returns

CALL = Path(__file__).resolve().parent.parent / "examples" / "call.toml"
SHORT = {"duration": "1 s"}
NAN = float("nan")


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"flow": "nobody"}, ScenarioError, "flow.nobody: there is no such flow"),
        ({"action": "jump"}, ValueError, "there is no action 'jump'; there are window, rate"),
        ({"observation": ["sky"]}, ValueError, "there is no observation 'sky'"),
        ({"reward": "money"}, ValueError, "there is no reward 'money'"),
        ({"history": 0}, ValueError, "history = 0"),
        ({"history": 1.5}, ValueError, "history = 1.5: a whole number from 1 to"),
        ({"step_s": 0.0}, ValueError, "step_s = 0.0: seconds, as 0.03; a step is of 10 us"),
        ({"step_s": NAN}, ValueError, "step_s = nan: seconds, as 0.03; a step is of 10 us"),
        ({"step_segments": -1}, ValueError, "step_segments = -1: a whole number from 1 to 4294967295"),
        ({"step_segments": 2**32}, ValueError, "step_segments = 4294967296: a whole number"),
        ({"observation": []}, ValueError, r"observation = \[\]: a list of one piece or more"),
        ({"observation": "goodput"}, ValueError, "observation = 'goodput': a list of one piece or more"),
        ({"reward": {}}, ValueError, "reward = {}: one piece or more"),
        ({"reward": {"goodput": NAN}}, ValueError, "reward: the weight of 'goodput' is nan: a finite"),
        ({"reward": {"goodput": "1"}}, ValueError, "reward: the weight of 'goodput' is '1': a finite"),
        ({"changes": {"flow.agent.count": 3}}, ScenarioError, "an agent decides for one flow"),
        (
            {"baseline": "tfrc"},
            ScenarioError,
            "flow.agent.cc: as a baseline `tfrc` cannot be seen step by step",
        ),
        ({"baseline": "cubik"}, ScenarioError, "flow.agent.cc: `cubik` is not known; did you mean"),
        (
            {"scenario": CALL, "flow": "call", "action": "window"},
            ScenarioError,
            "on RTP an agent sets a rate",
        ),
    ],
)
def test_mistakes(arguments: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        FlowEnv(**arguments)


def test_a_step_without_a_run_is_refused() -> None:
    env = FlowEnv()
    with pytest.raises(ValueError, match="environment 0 has no run: reset it first"):
        env.step(np.array([0.0], dtype=np.float32))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"num_envs": 0}, "num_envs = 0: a whole number from 1 to"),
        ({"num_envs": -1}, "num_envs = -1: a whole number from 1 to"),
        ({"workers": -1}, "workers = -1: a whole number from 1 to"),
    ],
)
def test_mistakes_of_many(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FlowVectorEnv(**arguments)


@pytest.mark.parametrize(
    ("seed", "said"),
    [
        (2**64, f"seed = {2**64}: a whole number from 0 to {2**64 - 2}"),
        (2**64 - 1, f"seed = {2**64 - 1}: a whole number from 0 to {2**64 - 2}"),
        (-1, "seed = -1: a whole number from 0 to"),
        (1.5, "seed = 1.5: a whole number from 0 to"),
        ([1, 2**64], f"seed = {2**64}: a whole number from 0 to {2**64 - 1}"),
        ([1, 2, 3], r"seed = \[1, 2, 3\]: a seed for each of the 2 environments"),
    ],
)
def test_seeds_that_are_none(seed: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FlowVectorEnv(2, changes=SHORT).reset(seed=seed)


def test_options_of_a_reset_are_refused() -> None:
    one, many = FlowEnv(changes=SHORT), FlowVectorEnv(2, changes=SHORT)
    one.reset(seed=1, options={})
    for env in (one, many):
        with pytest.raises(ValueError, match=r"options = \{'rate': 1\}: a reset has no options"):
            env.reset(seed=1, options={"rate": 1})


def test_the_last_seed_is_one_too() -> None:
    FlowVectorEnv(2, changes=SHORT).reset(seed=2**64 - 2)
    env = FlowEnv(changes=SHORT)
    env.reset(seed=2**64 - 1)
    with pytest.raises(ValueError, match=f"seed = {2**64}: a whole number from 0 to {2**64 - 1}"):
        env.reset(seed=2**64)


def test_an_action_that_is_not_a_number_is_refused() -> None:
    env = FlowEnv(step_s=0.1, changes=SHORT)
    env.reset(seed=1)
    env.step(np.array([0.0], dtype=np.float32))
    for action in ([NAN], None):
        with pytest.raises(ValueError, match="action of environment 0 is not a number"):
            env.step(action)  # type: ignore[arg-type]
    info = env.step(np.array([0.0], dtype=np.float32))[4]
    assert info["time_s"] == pytest.approx(0.23, abs=0.01), "nothing was done in between"
    many = FlowVectorEnv(3, step_s=0.1, changes=SHORT)
    many.reset(seed=1)
    with pytest.raises(ValueError, match="action of environment 2 is not a number"):
        many.step(np.array([[0.0], [0.0], [NAN]], dtype=np.float32))


def test_an_action_without_effect_may_be_anything() -> None:
    many = FlowVectorEnv(2, step_s=0.5, changes=SHORT)
    many.reset(seed=1)
    nothing = np.full((2, 1), NAN, dtype=np.float32)
    while not many.step(np.zeros((2, 1), dtype=np.float32))[3].all():
        pass
    many.step(nothing)  # the next runs begin
    baseline = FlowVectorEnv(2, baseline="cubic", changes=SHORT)
    baseline.reset(seed=1)
    baseline.step(nothing)


def test_an_action_of_ones_own_has_to_mean_numbers() -> None:
    nothing = Action("rate", -1.0, 1.0, lambda action, _: action * NAN, "never a number")
    pairs = Action("rate", -1.0, 1.0, lambda action, _: np.stack([action, action]), "two for one")
    for action, said in (
        (nothing, "action of environment 0 is not a number"),
        (pairs, r"it must be \(1, 1\)"),
    ):
        env = FlowEnv(action=action, changes=SHORT)
        env.reset(seed=1)
        with pytest.raises(ValueError, match=said):
            env.step(np.array([0.0], dtype=np.float32))


@pytest.mark.parametrize("shape", [(), (2,), (3, 2), (1, 3)])
def test_actions_of_another_shape(shape: tuple[int, ...]) -> None:
    many = FlowVectorEnv(3, changes=SHORT)
    many.reset(seed=1)
    with pytest.raises(
        ValueError, match=r"actions of the shape \(.*\): it must be \(3, 1\), a number for each"
    ):
        many.step(np.zeros(shape, dtype=np.float32))


def test_after_the_end_a_reset_is_wanted() -> None:
    for baseline in (None, "cubic"):
        env = FlowEnv(step_s=0.5, baseline=baseline, changes=SHORT)
        env.reset(seed=1)
        still = np.array([0.0], dtype=np.float32)
        while not env.step(still)[3]:
            pass
        with pytest.raises(ValueError, match="has ended: reset it first"):
            env.step(still)
        assert env.results().flows["bytes_delivered"][0] > 0, "what was measured is still there"
        env.reset()
        env.step(still)
    done = FlowEnv(changes={"flow.agent.app": {"kind": "ftp", "size": "20 kB"}}, step_s=0.5)
    done.reset(seed=1)
    while not done.step(still)[2]:
        pass
    with pytest.raises(ValueError, match="has ended: reset it first"):
        done.step(still)


def test_a_policy_that_gives_nothing_ends() -> None:
    for seeds in ([1], [1, 2]):
        for policy in (lambda _: None, lambda seen: np.full((len(seen), 1), NAN)):
            with pytest.raises(ValueError, match="action of environment 0 is not a number"):
                returns(policy, seeds=seeds, changes=SHORT)


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ([], r"seeds = \[\]: one or more"),
        ([3, 1, 1], "seeds has 1 more than once"),
        ([1, np.int64(1)], "seeds has 1 more than once"),
        ([1, None], "seeds has None: a whole number for each run"),
        ([-1], "seed = -1: a whole number from 0"),
    ],
)
def test_returns_need_seeds_that_differ(seeds: list[Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        returns(baseline="cubic", seeds=seeds, changes=SHORT)


def test_without_gymnasium_the_extra_is_named() -> None:
    code = "import sys; sys.modules['gymnasium'] = None\nimport paceline.gym"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'the extra "gym" of paceline' in ran.stderr
    assert f"{sys.executable} -m pip install gymnasium" in ran.stderr, "what is of use in a clone, too"
