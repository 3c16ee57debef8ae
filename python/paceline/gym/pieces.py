"""Observations, actions and rewards: named pieces, each a function of a step's features.

A step's features are an array with a row per environment and a column per item of `FEATURES`; see `Features`. A piece
gives one number per environment. For your own, set `OBSERVATIONS["name"] = Observation(...)`, or pass the object
instead of a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline import _core

Array = NDArray[np.float64]
FEATURES: tuple[str, ...] = tuple(_core.features())
_PLACE = {name: place for place, name in enumerate(FEATURES)}


class Features:
    """The features of the last step and the one before: `features["rtt_s"]`, `features.before["rtt_s"]`, a number per
    environment.

    Units are in the names' suffixes: `time_s`, `duration_s` of the step, `acked_bytes`, `lost_bytes`, `sent_bytes`,
    `marked_segments`, `timeouts`, `rtt_s` (mean; NaN if nothing was acknowledged), `rtt_least_s`, `rtt_most_s`,
    `srtt_s`, `rtt_min_s` (minimum of the run), `in_flight_segments`, `window_segments`, `rate_bps`, `app_limited`,
    `segment_bytes`, `begun`.

    Over RTP they come from the receiver's feedback in the step, in payload: `rate_bps` is the encoder's target, on the
    wire; `window_segments` what pacing sends in a round trip; `timeouts` how often feedback was missing. Only calls
    have `one_way_queueing_s`, the mean one-way delay of arrived packets beyond the run's minimum (the two clocks need
    not agree), `sender_queue_s`, how long the sender's queue takes to leave, and `encoder_bps`, the encoder's rate
    with headers; the last two need an `encoder`.

    For a TCP baseline they are the sender's own counts, which know no more than in any run: `lost_bytes` is
    retransmitted data; `app_limited` is whether everything written had been sent at the step's end; `rtt_least_s` and
    `rtt_most_s` are known to 0.2 %; without SACK, data after a hole counts when the hole is filled.
    """

    def __init__(self, rows: Array, before: Array | None = None) -> None:
        self.rows = rows
        self._before = before

    def __getitem__(self, name: str) -> Array:
        column: Array = self.rows[:, _PLACE[name]]
        return column

    @property
    def before(self) -> Features:
        """The features of the previous step; at a run's first step the same as now."""
        return self if self._before is None else Features(self._before)

    @property
    def goodput_bps(self) -> Array:
        """Bits of payload a second that were acknowledged."""
        return _share(self["acked_bytes"] * 8, self["duration_s"])

    @property
    def sent_bps(self) -> Array:
        """Bits of payload a second that were sent."""
        return _share(self["sent_bytes"] * 8, self["duration_s"])

    @property
    def loss(self) -> Array:
        """Lost / (acknowledged + lost)."""
        return _share(self["lost_bytes"], self["acked_bytes"] + self["lost_bytes"])

    @property
    def rtt(self) -> Array:
        """The mean round-trip time in seconds; the smoothed one if nothing was acknowledged; 0 before any sample."""
        return np.nan_to_num(np.where(np.isnan(self["rtt_s"]), self["srtt_s"], self["rtt_s"]))

    @property
    def queueing_s(self) -> Array:
        """The round-trip time beyond the run's minimum; for a call the one-way delay's, if known."""
        there = self["one_way_queueing_s"]
        both = np.maximum(self.rtt - np.nan_to_num(self["rtt_min_s"]), 0.0)
        waited: Array = np.where(np.isnan(there), both, there)
        return waited

    @property
    def waiting_s(self) -> Array:
        """The queueing delay plus that at a call's sender."""
        return self.queueing_s + np.nan_to_num(self["sender_queue_s"])


def _share(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)


@dataclass(frozen=True)
class Observation:
    """An observation: a function of the features, its bounds, and a description."""

    of: Callable[[Features], Array]
    low: float
    high: float
    doc: str


def _gradient(features: Features) -> Array:
    return _share(features.rtt - features.before.rtt, features["duration_s"])


