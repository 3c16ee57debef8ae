"""The available papers."""

from __future__ import annotations

from pathlib import Path

from paceline.errors import PacelineError
from paceline.files import package_data

FIGURES, PUBLISHED, READINGS = "figures.toml", "published.toml", "readings.toml"
"""The files that make a folder a paper. The second may be missing if nothing is published, the third if nothing is left
open."""


class PaperError(PacelineError):
    """A mistake in a paper's files; the message names file and entry."""


_PAPERS = package_data.Shelf("papers", FIGURES, "paper", PaperError)


def keys() -> list[str]:
    """The papers that can be reproduced."""
    return _PAPERS.keys()


def find(name: str) -> tuple[Path, Path]:
    """A paper's folder, and its name in commands: see `package_data.Shelf.find`. Raises PaperError."""
    return _PAPERS.find(name)
