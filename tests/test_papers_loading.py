"""The papers' own files: they load, their scenarios say what they claim to say, and mistakes are named."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import paceline
from paceline.cli import app
from paceline.files import package_data, paper_folders
from paceline.papers import loading
from paceline.report import colours
from paceline.statistics import estimate
from paceline.studies import points
from small_paper import GOODPUT

PAPERS = package_data.folder("papers")
# What a scenario changes in the paper's first one; all else must be as it stands there.
STREAMING: dict[str, set[str]] = {
    "basic.toml": {"flow.ftp", "flow.web"},
    "queue.toml": {"link.bottleneck.queue", "link.bottleneck.backward"},
    "loss.toml": {"link.bottleneck.loss"},
    "alpha-beta.toml": {"flow.media.cc", "flow.media.params"},
    "client-buffer.toml": {"flow.media.app.media_rate"},
    "red-media-rate.toml": {"link.bottleneck.queue", "link.bottleneck.backward"},
}
_SACK = {"rate_bin", "flow.target.count", "flow.sack"}
VENO: dict[str, set[str]] = {
    "two-state.toml": {"access.receiver.loss"},
    "beside-sack.toml": _SACK,
    "beside-sack-two-state.toml": _SACK | {"access.receiver.loss"},
    "validation.toml": {"topology", "access", "link", "flow"},
}
_LIVE = {"duration", "profile", "topology", "rate_bin", "access", "link", "flow"}
VENO |= dict.fromkeys(["live-veno.toml", "live-alone.toml", "live-beside.toml"], _LIVE)
OF_THE_PAPER = (paper_folders.FIGURES, paper_folders.PUBLISHED, paper_folders.READINGS)
_WEB = {
    "duration",
    "warmup",
    "rate_bin",
    "friendliness_to",
    "link.bottleneck.delay",
}
_WEB |= {"flow.shown", "flow.lda", "flow.ftp", "flow.target"}
LDA: dict[str, set[str]] = {
    "beside-web.toml": _WEB,
    "fairness.toml": {"duration", "warmup", "rate_bin", "host_delay", "link", "flow"},
}
_PATH = {"duration", "link.bottleneck.delay", "link.bottleneck.loss", "link.bottleneck.backward.loss"}
INTERNET: dict[str, set[str]] = {
    "petersburg-pennsylvania.toml": _PATH,
    "berlin-pennsylvania.toml": _PATH | {"flow.tcp.receive_window", "flow.back_tcp.receive_window"},
}
_MORE = {"warmup", "cell.home.station", "flow.download"}
VOAP: dict[str, set[str]] = {
    "three.toml": _MORE | {f"flow.{name}" for name in ("first", "second", "third")},
    "five.toml": _MORE | {f"flow.{name}" for name in ("first", "second", "third", "fourth", "fifth")},
    "upload.toml": {"flow.upload"},
}
_OTHER_PATH = {"link", "access", "flow"}
WIRES: dict[str, set[str]] = {
    "wide-area-reverse.toml": {"flow.back"},
    "wide-area-three.toml": {"flow.media.count"},
    "wide-area-datagrams.toml": {"flow.beside"},
    "wide-area-udp.toml": {
        "link.bottleneck.rate",
        "link.bottleneck.queue",
        "link.bottleneck.backward.rate",
    },
} | dict.fromkeys(["umts.toml", "umts-reverse.toml", "umts-shared.toml"], _OTHER_PATH)
UMTS: dict[str, set[str]] = {"umts-reverse.toml": {"flow.back"}, "umts-shared.toml": {"flow.other"}}
UMTS |= dict.fromkeys(["wide-area.toml", *(name for name in WIRES if name not in UMTS)], _OTHER_PATH)


def leaves(tree: dict[str, Any], path: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        here = f"{path}.{key}" if path else key
        if isinstance(value, dict) and here.count(".") < 3:
            found |= leaves(value, here)
        found[here] = json.dumps(value, sort_keys=True)
    return found


@pytest.mark.parametrize("key", paper_folders.keys())
def test_every_paper_loads_and_has_claims(key: str) -> None:
    found = loading.load(key)
    assert found.claims
    assert {c.study for c in found.claims} <= found.studies.keys()
    for study in found.studies.values():
        assert study.plots or study.later, study.key
        for part in (p for p in found.claims if p.study == study.key):
            assert part.says.endswith(")") or "." not in part.says[-1], part.key
    names = [plot.key for study in found.studies.values() for plot in study.plots]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("key", "first", "differs"),
    [
        ("vegas-streaming", "default.toml", STREAMING),
        ("tfrc-veno", "exponential.toml", VENO),
        ("lda-plus", "mixed.toml", LDA),
        ("lda-plus", "berlin-petersburg.toml", INTERNET),
        ("voap", "home.toml", VOAP),
        ("tcp-vs-tfrc", "wide-area.toml", WIRES),
        ("tcp-vs-tfrc", "umts.toml", UMTS),
    ],
)
def test_scenarios_differ_only_where_they_say(key: str, first: str, differs: dict[str, set[str]]) -> None:
    folder = PAPERS / key
    default = leaves(tomllib.loads((folder / first).read_text()))
    # What was simulated and what was measured on the Internet have nothing in common.
    internet = {"berlin-petersburg.toml", *INTERNET}
    for path in folder.glob("*.toml"):
        if path.name in (first, *OF_THE_PAPER):
            continue
        if (path.name in internet) != (first in internet):
            continue
        mine = leaves(tomllib.loads(path.read_text()))
        other = {k for k in default.keys() | mine.keys() if default.get(k) != mine.get(k)} - {"description"}
        allowed = differs.get(path.name, set())
        # A table differs where something within it does.
        surplus = {
            k
            for k in other
            if not any(k == a or k.startswith(a + ".") or a.startswith(k + ".") for a in allowed)
        }
        assert not surplus, f"{path.name} differs from {first} in {sorted(surplus)}"


def test_umts_is_held_against_the_wires_that_are_taken() -> None:
    folder = PAPERS / "tcp-vs-tfrc"
    studies = tomllib.loads((folder / "figures.toml").read_text())["study"]
    (wires,) = (x for x in studies["umts-against-wires"]["axis"]["level"] if x["label"] == "wires")
    taken = tomllib.loads((folder / "wide-area.toml").read_text())
    assert wires["set"] == {"link.bottleneck": taken["link"]["bottleneck"]}


def test_the_validation_dumbbell_is_the_papers() -> None:
    """Figure 2(a): eight flows, (20 i - 19) ms of wire and then 1 ms of air each, behind 12 Mbit/s and 40 packets."""
    found = tomllib.loads((PAPERS / "tfrc-veno" / "validation.toml").read_text())
    assert found["link"].keys() == {"bottleneck"} | {
        f"{k}{i}" for k in ("left", "wired", "air") for i in range(1, 9)
    }
    assert found["link"]["bottleneck"]["rate"] == "12 Mbit/s"
    assert found["link"]["bottleneck"]["queue"]["limit"] == "40 packets"
    for i in range(1, 9):
        link, flow = found["link"], found["flow"][f"veno{i}"]
        assert link[f"left{i}"]["between"] == [flow["from"], link["bottleneck"]["between"][0]]
        assert link[f"wired{i}"]["between"] == [
            link["bottleneck"]["between"][1],
            link[f"air{i}"]["between"][0],
        ]
        assert link[f"air{i}"]["between"][1] == flow["to"]
        assert [link[f"{k}{i}"]["delay"] for k in ("left", "wired", "air")] == [
            "1 ms",
            f"{20 * i - 19} ms",
            "1 ms",
        ]
        assert {link[f"{k}{i}"]["rate"] for k in ("left", "wired", "air")} == {"10 Mbit/s"}
        assert [("loss" in link[f"{k}{i}"]) for k in ("left", "wired", "air")] == [False, False, True]
        assert flow["cc"] == "veno"


def test_the_home_of_voap_is_the_papers() -> None:
    """Tables I and II: who sends to whom, and from when to when."""
    found = tomllib.loads((PAPERS / "voap" / "home.toml").read_text())
    assert found["duration"] == "250 s"
    starts = {"film": 0, "game": 45, "game-up": 46, "voice": 90, "voice-up": 91, "download": 135}
    ways = {
        "film": ("ap", "tv"),
        "game": ("game", "console"),
        "game-up": ("console", "game"),
        "voice": ("voice", "phone"),
        "voice-up": ("phone", "voice"),
        "download": ("web", "laptop"),
    }
    assert found["flow"].keys() == starts.keys()
    for name, flow in found["flow"].items():
        begins = flow["start"]["uniform"][0] if isinstance(flow["start"], dict) else flow["start"]
        assert begins == f"{starts[name]} s"
        assert (flow["from"], flow["to"]) == ways[name]
    assert {link["rate"] for link in found["link"].values()} == {"100 Mbit/s"}
    assert {station["distance"] for station in found["cell"]["home"]["station"].values()} == {"10 m"}
    for name, downloads in (("three", 3), ("five", 5)):
        more = tomllib.loads((PAPERS / "voap" / f"{name}.toml").read_text())
        own = [flow for flow in more["flow"].values() if flow.get("group") == "downloads"]
        assert (
            len(own) == len({flow["to"] for flow in own}) == len({flow["start"] for flow in own}) == downloads
        )
        one = {k: v for k, v in found["flow"]["download"].items() if k not in ("to", "start")}
        assert all({k: flow[k] for k in one} == one for flow in own)


def test_the_readings_of_lda_plus_follow_from_its_own_numbers() -> None:
    """Table I's r is what was sent and its u leaves the web out; Table II's r is of 81 flows."""
    found = {c.key: c.published.value or 0 for c in loading.load("lda-plus").claims}
    for cell in (f"{q}-{tau} s" for q in ("q100", "q500") for tau in ("0.1", "0.2", "0.4")):
        r, f, u = (found[f"t1-{name}-{cell}"] for name in ("r", "f", "u"))
        # LDA+ and FTP sent 27 (r + r / F), of which u of 10 Mbit/s arrived; the rest is what RED drops.
        assert 0.02 < 1 - u * 10e3 / (27 * (r + r / f)) < 0.06, cell
    rates = [found[f"t2-r-{q}-{interval} s"] for q in ("fifo", "red") for interval in (1, 2, 5)]
    assert max(27 * rate for rate in rates) < 3_500, "27 flows use a third of the link"
    assert min(81 * rate for rate in rates) > 8_500, "81 use it"


def test_lda_plus_has_one_d_and_each_number_one_reading_that_counts() -> None:
    paper = loading.load("lda-plus")
    for path in paper.folder.glob("*.toml"):
        assert path.name in OF_THE_PAPER or "per_ack = 2" in path.read_text(), path.name
    fitted = {c.key for c in paper.claims if c.beside.startswith("fitted")}
    assert fitted == {c.key for c in paper.claims if c.key.startswith("t1-f-") and c.published.value}
    for claim in paper.claims:
        world = (
            "emulated"
            if claim.key.endswith("-emulated")
            else "kernel"
            if claim.key.endswith("-kernel")
            else ""
        )
        assert claim.beside or not world, claim.key


def test_the_live_scenarios_of_tfrc_veno_have_one_path() -> None:
    names = ("live-veno.toml", "live-alone.toml", "live-beside.toml")
    found = [tomllib.loads((PAPERS / "tfrc-veno" / name).read_text())["link"]["bottleneck"] for name in names]
    for link in found:
        assert link.pop("loss").keys() == {"kind", "rate", "on"}
        assert 36 <= float(link.pop("delay").removesuffix(" ms")) < 37
    assert found[0] == found[1] == found[2]


def test_the_tables_of_tfrc_veno_are_held_against_both_worlds() -> None:
    found = loading.load("tfrc-veno")
    tables = [c for c in found.claims if c.figure in ("table-1", "table-2")]
    # Table I: 3 rows of 6 slots and 2 flows; Table II: 3 rows of 5 slots and 2 flows; what the text says of them.
    real = [c for c in tables if c.key.endswith("-emulated")]
    assert len(real) == len(tables) - len(real) == 36 + 30 + 4
    values = {c.key: c.published.value for c in tables}
    assert all(values[c.key] == values[c.key.removesuffix("-emulated")] for c in real)
    covs = [
        values[f"table1-cov-veno-{slot}"] or 0
        for slot in ("9-10", "11-12", "13-14", "15-16", "17-18", "22-23")
    ]
    assert sum(covs) == pytest.approx(0.37 + 0.22 + 0.24 + 0.31 + 0.11 + 0.29)
    sent = [
        values[f"table2-beside-veno-{slot}"] or 0 for slot in ("10:30", "13:30", "16:30", "19:30", "21:30")
    ]
    assert sum(sent) == pytest.approx(1132.3 + 1253.3 + 1202.5 + 1357.8 + 1224.5)
    assert all(c.needs_s == 300 for c in real), "five minutes were published"


def test_the_paths_of_the_tables_are_fitted_to_nothing_of_tfrc_veno() -> None:
    """What the published rows of TFRC and SACK say stands in the paths: losses, and that TFRC and SACK send so much."""
    found = loading.load("tfrc-veno")
    values = {c.key: c.published.value or 0 for c in found.claims}
    for study, scheme in (("live-alone", "tfrc"), ("live-beside", "sack")):
        for level in found.studies[study].levels:
            point = points.point(found, found.studies[study], points.Place(study, scheme, level.label))
            results = paceline.run(point.scenario, runs=12)
            sent = results.flows.group_by("seed").agg(pl.col("packets_sent").mean())["packets_sent"]
            slot = level.label
            if study == "live-alone":
                loss = 1 - values[f"table1-receiving-tfrc-{slot}"]
                assert dict(level.settings)["link.bottleneck.loss.rate"].strip('"') == f"{100 * loss:.0f} %"
                published = values[f"table1-packets-tfrc-{slot}"]
            else:
                published = (values[f"table2-sack-{slot}"] + values[f"table2-beside-sack-{slot}"]) / 2
            ours = estimate(sent)
            assert abs((ours.mean or 0) - published) < 0.02 * published + (ours.half_width or 0), (slot, ours)


@pytest.mark.parametrize("key", paper_folders.keys())
def test_every_scenario_is_used(key: str) -> None:
    found = loading.load(key)
    used = {study.scenario for study in found.studies.values()}
    there = {p.name for p in found.folder.glob("*.toml")} - set(OF_THE_PAPER)
    assert there == used - {None}


def test_one_figure_alone() -> None:
    whole = loading.load("vegas-streaming")
    assert list(whole.only("4").studies) == ["latency"]
    assert list(whole.only("4c").studies) == ["latency"]
    assert {c.figure for c in whole.only("5").claims} == {"5"}
    assert "background" in whole.only("viable").studies, "a pool needs the studies it draws from"
    assert {c.study for c in whole.only("viable").claims} == {"viable"}
    with pytest.raises(paper_folders.PaperError, match="no figure 99: there are 3, 4"):
        whole.only("99")


@pytest.mark.parametrize("key", paper_folders.keys())
def test_every_counted_statement_stands_in_the_list_of_the_papers_sentences(key: str) -> None:
    text = (Path(__file__).parents[1] / "docs" / "papers" / f"{key}.md").read_text()
    listed = text.partition("\n## Sentence by sentence\n")[2]
    named = {
        name for row in listed.splitlines() for name in re.findall(r"`([^`]+)`", row) if row.startswith("|")
    }
    claims = loading.load(key).claims
    unheld = [c.key for c in claims if not c.beside and not any(fnmatch(c.key, name) for name in named)]
    assert not unheld, "a claim is of a sentence"
    assert not [name for name in named if not any(fnmatch(c.key, name) for c in claims)], "no claim has it"


@pytest.mark.parametrize(
    ("key", "name", "studies", "claims"),
    [
        ("vegas-streaming", "Figure 4", {"latency"}, {"4"}),
        ("lda-plus", "I", {"table1"}, {"table-1"}),
        ("lda-plus", "table II", {"interval"}, {"table-2", "4"}),
        ("lda-plus", "Table III", {"live-near"}, {"table-3"}),
        # of these the plots and claims stand in the studies of other figures
        ("lda-plus", "6", {"live-near", "live-asymmetric"}, {"6"}),
        ("tcp-vs-tfrc", "14", {"umts"}, {"14"}),
    ],
)
def test_a_papers_own_names_of_its_figures_are_taken(
    key: str, name: str, studies: set[str], claims: set[str]
) -> None:
    chosen = loading.load(key).only(name)
    assert studies <= set(chosen.studies)
    assert {claim.figure for claim in chosen.claims} == claims


def test_the_command_holds_scenario_settings_and_seeds() -> None:
    found = loading.load("vegas-streaming")
    study = found.studies["latency"]
    words = shlex.split(points.command(found, study, points.Place("latency", "vegas", "10 ms"), 10))
    assert words[:3] == ["paceline", "run", "papers/vegas-streaming/latency.toml"]
    assert "flow.media.cc=vegas" in words
    assert "flow.media.rtt=10 ms" in words
    assert words[-4:] == ["--seed", "1", "--runs", "10"]


FIGURES = (
    """
