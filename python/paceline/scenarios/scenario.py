"""Scenarios: from a file, from text, or already loaded, with values replaced."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paceline import files
from paceline._core import Scenario
from paceline.arguments import checked, plain
from paceline.errors import ArgumentError, CutShortWarning, PacelineError, ScenarioError, StorageError
from paceline.files.package_data import find, near, told
from paceline.files.paper_folders import FIGURES, PUBLISHED, READINGS
from paceline.messages.warn import warn

ScenarioLike = Scenario | str | Path | Mapping[str, Any]
"""A loaded one, a file, TOML text (of more than one line), or the same as a dict."""

Schemes = Mapping[str, type]
"""Classes of controllers by the names that flows have for them."""


@checked()
def load(
    scenario: ScenarioLike, changes: Mapping[str, Any] | None = None, schemes: Schemes | None = None
) -> Scenario:
    """The scenario of a TOML file (or one already loaded, or TOML text, or a dict of it) with the values at some TOML
    paths replaced.

    `changes` maps paths such as "flow.media.cc" to values: text as it would stand in the file ("50 ms"), numbers,
    booleans, lists or tables; a file is checked when all are in place. "examples/NAME.toml" and
    "papers/KEY/NAME.toml" are the package's where there is no such file. `schemes` maps names that flows have in `cc`
    to classes of yours (`paceline.WindowController` and its kin). Raises ScenarioError for a mistake, and warns
    (PacelineWarning) of what has no effect.
    """
    values = toml_values(changes or {})
    try:
        return _loaded(scenario, values, list((schemes or {}).items()))
    except ScenarioError as error:
        raise ScenarioError(told(str(error))) from None


def _loaded(
    scenario: ScenarioLike, values: list[tuple[str, str]], classes: list[tuple[str, type]]
) -> Scenario:
    if isinstance(scenario, Scenario):
        if classes:
            given = dict(scenario.classes) | dict(classes)
            scenario = scenario.with_classes(list(given.items()))
        return _warned(scenario.set_all(values)) if values else scenario
    if isinstance(scenario, Mapping):
        # A JSON string is a TOML key.
        scenario = (
            "\n".join(f"{json.dumps(str(key))} = {_toml(value)}" for key, value in scenario.items()) + "\n"
        )
    if isinstance(scenario, str) and "\n" in scenario:
        return _warned(Scenario.parse(scenario, ".", "scenario", values, classes))
    path = find(str(scenario))
    try:
        return _warned(Scenario.load(path, values, classes))
    except ScenarioError as error:
        if not Path(path).exists():
            raise ScenarioError(f"{error}{near(str(scenario))}") from None
        if is_campaign(path):
            raise PacelineError(
                f"{scenario}: this is a campaign, which names scenarios: `paceline campaign {scenario}` runs it"
            ) from None
        if is_path(path):
            raise PacelineError(
                f"{scenario}: this is a path, which has no flows: `paceline path {scenario} -- COMMAND...` runs a "
                "program over it; a scenario has `duration` and `flow` too"
            ) from None
        if is_of_a_paper(path):
            raise PacelineError(
                f"{scenario}: this is of a paper: `paceline reproduce {Path(path).parent}` runs its figures"
            ) from None
        if is_class(path):
            raise PacelineError(
                f"{scenario}: this is a class of leagues, which draws scenarios: `paceline league --classes "
                f"{scenario}` plays it"
            ) from None
        if is_suite(path):
            raise PacelineError(
                f"{scenario}: this is a suite: `paceline suite {Path(path).parent}` runs its cases"
            ) from None
        raise


def is_campaign(path: str | Path) -> bool:
    """Whether a file is a campaign, not a scenario: an example of the package's too, where no such file is here."""
    keys = _keys(path)
    return "scheme" in keys and "flow" not in keys


def is_path(path: str | Path) -> bool:
    """Whether a file is a path alone, which `paceline path` takes: it has links, and neither flows nor a duration."""
    keys = _keys(path)
    return "link" in keys and not keys & {"flow", "duration"}


def is_of_a_paper(path: str | Path) -> bool:
    """Whether a file has the name of those that make a folder a paper, and is no scenario."""
    return Path(path).name in {FIGURES, PUBLISHED, READINGS} and not _keys(path) & {"flow", "link"}