OBSERVATIONS: dict[str, Observation] = {
    "goodput": Observation(
        lambda features: features.goodput_bps / 1e7, 0.0, 1e4, "acknowledged, in 10 Mbit/s"
    ),
    "sent": Observation(lambda features: features.sent_bps / 1e7, 0.0, 1e4, "sent, in 10 Mbit/s"),
    "loss": Observation(
        lambda features: features.loss, 0.0, 1.0, "share lost of what was acknowledged or lost"
    ),
    "marks": Observation(
        lambda features: _share(
            features["marked_segments"] * features["segment_bytes"], features["acked_bytes"]
        ),
        0.0,
        1e3,
        "share marked of what was acknowledged",
    ),
    "rtt": Observation(lambda features: features.rtt, 0.0, 1e3, "mean round-trip time in seconds"),
    "rtt_ratio": Observation(
        lambda features: _share(features.rtt, np.nan_to_num(features["rtt_min_s"])),
        0.0,
        1e6,
        "mean round-trip time by the least",
    ),
    "queueing": Observation(
        lambda features: features.queueing_s, 0.0, 1e3, "round-trip time beyond the least, in seconds"
    ),
    "rtt_gradient": Observation(
        _gradient, -1e6, 1e6, "change of the mean round-trip time by the step's length"
    ),
    "send_ratio": Observation(
        lambda features: _share(features["sent_bytes"], features["acked_bytes"]),
        0.0,
        1e6,
        "bytes sent by bytes acknowledged",
    ),
    "window": Observation(
        lambda features: features["window_segments"] / 100, 0.0, 1e5, "window in 100 segments"
    ),
    "in_flight": Observation(
        lambda features: features["in_flight_segments"] / 100, 0.0, 1e6, "in flight, in 100 segments"
    ),
    "timeouts": Observation(lambda features: features["timeouts"], 0.0, 1e3, "retransmission timeouts"),
    "rate": Observation(
        lambda features: np.nan_to_num(features["rate_bps"], posinf=0.0) / 1e7,
        0.0,
        1e4,
        "the rate that is set, in 10 Mbit/s; 0: none is",
    ),
    "sender_queue": Observation(
        lambda features: np.nan_to_num(features["sender_queue_s"]),
        0.0,
        1e6,
        "of a call: what waits at its sender, in seconds",
    ),
}
"""The pieces of observations, by name."""

AURORA = ("rtt_gradient", "rtt_ratio", "send_ratio")
"""Aurora's observation of each of its last ten steps (Jay and others, ICML 2019)."""


@dataclass(frozen=True)
class Reward:
    """A reward for a step: a function of the features, and a description."""

    of: Callable[[Features], Array]
    doc: str


def _power(features: Features) -> Array:
    return np.log1p(features.goodput_bps / 1e6) - 0.5 * np.log1p(features.queueing_s / 0.01)


REWARDS: dict[str, Reward] = {
    "goodput": Reward(lambda features: features.goodput_bps / 1e7, "goodput in 10 Mbit/s"),
    "delay": Reward(lambda features: -features.queueing_s, "minus the queueing delay, in seconds"),
    "loss": Reward(lambda features: -features.loss, "minus the share that was lost"),
    "power": Reward(_power, "ln(1 + goodput in Mbit/s) - ln(1 + queueing delay in 10 ms) / 2"),
    "call": Reward(
        lambda features: (
            np.log1p(features.goodput_bps / 1e5) - 10 * np.minimum(features.waiting_s, 1) - 10 * features.loss
        ),
        "ln(1 + goodput in 100 kbit/s) - 10 queueing delay in s, the sender's too, 1 s at most - 10 loss",
    ),
    "aurora": Reward(
        lambda features: (
            10 * features.goodput_bps / (8 * features["segment_bytes"].clip(1))
            - 1000 * features.rtt
            - 2000 * features.loss
        ),
        "10 goodput in packets a second - 1000 round-trip time in s - 2000 loss (Jay and others, ICML 2019)",
    ),
}
"""The pieces of rewards, by name; several are summed with their weights: {"goodput": 1, "delay": 5}."""


@dataclass(frozen=True)
class Action:
    """An action: what the flow sets, the bounds of the agent's number, and its meaning."""

    acts: str
    """"window" or "rate"."""
    low: float
    high: float
    of: Callable[[Array, Features], Array]
    """The window in segments or the rate in bit/s that the action means."""
    doc: str


def _factor(action: Array, now: Array) -> Array:
    """Aurora's: multiplies by 1 + action/10, or divides by 1 - action/10 if negative."""
    step = 0.1 * action
    return np.where(action >= 0, now * (1 + step), now / (1 - step))


ACTIONS: dict[str, Action] = {
    "window": Action("window", 1.0, 1e5, lambda action, _: action, "a window in segments"),
    "rate": Action(
        "rate",
        1e4,
        1e10,
        lambda action, _: action,
        "a rate in bit/s: of payload, or of a call what its encoder aims at, with all headers",
    ),
    "window_factor": Action(
        "window",
        -1.0,
        1.0,
        lambda action, features: np.maximum(_factor(action, features["window_segments"]), 1.0),
        "the window times 1 + a / 10, or by 1 - a / 10 where a is negative",
    ),
    "rate_factor": Action(
        "rate",
        -1.0,
        1.0,
        lambda action, features: np.clip(_factor(action, features["rate_bps"]), 1e4, 1e10),
        "the rate likewise",
    ),
}
"""The actions, by name."""


def named(of: Any, known: Mapping[str, Any], what: str) -> Any:
    """A piece by name, or the piece itself. Raises ValueError."""
    if not isinstance(of, str):
        return of
    if of not in known:
        raise ValueError(f"there is no {what} {of!r}; there are {', '.join(known)}")
    return known[of]
