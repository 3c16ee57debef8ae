"""Scenarios: from a file, from text, or already loaded, with values replaced."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paceline import files
from paceline._core import Scenario
from paceline.arguments import checked, plain
from paceline.errors import ArgumentError, CutShortWarning, PacelineError, ScenarioError, StorageError
from paceline.files.package_data import find, suggestion, with_requested_names
from paceline.files.paper_folders import FIGURES, PUBLISHED, READINGS
from paceline.messages.warn import warn

ScenarioLike = Scenario | str | Path | Mapping[str, Any]
"""A loaded scenario, a file, TOML text (of more than one line), or the same as a dict."""

Schemes = Mapping[str, type]
"""Controller classes by the names that flows use for them."""


@checked()
def load(
    scenario: ScenarioLike, changes: Mapping[str, Any] | None = None, schemes: Schemes | None = None
) -> Scenario:
    """Loads a scenario (a TOML file, TOML text, a dict of it, or a loaded one), with some values replaced.

    `changes` maps TOML paths such as "flow.media.cc" to values: text as in a file ("50 ms"), numbers, booleans, lists
    or tables; the result is validated as a whole. "examples/NAME.toml" and "papers/KEY/NAME.toml" name the package's
    files unless such a file exists. `schemes` maps names that flows use in `cc` to your classes
    (`paceline.WindowController` and its kin). Raises ScenarioError for a mistake, and warns (PacelineWarning) about
    settings without effect.
    """
    values = toml_values(changes or {})
    try:
        return _loaded(scenario, values, list((schemes or {}).items()))
    except ScenarioError as error:
        raise ScenarioError(with_requested_names(str(error))) from None


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
            raise ScenarioError(f"{error}{suggestion(str(scenario))}") from None
        if is_campaign(path):
            raise PacelineError(
                f"{scenario}: this is a campaign, which names scenarios: `paceline campaign {scenario}` runs it"
            ) from None
        if is_path(path):
            raise PacelineError(
                f"{scenario}: this is a path without flows: `paceline path {scenario} -- COMMAND...` runs a "
                "program over it; a scenario also needs `duration` and `flow`"
            ) from None
        if is_of_a_paper(path):
            raise PacelineError(
                f"{scenario}: this file belongs to a paper: `paceline reproduce {Path(path).parent}` runs its figures"
            ) from None
        if is_class(path):
            raise PacelineError(
                f"{scenario}: this is a league's scenario class: `paceline league --classes "
                f"{scenario}` plays it"
            ) from None
        if is_suite(path):
            raise PacelineError(
                f"{scenario}: this is a suite: `paceline suite {Path(path).parent}` runs its cases"
            ) from None
        raise


def is_campaign(path: str | Path) -> bool:
    """Whether a file is a campaign, not a scenario; also finds the package's examples if no such file exists."""
    keys = _keys(path)
    return "scheme" in keys and "flow" not in keys


def is_path(path: str | Path) -> bool:
    """Whether a file is only a path, for `paceline path`: it has links, but neither flows nor a duration."""
    keys = _keys(path)
    return "link" in keys and not keys & {"flow", "duration"}


def is_of_a_paper(path: str | Path) -> bool:
    """Whether a file has the name of one of a paper's files, and is not a scenario."""
    return Path(path).name in {FIGURES, PUBLISHED, READINGS} and not _keys(path) & {"flow", "link"}


def is_suite(path: str | Path) -> bool:
    """Whether a file is a suite's, not a scenario."""
    keys = _keys(path)
    return "suite" in keys and not keys & {"flow", "link"}


def is_class(path: str | Path) -> bool:
    """Whether a file is a league's class, not a scenario."""
    return _keys(path) >= {"class", "draw", "flow"}


def _keys(path: str | Path) -> set[str]:
    """The keys of a TOML file; empty if it cannot be read."""
    file = Path(find(str(path)))
    if not file.is_file():
        return set()
    try:
        return set(tomllib.loads(files.read_text(file)))
    except (StorageError, tomllib.TOMLDecodeError, RecursionError):
        return set()


def _warned(scenario: Scenario) -> Scenario:
    for text in scenario.warnings:
        warn(with_requested_names(text))
    for text in scenario.cut_short:
        warn(with_requested_names(text), CutShortWarning)
    return scenario


def identity(scenario: Scenario) -> str:
    """Everything besides its seed that a run's result depends on: the scenario with defaults and without its name, and
    the traces' contents."""
    return "\n".join([scenario.identity(), *_traces(scenario)])


def written(scenario: Scenario) -> dict[str, str]:
    """A manifest's entries for a scenario: its full text, `scenario`, and a hash of its `identity`."""
    whole = "\n".join([scenario.to_toml(), *_traces(scenario)])
    return {"scenario": whole, "identity": hashlib.sha256(identity(scenario).encode()).hexdigest()}


def _traces(scenario: Scenario) -> list[str]:
    return [
        f"# {file}: sha256 {hashlib.sha256(text.encode()).hexdigest()}" for file, text in scenario.traces()
    ]


@checked()
def parse(text: str, base_dir: str | Path = ".", name: str = "scenario") -> Scenario:
    """Loads a scenario from TOML text; trace files are looked up from `base_dir`. Raises ScenarioError, and warns as
    `load` does."""
    return _warned(Scenario.parse(text, str(base_dir), name))


def toml_value(value: Any) -> str:
    """A value in a file's notation: TOML, or bare text. Raises ArgumentError."""
    return value if isinstance(value, str) else _toml(value)


def toml_values(changes: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    """TOML paths and values, in the notation of `toml_value`. Raises ArgumentError, which names the path."""
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
                f'{value!r} is not a value for a scenario: write text, as "50 ms", a number, True or False, '
                "a list or a dict"
            )


def assignment(text: str) -> tuple[str, str]:
    """Splits "path=value". Raises PacelineError."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip() or not value.strip():
        raise PacelineError(f'"{text}" must have the form path=value, as in flow.media.cc=vegas')
    return path.strip(), value.strip()


def assignments(texts: list[str]) -> dict[str, str]:
    """The values of repeated "path=value" options, in the order in which they are set; the last of a path wins."""
    found: dict[str, str] = {}
    for text in texts:
        path, value = assignment(text)
        # move the path behind what was set since its first value, such as a table around it
        found.pop(path, None)
        found[path] = value
    return found
