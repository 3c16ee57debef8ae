"""What a stranger confirms of a paper: shipped hashes hold, and what differs is found and named."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from paceline import _core, realtime
from paceline.errors import PacelineError
from paceline.files import paper_folders
from paceline.papers import bits, loading, verifying
from paceline.results.results import RunRecord
from paceline.simulate.points import simulate
from paceline.statistics import Estimate, independent_difference, welch_p_value
from paceline.studies import points, reproduction
from paceline.studies.paper import Paper
from paceline.studies.points import Place
from paceline.studies.study import World
from screen import Said, here
from small_paper import GOODPUT, TCP_AND_TFRC

CHEAP_S = 3.0
"""Core seconds that a paper's points may take in the test of what it ships."""

SCENARIO = """
duration = "4 s"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "10 ms"
[flow.media]
[flow.web]
start = { uniform = ["0 s", "1 s"] }
"""

FIGURES = f"""
[paper]
title = "T"
authors = "A"
published_in = "P"
summary = "S"
runs = 3
{GOODPUT}
{TCP_AND_TFRC}
[study.rate]
figure = "1"
title = "Rate"
scenario = "one.toml"
axis = {{ label = "Rate", path = "link.bottleneck.rate", values = ["2 Mbit/s", "3 Mbit/s"], x = [2, 3] }}
plot = [{{ key = "1", title = "Goodput", metric = "goodput" }}]
[study.twice]
figure = "2"
title = "The same run, and one that is recorded"
scenario = "one.toml"
record = "rate"
axis = {{ label = "Rate", level = [{{ label = "2", set = {{ "link.bottleneck.rate" = "2 Mbit/s" }} }}] }}
plot = [{{ key = "2", title = "Goodput", metric = "goodput" }}]
"""

REAL = """
[study.real]
figure = "3"
title = "In real time"
scenario = "one.toml"
axis = { label = "Where", level = [{ label = "real", world = "emulated" }] }
plot = [{ key = "3", title = "Goodput", metric = "goodput" }]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small paper, which ships nothing yet."""
    made = tmp_path / "mine"
    made.mkdir()
    (made / "one.toml").write_text(SCENARIO)
    (made / "figures.toml").write_text(FIGURES)
    return made


def typed(folder: Path, *options: str) -> Said:
    return here(["reproduce", "mine", "--verify", *options], folder.parent, {"COLUMNS": "200"})


def cheap(paper: Paper) -> Paper:
    """The paper with the cheapest simulated point of each study alone, dear ones excepted."""
    planned = reproduction.plan(replace(paper, claims=()), 1)
    costs: dict[str, tuple[float, Place]] = {}
    for cost, places, world in zip(planned.each_s, planned.places, planned.worlds, strict=True):
        for place in places if world is World.SIMULATED else ():
            if place.study not in costs or cost < costs[place.study][0]:
                costs[place.study] = cost, place
    studies, spent = {}, 0.0
    for cost, place in sorted(costs.values(), key=lambda one: one[0]):
        spent += cost
        if spent > CHEAP_S:
            break
        study = paper.studies[place.study]
        levels = tuple(level for level in study.levels if level.label == place.level)
        series = tuple(one for one in study.series if one.key == place.series)
        studies[place.study] = replace(study, levels=levels, series=series)
    return replace(paper, studies=studies, claims=())


@pytest.mark.parametrize("key", paper_folders.keys())
def test_what_a_paper_ships_is_what_its_simulator_gives(key: str) -> None:
    """The first runs of its cheapest points; all points are a command: paceline reproduce KEY --verify."""
    paper = loading.load(key)
    few = cheap(paper)
    found = verifying.compare(few, None, 1, verifying.make(few, 1), verifying.shipped(paper))
    assert not found.differing, f"remake it: paceline reproduce {key} --verify --write"
    assert found.same >= 3


@pytest.mark.parametrize("key", paper_folders.keys())
def test_every_simulated_point_ships_its_hashes(key: str) -> None:
    paper = loading.load(key)
    planned = reproduction.plan(paper, paper.runs)
    pairs = zip(planned.places, planned.worlds, strict=True)
    places = {place for own, world in pairs if world is World.SIMULATED for place in own}
    known = verifying.shipped(paper)
    assert known.keys() == places, f"remake it: paceline reproduce {key} --verify --write"
    assert {one.runs for one in known.values()} == {paper.runs}
    real = {place for place, _ in verifying.intervals(paper.folder)}
    assert all(points.world(paper.studies[place.study], place) is World.EMULATED for place in real)


def test_a_change_of_a_parameter_is_found() -> None:
    paper = loading.load("vegas-streaming")
    few = cheap(paper)
    key = next(iter(few.studies))
    study = few.studies[key]
    level = replace(
        study.levels[0], settings=(*study.levels[0].settings, ("link.bottleneck.rate", "10.001 Mbit/s"))
    )
    few = replace(few, studies={key: replace(study, levels=(level,))})
    found = verifying.compare(few, None, 1, verifying.make(few, 1), verifying.shipped(paper))
    assert [one.place.study for one in found.differing] == [key]
    assert not found.is_confirmed