[paper]
title = "A paper"
authors = "Somebody"
published_in = "Nowhere"
summary = "Of nothing."
"""
    + GOODPUT
    + """
[[series]]
key = "newreno"
label = "NewReno"
[study.live]
figure = "2"
title = "Live"
later = "needs sockets"
[study.one]
figure = "1"
title = "One"
scenario = "one.toml"
axis = { label = "Rate", path = "link.bottleneck.rate", values = ["1 Mbit/s", "2 Mbit/s"], x = [1, 2] }
plot = [{ key = "1a", title = "Goodput", metric = "goodput" }]
"""
)
CURVES = 'kind = "curves", label = "y", curve = [{ key = "a", label = "A", y = '
PUBLISHED = """
[[claim]]
key = "c"
figure = "1"
where = "section 1"
says = "It rises"
kind = "trend"
sign = "+"
study = "one"
ours = 'slope(goodput["newreno"], x)'
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("figures.toml", 'metric = "goodput"', 'metric = "speed"', r"study.one.plot\[0\]: no metric 'speed'"),
        ("figures.toml", 'scenario = "one.toml"', 'scenario = "two.toml"', "no scenario file two.toml"),
        ("figures.toml", "x = [1, 2]", "x = [1]", "values, labels and x must have the same length"),
        ("figures.toml", 'figure = "1"', 'figure = "1"\nfigur = 2', "unknown figur"),
        ("figures.toml", "scale = 1e-6", 'scale = "a"', "metric.goodput.scale: must be int or float"),
        ("figures.toml", "[paper]", "[paper", "figures.toml: "),
        ("published.toml", 'sign = "+"', 'sign = "up"', r"claim\[0\] c.sign: must be \+ or -"),
        ("published.toml", 'kind = "trend"', 'kind = "about"', "about: needs a published number"),
        (
            "published.toml",
            'kind = "trend"',
            'kind = "guess"',
            "printed, within, about, same, ordering, trend, not 'guess'",
        ),
        ("published.toml", 'study = "one"', 'study = "two"', "no study 'two'; there are live, one"),
        ("published.toml", 'goodput["newreno"]', 'goodput["vegas"]', "no series 'vegas'"),
        ("published.toml", 'goodput["newreno"]', 'speed["newreno"]', "no metric speed"),
        ("published.toml", ", x)", ", x", "never closed"),
        ("published.toml", 'study = "one"', 'study = "live"', "unknown ours"),
        (
            "figures.toml",
            'field = "goodput_bps"',
            'field = "goodput_bps"\nrows = "middle"',
            "rows: must be first, mean, sum",
        ),
        ("figures.toml", "scale = 1e-6", "scale = 1e-6\nfrom = 5", "from: is for recordings only"),
        (
            "figures.toml",
            'title = "One"',
            'title = "One"\nlater = "why"',
            "needs either a scenario, or a pool",
        ),
        (
            "figures.toml",
            'title = "One"',
            'title = "One"\nrecord = "all"',
            "study.one.record: must be one of cwnd, ",
        ),
        ("figures.toml", 'metric = "goodput" }', 'kind = "curves" }', r"plot\[0\]: needs label"),
        (
            "figures.toml",
            'metric = "goodput" }',
            f'{CURVES}\'speed["newreno", "{{level}}"]\' }}] }}',
            "no metric speed",
        ),
        (
            "figures.toml",
            'metric = "goodput" }',
            f'{CURVES}\'goodput["vegas", "{{level}}"]\' }}] }}',
            "no series 'vegas'",
        ),
        ("figures.toml", 'metric = "goodput" }', f'{CURVES}"1 +" }}] }}', r"plot\[0\].curve\[0\].y: "),
        (
            "figures.toml",
            'metric = "goodput" }',
            'kind = "trace", label = "y", trace = { column = "a" } }',
            "needs `record`",
        ),
        (
            "figures.toml",
            'plot = [{ key = "1a", title = "Goodput", metric = "goodput" }]',
            'record = "cwnd"\nplot = [{ key = "1a", title = "J", kind = "trace", label = "y", trace = { jain = 1 } }]',
            'Jain\'s index over time needs `record = "rate"`',
        ),
        (
            "figures.toml",
            'metric = "goodput" }',
            'metric = "goodput", kind = "scatter" }',
            "`over` another metric",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    texts = {"figures.toml": FIGURES, "published.toml": PUBLISHED, "one.toml": 'duration = "1 s"\n'}
    assert old in texts[file]
    for name, text in texts.items():
        (folder / name).write_text(text.replace(old, new) if name == file else text)
    with pytest.raises(paper_folders.PaperError, match=message):
        loading.load(str(folder))


@pytest.mark.parametrize("key", sorted(p.name for p in PAPERS.iterdir() if p.is_dir()))
def test_series_have_colours_of_their_own(key: str) -> None:
    for study in loading.load(key).studies.values():
        solid = [i for i, series in enumerate(study.series) if not series.dashed]
        wanted = min(len(solid), len(colours.COLOURS))
        found = colours.of_series(study)
        assert len({found[i] for i in solid}) == wanted, study.key


def test_a_scheme_has_one_colour_in_all_papers() -> None:
    seen: dict[str, set[int]] = {}
    for paper in map(loading.load, paper_folders.keys()):
        for study in paper.studies.values():
            for series, colour in zip(study.series, colours.of_series(study), strict=True):
                seen.setdefault(series.label, set()).add(colour)
    for label in ("NewReno", "Vegas", "TCP", "TFRC", "TFRC Veno", "MULTFRC", "LDA+", "VoAP", "SACK alone"):
        assert len(seen[label]) == 1, f"{label} has {seen[label]}"
    assert len({*seen["TFRC"], *seen["TFRC Veno"], *seen["MULTFRC"], *seen["SACK alone"]}) == 4


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([("a", "TFRC Veno, emulated"), ("b", "TFRC"), ("c", "TFRC of RFC 5348")], [3, 2, 0]),
        ([("x", "TFRCP, M = 2 s"), ("y", "LDA+, 8 bits"), ("kernel", "beside the kernel's TCP")], [3, 5, 6]),
        ([("q", "queue of 50"), ("vegas", "V"), ("r", "rapidly")], [0, 1, 2]),
        ([(str(n), f"reading {n}") for n in range(9)], [*range(8), 0]),
    ],
)
def test_colours_are_given_by_scheme_and_else_in_order(
    names: list[tuple[str, str]], found: list[int]
) -> None:
    assert colours.assign(names) == found


