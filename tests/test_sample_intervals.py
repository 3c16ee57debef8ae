"""What an interval rests on, and that it is what its sources say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.interval import share_interval
from paceline.statistics import estimate, t_quantile
from paceline.statistics.sample_intervals import Basis, Sample, fisher

SKEWED = (0.1, 0.2, 0.1, 0.4, 0.2, 0.1, 0.3, 0.2, 0.1, 6.0, 0.2, 0.5)
CALM = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)


@pytest.mark.parametrize(
    ("sample", "basis"),
    [
        (Sample(CALM[:4]), Basis.FEW),
        (Sample((2.0,) * 5), Basis.CERTAIN),
        (Sample((2.0,) * 5, steady=False), Basis.COUNTS),
        (Sample((2.0,) * 9 + (3.0,), steady=False), Basis.COUNTS),
        (Sample((2.0,) * 9 + (3.0,)), Basis.BOOTSTRAP),
        (Sample((2.0,) * 8 + (3.0,) * 4), Basis.BOOTSTRAP),
        (Sample(CALM), Basis.T),
        (Sample(CALM, steady=False), Basis.BOOTSTRAP),
        (Sample(CALM[:9], steady=False), Basis.T),
        (Sample(SKEWED), Basis.BOOTSTRAP),
        (Sample((0.0, 1.0) * 5, minimum=0.0, maximum=1.0, yes_no=True), Basis.COUNTS),
        (Sample((0.0, 1.0) * 5), Basis.T),
    ],
)
def test_measure_and_values_decide(sample: Sample, basis: Basis) -> None:
    assert sample.basis is basis


@given(st.lists(st.floats(-1e3, 1e3), min_size=20, max_size=40))
def test_by_t_it_is_the_estimates(values: list[float]) -> None:
    found = Sample(tuple(values))
    if found.basis is Basis.T:
        known = estimate(values)
        assert found.interval == pytest.approx((known.low, known.high), rel=1e-9, abs=1e-9)


def test_few_runs_take_more_confidence() -> None:
    for steady, confidence in ((True, 0.99), (False, 0.999)):
        sample = Sample((1.0, 2.0, 3.0, 4.0, 5.0), steady)
        half = t_quantile(confidence, 4) * sample.sd / math.sqrt(5)
        assert sample.interval == pytest.approx((3.0 - half, 3.0 + half))


def test_counts_reach_as_far_as_one_run_can() -> None:
    share = share_interval(1, 10)[1]
    sample = Sample((0.0,) * 9 + (30.0,), steady=False, minimum=0.0, maximum=100.0)
    assert sample.interval == pytest.approx((0.0, 100 * share))
    assert Sample((0.0,) * 10, steady=False).interval == (-math.inf, math.inf)
    assert Sample((0.0, 1.0) * 5, minimum=0.0, maximum=1.0, yes_no=True).interval == share_interval(5, 10)


def test_the_bootstraps_ends_follow_the_skew_and_are_the_same_each_time() -> None:
    sample = Sample(SKEWED, steady=False)
    assert sample.interval is not None
    low, high = sample.interval
    assert high - sample.mean > 2 * (sample.mean - low) > 0
    assert Sample(SKEWED, steady=False).interval == sample.interval
    mirrored = Sample(tuple(-value for value in SKEWED), steady=False).interval
    assert mirrored == pytest.approx((-high, -low))
    below, above = sample.of_others(5)
    assert above > -below > 0


def test_of_two_values_the_bootstrap_has_ends() -> None:
    sample = Sample((1.304,) * 3 + (1.308,) * 7)
    assert sample.basis is Basis.BOOTSTRAP
    assert sample.interval is not None
    low, high = sample.interval
    assert 1.29 < low < sample.mean < high < 1.32


def test_an_interval_ends_where_the_measure_does() -> None:
    found = Sample((0.0, 0.0, 1.0, 2.0, 4.0, 0.0, 1.0, 3.0, 0.0, 1.0), minimum=0.0, steady=False)
    assert found.interval is not None
    assert found.interval[0] >= 0


def test_welch_is_between_the_two() -> None:
    """By hand: 9 and 4 degrees, errors 0.1 and 0.2."""
    ours = Sample(tuple(np.linspace(-1, 1, 10)))
    a, b = 1.0**2 / 5, ours.sd**2 / 10
    degrees = (a + b) ** 2 / (a**2 / 4 + b**2 / 9)
    assert ours.of_others(5, 1.0)[1] == pytest.approx(t_quantile(0.95, degrees) * math.sqrt(a + b))


def test_fishers_test_is_that_of_tables() -> None:
    """The tea: of four cups that had milk first three or more found, of eight (Fisher 1935)."""
    assert fisher(3, 4, 1, 4) == pytest.approx(17 / 70)
    assert fisher(1, 10, 0, 10) == pytest.approx(0.5)
    assert fisher(1, 10, 0, 390) == pytest.approx(0.025)
