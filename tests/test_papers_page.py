"""A small paper from its files to its page, tables and figures, and the page in a browser."""

from __future__ import annotations

import html
import itertools
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from needs import require
from paceline.errors import Interrupted
from paceline.papers import loading, page, writing
from paceline.report import figures
from paceline.results.store import Store
from paceline.studies import measure, reproduction
from paceline.studies.paper import Abstract
from paceline.studies.points import Place
from paceline.studies.reproduction import Reproduction
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
RUNS = 5


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


def test_a_number_that_nobody_reaches_is_off_and_twice_is_twice(done: Reproduction) -> None:
    outcomes = {r.claim.key: str(r.verdict.outcome) for r in done.results}
    live = outcomes.pop("live")
    assert outcomes == {
        "high-newreno": "off",
        "high-vegas": "off",
        "twice": "agrees",
        "both": "agrees",
    }
    assert done.counts() == {"agrees": 2, "off": 2, "contradicts": 0, "undecided": 0, "open": 1}
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
    assert done.seeds == [1, 2, 3, 4, 5]
    table = pl.concat([t.select(pl.lit(p.series).alias("series"), "seed") for p, t in done.recorded.items()])
    assert table.unique().sort("series", "seed")["seed"].to_list() == [1, 2, 3, 4, 5] * 2


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
    assert verdicts["verdict"].to_list() == ["off", "off", "agrees", "agrees", "open"]
    assert verdicts["if_differs"].to_list() == ["It was <invented>."] * 2 + [""] * 3


def test_figures_are_pictures(out: Path) -> None:
    names = {"1a", "1b", "1c", "2a", "3a", "3b", "4a", "5a", "5b"}
    assert {p.name for p in (out / "figures").iterdir()} == {
        f"figure-{n}.{k}" for n in names for k in ("svg", "png")
    }
    for path in (out / "figures").iterdir():
        start = path.read_bytes()[:8]
        assert start == b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else start.startswith(b"<?xml")


def test_published_points_lie_beside_ours_and_each_other(done: Reproduction) -> None:
    study = done.paper.studies["rate"]
    drawn = figures.draw(done, study, study.plots[0])
    figures.svg(drawn)
    at = [mark for mark in drawn.marks if "2 Mbit/s:" in mark.text]
    assert [mark.name for mark in at].count("published") == 2
    across = sorted(drawn.where(mark.axes, mark.x, mark.y)[0] for mark in at)
    assert len(across) == 4
    assert all(b - a > 4 for a, b in itertools.pairwise(across)), "points apart, in 1/72 of an inch"


def test_the_page_asks_nobody_for_anything(out: Path) -> None:
    text = (out / "index.html").read_text()
    assert len(text) < 400_000
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text


def test_the_page_has_the_figures_in_its_own_colours(out: Path) -> None:
    text = (out / "index.html").read_text()
    shown = dict(re.findall(r'data-plot="([^"]*)">(<svg.*?</svg>)', text, re.DOTALL))
    assert set(shown) == {"1a", "1b", "1c", "2a", "3a", "3b", "4a", "5a", "5b"}
    for key, svg in shown.items():
        assert 'role="img" aria-label="' in svg
        ids = re.findall(r'\bid="([^"]*)"', svg)
        assert all(name.startswith(f"plot-{key}-") for name in ids)
        assert {name[1:] for name in re.findall(r"#[\w-]+", svg) if name.startswith("#plot")} <= set(ids)
    looks = re.findall(r"^\.z\d+ (\{.*\})$", text, re.MULTILINE)
    assert any("var(--c1)" in look for look in looks)
    assert not [look for look in looks if re.search(r"#[0-9a-f]{6}", look)], (
        "a colour that stays on a dark page"
    )
    every = re.findall(r'\bid="([^"]*)"', text)
    assert len(every) == len(set(every))


