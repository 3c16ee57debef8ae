"""The documents say what the code does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from paceline import _core

ROOT = Path(__file__).resolve().parent.parent


def test_every_measure_is_defined() -> None:
    summary = (ROOT / "crates/sim/src/summary.rs").read_text()
    defined = (ROOT / "docs/measures.md").read_text()
    structures = re.findall(r"pub struct \w+ \{(.*?)\n\}", summary, flags=re.DOTALL)
    names = {name for body in structures for name in re.findall(r"^    pub (\w+):", body, flags=re.MULTILINE)}
    assert len(names) > 60, "summary.rs has changed its form: this test must follow"
    places = {"name", "seed", "engine", "flows", "streams", "queues", "interfaces", "groups"}
    places |= {
        "flow",
        "instance",
        "group",
        "cc",
        "profile",
        "from",
        "to",
        "link",
        "direction",
        "cell",
        "interface",
    }
    missing = sorted(name for name in names - places if f"`{name}`" not in defined)
    assert not missing, f"docs/measures.md does not define {missing}"


# Most of the time is the compiler's.
QUICK = {"CARGO_PROFILE_DEV_OPT_LEVEL": "1", "CARGO_PROFILE_DEV_DEBUG": "none"}


def test_the_documented_controller_is_one_file_and_two_lines(tmp_path: Path) -> None:
    """Does what docs/write-your-own-controller.md says, in a copy of the sources, and runs the tests there."""
    text = (ROOT / "docs/write-your-own-controller.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    (code,) = [body for kind, body in blocks if kind == "rust"]
    module, entry = [body for kind, body in blocks if kind == "text"]
    for name in ("Cargo.toml", "Cargo.lock", "clippy.toml"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "crates", tmp_path / "crates")
    control = tmp_path / "crates" / "control" / "src"
    (control / "sqrt.rs").write_text(code.replace("use paceline_control::", "use crate::"))
    lib = control / "lib.rs"
    lib.write_text(
        re.sub(r"^pub mod registry;", module + "pub mod registry;", lib.read_text(), flags=re.MULTILINE)
    )
    registry = control / "registry.rs"
    listed = re.sub(r"^( *TcpController: [^{]*\{\n)", r"\1" + entry, registry.read_text(), flags=re.MULTILINE)
    assert entry in listed
    registry.write_text(listed)
    assert "cargo test -p paceline-control -p paceline-flow" in text
    # Of all tests those that go by the registry, so that this ends soon.
    for part in (["paceline-control", "--lib"], ["paceline-flow", "--test", "conformance"]):
        run = subprocess.run(
            ["cargo", "test", "--quiet", "--offline", "-p", *part],
            cwd=tmp_path,
            env={**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target"), **QUICK},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr


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
        name = scheme["name"]
        (page,) = [
            text for file, text in pages.items() if file != "README.md" and f"`{name}`" in text.split("\n")[0]
        ]
        for parameter in scheme["params"]:
            assert f"| `{parameter['name']}` |" in page, f"{name}'s page does not tell of {parameter['name']}"
