"""Which papers there are."""

from __future__ import annotations

from pathlib import Path

from paceline import carried
from paceline.errors import PacelineError

FIGURES, PUBLISHED = "figures.toml", "published.toml"
"""The files that make a folder a paper; the second may be missing where nothing is published."""


class PaperError(PacelineError):
    """A mistake in a paper's files; the message names file and entry."""


def keys() -> list[str]:
    """The papers that can be reproduced."""
    return sorted(path.parent.name for path in carried.folder("papers").glob(f"*/{FIGURES}"))


def find(name: str) -> tuple[Path, Path]:
    """The folder of a paper, and how commands name it: of one that is installed by its key, papers/KEY; of another by
    its path, or that of its figures.toml. Raises PaperError."""
    known = keys()
    if name in known:
        return carried.folder("papers") / name, Path("papers") / name
    given = Path(name)
    folder = given.parent if given.name == FIGURES else given
    if (folder / FIGURES).is_file():
        return folder, folder
    if folder.is_dir():
        raise PaperError(f"{folder} holds no {FIGURES}: see papers/README.md for what a paper's folder has")
    raise PaperError(
        f"no paper {name!r}: there are {', '.join(known)}; one of your own is named by the path of its folder"
    )
