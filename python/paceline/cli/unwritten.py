"""Prints real-time measurements that could not be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from paceline.errors import UnwrittenError

Ran = TypeVar("Ran")


def measured(run: Callable[[], Ran]) -> tuple[Ran, UnwrittenError | None]:
    """The result of `run`; if it could not be written, its result all the same, and the error to raise later."""
    try:
        return run(), None
    except UnwrittenError as error:
        return cast(Ran, error.ran), error
