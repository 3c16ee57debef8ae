"""Any scenario as a Gymnasium environment, single or vectorised: the agent controls one flow."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import EzPickle
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from paceline import _core
from paceline.gym import checks, pieces
from paceline.gym.pieces import FEATURES, Action, Array, Features, Observation, Reward
from paceline.results.results import Results, RunRecord
from paceline.scenarios.scenario import ScenarioLike, Schemes, load

LINK = """
name = "link"
duration = "30 s"

[link.bottleneck]
rate = "12 Mbit/s"
delay = "15 ms"
queue = { kind = "droptail", limit = "50 packets" }

[flow.agent]
"""
"""The scenario of "paceline/Link-v0": one flow on 12 Mbit/s and 30 ms."""

_SEEDS = 2**62


class _Batch:
    """Some environments of one scenario, the base of both kinds of Gymnasium environment."""

    def __init__(
        self,
        many: int,
        scenario: ScenarioLike,
        flow: str | None,
        *,
        action: str | Action,
        observation: Sequence[str | Observation],
        history: int,
        reward: str | Reward | Mapping[str, float],
        step_s: float | None,
        step_segments: int | None,
        changes: Mapping[str, Any] | None,
        schemes: Schemes | None,
        baseline: str | None,
        workers: int,
    ) -> None:
        checks.whole("num_envs", many)
        checks.whole("history", history)
        checks.whole("workers", workers)
        if step_segments is None:
            checks.step_s(step_s)
        else:
            checks.whole("step_segments", step_segments)
        loaded = load(scenario, changes, schemes)
        names = loaded.flow_names()
        if flow is None:
            flow = "agent" if "agent" in names else names[0]
        self.action: Action = pieces.named(action, pieces.ACTIONS, "action")
        self._seen: list[Observation] = [
            pieces.named(one, pieces.OBSERVATIONS, "observation") for one in checks.pieces(observation)
        ]
        self._paid: list[tuple[Reward, float]] = [
            (pieces.named(one, pieces.REWARDS, "reward"), weight)
            for one, weight in checks.weights(reward).items()
        ]
        self._core = _core.Environments(
            loaded,
            flow,
            self.action.acts,
            many,
            step_s=step_s if step_segments is None else None,
            step_segments=step_segments,
            workers=workers,
            baseline=baseline,
        )
        self._baseline = baseline
        self._seeds = [0] * many
        self.many = many
        width = len(self._seen)
        self.rows = np.zeros((many, len(FEATURES)))
        self._before = np.zeros_like(self.rows)
        self._ends = np.zeros((many, 2), dtype=np.uint8)
        self._history = np.zeros((many, history, width), dtype=np.float32)
        low = np.tile(np.array([one.low for one in self._seen], dtype=np.float32), history)
        high = np.tile(np.array([one.high for one in self._seen], dtype=np.float32), history)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(
            np.float32(self.action.low), np.float32(self.action.high), (1,), dtype=np.float32
        )

    def reset(self, which: Sequence[int], seeds: Sequence[int]) -> None:
        """Begins runs in these environments with these seeds."""
        self._core.reset(list(which), list(seeds), self.rows)
        places = list(which)
        for place, seed in zip(which, seeds, strict=True):
            self._seeds[place] = seed
        self._before[places] = self.rows[places]
        self._history[places] = 0.0
        self._observe(places)

    def step(self, actions: ArrayLike | None, which: Sequence[int]) -> None:
        """Takes one step in each of these environments. Raises ValueError, before any step."""
        decisions = np.full(self.many, np.nan)
        places = list(which)
        if self._baseline is None:
            given = checks.numbers(actions, self.many, places)
            bounded = np.clip(given, self.action.low, self.action.high)
            meant = self.action.of(bounded, Features(self.rows))
            decisions[places] = checks.numbers(meant, self.many, places, "what the actions mean,")[places]
        else:
            decisions[places] = 0.0  # any number makes the core step; the baseline ignores it
        self._before[places] = self.rows[places]
        self._core.step(decisions, self.rows, self._ends)
        self._observe(places)

    def _observe(self, places: list[int]) -> None:
        features = Features(self.rows, self._before)
        now = np.stack([np.broadcast_to(one.of(features), (self.many,)) for one in self._seen], axis=-1)
        self._history[places, :-1] = self._history[places, 1:]
        bounds = [one.low for one in self._seen], [one.high for one in self._seen]
        self._history[places, -1] = np.clip(now[places], *bounds)

    def close(self) -> None:
        """Releases the environments and their threads; no step or reset may follow."""
        self._core.close()

    @property
    def observations(self) -> NDArray[np.float32]:
        """Each agent's observation: the oldest step of its history first."""
        return self._history.reshape(self.many, -1).copy()

    @property
    def rewards(self) -> Array:
        """Each environment's reward for the last step."""
        features = Features(self.rows, self._before)
        paid = np.zeros(self.many)
        for reward, weight in self._paid:
            paid += weight * reward.of(features)
        return paid

    @property
    def done(self) -> NDArray[np.bool_]:
        """Whether each flow has sent all its data."""
        return self._ends[:, 0].astype(bool)

    @property
    def over(self) -> NDArray[np.bool_]:
        """Whether each run has reached the scenario's end."""
        return self._ends[:, 1].astype(bool)

    def known_features(self, place: int) -> dict[str, float]:
        """The last step's features of one environment, as far as they are known."""
        features = zip(FEATURES, self.rows[place].tolist(), strict=True)
        return {name: value for name, value in features if not math.isnan(value)}

    def results(self, place: int) -> Results:
        """The results of a run that is over; this ends the run."""
        summary = self._core.summary_json(place)
        if summary is None:
            raise ValueError(
                f"environment {place} has no results now: read them once, after a run's last step and before the next "
                "reset"
            )
        return Results([RunRecord(self._seeds[place], json.loads(summary))], {})


class FlowEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]], EzPickle):
    """One environment: `gymnasium.make("paceline/Scenario-v0", scenario="x.toml", flow="mine")`.

    The agent replaces the flow's own controller, and decides every `step_s` seconds, or every `step_segments`
    acknowledged segments. `action`, `observation` and `reward` name pieces of `paceline.gym.pieces`; an observation
    covers the last `history` steps. A run is truncated at the scenario's end, and terminated when the flow has sent
    all its data. `info` has the step's features. The same seed gives the same bits.

    A flow over RTP, and any `encoder`, is a call: the agent sets its encoder's target rate (`action` "rate" or
    "rate_factor").

    With a `baseline`, the name of a controller, that one drives the flow and actions have no effect: observations,
    rewards and `info` are computed as for an agent. The flow's `params` apply if its `cc`, after `changes`, is the
    baseline; otherwise defaults do. Each bit equals `paceline.run` with the same `cc` and `params`.

    A copied or unpickled environment has the same arguments and must be reset first.

    Raises ScenarioError, ValueError.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        scenario: ScenarioLike = LINK,
        flow: str | None = None,
        *,
        action: str | Action = "rate_factor",
        observation: Sequence[str | Observation] = pieces.AURORA,
        history: int = 10,
        reward: str | Reward | Mapping[str, float] = "power",
        step_s: float = 0.03,
        step_segments: int | None = None,
        changes: Mapping[str, Any] | None = None,
        schemes: Schemes | None = None,
        baseline: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode = render_mode
        arguments: dict[str, Any] = {
            "action": action,
            "observation": observation,
            "history": history,
            "reward": reward,
            "step_s": step_s,
            "step_segments": step_segments,
            "changes": changes,
            "schemes": schemes,
            "baseline": baseline,
        }
        EzPickle.__init__(self, scenario, flow, **arguments, render_mode=render_mode)
        self._batch = _Batch(1, scenario, flow, **arguments, workers=1)
        self.observation_space = self._batch.observation_space
        self.action_space = self._batch.action_space
        self._ended = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a run with random draws of `seed`, or of a seed from the environment's generator, which is initialised
        by the last seed given. Raises ValueError, ControllerError."""
        checks.no_options(options)
        given = None if seed is None else checks.seed(seed)
        super().reset(seed=given)
        own = int(self.np_random.integers(_SEEDS)) if given is None else given
        self._batch.reset([0], [own])
        self._ended = False
        return self._batch.observations[0], self._batch.known_features(0)

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Takes one step. Raises ValueError, also after the run's end; ControllerError."""
        if self._ended:
            raise ValueError("the run of environment 0 has ended: reset it first")
        batch = self._batch
        batch.step(action, [0])
        terminated, truncated = bool(batch.done[0]), bool(batch.over[0])
        self._ended = terminated or truncated
        return batch.observations[0], float(batch.rewards[0]), terminated, truncated, batch.known_features(0)

    def results(self) -> Results:
        """The results of a finished run, of all its flows, as `paceline.run` returns them (unless the scenario ends
        with a flow). They can be read once, between the last step and the next reset. If the agent's flow is done, the
        other flows first run to the scenario's end. Raises ValueError, ControllerError."""
        return self._batch.results(0)


class FlowVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.float32], Any], EzPickle):
    """Many environments at once, stepped by `workers` threads without the interpreter lock; other arguments as in
    `FlowEnv`. Each thread keeps its environments until `close`, and sleeps between steps; results do not depend on
    `workers`. A forked process does not have the threads: make the environments there.

    `gymnasium.make_vec("paceline/Scenario-v0", num_envs=64, ...)`. An environment that has ended restarts at the next
    step, with its next seed; that step's action has no effect (Gymnasium's next-step autoreset).
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012 (Gymnasium's)

    def __init__(
        self,
        num_envs: int = 1,
        scenario: ScenarioLike = LINK,
        flow: str | None = None,
        *,
        action: str | Action = "rate_factor",
        observation: Sequence[str | Observation] = pieces.AURORA,
        history: int = 10,
        reward: str | Reward | Mapping[str, float] = "power",
        step_s: float = 0.03,
        step_segments: int | None = None,
        changes: Mapping[str, Any] | None = None,
        schemes: Schemes | None = None,
        baseline: str | None = None,
        workers: int = 1,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = num_envs
        self.render_mode = render_mode
        arguments: dict[str, Any] = {
            "action": action,
            "observation": observation,
            "history": history,
            "reward": reward,
            "step_s": step_s,
            "step_segments": step_segments,
            "changes": changes,
            "schemes": schemes,
            "baseline": baseline,
            "workers": workers,
        }
        EzPickle.__init__(self, num_envs, scenario, flow, **arguments, render_mode=render_mode)
        self._batch = _Batch(num_envs, scenario, flow, **arguments)
        self.single_observation_space = self._batch.observation_space
        self.single_action_space = self._batch.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._generators: list[np.random.Generator] = []
        self._ended = np.zeros(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a run in each environment: with seeds seed, seed + 1, ..., or those of a list; without one, with a
        seed from the environment's own generator, which is initialised by the last seed given to it. So each
        environment has the runs of a `FlowEnv` with its seed. Raises ValueError, ControllerError."""
        checks.no_options(options)
        given = checks.seeds(seed, self.num_envs)
        # Gymnasium's own generator takes one number; it seeds environments that never had a seed.
        super().reset(seed=given[0] if isinstance(seed, (int, np.integer)) else None)
        if not self._generators:
            drawn = self.np_random.integers(_SEEDS, size=self.num_envs)
            self._generators = [np.random.default_rng(int(one)) for one in drawn]
        for place, one in enumerate(given):
            if one is not None:
                self._generators[place] = np.random.default_rng(one)
        firsts = [self._drawn(place) if one is None else one for place, one in enumerate(given)]
        self._batch.reset(range(self.num_envs), firsts)
        self._ended[:] = False
        return self._batch.observations, self._infos()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Takes one step in each environment. Raises ValueError, ControllerError."""
        ended = self._ended.copy()
        going = np.flatnonzero(~ended)
        self._batch.step(actions, going.tolist())
        restarted = np.flatnonzero(ended)
        if len(restarted):
            self._batch.reset(restarted.tolist(), [self._drawn(n) for n in restarted.tolist()])
        rewards = np.where(ended, 0.0, self._batch.rewards)
        terminated = self._batch.done & ~ended
        truncated = self._batch.over & ~ended
        self._ended = terminated | truncated
        return self._batch.observations, rewards, terminated, truncated, self._infos()

    def results(self, place: int) -> Results:
        """The results of this environment's run that has just ended, as `FlowEnv.results`. Raises ValueError,
        ControllerError."""
        return self._batch.results(place)

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads; otherwise they end when the environment is no longer referenced."""
        if hasattr(self, "_batch"):  # Gymnasium closes what could not be made, too
            self._batch.close()

    def _drawn(self, place: int) -> int:
        return int(self._generators[place].integers(_SEEDS))

    def _infos(self) -> dict[str, Any]:
        return {"told": self._batch.rows.copy()}
