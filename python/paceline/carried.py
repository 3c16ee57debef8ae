"""The folders that the package carries beside its code: at the root of a clone, else in the installed package."""

from __future__ import annotations

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


def find(path: str) -> str:
    """The file that "examples/NAME.toml" or "papers/KEY/NAME.toml" means: as it stands if there is such a file, else
    the package's."""
    given = Path(path)
    top, *below = given.parts or ("",)
    if top in _OF_SCENARIOS and not given.exists():
        try:
            carried = folder(top).joinpath(*below)
        except StorageError:
            return path
        if carried.is_file():
            return str(carried)
    return path
