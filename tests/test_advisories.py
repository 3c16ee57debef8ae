"""`.ci/advisories`, against a database that is made here: what is known against a locked version fails, what cannot be
looked up is said."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".ci" / "advisories"
pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="these are not the sources")

LOCK = """
[[package]]
name = "paceline-units"
version = "0.1.0"

[[package]]
name = "brittle"
version = "1.4.2"
source = "registry"

[[package]]
name = "left"
version = "0.3.0"
source = "registry"
"""
ADVISORY = """```toml
[advisory]
id = "RUSTSEC-2026-0001"
package = "brittle"
date = "2026-01-01"
{more}

[versions]
patched = [{patched}]
unaffected = ["< 1.2"]
```

# It breaks
"""


def looked_up(where: Path, patched: str, more: str = "") -> subprocess.CompletedProcess[str]:
    folder = where / "db" / "crates" / "brittle"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "RUSTSEC-2026-0001.md").write_text(ADVISORY.format(patched=patched, more=more))
    (where / "Cargo.lock").write_text(LOCK)
    # without npm, which would ask the network
    environment = {**os.environ, "PACELINE_LOCK": str(where / "Cargo.lock"), "PATH": str(where)}
    return subprocess.run(
        [sys.executable, PROGRAM, where / "db"], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("patched", ["", '">= 1.5"', '"^1.4.3", ">= 2"', '">= 1.4.3-rc.1"'])
def test_a_version_that_is_not_mended_fails(tmp_path: Path, patched: str) -> None:
    done = looked_up(tmp_path, patched)
    assert done.returncode == 1, done.stdout
    assert "brittle 1.4.2: RUSTSEC-2026-0001: It breaks" in done.stdout
    assert "crates: 2 looked up" in done.stdout
    assert "1 known against what is locked" in done.stdout


@pytest.mark.parametrize(
    "patched", ['">= 1.4.2"', '"~1.4.1, < 1.5"', '"^1.3"', '"=1.4.2"', '"> 1.4.2-alpha.1"']
)
def test_one_that_is_mended_does_not(tmp_path: Path, patched: str) -> None:
    done = looked_up(tmp_path, patched)
    assert done.returncode == 0, done.stdout
    assert "0 known against what is locked" in done.stdout


@pytest.mark.parametrize("more", ['informational = "unmaintained"', 'withdrawn = "2026-02-01"'])
def test_what_is_no_fault_is_none(tmp_path: Path, more: str) -> None:
    done = looked_up(tmp_path, '">= 2"', more)
    assert done.returncode == 0, done.stdout
    assert ("RUSTSEC-2026-0001" in done.stdout) == more.startswith("informational")


def test_without_a_database_it_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "CARGO_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "crates: left out: there is no copy of the RustSec database" in done.stdout
    assert "npm: left out" in done.stdout


def program() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("advisories", str(PROGRAM))
    spec = importlib.util.spec_from_loader("advisories", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_versions_have_the_order_of_semantic_versioning() -> None:
    """Its own example (11.4.4), and Cargo's caret below 1."""
    names = [
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
    ]
    names += ["1.0.0-rc.1", "1.0.0", "1.0.1", "1.1.0", "2.0.0"]
    of = program()
    assert sorted(sorted(names), key=lambda name: of.key(of.version(name))) == names
    assert of.fits("0.3.9", "^0.3.1")
    assert not of.fits("0.4.0", "^0.3.1")
    assert not of.fits("0.0.4", "^0.0.3")
    assert of.fits("7.1.0", "*")
