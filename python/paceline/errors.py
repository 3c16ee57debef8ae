"""What can go wrong, as a user should see it. Each message stands alone: what happened, where, what to do.

All are `PacelineError`s, but for Ctrl-C. The core raises those of these that its work can meet.
"""

from __future__ import annotations


class PacelineError(Exception):
    """A mistake of the request: a bad option, an unknown name, a directory that does not fit."""

    exit_code = 2


class ArgumentError(PacelineError, ValueError):
    """A mistake in a Python call: the message names the argument, what it is, and what it may be."""


class PacelineWarning(UserWarning):
    """What is said to no effect, or hardly the one that is meant; what is measured is sound."""


class CutShortWarning(PacelineWarning):
    """A stream or a transfer that no run can wait for. Notices of the run say so too."""


class ScenarioError(PacelineError):
    """A mistake in a scenario; the message names the file, the key, the value, and what is allowed."""


class ControllerError(PacelineError):
    """A controller of your own failed: the message has its flow, the time, and what Python's traceback says."""

    exit_code = 1


class StorageError(PacelineError):
    """The system refused to read or write a file: full disk, no permission, a damaged file."""

    exit_code = 1


class UnwrittenError(StorageError):
    """What was measured in real time could not be written. It is not lost: `ran` is what the call would have given."""

    def __init__(self, message: str, ran: object) -> None:
        super().__init__(message)
        self.ran = ran


class LiveError(PacelineError):
    """The other end, the network or the system refused."""

    exit_code = 1


class PathError(PacelineError):
    """A path could not be made, or its command not be run."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class InternalError(PacelineError):
    """A defect of Paceline itself; the message asks to report it and gives scenario and seed."""

    exit_code = 1


class Cancelled(PacelineError):  # noqa: N818 (not an error: somebody asked for it)
    """The run was stopped through its `Watch`."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during several runs. What had finished is kept where there was a place to keep it."""

    exit_code = 130

    def __init__(self, finished: int, total: int, kept: str | None = None) -> None:
        self.finished = finished
        self.total = total
        where = f"kept in {kept}. Give the same command again to go on." if kept else "not kept."
        some = f"Stopped. {finished} of {total} runs had finished; they are {where}"
        super().__init__(some if finished else "Stopped before a run had finished.")


class HuntStopped(Interrupted):
    """Ctrl-C during a hunt. What it had found lies where it would have at the end, as far as it had come."""

    def __init__(self, tries: int, finds: int, kept: str | None = None) -> None:
        found = f"{finds} {'find' if finds == 1 else 'finds'} so far, not yet run on other seeds to the end"
        where = f"as {kept}/find-N.toml" if kept else "not kept"
        some = f"Stopped after {tries} tries. {found}: {where}."
        KeyboardInterrupt.__init__(self, some if tries else "Stopped before a try had ended.")
        self.finished, self.total, self.finds = tries, tries, finds