def is_suite(path: str | Path) -> bool:
    """Whether a file is a suite's, not a scenario."""
    keys = _keys(path)
    return "suite" in keys and not keys & {"flow", "link"}


def is_class(path: str | Path) -> bool:
    """Whether a file is a class of leagues, not a scenario."""
    return _keys(path) >= {"class", "draw", "flow"}


def _keys(path: str | Path) -> set[str]:
    """The keys of a TOML file; none if it cannot be read as such."""
    file = Path(find(str(path)))
    if not file.is_file():
        return set()
    try:
        return set(tomllib.loads(files.read_text(file)))
    except (StorageError, tomllib.TOMLDecodeError, RecursionError):
        return set()


def _warned(scenario: Scenario) -> Scenario:
    for text in scenario.warnings:
        warn(told(text))
    for text in scenario.cut_short:
        warn(told(text), CutShortWarning)
    return scenario


def identity(scenario: Scenario) -> str:
    """What a run's result depends on beside its seed: the scenario with every default but its name, and the traces'
    contents."""
    return "\n".join([scenario.identity(), *_traces(scenario)])


def written(scenario: Scenario) -> dict[str, str]:
    """What a manifest says of a scenario: all of it, `scenario`, and a hash of its `identity`."""
    whole = "\n".join([scenario.to_toml(), *_traces(scenario)])
    return {"scenario": whole, "identity": hashlib.sha256(identity(scenario).encode()).hexdigest()}


def _traces(scenario: Scenario) -> list[str]:
    return [
        f"# {file}: sha256 {hashlib.sha256(text.encode()).hexdigest()}" for file, text in scenario.traces()
    ]


@checked()
def parse(text: str, base_dir: str | Path = ".", name: str = "scenario") -> Scenario:
    """The scenario of TOML text; trace files are looked up from `base_dir`. Raises ScenarioError, and
    warns as `load` does."""
    return _warned(Scenario.parse(text, str(base_dir), name))


def toml_value(value: Any) -> str:
    """A value in the notation of files: TOML, or bare text. Raises ArgumentError."""
    return value if isinstance(value, str) else _toml(value)


def toml_values(changes: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """TOML paths and values, as `toml_value` has them. Raises ArgumentError that names the path."""
    found = []
    for path, value in changes.items() if isinstance(changes, Mapping) else changes:
        try:
            found.append((path, toml_value(value)))
        except ArgumentError as error:
            raise ArgumentError(f"{path}: {error}") from None
    return found


def _toml(value: Any) -> str:
    value = plain(value)
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case str():
            # A JSON string is a TOML basic string.
            return json.dumps(value, ensure_ascii=False)
        case list() | tuple():
            return "[" + ", ".join(_toml(v) for v in value) + "]"
        case Mapping():
            return "{ " + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + " }"
        case _:
            raise ArgumentError(
                f'{value!r} is not a value that a scenario can hold: write text, as "50 ms", a number, True or False, '
                "a list or a dict"
            )


def toml_text(table: Mapping[str, Any], *above: str) -> str:
    """A table as the text of a file: its values, then a head and the same for each table in it, below those `above`.
    Raises ArgumentError."""
    values = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    parts = ["".join(f"{_key(key)} = {_toml(value)}\n" for key, value in values.items())]
    if above and (values or not table):
        parts[0] = f"[{'.'.join(map(_key, above))}]\n{parts[0]}"
    parts += [toml_text(inner, *above, key) for key, inner in table.items() if isinstance(inner, Mapping)]
    return "\n".join(part for part in parts if part)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def assignment(text: str) -> tuple[str, str]:
    """Splits "path=value". Raises PacelineError."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip() or not value.strip():
        raise PacelineError(f'"{text}" is not of the form path=value, as in flow.media.cc=vegas')
    return path.strip(), value.strip()


def assignments(texts: list[str]) -> dict[str, str]:
    """The values of repeated "path=value" options, in the order in which they are set; the last of a path wins."""
    found: dict[str, str] = {}
    for text in texts:
        path, value = assignment(text)
        # what was set since its first value, a table around it say, comes before it too
        found.pop(path, None)
        found[path] = value
    return found
