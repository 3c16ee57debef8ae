"""What is compiled, is compiled once: one graph of units for tests, module and examples, and one program of integration
tests a crate, with every file of them in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
EVERYTHING = ("build", "--workspace", "--lib", "--bins", "--examples", "--tests")
"""What `./check` builds (`build_all` in bootstrap.sh)."""


def units(*command: str) -> dict[str, str]:
    """The units that a command of cargo's compiles. A key stands for the unit, its settings and all that lies below it;
    the value is a name to show."""
    # not stable yet; the toolchain that builds the rest lets us have it all the same
    arguments = [command[0], "--unit-graph", "-Zunstable-options", "--locked", *command[1:]]
    graph = subprocess.run(
        ["cargo", *arguments],
        cwd=ROOT,
        env={**os.environ, "RUSTC_BOOTSTRAP": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    every: list[dict[str, Any]] = json.loads(graph.stdout)["units"]

    @cache
    def identity(index: int) -> str:
        unit = every[index]
        # a test's profile has another name and the same settings
        profile = {key: value for key, value in unit["profile"].items() if key != "name"}
        below = sorted(identity(used["index"]) for used in unit["dependencies"])
        own = {key: value for key, value in unit.items() if key not in ("dependencies", "profile")}
        return str(hash(json.dumps([own, profile, below], sort_keys=True)))

    return {
        identity(index): f"{unit['pkg_id'].rpartition('/')[2]} {unit['target']['name']} ({unit['mode']})"
        for index, unit in enumerate(every)
        if unit["mode"] != "doctest"
    }


def differing(of: dict[str, str], among: dict[str, str]) -> list[str]:
    """The units that would be compiled anew."""
    return sorted(name for unit, name in of.items() if unit not in among)


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("cargo-test in ./check", ("test", "--workspace", "--no-run")),
        ("./paceline --dev", ("build", "--workspace", "--lib", "--example", "simulate")),
    ],
)
def test_what_was_built_is_built_for_all(what: str, command: tuple[str, ...]) -> None:
    again = differing(units(*command), units(*EVERYTHING))
    assert not again, f"{what} compiles anew what ./check has built: {again}"


def test_a_graph_that_parts_is_seen() -> None:
    """The module by itself has not the features that tests' libraries ask for: what the test above is to find."""
    again = differing(units("build", "-p", "paceline-python"), units(*EVERYTHING))
    assert any("paceline-sim" in name for name in again)


def test_bootstrap_builds_what_is_compared_here() -> None:
    text = (ROOT / "bootstrap.sh").read_text()
    assert "cargo build --quiet --locked --workspace" in text
    assert re.search(r"^ +built --lib --bins --examples --tests$", text, flags=re.MULTILINE)
    assert re.search(r"^ +built --lib --example simulate\b", text, flags=re.MULTILINE)


def programs(crate: Path) -> list[Path]:
    """The integration tests that cargo finds by itself: the files of `tests`, and the folders with a main.rs."""
    return [*(crate / "tests").glob("*.rs"), *(crate / "tests").glob("*/main.rs")]


def crates_with_tests() -> list[Path]:
    return sorted(crate for crate in ROOT.glob("crates/*") if programs(crate))


@pytest.mark.parametrize("crate", crates_with_tests(), ids=lambda path: path.name)
def test_a_crate_s_integration_tests_are_one_program_with_all_of_them(crate: Path) -> None:
    """Each program would be linked with the whole library anew. Where one file names the others, none is forgotten."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    if manifest["package"].get("autotests", True):
        assert len(programs(crate)) == 1, f"{crate.name} has {len(programs(crate))} programs of tests"
        return
    assert [test["path"] for test in manifest["test"]] == ["tests/main.rs"]
    named = set(re.findall(r"^mod (\w+);$", (crate / "tests/main.rs").read_text(), flags=re.MULTILINE))
    there = {path.stem for path in (crate / "tests").glob("*.rs")} - {"main"}
    there |= {path.parent.name for path in (crate / "tests").glob("*/mod.rs")}
    assert named >= there, f"{crate.name}/tests/main.rs does not have {sorted(there - named)}"
    assert not list((crate / "tests").glob("*/main.rs"))


LINUX_ONLY = '#[cfg(target_os = "linux")]\n'
LINUX_LINE = re.compile(r'#\[cfg\(target_os = "linux"\)\]\n.*')
LINUX = re.compile(r'#\[cfg\(target_os = "linux"\)\]\s*(?:#\[doc\(hidden\)\]\s*)?(?:pub )?mod (\w+);')


def other_systems_use(crate: Path) -> list[str]:
    """Where a source file that every system compiles names a dependency that only Linux has."""
    manifest = tomllib.loads((crate / "Cargo.toml").read_text())
    targets = manifest.get("target", {}).values()
    everywhere = {name.replace("-", "_") for name in manifest["dependencies"]}
    here = {name.replace("-", "_") for target in targets for name in target.get("dependencies", {})}
    modules = LINUX.findall((crate / "src/lib.rs").read_text())
    left_out = [crate / "src" / name for name in modules]
    return [
        f"{path.relative_to(crate)}: {name}"
        for path in sorted((crate / "src").rglob("*.rs"))
        if not any(path == out.with_suffix(".rs") or out in path.parents for out in left_out)
        for name in sorted(here - everywhere)
        if re.search(rf"(?<![\w:]){name}::", LINUX_LINE.sub("", path.read_text().split("#[cfg(test)]")[0]))
    ]


def test_other_systems_have_the_crates_that_they_use(tmp_path: Path) -> None:
    """Only `./check --platforms` compiles for other systems, too late to notice a dependency that Linux alone has."""
    crates = [path.parent for path in ROOT.glob("crates/*/Cargo.toml") if "cfg(target_os" in path.read_text()]
    assert [crate.name for crate in crates] == ["live"]
    assert other_systems_use(crates[0]) == []
    (tmp_path / "src").mkdir()
    (tmp_path / "src/lib.rs").write_text(f"{LINUX_ONLY}mod own;\nmod results;\n")
    for name in ("own", "results"):
        (tmp_path / f"src/{name}.rs").write_text("use serde::Serialize;\n")
    (tmp_path / "Cargo.toml").write_text(
        '[dependencies]\ntoml = "1"\n[target.\'cfg(target_os = "linux")\'.dependencies]\nserde = "1"\n'
    )
    assert other_systems_use(tmp_path) == ["src/results.rs: serde"]
