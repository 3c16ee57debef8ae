"""NAME[:KEY=VALUE,...]: the notation of a controller or queue with parameters on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from paceline import _core

Values = tuple[tuple[str, str], ...]
"""Keys and their values, as written."""

_SWITCH = {"true": 1.0, "false": 0.0}


def read(text: str) -> tuple[str, Values]:
    """The name and the values. Raises ValueError if a key or a value is missing."""
    name, colon, rest = text.partition(":")
    values = []
    for part in rest.split(",") if colon else ():
        key, equals, value = (word.strip() for word in part.partition("="))
        if not (key and equals and value):
            raise ValueError(text)
        values.append((key, value))
    return name.strip(), tuple(values)


def numbers(controller: str, values: Values) -> list[tuple[str, float]]:
    """A controller's parameters as the core takes them: a switch is 0 or 1, a choice its index among the names.

    Raises ValueError for any other text.
    """
    of = _parameters(controller, dict(values).get("variant"))
    return [(key, _number(of.get(key, ()), value)) for key, value in values]


def _number(names: Sequence[str], value: str) -> float:
    if value in names:
        return float(names.index(value))
    number = _SWITCH.get(value)
    return float(value) if number is None else number


def _parameters(controller: str, variant: str | None) -> dict[str, Sequence[str]]:
    """The allowed names of each parameter, in the chosen variant."""
    schemes: list[dict[str, Any]] = json.loads(_core.schemes())
    chosen = {"name": controller, "variant": variant}
    found = [one for one in schemes if one["name"] == controller]
    found = [one for one in schemes if one.get("variant_of") == chosen] or found
    return {one["name"]: one.get("names", ()) for scheme in found for one in scheme["params"]}
