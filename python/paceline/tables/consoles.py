"""The consoles of the command: `layout.stdout` and `layout.stderr` make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console
from rich.segment import Segment

from paceline.messages.foreign_text import plain
from paceline.messages.streams import Door


class Plain(Console):
    """A console that escapes what a terminal would obey in the text that it is given; colours are its own."""

    @property
    def file(self) -> Any:
        """Where it writes."""
        file = super().file
        return file.stream if isinstance(file, Door) else file

    @file.setter
    def file(self, to: IO[str]) -> None:
        self._file = to

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """What is printed, in pieces."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


class Piped(Plain):
    """One whose reader may have had enough."""

    def on_broken_pipe(self) -> None:
        """Leaves it to the command, which then ends as others do; rich would end it with exit code 1."""
        raise BrokenPipeError
