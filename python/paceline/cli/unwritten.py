"""What was measured in real time and could not be written is printed all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from paceline.errors import UnwrittenError

Ran = TypeVar("Ran")


def measured(run: Callable[[], Ran]) -> tuple[Ran, UnwrittenError | None]:
    """What `run` gives; if it could not be written, what it would have given, and the error to raise later."""
    try:
        return run(), None
    except UnwrittenError as error:
        return cast(Ran, error.ran), error
