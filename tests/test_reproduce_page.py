"""A small paper from its files to its page, tables and figures, and the page in a browser."""

from __future__ import annotations

import html
import io
import json
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from needs import require
from paceline.cli import app
from paceline.errors import Interrupted
from paceline.reproduce import figures, loading, measure, page, reproduction, where, writing
from paceline.reproduce.points import Place
from paceline.reproduce.reproduction import Reproduction
from paceline.statistics import Estimate
from paceline.store import Store
from small_paper import GOODPUT

SCENARIO = """
duration = "3 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.media]
cc = "newreno"
"""
FIGURES = (
    """
[paper]
title = "A <small> paper"
authors = "Somebody & others"
published_in = "Nowhere"
summary = "Of little."
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
[[series]]
key = "vegas"
label = "Vegas"
set = { "flow.media.cc" = "vegas" }
[study.rate]
figure = "1"
title = "Rates"
scenario = "one.toml"
axis = { label = "Rate", unit = "Mbit/s", path = "link.bottleneck.rate", values = ["1 Mbit/s", "2 Mbit/s"], x = [1, 2] }
plot = [
    { key = "1a", title = "Goodput", metric = "goodput" },
    { key = "1b", title = "Twice", metric = "doubled", kind = "bars" },
    { key = "1c", title = "Twice over once", metric = "doubled", over = "goodput", kind = "scatter" },
]
[study.again]
figure = "2"
title = "The same points again"
scenario = "two.toml"
axis = { label = "Rate", unit = "Mbit/s", path = "link.bottleneck.rate", values = ["2 Mbit/s"], x = [2] }
plot = [{ key = "2a", title = "Goodput", metric = "goodput" }]
[study.time]
figure = "3"
title = "Over time"
scenario = "one.toml"
record = "rate"
axis = { label = "Rate", path = "link.bottleneck.rate", values = ["2 Mbit/s"], x = [2] }
[[study.time.plot]]
key = "3a"
title = "Rate"
kind = "trace"
label = "Goodput (Mbit/s)"
trace = { column = "goodput_bps", scale = 1e-6 }
[[study.time.plot]]
key = "3b"
title = "Equality"
kind = "trace"
label = "Jain's index"
trace = { jain = 1 }
[study.all]
figure = "4"
title = "All runs"
pool = ["rate"]
plot = [{ key = "4a", title = "All", metric = "doubled", over = "goodput", kind = "scatter", lines_at = [1.5, 3] }]
[study.share]
figure = "5"
title = "One beside another"
scenario = "one.toml"
axis = { label = "Rate", unit = "Mbit/s", path = "link.bottleneck.rate", values = ["1 Mbit/s", "2 Mbit/s"], x = [1, 2] }
[[study.share.plot]]
key = "5a"
title = "Vegas over NewReno"
kind = "curves"
label = "Ratio"
curve = [
    { key = "ratio", label = "Vegas", y = 'goodput["vegas", "{level}"] / goodput["newreno", "{level}"]' },
    { key = "one", label = "One", y = "1", marked = false, dashed = true },
]
[[study.share.plot]]
key = "5b"
title = "Against what it had"
kind = "curves"
label = "Goodput (Mbit/s)"
x = 'goodput["newreno", "{level}"]'
x_label = "NewReno's (Mbit/s)"
log_y = true
curve = [{ key = "vegas", label = "Vegas", y = 'goodput["vegas", "{level}"]', joined = false }]
[study.live]
figure = "6"
title = "On a real path"
later = "needs <sockets>"
[[finding]]
title = "Nothing is <wrong>"
text = "It is & remains so.\\n\\nReally."
"""
)
PUBLISHED = """
[[claim]]
key = "high-{each}"
each = ["newreno", "vegas"]
figure = "1"
where = "section 1"
says = "A number that nobody reaches ({each})"
kind = "printed"
published = 5000
last_digit = 1
unit = "Mbit/s"
study = "rate"
ours = 'goodput["{each}", "2 Mbit/s"]'
if_differs = "It was <invented>."
show = [{ plot = "1a", series = "{each}", level = "2 Mbit/s" }]
[[claim]]
key = "twice"
figure = "1"
where = "section 1"
says = "Twice is twice"
kind = "about"
published = 2
study = "rate"
ours = 'doubled["vegas", "1 Mbit/s"] / goodput["vegas", "1 Mbit/s"]'
show = [{ plot = "1b", series = "vegas", level = "1 Mbit/s", bound = "below", value = 3 }]
[[claim]]
key = "both"
figure = "5"
where = "section 2"
says = "Both get something"
kind = "ordering"
sign = "+"
study = "share"
ours = 'mean(goodput["vegas"] / goodput["newreno"])'
show = [{ plot = "5a", series = "ratio", level = "1 Mbit/s", bound = "above", value = 0.5 }]
[[claim]]
key = "live"
figure = "6"
where = "section 3"
says = "So many"
kind = "printed"
published = 17
last_digit = 1
study = "live"
"""
RUNS = 3


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers") / "little"
    folder.mkdir()
    (folder / "figures.toml").write_text(FIGURES)
    (folder / "published.toml").write_text(PUBLISHED)
    (folder / "one.toml").write_text(SCENARIO)
    (folder / "two.toml").write_text(SCENARIO)
    return folder.parent


