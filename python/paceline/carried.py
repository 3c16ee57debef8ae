"""The folders that the package carries beside its code: at the root of a clone, else in the installed package."""

from __future__ import annotations

import os
from pathlib import Path

from paceline.errors import StorageError

_OF_SCENARIOS = ("examples", "papers")


def folder(name: str) -> Path:
    """Where "papers", "examples", "kernel-cc" or "tools" lies. Raises StorageError."""
    here = Path(__file__).resolve().parent
    for candidate in (here.parents[1] / name, here / name):
        if candidate.is_dir():
            return candidate
    raise StorageError(f"the folder {name} is not installed: install Paceline again, or work in a clone")


_FOUND: dict[str, str] = {}
"""The folders whose files were asked for by name, and which name that is."""


def find(path: str) -> str:
    """The file that "examples/NAME.toml" or "papers/KEY/NAME.toml" means: as it stands if there is such a file, else
    the package's."""
    given = Path(path)
    top, *below = given.parts or ("",)
    if top in _OF_SCENARIOS and not given.exists():
        try:
            root = folder(top)
        except StorageError:
            return path
        carried = root.joinpath(*below)
        if carried.is_file():
            _FOUND[f"{root}{os.sep}"] = f"{top}/"
            return str(carried)
    return path


def told(text: str) -> str:
    """A message with the package's files named as they were asked for."""
    for root, name in _FOUND.items():
        text = text.replace(root, name)
    return text
