"""The documents say what the code does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from dev_package import TARGET
from paceline import _core

ROOT = Path(__file__).resolve().parent.parent


MEASURES = {
    "Flows": ("flows", "real_flows"),
    "Streams": ("streams",),
    "Queues": ("queues",),
    "Flows at a link": ("link_flows",),
    "Transmitters of a cell": ("interfaces",),
    "Groups": ("groups",),
    "Engine": ("runs",),
}
"""Sections of docs/measures.md, and the tables of measures that they print."""
HEAD = "| measure | unit | definition |\n|---|---|---|\n"


def _rows(tables: Sequence[str]) -> str:
    """Measures as rows of a table in Markdown."""
    known = json.loads(_core.measures_json())
    rows = []
    for entry in (entry for table in tables for entry in known[table]):
        names = ", ".join(f"`{name}`" for name in entry["columns"])
        unit = entry["unit"] and entry["unit"] + " "
        rows.append(f"| {names} | {unit}| {entry['meaning']} |\n")
    return "".join(rows)


def test_the_documents_tables_of_measures_are_the_cores() -> None:
    """crates/sim/src/measures has them; PACELINE_BLESS=1 writes them into the document."""
    path = ROOT / "docs/measures.md"
    text = path.read_text()
    for title, tables in MEASURES.items():
        before, section, rest = re.split(rf"(?<=\n)(## {title}\n)", text)
        head, found, tail = rest.partition(HEAD)
        assert found
        assert "\n## " not in head, f"{title} has no table of measures"
        lines = re.match(r"(?:\|.*\n)*", tail)
        text = before + section + head + HEAD + _rows(tables) + tail[lines.end() if lines else 0 :]
    if os.environ.get("PACELINE_BLESS") == "1":
        path.write_text(text)
    assert path.read_text() == text, "after a change of the measures: PACELINE_BLESS=1"


def _copied(source: Path, to: Path) -> None:
    """Copies what differs, with its time, so that cargo compiles what has changed since the last time and no more."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists() or source.read_bytes() != to.read_bytes():
        shutil.copy2(source, to)


def test_the_documented_controller_is_one_file_and_two_lines() -> None:
    """Does what docs/your-own-controller.md says, in a copy of the sources, and runs the tests there.

    The copy stands in cargo's target folder, where the tests' libraries are compiled already; what is compiled here is
    not optimised, and runs for this scheme alone where that is a choice."""
    text = (ROOT / "docs/your-own-controller.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    (code,) = [body for kind, body in blocks if kind == "rust"]
    module, entry = [body for kind, body in blocks if kind == "text"]
    copy, made = TARGET / "documented", TARGET / "documented.made"
    lib, registry = "crates/control/src/lib.rs", "crates/control/src/registry.rs"
    listed = re.sub(
        r"^( *TcpController: [^{]*\{\n)", r"\1" + entry, (ROOT / registry).read_text(), flags=re.MULTILINE
    )
    assert entry in listed
    changed = {
        "crates/control/src/sqrt.rs": code.replace("use paceline_control::", "use crate::"),
        lib: re.sub(
            r"^pub mod registry;", module + "pub mod registry;", (ROOT / lib).read_text(), flags=re.MULTILINE
        ),
        registry: listed,
    }
    for name, body in changed.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(body)
    sources = [ROOT / name for name in ("Cargo.toml", "Cargo.lock", "clippy.toml")]
    sources += [path for path in (ROOT / "crates").rglob("*") if path.is_file()]
    theirs = {path.relative_to(ROOT).as_posix() for path in sources} | changed.keys()
    for old in [path for path in copy.rglob("*") if path.is_file()]:
        if old.relative_to(copy).as_posix() not in theirs:
            old.unlink()
    for name in sorted(theirs):
        _copied((made if name in changed else ROOT) / name, copy / name)
    assert "cargo test -p paceline-control -p paceline-flow" in text
    # Of all tests those that go by the registry, so that this ends soon.
    parts = (
        ["-p", "paceline-control", "--lib"],
        ["-p", "paceline-flow", "--test", "integration", "conformance::"],
    )
    for part in parts:
        run = subprocess.run(
            ["cargo", "test", "--quiet", "--offline", *part],
            cwd=copy,
            env={
                **os.environ,
                "CARGO_TARGET_DIR": str(TARGET),
                "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
                "PACELINE_SCHEME": "sqrt",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert re.search(r"test result: ok\. [1-9]", run.stdout), run.stdout


def _scenarios() -> list[tuple[str, str]]:
    """Every scenario that a document prints or a folder holds, as (where, text)."""
    found = [
        (p.relative_to(ROOT).as_posix(), p.read_text()) for p in sorted(ROOT.glob("bench/scenarios/*.toml"))
    ]
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        blocks = re.findall(r"^```toml[^\n]*\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        where = path.relative_to(ROOT).as_posix()
        found += [
            (where, block)
            for block in blocks
            if re.search(r"^duration", block, flags=re.MULTILINE) and "[class]" not in block
        ]
    return found


@pytest.mark.parametrize(("where", "text"), _scenarios())
def test_every_scenario_in_the_documents_is_one(where: str, text: str) -> None:
    # The controllers that two documents add are not there; their scenarios are right otherwise.
    known = re.sub(r'cc = "(sqrt|python:mine\.py:Gentle)"', 'cc = "cubic"', text)
    _core.Scenario.parse(known, str(ROOT), where)


def test_every_scheme_has_its_page() -> None:
    pages = {p.name: p.read_text() for p in (ROOT / "docs" / "controllers").glob("*.md")}
    for scheme in json.loads(_core.schemes()):
        name = scheme.get("variant_of", scheme)["name"]
        (page,) = [
            text for file, text in pages.items() if file != "README.md" and f"`{name}`" in text.split("\n")[0]
        ]
        for parameter in scheme["params"]:
            assert f"| `{parameter['name']}` |" in page, f"{name}'s page does not tell of {parameter['name']}"


def test_every_scheme_is_held_as_a_whole_or_it_is_said_why_not() -> None:
    text = (ROOT / "docs/controllers/held-against.md").read_text()
    table = text.split("\n## Assembled\n")[1].split("\n## ")[0]
    rows = [row.split("|") for row in table.splitlines() if row.startswith("| `")]
    held = {name for row in rows for name in re.findall("`([^`]+)`", row[1])}
    assert {scheme.get("variant_of", scheme)["name"] for scheme in json.loads(_core.schemes())} <= held