@pytest.fixture(scope="module")
def done(root: Path) -> Reproduction:
    return reproduction.run(loading.load(str(root / "little")), runs=RUNS, workers=2)


@pytest.fixture(scope="module")
def out(done: Reproduction, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out")
    writing.write(done, folder)
    return folder


def test_points_that_studies_share_run_once(root: Path) -> None:
    planned = reproduction.plan(loading.load(str(root / "little")), RUNS)
    # Two series at two rates; figure 2's and 5's are among them; figure 3's are recorded, and so runs of their own.
    assert len(planned.points) == 4 + 2
    assert sorted(len(places) for places in planned.places) == [1, 1, 2, 2, 3, 3]


def test_a_number_that_nobody_reaches_differs_and_twice_is_twice(done: Reproduction) -> None:
    outcomes = {r.claim.key: str(r.verdict.outcome) for r in done.results}
    live = outcomes.pop("live")
    assert outcomes == {
        "high-newreno": "differs",
        "high-vegas": "differs",
        "twice": "agrees",
        "both": "agrees",
    }
    assert done.counts() == {"agrees": 2, "differs": 2, "undecided": 0, "open": 1}
    assert live == "open"
    assert done.results[-1].verdict.because == "not yet run: needs <sockets>"
    assert done.results[-1].ours is None


def test_curves_are_expressions_at_each_level(done: Reproduction) -> None:
    study = done.paper.studies["share"]
    ratio, one = study.plots[0].curves
    found = measure.curve_points(done.paper, study, ratio, done.values)
    assert [p.x for p in found] == [1, 2]
    for point, level in zip(found, study.levels, strict=True):
        top, bottom = (done.values[Place("share", s, level.label)]["goodput"] for s in ("vegas", "newreno"))
        assert point.y.mean == pytest.approx(sum(top) / sum(bottom))
        assert point.y.half_width is not None
    assert [p.y.mean for p in measure.curve_points(done.paper, study, one, done.values)] == [1.0, 1.0]
    (against,) = study.plots[1].curves
    xs = [p.x for p in measure.curve_points(done.paper, study, against, done.values)]
    mine = [done.values[Place("share", "newreno", level.label)]["goodput"] for level in study.levels]
    assert xs == pytest.approx([sum(m) / RUNS for m in mine])


def test_series_share_their_seeds(done: Reproduction) -> None:
    assert done.seeds == [1, 2, 3]
    table = pl.concat([t.select(pl.lit(p.series).alias("series"), "seed") for p, t in done.recorded.items()])
    assert table.unique().sort("series", "seed")["seed"].to_list() == [1, 2, 3] * 2


def test_tables_hold_runs_points_and_verdicts(out: Path, root: Path) -> None:
    runs = pl.read_parquet(out / "tables" / "runs.parquet")
    assert len(runs) == (4 + 2 + 2 + 4) * RUNS
    points = pl.read_csv(out / "tables" / "points.csv")
    of = points.filter(study="rate", series="vegas", level="2 Mbit/s", metric="goodput").row(0, named=True)
    mine = runs.filter(study="rate", series="vegas", level="2 Mbit/s")["goodput"]
    assert of["mean"] == pytest.approx(mine.mean())
    assert of["runs"] == RUNS
    assert of["command"].startswith(f"paceline run {root}/little/one.toml --set flow.media.cc=vegas")
    verdicts = pl.read_parquet(out / "tables" / "verdicts.parquet")
    assert verdicts["verdict"].to_list() == ["differs", "differs", "agrees", "agrees", "open"]
    assert verdicts["if_differs"].to_list() == ["It was <invented>."] * 2 + [""] * 3


def test_figures_are_pictures(out: Path) -> None:
    names = {"1a", "1b", "1c", "2a", "3a", "3b", "4a", "5a", "5b"}
    assert {p.name for p in (out / "figures").iterdir()} == {
        f"figure-{n}.{k}" for n in names for k in ("svg", "png")
    }
    for path in (out / "figures").iterdir():
        start = path.read_bytes()[:8]
        assert start == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else start.startswith(b"<?xml")


@pytest.mark.parametrize("words", ["TCP", "TFRC Veno, simulated, as short"])
def test_a_long_legend_lies_within_its_figure(words: str) -> None:
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for i in range(10):
        axes.plot([0, 1], label=f"{words} {i}")
    figures._legend_below(figure, axes.get_legend_handles_labels()[1])
    figure.savefig(io.BytesIO())
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert axes.get_window_extent().height > 0.5 * figure.bbox.height


def test_the_page_asks_nobody_for_anything(out: Path) -> None:
    text = (out / "index.html").read_text()
    assert text.count("plotly.js v") == 1, "plotly.js stands in the page once"
    own = text.replace(page.plotly_source(), "")
    assert len(own) < len(text) / 10
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", own)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", own)
    assert "default-src 'none'" in own


