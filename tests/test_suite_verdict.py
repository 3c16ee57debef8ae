"""Verdicts of suites: what lies within a threshold, beyond it, and on both sides."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from paceline.interval import share_interval
from paceline.statistics import t_quantile
from paceline.statistics.sample_intervals import Sample
from paceline.suite.verdict import Outcome, Rule, Threshold, Verdict, judge, together


def ours(mean: float, half: float, n: int = 10) -> Sample:
    """A symmetric sample whose interval is mean +- half."""
    z = np.linspace(-1, 1, n)
    sd = half * math.sqrt(n) / t_quantile(0.95, n - 1)
    return Sample(tuple((mean + sd * z / z.std(ddof=1)).tolist()))


MAX_5, MIN_5, FROM_4_TO_6 = Threshold(most=5), Threshold(least=5), Threshold(4, 6)


@pytest.mark.parametrize(
    ("threshold", "mean", "half", "outcome"),
    [
        (MAX_5, 4.0, 0.9, Outcome.PASS),
        (MAX_5, 4.0, 1.1, Outcome.UNDECIDED),
        (MAX_5, 5.5, 0.6, Outcome.UNDECIDED),
        (MAX_5, 6.0, 0.9, Outcome.FAIL),
        (MAX_5, 5.0, 0.0, Outcome.PASS),
        (MAX_5, 0.1 + 0.2 + 4.7, 0.0, Outcome.PASS),
        (MAX_5, 5.001, 0.0, Outcome.FAIL),
        (MIN_5, 6.0, 0.9, Outcome.PASS),
        (MIN_5, 6.0, 1.1, Outcome.UNDECIDED),
        (MIN_5, 4.0, 0.9, Outcome.FAIL),
        (MIN_5, 5.0, 0.0, Outcome.PASS),
        (FROM_4_TO_6, 5.0, 0.9, Outcome.PASS),
        (FROM_4_TO_6, 5.0, 1.1, Outcome.UNDECIDED),
        (FROM_4_TO_6, 7.0, 0.9, Outcome.FAIL),
        (FROM_4_TO_6, 3.0, 0.9, Outcome.FAIL),
        (FROM_4_TO_6, 3.0, 1.1, Outcome.UNDECIDED),
        (Threshold(0, 0), 0.0, 0.0, Outcome.PASS),
        (Threshold(0, 0), 1e-12, 0.0, Outcome.FAIL),
    ],
)
def test_the_whole_interval_decides(threshold: Threshold, mean: float, half: float, outcome: Outcome) -> None:
    assert judge(threshold, ours(mean, half)).outcome is outcome


@pytest.mark.parametrize(
    ("each", "outcome"),
    [
        ([4.0, 4.9, 1.0], Outcome.PASS),
        ([4.0, 5.1, 1.0], Outcome.FAIL),
        ([4.0, math.nan, 1.0], Outcome.UNDECIDED),
        ([6.0, math.nan, 1.0], Outcome.FAIL),
        ([4.0], Outcome.PASS),
    ],
)
def test_the_worst_of_the_runs_decides_where_that_is_the_rule(each: list[float], outcome: Outcome) -> None:
    # The interval alone would pass.
    assert (
        judge(Threshold(most=5, rule=Rule.WORST), replace(ours(1.0, 0.1), own=tuple(each))).outcome is outcome
    )


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (None, "not run"),
        (Sample(()), "no value"),
        (Sample((3.0,)), "1 run: it takes 5"),
        (ours(3.0, 0.1, 4), "4 runs: it takes 5"),
        (Sample((3.0,), lacking=True), "it has no value without one of the runs"),
    ],
)
def test_what_is_not_known_is_undecided_and_says_why(found: Sample | None, says: str) -> None:
    verdict = judge(MAX_5, found)
    assert verdict.outcome is Outcome.UNDECIDED
    assert says in verdict.because


def test_a_number_without_a_threshold_is_not_judged_but_a_missing_one_is_undecided() -> None:
    assert judge(None, ours(3.0, 1.0)).outcome is Outcome.NUMBER
    assert judge(None, None).outcome is Outcome.UNDECIDED


def test_where_runs_are_alike_each_of_them_counts() -> None:
    """The mean of rare events has no interval in few runs: what is known is of the runs."""
    none = Sample((0.0,) * 10, steady=False, minimum=0.0)
    found = judge(MAX_5, none)
    assert found.outcome is Outcome.PASS
    assert found.because == "each of 10 runs is at most 5; at most 31 % of all are not"
    assert round(100 * share_interval(0, 10)[1]) == 31
    one = Sample((0.0,) * 9 + (6.0,), steady=False, minimum=0.0)
    assert judge(MAX_5, one).outcome is Outcome.UNDECIDED
    bounded = Sample((0.0,) * 200, steady=False, minimum=0.0, maximum=100.0)
    assert judge(Threshold(least=5), bounded).outcome is Outcome.FAIL


def test_of_what_rare_runs_make_each_of_few_runs_counts() -> None:
    """Ten runs that lack the rare one look as good as any: a pass says what they leave open."""

    def found(mean: float, half: float, n: int = 10, bulge: float = 0.0) -> Verdict:
        values = list(ours(mean, half, n).values)
        return judge(MAX_5, Sample((*values[:-1], values[-1] + bulge), steady=False))

    passes = found(4.0, 0.2)
    assert passes.outcome is Outcome.PASS
    assert passes.because == "each of 10 runs is at most 5; at most 31 % of all are not"
    mixed = found(4.0, 0.2, bulge=1.0)
    assert mixed.outcome is Outcome.UNDECIDED
    assert mixed.because == "9 of 10 runs are at most 5; a few rare runs make it, and it takes 40"
    assert found(6.0, 0.2).outcome is Outcome.FAIL
    assert found(6.0, 0.2, bulge=-1.6).outcome is Outcome.UNDECIDED
    assert found(4.0, 0.2, 40, bulge=1.5).outcome is Outcome.PASS


@pytest.mark.parametrize("runs", [5, 10, 20])
def test_what_lies_at_its_threshold_is_seldom_judged(runs: int) -> None:
    """And what lies 10 % beside it, at a scatter of 10 %, rightly."""
    random, trials = np.random.default_rng(runs), 400
    for mean, wrong in ((5.0, (Outcome.PASS, Outcome.FAIL)), (4.5, (Outcome.FAIL,)), (5.5, (Outcome.PASS,))):
        outcomes = []
        for _ in range(trials):
            values = tuple(random.normal(mean, 0.5, runs).tolist())
            outcomes.append(judge(MAX_5, Sample(values)).outcome)
        assert sum(outcome in wrong for outcome in outcomes) / trials <= 0.05 + 0.03, (mean, runs)
        right = sum(outcome in (Outcome.PASS, Outcome.FAIL) for outcome in outcomes) / trials
        if mean != 5.0:
            assert right >= {5: 0.04, 10: 0.5, 20: 0.9}[runs], (mean, right)


def test_a_case_is_what_the_worst_of_its_checks_is() -> None:
    passes, fails, open_, number = Outcome.PASS, Outcome.FAIL, Outcome.UNDECIDED, Outcome.NUMBER
    assert together([passes, fails, open_, number]) is fails
    assert together([passes, open_, number]) is open_
    assert together([number, passes]) is passes
    assert together([number]) is number
