"""Verdicts and the expressions of claims: each kind can say agrees, off and contradicts; the edges lie where the
rules say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline import models
from paceline.statistics import estimate, t_quantile
from paceline.statistics.sample_intervals import Sample
from paceline.studies.expression import FUNCTIONS, RUNS_ABOVE, Array, Column, Expression, ExpressionError
from paceline.studies.metric import Metric
from paceline.studies.sample import sample
from paceline.studies.verdict import ABOUT_SHARE, Kind, Outcome, Published, judge

finite = st.floats(-1e6, 1e6)
positive = st.floats(1e-3, 1e6)


def ours(mean: float, sd: float, n: int = 10, **known: bool | float) -> Sample:
    """A symmetric sample with this mean and standard deviation."""
    z = np.array([NormalDist().inv_cdf((i + 0.5) / n) for i in range(n)])
    values = mean + sd * z / z.std(ddof=1)
    return Sample(tuple(values.tolist()), **known)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Constant:
    """A metric with the same value in every run."""

    value: float

    def select(self, series: str, levels: str | tuple[str | None, str | None] | None, seeds: Array) -> Array:
        return np.asarray(self.value)


def half_of(sample: Sample) -> float:
    assert sample.interval is not None
    return (sample.interval[1] - sample.interval[0]) / 2


@given(finite, positive, st.floats(0, 1e3), st.sampled_from([1, -1]))
def test_a_number_agrees_with_its_whole_interval_and_is_off_with_it(
    value: float, slack: float, sd: float, side: int
) -> None:
    for published in (
        Published(Kind.PRINTED, value, 2 * slack),
        Published(Kind.WITHIN, value, margin=slack),
        Published(Kind.SAME, value, margin=slack),
        Published(Kind.ABOUT, slack / ABOUT_SHARE * side),
    ):
        centre = published.value or 0.0
        tiny = 1e-3 + 1e-6 * (abs(centre) + slack + sd)
        half = half_of(ours(0.0, sd))

        def found(away: float, at: float = centre, published: Published = published) -> Outcome:
            return judge(published, ours(at + side * away, sd)).outcome

        assert found(slack + half + tiny) in (Outcome.OFF, Outcome.CONTRADICTS)
        if half > tiny:
            assert found(slack + half - tiny) is Outcome.UNDECIDED, (
                "the half width alone covers the difference"
            )
        if slack > half + tiny:
            assert found(slack - half - tiny) is Outcome.AGREES
        if half > slack + tiny:
            assert found(0.0) is Outcome.UNDECIDED, "noise alone does not agree"


@given(st.floats(0, 3), st.floats(0.01, 1), st.integers(5, 40), st.integers(1, 40))
def test_more_runs_of_the_same_never_agree_less(off: float, sd: float, n: int, runs: int) -> None:
    """With the same mean and standard deviation: what agreed goes on to agree, what was off to be off."""
    published = Published(Kind.PRINTED, 10.0, 1.0, runs=runs)
    found = [judge(published, ours(10.0 + off, sd, count)).outcome for count in (n, 4 * n, 64 * n)]
    decided = [outcome for outcome in found if outcome is not Outcome.UNDECIDED]
    assert found == [Outcome.UNDECIDED] * (3 - len(decided)) + decided
    assert len(set(decided)) <= 1 or (decided[0] is Outcome.OFF and _near(published, off, sd, n)), found


def _near(published: Published, off: float, sd: float, n: int) -> bool:
    """Whether what is off by few runs lies within what more allow, since the quantile of t falls."""
    assert published.runs is not None
    return off <= 0.5 + t_quantile(0.99, n - 1) * sd / math.sqrt(published.runs)


def test_the_papers_own_runs_are_allowed_for() -> None:
    def found(off: float, runs: int | None, sd: float | None = None) -> Outcome:
        return judge(Published(Kind.PRINTED, 3.0, 0.02, runs=runs, sd=sd), ours(3.0 + off, 0.2, 16)).outcome

    # the half width is 0.107; one run scatters by 0.426, four by 0.213
    assert found(0.15, None) is Outcome.OFF
    assert found(0.05, None) is Outcome.UNDECIDED
    assert found(0.10, 4) is Outcome.AGREES
    assert found(0.15, 4) is Outcome.UNDECIDED
    assert found(0.35, 4) is Outcome.OFF
    assert found(0.30, 1) is Outcome.AGREES
    # the paper shows that its runs scatter by less, or by more
    assert found(0.10, 4, 0.02) is Outcome.UNDECIDED
    assert found(0.20, 4, 0.02) is Outcome.OFF
    assert found(0.35, 4, 0.8) is Outcome.AGREES


def test_a_papers_own_scatter_that_hides_a_factor_is_shown() -> None:
    verdict = judge(Published(Kind.PRINTED, 3.0, 0.02, runs=4), ours(3.0, 0.8, 64))
    assert verdict.outcome is Outcome.AGREES
    assert "(the paper's scatter: ± 27 %)" in verdict.because
    assert "scatter" not in judge(Published(Kind.PRINTED, 3.0, 0.02), ours(3.0, 0.8, 64)).because


NONE_OF_TEN = Sample((0.0,) * 10, steady=False, minimum=0.0, maximum=100.0)


@pytest.mark.parametrize("published", [8.0, 4.0, 10.0])
def test_none_in_ten_runs_is_no_certainty(published: float) -> None:
    """One run in the paper's ten, against none in our ten: Fisher's exact p is 1."""
    found = judge(Published(Kind.PRINTED, published, 1.0, runs=10), NONE_OF_TEN)
    assert found.outcome is Outcome.UNDECIDED
    assert "0 of 10 runs have another value than 0" in found.because


def test_counts_decide_where_they_can() -> None:
    def none_of(n: int) -> Sample:
        return Sample((0.0,) * n, steady=False, minimum=0.0, maximum=100.0)

    one = Published(Kind.PRINTED, 8.0, 1.0, runs=10)
    assert judge(one, none_of(100)).outcome is Outcome.UNDECIDED
    assert judge(one, none_of(400)).outcome is Outcome.OFF
    # nine runs of ten at least, for a share is 100 % at most
    assert judge(Published(Kind.PRINTED, 93.0, 1.0, runs=10), NONE_OF_TEN).outcome is Outcome.OFF
    # none in the paper's ten, and none or some of ours
    none = Published(Kind.PRINTED, 0.0, 1.0, runs=10)
    assert judge(none, NONE_OF_TEN).outcome is Outcome.UNDECIDED
    assert judge(none, none_of(40)).outcome is Outcome.AGREES
    some = Sample((26.0, 0.0) + (0.0,) * 38, steady=False, minimum=0.0, maximum=100.0)
    assert judge(none, some).outcome is Outcome.AGREES
    # without a number of runs the paper's zero is one, and takes many of ours
    assert judge(Published(Kind.PRINTED, 0.0, 1.0), none_of(40)).outcome is Outcome.UNDECIDED
    assert judge(Published(Kind.PRINTED, 0.0, 1.0), none_of(1000)).outcome is Outcome.AGREES


def test_scatter_that_the_paper_shows_counts_its_runs() -> None:
    """Of ten runs with the mean 8 and the standard deviation 2.67 all have another value than 0; with 25.3 one may."""

    def found(sd: float | None, n: int, value: float = 8.0) -> Outcome:
        ours = Sample((0.0,) * n, steady=False, minimum=0.0, maximum=100.0)
        return judge(Published(Kind.PRINTED, value, 0.02, runs=10, sd=sd), ours).outcome

    assert found(0.0, 10) is found(2.67, 10) is Outcome.OFF
    assert found(None, 10) is found(25.3, 10) is Outcome.UNDECIDED
    # nor are ten runs alike that scatter about our value
    assert found(None, 40, 0.0) is Outcome.AGREES
    assert found(3.0, 40, 0.0) is Outcome.UNDECIDED


def test_a_difference_that_rounding_makes_is_none() -> None:
    metrics = {
        name: Metric(name, name, "", table="flows", field="goodput_bps", rows="sum") for name in ("a", "b")
    }
    same, other = Constant(0.1 + 0.2), Constant(0.3)
    assert same.value != other.value
    names: dict[str, Column | Array] = {"a": same, "b": other}
    for text in ('a["x"] - b["x"]', '(a["x"] - b["x"]) / a["x"]', '-(b["x"] - a["x"]) * 8'):
        found = sample(Expression(text), metrics, names, 10)
        assert found is not None
        assert found.values == found.each == (0.0,) * 10, text
        assert judge(Published(Kind.ORDERING, sign=1), found).outcome is Outcome.CONTRADICTS
    names["b"] = Constant(0.3 - 1e-9)
    found = sample(Expression('a["x"] - b["x"]'), metrics, names, 10)
    assert found is not None
    assert judge(Published(Kind.ORDERING, sign=1), found).outcome is Outcome.AGREES


def test_of_a_steady_measure_what_is_the_same_in_all_runs_is_certain() -> None:
    same = Sample((0.55,) * 5)
    assert judge(Published(Kind.PRINTED, 0.5, 0.1), same).outcome is Outcome.AGREES, "the edge itself"
    assert judge(Published(Kind.PRINTED, 0.4, 0.1), same).outcome is Outcome.OFF
    assert judge(Published(Kind.ABOUT, 8), Sample((9.2,) * 5)).outcome is Outcome.AGREES


@pytest.mark.parametrize(
    ("kind", "digit", "margin"),
    [(Kind.WITHIN, None, None), (Kind.WITHIN, None, 0.0), (Kind.SAME, 0.1, 0.1), (Kind.ABOUT, None, 0.1)],
)
def test_a_margin_goes_with_within(kind: Kind, digit: float | None, margin: float | None) -> None:
    with pytest.raises(ValueError, match=r"margin|last_digit"):
        Published(kind, 1.0, digit, None, margin)


@given(st.sampled_from([Kind.ORDERING, Kind.TREND]), st.sampled_from([1, -1]), positive, st.floats(0, 1e3))
def test_signs_need_an_interval_without_zero(kind: Kind, sign: int, value: float, sd: float) -> None:
    published = Published(kind, sign=sign)
    agrees = value > half_of(ours(0.0, sd))
    assert (judge(published, ours(sign * value, sd)).outcome is Outcome.AGREES) == agrees
    assert (judge(published, ours(-sign * value, sd)).outcome is Outcome.CONTRADICTS) == agrees
    assert judge(published, ours(0.0, max(sd, 1e-3))).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    "published",
    [Published(Kind.PRINTED, 8, 1), Published(Kind.ABOUT, 8), Published(Kind.ORDERING, sign=1)],
)
def test_without_a_number_nothing_is_said(published: Published) -> None:
    for missing in (None, Sample(())):
        assert judge(published, missing).outcome is Outcome.OPEN
    for few in (Sample((8.0,)), ours(8.0, 1e-9, 4)):
        found = judge(published, few)
        assert found.outcome is Outcome.UNDECIDED
        assert "it takes 5" in found.because


def test_few_skewed_runs_say_what_is_gross_and_no_more() -> None:
    skewed = Sample((0.1, 0.2, 0.3, 0.2, 9.0, 0.1))
    assert judge(Published(Kind.ABOUT, 8), skewed).outcome is Outcome.UNDECIDED
    assert judge(Published(Kind.ABOUT, 1000), skewed).outcome is Outcome.OFF


def test_what_rare_runs_make_takes_forty() -> None:
    for n in (5, 10, 39):
        found = judge(Published(Kind.ABOUT, 8), ours(1.0, 0.1, n, steady=False))
        assert (found.outcome, found.settles) == (Outcome.UNDECIDED, 40)
        assert f"{n} may lack them: it takes 40" in found.because
    assert judge(Published(Kind.ABOUT, 8), ours(1.0, 0.1, 40, steady=False)).outcome is Outcome.OFF


LOGNORMAL = tuple(np.random.default_rng(3).lognormal(0, 1, 40).round(3).tolist())


@pytest.mark.parametrize(
    ("published", "sample", "outcome"),
    [
        # an interval that is longer on one side, or cut at a bound, holds the number
        (
            Published(Kind.PRINTED, 2.2, 0.1),
            Sample((0.2, 0.5, 1.0, 1.5, 1.8), minimum=0.0),
            Outcome.UNDECIDED,
        ),
        (Published(Kind.PRINTED, 4.5, 0.1), Sample(LOGNORMAL, False, 0.0), Outcome.UNDECIDED),
        (Published(Kind.PRINTED, 0.7, 0.1), Sample(LOGNORMAL, False, 0.0), Outcome.OFF),
        # 3 % of packets is no share of ten runs
        (
            Published(Kind.PRINTED, 0.03, 0.001, runs=10),
            Sample((0.0,) * 20, False, 0.0, 1.0),
            Outcome.UNDECIDED,
        ),
        # five of five runs are no certainty of a share
        (
            Published(Kind.PRINTED, 0.8, 0.1, runs=10),
            Sample((1.0,) * 5, True, 0.0, 1.0, yes_no=True),
            Outcome.UNDECIDED,
        ),
        (
            Published(Kind.ORDERING, sign=1),
            Sample((0.5,) * 5, True, -0.5, 0.5, yes_no=True),
            Outcome.UNDECIDED,
        ),
        (Published(Kind.ORDERING, sign=1), Sample((0.5,) * 9, True, -0.5, 0.5, yes_no=True), Outcome.AGREES),
        # within what is allowed nothing is off
        (
            Published(Kind.WITHIN, 0.5, margin=0.2, runs=1000),
            Sample((1.0,) * 272 + (0.0,) * 128, True, 0.0, 1.0, yes_no=True),
            Outcome.UNDECIDED,
        ),
        # the paper's scatter is no wider because ours are few
        (Published(Kind.PRINTED, 12.1, 0.02, runs=1), ours(10, 1, 9), Outcome.UNDECIDED),
        (Published(Kind.PRINTED, 10.9, 0.02, runs=10, sd=1), ours(10, 0.05, 9), Outcome.UNDECIDED),
        (Published(Kind.PRINTED, 10.9, 0.02, runs=10, sd=1), ours(10, 0.05, 10), Outcome.OFF),
        # more than all, and less than nothing
        (Published(Kind.PRINTED, 102.0, 1.0, runs=10), Sample((100.0,) * 10, False, 0.0, 100.0), Outcome.OFF),
        (Published(Kind.PRINTED, 1000.0, 1.0, runs=10), NONE_OF_TEN, Outcome.OFF),
        (
            Published(Kind.PRINTED, -0.2, 0.1, runs=10),
            Sample((0.0,) * 9 + (1.0,), False, 0.0, 1.0),
            Outcome.OFF,
        ),
        # a steady measure is averaged where one run is a little other
        (Published(Kind.ABOUT, 10), Sample((10.0,) * 9 + (10.01,), minimum=0.0), Outcome.AGREES),
        (Published(Kind.ORDERING, sign=1), Sample((8.0,) * 999 + (8.1,)), Outcome.AGREES),
        # one run of the paper's shows nothing of rare ones
        (Published(Kind.PRINTED, 0, 1, runs=1), Sample((0.0,) * 4 + (1e6,), steady=False), Outcome.UNDECIDED),
    ],
)
def test_what_was_made_to_fool_it(published: Published, sample: Sample, outcome: Outcome) -> None:
    assert judge(published, sample).outcome is outcome, judge(published, sample)


@pytest.mark.parametrize(
    ("more", "said"), [({"sd": 1.0, "runs": 1}, "two or more"), ({"sd": math.inf, "runs": 5}, "finite")]
)
def test_a_scatter_is_that_of_several_runs(more: dict[str, float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Published(Kind.PRINTED, 1.0, 0.1, **more)  # type: ignore[arg-type]


def test_zero_in_every_run_is_no_order() -> None:
    order = Published(Kind.ORDERING, sign=1)
    assert judge(order, Sample((0.0,) * 5)).outcome is Outcome.CONTRADICTS
    assert judge(order, Sample((0.0,) * 5, steady=False)).outcome is Outcome.UNDECIDED


@pytest.mark.parametrize("runs", [None, 4, 30])
@pytest.mark.parametrize("off", [0.0, 0.2, 1.5, 3.0])
def test_so_many_runs_settle_it(runs: int | None, off: float) -> None:
    published = Published(Kind.PRINTED, 10.0, 0.5, runs=runs)
    few = judge(published, ours(10.0 + off, 2.0, 10))
    if few.outcome is Outcome.UNDECIDED:
        assert few.settles is not None
        assert f"about {few.settles:,} runs would settle it" in few.because
        assert judge(published, ours(10.0 + off, 2.0, few.settles)).outcome is not Outcome.UNDECIDED
        less = max(10, int(0.85 * few.settles))
        assert judge(published, ours(10.0 + off, 2.0, less)).outcome is Outcome.UNDECIDED or less == 10
    else:
        assert few.settles is None


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
