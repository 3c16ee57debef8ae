"""What a sweep varies: paths and their values, each path alone or several together.

`vary` maps a TOML path to its values, or a tuple of paths that vary together to tuples of the same length:

    vary = {
        "flow.film.cc": ["newreno", "vegas"],
        ("link.bottleneck.rate", "link.bottleneck.delay"): [("1 Mbit/s", "50 ms"), ("10 Mbit/s", "5 ms")],
    }

On the command line and as keys of a TOML file, commas separate the paths and colons the values of a step:
`--vary "link.bottleneck.rate,link.bottleneck.delay=1 Mbit/s:50 ms,10 Mbit/s:5 ms"`.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from paceline.arguments import plain
from paceline.errors import ArgumentError, PacelineError
from paceline.messages.argument_names import option
from paceline.scenarios.scenario import assignment

Vary = Mapping[Any, Any]
"""Paths, or tuples of paths that vary together, and their values: a list, tuple or array. (Mapping keys are invariant
in type, so a precise key type would refuse valid mappings.)"""

MOST_POINTS = 1_000_000
"""The limit on a sweep's combinations."""
MOST_LABEL = 2**63 - 1
"""The largest integer that a column holds."""

Axis = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""Paths that vary together, and for each step one value per path."""


def split(text: str, separator: str) -> list[str]:
    """Splits a text at separators outside brackets, braces and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def axis(text: str) -> tuple[str | tuple[str, ...], list[Any]]:
    """Reads "path=v1,v2,..." or "path1,path2=v1:w1,v2:w2,...". Raises PacelineError."""
    names, values = assignment(text)
    paths, parts = tuple(split(names, ",")), split(values, ",")
    if not all(paths):
        raise PacelineError(f'"{text}" has an empty path: write path1,path2=v1:w1,v2:w2')
    if not all(parts):
        raise PacelineError(f'"{text}" has an empty value: write path=v1,v2,... without a comma at the end')
    repeated = {v for v in parts if parts.count(v) > 1}
    if repeated:
        raise PacelineError(f'"{text}" names {", ".join(sorted(repeated))} more than once')
    if len(paths) == 1:
        return paths[0], parts
    steps = [tuple(split(part, ":")) for part in parts]
    for part, step in zip(parts, steps, strict=True):
        if len(step) != len(paths) or not all(step):
            raise PacelineError(
                f'"{text}": {part} must have a value for each of {", ".join(paths)}, with colons between: '
                f"{':'.join('v' for _ in paths)}"
            )
    return paths, steps


def named(vary: Mapping[str, Any]) -> dict[str | tuple[str, ...], Any]:
    """What a TOML table varies: a key holds paths that vary together, separated by commas."""
    parts = {key: tuple(split(key, ",")) for key in vary}
    return {paths if len(paths) > 1 else key: vary[key] for key, paths in parts.items()}


def axes(texts: Sequence[str]) -> dict[str | tuple[str, ...], list[Any]]:
    """What repeated options vary. Raises PacelineError if a path is given twice."""
    found: dict[str | tuple[str, ...], list[Any]] = {}
    for text in texts:
        names, values = axis(text)
        _check_paths([*_paths(found), *_together(names)])
        found[names] = values
    return found


