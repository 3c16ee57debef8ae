"""`paceline.replay`: whether a controller reproduces its event log."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from paceline import _core, files
from paceline.arguments import checked
from paceline.errors import PacelineError


class Replayed(NamedTuple):
    """An event log that was replayed without a difference."""

    inputs: int
    """Datagrams and timers that the flow received; over QUIC the calls of its controller."""
    datagrams: int
    """Datagrams sent as a result; over QUIC packets."""
    end_s: float
    """The last input's time, in seconds."""
    unread: int
    """Bytes of an incomplete record at the end, from a log that was cut off while it was written."""


@checked()
def replay(log: str | Path) -> Replayed:
    """Recreates the sender of an event log (`paceline send --log-events`), feeds it the log, and compares its output
    and the controller's state bit for bit.

    Raises LiveError at the first difference, or if the file is no event log; PacelineError if it cannot be read.
    """
    try:
        files.check_regular(Path(log))
        return Replayed(*_core.replay(str(log)))
    except OSError as error:
        raise PacelineError(f"{log}: {error.strerror or error}") from error
