"""A paper's points in two worlds: what runs where, how often, and what the page says of the difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from paceline import _core
from paceline.emulator.realtime_queue import ALONE, SET_UP_S
from paceline.errors import PacelineError
from paceline.papers import loading, page, tables
from paceline.report import figures
from paceline.report.numbers import plus_minus
from paceline.report.traces import traces
from paceline.results.results import RunRecord
from paceline.statistics import independent_difference
from paceline.studies import points, reproduction
from paceline.studies.paper import Paper
from paceline.studies.study import World
from paceline.studies.verdict import Outcome
from small_paper import GOODPUT, TCP_AND_TFRC

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
[metric.megabytes]
label = "Data"
unit = "MB"
table = "flows"
match = {{ flow = "media" }}
field = "bytes_delivered"
scale = 1e-6
{TCP_AND_TFRC}
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

OVER_TIME = """
[study.over-time]
figure = "2"
title = "Over time"
scenario = "one.toml"
record = "rate"
record_every = 1
axis = { label = "Where", level = [
    { label = "simulated, 3 s", set = { duration = "3 s" } },
    { label = "emulated, 3 s", world = "emulated", set = { duration = "3 s" } },
] }
[[study.over-time.plot]]
key = "2"
title = "Rate"
kind = "trace"
label = "Goodput"
trace = { column = "goodput_bps", scale = 1e-6 }
"""

ONLY_EMULATED = (
    OVER_TIME.replace('"2"', '"3"')
    .replace("""    { label = "simulated, 3 s", set = { duration = "3 s" } },\n""", "")
    .replace("[study.over", "[study.real")
    .replace("study.over-time.plot", "study.real-time.plot")
)

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
key = "two-metrics"
figure = "1"
where = "section 1"
says = "A rate is data by time"
kind = "about"
published = 1
study = "both"
ours = 'goodput["tcp", "simulated"] / (megabytes["tcp", "simulated"] * 8 / 20)'

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
    return loading.load(str(tmp_path / "small"))


class Slower:
    """Stands for real time: what is simulated, with a tenth less goodput."""

    def __init__(self, every_s: float | None = None, known_s: float = math.inf) -> None:
        """`every_s`: how often it records, whatever is asked for; `known_s`: until when goodput is known."""
        self.ran: list[tuple[float, int]] = []
        self.every_s, self.known_s = every_s, known_s

    def __call__(
        self, scenario: _core.Scenario, seed: int, record: Sequence[str], every_s: float
    ) -> RunRecord:
        self.ran.append((scenario.duration_s, seed))
        run = RunRecord.of(seed, _core.run(scenario, seed, list(record), self.every_s or every_s))
        for flow in run.summary["flows"]:
            flow["goodput_bps"] *= 0.9
        if "rate" in run.series:
            # a kernel's flow does not know how fast it sent, and nobody what was at an instant
            unknown = pl.when(pl.col("time_s") > self.known_s).then(None).otherwise(pl.col("goodput_bps"))
            known = run.series["rate"].with_columns(unknown.alias("goodput_bps"))
            rate = known.drop("send_rate_bps", strict=False)
            return replace(run, series={**run.series, "rate": rate})
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
    # side by side, so in no order
    assert sorted(real.ran) == [(3.0, 1), (3.0, 1), (3.0, 2), (3.0, 2)]
    counts = {place.level: len(metrics["goodput"]) for place, metrics in done.values.items()}
    assert counts == {"simulated": 4, "simulated, 3 s": 4, "emulated, 3 s": 2}
    by_claim = {r.claim.key: r for r in done.results}
    simulated, emulated = (by_claim[f"rate-{w}"].ours for w in ("simulated", "emulated, 3 s"))
    assert simulated is not None
    assert emulated is not None
    assert (simulated.n, emulated.n) == (4, 2)
    both = by_claim["two-metrics"].ours
    assert both is not None
    assert both.n == 4, "two metrics of one simulated point have all of its runs"
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
    gap = plus_minus(independent_difference(there, here))
    assert gap.startswith("−0.3")
    assert gap in text
    assert f"paceline emulate {paper.folder}/one.toml" in text


def test_without_a_real_path_the_rest_is_there(paper: Paper) -> None:
    done = reproduction.run(paper, runs=2)
    by_claim = {r.claim.key: r for r in done.results}
    assert by_claim["rate-simulated"].ours is not None
    assert by_claim["rate-emulated, 3 s"].verdict.outcome is Outcome.OPEN
    assert "not all of its points were run" in by_claim["rate-emulated, 3 s"].verdict.because
    assert "Emulated less simulated" not in page.render(done)


def test_what_was_not_run_has_no_place_in_a_figure(paper: Paper) -> None:
    (paper.folder / "figures.toml").write_text(FIGURES + OVER_TIME + ONLY_EMULATED)
    done = reproduction.run(loading.load(str(paper.folder)), runs=2)
    pictures = figures.draw_all(done)
    assert sorted(pictures) == ["1", "2"], "figure 3 has nothing to show"
    labels = [text.get_text() for text in pictures["1"].figure.axes[0].get_xticklabels()]
    assert labels == ["simulated", "simulated, 3 s"]
    text = page.render(done, pictures)
    assert text.count('data-plot="1"') == 1
    assert 'data-plot="3"' not in text
    assert 'id="real-time"' not in text


def test_a_run_in_real_time_serves_all_that_is_shown_of_it(paper: Paper) -> None:
    """A study that records and one that does not share their points in real time, not in the simulator."""
    (paper.folder / "figures.toml").write_text(FIGURES + OVER_TIME)
    paper = loading.load(str(paper.folder))
    planned = reproduction.plan(paper, 4)
    assert (planned.worlds.count(World.EMULATED), planned.kinds) == (2, ("rate", "rtcp"))
    alone = reproduction.plan(paper.only("1"), 4)
    assert alone.kinds == planned.kinds, "a figure alone finds the runs of the whole paper"
    assert planned.worlds.count(World.SIMULATED) == 6
    real = Slower(every_s=0.1)
    done = reproduction.run(paper, runs=2, real_time=real)
    # side by side, so in no order
    assert sorted(real.ran) == [(3.0, 1), (3.0, 1), (3.0, 2), (3.0, 2)]
    place = points.Place("over-time", "tcp", "emulated, 3 s")
    assert done.values[place] == done.values[points.Place("both", "tcp", "emulated, 3 s")]
    recorded = done.recorded[place]
    assert recorded.filter(seed=1)["time_s"].to_list() == pytest.approx([1.0, 2.0, 3.0])
    assert points.Place("both", "tcp", "emulated, 3 s") not in done.recorded
    study = paper.studies["over-time"]
    lines = traces(done, study, "tcp", study.plots[0])
    assert [line.label for line in lines] == ["simulated, 3 s", "emulated, 3 s"]
    # second by second the two are the same run
    assert lines[0].time_s == pytest.approx(lines[1].time_s[:2])
    assert lines[0].y == pytest.approx(lines[1].y[:2], rel=1e-6)
    plot = study.plots[0]
    assert plot.trace is not None
    later = traces(done, study, "tcp", replace(plot, trace=replace(plot.trace, from_s=2.0)))
    assert [len(line.time_s) for line in later] == [1, 2]
    assert later[1].y == lines[1].y[1:]
    assert "emulated, 3 s" in page.render(done)
    # what real runs do not know is null in the table of both worlds
    both = tables.recorded(done, "rate")
    assert set(both["level"]) == {"simulated, 3 s", "emulated, 3 s"}


def test_a_line_may_have_gaps(paper: Paper) -> None:
    (paper.folder / "figures.toml").write_text(FIGURES + OVER_TIME)
    paper = loading.load(str(paper.folder))
    done = reproduction.run(paper, runs=2, real_time=Slower(every_s=0.1, known_s=2.0))
    study = paper.studies["over-time"]
    line = traces(done, study, "tcp", study.plots[0])[1]
    assert [math.isnan(y) for y in line.y] == [False, False, True]
    drawn_axes = figures.draw(done, study, study.plots[0]).figure.axes
    drawn = [one for one in drawn_axes[0].lines if np.array_equal(one.get_xdata(), line.time_s)]
    assert [math.isnan(float(np.asarray(one.get_ydata())[2])) for one in drawn] == [True], "a gap is drawn"
    lines = [one for s in ("tcp", "tfrc") for one in traces(done, study, s, study.plots[0])]
    highest = max(y for one in lines for y in one.y if math.isfinite(y))
    assert drawn_axes[0].get_ylim()[1] >= highest, "the panels share an axis that has room for all lines"


def test_a_run_in_real_time_that_failed_has_no_line(paper: Paper) -> None:
    (paper.folder / "figures.toml").write_text(FIGURES + OVER_TIME)
    paper = loading.load(str(paper.folder))

    def fails(scenario: _core.Scenario, seed: int, record: Sequence[str], every_s: float) -> RunRecord:
        raise PacelineError("the flow has ended")

    with pytest.warns(UserWarning, match="the run is left out"):
        done = reproduction.run(paper, runs=2, real_time=fails)
    assert points.Place("over-time", "tcp", "emulated, 3 s") not in done.recorded
    study = paper.studies["over-time"]
    assert [line.label for line in traces(done, study, "tcp", study.plots[0])] == ["simulated, 3 s"]


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
