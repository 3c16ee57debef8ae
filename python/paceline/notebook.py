"""Results and progress in a notebook: as HTML, by themselves."""

from __future__ import annotations

import html
import importlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paceline.cli.layout import Column, Layout

_AFTER_S = 1.0
"""Work that is over by then shows no progress."""
_EVERY_S = 0.2

_STYLE = "text-align:{};padding:0.1em 0.8em;white-space:nowrap"


def tables(layouts: Sequence[Layout], notices: Sequence[str] = ()) -> str:
    """The tables that the command line prints, as HTML, and what a reader of them should know."""
    parts = [_table(layout) for layout in layouts]
    parts += [f"<p>{html.escape(notice)}</p>" for notice in notices]
    return "\n".join(parts)


def _table(layout: Layout) -> str:
    rows = zip(*(column.cells for column in layout.columns), strict=True)
    lines = ["<table>"]
    if layout.title:
        lines.append(f"<caption><b>{html.escape(layout.title)}</b></caption>")
    lines.append(_row("th", layout.columns, [column.head for column in layout.columns]))
    lines += [_row("td", layout.columns, cells) for cells in rows]
    lines.append("</table>")
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


def progress(unit: str) -> Callable[[float, float], None] | None:
    """A bar below the cell that runs, gone when all is done; None outside a notebook."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or "IPKernelApp" not in shell.config:
        return None
    display: Any = importlib.import_module("IPython.display")
    began = time.monotonic()
    handle: Any = None
    said = began

    def show(done: float, total: float) -> None:
        nonlocal handle, said
        now = time.monotonic()
        if done >= total:
            if handle is not None:
                handle.update(display.HTML(""))
            return
        if now - began < _AFTER_S or now - said < _EVERY_S:
            return
        said = now
        text = f"{int(done)} of {int(total)} {unit}, {now - began:.0f} s"
        bar = display.HTML(f'<progress value="{done:.3f}" max="{total:.3f}"></progress> {text}')
        if handle is None:
            handle = display.display(bar, display_id=True)
        else:
            handle.update(bar)

    return show
