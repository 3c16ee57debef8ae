"""The house: what holds for the repository as a whole, whatever the code in it does."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import tomllib
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each crate and the crates it uses (docs/decisions/crate-arrows.md). What those use may be used too.
USES: dict[str, set[str]] = {
    "units": set(),
    "random": set(),
    "packet": {"units"},
    "engine": {"packet", "random"},
    "control": {"random", "units"},
    "flow": {"control", "packet", "random"},
    "path": {"engine", "random"},
    "apps": {"units", "random"},
    "scenario": {"flow", "path", "apps"},
    "sim": {"scenario"},
    "library": {"control"},
    "qlog": {"units"},
    "quinn": {"flow", "sim"},  # sim in its tests
    "calls": {"sim"},
    "live": {"qlog", "quinn", "sim"},
    "fuzzed": {"calls", "live", "qlog"},
    "web": {"sim"},
    "bits": {"sim"},
    "python": {"calls", "library", "live", "qlog"},
    "gateway": {"live"},
}
# Rooms of the crate scenario; each imports earlier ones only (docs/decisions/rooms.md).
SCENARIO_ROOMS = [
    "error",
    "model",
    "keys",
    "walk",
    "document",
    "edit",
    "docs",
    "fill",
    "rules",
    "scenario",
    "resolve",
    "lint",
]
WITH_IO = {"library", "live", "python", "gateway", "fuzzed", "bits"}
# It is told the time as quinn tells it, and takes none: clippy refuses `Instant::now` there as everywhere.
GIVEN_INSTANTS = {"quinn"}

# Files of more than 600 lines, each with the reason why it is better whole.
LONG: dict[str, str] = {}

_SKIPPED = {"target", "out", "node_modules", "pkg", "__pycache__", "build", "dist"}
_CODE = {".rs", ".py", ".pyi", ".tcl", ".sh", ".js", ".css"}
_TEXT = _CODE | {".md", ".toml", ".html", ".yml", ".yaml", ""}


def files(*suffixes: str) -> Iterator[Path]:
    """The repository's files, those that building leaves behind excepted."""
    for folder, below, names in os.walk(ROOT):
        below[:] = [
            d for d in below if d not in _SKIPPED and (not d.startswith(".") or d in (".ci", ".github"))
        ]
        for name in names:
            path = Path(folder, name)
            if (not suffixes or path.suffix in suffixes) and not name.startswith(".git"):
                yield path


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _simulator_sources() -> Iterator[Path]:
    for crate in USES.keys() - WITH_IO - GIVEN_INSTANTS:
        yield from (ROOT / "crates" / crate / "src").rglob("*.rs")


def test_arrows_between_crates() -> None:
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version=1", "--no-deps"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )

    def reachable(crate: str) -> set[str]:
        direct = USES[crate]
        return direct.union(*(reachable(used) for used in direct))

    prefix = "paceline-"
    seen = set()
    for package in metadata["packages"]:
        crate = package["name"].removeprefix(prefix)
        assert crate in USES, f"crate {crate} has no place in the table USES"
        seen.add(crate)
        arrows = {
            d["name"].removeprefix(prefix) for d in package["dependencies"] if d["name"].startswith(prefix)
        }
        wrong = arrows - reachable(crate) - {crate}
        assert not wrong, f"crates/{crate} may not use {sorted(wrong)}"
    assert seen == set(USES), f"crates that are gone: {sorted(set(USES) - seen)}"


def test_rooms_of_the_crate_scenario_form_no_circle() -> None:
    folder = ROOT / "crates" / "scenario" / "src"
    for path in folder.rglob("*.rs"):
        room = path.relative_to(folder).parts[0].removesuffix(".rs")
        if room == "lib":
            continue
        allowed = set(SCENARIO_ROOMS[: SCENARIO_ROOMS.index(room) + 1])
        wrong = set(re.findall(r"\bcrate::(\w+)", path.read_text())) - allowed
        assert not wrong, f"{_name(path)} may not use {sorted(wrong)}"


