"""The command's stdout and stderr, which escape control characters in everything that is printed."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from paceline.messages.foreign_text import plain
from paceline.threads import THREADS


class EscapingStream:
    """A text stream that escapes control characters, whoever writes."""

    def __init__(self, stream: TextIO, aside: TextIO | None = None) -> None:
        self.stream = stream
        """The underlying stream, for a console whose colours must pass."""
        self._aside = aside

    def write(self, text: str) -> int:
        """Writes text; returns the number of characters passed in. Output of controllers within a run is no result, and
        goes to stderr."""
        in_a_run = self._aside is not None and threading.current_thread().name.startswith(THREADS)
        (self._aside if self._aside and in_a_run else self.stream).write(plain(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each line."""
        for one in lines:
            self.write(one)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def standing() -> Iterator[None]:
    """Replaces stdout and stderr by escaping streams within the block."""
    before = sys.stdout, sys.stderr
    asides = (before[1], None)
    escaping: list[Any] = [
        None if stream is None else EscapingStream(stream, aside)
        for stream, aside in zip(before, asides, strict=True)
    ]
    sys.stdout, sys.stderr = escaping
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
