"""Programs that the build of the Rust tests leaves, for tests in Python."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dev_package import ROOT, TARGET


def example(name: str) -> Path:
    """The program of `crates/*/examples/NAME.rs`: what `cargo test` has made of it, which `./check` runs before the
    Python tests. Where there is none it is built, for the whole workspace as there: for its crate alone cargo chooses
    other features, and builds what lies below once more."""
    return _built(TARGET / "debug/examples" / name, "--example", name)


def program(name: str) -> Path:
    """The program of this name that a crate is, likewise."""
    return _built(TARGET / "debug" / name, "--bin", name)


def _built(made: Path, *what: str) -> Path:
    if not made.exists():
        command = ["cargo", "build", "--quiet", "--locked", "--workspace", *what]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return made