def test_every_crate_takes_the_lints_and_none_escapes_them() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    lints = workspace["workspace"]["lints"]["clippy"]
    assert lints["disallowed_methods"] == "deny"
    assert lints["disallowed_types"] == "deny"
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        assert tomllib.loads(manifest.read_text()).get("lints") == {"workspace": True}, _name(manifest)
    escape = re.compile(r"(?:allow|expect|warn)\s*\([^)]*clippy::disallowed_")
    system = re.compile(r"\bstd::(?:fs|net|env|process|thread)\b|\bstd::time::(?:Instant|SystemTime)\b")
    for crate in GIVEN_INSTANTS:
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs"):
            text = path.read_text()
            assert "disallowed_methods" not in text, (
                f"{_name(path)} turns off a lint that keeps it from taking the time"
            )
            found = re.search(r"\bstd::(?:fs|net|env|process|thread)\b|\bSystemTime\b", text)
            assert not found, f"{_name(path)} touches the system: {found and found.group()}"
    for path in _simulator_sources():
        text = path.read_text()
        assert not escape.search(text), f"{_name(path)} turns off a lint that keeps the simulator sans-I/O"
        found = system.search(text)
        assert not found, f"{_name(path)} touches the system: {found and found.group()}"


@pytest.mark.parametrize(
    ("statement", "lint"),
    [
        ("let _ = std::time::Instant::now();", "disallowed-methods"),
        ("let _ = std::time::SystemTime::now();", "disallowed-methods"),
        ('let _ = std::env::var("HOME");', "disallowed-methods"),
        ("let _ = 2.0_f64.powf(0.5);", "disallowed-methods"),
        ("let _ = 2.0_f64.exp();", "disallowed-methods"),
        ("let _ = std::collections::HashMap::<u8, u8>::new();", "disallowed-types"),
        ('let _ = std::fs::File::open("x");', "disallowed-types"),
    ],
)
def test_lints_bite(tmp_path: Path, statement: str, lint: str) -> None:
    """clippy, with the project's own settings, refuses what a simulator must not do."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").write_text(f"/// Probe.\npub fn probe() {{ {statement} }}\n")
    lints = re.findall(r"^disallowed_.*$", (ROOT / "Cargo.toml").read_text(), flags=re.MULTILINE)
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "probe"\nedition = "2024"\n[workspace]\n[lints.clippy]\n' + "\n".join(lints) + "\n"
    )
    run = subprocess.run(
        ["cargo", "clippy", "--quiet", "--offline", "--target-dir", str(tmp_path / "target")],
        cwd=tmp_path,
        env={**os.environ, "CLIPPY_CONF_DIR": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0, "clippy let it pass"
    assert lint in run.stderr or lint.replace("-", "_") in run.stderr, run.stderr


def test_every_folder_says_what_it_holds() -> None:
    for crate in USES:
        (root,) = (p for n in ("lib.rs", "main.rs") if (p := ROOT / "crates" / crate / "src" / n).is_file())
        first = root.read_text().split("\n", 1)[0]
        assert first.startswith("//!"), f"{_name(root)} has no crate doc"
    for package in ROOT.glob("python/**/__init__.py"):
        assert package.read_text().startswith('"""'), f"{_name(package)} has no docstring"
    folders = [
        p for p in ROOT.iterdir() if p.is_dir() and p.name not in _SKIPPED and not p.name.startswith(".")
    ]
    folders = [p for p in folders if p.name not in {"crates", "python"}]
    for shelf in ("papers", "suites"):
        folders += [p for p in (ROOT / shelf).glob("*") if p.is_dir() and p.name not in _SKIPPED]
    for folder in folders:
        assert (folder / "README.md").is_file(), f"{_name(folder)} has no README.md"


def test_no_file_grows_past_reading() -> None:
    long = {_name(p) for p in files(*_CODE) if len(p.read_text(errors="replace").splitlines()) > 600}
    assert long <= LONG.keys(), f"more than 600 lines: {sorted(long - LONG.keys())}"
    assert long >= LONG.keys(), f"no longer long, or gone: {sorted(LONG.keys() - long)}"


def test_versions_agree() -> None:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" in project.get("dynamic", []) or project["version"] == version
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        package = tomllib.loads(manifest.read_text())["package"]
        assert package["version"] in ({"workspace": True}, version), _name(manifest)
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


