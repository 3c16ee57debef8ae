"""A progress bar below the running notebook cell."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

_AFTER_S = 1.0
"""Work that finishes within this time shows no progress."""
_EVERY_S = 0.2


def progress(unit: str) -> Callable[[float, float], None] | None:
    """A bar below the running cell, removed at the end; None outside a notebook."""
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
