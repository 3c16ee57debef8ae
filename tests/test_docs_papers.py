"""Numbers in docs/papers: those that name a claim are that claim's in `papers/KEY/verdicts.csv`.

A number names it by a comment behind it: `1.36 ± 0.05<!-- fig5-half -->`. And the totals of the readings are those of
`papers/KEY/readings.csv`. Both files are a page's: `paceline reproduce KEY --simulated --readings` makes them, in its
folder `tables`. `PACELINE_BLESS=1` writes the documents anew."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from paceline.files import paper_folders
from paceline.papers import loading
from paceline.report.numbers import plus_minus
from paceline.statistics import Estimate
from paceline.studies.verdict import Outcome

ROOT = Path(__file__).resolve().parent.parent
NUMBER = re.compile(r"([-−]?\d[\d.,]*(?: ± \d[\d.]*)?)<!-- ([\w .:-]+) -->")


def verdicts(key: str) -> dict[str, Mapping[str, object]]:
    table = pl.read_csv(ROOT / "papers" / key / "verdicts.csv", infer_schema_length=None)
    return {row["claim"]: row for row in table.iter_rows(named=True)}


def shown(row: Mapping[str, object], *, alone: bool) -> str:
    """The number as a page has it; the mean alone where a document has no interval."""
    mean = float(str(row["ours"])) + float(str(row["bound"] or 0.0))
    half = None if row["half_width"] is None else float(str(row["half_width"]))
    words = plus_minus(Estimate(int(str(row["runs"])), mean, None if half is None else 1.0, half))
    return words.partition(" ")[0].rstrip(",") if alone else words


@pytest.mark.parametrize("key", paper_folders.keys())
def test_numbers_are_those_of_the_verdicts(key: str) -> None:
    path = ROOT / "docs/papers" / f"{key}.md"
    text, rows = path.read_text(), verdicts(key)

    def current(found: re.Match[str]) -> str:
        assert found[2] in rows, f"{path.name}: no claim {found[2]}"
        return f"{shown(rows[found[2]], alone='±' not in found[1])}<!-- {found[2]} -->"

    written = NUMBER.sub(current, text)
    others = text.count("<!-- totals -->") + text.count("<!-- end -->")
    assert text.count("<!-- ") == len(NUMBER.findall(text)) + others, "a comment without a number before it"
    if os.environ.get("PACELINE_BLESS") == "1":
        path.write_text(written)
    else:
        stale = [(a, b) for a, b in zip(text.splitlines(), written.splitlines(), strict=True) if a != b]
        assert not stale, stale


@pytest.mark.parametrize("key", paper_folders.keys())
def test_what_stands_and_what_does_not_has_its_numbers_from_claims(key: str) -> None:
    """In the table at the top, whose rows a reader quotes: each number with an interval names its claim."""
    text = (ROOT / "docs/papers" / f"{key}.md").read_text()
    table = text[text.index("| statement | ours |") :].partition("\n\n")[0]
    assert "<!-- " in table
    for row in table.splitlines():
        bare = NUMBER.sub("", row.rpartition(" | ")[2])
        assert "±" not in bare, f"{key}: {row}"


@pytest.mark.parametrize("key", paper_folders.keys())
def test_the_verdicts_are_of_the_papers_claims(key: str) -> None:
    paper, rows = loading.load(key), verdicts(key)
    assert list(rows) == [claim.key for claim in paper.claims]
    assert {row["verdict"] for row in rows.values()} <= set(map(str, Outcome))
    for claim in paper.claims:
        assert rows[claim.key]["expression"] == (claim.ours and claim.ours.text), claim.key


TRIED = [one.parent.name for one in sorted(ROOT.glob("papers/*/readings.csv"))]
"""The papers whose readings were run."""
TOTALS = ("agrees", "off by a little", "off", "contradicts", "undecided")


def tally(row: Mapping[str, object], verdict: str) -> str:
    near = verdict == "off" and row["off_share"] is not None and float(str(row["off_share"])) <= 0.15
    return "off by a little" if near else verdict


def totals(key: str) -> str:
    """The table: a row for each reading, the one that was taken first."""
    rows = {claim: row for claim, row in verdicts(key).items() if not row["beside"]}
    table = pl.read_csv(ROOT / "papers" / key / "readings.csv", infer_schema_length=None)
    others: dict[str, dict[str, str]] = {}
    for one in table.filter(pl.col("verdict") != "open").iter_rows(named=True):
        if one["claim"] in rows:
            published = rows[one["claim"]]["published"]
            off = (
                None if not published or one["ours"] is None else abs(one["ours"] / float(str(published)) - 1)
            )
            others.setdefault(one["reading"], {})[one["claim"]] = tally({"off_share": off}, one["verdict"])
    taken = {claim: tally(row, str(row["verdict"])) for claim, row in rows.items()}
    titles = {reading.key: reading.title for reading in loading.load(key).readings}
    assert others.keys() == titles.keys(), "readings.csv is of other readings"
    lines = [f"| reading | {' | '.join(TOTALS)} |", f"|---|{'---:|' * len(TOTALS)}"]
    for name, other in [("as taken", {}), *((f"`{k}`: {titles[k]}", others[k]) for k in titles)]:
        found = list((taken | other).values())
        lines.append(f"| {name} | {' | '.join(str(found.count(word)) for word in TOTALS)} |")
    return "\n".join(lines)


@pytest.mark.parametrize("key", TRIED)
def test_totals_are_those_of_the_readings(key: str) -> None:
    path = ROOT / "docs/papers" / f"{key}.md"
    text = path.read_text()
    head, begin, rest = text.partition("<!-- totals -->\n\n")
    old, end, tail = rest.partition("\n\n<!-- end -->")
    assert begin and end, "no place for the totals"  # noqa: PT018
    if os.environ.get("PACELINE_BLESS") == "1":
        path.write_text(head + begin + totals(key) + end + tail)
    else:
        assert old == totals(key)


def test_a_stale_number_is_found() -> None:
    row = {"ours": 1.3617, "bound": None, "half_width": 0.0482, "runs": 40}
    assert shown(row, alone=False) == "1.362 ± 0.048"
    assert shown(row, alone=True) == "1.362"
    assert shown({**row, "ours": 0.3617, "bound": 1.0}, alone=False) == "1.362 ± 0.048"
    assert NUMBER.findall("by 1.34 ± 0.15<!-- fig5-half --> (RFC), −1.5<!-- a:b -->") == [
        ("1.34 ± 0.15", "fig5-half"),
        ("−1.5", "a:b"),
    ]
