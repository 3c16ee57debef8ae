"""stdout and stderr of the command: what is printed passes here, and nothing that a terminal obeys does."""

from __future__ import annotations

import io
import sys
from typing import Any

from paceline.plain import plain


class Door(io.TextIOWrapper):
    """A stream of text that escapes what a terminal would obey, whoever writes."""

    def write(self, text: str, /) -> int:
        """Writes it; gives how many characters it was told."""
        super().write(plain(text))
        return len(text)


class Obeyed:
    """The same stream as it is, for a console whose colours are meant to be obeyed."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def write(self, text: str) -> int:
        return io.TextIOWrapper.write(self._door, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)


def stand() -> None:
    """Puts doors in the place of stdout and stderr."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Door):
            how: dict[str, Any] = {
                "encoding": stream.encoding,
                "errors": stream.errors,
                "line_buffering": stream.line_buffering,
                "write_through": stream.write_through,
            }
            stream.flush()
            setattr(sys, name, Door(stream.detach(), **how))
