"""What metrics make of recordings over time, and what ellipses make of the runs of a point."""

from __future__ import annotations

import math
import tomllib

import polars as pl
import pytest

from paceline.reproduce import measure
from paceline.reproduce.ellipses import contour
from paceline.reproduce.loading import read_metrics

STATES = pl.DataFrame(
    {
        "flow": ["media"] * 8,
        "instance": [0] * 8,
        "time_s": [0.5 * n for n in range(1, 9)],
        "state": [0.0, 1.0, 1.0, 2.0, 1.0, 2.0, 2.0, None],
        "in_flight_packets": [1.0, 5.0, 9.0, 20.0, 7.0, 30.0, float("nan"), 3.0],
    }
)


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ('field = "time_s"\nrows = "first"\nwhile = { field = "state", is = 2 }', 2.0),
        ('field = "time_s"\nrows = "first"\nwhile = { field = "state", is = 2, nth = 2 }', 3.0),
        ('field = "time_s"\nrows = "last"\nwhile = { field = "state", is = 1, nth = 1 }', 1.5),
        ('field = "in_flight_packets"\nrows = "first"\nwhile = { field = "state", is = 2, nth = 2 }', 30.0),
        ('field = "in_flight_packets"\nrows = "most"\nwhile = { field = "state", below = 2 }', 9.0),
        ('field = "state"\nrows = "episodes"\nwhile = { field = "state", is = 2 }', 2.0),
        ('field = "state"\nrows = "lasts"\nwhile = { field = "state", is = 2 }', 1.5),
        ('field = "state"\nrows = "share"\nwhile = { field = "in_flight_packets", above = 8 }', 3 / 8),
        ('field = "in_flight_packets"\nrows = "most"\nto = 2', 20.0),
        ('field = "in_flight_packets"\nrows = "most"\nfrom = 2.1\nto = 2.6', 7.0),
        ('field = "time_s"\nrows = "first"\nwhile = { field = "state", is = 3 }', None),
    ],
)
def test_gauges_over_time_are_measured_by_data(more: str, value: float | None) -> None:
    entry = tomllib.loads(f'label = "x"\ntable = "cwnd"\nmatch = {{ flow = "media" }}\n{more}')
    metrics = read_metrics("here", {"x": entry})
    found = measure.of_run(metrics, {}, {"cwnd": STATES})["x"]
    assert found != found if value is None else found == pytest.approx(value)  # noqa: PLR0124 (nan)


def test_an_ellipse_is_of_the_runs() -> None:
    # Runs on a line of slope 1, twice as far apart: one standard deviation along it, none across.
    found = contour([1.0, 2.0, 3.0, math.nan], [11.0, 12.0, 13.0, 1.0])
    assert found is not None
    assert found.median == found.mean == (2.0, 12.0)
    assert found.width == pytest.approx(2 * math.sqrt(4 / 3))
    assert found.height == pytest.approx(0.0, abs=1e-6)
    assert found.degrees % 180 == pytest.approx(45)
    upright = contour([1.0, 1.0], [5.0, 9.0])
    assert upright is not None
    assert upright.width == pytest.approx(4.0)
    assert upright.degrees % 180 == pytest.approx(90)
    alone = contour([1.0], [5.0])
    assert alone is not None
    assert (alone.width, alone.height) == (0.0, 0.0)
    assert contour([math.nan], [1.0]) is None
