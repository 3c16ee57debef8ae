"""How numbers are written on pages."""

from __future__ import annotations

import pytest

from paceline.report.numbers import plus_minus
from paceline.statistics import Estimate


@pytest.mark.parametrize(
    ("ours", "text"),
    [
        (Estimate(10, 2.4937, 0.4, 0.3127), "2.49 ± 0.31"),
        (Estimate(10, 0.0, 0.0, 0.0), "0, all 10"),
        (Estimate(10, 8.0, 0.0, 0.0), "8.00, all 10"),
        (Estimate(10, -37.4, 30.0, 21.6), "−37 ± 22"),
        (Estimate(10, -0.0041, 2.0, 1.312), "0.0 ± 1.3"),
        (Estimate(10, 7.99793, 1e-4, 8e-5), "7.998 ± less than 0.001"),
        (Estimate(1, 3.0, None, None), "3.00"),
        (Estimate(0, None, None, None), "–"),
        (None, "–"),
    ],
)
def test_numbers_have_the_digits_that_they_deserve(ours: Estimate | None, text: str) -> None:
    assert plus_minus(ours) == text
