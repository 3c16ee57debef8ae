"""The incomplete beta function where it is known in closed form, against printed tables, and against SciPy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from paceline.statistics import special_functions

CLOSE = 1e-12


@pytest.mark.parametrize("confidence", [0.01, 0.3, 0.5, 0.8, 0.95, 0.99, 0.9999])
def test_t_of_one_two_and_four_degrees_is_known(confidence: float) -> None:
    # Shaw, New methods for simulating the Student t distribution, J. Comput. Finance 9 (2006), section 2
    assert special_functions.t_within(confidence, 1) == pytest.approx(
        math.tan(math.pi * confidence / 2), rel=CLOSE
    )
    two = confidence * math.sqrt(2 / (1 - confidence**2))
    assert special_functions.t_within(confidence, 2) == pytest.approx(two, rel=CLOSE)
    alpha = 1 - confidence**2
    q = math.cos(math.acos(math.sqrt(alpha)) / 3) / math.sqrt(alpha)
    assert special_functions.t_within(confidence, 4) == pytest.approx(2 * math.sqrt(q - 1), rel=1e-11)


@pytest.mark.parametrize("t", [0.0, 1e-9, 1e-3, 1.0, 12.0, 1e8])
def test_the_chance_beyond_t_of_one_degree_is_known(t: float) -> None:
    # as an arc whose small end is kept
    expected = 1 - 2 / math.pi * math.atan(t) if t < 1 else 2 / math.pi * math.atan(1 / t)
    assert special_functions.t_beyond(t, 1) == pytest.approx(expected, rel=CLOSE, abs=0)


@pytest.mark.parametrize(
    ("degrees", "printed"),
    [
        # two-sided 80, 90, 95, 98, 99 and 99.9 %: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2
        (1, (3.078, 6.314, 12.706, 31.821, 63.657)),
        (5, (1.476, 2.015, 2.571, 3.365, 4.032)),
        (9, (1.383, 1.833, 2.262, 2.821, 3.250)),
        (19, (1.328, 1.729, 2.093, 2.539, 2.861)),
        (30, (1.310, 1.697, 2.042, 2.457, 2.750)),
        (100, (1.290, 1.660, 1.984, 2.364, 2.626)),
    ],
)
def test_t_is_that_of_the_tables(degrees: int, printed: tuple[float, ...]) -> None:
    for confidence, value in zip((0.8, 0.9, 0.95, 0.98, 0.99), printed, strict=True):
        assert abs(special_functions.t_within(confidence, degrees) - value) <= 0.0005 + 1e-9


@given(st.floats(1, 1e4), st.floats(0.001, 0.999))
def test_t_is_scipys(degrees: float, confidence: float) -> None:
    expected = float(special.stdtrit(degrees, 0.5 + confidence / 2))
    assert special_functions.t_within(confidence, degrees) == pytest.approx(expected, rel=1e-9)


@given(st.floats(1, 1e4), st.floats(0.001, 1e4))
def test_the_chance_beyond_t_is_scipys(degrees: float, t: float) -> None:
    expected = 2 * float(special.stdtr(degrees, -t))
    assert special_functions.t_beyond(t, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-290)


@given(st.floats(0.3, 1e4), st.floats(0.3, 1e4), st.floats(0, 1))
def test_the_function_is_scipys(a: float, b: float, x: float) -> None:
    expected = float(special.betainc(a, b, x))
    assert special_functions.incomplete(a, b, x) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.integers(1, 2000), st.data(), st.sampled_from([0.005, 0.025, 0.05, 0.5, 0.975]))
def test_the_inverse_is_scipys_and_undoes_the_function(n: int, data: st.DataObject, p: float) -> None:
    k = data.draw(st.integers(1, n))
    x = special_functions.inverse(k, n - k + 1, p)
    assert x == pytest.approx(float(special.betaincinv(k, n - k + 1, p)), rel=1e-9)
    assert special_functions.incomplete(k, n - k + 1, x) == pytest.approx(p, rel=1e-9)


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_bounds_of_none_of_n_are_known(n: int) -> None:
    # I_x(1, n) = 1 - (1 - x)^n and I_x(n, 1) = x^n
    assert special_functions.inverse(1, n, 0.975) == pytest.approx(
        -math.expm1(math.log(0.025) / n), rel=CLOSE
    )
    assert special_functions.inverse(n, 1, 0.025) == pytest.approx(0.025 ** (1 / n), rel=CLOSE)


def test_at_its_ends() -> None:
    assert (special_functions.incomplete(2, 3, 0), special_functions.incomplete(2, 3, 1)) == (0, 1)
    for p in (0, 1, -0.1, math.nan):
        with pytest.raises(ValueError, match="p must lie between 0 and 1"):
            special_functions.inverse(2, 3, p)
