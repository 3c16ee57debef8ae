"""A paper's points in two worlds: what runs where, how often, and what the page says of the difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from paceline import _core
from paceline.reproduce import loading, page, points, reproduction
from paceline.reproduce.paper import Paper, World
from paceline.reproduce.verdict import Outcome
from paceline.results import RunRecord
from paceline.statistics import independent_difference
from paceline.turns import ALONE, SET_UP_S
from small_paper import GOODPUT

SCENARIO = """
duration = "20 s"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
[flow.media]
"""

FIGURES = f"""
[paper]
title = "T"
authors = "A"
published_in = "P"
summary = "S"
runs = 4
emulated_runs = 2
{GOODPUT}
[[series]]
key = "tcp"
label = "TCP"
[[series]]
key = "tfrc"
label = "TFRC"
set = {{ "flow.media.cc" = "tfrc" }}
[study.both]
figure = "1"
title = "Two worlds"
scenario = "one.toml"
axis = {{ label = "Where", level = [
    {{ label = "simulated" }},
    {{ label = "simulated, 3 s", set = {{ duration = "3 s" }} }},
    {{ label = "emulated, 3 s", world = "emulated", set = {{ duration = "3 s" }} }},
] }}
plot = [{{ key = "1", title = "Goodput", kind = "bars", metric = "goodput" }}]
"""

PUBLISHED = """
[[claim]]
key = "rate-{each}"
each = ["simulated", "emulated, 3 s"]
figure = "1"
where = "section 1"
says = "TCP fills the link ({each})"
kind = "about"
published = 3.8
study = "both"
ours = 'goodput["tcp", "{each}"]'

[[claim]]
key = "slow"
figure = "1"
where = "section 1"
says = "In the long run it does"
kind = "about"
published = 3.8
needs = 10
study = "both"
ours = 'goodput["tcp", "emulated, 3 s"]'
"""


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    folder = tmp_path / "small"
    folder.mkdir()
    for name, text in {"one.toml": SCENARIO, "figures.toml": FIGURES, "published.toml": PUBLISHED}.items():
        (folder / name).write_text(text)
    return loading.load("small", tmp_path)


class Slower:
    """Stands for real time: what is simulated, with a tenth less goodput."""

    def __init__(self) -> None:
        self.ran: list[tuple[float, int]] = []

    def __call__(
        self, scenario: _core.Scenario, seed: int, record: Sequence[str], every_s: float
    ) -> RunRecord:
        self.ran.append((scenario.duration_s, seed))
        run = RunRecord.of(seed, _core.run(scenario, seed, list(record), every_s))
        for flow in run.summary["flows"]:
            flow["goodput_bps"] *= 0.9
        return run


def test_what_is_emulated_runs_in_turn_and_as_often_as_the_paper_allows(paper: Paper) -> None:
    planned = reproduction.plan(paper, 4)
    assert planned.worlds.count(World.EMULATED) == 2
    assert planned.real_seconds(ALONE) == pytest.approx(2 * 2 * (3 + SET_UP_S))
    real = Slower()
    seen: list[tuple[float, float]] = []
    done = reproduction.run(
        paper,
        runs=4,
        workers=1,
        real_time=real,
        progress=lambda done, of: seen.append((done, of)),
    )
    # of seconds: those in real time, and the moments of what is simulated
    assert seen[-1][0] == pytest.approx(seen[-1][1])
    assert 20 < seen[-1][1] < 25
    # TCP and TFRC in turn, test by test
    assert real.ran == [(3.0, 1), (3.0, 1), (3.0, 2), (3.0, 2)]
    counts = {place.level: len(metrics["goodput"]) for place, metrics in done.values.items()}
    assert counts == {"simulated": 4, "simulated, 3 s": 4, "emulated, 3 s": 2}
    by_claim = {r.claim.key: r for r in done.results}
    simulated, emulated = (by_claim[f"rate-{w}"].ours for w in ("simulated", "emulated, 3 s"))
    assert simulated is not None
    assert emulated is not None
    assert (simulated.n, emulated.n) == (4, 2)
    short = by_claim["slow"].verdict
    assert short.outcome is Outcome.OPEN
    assert "3 s are too short to test it: it takes 10 s" in short.because


def test_the_page_sets_both_worlds_side_by_side(paper: Paper) -> None:
    done = reproduction.run(paper, runs=4, real_time=Slower())
    text = page.render(done)
    assert "Emulated less simulated" in text
    place = points.Place("both", "tcp", "simulated, 3 s")
    there, here = (
        done.values[points.Place("both", "tcp", w)]["goodput"] for w in (place.level, "emulated, 3 s")
    )
    gap = page.plus_minus(independent_difference(there, here))
    assert gap.startswith("−0.3")
    assert gap in text
    assert "paceline emulate papers/small/one.toml" in text


def test_without_a_real_path_the_rest_is_there(paper: Paper) -> None:
    done = reproduction.run(paper, runs=2)
    by_claim = {r.claim.key: r for r in done.results}
    assert by_claim["rate-simulated"].ours is not None
    assert by_claim["rate-emulated, 3 s"].verdict.outcome is Outcome.OPEN
    assert "not all of its points were run" in by_claim["rate-emulated, 3 s"].verdict.because
    assert "Emulated less simulated" not in page.render(done)


def test_the_full_form_runs_as_long_and_as_often_as_the_paper(paper: Paper) -> None:
    real = Slower()
    done = reproduction.run(paper.full(), runs=3, workers=1, real_time=real)
    assert real.ran == [(20.0, seed) for seed in (1, 1, 2, 2, 3, 3)]
    assert {r.claim.key: r for r in done.results}["slow"].ours is not None


def test_welch_by_hand() -> None:
    # means 2 and 5, variances 1 and 4, three and four values: se^2 = 1/3 + 1; df = (4/3)^2 / (1/18 + 1/3) = 4.571...
    found = independent_difference([1.0, 2.0, 3.0], [2.683, 4.172, 5.828, 7.317])
    assert found.mean == pytest.approx(3.0)
    assert found.half_width == pytest.approx(2.6437 * (1 / 3 + 4.0 / 4) ** 0.5, rel=0.01)
    assert independent_difference([1.0], [2.0]).half_width is None
    assert independent_difference([1.0, 1.0], [2.0, 2.0]).half_width == 0.0
