"""`paceline league`: what is drawn, who is ahead and how sure that is, worst days, the page, and mistakes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import paceline
from paceline.cli import app
from paceline.cli import league as command
from paceline.errors import PacelineError
from paceline.leagues import League, classes, drawing, emulated, entrants, scoring, traces, writing
from paceline.leagues.drawing import Die, Quantity, law
from stand_in import stand_in

ROOT = Path(__file__).parent.parent
ROUNDS = 6
SCHEMES, CLASSES = ["cubic", "vegas", "gcc", "tfrc"], ["wired", "policer", "media"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[League, Path]:
    """A league of four schemes in three classes, and its folder."""
    out = tmp_path_factory.mktemp("league")
    found = paceline.league(SCHEMES, CLASSES, rounds=ROUNDS, out=out)
    writing.write(found, out)
    return found, out


def drawn(words: dict[str, Any], many: int = 4000) -> list[float]:
    one = law(words, "x")
    values = [one.draw(Die(1, "x", n), {"rtt": Quantity(0.02, "s")}, 60.0) for n in range(many)]
    return [value.value for value in values if isinstance(value, Quantity)]


def test_laws_hold_their_bounds_and_shapes() -> None:
    even = np.array(drawn({"uniform": ["10 ms", "50 ms"]}))
    assert 0.01 <= even.min() < 0.0102
    assert 0.0498 < even.max() <= 0.05
    # the standard error of the mean is 0.18 ms
    assert even.mean() == pytest.approx(0.03, abs=0.0006)
    assert even.std() == pytest.approx(0.04 / math.sqrt(12), rel=0.03)
    logs = np.log10(drawn({"loguniform": ["1 Mbit/s", "100 Mbit/s"]}))
    assert logs.mean() == pytest.approx(7, abs=0.03)
    assert logs.std() == pytest.approx(2 / math.sqrt(12), rel=0.03)
    counts = np.bincount(np.array(drawn({"whole": [1, 3]}), dtype=int))
    assert counts[0] == 0
    assert counts[1:] == pytest.approx([1333] * 3, abs=100)
    times = np.array(drawn({"uniform": [1, 4], "times": "rtt", "least": "30 ms"}))
    assert times.min() == 0.03
    assert 0.079 < times.max() <= 0.08
    # 30 ms are 1.5 of it: one of six draws lies below
    assert (times == 0.03).mean() == pytest.approx(1 / 6, abs=0.03)
    chosen = law({"choice": ["codel", "pie"]}, "x")
    assert {chosen.draw(Die(1, n), {}, 1.0) for n in range(20)} == {"codel", "pie"}


def test_a_draw_hangs_on_its_own_path_class_and_round_alone() -> None:
    (wired,) = classes.find(["wired"])
    fewer = replace(wired, laws={path: one for path, one in wired.laws.items() if path.endswith("delay")})
    one, again, other = wired.draw(1, 3), wired.draw(1, 3), wired.draw(1, 4)
    assert one == again
    assert one.drawn["link.bottleneck.delay"] == fewer.draw(1, 3).drawn["link.bottleneck.delay"]
    assert one.drawn != other.drawn
    assert one.drawn != replace(wired, key="other").draw(1, 3).drawn
    assert one.drawn != wired.draw(2, 3).drawn
    # what it was when this was written: NumPy's raw bits are the same in all versions
    assert [q.written() for q in one.drawn.values() if isinstance(q, Quantity)] == [
        "5.832 Mbit/s",
        "15.12 ms",
        "25.15 ms",
    ]


@pytest.mark.parametrize(("spread", "memory"), [(0.6, 1.0), (1.0, 8.0)])
def test_a_rate_wanders_as_it_says(spread: float, memory: float) -> None:
    words = {"wander": "5 Mbit/s", "spread": spread, "memory": f"{memory} s", "every": "200 ms"}
    steps = law(words, "link.x.rate_schedule").draw(Die(3, spread), {}, 40_000.0)
    assert isinstance(steps, list)
    rates = np.array([Quantity.read(step["rate"]).value for step in steps])
    logs = np.log(rates) - np.log(rates).mean()
    independent = 40_000 / (2 * memory)
    assert logs.std() == pytest.approx(spread, rel=4 / math.sqrt(2 * independent))
    lag = round(memory / 0.2)
    assert (logs[lag:] * logs[:-lag]).mean() / logs.var() == pytest.approx(math.exp(-1), abs=0.05)
    assert rates.mean() == pytest.approx(5e6, rel=5 * math.sqrt(math.expm1(spread**2) / independent))


def test_a_rate_is_out_as_long_as_it_says() -> None:
    words = {"wander": "5 Mbit/s", "spread": 0.1, "memory": "1 s", "every": "100 ms", "out": "10 %"}
    steps = law(words, "link.x.rate_schedule").draw(Die(5), {}, 20_000.0)
    assert isinstance(steps, list)
    out = np.array([Quantity.read(step["rate"]).value == drawing.OUT_BPS for step in steps])
    assert out.mean() == pytest.approx(0.1, abs=0.01)
    begins = (np.diff(out.astype(int)) == 1).sum()
    assert out.sum() * 0.1 / begins == pytest.approx(drawing.OUT_S, rel=0.1)


def test_the_capacity_is_what_the_link_carries(tmp_path: Path) -> None:
    """A transfer that keeps the queue full gets it, in drawn and in recorded rates."""
    mahimahi, steps = tmp_path / "a.down", tmp_path / "b.txt"
    die = Die(9)
    mahimahi.write_text("".join(f"{ms}\n" for ms in range(7919) if die() < 0.4))
    steps.write_text("0 3\n4 9\n7 1.5\n11 6\n")
    found = classes.find(["cellular"])
    for of in (found[0], *classes.with_traces(found, [mahimahi]), *classes.with_traces(found, [steps])):
        draw = of.draw(1, 2)
        whole = dict(draw.scenario)
        whole["link"]["bottleneck"]["queue"]["limit"] = "100 MB"
        whole["flow"] = {"test": {"initial_window": 1000}}
        row = paceline.run(whole).summaries[0]["flows"][0]
        assert row["throughput_bps"] == pytest.approx(draw.capacity_bps, rel=0.01), of.laws
    assert traces.mean_bps({"file": str(steps), "format": "seconds-mbit"}, 0, 15) == pytest.approx(
        (3 * 4 + 9 * 3 + 1.5 * 4 + 6 * 4) / 15 * 1e6
    )


def test_every_class_draws_scenarios_that_every_scheme_plays() -> None:
    for of in classes.find([]):
        for number in (1, 2, 17):
            draw = of.draw(1, number)
            assert 0 < draw.fair_bps <= draw.capacity_bps < 1e8
            if draw.media_bps is not None:
                # a picture that fits into its share: a scheme that has that carries it
                assert draw.fair_bps == draw.media_bps
            for entrant in entrants.named([]):
                scenario = paceline.load(dict(draw.scenario), entrant.enter(of, draw))
                assert scenario.unreal() is None, "it can run over an emulated path"


RATE = '"link.bottleneck.rate" = { uniform = ["8 Mbit/s", "8.1 Mbit/s"] }'


def written(where: Path, link: str, flows: str = "", *, draw: str = RATE, about: str = "") -> str:
    """A class of 20 s on 8 Mbit/s, as a file."""
    where.write_text(
        f"""duration = "20 s"
