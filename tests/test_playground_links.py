"""Links from the points of pages into the playground: one of each point, which gives the page's numbers."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import paceline
from paceline import playground
from paceline.leagues import writing as league_writing
from paceline.papers import loading, writing
from paceline.report import playground_links
from paceline.studies import points, reproduction
from paceline.suite import loading as suites
from paceline.suite import running
from paceline.suite import writing as suite_writing
from test_papers_page import probe
from test_papers_worlds import FIGURES, PUBLISHED, SCENARIO, Slower
from test_suite import PAUSES, SUITE, folder

ROOT = Path(__file__).resolve().parent.parent
TWIN = ROOT / "examples/controllers/reno_twin.py"
OWN = """
[[series]]
key = "own"
label = "Mine"
set = { "flow.media.cc" = "python:reno_twin.py:RenoTwin" }
"""
TRACED = 'rate_trace = { file = "cell.txt", format = "seconds-mbit" }\nbackward.rate = "4 Mbit/s"'


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A package with the playground in it."""
    page = tmp_path / "built.html"
    page.write_text("<!doctype html><title>The playground</title>")
    monkeypatch.setattr(playground, "page", lambda: page)
    return page.read_bytes()


def paper(where: Path, series: str = "") -> Path:
    where.mkdir()
    text = FIGURES.replace("[study.both]", f"{series}\n[study.both]")
    for name, content in {"one.toml": SCENARIO, "figures.toml": text, "published.toml": PUBLISHED}.items():
        (where / name).write_text(content)
    (where / TWIN.name).write_bytes(TWIN.read_bytes())
    return where


def links(page: Path) -> dict[str, str]:
    """The link of each row that has one."""
    rows = re.findall(r'<tr id="(p\d+)">(.*?)</tr>', page.read_text(), flags=re.DOTALL)
    found = {name: re.findall(r'<a class="to-playground" href="([^"]+)"', row) for name, row in rows}
    assert all(len(of) <= 1 for of in found.values())
    return {name: html.unescape(of[0]) for name, of in found.items() if of}


def test_each_simulated_point_opens_with_the_numbers_of_the_page(built: bytes, tmp_path: Path) -> None:
    done = reproduction.run(loading.load(str(paper(tmp_path / "small", OWN))), runs=3, real_time=Slower())
    page = writing.write(done, tmp_path / "out")
    assert (tmp_path / "out" / playground.NAME).read_bytes() == built
    places = [place for place, _, _ in points.places(done.paper.studies["both"])]
    simulated = [p for p in places if "emulated" not in p.level and p.series != "own"]
    found = links(page)
    names = {place: f"p{n}" for n, place in enumerate(places)}
    assert set(found) == {names[place] for place in simulated}
    for place in simulated:
        name, _, fragment = found[names[place]].partition("#")
        assert name == playground.NAME
        linked = playground.read(fragment)
        assert linked.runs == 3
        ran = paceline.run(linked.text, runs=linked.runs)
        assert ran.seeds == done.seeds
        assert (ran.flows["goodput_bps"] * 1e-6).to_list() == pytest.approx(
            done.values[place]["goodput"], rel=1e-12
        )
    text = page.read_text()
    assert text.count(playground_links.REAL) == text.count(playground_links.OWN) == 1, (
        "once, not at every point"
    )
    assert "with <code>playground.html</code> beside it" in text


def test_a_page_without_the_playground_says_nothing_of_it(
    built: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = reproduction.run(loading.load(str(paper(tmp_path / "small"))), runs=2)
    assert links(writing.write(done, tmp_path / "out"))
    monkeypatch.setattr(playground, "page", lambda: None)
    page = writing.write(done, tmp_path / "out")
    assert "playground" not in re.sub(r"<(script|style)>.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    assert not (tmp_path / "out" / playground.NAME).exists(), "nor does one of an earlier build stay"


def test_traces_go_with_a_point_unless_they_are_long(
    built: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = paper(tmp_path / "small")
    (where / "cell.txt").write_text("0 3\n10 1\n")
    one = (where / "one.toml").read_text()
    (where / "one.toml").write_text(one.replace('rate = "4 Mbit/s"', TRACED))
    done = reproduction.run(loading.load(str(where)), runs=1)
    study = done.paper.studies["both"]
    place = points.Place("both", "tcp", "simulated")
    linked = playground.read(playground_links.of_point(done, study, place).href)
    assert linked.files == {"cell.txt": "0 3\n10 1\n"}
    monkeypatch.setattr(playground, "LONGEST", 100)
    assert playground_links.of_point(done, study, place) == playground_links.Opening(
        why=playground_links.LONG
    )


def test_a_suites_points_open_but_those_that_change_with_the_seed(built: bytes, tmp_path: Path) -> None:
    text = SUITE.replace('key = "windows"', f'key = "windows"\nat = "grown"\n{PAUSES}')
    suite = suites.load(str(folder(tmp_path / "s", text)))
    result = running.run(suite, running.subjects_of(suite, ["cubic"]), runs=2)
    page = suite_writing.write(result, tmp_path / "out")
    made = result.made
    whole = [p for s in made.studies() if not s.change for p, _, _ in points.places(s) if made.values.get(p)]
    assert len(links(page)) == len(whole) > 0
    for link in links(page).values():
        assert paceline.parse(playground.read(link).text).flow_names() == ["media"]
    assert page.read_text().count(playground_links.CHANGED) == 1
    assert (tmp_path / "out" / playground.NAME).is_file()


def test_the_worst_days_of_a_league_open(built: bytes, tmp_path: Path) -> None:
    own = f"python:{TWIN}:RenoTwin"
    found = paceline.league(["cubic", "vegas", own], ["wired"], rounds=3, out=tmp_path)
    page = league_writing.write(found, tmp_path).read_text()
    opened = re.findall(r'<a class="to-playground" href="([^"]+)" [^>]*aria-label="([^":]+): open', page)
    days = {label: day.game.point.scenario for label, day in found.worst.items()}
    assert {label for _, label in opened} == {
        label for label, scenario in days.items() if not scenario.schemes
    }
    assert opened
    for link, label in opened:
        linked = playground.read(html.unescape(link))
        assert paceline.parse(linked.text).identity() == days[label].identity()
    assert (playground_links.OWN in page) is any(scenario.schemes for scenario in days.values())


def test_a_point_that_is_picked_in_a_figure_has_its_link_there(built: bytes, tmp_path: Path) -> None:
    done = reproduction.run(loading.load(str(paper(tmp_path / "small"))), runs=2)
    page = writing.write(done, tmp_path / "out")
    script = """
const plot = document.querySelector('[data-plot="1"]');
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
plot.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
const link = plot.parentElement.querySelector(".picked a");
const row = document.querySelector(`tr a[href="${link.getAttribute("href")}"]`);
return [link.textContent, Boolean(row), link.target];
"""
    assert probe(page, tmp_path, script) == ["Open in the playground", True, "_blank"]
