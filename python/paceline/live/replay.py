"""`paceline.replay`: does a controller do again what an event log has of it?"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paceline import _core, files
from paceline.arguments import checked
from paceline.errors import PacelineError


class Replayed(NamedTuple):
    """An event log that was replayed without a difference."""

    inputs: int
    """Datagrams and timers that the flow was given, or over QUIC the calls that its controller was told by."""
    datagrams: int
    """Datagrams that left on their account; over QUIC packets."""
    end_s: float
    """The last input's time, in seconds."""
    unread: int
    """Bytes at the end that are no whole record: of a log that was cut while it was written."""


@checked()
def replay(log: str | Path) -> Replayed:
    """Makes the sender of an event log anew (`paceline send --log-events`), gives it all that the log has, and compares
    what leaves and the controller's figures bit for bit.

    Raises LiveError at the first difference, or if the file is no event log; PacelineError if it cannot be read.
    """
    try:
        files.check_regular(Path(log))
        return Replayed(*_core.replay(str(log)))
    except OSError as error:
        raise PacelineError(f"{log}: {error.strerror or error}") from error