warmup = "5 s"
[class]
title = "A link"
text = "One"
capacity = "link.bottleneck.rate"
{about}
[draw]
{draw}
[link.bottleneck]
rate = "8 Mbit/s"
{link}
{flows}
[flow.test]
"""
    )
    return str(where)


def test_the_least_delay_is_that_of_the_way_there(tmp_path: Path) -> None:
    """5 ms and 1500 B at 8 Mbit/s and twice at 1 Gbit/s: a long way back is nobody's delay."""
    back = 'delay = "5 ms"\nqueue.limit = "150 ms"\nbackward = { rate = "10 Mbit/s", delay = "200 ms" }'
    found = paceline.league(["cubic", "vegas"], [written(tmp_path / "back.toml", back)], rounds=2)
    assert found.runs["least_delay_s"].to_list() == pytest.approx([0.006524] * 4, rel=0.01)
    assert [one.scheme for one in found.standings()] == ["vegas", "cubic"]
    policed = paceline.league(["cubic", "scream"], ["policer"], rounds=4).runs
    assert (policed["delay_s"] >= policed["least_delay_s"] * 0.98).all()


def test_each_of_several_flows_counts(tmp_path: Path) -> None:
    flows = '[flow.bulk]\ncount = 4\ncc = "vegas"'
    about = 'held = ["bulk", "test"]'
    name = written(tmp_path / "many.toml", 'delay = "20 ms"', flows, about=about)
    runs = paceline.league(["cubic", "bbr"], [name], rounds=2).runs
    assert runs["fair_bps"].to_list() == pytest.approx([8.05e6 / 5] * 4, rel=0.01)
    assert runs["share"].max() < 1  # type: ignore[operator]


