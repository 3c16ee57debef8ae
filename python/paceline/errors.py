"""What can go wrong, as a user should see it. Each message stands alone: what happened, where, what to do."""

from __future__ import annotations


class PacelineError(Exception):
    """A mistake of the request: a bad option, an unknown name, a directory that does not fit."""

    exit_code = 2


class PacelineWarning(UserWarning):
    """What is said to no effect, or hardly the one that is meant; what is measured is sound."""


class StorageError(PacelineError):
    """The system refused to read or write a file: full disk, no permission, a damaged file."""

    exit_code = 1


class Interrupted(PacelineError):  # noqa: N818 (not an error: somebody asked for it)
    """Somebody asked to stop (Ctrl-C). What had finished is kept where there was a place to keep it."""

    exit_code = 130

    def __init__(self, finished: int, total: int, kept: str | None = None) -> None:
        self.finished = finished
        self.total = total
        where = f"they are kept in {kept}" if kept else "nothing was kept"
        super().__init__(f"Stopped. {finished} of {total} runs had finished; {where}.")
