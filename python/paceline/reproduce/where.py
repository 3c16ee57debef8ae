"""Where the papers' files lie: in the installed package, or at the root of a clone."""

from __future__ import annotations

from pathlib import Path

from paceline.errors import PacelineError

FIGURES, PUBLISHED = "figures.toml", "published.toml"
"""The files that make a folder a paper; the second may be missing where nothing is published."""


class PaperError(PacelineError):
    """A mistake in a paper's files; the message names file and entry."""


def folder_of_papers() -> Path:
    """Where the papers lie: beside the package in a clone, else in it. Raises PaperError."""
    here = Path(__file__).resolve().parent
    for candidate in (here.parents[2] / "papers", here.parent / "papers"):
        if candidate.is_dir():
            return candidate
    raise PaperError("the papers' files are not installed: install Paceline again, or work in a clone")


def keys() -> list[str]:
    """The papers that can be reproduced."""
    return sorted(path.parent.name for path in folder_of_papers().glob("*/figures.toml"))


def find(name: str) -> tuple[Path, Path]:
    """The folder of a paper, and how commands name it: of one that is installed by its key, papers/KEY; of another by
    its path, or that of its figures.toml. Raises PaperError."""
    known = keys()
    if name in known:
        return folder_of_papers() / name, Path("papers") / name
    given = Path(name)
    folder = given.parent if given.name == FIGURES else given
    if (folder / FIGURES).is_file():
        return folder, folder
    if folder.is_dir():
        raise PaperError(f"{folder} holds no {FIGURES}: see papers/README.md for what a paper's folder has")
    raise PaperError(
        f"no paper {name!r}: there are {', '.join(known)}; one of your own is named by the path of its folder"
    )


def find_scenario(path: str) -> str:
    """The file that "papers/KEY/NAME.toml" means: as it stands if there is such a file, else the installed one."""
    given = Path(path)
    if not given.exists() and given.parts[:1] == ("papers",):
        try:
            installed = folder_of_papers().joinpath(*given.parts[1:])
        except PaperError:
            return path
        if installed.is_file():
            return str(installed)
    return path
