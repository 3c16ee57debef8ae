"""Strict reading of a paper's files: tables that reject unknown keys, and checks against a study."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline import files
from paceline.files.paper_folders import PaperError
from paceline.scenarios.scenario import toml_value
from paceline.studies.expression import Expression, ExpressionError
from paceline.studies.metric import EACH, Metric
from paceline.studies.study import Settings, Study


class Table:
    """A TOML table that rejects unknown keys."""

    def __init__(self, where: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise PaperError(f"{where}: must be a table")
        self.where, self._values = where, dict(values)
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        self._known.append(key)
        if key not in self._values:
            if default is ...:
                raise PaperError(f"{self.where}: needs {key}")
            return default
        return _checked(f"{self.where}.{key}", self._values.pop(key), kind)

    def take_each(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> list[Any]:
        """A list of values of a type."""
        values = self.take(key, list, default)
        return [_checked(f"{self.where}.{key}[{i}]", value, kind) for i, value in enumerate(values)]

    def end(self) -> None:
        if self._values:
            unknown = ", ".join(sorted(self._values))
            raise PaperError(f"{self.where}: unknown {unknown}; there are {', '.join(sorted(self._known))}")


def _checked(where: str, value: Any, kind: type | tuple[type, ...]) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = kind if isinstance(kind, tuple) else (kind,)
        raise PaperError(f"{where}: must be {' or '.join(k.__name__ for k in names)}, not {value!r}")
    return value


def check_distinct(where: str, what: str, names: Sequence[str]) -> None:
    """Raises PaperError for a name given twice: references to it would be ambiguous."""
    for name in names:
        if names.count(name) > 1:
            raise PaperError(f"{where}: {what} {name!r} is given twice")


def read_toml(path: Path) -> dict[str, Any]:
    try:
        with files.opened(path) as file:
            return tomllib.load(file)
    except OSError as error:
        raise PaperError(f"cannot read {path}: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise PaperError(f"{path}: {error}") from None


def settings(table: Table, key: str = "set") -> Settings:
    return tuple((path, toml_value(value)) for path, value in table.take(key, dict, {}).items())


def to_expression(where: str, text: str) -> Expression:
    try:
        return Expression(text)
    except ExpressionError as error:
        raise PaperError(f"{where}: {error}") from None


def check_selections(where: str, ours: Expression, study: Study, metrics: Mapping[str, Metric]) -> None:
    unknown = ours.names - metrics.keys() - {"x"}
    if unknown:
        raise PaperError(f"{where}: no metric {', '.join(sorted(unknown))}; there are {', '.join(metrics)}")
    for metric, series, levels in ours.selections:
        if metric in metrics and metrics[metric].rows == EACH:
            raise PaperError(f"{where}: metric {metric} has a number for each interval, not one for the run")
        if series not in {s.key for s in study.series}:
            raise PaperError(f"{where}: study {study.key} has no series {series!r}")
        for label in levels if isinstance(levels, tuple) else (levels,):
            if label is not None and label not in {level.label for level in study.levels}:
                raise PaperError(f"{where}: study {study.key} has no level {label!r}")
