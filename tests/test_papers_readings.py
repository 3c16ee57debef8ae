"""Readings of a paper and causes of what differs: each cause counts where the statement agrees without it, and nowhere
else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paceline.cli import app
from paceline.files import table_files
from paceline.files.paper_folders import PaperError
from paceline.papers import loading, page, rereading, summary
from paceline.results.store import Store
from paceline.studies import readings, reproduction
from paceline.studies.paper import Abstract
from paceline.studies.reproduction import Reproduction
from paceline.studies.verdict import Outcome, Verdict
from small_paper import GOODPUT

RUNS = 5

SCENARIO = """
duration = "20 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
queue = { kind = "droptail", limit = "40 packets" }
[flow.media]
start = { uniform = ["0 s", "0.2 s"] }
"""
FIGURES = f"""
[paper]
title = "A paper of mine"
authors = "Me"
published_in = "Nowhere yet"
summary = "Of little."
runs = {RUNS}
{GOODPUT}
[metric.doubled]
label = "Twice the goodput"
expression = "2 * goodput"
[[series]]
key = "newreno"
label = "NewReno"
[[series]]
key = "vegas"
label = "Vegas"
set = {{ "flow.media.cc" = "vegas" }}
[study.rate]
figure = "1"
title = "Rates"
scenario = "one.toml"
axis = {{ label = "Rate", path = "link.bottleneck.rate", values = ["2 Mbit/s", "4 Mbit/s"], x = [2, 4] }}
plot = [{{ key = "1a", title = "Goodput", metric = "goodput" }}]
[study.all]
figure = "2"
title = "All"
pool = ["rate"]
plot = [{{ key = "2", title = "All", metric = "doubled", over = "goodput", kind = "scatter" }}]
"""
# The paper ran at 8 Mbit/s, says so nowhere, and gives a number of another scenario once.
PUBLISHED = """
[[abstract]]
says = "It gets what the link has"
answer = "{fast} are gone through"
claims = ["fast", "slow"]

[[claim]]
key = "fast"
figure = "1"
where = "section 1"
says = "It gets 7.5 Mbit/s"
kind = "about"
published = 7.5
unit = "Mbit/s"
study = "rate"
ours = 'goodput["newreno", "4 Mbit/s"]'

[[claim]]
key = "slow"
figure = "1"
where = "section 1"
says = "It gets 1.9 Mbit/s"
kind = "about"
published = 1.9
unit = "Mbit/s"
study = "rate"
ours = 'goodput["newreno", "2 Mbit/s"]'

[[claim]]
key = "digits"
figure = "1"
where = "table 1"
says = "It gets 1.9321 Mbit/s"
kind = "printed"
published = 1.9321
last_digit = 0.0001
unit = "Mbit/s"
study = "rate"
ours = 'goodput["newreno", "2 Mbit/s"]'

[[claim]]
key = "vegas"
figure = "1"
where = "section 2"
says = "Vegas gets half"
kind = "about"
published = 0.95
unit = "Mbit/s"
study = "rate"
ours = 'goodput["vegas", "2 Mbit/s"]'

[[claim]]
key = "pooled"
figure = "2"
where = "section 3"
says = "Twice as much is 15 at most"
kind = "about"
published = 15
unit = "Mbit/s"
study = "all"
ours = 'most(doubled["newreno"])'
"""
READINGS = """
[[reading]]
key = "faster"
title = "twice the rate"
where = "section 1"
text = "The link's rate"
taken = "as its figures' axes"
part = [{ series = ["newreno"], set = { "link.bottleneck.rate" = "8 Mbit/s" } }]

[[reading]]
key = "later"
title = "both wait"
where = "section 1"
text = "When they begin"
taken = "in the first 0.2 s"
part = [{ set = { "flow.media.start" = "0.1 s" } }]

[[reading]]
key = "counted"
title = "half of Vegas"
where = "section 2"
text = "What is counted"
taken = "all of it"
ours = { vegas = 'goodput["vegas", "2 Mbit/s"] / 2' }

[[cause]]
key = "rate"
says = "the link was faster"
kind = "unsaid"
claims = ["fast", "pooled", "vegas"]
reading = "faster"

[[cause]]
key = "start"
says = "they began together"
kind = "unsaid"
claims = ["fast", "vegas"]
reading = "later"

[[cause]]
key = "near"
says = "missed by less than 5 %"
kind = "digits"
claims = ["fast", "digits"]
within = 0.05

