"""What a reproduction's folder says of itself, for people who cite it and for machines."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from paceline.files import paper_folders
from paceline.papers import artefact, loading, tables, writing
from paceline.report import table_schema
from paceline.studies import reproduction
from paceline.studies.paper import Paper
from paceline.studies.reproduction import Reproduction
from screen import here
from small_paper import GOODPUT

ROOT = Path(__file__).resolve().parent.parent

FIGURES = f"""
[paper]
title = 'What "it" does: a study'
authors = "Ann Other, Luca De Cicco and Somebody"
published_in = "Somewhere, 2007"
summary = "Does it?"
runs = 2
{GOODPUT}
[[series]]
key = "tcp"
label = "TCP"
[study.rate]
figure = "1"
title = "Rate"
scenario = "one.toml"
record = "rate"
axis = {{ label = "Rate", path = "link.bottleneck.rate", values = ["2 Mbit/s", "3 Mbit/s"], x = [2, 3] }}
plot = [
    {{ key = "1", title = "What it gets", metric = "goodput" }},
    {{ key = "1-trace", title = "Over time", kind = "trace", label = "G", trace = {{ column = "goodput_bps" }} }},
]
"""

SCENARIO = """
duration = "4 s"
[link.bottleneck]
delay = "10 ms"
rate = "1 Mbit/s"
[flow.media]
"""

RATE = 'rate = "1 Mbit/s"'
TRACE = 'rate_trace = { file = "rates/one.txt", format = "seconds-mbit" }\nbackward.rate = "1 Mbit/s"'

PUBLISHED = """
[[claim]]
key = "more"
figure = "1"
where = "section 1"
says = "A faster link gives more"
kind = "trend"
sign = "+"
unit = "Mbit/s"
study = "rate"
ours = 'slope(goodput["tcp"], x)'
[[claim]]
key = "two"
figure = "1"
where = "section 1"
says = "It gets 1.8 Mbit/s"
kind = "about"
published = 1.8
unit = "Mbit/s"
study = "rate"
ours = 'goodput["tcp", "2 Mbit/s"]'
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reproduction, Path]:
    """A small paper, re-run, and the folder of its page."""
    folder = tmp_path_factory.mktemp("paper") / "It, twice"
    folder.mkdir()
    (folder / "one.toml").write_text(SCENARIO)
    (folder / "figures.toml").write_text(FIGURES)
    (folder / "published.toml").write_text(PUBLISHED)
    done = reproduction.run(loading.load(str(folder)), runs=2)
    out = folder.parent / "out"
    writing.write(done, out)
    return done, out