def test_licences_agree() -> None:
    """The package says no licence that its files do not have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "(Apache-2.0 OR MIT) AND MIT"
    for path in [*ROOT.glob("kernel-cc/*.c"), *ROOT.glob("kernel-cc/*.h")]:
        assert "SPDX-License-Identifier: MIT OR GPL-2.0-only" in path.read_text().split("\n", 1)[0], _name(
            path
        )
    for path in ROOT.glob("kernel-cc/*.c"):
        # what the kernel asks of a program of its TCP; it does not take "MIT"
        assert 'SECTION("license") char LICENSE[] = "Dual MIT/GPL";' in path.read_text(), _name(path)
    assert (ROOT / "kernel-cc/LICENSE-MIT").read_text() == (ROOT / "LICENSE-MIT").read_text()


def test_texts_name_no_machine() -> None:
    pattern = re.compile(r"(?<![\w.~$}])/(?:work|root|home|Users|farm)/\w")
    for path in files(*_TEXT):
        try:
            found = pattern.search(path.read_text())
        except UnicodeDecodeError:
            continue
        assert not found, f"{_name(path)} names a path of one machine: {found and found.group()}"


def test_links_between_documents_lead_somewhere() -> None:
    link = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
    for path in files(".md"):
        for target in link.findall(path.read_text()):
            assert (path.parent / target).exists(), f"{_name(path)} links to {target}, which is not there"


def test_everything_executable_says_how_it_is_run() -> None:
    for name in (
        "paceline",
        "check",
        "docs-site",
        ".ci/advisories",
        ".ci/run",
        ".ci/versions",
        ".ci/wheel",
        "bench/vs_ns2",
        "bench/costs",
        "fuzz/run",
        "web/build",
    ):
        path = ROOT / name
        assert os.access(path, os.X_OK), f"{name} is not executable"
        assert path.read_text().startswith("#!"), f"{name} has no #! line"


def _modules() -> dict[str, Path]:
    """The package's modules by name."""
    root = ROOT / "python"
    names = {}
    for path in root.glob("paceline/**/*.py"):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        names[name.removesuffix(".__init__")] = path
    return names


def _imports(tree: ast.AST, modules: Collection[str], *, deep: bool) -> set[str]:
    """The package's modules that a file imports: at its head, or `deep` in its functions too."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            within = {f"{node.module}.{alias.name}" for alias in node.names} & set(modules)
            found |= within or {node.module or ""} & set(modules)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & set(modules)
        if deep or not isinstance(node, ast.FunctionDef):
            found |= _imports(node, modules, deep=deep)
    return found


def test_only_the_command_line_imports_the_command_line() -> None:
    modules = _modules()
    assert _imports(ast.parse("def f():\n    from paceline.cli import show"), ["paceline.cli"], deep=True)
    for name, path in modules.items():
        if name.startswith("paceline.cli") or name == "paceline.__main__":
            continue
        wrong = {
            m
            for m in _imports(ast.parse(path.read_text()), modules, deep=True)
            if m.startswith("paceline.cli")
        }
        assert not wrong, f"{_name(path)} imports {', '.join(sorted(wrong))}"


# Circles through imports in functions and types alone: a result draws and prints itself, and asks for what that needs.
_CIRCLES = [
    {"hunts.finds", "plots.hunted"},
    {"leagues.clouds", "leagues.page", "leagues.running", "leagues.tables", "leagues.writing"},
    {
        *("plots.chart", "plots.recorded", "plots.sweeps", "plots.wording"),
        *("results.results", "results.store", "results.subjects", "tables.summaries", "tables.sweep"),
    },
    {"sweeps.compare", "tables.comparison"},
]


def _circles(*, deep: bool) -> list[set[str]]:
    """The sets of files that import each other; the package itself names all that it hands on."""
    modules = _modules()
    del modules["paceline"]
    uses = {
        name: _imports(ast.parse(path.read_text()), modules, deep=deep) - {name}
        for name, path in modules.items()
    }

    def reachable(name: str) -> set[str]:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            for used in uses[waiting.pop()] - seen:
                seen.add(used)
                waiting.append(used)
        return seen

    reached = {name: reachable(name) for name in uses}
    circles = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in uses
        if name in reached[name]
    }
    return sorted(({name.removeprefix("paceline.") for name in one} for one in circles), key=min)


def test_no_file_imports_one_that_imports_it() -> None:
    """At their heads, types included."""
    assert _circles(deep=False) == []


def test_circles_through_functions_are_known() -> None:
    assert _circles(deep=True) == _CIRCLES