def test_what_is_shipped_is_confirmed_and_a_change_is_named(folder: Path) -> None:
    refused = typed(folder)
    assert refused.code == 2
    assert "ships no bits.csv" in refused.text
    assert "paceline reproduce mine --verify --write" in refused.text
    written = typed(folder, "--write")
    assert written.code == 0, written.text
    rows = list(csv.DictReader((folder / "bits.csv").open()))
    assert len(rows) == 6
    assert {row["runs"] for row in rows} == {"3"}
    assert len({row["first"] for row in rows}) == 6

    again = typed(folder)
    assert again.code == 0, again.text
    assert "18 of 18 simulated runs are there from before, made by this very build." in again.text
    assert "6 of 6 points of the figures are the same bit by bit (seeds 1 to 3)." in again.text
    again = typed(folder, "--out", "fresh", "--runs", "1", "--figure", "2")
    assert "from before" not in again.text
    assert "2 of 2 points of the figures are the same bit by bit (seed 1)." in again.text
    said = json.loads((folder.parent / "fresh" / "verified.json").read_text())
    assert said["confirmed"] is True
    assert said["figure"] == "2"
    assert said["build"] == _core.build()
    assert said["provenance"]["host"]["machine"]

    (folder / "one.toml").write_text(SCENARIO.replace('"10 ms"', '"10.001 ms"'))
    changed = typed(folder)
    assert changed.code == 1
    assert "0 of 6 points" in changed.text
    for row in rows:
        assert row["first"] in changed.text
    assert "from before" not in changed.text, "runs of another scenario are of no use"


def test_all_runs_are_compared_where_all_are_made(folder: Path) -> None:
    assert typed(folder, "--write").code == 0
    path = folder / "bits.csv"
    rows = list(csv.DictReader(path.open()))
    last = rows[-1]["all"]
    path.write_text(path.read_text().replace(last, "0" * 16))
    few = typed(folder, "--runs", "2")
    assert few.code == 0
    assert "6 of 6 points of the figures are the same bit by bit (seed 1)." in few.text
    found = typed(folder, "--runs", "4")
    assert found.code == 1
    assert "5 of 6 points" in found.text
    table = found.text.partition("Not the same")[2]
    assert "seeds 1 to 3" in table
    assert last in table
    assert "0" * 16 in table


def test_a_point_without_hashes_is_not_confirmed(folder: Path) -> None:
    assert typed(folder, "--write").code == 0
    path = folder / "bits.csv"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    found = typed(folder)
    assert found.code == 1
    assert "not shipped" in found.text


def test_runs_of_another_build_are_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(folder, "--write").code == 0
    monkeypatch.setattr(_core, "build", lambda: "0.0.0+0")
    found = typed(folder)
    assert found.code == 0
    assert "from before" not in found.text


def test_what_cannot_be_is_refused(folder: Path) -> None:
    for options, says in [
        (["--write", "--runs", "1"], "leave out --figure and --runs"),
        (["--write", "--figure", "1"], "leave out --figure and --runs"),
        (["--full"], "leave out --full"),
        (["--readings"], "leave out --readings and --reading"),
        (["--reading", "other"], "leave out --readings and --reading"),
    ]:
        refused = typed(folder, *options)
        assert refused.code == 2
        assert says in " ".join(refused.text.split())
    alone = here(["reproduce", "mine", "--write"], folder.parent, {})
    assert (alone.code, "--write needs --verify" in alone.text) == (2, True)
    (folder / "bits.csv").write_text("study,series\n")
    assert "its first line must be study,series,level,runs,first,all" in typed(folder).text
    (folder / "bits.csv").write_text("study,series,level,runs,first,all\nrate,tcp,2 Mbit/s,none,a,b\n")
    assert "line 2: runs must be a number from 1 on, not 'none'" in typed(folder).text


def test_a_hash_is_of_every_bit() -> None:
    def of(summary: dict[str, object], **columns: list[object]) -> str:
        return bits.of_run(RunRecord(1, summary, {"rate": pl.DataFrame(columns)} if columns else {}))

    first = of({"a": 0.1, "b": None}, flow=["x"], time_s=[0.1])
    assert of({"b": None, "a": 0.1}, time_s=[0.1], flow=["x"]) == first
    others = [
        of({"a": 0.1 + 2**-55, "b": None}, flow=["x"], time_s=[0.1]),
        of({"a": 0.1, "b": 0}, flow=["x"], time_s=[0.1]),
        of({"a": 0.1, "b": None}, flow=["y"], time_s=[0.1]),
        of({"a": 0.1, "b": None}, flow=["x"], time_s=[0.1 + 2**-55]),
        of({"a": 0.1, "b": None}, flow=["x"], time_s=[None]),
        of({"a": 0.1, "b": None}, flow=["x"], time_s=[0.0]),
        of({"a": 0.1, "b": None}),
    ]
    assert len({first, *others}) == 1 + len(others)
    # ARM's NaN has no sign, and x86's has
    assert of({}, rate=[float("nan")]) == of({}, rate=[-float("nan")])
    assert bits.of_runs(["a", "b"]) != bits.of_runs(["b", "a"])