[[cause]]
key = "itself"
says = "its section 1 has another number"
kind = "paper"
instead = { digits = "slow" }
"""
FILES = {
    "figures.toml": FIGURES,
    "published.toml": PUBLISHED,
    "readings.toml": READINGS,
    "one.toml": SCENARIO,
}


def folder(at: Path, **changed: str) -> Path:
    at.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (at / name).write_text(changed.get(name.partition(".")[0], text))
    return at


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    at = tmp_path_factory.mktemp("readings")
    paper = loading.load(str(folder(at / "mine")))
    store = Store(at / "out")
    found = reproduction.run(paper, runs=RUNS, store=store)
    planned = rereading.plan(paper, RUNS)
    progress: list[float] = []
    found.readings = rereading.run(
        planned, runs=RUNS, store=store, progress=lambda done, of: progress.append(done / of)
    )
    assert progress == sorted(progress)
    assert progress[-1] == pytest.approx(1)
    return found


def outcomes(done: Reproduction, reading: str) -> dict[str, str]:
    return {r.claim.key: str(r.verdict.outcome) for r in done.readings[reading]}


def test_a_reading_sets_last_and_in_its_series_alone(done: Reproduction) -> None:
    assert outcomes(done, "faster") == {
        "fast": "agrees",
        "slow": "off",
        "digits": "off",
        "vegas": "off",
        "pooled": "agrees",
    }
    assert outcomes(done, "counted") == {"vegas": "agrees"}, "what it does not change is not run"
    assert outcomes(done, "later") == {r.claim.key: str(r.verdict.outcome) for r in done.results}


def test_what_a_reading_does_not_change_is_not_run_again(tmp_path: Path) -> None:
    paper = loading.load(str(folder(tmp_path / "mine")))
    store = Store(tmp_path / "out")
    reproduction.run(paper, runs=2, store=store)
    before = len(list(store.runs.glob("*.json")))
    only = [one for one in rereading.plan(paper, 2) if one.reading.key != "later"]
    rereading.run(only, runs=2, store=store)
    # two levels of NewReno become one point
    assert len(list(store.runs.glob("*.json"))) == before + 2


def test_a_cause_counts_where_the_statement_agrees_without_it(done: Reproduction) -> None:
    found = {r.claim.key: summary.cause(summary.trials(done, r)) for r in done.results}
    assert {key: one and one.key for key, one in found.items()} == {
        "fast": "rate",
        "slow": None,
        "digits": "near",
        "vegas": None,
        "pooled": "rate",
    }
    by_key = {r.claim.key: r for r in done.results}
    assert summary.cause_words(done, by_key["slow"]) == "", "it agrees"
    assert summary.cause_words(done, by_key["fast"]) == (
        "Cause (a setting that the paper does not give): the link was faster. Without it the statement agrees."
    )
    assert summary.cause_words(done, by_key["vegas"]) == (
        "Cause: not known; tried: the link was faster (off without it); they began together (off without it)."
    )
    assert summary.causes_line(done) == (
        "Causes of the 4 that differ, each removed and tried: 1 printed digits missed by a little, "
        "2 a setting that the paper does not give, 1 not known."
    )
    # the paper's other number holds too
    (_, itself) = summary.trials(done, by_key["digits"])
    assert (itself.cause.key, str(itself.outcome)) == ("itself", "agrees")


def test_a_cause_that_was_not_run_does_not_count(done: Reproduction) -> None:
    bare = Reproduction(done.paper, done.runs, done.values, done.recorded, done.results, done.provenance)
    by_key = {r.claim.key: r for r in done.results}
    assert summary.cause(summary.trials(bare, by_key["fast"])) is None
    assert summary.cause_words(bare, by_key["fast"]) == (
        "Cause: not known; tried: missed by less than 5 % (off without it). "
        "Not tried on this page: the link was faster; they began together."
    )
    assert summary.causes_line(bare) == (
        "Causes of the 4 that differ, each removed and tried: 1 printed digits missed by a little, "
        "3 not tried here (--readings)."
    )


def test_a_word_says_whether_a_finding_stands(done: Reproduction) -> None:
    by_key = {r.claim.key: r for r in done.results}

    def word(**outcomes: Outcome) -> str:
        changed = {k: replace(by_key[k], verdict=Verdict(o, "")) for k, o in outcomes.items()}
        return summary._word(Abstract("", "", tuple(outcomes)), changed)

    agrees, off, undecided = Outcome.AGREES, Outcome.OFF, Outcome.UNDECIDED
    assert word(fast=agrees, slow=agrees) == "stands"
    assert word(fast=agrees, slow=undecided) == "as far as decided: 1 of 2"
    assert word(fast=agrees, slow=off) == "in part: 1 of 2"
    assert word(fast=off, slow=undecided) == "does not stand"
    assert word(fast=undecided) == "undecided"
    assert word(fast=Outcome.OPEN) == "not tested"


def test_totals_are_of_all_statements(done: Reproduction) -> None:
    rows = {row.get("key", row["title"]): row for row in summary.reading_rows(done)}
    assert rows["as taken"]["counts"] == {
        "agrees": 1, "near": 1, "off": 3, "contradicts": 0, "undecided": 0, "open": 0,
    }  # fmt: skip
    assert rows["faster"]["counts"]["agrees"] == 2
    assert rows["faster"]["changed"] == [("fast", "agrees"), ("slow", "off"), ("pooled", "agrees")]
    assert rows["counted"]["counts"]["agrees"] == 2
    assert rows["later"]["changed"] == []


def test_the_page_answers_the_abstract(done: Reproduction) -> None:
    (answer,) = summary.answers(done)
    assert answer["word"] == "in part: 1 of 2"
    assert answer["answer"].endswith(" Mbit/s are gone through")
    assert answer["answer"].startswith("3.")
    text = page.render(done)
    head = text[text.index("<header") : text.index("</header>")]
    order = ["Of little.", "It gets what the link has", "published statements", "Causes of the 4"]
    assert [head.index(words) for words in order] == sorted(head.index(words) for words in order)
    assert "<table" not in head
    table = text[text.index('class="readings"') :]
    assert table.index("as taken") < table.index("twice the rate") < table.index("both wait")


def test_the_command_has_totals_and_pages_of_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder(tmp_path / "mine")
    said = CliRunner().invoke(app, ["reproduce", "mine", "--readings"])
    assert said.exit_code == 0, said.output
    assert "Then 3 other readings" in said.output
    assert "faster" in said.output.partition("Readings")[2]
    verdicts = table_files.read_parquet(Path("out/mine/tables/verdicts.parquet"))
    assert dict(zip(verdicts["claim"], verdicts["cause"], strict=True))["fast"] == "rate"
    assert set(table_files.read_parquet(Path("out/mine/tables/readings.parquet"))["reading"]) == {
        "faster", "later", "counted",
    }  # fmt: skip
    refused = CliRunner().invoke(app, ["reproduce", "mine"])
    assert "other readings" in str(refused.exception) + refused.output
    one = CliRunner().invoke(app, ["reproduce", "mine", "--reading", "faster"])
    assert one.exit_code == 0, one.output
    assert "twice the rate" in Path("out/mine-faster/index.html").read_text()
    assert "2 of 5 published statements agree" in one.output
    wrong = CliRunner().invoke(app, ["reproduce", "mine", "--reading", "slower"])
    assert "there are faster, later, counted" in str(wrong.exception) + wrong.output
    listed = CliRunner().invoke(app, ["reproduce", "--list", "mine"])
    assert "twice the rate" in listed.output


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('series = ["newreno"], ', 'series = ["reno"], ', "part[0].series: no series 'reno'; there are newreno, vegas"),
        ("link.bottleneck.rate", "link.bottleneck.rat", "reading faster: "),
        ('part = [{ series = ["newreno"], set = { "link.bottleneck.rate" = "8 Mbit/s" } }]', "", "needs `part`"),
        ("within = 0.05", "within = 0.5", "within: must be above 0 and at most 0.05, not 0.5"),
        ('kind = "digits"', 'kind = "ours"', "`within` is required by kind digits"),
        ('kind = "digits"', 'kind = "fate"', "kind: must be one of digits, unsaid, paper, ours, not 'fate'"),
        ('reading = "later"', 'reading = "sooner"', "no reading 'sooner'; there are faster, later, counted"),
        ('reading = "later"', "", "needs exactly one of reading, within and instead"),
        ('claims = ["fast", "digits"]', 'claims = ["f?st", "number*"]', "no claim 'number*'"),
        ('{ digits = "slow" }', '{ digits = "slower" }', "instead: no claim slower"),
        ("{ vegas = ", "{ vagus = ", "ours: no claim 'vagus'"),
        ('key = "later"', 'key = "faster"', "reading 'faster' is given twice"),
    ],
)  # fmt: skip
def test_mistakes_name_their_place(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert READINGS.count(old) == 1
    at = folder(tmp_path / "mine", readings=READINGS.replace(old, new))
    with pytest.raises(PaperError) as caught:
        rereading.plan(loading.load(str(at)), RUNS)
    assert f"{at}/readings.toml: " in str(caught.value)
    assert says in str(caught.value)


def test_an_answer_names_claims_that_are_there(tmp_path: Path) -> None:
    at = folder(tmp_path / "mine", published=PUBLISHED.replace("{fast}", "{first}"))
    with pytest.raises(PaperError, match=r"abstract\[0\]\.answer: no claim first"):
        loading.load(str(at))


def test_a_figure_alone_has_its_part_of_a_reading(tmp_path: Path) -> None:
    paper = loading.load(str(folder(tmp_path / "mine")))
    assert [one.reading.key for one in rereading.plan(paper.only("2"), 2)] == ["faster", "later"]
    assert readings.touched(paper.only("2"), paper.readings[2]) is None
    assert summary.answers(reproduction.run(paper.only("2"), runs=2)) == []
