"""How a message names an argument: as an option of the command, or as a Python argument, whichever the user gave."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator

_OF_THE_COMMAND = {"duration_s": "--for"}
_by_command = False


@contextlib.contextmanager
def by_command() -> Iterator[None]:
    """Within the block, messages name options of the command line."""
    global _by_command  # noqa: PLW0603 (a process is one command, or none)
    before, _by_command = _by_command, True
    try:
        yield
    finally:
        _by_command = before


def option(argument: str, value: object = None) -> str:
    """The argument, with an actual or possible value: "--max-rate 2Mbit/s" on the command line, max_rate="2Mbit/s" in
    Python. A switch has the value True."""
    if _by_command:
        name = _OF_THE_COMMAND.get(argument, f"--{argument.replace('_', '-')}")
        return name if value is None or value is True else f"{name} {value}"
    return argument if value is None else f"{argument}={value if value is True else _quoted(value)}"


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def near(
    word: str, known: Iterable[str], many: int = 1, *, cutoff: float = 0.6, longer: bool = False
) -> list[str]:
    """The known words that are similar by `difflib`'s ratio, `many` at most, the most similar first; with `longer`,
    those that begin with the word, if there are any."""
    there = list(dict.fromkeys(known))
    begin = [name for name in there if longer and word and name.startswith(word)]
    return begin or difflib.get_close_matches(word, there, many, cutoff)


def meant(
    word: str, known: Iterable[str], many: int = 1, *, cutoff: float = 0.6, longer: bool = False
) -> str:
    """A suggestion, " (did you mean cubic?)"; "" if no known word is similar: see `near`."""
    found = near(word, known, many, cutoff=cutoff, longer=longer)
    return f" (did you mean {' or '.join(found)}?)" if found else ""
