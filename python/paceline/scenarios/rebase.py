"""Scenarios as text for another directory: the files that they name get paths relative to that directory.

The place of a text decides whether it is a file name, not its value: a queue's kind may equal the name of a file beside
the scenario.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paceline import _core, own_controllers
from paceline.scenarios.scenario import toml_text

_FILES = (
    ("link", "*", "rate_trace", "file"),
    ("link", "*", "backward", "rate_trace", "file"),
    ("flow", "*", "app", "file"),
    ("flow", "*", "app", "traces", "*", "file"),
)
"""Where a scenario names files (docs/scenario.md), besides the controllers of flows; `*` is any name or index."""
_CONTROLLERS = ("flow", "*", "cc")


def text_from(scenario: _core.Scenario, directory: Path) -> str:
    """The scenario's text for a file in that directory: its file names become relative to it, absolute paths stay. File
    names in a dict or a text are relative to the current directory."""
    text, base, _, _, classes = scenario.__getnewargs__()
    table = tomllib.loads(text)
    given = {name for name, _ in classes}
    moved = False
    for holder, key in _places(table, _CONTROLLERS):
        cc = holder[key]
        file = own_controllers.file_of(cc)
        # the name of a module, or of a registered class, is no file
        if file == cc or cc in given or Path(file).is_absolute():
            continue
        head = cc.index(":") + 1
        holder[key] = cc[:head] + _from(own_controllers.where(base, file), directory) + cc[head + len(file) :]
        moved = True
    for path in _FILES:
        for holder, key in _places(table, path):
            if not Path(holder[key]).is_absolute():
                holder[key] = _from(Path(base, holder[key]), directory)
                moved = True
    return toml_text(table) if moved else text


def _places(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Any, str]]:
    """The containers that hold a text at such a path, and its key there."""
    key, *rest = path
    if rest and key == "*":
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _places(inner, tuple(rest))
    elif isinstance(value, dict) and key in value:
        if rest:
            yield from _places(value[key], tuple(rest))
        elif isinstance(value[key], str):
            yield value, key


def _from(file: Path, directory: Path) -> str:
    # Resolve links among the folders, since `..` after one leads elsewhere, but not the file itself: a controller
    # imports modules that lie beside it.
    whole = file.parent.resolve() / file.name
    try:
        return Path(os.path.relpath(whole, directory.resolve())).as_posix()
    except ValueError:  # another drive, on Windows
        return whole.as_posix()