def _together(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _paths(vary: Vary) -> list[str]:
    return [path for names in vary for path in _together(names)]


def _check_paths(paths: Sequence[str]) -> None:
    for place, path in enumerate(paths):
        for later in paths[place + 1 :]:
            if path.startswith(f"{later}."):
                raise PacelineError(
                    f"{path} is varied before {later}, which replaces it: give {later} first, or leave one of them out"
                )
        if paths.count(path) > 1:
            raise PacelineError(f"{path} is varied twice: give its values in one option")
        if path == "seed":
            raise PacelineError(
                f"seed cannot be varied: {option('runs', 10)} runs 10 seeds, {option('seed', 1)} sets the first"
            )


def _keys(path: str) -> list[str]:
    """The keys of a path, without quotes: `flow."a".cc` is `flow.a.cc`."""
    try:
        table: Any = tomllib.loads(f"{path} = 0")
    except tomllib.TOMLDecodeError:
        return path.split(".")
    keys = []
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return keys


def check_set(changes: Mapping[str, Any], vary: Vary) -> None:
    """Raises PacelineError if a path is set although it, or a table around it, is varied."""
    for path in changes:
        for varied in _paths(vary):
            if _keys(path)[: len(_keys(varied))] == _keys(varied):
                raise PacelineError(
                    f"{path} is set, and {varied} is varied, which replaces it: leave one of them out"
                )


def read(vary: Vary) -> list[Axis]:
    """What is varied, validated. Raises PacelineError."""
    _check_paths(_paths(vary))
    found: list[Axis] = []
    for names, values in vary.items():
        paths = _together(names)
        what = ", ".join(paths)
        if not paths:
            raise PacelineError("no path is varied over values: give one")
        if isinstance(values, str):
            raise ArgumentError(f'the values of {what} must be a list: ["{values}"]')
        listed = plain(values)
        if not isinstance(listed, Sequence) or isinstance(listed, bytes):
            raise ArgumentError(f"the values of {what} must be a list, as [1, 2], not {values!r}")
        if not listed:
            raise PacelineError(f"{what} is varied over no values: give at least one")
        own = map(plain, listed)
        steps = [(value,) if isinstance(names, str) else value for value in own]
        for step in steps:
            if not isinstance(step, list | tuple) or len(step) != len(paths):
                raise PacelineError(
                    f"{what} vary together: each step must be a tuple of {len(paths)} values, not {step!r}"
                )
        found.append((paths, [tuple(step) for step in steps]))
    return found


def number(text: str) -> int | float | str:
    """The number that a text is, or the text itself."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text):
        return float(text)
    return text


def _labels(values: Sequence[Any]) -> list[Any]:
    """Values as table columns hold them: numbers only if all of them are."""
    plain = [number(v) if isinstance(v, str) else v for v in values]
    kinds = {type(v) for v in plain}
    words = [str(v) for v in values]
    if kinds <= {int, float} and (
        len(set(plain)) < len(set(words)) or any(abs(v) > MOST_LABEL for v in plain if isinstance(v, int))
    ):
        # "1" and "01" may be two names, and a column holds no larger integer.
        return words
    if kinds == {int, float}:
        return [float(v) for v in plain]
    return plain if kinds in ({int}, {float}) else words


def combinations(vary: Vary) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the values, the last axis varying fastest and paths of one axis in step: the settings and
    the labels that identify it. Raises PacelineError."""
    steps: list[list[list[tuple[str, Any, Any]]]] = []
    for paths, values in read(vary):
        labels = [_labels([step[i] for step in values]) for i in range(len(paths))]
        steps.append(
            [[(path, step[i], labels[i][k]) for i, path in enumerate(paths)] for k, step in enumerate(values)]
        )
    if (many := math.prod(map(len, steps))) > MOST_POINTS:
        raise PacelineError(f"the values make {many:,} combinations: at most {MOST_POINTS:,}")
    points = [list(itertools.chain(*chosen)) for chosen in itertools.product(*steps)]
    return [
        ({path: value for path, value, _ in point}, {path: label for path, _, label in point})
        for point in points
    ]


def recorded(vary: Vary) -> dict[str, Any]:
    """The manifest's record of the axes: `vary`, each path's values, and `together`, the paths that vary in step."""
    found = read(vary)
    values = {
        path: [str(step[i]) for step in steps] for paths, steps in found for i, path in enumerate(paths)
    }
    together = [list(paths) for paths, _ in found if len(paths) > 1]
    return {"vary": values, "together": together} if together else {"vary": values}


def varied(manifest: Mapping[str, Any]) -> Vary:
    """The axes that a manifest records: the inverse of `recorded`."""
    values: dict[str, list[Any]] = manifest["vary"]
    together = {path: tuple(paths) for paths in manifest.get("together", []) for path in paths}
    names = dict.fromkeys(together.get(path, path) for path in values)
    return {
        name: values[name]
        if isinstance(name, str)
        else list(zip(*(values[path] for path in name), strict=True))
        for name in names
    }


def short(paths: Sequence[str]) -> dict[str, str]:
    """The shortest endings that tell paths apart: "delay" for "link.bottleneck.delay"."""
    found = {}
    for axis in paths:
        keys = axis.split(".")
        ends = [".".join(keys[n:]) for n in range(len(keys) - 1, -1, -1)]
        others = [other for other in paths if other != axis]
        found[axis] = next((e for e in ends if not any(f".{o}".endswith(f".{e}") for o in others)), axis)
    return found
