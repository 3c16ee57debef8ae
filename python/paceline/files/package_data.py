"""The data folders of the package: at the root of a clone, else in the installed package."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import PacelineError, StorageError
from paceline.messages.argument_names import near
from paceline.messages.foreign_text import line

FOLDERS = ("examples", "papers", "suites")
"""The folders that contain scenario files."""


def folder(name: str) -> Path:
    """The folder "papers", "suites", "leagues", "examples", "web/presets", "kernel-cc" or "tools".

    Raises StorageError.
    """
    here = Path(__file__).resolve().parents[1]
    for candidate in (here.parents[1] / name, here / name):
        if candidate.is_dir():
            return candidate
    raise StorageError(f"the folder {name} is not installed: install Paceline again, or work in a clone")


@dataclass(frozen=True)
class Shelf:
    """Folders of one kind in the package, each marked by a file; and the user's own."""

    folder: str
    marker: str
    """The file that marks such a folder."""
    what: str
    """The kind in messages: "paper"."""
    error: type[PacelineError]

    def keys(self) -> list[str]:
        """The keys of the package's folders."""
        return sorted(path.parent.name for path in folder(self.folder).glob(f"*/{self.marker}"))

    def find(self, name: str) -> tuple[Path, Path]:
        """A folder, and its name in commands: papers/KEY for the package's; otherwise its path, given directly or as
        the path of its marker. Raises the shelf's error."""
        known = self.keys()
        if name in known:
            return _named(folder(self.folder), self.folder) / name, Path(self.folder) / name
        given = Path(name)
        own = given.parent if given.name == self.marker else given
        if (own / self.marker).is_file():
            return own, own
        if own.is_dir():
            raise self.error(
                f"{own} holds no {self.marker}: see {self.folder}/README.md for what a {self.what}'s folder has"
            )
        raise self.error(
            f"no {self.what} {name!r}: there are {', '.join(known)}; name your own by the path of its folder"
        )


_FOUND: dict[str, str] = {}
"""Folders whose files were requested by name, and that name."""


def find(path: str) -> str:
    """The file for "examples/NAME.toml" or "papers/KEY/NAME.toml": the path itself if such a file exists, else the
    package's."""
    given = Path(path)
    top, *below = given.parts or ("",)
    if top in FOLDERS and not given.exists():
        try:
            root = folder(top)
        except StorageError:
            return path
        carried = root.joinpath(*below)
        if carried.is_file():
            return str(_named(root, top) / Path(*below))
    return path


def _named(root: Path, name: str) -> Path:
    """The package's folder, whose files messages name from now on as NAME/..."""
    _FOUND[f"{root}{os.sep}"] = f"{name}/"
    return root


def suggestion(path: str) -> str:
    """A suggestion for a missing file, " (did you mean sofa.toml?)": a file in its folder, or an example; "" if no name
    is similar."""
    given = Path(path)
    known: dict[str, str] = {}
    with contextlib.suppress(StorageError):
        known |= {each.stem: f"examples/{each.name}" for each in folder("examples").glob("*.toml")}
    with contextlib.suppress(OSError):
        known |= {each.stem: str(each) for each in given.parent.iterdir() if each.suffix == given.suffix}
    found = near(given.stem, known, cutoff=0.75)
    return f" (did you mean {line(known[found[0]])}?)" if found else ""


def with_requested_names(text: str) -> str:
    """A message with the package's files named as the user named them."""
    for root, name in _FOUND.items():
        text = text.replace(root, name)
    return text
