"""The exceptions that users see. Each message is complete: what happened, where, and what to do.

All are `PacelineError`s, except for Ctrl-C. The core raises those that concern it.
"""

from __future__ import annotations


class PacelineError(Exception):
    """A mistake in the request: a bad option, an unknown name, a directory that does not fit."""

    exit_code = 2


class ArgumentError(PacelineError, ValueError):
    """A mistake in a Python call: the message gives the argument's name, its value, and the allowed values."""


class PacelineWarning(UserWarning):
    """A setting that has no effect, or hardly the intended one; the measurements are sound."""


class CutShortWarning(PacelineWarning):
    """A stream or transfer that the end of every run cuts off. Notices of the run say so too."""


class ScenarioError(PacelineError):
    """A mistake in a scenario; the message names the file, the key, the value, and what is allowed."""


class ControllerError(PacelineError):
    """Your own controller failed: the message has the flow, the time, and Python's traceback."""

    exit_code = 1


class StorageError(PacelineError):
    """The system refused to read or write a file: full disk, no permission, a damaged file."""

    exit_code = 1


class UnwrittenError(StorageError):
    """Measurements made in real time could not be written. They are not lost: `ran` is the call's result."""

    def __init__(self, message: str, ran: object) -> None:
        super().__init__(message)
        self.ran = ran


class LiveError(PacelineError):
    """The other end, the network or the system refused."""

    exit_code = 1


class PathError(PacelineError):
    """A path could not be set up, or its command could not be run."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class InternalError(PacelineError):
    """A defect of Paceline itself; the message asks you to report it and gives scenario and seed."""

    exit_code = 1


class Cancelled(PacelineError):  # noqa: N818 (not an error: it was requested)
    """The run was stopped through its `Watch`."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during several runs. Finished runs are kept if there was a directory to keep them in."""

    exit_code = 130

    def __init__(self, finished: int, total: int, kept: str | None = None) -> None:
        self.finished = finished
        self.total = total
        where = f"kept in {kept}. Give the same command again to go on." if kept else "not kept."
        some = f"Stopped. {finished} of {total} runs had finished; they are {where}"
        super().__init__(some if finished else "Stopped before a run had finished.")


class HuntStopped(Interrupted):
    """Ctrl-C during a hunt. Its finds so far are where they would be at the end, as far as they were processed."""

    def __init__(self, tries: int, finds: int, kept: str | None = None) -> None:
        found = f"{finds} {'find' if finds == 1 else 'finds'} so far, not yet run on other seeds to the end"
        where = f"as {kept}/find-N.toml" if kept else "not kept"
        some = f"Stopped after {tries} tries. {found}: {where}."
        KeyboardInterrupt.__init__(self, some if tries else "Stopped before a try had ended.")
        self.finished, self.total, self.finds = tries, tries, finds
