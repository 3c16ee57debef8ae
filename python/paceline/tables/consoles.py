"""The consoles of the command, made by `layout.stdout` and `layout.stderr`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console
from rich.segment import Segment

from paceline.messages.foreign_text import plain
from paceline.messages.streams import EscapingStream


class Plain(Console):
    """A console that escapes control characters in printed text; it emits only its own colours."""

    @property
    def file(self) -> Any:
        """The output stream."""
        file = super().file
        return file.stream if isinstance(file, EscapingStream) else file

    @file.setter
    def file(self, to: IO[str]) -> None:
        self._file = to

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """The printed segments."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


class Piped(Plain):
    """A console whose reader may close the pipe."""

    def on_broken_pipe(self) -> None:
        """Lets the command handle it and exit as others do; rich would exit with code 1."""
        raise BrokenPipeError
