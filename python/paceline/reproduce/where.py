"""Which papers there are."""

from __future__ import annotations

from paceline.carried import folder
from paceline.errors import PacelineError


class PaperError(PacelineError):
    """A mistake in a paper's files; the message names file and entry."""


def keys() -> list[str]:
    """The papers that can be reproduced."""
    return sorted(path.parent.name for path in folder("papers").glob("*/figures.toml"))
