"""Makes a reproduction's folder a citable artefact: its inputs, and machine-readable descriptions.

- `inputs/`: the paper's files, so that `paceline reproduce OUT/inputs` runs it again;
- `ro-crate-metadata.json`: RO-Crate 1.1 (Sefton et al. 2020), every file with a description, the command, the program;
- `codemeta.json`: CodeMeta 3.0, the program and the paper;
- `CITATION.cff`: Citation File Format 1.2.0, how to cite the re-run, with the paper and the program.
"""

from __future__ import annotations

import json
import re
import shlex
import warnings
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from paceline import _core, files
from paceline.errors import PacelineWarning
from paceline.files import paper_folders
from paceline.papers import loading, summary
from paceline.studies import points
from paceline.studies.paper import Paper
from paceline.studies.reproduction import Reproduction

INPUTS = "inputs"
NAME = "Paceline"
DESCRIPTION = "A workbench for the congestion control of streaming and real-time media"
AUTHORS = "The Paceline authors"
LICENCES = ("Apache-2.0", "MIT")

_PARTICLES = ("de", "da", "del", "della", "den", "der", "di", "du", "la", "le", "ten", "van", "von")
"""Particles that belong to a family name."""
_KINDS = {
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".toml": "application/toml",
}
_WHAT = {
    "index.html": "The page: figures, ours beside what was published, and a verdict per statement",
    "manifest.json": "Seeds, versions, machine, time, and every scenario with all defaults filled in",
    "playground.html": "The simulator in a browser, where the page's points open",
    "tables/datapackage.json": "What the columns of the tables mean: a Frictionless Data Package",
    "tables/runs.csv": "Every metric of every run",
    "tables/points.csv": "Every metric of every point, with 95 % intervals",
    "tables/verdicts.csv": "Every published statement with its verdict",
    "codemeta.json": "The program, by CodeMeta",
    "CITATION.cff": "How to cite this re-run",
    f"{INPUTS}/{paper_folders.FIGURES}": "What is run and drawn for each figure",
    f"{INPUTS}/{paper_folders.PUBLISHED}": "What the paper published, statement by statement",
    f"{INPUTS}/{paper_folders.READINGS}": "What its text leaves open, taken otherwise, and causes of what differs",
}


def version() -> str:
    """The version of the program, without its build suffix."""
    return _core.build().partition("+")[0]


def person(name: str) -> tuple[str, str]:
    """A name's given and family parts: ("Luca", "De Cicco"); the first is empty for a single word."""
    words = name.split()
    first = len(words) - 1
    while first > 1 and words[first - 1].lower() in _PARTICLES:
        first -= 1
    return " ".join(words[:first]), " ".join(words[first:])


def authors(paper: Paper) -> list[tuple[str, str]]:
    """The paper's authors, given and family names."""
    return [person(name) for name in re.split(r",\s*(?:and\s+)?|\s+and\s+", paper.authors) if name.strip()]


def year(paper: Paper) -> int | None:
    """The year of publication, if known."""
    found = re.findall(r"\b(?:19|20)\d\d\b", paper.published_in)
    return int(found[-1]) if found else None


def command(reproduction: Reproduction) -> str:
    """The command that makes the same page."""
    words = ["paceline", "reproduce", reproduction.paper.name]
    words += ["--figure", reproduction.figure] if reproduction.figure else []
    if reproduction.reading:
        words += ["--reading", reproduction.reading.key]
    elif reproduction.readings:
        words.append("--readings")
    words += ["--runs", str(reproduction.runs)]
    real = any(study.is_emulated for study in reproduction.paper.studies.values())
    words += (
        ["--full"] if reproduction.full else ["--simulated"] if real and reproduction.real is None else []
    )
    return shlex.join(words)