def test_the_page_says_what_differs_and_how_to_run_it_again(out: Path, root: Path) -> None:
    text = (out / "index.html").read_text().replace(page.plotly_source(), "")
    assert "<h1>A &lt;small&gt; paper</h1>" in text
    assert "It was &lt;invented&gt;." in text
    assert "Nothing is &lt;wrong&gt;" in text
    assert text.count('class="verdict differs"') == 2
    assert text.count('class="verdict agrees"') == 2
    assert text.count('class="verdict open"') == 1
    assert "not yet run: needs &lt;sockets&gt;" in text
    assert set(re.findall(r'data-toggle="([^"]*)"', text)) == {"newreno", "vegas", "published"}
    commands = {html.unescape(c) for c in re.findall(r'data-copy="([^"]*)"', text)}
    settings = "--set flow.media.cc=vegas --set 'link.bottleneck.rate=2 Mbit/s'"
    assert f"paceline run {root}/little/two.toml {settings} --seed 1 --runs 3" in commands
    assert f"<code>paceline reproduce {root}/little --runs 3</code>" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    first = data["plots"][0]
    assert [p["y"] for p in first["published"]] == [5000.0, 5000.0], (
        "published values are points, never a curve"
    )
    assert [len(s["y"]) for s in first["series"]] == [2, 2]
    assert all(h >= 0 for s in first["series"] for h in s["half"])
    plots = {plot["id"]: plot for plot in data["plots"]}
    spots = plots["plot-1c"]["series"]
    assert [s["label"] for s in spots] == [
        f"{rate} Mbit/s, {who}" for rate in (1, 2) for who in ("NewReno", "Vegas")
    ]
    assert all(
        s["y"][0] == pytest.approx(2 * s["x"][0], rel=1e-4) and min(s["across"] + s["up"]) >= 0 for s in spots
    )
    index = plots["plot-3b"]["series"]
    assert [set(line["y"]) for line in index] == [{1.0}, {1.0}], "one flow is equal to itself"


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
    assert page.plus_minus(ours) == text


