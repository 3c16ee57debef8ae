"""Progress on stderr: a bar with the remaining time on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from paceline.simulate.points import Progress as Callback

_EVERY_S = 30.0


def duration(seconds: float) -> str:
    """A duration for people: "40 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


@contextlib.contextmanager
def progress(what: str, unit: str = "runs") -> Iterator[Callback]:
    """A callback for `run_points`, or in seconds (`unit` "s") for `in_turn`; shown within the block."""
    from paceline.tables import layout

    console = layout.stderr()
    if not console.is_terminal:
        yield _lines(what, unit)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=None, amount="")

        def show(done: float, total: float) -> None:
            bar.update(task, completed=done, total=total, amount=f"{int(done)}/{int(total)} {unit}")

        yield show


def _lines(what: str, unit: str) -> Callback:
    began = said = time.monotonic()
    at_first: float | None = None

    def show(done: float, total: float) -> None:
        nonlocal said, at_first
        now = time.monotonic()
        at_first = done if at_first is None else at_first
        if now - said < _EVERY_S:
            return
        said = now
        share = (done - at_first) / max(total - at_first, 1e-9)
        left = f", about {duration((now - began) * (1 - share) / share)} left" if share > 0 else ""
        print(f"{what}: {int(done)} of {int(total)} {unit}{left}", file=sys.stderr, flush=True)

    return show