def write(reproduction: Reproduction, out: Path) -> None:
    """Writes inputs and descriptions beside a page, after everything else. Raises StorageError."""
    # Copy all of the paper's files, even for a page of one figure: figures.toml names them.
    _copy_inputs(loading.load(reproduction.paper.name), out / INPUTS)
    files.write_json(out / "codemeta.json", codemeta(reproduction.paper))
    files.write_whole(out / "CITATION.cff", citation(reproduction))
    files.write_json(out / "ro-crate-metadata.json", crate(reproduction, out))


def _copy_inputs(paper: Paper, to: Path) -> None:
    files.make_directory(to)
    names = [
        paper.file,
        *(n for n in (paper_folders.PUBLISHED, paper_folders.READINGS) if (paper.folder / n).exists()),
    ]
    names += dict.fromkeys(study.scenario for study in paper.studies.values() if study.scenario)
    names += dict.fromkeys(p.scenario for reading in paper.readings for p in reading.parts if p.scenario)
    found = {name: files.read_text(paper.folder / name) for name in names}
    with warnings.catch_warnings():
        # warnings appeared before it ran
        warnings.simplefilter("ignore", PacelineWarning)
        for study in paper.studies.values():
            for place, _, _ in points.places(study):
                found |= points.point(paper, study, place).scenario.traces()
    for name, text in found.items():
        _put(to, name, text)


def _put(to: Path, name: str, text: str) -> None:
    # Files outside the paper's folder cannot be placed in this one.
    if not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts:
        files.make_directory((to / name).parent)
        files.write_whole(to / name, text)


def codemeta(paper: Paper | None = None) -> dict[str, Any]:
    """The program by CodeMeta 3.0, with the paper that it re-runs."""
    found: dict[str, Any] = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": NAME,
        "description": DESCRIPTION,
        "version": version(),
        "license": [f"https://spdx.org/licenses/{licence}" for licence in LICENCES],
        "author": [{"@type": "Organization", "name": AUTHORS}],
        "programmingLanguage": ["Rust", "Python"],
        "operatingSystem": ["Linux", "macOS", "Windows"],
        "keywords": ["congestion control", "TCP", "streaming media", "network simulation"],
    }
    if paper is not None:
        found["referencePublication"] = [_article(paper) | {"author": _people(paper)}]
    return found


def _article(paper: Paper) -> dict[str, Any]:
    when = year(paper)
    return {
        "@type": "ScholarlyArticle",
        "name": paper.title,
        "description": paper.published_in,
        **({"datePublished": str(when)} if when else {}),
    }


def _people(paper: Paper) -> list[dict[str, str]]:
    return [
        {
            "@type": "Person",
            "name": f"{given} {family}".strip(),
            **({"givenName": given} if given else {}),
            "familyName": family,
        }
        for given, family in authors(paper)
    ]


def citation(reproduction: Reproduction) -> str:
    """The re-run, the paper and the program in the Citation File Format, which is YAML; JSON strings are valid YAML."""
    paper, quoted = reproduction.paper, json.dumps
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this re-run, cite it with the paper that it re-runs and the program that made it.",
        "type: dataset",
        f"title: {quoted(f'{paper.title}: re-run with {NAME}')}",
        "authors:",
        f"  - name: {quoted(AUTHORS)}",
        f"version: {quoted(version())}",
        f"date-released: {reproduction.provenance['time'][:10]}",
        "references:",
        "  - type: article",
        f"    title: {quoted(paper.title)}",
        "    authors:",
    ]
    for given, family in authors(paper):
        lines.append(f"      - family-names: {quoted(family)}")
        lines += [f"        given-names: {quoted(given)}"] if given else []
    when = year(paper)
    lines += [f"    year: {when}"] if when else []
    lines += [
        f"    notes: {quoted(paper.published_in)}",
        "  - type: software",
        f"    title: {NAME}",
        "    authors:",
        f"      - name: {quoted(AUTHORS)}",
        f"    version: {quoted(version())}",
        "    license:",
        *(f"      - {licence}" for licence in LICENCES),
    ]
    return "\n".join(lines) + "\n"


