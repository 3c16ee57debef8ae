"""The score of a run, and the ranking: paired tests, and ranks with intervals.

A run's score is log2(share) - weight log2(delay). Winstein and Balakrishnan (*TCP ex Machina*, SIGCOMM 2013, section 3)
have an objective of this form, log throughput - delta log delay. One more is twice the rate, or half the delay. The
confidence sets of ranks are those of Mogstad, Romano, Shaikh and Wilhelm (*Inference for Ranks*, Review of Economic
Studies 91, 2024), from simultaneous paired tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.statistics import CONFIDENCE, Difference, Estimate, estimate, holm, paired_difference
from paceline.statistics.sample_intervals import MIN_RUNS

MIN_SHARE = 1e-3
"""The minimum share: smaller ones count as this, to keep the logarithm finite."""


def score(share: float, delay_ratio: float, weight: float) -> float:
    """The score of a share of the fair rate (capped at 1) and a delay over the least possible one (at least 1)."""
    return math.log2(max(min(share, 1.0), MIN_SHARE)) - weight * math.log2(max(delay_ratio, 1.0))


@dataclass(frozen=True)
class Standing:
    """The rank of a scheme among others."""

    scheme: str
    score: Estimate
    best: int
    """The best rank that is not excluded."""
    worst: int
    """The worst rank that is not excluded."""
    wins: float
    """The share of the rounds in which it has the greatest score (ties are divided)."""
    behind: Difference | None
    """The leader's score minus its own, round by round; None for the leader."""
    p: float | None
    """p of the test that this is zero, after Holm's correction for all pairs of schemes."""

    @property
    def rank(self) -> str:
        """ "1", or "2 to 4"."""
        return str(self.best) if self.best == self.worst else f"{self.best} to {self.worst}"


def standings(scores: Mapping[str, Sequence[float]], confidence: float = CONFIDENCE) -> list[Standing]:
    """The schemes by mean score, the greatest first. `scores` has a value per round for each scheme, in the same order
    of rounds.

    A scheme's rank lies between 1 + the number of schemes significantly ahead of it, and the number of schemes minus
    those significantly behind. All these sets hold together with `confidence`, as far as paired t tests with Holm's
    correction do. Below `MIN_RUNS` rounds no difference is significant. Schemes with identical scores are tested
    once: a copy of a scheme widens other ranks only by its own place.
    """
    means = {name: estimate(values, confidence) for name, values in scores.items()}
    order = sorted(scores, key=lambda name: -(means[name].mean or -math.inf))
    alike = {name: next(one for one in order if list(scores[one]) == list(scores[name])) for name in order}
    pairs = list(itertools.combinations(order, 2))
    between = {(a, b): paired_difference(scores[b], scores[a], confidence) for a, b in pairs}
    tests = {(a, b): between[a, b].p_value for a, b in pairs if alike[a] == a and alike[b] == b}
    if min(map(len, scores.values()), default=0) < MIN_RUNS:
        tests = dict.fromkeys(tests)
    of_pairs = dict(zip(tests, holm(list(tests.values())), strict=True))
    adjusted = {(a, b): of_pairs.get((alike[a], alike[b])) for a, b in pairs}
    # In order of means, only the first of a pair can be ahead.
    shown = {pair for pair, p in adjusted.items() if p is not None and p < 1 - confidence}
    won = _wins(scores)
    return [
        Standing(
            scheme=name,
            score=means[name],
            best=1 + sum(pair[1] == name for pair in shown),
            worst=len(order) - sum(pair[0] == name for pair in shown),
            wins=won[name],
            behind=between.get((order[0], name)),
            p=adjusted.get((order[0], name)),
        )
        for name in order
    ]


def _wins(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    names, won = list(scores), dict.fromkeys(scores, 0.0)
    rounds = list(zip(*scores.values(), strict=True))
    for values in rounds:
        first = [name for name, value in zip(names, values, strict=True) if value == max(values)]
        for name in first:
            won[name] += 1 / len(first) / len(rounds)
    return won
