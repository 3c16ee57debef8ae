"""The console of results: `layout.stdout` makes it."""

from __future__ import annotations

from rich.console import Console


class Piped(Console):
    """A console whose reader may have had enough."""

    def on_broken_pipe(self) -> None:
        """Leaves it to the command, which then ends as others do; rich would end it with exit code 1."""
        raise BrokenPipeError