def crate(reproduction: Reproduction, out: Path) -> dict[str, Any]:
    """The folder as an RO-Crate 1.1: the existing files, the paper, the program, and the run that made them."""
    paper = reproduction.paper
    inputs = [path for path in _files(out) if path.startswith(f"{INPUTS}/")]
    made = [path for path in _files(out) if path not in inputs]
    ended = datetime.fromisoformat(reproduction.provenance["time"])
    people = [{"@id": f"#author-{n}"} | one for n, one in enumerate(_people(paper), 1)]
    software = f"#paceline-{_core.build()}"
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{paper.title}: re-run with {NAME}",
        "description": " ".join([paper.summary, *(row["answer"] for row in summary.answers(reproduction))]),
        "datePublished": ended.isoformat(),
        "license": {"@id": "#licence"},
        "author": {"@id": "#paceline-authors"},
        "citation": {"@id": "#paper"},
        "hasPart": _ids([*made, *inputs]),
        "mentions": {"@id": "#run"},
    }
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": command(reproduction),
        "description": f"{reproduction.runs} runs of each point, from seed {reproduction.seeds[0]} on",
        "instrument": {"@id": software},
        "object": _ids(inputs),
        "result": _ids(made),
        "startTime": (ended - timedelta(seconds=reproduction.seconds)).isoformat(),
        "endTime": ended.isoformat(),
    }
    entities = [
        {
            "@id": "ro-crate-metadata.json",
            "@type": "CreativeWork",
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
            "about": {"@id": "./"},
        },
        root,
        *(_file(reproduction, out, path) for path in [*made, *inputs]),
        {"@id": "#paper", **_article(paper), "author": [{"@id": one["@id"]} for one in people]},
        *people,
        {
            "@id": software,
            "@type": "SoftwareApplication",
            "name": NAME,
            "description": DESCRIPTION,
            "softwareVersion": _core.version(),
            "version": _core.build(),
            "license": {"@id": "#licence"},
            "author": {"@id": "#paceline-authors"},
        },
        run,
        {"@id": "#paceline-authors", "@type": "Organization", "name": AUTHORS},
        {
            "@id": "#licence",
            "@type": "CreativeWork",
            "name": " OR ".join(LICENCES),
            "description": f"The licence of {NAME}, its scenarios and pages. The paper's text is not among them.",
        },
    ]
    return {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": entities}


def _ids(paths: list[str]) -> list[dict[str, str]]:
    return [{"@id": path} for path in paths]


def _files(out: Path) -> list[str]:
    """The existing files that a reproduction writes, in order."""
    found = [
        out / name
        for name in ("index.html", "playground.html", "manifest.json", "codemeta.json", "CITATION.cff")
    ]
    found = [path for path in found if path.is_file()]
    for folder in ("figures", "tables", INPUTS):
        found += sorted(
            path for path in (out / folder).rglob("*") if path.is_file() and path.suffix in _KINDS
        )
    return [path.relative_to(out).as_posix() for path in found]


def _file(reproduction: Reproduction, out: Path, path: str) -> dict[str, str]:
    kind = _KINDS.get(PurePosixPath(path).suffix, "text/plain")
    return {
        "@id": path,
        "@type": "File",
        "name": PurePosixPath(path).name,
        "description": _described(reproduction, path),
        "encodingFormat": kind,
        "contentSize": str((out / path).stat().st_size),
    }


def _described(reproduction: Reproduction, path: str) -> str:
    known = _WHAT.get(path) or _WHAT.get(str(PurePosixPath(path).with_suffix(".csv")))
    if known:
        return known
    folder, stem = PurePosixPath(path).parts[0], PurePosixPath(path).stem
    if folder == "figures":
        plots = {f"figure-{plot.key}": plot for study in reproduction.studies() for plot in study.plots}
        return plots[stem].title if stem in plots else "A figure of an earlier run"
    if folder == "tables":
        return f"The recordings `{stem}` of the studies that make them"
    return "A scenario of the paper" if path.endswith(".toml") else "A trace that a scenario names"