def entities(out: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((out / "ro-crate-metadata.json").read_text())
    assert found["@context"] == "https://w3id.org/ro/crate/1.1/context"
    assert len({one["@id"] for one in found["@graph"]}) == len(found["@graph"])
    return {one["@id"]: one for one in found["@graph"]}


def test_the_crate_has_what_its_specification_asks(made: tuple[Reproduction, Path]) -> None:
    """RO-Crate 1.1, Root Data Entity and Data Entities."""
    found = entities(made[1])
    about = found["ro-crate-metadata.json"]
    assert about["@type"] == "CreativeWork"
    assert about["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    root = found[about["about"]["@id"]]
    assert (root["@id"], root["@type"]) == ("./", "Dataset")
    assert all(root[key] for key in ("name", "description", "license"))
    assert re.match(r"\d{4}-\d\d-\d\dT", root["datePublished"])
    for one in found.values():
        assert one["@type"]
        for value in one.values():
            for other in value if isinstance(value, list) else [value]:
                if isinstance(other, dict) and not other["@id"].startswith("https://"):
                    assert other["@id"] in found, (
                        f"{one['@id']} names {other['@id']}, which nothing describes"
                    )


def test_the_crate_lists_the_files_and_how_they_were_made(made: tuple[Reproduction, Path]) -> None:
    done, out = made
    found = entities(out)
    there = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    listed = {key for key, one in found.items() if one["@type"] == "File"}
    assert listed == there - {"ro-crate-metadata.json"}
    assert {one["@id"] for one in found["./"]["hasPart"]} == listed
    assert {"index.html", "figures/figure-1.svg", "tables/verdicts.csv", "inputs/one.toml"} <= listed
    assert all(found[key]["description"] for key in listed)
    assert found["figures/figure-1-trace.svg"]["description"] == "Over time"
    run = found["#run"]
    assert run["@type"] == "CreateAction"
    assert shlex.split(run["name"])[:2] == ["paceline", "reproduce"]
    assert {one["@id"] for one in run["object"]} == {key for key in listed if key.startswith("inputs/")}
    assert run["startTime"] <= run["endTime"] == done.provenance["time"]
    program = found[run["instrument"]["@id"]]
    assert program["@type"] == "SoftwareApplication"
    assert program["softwareVersion"] == done.provenance["versions"]["paceline"]
    paper = found["#paper"]
    assert (paper["@type"], paper["datePublished"]) == ("ScholarlyArticle", "2007")
    people = [found[one["@id"]] for one in paper["author"]]
    assert [one["name"] for one in people] == ["Ann Other", "Luca De Cicco", "Somebody"]
    assert [one["familyName"] for one in people] == ["Other", "De Cicco", "Somebody"]


def test_its_inputs_run_it_again(made: tuple[Reproduction, Path]) -> None:
    done, out = made
    again = reproduction.run(loading.load(str(out / "inputs")), runs=2)
    assert {place: v["goodput"] for place, v in again.values.items()} == {
        place: v["goodput"] for place, v in done.values.items()
    }
    assert [r.verdict.outcome for r in again.results] == [r.verdict.outcome for r in done.results]


def test_traces_are_among_the_inputs(tmp_path: Path) -> None:
    folder = tmp_path / "traced"
    (folder / "rates").mkdir(parents=True)
    (folder / "rates" / "one.txt").write_text("0 1\n1 2\n")
    (folder / "one.toml").write_text(SCENARIO.replace(RATE, TRACE))
    swept = FIGURES.replace("bottleneck.rate", "bottleneck.delay").replace('Mbit/s", "3 Mbit/s', 'ms", "3 ms')
    (folder / "figures.toml").write_text(swept)
    artefact._copy_inputs(loading.load(str(folder)), tmp_path / "inputs")
    there = {p.relative_to(tmp_path / "inputs").as_posix() for p in (tmp_path / "inputs").rglob("*.*")}
    assert there == {"figures.toml", "one.toml", "rates/one.txt"}
    assert (tmp_path / "inputs/rates/one.txt").read_text() == "0 1\n1 2\n"


def test_the_citation_has_what_its_format_asks(made: tuple[Reproduction, Path]) -> None:
    """Citation File Format 1.2.0: required keys of the file and of references."""
    found = yaml.safe_load((made[1] / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0"
    assert found["message"]
    assert found["title"] == 'What "it" does: a study: re-run with Paceline'
    assert found["authors"] == [{"name": "The Paceline authors"}]
    assert found["type"] == "dataset"
    article, program = found["references"]
    assert (article["type"], article["title"], article["year"]) == (
        "article",
        'What "it" does: a study',
        2007,
    )
    assert article["authors"] == [
        {"family-names": "Other", "given-names": "Ann"},
        {"family-names": "De Cicco", "given-names": "Luca"},
        {"family-names": "Somebody"},
    ]
    assert (program["type"], program["title"], program["version"]) == (
        "software",
        "Paceline",
        artefact.version(),
    )


@pytest.mark.parametrize("key", paper_folders.keys())
def test_authors_and_years_of_the_papers(key: str) -> None:
    paper = loading.load(key)
    named = artefact.authors(paper)
    assert ", ".join(f"{given} {family}" for given, family in named) == paper.authors
    assert all(given and family for given, family in named)
    assert "year is not in the text" in paper.published_in or artefact.year(paper) in range(1990, 2020)


def test_the_program_by_codemeta(made: tuple[Reproduction, Path]) -> None:
    """The root's codemeta.json is what a reproduction writes without the paper; PACELINE_BLESS=1 writes it anew."""
    text = json.dumps(artefact.codemeta(), indent=2) + "\n"
    path = ROOT / "codemeta.json"
    if os.environ.get("PACELINE_BLESS"):
        path.write_text(text)
    assert path.read_text() == text, "PACELINE_BLESS=1 writes it anew"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert project["description"] == artefact.DESCRIPTION
    assert project["authors"] == [{"name": artefact.AUTHORS}]
    assert " OR ".join(artefact.LICENCES) == cargo["license"]
    assert artefact.version() == cargo["version"]
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (cff["version"], cff["license"]) == (artefact.version(), list(artefact.LICENCES))
    assert cff["authors"] == [{"name": artefact.AUTHORS}]
    found = json.loads((made[1] / "codemeta.json").read_text())
    (paper,) = found.pop("referencePublication")
    assert found == json.loads(text)
    assert paper["name"] == 'What "it" does: a study'


def of_type(text: str, kind: str) -> bool:
    """Whether a cell of a CSV file is of a type of Table Schema."""
    if kind == "integer":
        return re.fullmatch(r"-?\d+", text) is not None
    if kind == "number":
        return re.fullmatch(r"NaN|-?(INF|\d+(\.\d+)?([eE][-+]?\d+)?)", text) is not None
    return kind == "string" or (kind == "boolean" and text in ("true", "false"))


def mistakes(folder: Path) -> list[str]:
    """Where the tables in a folder are not what their descriptor says."""
    package = json.loads((folder / "datapackage.json").read_text())
    assert package["profile"] == "tabular-data-package"
    assert re.fullmatch(r"[-a-z0-9._/]+", package["name"])
    found = []
    for resource in package["resources"]:
        with (folder / resource["path"]).open(newline="") as file:
            rows = list(csv.reader(file))
        fields = resource["schema"]["fields"]
        if rows[0] != [field["name"] for field in fields]:
            found.append(f"{resource['name']}: columns {rows[0]}")
            continue
        for number, field in enumerate(fields):
            limits = field.get("constraints", {})
            cells = [row[number] for row in rows[1:]]
            there = [cell for cell in cells if cell != ""]
            where_ = f"{resource['name']}.{field['name']}"
            found += (
                [f"{where_}: a missing value"] if limits.get("required") and len(there) < len(cells) else []
            )
            found += [f"{where_}: {cell!r}" for cell in there if not of_type(cell, field["type"])]
            found += [f"{where_}: {c!r}" for c in there if c not in limits.get("enum", [c])]
            found += [
                f"{where_}: {c}"
                for c in there
                if float(c if "minimum" in limits else 0) < limits.get("minimum", 0)
            ]
            found += [f"{where_}: twice"] if limits.get("unique") and len(set(there)) < len(there) else []
            assert field["description"], where_
        if key := resource["schema"].get("primaryKey"):
            names = [field["name"] for field in fields]
            keys = [tuple(row[names.index(name)] for name in key) for row in rows[1:]]
            found += [f"{resource['name']}: two rows of one key"] if len(set(keys)) < len(keys) else []
    return found


def test_tables_are_what_their_schema_says(made: tuple[Reproduction, Path]) -> None:
    folder = made[1] / "tables"
    assert not mistakes(folder)
    package = json.loads((folder / "datapackage.json").read_text())
    assert {one["path"] for one in package["resources"]} == {path.name for path in folder.glob("*.csv")}
    fields = {one["name"]: {f["name"]: f for f in one["schema"]["fields"]} for one in package["resources"]}
    assert fields["runs"]["goodput"]["unit"] == "Mbit/s"
    assert fields["rates"]["goodput_bps"]["unit"] == "bit/s"
    assert "contradicts" in fields["verdicts"]["verdict"]["constraints"]["enum"]
    for name, own in fields.items():
        assert pl.read_parquet(folder / f"{name}.parquet").columns == list(own)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("verdicts", "trend", "trendy"),
        ("points", "simulated", ""),
        ("runs", "2.0,1", "two,1"),
        ("verdicts", "two,1", "more,1"),
    ],
)
def test_a_table_that_is_otherwise_is_found(
    made: tuple[Reproduction, Path], tmp_path: Path, name: str, old: str, new: str
) -> None:
    for path in (made[1] / "tables").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    text = (tmp_path / f"{name}.csv").read_text()
    assert old in text
    (tmp_path / f"{name}.csv").write_text(text.replace(old, new))
    assert any(one.startswith(name) for one in mistakes(tmp_path))


def test_nothing_published_is_a_table_with_columns(made: tuple[Reproduction, Path], tmp_path: Path) -> None:
    done = replace(made[0], results=[])
    tables.write(done, tmp_path)
    assert not mistakes(tmp_path)
    assert (tmp_path / "verdicts.csv").read_text().startswith("claim,figure,where,says,")


def test_a_column_that_nothing_describes_is_refused() -> None:
    with pytest.raises(AssertionError, match="verdicts: \\['more'\\]"):
        table_schema.VERDICTS.frame([{"claim": "a", "more": 1}])


def test_the_document_lists_the_columns() -> None:
    """PACELINE_BLESS=1 writes them anew."""
    path = ROOT / "docs/papers/artefacts.md"
    text = path.read_text()
    for table in (table_schema.VERDICTS, table_schema.READINGS, table_schema.POINTS, table_schema.runs({})):
        begin, end = f"<!-- columns of {table.name} -->\n", "\n<!-- end -->"
        head, _, rest = text.partition(begin)
        old, _, tail = rest.partition(end)
        new = table_schema.markdown(table)
        if os.environ.get("PACELINE_BLESS"):
            text = head + begin + new + end + tail
            path.write_text(text)
            continue
        assert old == new, f"{table.name}: PACELINE_BLESS=1 writes it anew"


def test_commands_say_what_was_run(made: tuple[Reproduction, Path]) -> None:
    done = made[0]
    name = shlex.quote(done.paper.name)
    assert artefact.command(done) == f"paceline reproduce {name} --runs 2"
    assert artefact.command(replace(done, figure="1")).endswith("--figure 1 --runs 2")

    def at(paper: Paper, **of: Any) -> str:
        return artefact.command(replace(done, paper=paper, **of))

    real = loading.load("lda-plus")
    assert at(real) == "paceline reproduce lda-plus --runs 2 --simulated"
    assert at(real, full=True) == "paceline reproduce lda-plus --runs 2 --full"


def test_the_page_of_one_figure_is_an_artefact(made: tuple[Reproduction, Path], tmp_path: Path) -> None:
    """With all inputs: the paper's files name them, whatever figure was asked for."""
    folder = tmp_path / "two"
    shutil.copytree(made[0].paper.folder, folder)
    (folder / "other.toml").write_text((folder / "one.toml").read_text())
    second = (
        FIGURES[FIGURES.index("[study.rate]") :]
        .replace("study.rate", "study.other")
        .replace("one.toml", "other.toml")
    )
    second = second.replace('"1', '"2').replace('"2 Mbit', '"1 Mbit')
    (folder / "figures.toml").write_text(FIGURES + second)
    words = ["reproduce", str(folder), "--figure", "1", "--runs", "1", "--out", "out"]
    done = here(words, tmp_path, {})
    assert done.code == 0, done.text
    assert loading.load(str(tmp_path / "out" / "inputs")).figures() == ["1", "2"]
    assert {"ro-crate-metadata.json", "codemeta.json", "CITATION.cff"} <= {
        p.name for p in (tmp_path / "out").iterdir()
    }