def test_a_picture_on_an_idle_link_is_as_late_as_the_way_is_long(tmp_path: Path) -> None:
    draw = 'media = { uniform = ["1 Mbit/s", "1.1 Mbit/s"] }'
    name = written(tmp_path / "idle.toml", 'delay = "50 ms"', draw=draw)
    for row in paceline.league(["cubic", "bbr", "scream", "tfrc"], [name], rounds=2).runs.iter_rows(
        named=True
    ):
        assert row["delay_s"] == pytest.approx(row["least_delay_s"], abs=0.02), row["scheme"]
        assert row["share"] > 0.9


def test_an_encoder_may_send_more_than_a_link_ever_carries() -> None:
    (cellular,) = classes.find(["cellular"])
    draw = cellular.draw(1, 1)
    steps = draw.drawn["link.bottleneck.rate_schedule"]
    assert isinstance(steps, list)
    max_rate = max(Quantity.read(step["rate"]).value for step in steps)
    assert draw.peak_bps == max_rate
    (gcc, _) = entrants.named(["gcc", "scream"])
    app = gcc.enter(cellular, draw)["flow.test.app"]
    assert isinstance(app, dict)
    assert Quantity.read(app["max_rate"]).value > 1.4 * max_rate


def test_rounds_are_played_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = paceline.league(["cubic", "vegas"], ["shallow"], rounds=5)
    progress: list[tuple[float, float]] = []
    monkeypatch.setattr("paceline.leagues.running._AT_ONCE", 6)
    parts = paceline.league(
        ["cubic", "vegas"], ["shallow"], rounds=5, progress=lambda *at: progress.append(at)
    )
    assert parts.runs.equals(whole.runs)
    assert progress[-1] == (15, 15)
    assert [done for done, _ in progress] == sorted(done for done, _ in progress)


def test_scores() -> None:
    assert scoring.score(1, 1, 1) == 0
    assert scoring.score(0.5, 1, 1) == -1
    assert scoring.score(1, 4, 1) == -2
    assert scoring.score(1, 4, 0.5) == -1
    assert scoring.score(3, 0.9, 1) == 0, "more than all of it is not better, nor is a delay below the least"
    assert scoring.score(0, 1, 1) == pytest.approx(math.log2(scoring.MIN_SHARE))


def test_ranks_are_as_sure_as_the_tests_behind_them() -> None:
    draws = np.random.default_rng(1)
    common = draws.normal(0, 5, 30)
    scores = {
        name: (common + mean + draws.normal(0, 0.3, 30)).tolist()
        for name, mean in {"c": -2.0, "a": 0.0, "b": -0.02, "d": -2.02}.items()
    }
    found = {one.scheme: one for one in scoring.standings(scores)}
    assert {found["a"].rank, found["b"].rank} == {"1 to 2"}, "what all have in common is no difference"
    assert {found["c"].rank, found["d"].rank} == {"3 to 4"}
    assert sum(one.wins for one in found.values()) == pytest.approx(1)
    behind = found["c"].behind
    assert behind is not None
    assert behind.estimate.mean == pytest.approx(2, abs=0.3)


