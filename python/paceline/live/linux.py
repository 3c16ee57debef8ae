"""What takes Linux: paths, flows between hosts, the kernel's TCP. Elsewhere the extension module is built without."""

from __future__ import annotations

import platform

from paceline import _core
from paceline.errors import PacelineError


class NeedsLinux(PacelineError):  # noqa: N818 (says what is missing)
    """This system cannot do what was asked for."""

    exit_code = 1


def needed(what: str) -> None:
    """Raises NeedsLinux, which says that `what` does, unless this is Linux."""
    # what the module was built with, not what the system is called: the two cannot disagree
    if not hasattr(_core, "run_path"):
        raise NeedsLinux(
            f"{what} takes Linux, and this is {platform.system() or 'another system'}; what is simulated runs here: "
            "run, sweep, compare, campaign, reproduce, plot and model"
        )