def test_the_page_says_what_differs_and_how_to_run_it_again(out: Path, root: Path) -> None:
    text = (out / "index.html").read_text()
    assert "<h1>A &lt;small&gt; paper</h1>" in text
    assert "It was &lt;invented&gt;." in text
    assert "Nothing is &lt;wrong&gt;" in text
    assert text.count('class="verdict off"') == 2
    assert text.count('class="verdict agrees"') == 2
    assert text.count('class="verdict open"') == 1
    assert "not yet run: needs &lt;sockets&gt;" in text
    assert set(re.findall(r'data-toggle="([^"]*)"', text)) == {"newreno", "vegas", "published"}
    rows = dict(re.findall(r'<tr id="(p\d+)">.*?<code>(.*?)</code>', text, re.DOTALL))
    commands = {html.unescape(c) for c in rows.values()}
    settings = "--set flow.media.cc=vegas --set 'link.bottleneck.rate=2 Mbit/s'"
    assert f"paceline run {root}/little/two.toml {settings} --seed 1 --runs 5" in commands
    assert f"<code>paceline reproduce {root}/little --runs 5</code>" in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])  # type: ignore[index]
    assert len(data) == 9
    marks = data["1a"]["marks"]
    published = [mark for mark in marks if mark[3] == "published"]
    assert [mark[4] for mark in published] == [
        f"{who}, 2 Mbit/s: published 5000 Mbit/s" for who in ("NewReno", "Vegas")
    ]
    ours = [mark for mark in marks if mark[3] != "published"]
    assert len(ours) == 4
    for mark in ours:
        assert re.fullmatch(r"\w+, [12] Mbit/s: [\d.]+( ± .*|, all 5) Mbit/s", mark[4])
        assert f"flow.media.cc={mark[2]}" in rows[mark[5]], "the row of the point itself"
    spots = data["1c"]["marks"]
    assert [mark[4].split(":")[0] for mark in spots] == [
        f"{rate} Mbit/s, {who}" for rate in (1, 2) for who in ("NewReno", "Vegas")
    ]
    assert data["5a"]["marks"][-1][4] == "Vegas, 1 Mbit/s: published above 0.5"


def test_what_nothing_published_is_held_against_is_folded_away(out: Path) -> None:
    text = (out / "index.html").read_text()
    main, _, others = text.partition('<details class="fold part" id="others">')
    others = others.partition('id="made"')[0]
    for key, there in {"rate": main, "share": main, "live": main, "again": others, "time": others}.items():
        assert f'<section id="{key}"' in there
    folds = re.findall(r"<details[^>]*>", text)
    assert len(folds) > 10
    assert not [fold for fold in folds if " open" in fold]
    assert '<span class="tally off">2 are off</span>' in main


def test_a_figure_of_which_nothing_counts_has_no_row_of_zeros(done: Reproduction) -> None:
    def rows(shown: Reproduction) -> list[str]:
        table = re.search(r'<table class="overview">.*?</table>', page.render(shown), re.DOTALL)
        assert table
        return re.findall(r'<a href="#([\w-]+)">', table[0])

    assert rows(done) == ["rate", "share", "live"]
    results = [
        replace(r, claim=replace(r.claim, beside="fitted")) if r.claim.study == "share" else r
        for r in done.results
    ]
    assert rows(replace(done, results=results)) == ["rate", "live"]


def test_the_first_screen_has_question_answers_totals_and_causes(done: Reproduction, tmp_path: Path) -> None:
    finding = Abstract("It is <quick>", "Yes & no.", tuple(r.claim.key for r in done.results[:1]))
    paper = replace(done.paper, abstract=(finding,), key_figure="5a", runs=RUNS)
    text = page.render(replace(done, paper=paper))
    head = text[text.index("<header") : text.index("</header>")]
    assert "Of little." in head
    assert "It is &lt;quick&gt;" in head
    assert "<dd>Yes &amp; no.</dd>" in head
    assert "<svg" not in head
    assert text.count('data-plot="5a"') == 2
    every = re.findall(r'\bid="([^"]*)"', text)
    assert len(every) == len(set(every)), "its names are its own"
    path = tmp_path / "index.html"
    path.write_text(text)
    script = "return ['.question', '.answers', '.sum'].map(bottom);"
    assert max(probe(path, tmp_path, script)) <= 900
    assert max(probe(path, tmp_path, script, width=400)) <= 800
    # the figure that shows it comes next
    assert min(probe(path, tmp_path, "return ['figure.key svg', '.overview'].map(bottom);")) <= 1100


