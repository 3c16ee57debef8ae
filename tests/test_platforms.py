"""The kept hashes of golden runs and examples are this processor's; `./check --platforms` holds them on others.

After a change of behaviour that is meant, PACELINE_BLESS=1, as in `test_golden.py`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import paceline
import platforms
from built import program


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    """What each run hashes to here."""
    return platforms.hashes([str(program("paceline-bits"))], platforms.cases())


def test_the_kept_hashes_are_what_runs_give(here: dict[str, str]) -> None:
    if os.environ.get("PACELINE_BLESS") == "1":
        platforms.HASHES.write_text("".join(f"{name},{digest}\n" for name, digest in here.items()))
    wrong = platforms.differing(here, platforms.kept())
    assert not wrong, "if that is meant, bless it:\n" + "\n".join(wrong)
    assert len(set(here.values())) == len(here), "runs that differ have hashes that do"


def test_every_scheme_and_every_example_is_among_them() -> None:
    names = set(platforms.kept())
    assert {f"golden/{scheme['name']}" for scheme in paceline.controllers()} <= names
    examples = {path.stem for path in Path(platforms.ROOT, "examples").glob("*.toml")}
    # whose controllers are Python classes: they need Python
    assert examples - {name.removeprefix("examples/") for name in names} == {"own-controller", "stuck"}


def test_a_hash_is_of_the_run(here: dict[str, str]) -> None:
    """Asked again it is the same; a seed or a value changes it."""
    name, file = "examples/loss", "examples/loss.toml"
    requests = {"same": [], "seed": ["seed=7"], "duration": ["duration=20 s"]}
    lines = ["\t".join([of, file, *changes]) + "\n" for of, changes in requests.items()]
    found = platforms.hashes([str(program("paceline-bits"))], "".join(lines))
    assert found["same"] == here[name]
    assert len({found["seed"], found["duration"], here[name]}) == 3


def test_what_differs_is_named() -> None:
    said = platforms.differing({"a": "1", "b": "2", "new": "3"}, {"a": "1", "b": "4", "gone": "5"})
    assert said == ["b: 2, kept is 4", "gone: none, kept is 5", "new: 3, kept is none"]


def test_what_a_machine_lacks_is_said() -> None:
    platform = platforms.Platform("no-such-runner", "a-package", "no-such-linker", "another")
    lacking = list(platform.lacking("no-such-target"))
    assert len(lacking) == 3
    assert "rustup target add no-such-target" in lacking[0]
    assert "no-such-linker (package another)" in lacking[1]
    assert "no-such-runner (package a-package)" in lacking[2]
