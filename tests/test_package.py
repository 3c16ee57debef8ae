"""What strangers install: a source distribution with all that a build takes, and a build that says what it lacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from needs import require
from paceline import playground

ROOT = Path(__file__).resolve().parent.parent

CARRIED = ("papers", "suites", "leagues", "examples", "kernel-cc", "tools", "web/presets")
"""What the package carries beside its code."""

# Folders that must be there whole: the lock file names every crate.
WHOLE = ("crates", *CARRIED, "python/paceline", "python/data")
FILES = ("Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE-APACHE", "LICENSE-MIT")


def sources() -> set[str]:
    """The files of this clone that a source distribution must have, what building leaves behind excepted."""
    found = set(FILES)
    for folder in WHOLE:
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT)
            leftover = "__pycache__" in name.parts or path.suffix == ".so" or path.name.startswith(".")
            if path.is_file() and not leftover:
                found.add(name.as_posix())
    return found


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of the source distribution."""
    require("maturin")
    out = tmp_path_factory.mktemp("sdist")
    command = [sys.executable, "-m", "maturin", "sdist", "--out", str(out)]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (archive,) = out.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    assert len(set(names)) == len(names), "a file stands in it twice"
    return {name.partition("/")[2] for name in names}


def test_the_source_distribution_has_all_that_a_build_takes(sdist: set[str]) -> None:
    lacking = sources() - sdist
    assert not lacking, f"add to `include` in pyproject.toml: {sorted(lacking)}"
    # said once more in the words of those who read these files
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for package in json.loads(metadata.stdout)["packages"]:
        manifest = Path(package["manifest_path"]).relative_to(ROOT).as_posix()
        assert manifest in sdist, f"the lock file lists {package['name']}, and {manifest} is not there"
    for paper in ROOT.glob("papers/*/figures.toml"):
        assert paper.relative_to(ROOT).as_posix() in sdist
    for program in ("vegas.c", "veno.c", "cc.h"):
        assert f"kernel-cc/{program}" in sdist


def test_the_source_distribution_has_nothing_that_a_build_leaves_behind(sdist: set[str]) -> None:
    assert not {
        name for name in sdist if name.endswith((".so", ".pyc", ".pyd", ".orig")) or "target/" in name
    }


@pytest.fixture(scope="module")
def build_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """crates/python/build.rs, compiled by itself."""
    program = tmp_path_factory.mktemp("build") / "build"
    source = ROOT / "crates/python/build.rs"
    edition = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["edition"]
    subprocess.run(["rustc", "--edition", edition, str(source), "-o", str(program)], check=True)
    return program


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What of a clone the build script reads."""
    for folder in CARRIED:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "crates/python").mkdir(parents=True)
    return tmp_path


def built(program: Path, clone: Path) -> subprocess.CompletedProcess[str]:
    places = {"CARGO_MANIFEST_DIR": str(clone / "crates/python"), "OUT_DIR": str(clone / "out")}
    return subprocess.run(
        [program], env={**os.environ, **places}, capture_output=True, text=True, check=False
    )


def test_a_build_packs_what_the_package_carries(build_script: Path, clone: Path) -> None:
    (clone / "out/papers/gone").mkdir(parents=True)
    ran = built(build_script, clone)
    assert ran.returncode == 0, ran.stdout
    assert (clone / "out/papers/vegas-streaming/figures.toml").is_file()
    assert (clone / "out/kernel-cc/veno.c").is_file()
    assert (clone / "out/examples/traces/cell.down").is_file()
    assert (clone / "out/tools/wireshark/paceline_tfrc.lua").is_file()
    assert not (clone / "out/papers/gone").exists()


@pytest.mark.parametrize("folder", CARRIED)
def test_a_build_without_a_folder_fails_and_names_it(build_script: Path, clone: Path, folder: str) -> None:
    shutil.rmtree(clone / folder)
    ran = built(build_script, clone)
    assert ran.returncode != 0
    (error,) = [line for line in ran.stdout.splitlines() if line.startswith("cargo::error=")]
    assert str(Path(folder)) in error
    assert "is missing" in error


MANIFEST = """[package]
name = "core"
version = "0.1.0"
edition = "2024"
"""


@pytest.fixture
def small(clone: Path) -> Path:
    """A clone whose simulator is an empty program, so that it is built in seconds; all else that packs is as it is."""
    for name in (
        "pyproject.toml",
        ".gitignore",
        *(f for f in FILES if not f.startswith(("Cargo", "pyproject"))),
    ):
        shutil.copy(ROOT / name, clone)
    options = (ROOT / "pyproject.toml").read_text()
    for ours, instead in (
        ('module-name = "paceline._core"', 'bindings = "bin"\nmodule-name = "paceline"'),
        ('[project.scripts]\npaceline = "paceline.cli:main"\n', ""),
    ):
        assert ours in options
        options = options.replace(ours, instead)
    (clone / "pyproject.toml").write_text(options)
    (clone / "Cargo.toml").write_text('[workspace]\nresolver = "3"\nmembers = ["crates/*"]\n')
    (clone / "crates/python/src").mkdir()
    (clone / "crates/python/Cargo.toml").write_text(MANIFEST)
    (clone / "crates/python/src/main.rs").write_text("fn main() {}\n")
    shutil.copy(ROOT / "crates/python/build.rs", clone / "crates/python")
    shutil.copytree(ROOT / "python/data", clone / "python/data")
    (clone / "python/paceline").mkdir()
    (clone / "python/paceline/__init__.py").touch()
    subprocess.run(["cargo", "generate-lockfile", "--offline"], cwd=clone, check=True, capture_output=True)
    # what git ignores maturin leaves out, but for what is named in `include`
    subprocess.run(["git", "init", "--quiet"], cwd=clone, check=True)
    return clone


def packed(small: Path) -> tuple[set[str], set[str]]:
    """The files of the wheel and of the source distribution, in each as from the package's folder."""
    environment = {k: v for k, v in os.environ.items() if k != "CARGO_TARGET_DIR"}
    command = [sys.executable, "-m", "maturin", "build", "--offline", "--sdist", "--out", "dist"]
    made = subprocess.run(command, cwd=small, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    (wheel,), (archive,) = small.glob("dist/*.whl"), small.glob("dist/*.tar.gz")
    with zipfile.ZipFile(wheel) as zipped:
        in_wheel = zipped.namelist()
    with tarfile.open(archive) as tarred:
        in_sdist = [name.partition("/")[2] for name in tarred.getnames()]
    for names in (in_wheel, in_sdist):
        assert len(set(names)) == len(names), "a file stands in it twice"
    return set(in_wheel), set(in_sdist)


def test_the_page_that_git_ignores_is_in_wheel_and_sources_where_it_was_built(small: Path) -> None:
    require("maturin")
    page = f"python/paceline/{playground.NAME}"
    ignored = subprocess.run(["git", "check-ignore", page], cwd=small, check=False, capture_output=True)
    assert ignored.returncode == 0, "it is no source"
    wheel, sdist = packed(small)
    assert "paceline/web/presets/presets.json" in wheel
    assert {"web/presets/presets.json", "python/paceline/__init__.py"} <= sdist
    assert not [name for name in wheel | sdist if name.endswith(playground.NAME)], (
        "it builds without the page"
    )
    (small / page).write_text("<!doctype html>")
    shutil.rmtree(small / "dist")
    wheel, sdist = packed(small)
    assert f"paceline/{playground.NAME}" in wheel
    assert page in sdist