def test_an_interrupted_reproduction_goes_on_where_it_was(root: Path, tmp_path: Path) -> None:
    paper = loading.load(str(root / "little"))
    planned = reproduction.plan(paper, RUNS)
    assert planned.kept(tmp_path / "nowhere") == (0, 0.0)
    assert not (tmp_path / "nowhere").exists(), "an estimate makes no folder"
    store = Store(tmp_path)

    def stop(done: float, _: float) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        reproduction.run(paper, runs=RUNS, workers=1, store=store, progress=stop)
    kept = len(list(store.runs.glob("*.json")))
    assert 4 <= kept < 6 * RUNS
    assert (caught.value.finished, caught.value.total) == (kept, 6 * RUNS), "those of all studies"
    many, spared_s = planned.kept(tmp_path)
    assert many == kept
    assert spared_s == pytest.approx(planned.seconds * kept / (6 * RUNS), rel=0.1), (
        "all studies take nearly the same time a run"
    )
    seen: list[float] = []
    again = reproduction.run(paper, runs=RUNS, workers=1, store=store, progress=lambda d, _: seen.append(d))
    assert seen[0] >= 4, "what was kept counts as done from the start"
    assert len(list(store.runs.glob("*.json"))) == 6 * RUNS
    many, spared_s = planned.kept(tmp_path)
    assert many == 6 * RUNS
    assert spared_s == pytest.approx(planned.seconds)
    fresh = reproduction.run(paper, runs=RUNS, workers=2)
    assert again.values == fresh.values


@pytest.mark.page
def test_the_page_answers_pointer_keys_and_switches(out: Path, tmp_path: Path) -> None:
    require("chromium")
    script = """
const plot = (key) => document.querySelector(`[data-plot="${key}"]`);
const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");
const at = (key, mark) => new DOMPoint(mark[0], mark[1]).matrixTransform(plot(key).querySelector("svg").getScreenCTM());
const send = (key, kind, p) => plot(key).dispatchEvent(
  new PointerEvent(kind, { clientX: p.x + 2, clientY: p.y - 2, bubbles: true }));
const said = () => (tip.hidden ? "" : tip.textContent);
const shown = (key, series) => [...plot(key).querySelectorAll(`[data-s="${series}"]`)]
  .filter((part) => part.getClientRects().length).length;
const ticks = (key) => [...plot(key).querySelectorAll("text")].map((t) => t.textContent).join("|");
const press = (key, name) => plot(key).dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const found = { drawn: document.documentElement.dataset.drawn };
const mark = data["1a"].marks.find((one) => one[2] === "vegas" && one[3] === "vegas");
send("1a", "pointermove", at("1a", mark));
found.text = mark[4];
found.value = said();
send("1a", "click", at("1a", mark));
found.picked = plot("1a").parentElement.querySelector(".picked").textContent;
send("1a", "pointerleave", { x: 0, y: 0 });
found.left = said();
press("1a", "ArrowRight");
found.first = said();
press("1a", "ArrowDown");
found.other = said();
press("1a", "Escape");
document.querySelectorAll("details").forEach((part) => { part.open = true; });
const box = plot("3a").querySelector('[data-s="vegas"] path').getBoundingClientRect();
send("3a", "pointermove", { x: box.x + box.width / 2, y: box.y + box.height / 2 });
press("3a", "ArrowRight");
found.line = said();
found.before = [shown("1a", "newreno"), shown("1a", "vegas"), shown("1b", "vegas"), ticks("1a"), tip.hidden];
const where = plot("1a").querySelector('[data-s="newreno"]').getBoundingClientRect().x;
const toggle = document.querySelector('[data-toggle="vegas"]');
toggle.click();
found.off = [shown("1a", "newreno"), shown("1a", "vegas"), shown("1b", "vegas"), ticks("1a")];
found.moved = plot("1a").querySelector('[data-s="newreno"]').getBoundingClientRect().x - where;
send("1a", "pointermove", at("1a", mark));
found.gone = said();
toggle.click();
const entry = plot("1a").querySelector('[data-key-l="newreno"][role="button"]');
entry.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
found.entry = [shown("1a", "newreno"), shown("1a", "vegas"), shown("1b", "newreno") > 0];
found.pressed = entry.getAttribute("aria-pressed");
document.querySelector('[data-toggle="published"]').click();
found.published = [...plot("1a").querySelectorAll('[data-l="published"]')]
  .filter((part) => part.getClientRects().length).length;
return found;
"""
    found = probe(out / "index.html", tmp_path, script)
    assert found["drawn"] == "9"
    assert found["value"] == found["text"]
    assert re.fullmatch(r"Vegas, 1 Mbit/s: [\d.]+.* Mbit/s", found["value"]), "a value has its unit"
    assert "paceline run" in found["picked"]
    assert "flow.media.cc=vegas" in found["picked"]
    assert "link.bottleneck.rate=1 Mbit/s" in found["picked"]
    assert found["left"] == ""
    assert found["first"].startswith("NewReno, 1 Mbit/s: ")
    assert found["other"] not in ("", found["first"])
    assert re.fullmatch(r"\w+, .*, [\d.]+ s: [\d.]+ Mbit/s", found["line"]), "read off a line"
    newreno, vegas, bars, ticks, _ = found["before"]
    assert min(newreno, vegas, bars) > 0
    assert found["off"] == [newreno, 0, 0, ticks], "the axes stay as they are"
    assert found["moved"] == 0
    assert not found["gone"].startswith("Vegas")
    assert found["entry"] == [0, vegas, True], "the legend switches one figure"
    assert found["pressed"] == "false"
    assert found["published"] == 0


