"""As many runs as a number needs: when it stops, how few looks it takes, and what its intervals hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paceline
from paceline.errors import PacelineError, PacelineWarning
from paceline.results.results import Results, RunRecord
from paceline.simulate import until as until_module
from paceline.simulate.points import Point
from paceline.simulate.until import MIN_RUNS, Gap, Until, run_until

LINK = """
duration = "5 s"
[link.bottleneck]
rate = "5 Mbit/s"
delay = "20 ms"
loss = { rate = "1 %" }
[flow.a]
[flow.b]
cc = "cubic"
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("goodput_bps", "a measure and a precision"),
        ("goodputs_bps 1 %", 'no metric "goodputs_bps" .did you mean goodput_bps'),
        ("queues.goodput_bps 1 %", "no metric"),
        ("goodput_bps 0 %", "the precision must be more than 0"),
        ("goodput_bps -1 %", "the precision must be more than 0"),
        ("rtt_mean_s 1 Mbit/s", "1 Mbit/s is not a precision of rtt_mean_s"),
        ("timeouts 1ee", "1ee is not a precision of timeouts"),
        ("goodput_bps 50 %furlongs", "remove furlongs after the %"),
    ],
)
def test_mistakes_are_said_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(PacelineError, match=said):
        paceline.run(LINK, until=text)


@pytest.mark.parametrize(
    ("text", "bound", "relative", "of"),
    [
        ("goodput_bps 1 %", 0.01, True, None),
        ("flows.goodput_bps of a 100 kbit/s", 1e5, False, "a"),
        ("rtt_mean_s 0.5ms", 0.0005, False, None),
        ("timeouts 2", 2.0, False, None),
    ],
)
def test_what_is_asked(text: str, bound: float, relative: bool, of: str | None) -> None:
    until = Until.parse(text)
    assert until.bound == pytest.approx(bound)
    assert (until.relative, until.of) == (relative, of)


def test_runs_are_added_until_it_is_there(tmp_path: Path) -> None:
    progress: list[tuple[float, float]] = []
    results = paceline.run(
        LINK,
        until="goodput_bps of b 2 %",
        out=tmp_path / "x",
        progress=lambda done, all_: progress.append((done, all_)),
    )
    row = results.statistics("flows", measures=["goodput_bps"]).filter(flow="b").row(0, named=True)
    assert (row["high"] - row["low"]) / 2 <= 0.02 * row["mean"]
    assert results.seeds == list(range(1, len(results.seeds) + 1))
    assert len(results.seeds) > MIN_RUNS
    assert max(all_ for _, all_ in progress) >= len(results.seeds), "it says how many runs it takes"
    assert results.manifest["until"] == ["goodput_bps of b 2 %"]
    assert results.manifest["seeds"] == results.seeds
    # the same call finds all of them there
    again = paceline.run(LINK, until="goodput_bps of b 2 %", out=tmp_path / "x")
    assert again.flows.equals(results.flows)
    assert again.flows.equals(paceline.run(LINK, runs=len(results.seeds)).flows)


def test_a_cap_is_said() -> None:
    with pytest.warns(
        PacelineWarning, match=r"of a, .* times as wide after 30 runs; about .*, and the limit is 30 runs"
    ):
        results = paceline.run(LINK, until="goodput_bps of a 0.1 %", most=30)
    assert len(results.seeds) == 30
    with pytest.raises(PacelineError, match="precision needs 20 at least"):
        paceline.run(LINK, until="goodput_bps 1 %", most=10)
    with pytest.raises(PacelineError, match="no run has a goodput_bps of nobody"):
        paceline.run(LINK, until="goodput_bps of nobody 1 %")


def test_more_runs_than_the_most_are_no_less() -> None:
    with pytest.raises(PacelineError, match="50 runs exceed the limit of 30"):
        paceline.run(LINK, runs=50, until="goodput_bps 1 %", most=30)


def test_a_name_of_two_columns_is_not_guessed() -> None:
    """A flow may be named like a controller, of another flow or its own."""
    named = LINK.replace("[flow.a]", "[flow.cubic]")
    with pytest.raises(
        PacelineError, match="cubic is the flow of one row and the cc of another; write of flow=cubic"
    ):
        paceline.run(named, until="goodput_bps of cubic 1 %")
    records = paceline.run(named, runs=MIN_RUNS).records
    of = {
        text: Until.parse(f"goodput_bps of {text} 1 %").gap(records)
        for text in ("flow=cubic", "cc=cubic", "b")
    }
    assert (of["flow=cubic"].of, of["cc=cubic"].of) == ("cubic", "b")
    assert of["cc=cubic"].ratio == of["b"].ratio
    own = LINK.replace("[flow.b]", "[flow.cubic]")
    assert Until.parse("goodput_bps of cubic 1 %").gap(paceline.run(own, runs=MIN_RUNS).records).of == "cubic"


