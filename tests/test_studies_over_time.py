"""What metrics make of recordings over time, and what ellipses make of the runs of a point."""

from __future__ import annotations

import math
import tomllib

import polars as pl
import pytest

from paceline.files.paper_folders import PaperError
from paceline.papers.loading import read_metrics
from paceline.report.ellipses import contour
from paceline.studies import measure

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


RATES = pl.DataFrame(
    {
        "flow": ["a"] * 10 + ["b"] * 10 + ["late"] * 2,
        "instance": [0] * 22,
        "time_s": [0.5 * n for n in range(1, 11)] * 2 + [4.5, 5.0],
        # by seconds: a has 2, 6, 0, 4, 8; b has 4, 3, 0, 4, 2
        "goodput_bps": [
            *(1.0, 3.0, 6.0, 6.0, 0.0, 0.0, 4.0, 4.0, 7.0, 9.0),
            *(4.0, 4.0, 2.0, 4.0, 0.0, 0.0, 8.0, 0.0, 2.0, 2.0),
            *(14.0, 10.0),
        ],
    }
)


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ('rows = "most"', 9.0),
        ('rows = "most"\nevery = 1', 8.0),
        ('rows = "last"\nevery = 2', 2.0),  # of 2 to 4 s: that of 4 to 6 s is not over
        ('rows = "last"\nevery = 2\nfrom = 1\nto = 5', 6.0),
        ('rows = "mean"\nevery = 7', None),
        (
            'rows = "least"\nevery = 1\nagainst = { flow = "b" }',
            0.25,
        ),  # without the second in which both have nothing
        ('rows = "first"\nevery = 1\nagainst = { flow = "b" }', 0.5),
        ('rows = "least"\nevery = 5\nagainst = { flow = "b" }', 13 / 20),
        ('rows = "least"\nagainst = { flow = "b" }', 0.0),
        ('rows = "least"\nagainst = { flow = "late" }', 0.5),  # of 4.5 and 5 s alone
        ('rows = "least"\nevery = 1\nfrom = 4\nagainst = { flow = "late" }', 8 / 12),
        ('rows = "least"\nagainst = { flow = "nobody" }', None),
        ('rows = "settles"\nwhile = { field = "goodput_bps", above = 3.5 }', 3.5),
        ('rows = "settles"\nevery = 1\nwhile = { field = "goodput_bps", above = 3.5 }', 4.0),
        (
            'rows = "settles"\nevery = 1\nto = 3\nwhile = { field = "goodput_bps", above = 3.5 }',
            3.0,
        ),  # it does not
        ('rows = "settles"\nwhile = { field = "goodput_bps", above = -1 }', 0.5),
        ('rows = "episodes"\nwhile = { field = "goodput_bps", above = 3.5 }', 2.0),
        ('rows = "episodes"\nwhile = { field = "goodput_bps", above = 6.5, until_below = 0 }', 1.0),
        ('rows = "returns"\nwhile = { field = "goodput_bps", above = 3.5 }', 1.0),
        ('rows = "returns"\nwhile = { field = "goodput_bps", above = 6.5, until_below = 0 }', 0.0),
        ('rows = "returns"\nwhile = { field = "goodput_bps", above = 1e9 }', 0.0),
        ('rows = "lasts"\nwhile = { field = "goodput_bps", above = 5, until_below = 3.5 }', 1.5),
    ],
)
def test_rates_are_averaged_and_held_against_others(more: str, value: float | None) -> None:
    entry = tomllib.loads(
        f'label = "x"\ntable = "rate"\nmatch = {{ flow = "a" }}\nfield = "goodput_bps"\n{more}'
    )
    found = measure.of_run(read_metrics("here", {"x": entry}), {}, {"rate": RATES})["x"]
    assert found != found if value is None else found == pytest.approx(value)  # noqa: PLR0124 (nan)


def test_between_the_watermarks_it_is_as_it_was() -> None:
    column = [4.0, 9.0, 4.0, 9.0, 4.0, 1.0, 4.0, 9.0, 1.0, 4.0]
    rates = RATES.head(10).with_columns(goodput_bps=pl.Series(column))
    text = 'label = "x"\ntable = "rate"\nmatch = { flow = "a" }\nfield = "goodput_bps"\nrows = "episodes"\n'
    text += 'while = { field = "goodput_bps", above = 8'
    for more, value in ((" }", 3), (", until_below = 2 }", 2)):
        metrics = read_metrics("here", {"x": tomllib.loads(text + more)})
        assert measure.of_run(metrics, {}, {"rate": rates})["x"] == value


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('table = "flows"\nevery = 1', r"metric.x.every: is for recordings only"),
        ('table = "flows"\nagainst = { flow = "b" }', r"metric.x.against: is for recordings only"),
        ('table = "rate"\nevery = 0', r"every: must be above 0, not 0"),
        (
            'table = "rate"\nwhile = { field = "x", below = 8, until_below = 2 }',
            r"until_below: needs `above`",
        ),
        ('table = "rate"\nwhile = { field = "x", above = 8, until_below = 9 }', r"must not exceed it; not 9"),
        (
            'table = "rate"\nrows = "settles"\nagainst = { flow = "b" }',
            r"against: cannot go with rows settles",
        ),
    ],
)
def test_mistakes_of_recorded_metrics_are_told(more: str, says: str) -> None:
    entry = tomllib.loads(f'label = "x"\nfield = "goodput_bps"\n{more}')
    with pytest.raises(PaperError, match=says):
        read_metrics("here", {"x": entry})


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
