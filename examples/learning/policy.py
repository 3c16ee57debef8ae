"""A learned controller: a line through what the last intervals were like decides how the rate changes.

    cc = "python:examples/learning/policy.py:Learned"

Its weights lie beside it in policy.json; `train.py` makes them.
"""

import json
import math
from pathlib import Path

import paceline

OBSERVED = ("rtt_gradient", "rtt_ratio", "loss")
"""What it sees of each interval, by the names that `paceline.gym.OBSERVATIONS` has."""
HISTORY = 3
STEP_S = 0.03
WEIGHTS = len(OBSERVED) * HISTORY + 1

CENTRE = (0.0, 1.0, 0.0)
"""What the three are on an empty path."""


def decide(weights, seen):
    """From -1 to 1: how the rate changes, by what was seen of the last intervals, the oldest first."""
    total = weights[-1]
    for number, value in enumerate(seen):
        total += weights[number] * (value - CENTRE[number % len(CENTRE)])
    return math.tanh(total)


class Learned(paceline.WindowController):
    """A learned rate: a linear policy over the delay's gradient, the delay and the losses of three intervals"""

    source = "examples/learning"
    every = STEP_S
    needs = ("rate_leads",)
    gauges = {"rate": "bit/s", "action": ""}

    def __init__(self):
        self.weights = json.loads(Path(__file__).with_name("policy.json").read_text())["weights"]
        self.seen = [0.0] * len(OBSERVED) * HISTORY
        self.rate, self.action, self.last_rtt = 8e5, 0.0, None

    def on_begin(self, path):
        self.window, self.pacing_bps = 1e6, self.rate

    def on_interval(self, interval, path):
        rtt = path.srtt_s if interval.rtt_s is None else interval.rtt_s
        gradient = 0.0 if self.last_rtt is None else (rtt - self.last_rtt) / interval.duration_s
        ratio = rtt / path.min_rtt_s if path.min_rtt_s else 1.0
        self.last_rtt = rtt
        self.seen = [*self.seen[len(OBSERVED) :], gradient, ratio, interval.loss]
        self.action = decide(self.weights, self.seen)
        step = 0.1 * self.action
        self.rate = min(max(self.rate * (1 + step) if step >= 0 else self.rate / (1 - step), 1e5), 1e9)
        self.window, self.pacing_bps = 1e6, self.rate
