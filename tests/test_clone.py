"""The command of a clone, `./paceline`: what a release and a dev build run, with stand-ins for cargo and Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Writes the library that cargo would, and what it was asked for.
CARGO = """#!/bin/sh
echo "cargo $*" >>"$LOG"
[ -z "${BROKEN:-}" ] || exit 1
mkdir -p "${CARGO_TARGET_DIR:-target}/debug"
echo dev >"${CARGO_TARGET_DIR:-target}/debug/lib_core.so"
"""
PYTHON = """#!/bin/sh
echo "python $*" >>"$LOG"
if [ "$2" = paceline ]; then cat "${PYTHONPATH%%:*}/paceline/_core.abi3.so"; ls "${PYTHONPATH%%:*}/paceline"; fi
"""
RELEASE = '#!/bin/sh\necho "release $*"\n'


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone in which a release of its sources is installed."""
    root = tmp_path / "a clone"
    root.mkdir()
    for name in ("paceline", "bootstrap.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    for source in ("__init__.py", "cli/__init__.py"):
        program(root / "python/paceline" / source, "")
    program(tmp_path / "bin/cargo", CARGO)
    program(root / ".venv/bin/python", PYTHON)
    program(root / ".venv/bin/paceline", RELEASE)
    stamp = subprocess.run(
        ["sh", "-c", ". ./bootstrap.sh; fingerprint"], cwd=root, check=True, capture_output=True, text=True
    )
    (root / ".venv/installed-release").write_text(stamp.stdout)
    return root


def call(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{root.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    kept = {k: v for k, v in os.environ.items() if k not in ("CARGO_TARGET_DIR", "PYTHONPATH")}
    return subprocess.run(
        [root / "paceline", *arguments],
        cwd=root.parent,
        env={**kept, "PATH": path, "LOG": str(root / "log"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_dev_build_is_run_and_said_and_the_release_stays(clone: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (clone / ".venv").rglob("*")}
    for _ in range(2):
        ran = call(clone, "--dev", "run", "a b.toml")
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.split() == ["dev", "__init__.py", "_core.abi3.so", "cli"]
        assert [line for line in ran.stderr.splitlines() if "dev build" in line]
    log = (clone / "log").read_text().splitlines()
    assert log.count("python -m paceline run a b.toml") == 2
    builds = [line for line in log if line.startswith("cargo")]
    assert builds == ["cargo build --quiet --locked --workspace --lib --example simulate"] * 2
    assert sum("pip install" in line for line in log) == 1
    changed = {path for path, at in before.items() if path.is_file() and path.stat().st_mtime_ns != at}
    assert not changed
    assert not list((clone / "python").rglob("*.so"))
    ran = call(clone, "run", "--dev")
    assert (ran.stdout, ran.stderr) == ("release run --dev\n", "")


def test_a_target_directory_of_ones_own_is_heeded(clone: Path) -> None:
    ran = call(clone, "--dev", CARGO_TARGET_DIR="elsewhere", PYTHONPATH="mine")
    assert ran.stdout.startswith("dev\n"), ran.stderr
    assert (clone / "elsewhere/dev-python/paceline/cli").is_dir()


def test_a_build_that_fails_runs_nothing(clone: Path) -> None:
    assert call(clone, "--dev").returncode == 0
    ran = call(clone, "--dev", "run", BROKEN="1")
    assert ran.returncode == 1
    assert not ran.stdout
    assert "the build failed" in ran.stderr
    assert "dev build" not in ran.stderr


# Makes the page, as web/build does, or says why it cannot.
BUILD = """#!/bin/sh
echo "web/build" >>"$LOG"
[ -z "${NO_PAGE:-}" ] || { echo 'the target is missing'; exit 1; }
mkdir -p python/paceline && [ -f python/paceline/playground.html ] || echo page >python/paceline/playground.html
"""


def test_the_page_is_built_for_explore_alone_where_node_is(clone: Path) -> None:
    """The clone's own environment is rebuilt when the page has changed, as for any other file of the package."""
    page = clone / "python/paceline/playground.html"

    def log() -> list[str]:
        path = clone / "log"
        found = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return found

    program(clone / "web/build", BUILD)
    bare = clone.parent / "bare"
    bare.mkdir()
    for tool in ("sh", "dirname", "find", "cksum", "sort", "cat", "rm"):
        (bare / tool).symlink_to(str(shutil.which(tool)))
    ran = call(clone, "explore", PATH=str(bare))
    assert (ran.stdout, log()) == ("release explore\n", []), (
        "without node the command itself says what is missing"
    )

    for name in ("node", "npm"):
        program(clone.parent / f"bin/{name}", "#!/bin/sh\n")
    assert call(clone, "run").stdout == "release run\n"
    assert log() == [], "nobody else waits for it"

    ran = call(clone, "explore", NO_PAGE="1")
    assert ran.stdout == "release explore\n"
    assert "the target is missing" in ran.stderr
    assert "older" not in ran.stderr
    assert log() == ["web/build"]

    ran = call(clone, "explore", "--no-open")
    assert ran.stdout == "release explore --no-open\n"
    assert page.read_text() == "page\n"
    first, *then = log()
    assert first == "web/build"
    assert any("pip install" in line for line in then), "the page is in the package"

    ran = call(clone, "explore", NO_PAGE="1")
    assert "of older sources" in ran.stderr
    assert ran.stdout == "release explore\n"
    assert log() == ["web/build"]
    assert call(clone, "--dev", "explore").returncode == 0
    assert log()[0] == "web/build"
