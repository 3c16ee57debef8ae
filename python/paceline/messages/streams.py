"""stdout and stderr of the command: what is printed passes here, and nothing that a terminal obeys does."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from paceline.messages.foreign_text import plain
from paceline.threads import THREADS


class Door:
    """A stream of text that escapes what a terminal would obey, whoever writes."""

    def __init__(self, stream: TextIO, aside: TextIO | None = None) -> None:
        self.stream = stream
        """The stream as it is, for a console whose colours are meant to be obeyed."""
        self._aside = aside

    def write(self, text: str) -> int:
        """Writes it; gives how many characters it was told. What a controller prints in a run is no result, and goes
        aside."""
        in_a_run = self._aside is not None and threading.current_thread().name.startswith(THREADS)
        (self._aside if self._aside and in_a_run else self.stream).write(plain(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Writes each."""
        for one in lines:
            self.write(one)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def standing() -> Iterator[None]:
    """Has doors in the place of stdout and stderr as long as the block lasts."""
    before = sys.stdout, sys.stderr
    asides = (before[1], None)
    doors: list[Any] = [
        None if stream is None else Door(stream, aside) for stream, aside in zip(before, asides, strict=True)
    ]
    sys.stdout, sys.stderr = doors
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
