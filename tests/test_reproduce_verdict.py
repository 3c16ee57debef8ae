"""Verdicts and the expressions of claims: each kind can say agrees and differs; the edges lie where the rules say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline import models
from paceline.reproduce.expression import FUNCTIONS, RUNS_ABOVE, Array, Column, Expression, ExpressionError
from paceline.reproduce.verdict import ABOUT_SHARE, Kind, Outcome, Published, judge
from paceline.statistics import Estimate, estimate, t_quantile

finite = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e6)
width = st.floats(0, 1e3)


def ours(value: float, half_width: float) -> Estimate:
    return Estimate(10, value, half_width, half_width)


@given(finite, positive, width, st.sampled_from([1, -1]))
def test_a_number_agrees_with_its_whole_interval_and_differs_with_it(
    value: float, slack: float, half: float, side: int
) -> None:
    for published in (
        Published(Kind.PRINTED, value, 2 * slack),
        Published(Kind.WITHIN, value, margin=slack),
        Published(Kind.ABOUT, slack / ABOUT_SHARE * side),
    ):
        centre = published.value or 0.0
        tiny = 1e-3 + 1e-6 * (abs(centre) + slack + half)

        def found(off: float, at: float = centre, published: Published = published) -> Outcome:
            return judge(published, ours(at + side * off, half)).outcome

        assert found(slack + half + tiny) is Outcome.DIFFERS
        if half > tiny:
            assert found(slack + half - tiny) is Outcome.UNDECIDED, (
                "the half width alone covers the difference"
            )
        if slack > half + tiny:
            assert found(slack - half - tiny) is Outcome.AGREES
        if half > slack + tiny:
            assert found(0.0) is Outcome.UNDECIDED, "noise alone does not agree"


@given(st.floats(0, 3), st.floats(0.01, 1), st.integers(2, 40), st.integers(1, 40))
def test_more_runs_of_the_same_never_agree_less(off: float, sd: float, n: int, runs: int) -> None:
    """With the same mean and standard deviation: what agreed goes on to agree, what differed to differ."""
    published = Published(Kind.PRINTED, 10.0, 1.0, runs=runs)
    found = []
    for count in (max(n, runs), 4 * max(n, runs), 64 * max(n, runs)):
        half = t_quantile(0.95, count - 1) * sd / math.sqrt(count) if count > 1 else 1e9
        found.append(judge(published, Estimate(count, 10.0 + off, sd, half)).outcome)
    if found[0] is not Outcome.UNDECIDED:
        assert set(found[1:]) == {found[0]}, found


def test_the_papers_own_runs_are_allowed_for() -> None:
    # ours: 16 runs with a half width of 0.1; four scatter by 0.2, one by 0.4
    def found(off: float, runs: int | None) -> Outcome:
        return judge(Published(Kind.PRINTED, 3.0, 0.02, runs=runs), Estimate(16, 3.0 + off, 0.2, 0.1)).outcome

    assert found(0.15, None) is Outcome.DIFFERS
    assert found(0.05, None) is Outcome.UNDECIDED
    assert found(0.10, 4) is Outcome.AGREES
    assert found(0.15, 4) is Outcome.UNDECIDED
    assert found(0.35, 4) is Outcome.DIFFERS
    assert found(0.30, 1) is Outcome.AGREES
    wide = Estimate(16, 3.0, 0.8, 0.4)
    verdict = judge(Published(Kind.PRINTED, 3.0, 0.02, runs=4), wide)
    assert verdict.outcome is Outcome.UNDECIDED, (
        "four such runs scatter by 0.8: that the mean is 3 says little"
    )
    assert "4 runs as the paper's scatter, which is too much of 3 to agree by" in verdict.because
    assert judge(Published(Kind.ABOUT, 3.0, runs=4), Estimate(64, 3.0, 0.8, 0.2)).outcome is Outcome.AGREES
    assert judge(Published(Kind.PRINTED, 5.0, 0.02, runs=4), wide).outcome is Outcome.DIFFERS


@pytest.mark.parametrize(
    ("kind", "digit", "margin"),
    [(Kind.WITHIN, None, None), (Kind.WITHIN, None, 0.0), (Kind.WITHIN, 0.1, 0.1), (Kind.ABOUT, None, 0.1)],
)
def test_a_margin_goes_with_within(kind: Kind, digit: float | None, margin: float | None) -> None:
    with pytest.raises(ValueError, match=r"margin|last_digit"):
        Published(kind, 1.0, digit, None, margin)


@given(st.sampled_from([Kind.ORDERING, Kind.TREND]), st.sampled_from([1, -1]), positive, width)
def test_signs_need_an_interval_without_zero(kind: Kind, sign: int, value: float, half: float) -> None:
    published = Published(kind, sign=sign)
    agrees = value > half
    assert (judge(published, ours(sign * value, half)).outcome is Outcome.AGREES) == agrees
    assert (judge(published, ours(-sign * value, half)).outcome is Outcome.DIFFERS) == agrees
    zero = Outcome.UNDECIDED if half else Outcome.DIFFERS
    assert judge(published, ours(0.0, half)).outcome is zero


@pytest.mark.parametrize(
    "published",
    [Published(Kind.PRINTED, 8, 1), Published(Kind.ABOUT, 8), Published(Kind.ORDERING, sign=1)],
)
def test_without_a_number_nothing_is_said(published: Published) -> None:
    for missing in (None, Estimate(0, None, None, None)):
        assert judge(published, missing).outcome is Outcome.OPEN
    assert judge(published, Estimate(1, 8.0, None, None)).outcome is Outcome.UNDECIDED


def test_an_interval_with_zero_in_it_decides_no_order() -> None:
    order = Published(Kind.ORDERING, sign=1)
    for n in (2, 10, 40):
        assert judge(order, Estimate(n, 1.0, 2.0, 2.0)).outcome is Outcome.UNDECIDED
        assert judge(order, Estimate(n, -1.0, 2.0, 2.0)).outcome is Outcome.UNDECIDED
        assert judge(order, Estimate(n, -3.0, 2.0, 2.0)).outcome is Outcome.DIFFERS
        assert judge(order, Estimate(n, 3.0, 2.0, 2.0)).outcome is Outcome.AGREES
    # All runs alike say that there is no difference.
    assert judge(order, Estimate(3, 0.0, 0.0, 0.0)).outcome is Outcome.DIFFERS


def test_the_edge_itself_agrees() -> None:
    assert judge(Published(Kind.PRINTED, 0.5, 0.1), ours(0.55, 0.0)).outcome is Outcome.AGREES
    assert judge(Published(Kind.ABOUT, 8), ours(9.2, 0.0)).outcome is Outcome.AGREES


@pytest.mark.parametrize(
    ("kind", "value", "digit", "sign"),
    [
        (Kind.PRINTED, 8.0, None, None),
        (Kind.PRINTED, None, 1.0, None),
        (Kind.ABOUT, 0.0, None, None),
        (Kind.ABOUT, 8.0, 1.0, None),
        (Kind.ABOUT, 8.0, None, 1),
        (Kind.ORDERING, None, None, None),
        (Kind.TREND, 1.0, None, 1),
    ],
)
def test_what_cannot_be_judged_is_refused(
    kind: Kind, value: float | None, digit: float | None, sign: int | None
) -> None:
    with pytest.raises(ValueError, match=str(kind)):
        Published(kind, value, digit, sign)


class Runs:
    """A column of one series "a" with levels "l0", "l1", ...: a row of runs each."""

    def __init__(self, rows: list[list[float]]) -> None:
        self.rows = np.array(rows)

    def select(self, series: str, levels: str | tuple[str | None, str | None] | None, seeds: Array) -> Array:
        assert series == "a"
        means = np.asarray(self.rows[:, seeds > 0].mean(axis=1))
        if isinstance(levels, str):
            return np.asarray(means[int(levels[1:])])
        low, high = levels or (None, None)
        return means[int(low[1:]) if low else 0 : int(high[1:]) + 1 if high else None]


def names(rows: list[list[float]]) -> dict[str, Column | Array]:
    return {"late": Runs(rows), "x": np.arange(1.0, len(rows) + 1)}


runs = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@settings(deadline=None)  # the first call imports scipy
@given(runs)
def test_the_jackknife_of_a_mean_is_its_t_interval(values: list[float]) -> None:
    mine = Expression('late["a", "l0"]').estimate(names([values]), len(values))
    other = estimate(values)
    assert mine.mean == pytest.approx(other.mean, abs=1e-9)
    assert mine.half_width == pytest.approx(other.half_width, rel=1e-6, abs=1e-6)


@given(runs, st.floats(-100, 100))
def test_differences_are_paired(values: list[float], offset: float) -> None:
    """What all points of a seed have in common does not widen the interval of their difference."""
    rows = [[v + offset for v in values], values]
    found = Expression('late["a", "l0"] - late["a", "l1"]').estimate(names(rows), len(values))
    assert found.mean == pytest.approx(offset, abs=1e-6)
    assert found.half_width == pytest.approx(0, abs=1e-6)


def test_slopes_ranges_and_functions() -> None:
    rows = names([[1.0, 1.0], [3.0, 3.0], [5.0, 5.0]])
    seeds = np.ones(2)
    for text, value in {
        'slope(late["a"], x)': 2.0,
        'slope(late["a"], log2(x))': float(np.polyfit(np.log2([1, 2, 3]), [1, 3, 5], 1)[0]),
        'mean(late["a", "l1":"l2"])': 4.0,
        'most(late["a", :"l1"]) / least(late["a", "l1":])': 1.0,
        '-abs(late["a", "l0"] - 3) ** 2': -4.0,
    }.items():
        assert float(Expression(text).value(rows, seeds)) == pytest.approx(value, abs=1e-3)


def test_functions_of_values_that_may_be_missing() -> None:
    nan = math.nan
    rows: dict[str, Column | Array] = {
        "y": np.array([1.0, 2.0, 3.0, nan]),
        "low": np.array([0.5, 2.5, 3.0, 0.0]),
        "high": np.array([1.5, 3.5, nan, 9.0]),
    }
    seeds = np.ones(1)
    found = Expression("between(y, low, high)").value(rows, seeds)
    np.testing.assert_array_equal(found, [1, 0, nan, nan])
    np.testing.assert_array_equal(Expression("coalesce(y, 7)").value(rows, seeds), [1, 2, 3, 7])


def test_the_share_of_runs_in_which_one_is_above_the_other() -> None:
    rows = names([[3.0, 1.0, 5.0, 2.0], [2.0, 2.0, 2.0, 2.0]])
    found = Expression('runs_above(late["a", "l0"] - late["a", "l1"])').estimate(rows, 4)
    assert found.mean == 0.5  # 3 and 5 lie above 2; 2 does not
    indicator = estimate([1.0, 0.0, 1.0, 0.0])
    assert found.half_width == pytest.approx(indicator.half_width)
    with pytest.raises(ExpressionError, match="takes 1 argument, not 2"):
        Expression("runs_above(x, x)")


def test_models_in_expressions() -> None:
    p = np.array([0.001, 0.01, 0.0, math.nan])
    found = Expression("veno_rate(p, 0.2, 1 / 2, 0.8, 1000)").value({"p": p}, np.ones(1))
    np.testing.assert_allclose(found[:2], models.reno_approximate(p[:2], 0.2, rto_s=0.8))
    assert np.isnan(found[2:]).all()
    gamma = Expression("veno_gamma(0.2, 0.15, 40)").value({}, np.ones(1))
    assert float(gamma) == pytest.approx(0.5 + 0.3 * 3 * 0.2 / (0.05 * 40))
    assert math.isnan(float(Expression("veno_gamma(0.2, 0.3, 40)").value({}, np.ones(1))))


def test_crossing_of_a_noisy_fall() -> None:
    x = np.array([0.5, 0.8, 1.0, 1.2, 1.5, 2.0])
    late = np.array([90.0, 70.0, 75.0, 30.0, 5.0, 0.0])
    rows: dict[str, Column | Array] = {"y": late, "x": x}
    found = float(Expression("crossing(y, x, 10)").value(rows, np.ones(1)))
    assert 1.2 < found < 1.5
    assert math.isnan(float(Expression("crossing(y, x, 99)").value(rows, np.ones(1))))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        'late.x["a"]',
        'late["a"] < 1',
        "open(x)",
        "late[0]",
        'late["a", 1]',
        "[1]",
        "1 +",
        "True",
    ],
)
def test_nothing_but_arithmetic(text: str) -> None:
    with pytest.raises(ExpressionError):
        Expression(text)


@pytest.mark.parametrize("name", [*FUNCTIONS, RUNS_ABOVE])
def test_a_function_says_how_many_arguments_it_takes(name: str) -> None:
    with pytest.raises(ExpressionError, match=rf"{name}\(.+\) takes [1-5] arguments?, not 0"):
        Expression(f"{name}()")
    with pytest.raises(ExpressionError, match=r"takes [1-5] arguments?, not 6"):
        Expression(f"{name}(1, 2, 3, 4, 5, x)")