def test_rank_sets_hold_the_true_ranks() -> None:
    """All of them at once in 95 of 100 leagues: five schemes of which two pairs are alike."""
    means, draws, held = [0.0, 0.0, -0.3, -0.3, -1.0], np.random.default_rng(2), 0
    repeats = 400
    for _ in range(repeats):
        scores = {str(n): (mean + draws.normal(0, 0.4, 20)).tolist() for n, mean in enumerate(means)}
        found = scoring.standings(scores)
        true = {
            str(n): (1 + sum(other > mean for other in means), sum(other >= mean for other in means))
            for n, mean in enumerate(means)
        }
        held += all(one.best <= true[one.scheme][0] and true[one.scheme][1] <= one.worst for one in found)
    assert held / repeats >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / repeats)
    assert all(one.best <= 5 for one in found)
    assert found[-1].best == 5, "and they are not all of them"


def coarse(draws: np.random.Generator, rounds: int, names: str) -> dict[str, list[float]]:
    """Scores of equals, in whole steps."""
    return {name: draws.integers(-2, 3, rounds).astype(float).tolist() for name in names}


@pytest.mark.parametrize("rounds", [2, 3, 5, 10])
def test_of_equals_nobody_is_ranked_above_another(rounds: int) -> None:
    """Scores in coarse steps, of which a few rounds often agree: in at most one league of twenty."""
    draws, repeats = np.random.default_rng(rounds), 300
    split = 0
    for _ in range(repeats):
        found = scoring.standings(coarse(draws, rounds, "abcdef"))
        split += any(one.best > 1 or one.worst < 6 for one in found)
    assert split / repeats <= (0 if rounds < 5 else 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / repeats))


def test_an_unchanged_copy_widens_no_rank_but_by_its_place() -> None:
    draws = np.random.default_rng(3)
    scores = {
        name: (mean + draws.normal(0, 0.5, 20)).tolist()
        for name, mean in {"a": 0.0, "b": -0.6, "c": -1.2}.items()
    }
    before = {one.scheme: one for one in scoring.standings(scores)}
    after = {one.scheme: one for one in scoring.standings(scores | {"a again": list(scores["a"])})}
    assert [before[name].rank for name in "abc"] == ["1", "2", "3"]
    assert [after[name].rank for name in ("a", "a again", "b", "c")] == ["1 to 2", "1 to 2", "3", "4"]
    assert all(after[name].p == before[name].p for name in "bc")


def test_all_play_the_same_scenarios_with_the_same_seeds(played: tuple[League, Path]) -> None:
    found, _ = played
    assert len(found.runs) == len(SCHEMES) * len(CLASSES) * ROUNDS
    assert set(found.runs["round"]) == set(range(1, ROUNDS + 1))
    assert (found.runs["seed"] == found.runs["round"]).all()
    fair = found.runs.group_by("class", "round").agg(
        pl.col("fair_bps").n_unique(), pl.col("scheme").n_unique()
    )
    assert (fair["fair_bps"] == 1).all()
    assert (fair["scheme"] == len(SCHEMES)).all()
    game = next(g for g in found.games(4) if (g.of.key, g.label) == ("wired", "cubic"))
    this = (pl.col("class") == "wired") & (pl.col("scheme") == "cubic") & (pl.col("round") == 4)
    row = found.runs.row(by_predicate=this, named=True)
    alone = paceline.run(paceline.load(dict(game.draw.scenario), {"flow.test.cc": "cubic"}), seed=4)
    assert alone.summaries[0]["flows"][0]["goodput_bps"] == row["goodput_bps"]
    min_delay_s = row["least_delay_s"]
    assert row["score"] == pytest.approx(math.log2(row["share"]) - math.log2(row["delay_s"] / min_delay_s))


def test_who_plays_beside_it_changes_nothing(played: tuple[League, Path]) -> None:
    found, _ = played
    fewer = paceline.league(["vegas", "cubic"], ["media"], rounds=3, executor="processes", workers=2)
    for scheme in ("vegas", "cubic"):
        assert fewer.scores(fewer.classes[0])[scheme] == found.scores(found.classes[2])[scheme][:3]


