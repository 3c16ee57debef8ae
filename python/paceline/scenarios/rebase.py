"""Scenarios as text for another directory: the files that they name get paths relative to that directory.

The place of a text decides whether it is a file name, not its value: a queue's kind may equal the name of a file beside
the scenario.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from paceline import _core, own_controllers

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
    changes = []
    for place, cc in _places(table, _CONTROLLERS):
        file = own_controllers.file_of(cc)
        # the name of a module, or of a registered class, is no file
        if file == cc or cc in given or Path(file).is_absolute():
            continue
        head = cc.index(":") + 1
        moved = _from(own_controllers.where(base, file), directory)
        changes.append((place, cc[:head] + moved + cc[head + len(file) :]))
    for path in _FILES:
        for place, file in _places(table, path):
            if not Path(file).is_absolute():
                changes.append((place, _from(Path(base, file), directory)))
    return _core.edit(text, json.dumps(changes)) if changes else text


def _places(value: Any, path: tuple[str, ...], at: str = "") -> Iterator[tuple[str, str]]:
    """The texts at such a path, each with its own path in the notation of `--set`."""
    if not path:
        if isinstance(value, str):
            yield at, value
        return
    key, *rest = path
    if isinstance(value, dict):
        for name in value if key == "*" else {key} & value.keys():
            # a name has no quotes: letters, digits, `-`, `_` and `.`
            yield from _places(value[name], tuple(rest), f'{at}."{name}"' if at else name)
    elif isinstance(value, list) and key == "*":
        for index, inner in enumerate(value):
            yield from _places(inner, tuple(rest), f"{at}[{index}]")


def _from(file: Path, directory: Path) -> str:
    # Resolve links among the folders, since `..` after one leads elsewhere, but not the file itself: a controller
    # imports modules that lie beside it.
    whole = file.parent.resolve() / file.name
    try:
        return Path(os.path.relpath(whole, directory.resolve())).as_posix()
    except ValueError:  # another drive, on Windows
        return whole.as_posix()
