"""`paceline.statistics` against scipy, against worked values, and at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from paceline.statistics import (
    estimate,
    holm,
    jain,
    paired_difference,
    ratio_of_means,
    t_quantile,
    trend,
)

numbers = st.floats(-1e9, 1e9).map(lambda x: round(x, 3))
samples = st.lists(numbers, min_size=3, max_size=30)


def test_estimate_of_known_values() -> None:
    e = estimate([1.0, 2.0, 3.0, 4.0])
    assert (e.n, e.mean) == (4, 2.5)
    assert e.sd == pytest.approx(1.2909944487)
    # t(0.975, 3) = 3.182446
    assert e.half_width == pytest.approx(3.182446 * 1.2909944487 / 2, rel=1e-6)


def test_missing_values_are_left_out_and_counted() -> None:
    assert estimate([1.0, None, math.nan, 3.0]) == estimate([1.0, 3.0])
    none = estimate([None, math.nan])
    assert (none.n, none.mean, none.sd, none.low, none.excludes_zero()) == (0, None, None, None, False)


def test_one_value_has_a_mean_and_no_interval() -> None:
    e = estimate([5.0])
    assert (e.n, e.mean, e.sd, e.half_width, e.low, e.high) == (1, 5.0, None, None, None, None)


def test_infinity_is_refused() -> None:
    with pytest.raises(ValueError, match="infinite"):
        estimate([1.0, math.inf])


@given(numbers, st.integers(2, 20))
def test_equal_values_have_exactly_their_value(value: float, n: int) -> None:
    e = estimate([value] * n)
    assert (e.mean, e.sd, e.half_width) == (value, 0.0, 0.0)


@given(samples, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_interval_is_scipys(values: list[float], confidence: float) -> None:
    assume(np.std(values) > 1e-6 * (1 + abs(np.mean(values))))
    e = estimate(values, confidence)
    low, high = stats.t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert e.low == pytest.approx(low, rel=1e-6, abs=1e-6 * (high - low))
    assert e.high == pytest.approx(high, rel=1e-6, abs=1e-6 * (high - low))


@given(st.lists(st.tuples(numbers, numbers), min_size=3, max_size=30))
def test_paired_test_is_scipys(pairs: list[tuple[float, float]]) -> None:
    first, second = [p[0] for p in pairs], [p[1] for p in pairs]
    differences = np.subtract(second, first)
    assume(np.std(differences) > 1e-6 * (1 + abs(np.mean(differences))))
    d = paired_difference(first, second)
    assert d.p_value == pytest.approx(stats.ttest_rel(second, first).pvalue, rel=1e-5, abs=1e-12)
    assert d.estimate.mean == pytest.approx(np.mean(differences), rel=1e-9, abs=1e-6)


def test_paired_difference_drops_incomplete_pairs_whole() -> None:
    d = paired_difference([1.0, None, 3.0], [2.0, 100.0, 5.0])
    assert (d.estimate.n, d.first.mean, d.second.mean, d.estimate.mean) == (2, 2.0, 3.5, 1.5)


def test_paired_difference_without_variation() -> None:
    assert paired_difference([1, 2, 3], [2, 3, 4]).p_value == 0.0
    assert paired_difference([1, 2, 3], [1, 2, 3]).p_value == 1.0
    assert paired_difference([1], [2]).p_value is None
    with pytest.raises(ValueError, match="equal length"):
        paired_difference([1], [1, 2])


def test_holm_of_known_values() -> None:
    # Holm (1979) by hand: 0.01 * 4, 0.02 * 3, 0.03 * 2, 0.04 * 1, each at least the one before it.
    assert holm([0.04, 0.01, None, 0.03, 0.02]) == pytest.approx([0.06, 0.04, None, 0.06, 0.06])
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_raw_and_bonferroni(p_values: list[float]) -> None:
    for p, q in zip(p_values, holm(p_values), strict=True):
        assert q is not None
        assert p <= q <= min(1.0, p * len(p_values)) + 1e-12


def test_jain_at_its_ends() -> None:
    assert jain([3.0, 3.0, 3.0]) == pytest.approx(1.0)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([]) is None
    assert jain([0.0, 0.0]) is None
    assert jain([7.0]) == 1.0
    with pytest.raises(ValueError, match="negative"):
        jain([1.0, -1.0])


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50), st.floats(1e-3, 1e3))
def test_jain_lies_between_one_nth_and_one_and_has_no_scale(values: list[float], scale: float) -> None:
    assume(max(values) > 1e-3)
    index = jain(values)
    assert index is not None
    assert 1 / len(values) - 1e-12 <= index <= 1
    assert jain([v * scale for v in values]) == pytest.approx(index, rel=1e-6)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-100, 100)), min_size=4, max_size=30))
def test_trend_is_scipys(points: list[tuple[float, float]]) -> None:
    x, y = [round(p[0], 2) for p in points], [round(p[1], 2) for p in points]
    assume(np.std(x) > 0.1)
    t = trend(x, y)
    reference = stats.linregress(x, y)
    # Closer to a perfect line, scipy loses the residual to cancellation.
    assume(reference.stderr > 1e-5)
    assert t.slope == pytest.approx(reference.slope, rel=1e-6, abs=1e-9)
    assert t.intercept == pytest.approx(reference.intercept, rel=1e-6, abs=1e-6)
    assert t.half_width == pytest.approx(reference.stderr * t_quantile(0.95, len(x) - 2), rel=1e-5)
    assert t.p_value == pytest.approx(reference.pvalue, rel=1e-4, abs=1e-9)


def test_trend_says_its_sign_only_when_it_is_sure() -> None:
    assert trend([1, 2, 3, 4], [1.0, 2.1, 2.9, 4.0]).sign == 1
    assert trend([1, 2, 3, 4], [4.0, 2.9, 2.1, 1.0]).sign == -1
    assert trend([1, 2, 3, 4], [1.0, -1.0, 1.0, -1.0]).sign == 0


def test_trend_without_enough() -> None:
    assert trend([1, 1], [2, 3]).slope is None
    two = trend([1, 2], [2, 4])
    assert (two.slope, two.half_width, two.sign) == (2.0, None, 0)
    assert trend([1, None, 2], [2, 9, 4]).n == 2


@pytest.mark.parametrize(("confidence", "degrees"), [(0, 3), (1, 3), (0.95, 0)])
def test_t_quantile_refuses_what_has_none(confidence: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="must"):
        t_quantile(confidence, degrees)


def test_the_ends_of_fiellers_interval_are_where_the_paired_t_test_turns() -> None:
    rng = np.random.default_rng(3)
    first = rng.normal(5.0, 1.0, 12)
    second = 0.8 * first + rng.normal(0.0, 0.5, 12)
    r = ratio_of_means(first.tolist(), second.tolist())
    assert r.ratio == pytest.approx(second.mean() / first.mean())
    assert r.ratio is not None
    assert r.low is not None
    assert r.high is not None
    assert r.low < r.ratio < r.high
    for end in (r.low, r.high):
        assert stats.ttest_1samp(second - end * first, 0.0).pvalue == pytest.approx(0.05)


def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    held = 0
    for _ in range(2000):
        common = rng.normal(0.0, 0.3, 10)
        first = (1.0 + common + rng.normal(0.0, 0.2, 10)).tolist()
        second = (0.9 + common + rng.normal(0.0, 0.2, 10)).tolist()
        r = ratio_of_means(first, second)
        assert r.low is not None
        assert r.high is not None
        held += r.low <= 0.9 <= r.high
    # four standard deviations of a binomial of 2000 at 95 %: 39
    assert abs(held - 1900) < 39


def test_a_ratio_without_a_bound_says_so() -> None:
    assert ratio_of_means([1.0], [2.0]).ratio == 2.0
    assert ratio_of_means([1.0], [2.0]).low is None
    assert ratio_of_means([], []).ratio is None
    assert ratio_of_means([1.0, -1.0], [2.0, 3.0]).ratio is None
    noisy = ratio_of_means([1.0, -0.9, 1.1], [1.0, 2.0, 3.0])
    assert (noisy.low, noisy.high) == (None, None)
    exact = ratio_of_means([10.0, 11.0, None, 12.0], [20.0, 22.0, 5.0, 24.0])
    assert (exact.n, exact.ratio) == (3, 2.0)
    assert exact.low == pytest.approx(2.0)
    assert exact.high == pytest.approx(2.0)