def test_standings_are_those_of_the_runs(played: tuple[League, Path]) -> None:
    found, _ = played
    table = found.table
    assert len(table) == len(SCHEMES) * (1 + len(CLASSES))
    vegas = found.runs.filter((pl.col("scheme") == "vegas") & (pl.col("class") == "wired"))
    row = table.row(by_predicate=(pl.col("class") == "wired") & (pl.col("scheme") == "vegas"), named=True)
    assert row["score"] == pytest.approx(vegas["score"].mean())
    assert row["share"] == vegas["share"].median()
    overall = table.filter(pl.col("class").is_null() & (pl.col("scheme") == "vegas"))["score"][0]
    by_class = table.filter(pl.col("class").is_not_null() & (pl.col("scheme") == "vegas"))["score"]
    assert overall == pytest.approx(by_class.mean())


def test_the_worst_day_is_a_scenario_that_anyone_can_run(played: tuple[League, Path]) -> None:
    found, out = played
    best = found.runs.group_by("class", "round").agg(pl.col("score").max().alias("best"))
    behind = found.runs.join(best, on=["class", "round"]).with_columns(
        behind=pl.col("best") - pl.col("score")
    )
    for scheme, day in found.worst.items():
        worst = behind.filter(pl.col("scheme") == scheme).sort("behind").row(-1, named=True)
        assert day.behind == pytest.approx(worst["behind"])
        assert (day.game.of.key, day.game.draw.number) == (worst["class"], worst["round"])
        again = paceline.run(out / "worst" / f"{scheme}.toml").summaries[0]
        row = next(flow for flow in again["flows"] if flow["flow"] == "test")
        assert row["goodput_bps"] == worst["goodput_bps"]
        assert day.again.estimate.n == 10


def test_the_worst_day_of_ones_own_runs_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two whose names differ by a slash alone have a file each, and each names its controller from there."""
    for name in ("a/b.py", "a-b.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(MINE)
    monkeypatch.chdir(tmp_path)
    schemes = ["python:a/b.py:Mine", "python:a-b.py:Mine", "cubic"]
    (tmp_path / "old").mkdir()
    found = paceline.league(schemes, ["wired"], rounds=3)
    (tmp_path / "out" / "worst").mkdir(parents=True)
    (tmp_path / "out" / "worst" / "gone.toml").write_text("")
    found.write(tmp_path / "out")
    files = sorted(path.name for path in (tmp_path / "out" / "worst").iterdir())
    assert len(files) == len(found.worst) >= 2
    monkeypatch.chdir(tmp_path / "old")
    for label, day in found.worst.items():
        (file,) = (p for p in (tmp_path / "out" / "worst").iterdir() if f"day of {label} in" in p.read_text())
        row = paceline.run(file).summaries[0]["flows"][0]
        this = (pl.col("round") == day.game.draw.number) & (pl.col("scheme") == label)
        assert found.runs.row(by_predicate=this, named=True)["goodput_bps"] == row["goodput_bps"]


def test_a_league_goes_on_where_it_was(played: tuple[League, Path]) -> None:
    found, out = played
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    again = paceline.league(SCHEMES, CLASSES, rounds=ROUNDS, out=out)
    assert again.runs.equals(found.runs)
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").iterdir()} == before


def test_the_page_has_it_all(played: tuple[League, Path]) -> None:
    found, out = played
    page = (out / "index.html").read_text()
    for words in (*SCHEMES, *(of.title for of in found.classes), "Worst days", "uniform in the logarithm"):
        assert words in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")
    names = {path.name for path in (out / "figures").iterdir()}
    assert {"figure-overall.svg", "figure-media.png"} <= names
    assert pl.read_csv(out / "standings.csv").height == found.table.height
    assert json.loads((out / "manifest.json").read_text())["schemes"] == SCHEMES


MINE = """
import paceline
from paceline import events


class Mine(paceline.WindowController):
    \"\"\"A window that never grows\"\"\"

    def on_feedback(self, event, path):
        self.window = 2
