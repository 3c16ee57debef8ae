"""Features that need Linux: paths, flows between hosts, the kernel's TCP. Other builds of the module lack them."""

from __future__ import annotations

import platform

from paceline import _core
from paceline.errors import PacelineError


class NeedsLinux(PacelineError):  # noqa: N818 (says what is missing)
    """This system does not support the request."""

    exit_code = 1


def needed(what: str) -> None:
    """Raises NeedsLinux, which says that `what` needs Linux, on any other system."""
    # Test the module's features, not the system's name, so that the two cannot disagree.
    if not hasattr(_core, "run_path"):
        raise NeedsLinux(
            f"{what} needs Linux, and this is {platform.system() or 'another system'}; simulation works here: "
            "run, sweep, compare, campaign, reproduce, plot and model"
        )
