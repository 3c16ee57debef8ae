"""`paceline reproduce FOLDER`: a paper of the user's own, and what is said of its mistakes."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.files.paper_folders import PaperError
from paceline.papers import loading
from paceline.scenarios.scenario import toml_value
from small_paper import GOODPUT

SCENARIO = """
duration = "2 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.media]
"""
FIGURES = (
    """
[paper]
title = "A paper of mine"
authors = "Me"
published_in = "Nowhere yet"
summary = "Of little."
runs = 2
"""
    + GOODPUT
    + """
[metric.doubled]
label = "Twice the goodput"
expression = "2 * goodput"
[[series]]
key = "newreno"
label = "NewReno"
set = { "flow.media.cc" = "newreno" }
[study.rate]
figure = "1"
title = "Rates"
scenario = "one.toml"
record = "rate"
axis = { label = "Rate", unit = "Mbit/s", path = "link.bottleneck.rate", values = ["1 Mbit/s", "2 Mbit/s"], x = [1, 2] }
plot = [
    { key = "1a", title = "Goodput", metric = "doubled" },
    { key = "1b", title = "Rate", kind = "trace", label = "Mbit/s", trace = { column = "goodput_bps", scale = 1e-6 } },
]
[study.all]
figure = "2"
title = "All"
pool = ["rate"]
plot = [{ key = "2", title = "All", metric = "doubled", over = "goodput", kind = "scatter", lines_at = [1.5, 3] }]
"""
)
PUBLISHED = """
[[claim]]
key = "rises-{each}"
each = ["newreno"]
figure = "1"
where = "section 1"
says = "It rises"
kind = "trend"
sign = "+"
study = "rate"
ours = 'slope(goodput["{each}"], x)'
"""
FILES = {"figures.toml": FIGURES, "published.toml": PUBLISHED, "one.toml": SCENARIO}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a paper, below the working directory."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "work" / "my paper"
    made.mkdir(parents=True)
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


def here(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.mark.parametrize("given", ["work/my paper", "work/my paper/", "work/my paper/figures.toml"])
def test_a_folder_is_reproduced_into_out(given: str, folder: Path) -> None:
    done = here("reproduce", given)
    assert done.exit_code == 0, done.output
    assert "my paper: 2 points, 2 runs each" in done.output
    out = folder.parents[1] / "out" / "my paper"
    assert {path.name for path in (out / "figures").glob("*.svg")} == {
        f"figure-{n}.svg" for n in ("1a", "1b", "2")
    }
    page = (out / "index.html").read_text()
    assert "paceline reproduce &#39;work/my paper&#39; --runs 2" in page
    # The command beside a point gives its numbers again.
    point = pl.read_csv(out / "tables" / "points.csv").filter(metric="goodput").row(0, named=True)
    assert point["command"].startswith("paceline run 'work/my paper/one.toml' --set flow.media.cc=newreno")
    again = here("run", "work/my paper/one.toml", "--set", "flow.media.cc=newreno", "--set",
                 "link.bottleneck.rate=1 Mbit/s", "--seed", "1", "--runs", "2", "--json")  # fmt: skip
    (flow,) = json.loads(again.output)["flows"]
    assert flow["goodput_bps"]["mean"] * 1e-6 == pytest.approx(point["mean"], rel=1e-12)
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES), "the paper's folder is read alone"


def test_an_absolute_path_writes_nothing_into_the_paper(folder: Path) -> None:
    assert here("reproduce", folder, "--figure", "1", "--runs", "1").exit_code == 0
    assert (folder.parents[1] / "out" / "my paper" / "index.html").is_file()
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


def test_a_smaller_page_does_not_take_a_larger_ones_place(folder: Path) -> None:
    out = folder.parents[1] / "out" / "my paper"
    assert here("reproduce", folder).exit_code == 0
    whole = (out / "index.html").read_text()
    for words, lost in {
        ("--figure", "1"): "all figures",
        ("--runs", "1"): "2 runs per point",
        ("--figure", "1", "--runs", "1"): "all figures and 2 runs per point",
    }.items():
        done = here("reproduce", folder, *words)
        assert done.exit_code == 2, done.output
        assert f"holds a page with {lost}" in done.output
        assert "another --out" in done.output
        assert "about" not in done.output, "it is refused before anything is said of times"
        assert (out / "index.html").read_text() == whole
    assert here("reproduce", folder, "--figure", "1", "--out", "one").exit_code == 0
    assert "figure 1" in here("reproduce", folder, "--figure", "2", "--out", "one").output
    assert here("reproduce", folder, "--runs", "3", "--out", "one").exit_code == 0
    assert {p.name for p in Path("one/figures").glob("*.svg")} == {
        p.name for p in (out / "figures").glob("*.svg")
    }


def test_a_page_takes_no_other_things_place(folder: Path) -> None:
    assert here("run", folder / "one.toml", "--out", "run").exit_code == 0
    done = here("reproduce", folder, "--out", "run")
    assert done.exit_code == 2
    assert "run is the directory of a run" in done.output


def test_it_is_listed(folder: Path) -> None:
    done = here("reproduce", "--list", "work/my paper")
    assert "A paper of mine" in done.output
    done = here("reproduce", "--list", "work/my paper", "--figure", "1")
    assert "It rises" in done.output


def test_what_is_not_published_yet_needs_no_file(folder: Path) -> None:
    (folder / "published.toml").unlink()
    done = here("reproduce", folder, "--runs", "1")
    assert done.exit_code == 0, done.output
    assert "Nothing is published" in done.output


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("figures.toml", 'title = "Rates"', 'titel = "Rates"', "figures.toml: study.rate: needs title"),
        ("figures.toml", "runs = 2", "runs = 2\nrun = 3", "toml: paper: unknown run; there are authors"),
        ("figures.toml", "runs = 2", 'key_figure = "3"', "paper.key_figure: no plot '3'; there are 1a, 1b, 2"),
        ("figures.toml", 'key = "1b"', 'key = "1a"', "figures.toml: plot '1a' is given twice"),
        ("figures.toml", 'key = "1b"', 'key = "../1b"', "plot[1].key: names a file, so it may have letters"),
        ("figures.toml", '"2 Mbit/s"]', '"1 Mbit/s"]', "study.rate.axis: level '1 Mbit/s' is given twice"),
        ("figures.toml", "x = [1, 2]", 'x = [1, "2"]', "axis.x[1]: must be int or float, not '2'"),
        ("figures.toml", '["1 Mbit/s"', '["1 Mbps/s"', "figures.toml: study.rate at 1 Mbps/s, newreno: "),
        ("figures.toml", 'flow = "media"', 'flow = "film"', "metric.goodput.match: no row of flows has flow 'film'"),
        ("figures.toml", 'field = "goodput_bps"', 'field = "goodput"', "metric.goodput.field: flows has no goodput; "),
        ("figures.toml", 'column = "goodput_bps"', 'column = "goodput"', "plot 1b: rate has no goodput; there are "),
        ("published.toml", 'sign = "+"', 'sign = "up"', "claim[0] rises-{each}.sign: must be + or -, not 'up'"),
        ("published.toml", 'each = ["newreno"]', "each = 17", "claim[0] rises-{each}.each: must be list"),
        ("one.toml", "delay", "dely", "one.toml:5: link.bottleneck.dely: "),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_file_and_key(file: str, old: str, new: str, said: str, folder: Path) -> None:
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    done = here("reproduce", "work/my paper", "--runs", "1")
    assert done.exit_code == 2
    assert "work/my paper" in done.stderr or said.startswith("plot")
    assert said in done.stderr


def test_what_is_no_paper_says_what_one_is(folder: Path) -> None:
    for given, said in (
        ("work", "work holds no figures.toml"),
        ("nowhere", "no paper 'nowhere': there are lda-plus"),
    ):
        done = here("reproduce", given)
        assert done.exit_code == 2
        assert said in done.stderr


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in (
        tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    ):
        yield (*at, key)
        yield from places(value, (*at, key))


@pytest.mark.parametrize("file", ["figures.toml", "published.toml"])
def test_a_value_of_any_wrong_kind_is_named(file: str, folder: Path) -> None:
    whole = tomllib.loads(FILES[file])
    refused = 0
    for at in places(whole):
        for wrong in (17, "word", [[1]], {"a": 1}, True):
            tree = copy.deepcopy(whole)
            table: Any = tree
            for key in at[:-1]:
                table = table[key]
            table[at[-1]] = wrong
            (folder / file).write_text("\n".join(f"{key} = {toml_value(tree[key])}" for key in tree))
            try:
                loading.load(str(folder))
            except PaperError as error:
                refused += 1
                # A name that is changed may be missed in the other file.
                assert any(f"my paper/{name}" in str(error) for name in FILES), (at, wrong)  # noqa: PT017
    assert refused > 50
