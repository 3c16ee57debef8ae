"""Tables as HTML, for a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.tables.layout import Column, Layout

_STYLE = "text-align:{};padding:0.1em 0.8em;white-space:nowrap"


def tables(layouts: Sequence[Layout], notices: Sequence[str] = ()) -> str:
    """The tables that the command line prints, and their notices, as HTML."""
    parts = [_table(layout) for layout in layouts]
    parts += [f"<p>{html.escape(notice)}</p>" for notice in notices]
    return "\n".join(parts)


def _table(layout: Layout) -> str:
    rows = zip(*(column.cells for column in layout.columns), strict=True)
    lines = ['<div style="overflow-x:auto">', "<table>"]
    if layout.title:
        lines.append(f"<caption><b>{html.escape(layout.title)}</b></caption>")
    lines.append(_row("th", layout.columns, [column.head for column in layout.columns]))
    lines += [_row("td", layout.columns, cells) for cells in rows]
    lines += ["</table>", "</div>"]
    if layout.note:
        lines.append(f"<p>{html.escape(layout.note)}</p>")
    return "\n".join(lines)


def _row(tag: str, columns: Sequence[Column], cells: Sequence[str]) -> str:
    sides = ["right" if column.right else "left" for column in columns]
    said = [
        f'<{tag} style="{_STYLE.format(side)}">{html.escape(cell)}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    ]
    return f"<tr>{''.join(said)}</tr>"
