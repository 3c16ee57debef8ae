"""The available suites."""

from __future__ import annotations

from pathlib import Path

from paceline.files import package_data
from paceline.files.paper_folders import PaperError

SUITE = "suite.toml"
"""The file that makes a folder a suite."""


class SuiteError(PaperError):
    """A mistake in a suite's files, or in a request for it; the message names file and entry."""


_SUITES = package_data.Shelf("suites", SUITE, "suite", SuiteError)


def keys() -> list[str]:
    """The suites in the package."""
    return _SUITES.keys()


def find(name: str) -> tuple[Path, Path]:
    """A suite's folder, and its name in commands: see `package_data.Shelf.find`. Raises SuiteError."""
    return _SUITES.find(name)