class InNoTime:
    """Stands in for real time: the simulator, with seeds of its own as no two real runs are the same."""

    def __init__(self, rate: str = "4 Mbit/s", seeds_from: int = 100) -> None:
        self.rate, self.seeds_from = rate, seeds_from

    def __call__(
        self, scenario: _core.Scenario, seed: int, record: Sequence[str], record_every_s: float
    ) -> RunRecord:
        changed = scenario.set("link.bottleneck.rate", f'"{self.rate}"')
        kept = [kind for kind in record if kind == "rate"]
        watch = _core.Watch()
        output = simulate(changed, self.seeds_from + seed, kept, record_every_s, watch, None)
        return replace(RunRecord.of(seed, output), seed=seed)


@pytest.mark.parametrize(("rate", "code"), [("4 Mbit/s", 0), ("300 kbit/s", 1)])
def test_real_time_is_compared_by_interval(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rate: str, code: int
) -> None:
    (folder / "figures.toml").write_text(FIGURES + REAL)
    monkeypatch.setattr(realtime, "refused", lambda: None)
    monkeypatch.setattr(realtime, "Emulator", InNoTime)
    written = typed(folder, "--write")
    assert written.code == 0, written.text
    shipped = verifying.intervals(folder)
    assert {(place.series, metric) for place, metric in shipped} == {("tcp", "goodput"), ("tfrc", "goodput")}
    assert all(one.n == 3 and one.half_width for one in shipped.values())

    monkeypatch.setattr(realtime, "Emulator", functools.partial(InNoTime, rate, 200))
    found = typed(folder, "--out", "other")
    assert found.code == code, found.text
    words = " ".join(found.text.split())
    assert f"2 points in real time, by interval and not bit by bit: {2 - 2 * code} of 2 means" in words
    assert ("Means that differ" in found.text) == bool(code)
    one = typed(folder, "--out", "one", "--runs", "1")
    assert "Left out: 2 points in real time, whose means have no interval below two runs." in one.text
    assert "Left out: 2 points in real time, by --simulated." in typed(folder, "--simulated").text
    monkeypatch.setattr(realtime, "refused", lambda: "no namespaces here")
    assert "which this machine cannot run: no namespaces here" in typed(folder).text
    (folder / "intervals.csv").unlink()
    assert "ships no intervals.csv" in typed(folder).text


def test_a_damaged_interval_is_named(folder: Path) -> None:
    (folder / "intervals.csv").write_text(
        "study,series,level,metric,mean,half_width,runs\nreal,tcp,real,goodput,1,0.5,1\n"
    )
    with pytest.raises(PacelineError, match=r"intervals\.csv: line 2: .* runs at least 2"):
        verifying.intervals(folder)


def test_an_interval_gives_back_its_deviation(folder: Path) -> None:
    ours = Estimate.of(4, 2.5, 0.3)
    (folder / "intervals.csv").write_text(
        "study,series,level,metric,mean,half_width,runs\n"
        f"real,tcp,real,goodput,{ours.mean},{ours.half_width},{ours.n}\n"
    )
    (read,) = verifying.intervals(folder).values()
    assert read.sd == pytest.approx(0.3, rel=1e-12)


def test_welch_p_value_is_that_of_the_interval() -> None:
    """At the confidence 1 - p the interval of the difference ends at zero."""
    first, second = [1.0, 1.2, 0.9], [1.5, 1.4, 1.9, 1.6]
    of = [Estimate.of(3, *_moments(first)), Estimate.of(4, *_moments(second))]
    p = welch_p_value(*of)
    assert p is not None
    interval = independent_difference(first, second, confidence=1 - p)
    assert interval.low == pytest.approx(0.0, abs=1e-12)
    assert welch_p_value(of[0], of[0]) == pytest.approx(1.0)
    assert welch_p_value(Estimate.of(3, 1.0, 0.0), Estimate.of(3, 1.0, 0.0)) == 1.0
    assert welch_p_value(Estimate.of(3, 1.0, 0.0), Estimate.of(3, 2.0, 0.0)) == 0.0
    assert welch_p_value(of[0], Estimate.of(1, 1.0, None)) is None


def _moments(values: Sequence[float]) -> tuple[float, float]:
    mean = sum(values) / len(values)
    return mean, (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5
