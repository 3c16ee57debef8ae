"""Numbers as people read them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.quantities import figures


@given(st.floats(-1e14, 1e14).filter(lambda value: value == 0 or abs(value) > 1e-8), st.integers(3, 6))
def test_no_number_has_an_exponent(value: float, count: int) -> None:
    text = figures(value, count)
    assert "e" not in text
    assert abs(float(text) - value) <= abs(value) * 0.51 * 10.0 ** (1 - count) + 1e-12


def test_figures() -> None:
    assert [figures(value, 3) for value in (19_300.0, 1e9, 0.5, 0.0, 2.5e-7)] == [
        "19300",
        "1000000000",
        "0.5",
        "0",
        "0.00000025",
    ]