def test_points_that_scatter_get_more_runs() -> None:
    alone = LINK.partition("[flow.b]")[0]
    results = paceline.sweep(
        alone, {"link.bottleneck.rate": ["500 kbit/s", "5 Mbit/s"]}, until="goodput_bps 5 %"
    )
    counts = [
        results.flows.filter(results.flows["link.bottleneck.rate"] == rate)["seed"].n_unique()
        for rate in ("500 kbit/s", "5 Mbit/s")
    ]
    assert counts[0] < 2 * MIN_RUNS, "the link alone decides there"
    assert counts[1] > 3 * MIN_RUNS


def test_of_several_the_widest_counts() -> None:
    both = paceline.run(LINK, until=["goodput_bps of b 5 %", "rtt_mean_s of b 3 ms"])
    each = [paceline.run(LINK, until=text) for text in ("goodput_bps of b 5 %", "rtt_mean_s of b 3 ms")]
    assert len(both.seeds) >= max(len(one.seeds) for one in each)


def test_what_rare_events_make_is_held_to_its_median() -> None:
    results = paceline.run(LINK, until="loss_rate of b 30 %", most=400)
    row = results.statistics("flows", measures=["loss_rate"]).filter(flow="b").row(0, named=True)
    assert row["kind"] == "median"
    assert (row["median_high"] - row["median_low"]) / 2 <= 0.3 * row["median"]


def test_looks_are_few() -> None:
    for ratio in (1.01, 1.2, 3.0, float("inf")):
        gap = Gap("x", 100, "", ratio)
        assert 110 <= 100 + gap.more <= 150
    assert Gap("x", 100, "", 1.0).more == 0


Draw = Callable[[np.random.Generator, int], Any]


def normal(random: np.random.Generator, many: int) -> Any:
    return random.normal(1.0, 0.1, many)


def skewed(random: np.random.Generator, many: int) -> Any:
    return random.lognormal(-0.125, 0.5, many)


def bounded(random: np.random.Generator, many: int) -> Any:
    """What an application has of a link that mostly suffices: 1 at most, with a skewness of -9."""
    return 1 - random.lognormal(-3.0, 1.1, many)


@pytest.mark.parametrize(
    ("draw", "requested", "app", "truth"),
    [
        (normal, "3 %", "ftp", 1.0),
        (normal, "2 %", "ftp", 1.0),
        (skewed, "10 %", "ftp", 1.0),
        (bounded, "1 %", "stream", 1 - np.exp(-3.0)),
    ],
)
def test_what_the_intervals_hold(
    draw: Draw, requested: str, app: str, truth: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In nine of ten of 400 times stopped at least: the mean of what has an interval of it, else the median
    (docs/measures.md)."""
    random = np.random.default_rng(5)
    values: dict[int, float] = {}

    def drawn(points: Sequence[Point], _: Sequence[int], **how: Any) -> list[RunRecord]:
        seeds = [seed for point in points for seed in point.seeds or ()]
        for seed in seeds:
            values.setdefault(seed, float(draw(random, 1)[0]))
        row = {"flow": "a", "instance": 0, "app": app}
        return [RunRecord(seed, {"flows": [row | {"goodput_bps": values[seed]}]}) for seed in seeds]

    monkeypatch.setattr(until_module, "run_points", drawn)
    point, until = Point(paceline.parse(LINK)), Until.parse(f"goodput_bps {requested}")
    held = 0
    for _ in range(400):
        values.clear()
        records = run_until([point], 1, [until], min_runs=1, max_runs=1000)
        row = (
            Results(records, {}).statistics("flows", by=["flow"], measures=["goodput_bps"]).row(0, named=True)
        )
        ends = ("low", "high") if app == "ftp" else ("median_low", "median_high")
        assert row["kind"] == ("t" if app == "ftp" else "median")
        held += row[ends[0]] <= truth <= row[ends[1]]
    assert held / 400 >= 0.90, held / 400
    assert list(itertools.islice(values, 1))