"""


class Silent(paceline.WindowController):
    """Sends one packet at a time, and fails where the path is long"""

    def on_feedback(self, _event: Any, path: paceline.events.PathView) -> None:
        if path.srtt_s > 0.25:  # of which a delayed acknowledgement takes 200 ms
            raise RuntimeError("too far")
        self.window = 1


def test_a_controller_of_ones_own_plays_and_what_fails_is_last() -> None:
    with pytest.warns(paceline.PacelineWarning, match="too far"):
        found = paceline.league(["cubic"], ["wired"], schemes={"silent": Silent}, rounds=8)
    runs = found.runs.filter(pl.col("scheme") == "silent")
    assert 0 < runs["failed"].sum() < 8
    assert found.standings()[-1].scheme == "silent"
    assert found.table.filter(pl.col("scheme") == "silent")["failed"][0] == runs["failed"].sum()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: paceline.league(["cubic"]), "at least two"),
        (lambda: paceline.league(["cubic", "qubic"]), "no scheme 'qubic' \\(did you mean cubic"),
        (lambda: paceline.league(["cubic", "bbr"], seed=2**63 - 10), "seeds must be between"),
        (lambda: paceline.league(["cubic", "udp"]), "udp: has no rate of its own"),
        (lambda: paceline.league(["cubic", "bbr"], ["wierd"]), "no class 'wierd'"),
        (lambda: paceline.league(["cubic", "bbr"], rounds=1), "at least 2"),
        (lambda: paceline.league(["cubic", "bbr"], delay_weight=-1), "delay_weight"),
        (lambda: paceline.league(["cubic", "rap"], ["media"]), "rap cannot play media"),
        (
            lambda: paceline.league(["cubic", "bbr"], ["wired"], traces="examples/traces"),
            "in none of these classes",
        ),
        (lambda: paceline.run("leagues/wired.toml"), "paceline league --classes"),
    ],
)
def test_mistakes(call: Callable[[], Any], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(PacelineError, match=words):
        call()


WANDERS = (
    '"link.x.rate_schedule" = {{ wander = "1 Mbit/s", spread = 1, memory = "{memory}", out = {out}, '
    'every = "1 s" }}'
)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        ('"link.bottleneck.rate" = { uniform = ["1 Mbit/s", "2 s"] }', "must have the same unit"),
        (
            '"link.bottleneck.rate" = { uniform = ["2 Mbit/s", "1 Mbit/s"] }',
            "the range from 2 Mbit/s to 1 Mbit/s is empty",
        ),
        ('"link.bottleneck.rate" = { loguniform = [0, 1] }', "above 0"),
        ('"link.bottleneck.rate" = { evenly = [0, 1] }', "one of uniform"),
        ('"link.bottleneck.rate" = { uniform = ["1 Mbit/s", "2 Mbit/s"], of = 3 }', "no key 'of'"),
        ('"link.bottleneck.rate" = { uniform = [1, 2], times = "media" }', "must be drawn before"),
        ('"link.bottleneck.rate" = "3 Mbit/s"', "a law, as"),
        (
            '"link.bottleneck.rate_schedule" = { wander = "1 Mbit/s", spread = 1, every = "1 s" }',
            "needs memory",
        ),
        ('rate = { uniform = ["1 Mbit/s", "2 Mbit/s"] }', "a path, as"),
        ('"link.bottleneck.rate" = { uniform = [1, inf] }', "a number, or one with a unit"),
        ('"link.bottleneck.rate" = { loguniforn = [1, 2] }', "did you mean loguniform"),
        ('"link.bottleneck.rate" = { uniform = ["1 s", "2 s"] }', "is not a rate"),
        ('"link.bottleneck.rate.foo" = { uniform = [1, 2] }', "rate is a value, not a table"),
        ('"flow.test.count" = { choice = ["two"] }', "whole numbers from 1"),
        (WANDERS.format(memory="0 s", out=0), "memory: 0 s lies beyond"),
        (WANDERS.format(memory="1 s", out=-3), "out: -3 lies beyond"),
        (WANDERS.format(memory="1 Mbit/s", out=0), "memory: 1 Mbit/s is not in s"),
    ],
)
def test_mistakes_in_a_class(draw: str, words: str, tmp_path: Path) -> None:
    text = (ROOT / "leagues" / "wired.toml").read_text()
    head, _, rest = text.partition("[draw]")
    _, _, tail = rest.partition("[link.bottleneck]")
    file = tmp_path / "mine.toml"
    file.write_text(f"{head}[draw]\n{draw}\n[link.bottleneck]{tail}")
    with pytest.raises(PacelineError, match=words) as raised:
        classes.find([str(file)])
    assert str(file) in str(raised.value)


def test_the_documents_class_plays(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "leagues.md").read_text()
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "mine.toml").write_text(block)
    found = paceline.league(["cubic", "gcc"], [str(tmp_path / "mine.toml")], rounds=3)
    assert found.runs["share"].min() > 0.01  # type: ignore[operator]
    assert {
        game.draw.drawn["link.bottleneck.queue.kind"] for number in (1, 2, 3) for game in found.games(number)
    } <= {"droptail", "codel"}


def test_the_command(tmp_path: Path) -> None:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, ["league", *words])

    line = ["--schemes", "cubic,vegas:alpha=2,beta=4", "--classes", "wired", "--rounds", "3"]
    said = run(*line, "--out", str(tmp_path / "a"))
    assert said.exit_code == 0
    assert "vegas:alpha=2,beta=4" in said.stdout
    assert "index.html" in said.stdout
    document = json.loads(run(*line, "--out", str(tmp_path / "a"), "--json").stdout)
    assert {row["scheme"] for row in document["standings"]} == {"cubic", "vegas:alpha=2,beta=4"}
    assert "uniform in the logarithm" in " ".join(run("--list").stdout.split())
    wrong = run(*line, "--over", "moon")
    assert wrong.exit_code == 2
    assert "simulator or emulator" in wrong.stderr


def test_schemes_between_commas() -> None:
    assert command.words("cubic, vegas:alpha=2,beta=4,python:mine.py:Mine,bbr") == [
        "cubic",
        "vegas:alpha=2,beta=4",
        "python:mine.py:Mine",
        "bbr",
    ]
    assert command.words(None) == []


def test_a_notebook_shows_it(played: tuple[League, Path]) -> None:
    found, _ = played
    assert repr(found) == "<League of cubic, vegas, gcc, tfrc: 6 rounds of wired, policer, media>"
    shown = found._repr_html_()
    assert "not shown to be behind" in shown
    assert all(scheme in shown for scheme in SCHEMES)


SHORT = """
duration = "6 s"
warmup = "2 s"
[class]
title = "Short"
text = "A link for six seconds"
capacity = "link.bottleneck.rate"
[draw]
"link.bottleneck.rate" = { uniform = ["2 Mbit/s", "4 Mbit/s"] }
[link.bottleneck]
delay = "20 ms"
queue = { kind = "droptail", limit = "60 ms" }
[flow.test]
delays = true
"""


def test_a_sample_runs_over_emulated_paths_and_the_gap_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, gain=1.05)
    (tmp_path / "short.toml").write_text(SHORT)
    found = paceline.league(["cubic", "vegas"], [str(tmp_path / "short.toml")], rounds=3, out=tmp_path)
    emulated.sample(found, 2, out=tmp_path)
    assert found.gap is not None
    assert found.gap["n"].to_list() == [2, 2]
    for row in found.gap.iter_rows(named=True):
        assert row["goodput_gap"] == pytest.approx(0.05)
        assert row["rtt_gap"] == pytest.approx(0.05)
        assert row["goodput_emulated_bps"] == pytest.approx(1.05 * row["goodput_simulated_bps"])
    assert "Over emulated paths" in writing.write(found, tmp_path).read_text()
    with pytest.raises(PacelineError, match="1 to 3 rounds"):
        emulated.sample(found, 4)


def test_a_message_names_the_option_and_its_value() -> None:
    wrong = CliRunner().invoke(app, ["league", "--rounds", "1"])
    assert wrong.stderr.startswith("paceline: --rounds 1: a league needs at least 2")
