"""Lays out text and tables within the terminal's width, or 80 columns without a terminal.

A table that is too wide is split into several, one below the other, each with the columns that identify a row. Nothing
is ever cut: a word that does not fit continues in the next line. Functions import Rich only when they print: every
command imports this module, and help does not need Rich.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from paceline.messages.foreign_text import line
from paceline.messages.foreign_text import plain as plain_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

WIDTH = 80
"""Columns of a line if no terminal gives its width."""

_GAP = 2


def stdout() -> Console:
    """The console for output to people. Into a pipe or a file, lines have COLUMNS columns, or 80."""
    from paceline.tables.consoles import Piped

    console = Piped(highlight=False)
    if console.is_terminal:
        return console
    columns = os.environ.get("COLUMNS", "")
    return Piped(highlight=False, width=int(columns) if columns.isdigit() and columns != "0" else WIDTH)


def stderr(width: int | None = None) -> Console:
    """The console for everything beside the results."""
    from paceline.tables.consoles import Plain

    return Plain(stderr=True, highlight=False, width=width)


def say(console: Console, text: str) -> None:
    """Prints sentences, broken between words; a path or command longer than a line stays whole."""
    for one in plain_text(text).splitlines():
        broken = textwrap.wrap(one, console.width, break_long_words=False, break_on_hyphens=False)
        for piece in broken or [""]:
            console.print(piece, markup=False, soft_wrap=True)


def note(console: Console, notices: Iterable[str]) -> None:
    """Prints each notice on the tables above as a separate paragraph."""
    for notice in notices:
        say(console, "\n" + notice)


def _printed(text: str) -> str:
    """A cell's text in one line, as the output encoding can show it: "+-" for a plus-minus sign."""
    text = line(text)
    encoding, errors = getattr(sys.stdout, "encoding", None) or "utf-8", getattr(sys.stdout, "errors", None)
    return text if text.isascii() else text.encode(encoding, errors or "replace").decode(encoding)


@dataclass(frozen=True)
class Column:
    """A column of text."""

    head: str
    cells: Sequence[str]
    right: bool = True
    """Whether the text is aligned right, as numbers are."""
    repeat: bool = False
    """Whether the column identifies a row, and so is in each of the tables that a wide one is split into."""

    def __post_init__(self) -> None:
        # measure the text as it will be printed
        object.__setattr__(self, "head", _printed(self.head))
        object.__setattr__(self, "cells", [_printed(cell) for cell in self.cells])

    @property
    def width(self) -> int:
        """The width of the widest cell or the heading."""
        from rich.cells import cell_len

        return max(cell_len(text) for text in (self.head, *self.cells))


@dataclass(frozen=True)
class Layout:
    """A table before its width is decided."""

    title: str
    columns: Sequence[Column]
    blocks: Sequence[int] = field(default=())
    """Rows that begin a block, after an empty line."""
    note: str = ""

    def fitted(self, width: int) -> RenderableType:
        """The table, or several, within a width."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = [Text(self.title, style="bold")] if self.title else []
        for n, columns in enumerate(split(self.columns, width)):
            if n:
                parts.append(Text(""))
            parts.append(_table(columns, self.blocks))
        if self.note:
            parts.append(Text(self.note))
        return Group(*parts)


def split(columns: Sequence[Column], width: int) -> list[list[Column]]:
    """The columns of each of the tables that are printed one below the other."""
    if _width(columns) <= width:
        return [list(columns)]
    repeated = [c for c in columns if c.repeat]
    found: list[list[Column]] = []
    for column in columns:
        if column.repeat:
            continue
        if not found or (len(found[-1]) > len(repeated) and _width([*found[-1], column]) > width):
            found.append(list(repeated))
        found[-1].append(column)
    return found or [repeated]


def fits(layout: Layout, width: int) -> bool:
    """Whether a table fits this width without splitting."""
    return _width(layout.columns) <= width


def _width(columns: Iterable[Column]) -> int:
    widths = [c.width for c in columns]
    return sum(widths) + _GAP * (len(widths) - 1)


def _table(columns: Sequence[Column], blocks: Sequence[int]) -> Table:
    from rich.text import Text

    table = plain()
    for column in columns:
        table.add_column(Text(column.head), justify="right" if column.right else "left", overflow="fold")
    for n, row in enumerate(zip(*(c.cells for c in columns), strict=True)):
        if n in blocks and n:
            table.add_section()
        table.add_row(*map(Text, row))
    return table


def plain() -> Table:
    """An empty table in the common style: a line under the headings, two spaces between columns."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))


def show(console: Console, layouts: Sequence[Layout]) -> None:
    """Prints tables with an empty line between them."""
    for n, layout in enumerate(layouts):
        if n:
            console.print()
        console.print(layout.fitted(console.width))