@pytest.mark.page
@pytest.mark.parametrize("width", [320, 400])
def test_letters_of_figures_can_be_read_on_a_phone(out: Path, tmp_path: Path, width: int) -> None:
    require("chromium")
    script = """
const page = document.documentElement;
const letters = [...document.querySelectorAll(".plot text")].filter((text) => text.getClientRects().length)
  .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a);
return [page.scrollWidth, letters.length, Math.min(...letters)];
"""
    wide, many, smallest_px = probe(out / "index.html", tmp_path, script, width=width)
    assert wide <= width, "figures scroll, not the page"
    assert many > 50
    assert smallest_px >= 9


@pytest.mark.page
def test_the_page_fits_a_phone_and_is_short(out: Path, tmp_path: Path) -> None:
    require("chromium")
    real = reproduction.run(loading.load("vegas-streaming").only("red-media-rate"), runs=1)
    other = tmp_path / "real.html"
    other.write_text(page.render(real))
    script = """
document.querySelectorAll("details").forEach((part) => { part.open = OPEN; });
const page = document.documentElement;
return [page.scrollWidth, page.clientWidth, page.scrollHeight];
"""
    for path in (out / "index.html", other):
        for opened in ("false", "true"):
            wide, room, _ = probe(path, tmp_path, script.replace("OPEN", opened), width=400)
            assert room == 400
            assert wide <= room, f"{path.name} flows over, opened: {opened}"
        assert probe(path, tmp_path, script.replace("OPEN", "false"))[2] < 2600
        assert path.stat().st_size < 400_000


@pytest.mark.page
def test_paper_has_all_that_is_folded(out: Path, tmp_path: Path) -> None:
    require("chromium")
    text = (out / "index.html").read_text()
    empty = re.sub(r"</summary>.*?</details>", "</summary></details>", text, flags=re.DOTALL)
    variants = {
        "own": text,
        "open": text.replace('<details class="fold', '<details open class="fold'),
        "none": empty,
    }
    pages = {}
    for name, variant in variants.items():
        path, pdf = tmp_path / f"{name}.html", tmp_path / f"{name}.pdf"
        path.write_text(variant)
        browse(path, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
        pages[name] = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
    assert pages["own"] == pages["open"] > pages["none"] >= 1


def probe(path: Path, folder: Path, script: str, width: int = 1200) -> Any:
    """What a script returns that runs in the page, in a window of that width and 900 px high."""
    own = folder / "probed.html"
    end = f"""<script>
const bottom = (what) => document.querySelector(what).getBoundingClientRect().bottom;
addEventListener("load", () => {{
  let found;
  try {{ found = (() => {{ {script} }})(); }} catch (error) {{ found = String(error.stack); }}
  parent.postMessage(JSON.stringify(found), "*");
}});
</script></body>"""
    own.write_text(path.read_text().replace("</body>", end))
    # A window of its own is never as narrow as a phone.
    outer = folder / "outer.html"
    outer.write_text(
        f"""<script>addEventListener("message", (event) => {{
  const found = document.createElement("pre");
  found.textContent = event.data;
  document.body.append(found);
}});</script><iframe src="probed.html" style="border: 0; width: {width}px; height: 900px"></iframe>"""
    )
    dom = browse(outer, folder / "profile", "--hide-scrollbars", "--window-size=1300,1000", "--dump-dom")
    said = re.search(r"<pre>(.*?)</pre>", dom, re.DOTALL)
    assert said, dom[-2000:]
    return json.loads(html.unescape(said[1]))


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