def test_an_interrupted_reproduction_goes_on_where_it_was(root: Path, tmp_path: Path) -> None:
    paper = loading.load(str(root / "little"))
    store = Store(tmp_path)

    def stop(done: float, _: float) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        reproduction.run(paper, runs=RUNS, workers=1, store=store, progress=stop)
    kept = len(list(store.runs.glob("*.json")))
    assert 4 <= kept < 6 * RUNS
    assert (caught.value.finished, caught.value.total) == (kept, 6 * RUNS), "those of all studies"
    seen: list[float] = []
    again = reproduction.run(paper, runs=RUNS, workers=1, store=store, progress=lambda d, _: seen.append(d))
    assert seen[0] >= 4, "what was kept counts as done from the start"
    assert len(list(store.runs.glob("*.json"))) == 6 * RUNS
    fresh = reproduction.run(paper, runs=RUNS, workers=2)
    assert again.values == fresh.values


def test_the_command_line_names_what_there_is() -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["reproduce", "--list"])
    assert listed.exit_code == 0, listed.output
    assert "vegas-streaming" in listed.output
    assert "levels off" not in listed.output, "statements are for --figure"
    assert len(listed.output.splitlines()) < 40 * len(where.keys())
    claims = runner.invoke(app, ["reproduce", "--list", "vegas-streaming", "--figure", "7"])
    row = next(
        line for line in claims.output.splitlines() if line.startswith("Late packets at 8:20 (newreno)")
    )
    assert "15 %" in row, "published numbers have their units"
    assert "levels off" in claims.output
    of_one_paper = runner.invoke(app, ["reproduce", "--list", "--figure", "5"])
    assert of_one_paper.exit_code == 0, of_one_paper.output
    assert "tfrc-veno" not in of_one_paper.output, "it has no figure 5"
    for words, said in {
        ("reproduce",): "which paper?",
        ("reproduce", "vegas"): "no paper 'vegas'",
        ("reproduce", "vegas-streaming", "--figure", "9"): "has no figure 9",
        ("reproduce", "--list", "--figure", "99"): "no paper has a figure 99",
        ("reproduce", "vegas-streaming", "--runs", "0"): "--runs 0: at least 1",
        ("reproduce", "vegas", "--runs", "0"): "--runs 0: at least 1",
    }.items():
        failed = runner.invoke(app, list(words))
        assert failed.exit_code == 2, failed.output
        assert said in failed.output
        assert "runs each" not in failed.output, "what is refused has no estimate"


def test_the_page_draws_every_plot_in_a_browser(out: Path, tmp_path: Path) -> None:
    require("chromium")
    dom = browse(out / "index.html", tmp_path, "--dump-dom")
    assert re.search(r'<html[^>]* data-drawn="9"', dom), "the script ran to its end, with every plot drawn"
    for key in ("1a", "1b", "1c", "2a", "3a", "3b", "4a", "5a", "5b"):
        plot = re.search(rf'id="plot-{key}".*?</figure>', dom, re.DOTALL)
        assert plot
        assert "main-svg" in plot[0], f"plot {key} is drawn"
    figure = re.search(r'id="plot-1a".*?</figure>', dom, re.DOTALL)
    assert figure
    assert figure[0].count('class="errorbar"') == 4, "each of our points has its interval"
    assert ">published<" in figure[0]


def browse(path: Path, profile: Path, *what: str) -> str:
    """What a headless browser without a network prints about a page."""
    quiet = [
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-quic",
    ]
    return subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            *quiet,
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={profile}",
            "--virtual-time-budget=20000",
            *what,
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