def test_a_dashed_series_has_the_colour_of_its_solid_one() -> None:
    study = loading.load("tfrc-veno").studies["live-alone"]
    assert colours.of_series(study) == [2, 3, 2, 3, 2, 3]
    assert colours.dashes(study) == ["-", "-", "--", "--", ":", ":"]


def test_an_unknown_paper_names_the_known_ones() -> None:
    with pytest.raises(paper_folders.PaperError, match=r"no paper 'vegas': there are .*vegas-streaming"):
        loading.load("vegas")


def test_the_command_line_names_what_there_is() -> None:
    runner = CliRunner()
    listed = runner.invoke(app, ["reproduce", "--list"])
    assert listed.exit_code == 0, listed.output
    assert "vegas-streaming" in listed.output
    assert "levels off" not in listed.output, "statements are for --figure"
    assert len(listed.output.splitlines()) < 40 * len(paper_folders.keys())
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
        ("reproduce", "vegas-streaming", "--runs", "0"): "--runs 0: must be at least 1",
        ("reproduce", "vegas", "--runs", "0"): "--runs 0: must be at least 1",
    }.items():
        failed = runner.invoke(app, list(words))
        assert failed.exit_code == 2, failed.output
        assert said in failed.output
        assert "runs each" not in failed.output, "what is refused has no estimate"
