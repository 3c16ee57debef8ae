"""Verdicts of suites: what lies within a threshold, beyond it, and on both sides."""

from __future__ import annotations

import math

import pytest

from paceline.statistics import Estimate
from paceline.suite.verdict import Outcome, Rule, Threshold, judge, together

MOST_5, LEAST_5, FROM_4_TO_6 = Threshold(most=5), Threshold(least=5), Threshold(4, 6)


@pytest.mark.parametrize(
    ("threshold", "mean", "half", "outcome"),
    [
        (MOST_5, 4.0, 0.9, Outcome.PASS),
        (MOST_5, 4.0, 1.1, Outcome.UNDECIDED),
        (MOST_5, 5.5, 0.6, Outcome.UNDECIDED),
        (MOST_5, 6.0, 0.9, Outcome.FAIL),
        (MOST_5, 5.0, 0.0, Outcome.PASS),
        (MOST_5, 0.1 + 0.2 + 4.7, 0.0, Outcome.PASS),
        (MOST_5, 5.001, 0.0, Outcome.FAIL),
        (LEAST_5, 6.0, 0.9, Outcome.PASS),
        (LEAST_5, 6.0, 1.1, Outcome.UNDECIDED),
        (LEAST_5, 4.0, 0.9, Outcome.FAIL),
        (LEAST_5, 5.0, 0.0, Outcome.PASS),
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
    assert judge(threshold, Estimate(5, mean, half, half), [mean] * 5).outcome is outcome


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
    assert judge(Threshold(most=5, rule=Rule.WORST), Estimate(3, 1.0, 0.1, 0.1), each).outcome is outcome


@pytest.mark.parametrize(
    ("ours", "says"),
    [
        (None, "not run"),
        (Estimate(0, None, None, None), "no value"),
        (Estimate(1, 3.0, None, None), "at least two runs"),
        (Estimate(5, 3.0, None, None), "without one of the runs"),
    ],
)
def test_what_is_not_known_is_undecided_and_says_why(ours: Estimate | None, says: str) -> None:
    verdict = judge(MOST_5, ours, [])
    assert verdict.outcome is Outcome.UNDECIDED
    assert says in verdict.because


def test_a_number_without_a_threshold_is_not_judged_but_a_missing_one_is_undecided() -> None:
    assert judge(None, Estimate(5, 3.0, 1.0, 1.0), [3.0] * 5).outcome is Outcome.NUMBER
    assert judge(None, None, []).outcome is Outcome.UNDECIDED


def test_a_case_is_what_the_worst_of_its_checks_is() -> None:
    passes, fails, open_, number = Outcome.PASS, Outcome.FAIL, Outcome.UNDECIDED, Outcome.NUMBER
    assert together([passes, fails, open_, number]) is fails
    assert together([passes, open_, number]) is open_
    assert together([number, passes]) is passes
    assert together([number]) is number
