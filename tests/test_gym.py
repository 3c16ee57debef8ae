"""Environments for learners: Gymnasium's own checks pass, the same seed gives the same bits, one or many at once."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from gymnasium.utils.env_checker import check_env

import paceline
import paceline.gym as learning
from paceline.errors import ControllerError
from paceline.gym import (
    ACTIONS,
    FEATURES,
    OBSERVATIONS,
    REWARDS,
    Features,
    FlowEnv,
    FlowVectorEnv,
    Observation,
    returns,
)

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
SHORT = {"duration": "3 s"}
BRIEF = {"duration": "14 s", "flow.download.start": "8 s", "flow.download.stop": "13 s"}
"""A call of which the last seconds are beside the download."""
LOSSY = learning.LINK.replace("delay =", 'loss = { rate = "1 %" }\ndelay =')
CALL = EXAMPLES / "call.toml"
MIDDLE = {"window": 30.0, "rate": 8e6, "window_factor": 0.3, "rate_factor": 0.3}


def acted(env: gymnasium.Env[Any, Any], value: float, seed: int = 1, max_steps: int = 10_000) -> list[Any]:
    """All that a run tells under one action."""
    observation, info = env.reset(seed=seed)
    steps: list[Any] = [(observation.tolist(), info)]
    for _ in range(max_steps):
        observation, reward, terminated, truncated, info = env.step(np.array([value], dtype=np.float32))
        steps.append((observation.tolist(), reward, terminated, truncated, info))
        if terminated or truncated:
            break
    return steps


def checked(**arguments: Any) -> None:
    with warnings.catch_warnings():
        # windows and rates are in units of their own: Gymnasium would rather have -1 to 1, which the factors are
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_env(gymnasium.make(**arguments).unwrapped)


def test_a_copy_and_what_is_pickled_give_the_same_runs() -> None:
    env = FlowEnv(LOSSY, changes=SHORT, action="window")
    whole = acted(env, 20.0, seed=3)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert acted(other, 20.0, seed=3) == whole
    many = pickle.loads(pickle.dumps(FlowVectorEnv(3, LOSSY, changes=SHORT, workers=2)))
    assert many.num_envs == 3
    many.reset(seed=3)


@pytest.mark.parametrize("action", ACTIONS)
def test_gymnasiums_own_checks_pass(action: str) -> None:
    checked(id="paceline/Link-v0", action=action, changes=SHORT)


def test_gymnasiums_own_checks_pass_of_baselines_and_calls() -> None:
    checked(id="paceline/Link-v0", baseline="cubic", changes=SHORT)
    call: dict[str, Any] = {"id": "paceline/Scenario-v0", "scenario": CALL, "flow": "call", "changes": BRIEF}
    checked(**call, reward="call", observation=["goodput", "rate", "queueing", "sender_queue", "loss"])
    checked(**call, action="rate")
    checked(**call, baseline="gcc")


def test_an_episode_is_the_scenario() -> None:
    env = gymnasium.make("paceline/Link-v0", action="rate", step_s=0.01, changes=SHORT)
    steps = acted(env, 6e6)
    last = steps[-1]
    assert last[2:4] == (False, True)
    assert last[4]["time_s"] == pytest.approx(3.0)
    assert len(steps) - 1 == pytest.approx(297, abs=2), "steps of 10 ms from the handshake's end on"
    goodput = sum(step[4]["acked_bytes"] for step in steps[1:]) * 8 / 3
    assert goodput == pytest.approx(6e6, rel=0.05)
    assert set(last[4]) <= set(FEATURES)


def test_the_same_seed_gives_the_same_bits() -> None:
    def one(seed: int) -> str:
        env = gymnasium.make("paceline/Scenario-v0", scenario=LOSSY, action="window_factor", changes=SHORT)
        return json.dumps(acted(env, 0.2, seed))

    assert one(5) == one(5)
    assert one(5) != one(6)


@pytest.mark.parametrize(("step_s", "steps"), [(0.03, 40), (0.5, 5)], ids=["short", "long"])
def test_many_are_what_single_ones_are(step_s: float, steps: int) -> None:
    arguments: dict[str, Any] = {
        "step_s": step_s,
        "action": "rate_factor",
        "reward": {"goodput": 1, "delay": 2},
        "changes": SHORT,
    }
    many = gymnasium.make_vec(
        "paceline/Scenario-v0", 3, "vector_entry_point", scenario=LOSSY, workers=2, **arguments
    )
    observation, _ = many.reset(seed=11)
    for place in range(3):
        single = gymnasium.make("paceline/Scenario-v0", scenario=LOSSY, **arguments)
        own, _ = single.reset(seed=11 + place)
        assert np.array_equal(own, observation[place])
        if place == 0:
            seen = [many.step(np.full((3, 1), 0.5, dtype=np.float32)) for _ in range(steps)]
        for step in seen:
            alone = single.step(np.array([0.5], dtype=np.float32))
            assert np.array_equal(alone[0], step[0][place])
            assert alone[1:4] == (step[1][place], step[2][place], step[3][place])


def test_what_has_ended_begins_anew() -> None:
    many = FlowVectorEnv(2, action="rate", step_s=0.1, changes=SHORT)
    many.reset(seed=1)
    ends = []
    for n in range(70):
        observation, reward, _, truncated, info = many.step(np.full((2, 1), 5e6, dtype=np.float32))
        if truncated.any():
            ends.append(n)
        elif ends and n == ends[-1] + 1:
            time_s = info["told"][:, FEATURES.index("time_s")]
            assert (time_s < 0.1).all()
            assert (reward == 0).all()
            assert (observation[:, :-3] == 0).all(), "it remembers nothing of the run before"
    assert len(ends) == 2
    again = FlowVectorEnv(2, action="rate", step_s=0.1, changes=SHORT)
    again.reset(seed=1)
    for _ in range(70):
        same = again.step(np.full((2, 1), 5e6, dtype=np.float32))
    assert np.array_equal(same[0], observation), "the next runs' seeds follow from the first"


def test_the_runs_after_the_first_follow_from_the_seed() -> None:
    """One at a time or many at once, begun anew by their end or by hand."""
    arguments: dict[str, Any] = {"scenario": LOSSY, "action": "rate", "step_s": 0.5, "changes": SHORT}
    still = np.full((2, 1), 2e7, dtype=np.float32)

    def singles(seed: int) -> list[list[float]]:
        env = FlowEnv(**arguments)
        env.reset(seed=seed)
        steps = []
        for _ in range(3):
            steps.append([float(env.step(still[0])[1]) for _ in range(4)])
            env.reset()
        return steps

    def many(**how: Any) -> list[Any]:
        env = FlowVectorEnv(2, **arguments)
        env.reset(**how)
        steps = []
        for _ in range(3):
            steps.append(np.stack([env.step(still)[1] for _ in range(4)]).T.tolist())
            env.reset()
        return [list(one) for one in zip(*steps, strict=True)]

    first, second = singles(1), singles(2)
    assert first[0] != first[1] != first[2]
    assert many(seed=1) == [first, second]
    assert many(seed=(1, 2)) == many(seed=[1, 2]) == [first, second]

    env = FlowVectorEnv(2, **arguments)
    env.reset(seed=1)
    env.reset(seed=[None, 7])
    mixed = np.stack([env.step(still)[1] for _ in range(4)]).T.tolist()
    assert mixed == [first[1], singles(7)[0]]
    over = FlowVectorEnv(2, **arguments)
    over.reset(seed=1)
    while not over.step(still)[3].all():
        pass
    over.step(still)
    assert np.stack([over.step(still)[1] for _ in range(4)]).T.tolist() == [first[1], second[1]]


def test_gymnasiums_generator_is_made_from_the_seed() -> None:
    many, one = FlowVectorEnv(2, changes=SHORT), FlowEnv(changes=SHORT)
    many.reset(seed=5)
    one.reset(seed=5)
    assert many.np_random_seed == one.np_random_seed == 5
    never = FlowVectorEnv(2, changes=SHORT)
    never.reset()
    never.reset()


def test_any_scenario_and_any_flow() -> None:
    env = FlowEnv(EXAMPLES / "coffee-shop.toml", "film", action="window", changes={"duration": "12 s"})
    steps = acted(env, 20.0)
    assert sum(step[4]["acked_bytes"] for step in steps[1:]) > 0
    own = FlowEnv(
        LOSSY + '[flow.other]\ncc = "mine"\n', "agent", changes=SHORT, schemes={"mine": Fixed}, action="rate"
    )
    assert acted(own, 1e7)[-1][4]["rtt_s"] > 0.031, "the other one fills the queue"


class Fixed(paceline.WindowController):
    """A window of 60 segments"""

    def on_feedback(self, event: Any, path: Any) -> None:
        self.window = 60


class Fails(paceline.WindowController):
    """Fails after a second"""

    def on_feedback(self, event: Any, path: Any) -> None:
        if path.now_s > 1:
            raise KeyError("no more")


def test_another_flows_controller_that_fails_is_said() -> None:
    env = FlowEnv(LOSSY + '[flow.other]\ncc = "mine"\n', "agent", changes=SHORT, schemes={"mine": Fails})
    with pytest.raises(ControllerError, match=r"(?s)flow other\[0\] failed at .*KeyError: 'no more'"):
        acted(env, 0.1)


def test_a_transfer_terminates() -> None:
    env = FlowEnv(changes={"flow.agent.app": {"kind": "ftp", "size": "200 kB"}}, action="window", step_s=0.05)
    last = acted(env, 40.0)[-1]
    assert last[2:4] == (True, False)


def test_steps_by_acknowledgements() -> None:
    env = FlowEnv(action="window", step_segments=20, changes=SHORT)
    acked = [step[4]["acked_bytes"] / step[4]["segment_bytes"] for step in acted(env, 30.0)[1:-1]]
    assert min(acked) >= 20
    assert max(acked) <= 22


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_each_observation_stays_in_its_bounds(name: str) -> None:
    env = FlowEnv(LOSSY, observation=[name], history=2, action="rate", changes=SHORT)
    for step in acted(env, 2e7):
        assert env.observation_space.contains(np.array(step[0], dtype=np.float32)), step[0]
    assert OBSERVATIONS[name].doc


@pytest.mark.parametrize("name", REWARDS)
def test_each_reward_is_a_number(name: str) -> None:
    rewards = [step[1] for step in acted(FlowEnv(reward=name, action="rate", changes=SHORT), 1e7)[1:]]
    assert np.isfinite(rewards).all()
    assert np.std(rewards) > 0 or name in ("loss", "delay")


def test_rewards_pay_for_what_they_say() -> None:
    def paid(reward: str, rate: float) -> float:
        steps = acted(FlowEnv(reward=reward, action="rate", changes=SHORT), rate)[1:]
        return float(np.mean([step[1] for step in steps]))

    assert paid("goodput", 10e6) > paid("goodput", 5e6)
    assert paid("delay", 20e6) < paid("delay", 5e6) - 0.02
    assert paid("loss", 20e6) < paid("loss", 5e6) == 0
    assert paid("power", 10e6) > max(paid("power", 1e6), paid("power", 20e6))
    assert paid("aurora", 11.5e6) > max(paid("aurora", 3e6), paid("aurora", 40e6))


def test_pieces_of_ones_own() -> None:
    def half(features: Features) -> Any:
        return features["in_flight_segments"] / 2

    env = FlowEnv(
        observation=[Observation(half, 0, 1e4, "half of what is in flight")], history=1, action="window"
    )
    steps = acted(env, 20.0, max_steps=20)
    assert steps[-1][0][0] == pytest.approx(steps[-1][4]["in_flight_segments"] / 2)


@pytest.mark.parametrize("cc", ["newreno", "sack", "cubic", "vegas", "bbr", "copa"])
def test_a_baseline_is_the_run_of_its_controller(cc: str) -> None:
    for seed in (1, 2):
        env = FlowEnv(LOSSY, baseline=cc, changes={"duration": "10 s"})
        steps = acted(env, 0.7, seed)
        ours = env.results()
        its = paceline.run(LOSSY, seed=seed, set={"duration": "10 s", "flow.agent.cc": cc})
        assert ours.flows.equals(its.flows), "every bit of every measure"
        assert ours.queues.equals(its.queues)
        row = its.flows.row(0, named=True)
        total = {
            name: sum(step[4][name] for step in steps[1:])
            for name in ("acked_bytes", "lost_bytes", "timeouts")
        }
        assert total["acked_bytes"] == pytest.approx(row["bytes_delivered"], rel=0.01)
        assert total["lost_bytes"] == row["packets_retransmitted"] * steps[-1][4]["segment_bytes"]
        assert total["timeouts"] == row["timeouts"]
        assert steps[-1][4]["rtt_min_s"] == row["rtt_min_s"]


@pytest.mark.parametrize("cc", ["nada", "gcc", "scream"])
def test_a_calls_baseline_is_the_run_of_its_controller(cc: str) -> None:
    env = FlowEnv(CALL, "call", baseline=cc, step_s=0.1, reward="call", changes=BRIEF)
    steps = acted(env, -0.5, 3)
    # the scenario's own controller keeps its parameters, another has its defaults
    other = {} if cc == "nada" else {"flow.call.cc": cc, "flow.call.params": {}}
    its = paceline.run(CALL, seed=3, set=BRIEF | other)
    assert env.results().flows.equals(its.flows)
    acked = sum(step[4]["acked_bytes"] for step in steps[1:] if step[4]["time_s"] > 10)
    # what was under way at 10 s is acknowledged after it
    assert acked == pytest.approx(its.flows["bytes_delivered"][0], rel=0.05, abs=15_000)
    assert all(step[4]["encoder_bps"] > 0 for step in steps[1:])


def test_the_same_changes_give_a_baseline_the_runs_params() -> None:
    changes = BRIEF | {"flow.call.cc": "gcc", "flow.call.params": {"max_rate": 5e5}}
    env = FlowEnv(CALL, "call", baseline="gcc", step_s=0.1, changes=changes)
    acted(env, 0.0, 3)
    ours = env.results().flows
    assert ours.equals(paceline.run(CALL, seed=3, set=changes).flows)
    assert ours["send_rate_bps"][0] < 5.5e5


def test_own_controllers_are_baselines_too() -> None:
    twin = f"python:{EXAMPLES / 'controllers' / 'reno_twin.py'}:RenoTwin"
    env = FlowEnv(LOSSY, baseline=twin, changes=SHORT)
    its = [step[1] for step in acted(env, 0.0)[1:]]
    assert its == [step[1] for step in acted(FlowEnv(LOSSY, baseline="sack", changes=SHORT), 0.0)[1:]]
    mine = FlowEnv(
        LOSSY + '[flow.other]\ncc = "mine"\n',
        "agent",
        baseline="mine",
        changes=SHORT,
        schemes={"mine": Fixed},
    )
    assert acted(mine, 0.0)[-1][4]["window_segments"] == 60


def test_what_is_measured_is_there_once() -> None:
    env = FlowEnv(action="rate", changes=SHORT)
    env.reset(seed=1)
    with pytest.raises(ValueError, match="environment 0 has no results now"):
        env.results()
    acted(env, 5e6)
    assert env.results().flows["goodput_bps"][0] == pytest.approx(5e6, rel=0.05)
    with pytest.raises(ValueError, match=r"once, after a run.s last step and before the next reset"):
        env.results()
    many = FlowVectorEnv(2, action="rate", step_s=1.0, changes=SHORT)
    many.reset(seed=7)
    for _ in range(3):
        many.step(np.array([[3e6], [9e6]], dtype=np.float32))
    slow, fast = (many.results(place).flows["goodput_bps"][0] for place in range(2))
    assert slow < 4e6
    assert fast > 8e6


def test_the_agent_of_a_call_sets_its_rate() -> None:
    arguments: dict[str, Any] = {"action": "rate", "step_s": 0.1, "reward": "call", "changes": BRIEF}
    env = FlowEnv(CALL, "call", **arguments)
    steps = acted(env, 1.2e6, 4)
    assert json.dumps(steps) == json.dumps(acted(FlowEnv(CALL, "call", **arguments), 1.2e6, 4))
    row = env.results().flows.row(by_predicate=pl.col("flow") == "call", named=True)
    assert row["cc"] == "agent"
    assert row["send_rate_bps"] == pytest.approx(1.2e6, rel=0.03)
    assert row["frame_delay_mean_s"] < 0.2
    many = FlowVectorEnv(2, CALL, "call", workers=2, **arguments)
    many.reset(seed=[4, 5])
    for step in steps[1:50]:
        assert many.step(np.full((2, 1), 1.2e6, dtype=np.float32))[1][0] == step[1]


def test_calls_are_paid_for_rate_by_delay() -> None:
    def paid(rate: float) -> float:
        arguments: dict[str, Any] = {"scenario": CALL, "flow": "call", "changes": BRIEF, "step_s": 0.1}
        policy = lambda seen: np.full((len(seen), 1), rate)  # noqa: E731
        return returns(policy, seeds=[1, 2], action="rate", reward="call", **arguments).estimate.mean or 0.0

    assert paid(1.2e6) > max(paid(2e5), paid(2.5e6))


def test_a_former_name_warns() -> None:
    with pytest.warns(paceline.PacelineWarning, match=r"Told is paceline\.gym\.Features"):
        assert learning.Told is learning.Features
    with pytest.raises(AttributeError, match="no attribute 'Tolds'"):
        _ = learning.Tolds


def test_returns_hold_a_policy_against_a_baseline() -> None:
    arguments: dict[str, Any] = {"scenario": LOSSY, "changes": SHORT, "action": "rate"}

    def half(seen: Any) -> Any:
        return np.full((len(seen), 1), 6e6)

    ours, cubics = (
        returns(half, seeds=range(3), **arguments),
        returns(baseline="cubic", seeds=range(3), **arguments),
    )
    env = FlowEnv(LOSSY, action="rate", changes=SHORT)
    assert ours.each[2] == pytest.approx(sum(step[1] for step in acted(env, 6e6, 2)[1:]))
    assert cubics.each.keys() == {0, 1, 2}
    assert cubics.estimate.half_width is not None
    assert str(ours).count("±") == 1
    assert float(ours) == pytest.approx(sum(ours.each.values()) / 3)
    both: dict[str, Any] = {"policy": half, "baseline": "cubic"}
    for wrong in ({}, both):
        with pytest.raises(ValueError, match="give exactly one"):
            returns(**wrong)
