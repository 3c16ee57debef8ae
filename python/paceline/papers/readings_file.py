"""Reads `readings.toml`, and the abstract's findings in `published.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from paceline.files.paper_folders import PaperError
from paceline.studies.expression import Expression
from paceline.studies.metric import Metric
from paceline.studies.paper import MAX_DIGITS_ERROR, Abstract, Cause, CauseKind, Claim, Reading
from paceline.studies.strict import Table, check_distinct, check_selections, settings, to_expression
from paceline.studies.study import Part, Study
from paceline.studies.verdict import NUMBERS

NAMED = re.compile(r"\{([\w.-]+)\}")
"""The claims that an answer names."""


def _matching(where: str, what: str, patterns: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The known names that a pattern matches ("fig7*"), each once, in order. Raises PaperError if one matches none."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise PaperError(f"{where}: no {what} {pattern!r}; there are {', '.join(known)}")
    return tuple(name for name in known if any(fnmatchcase(name, pattern) for pattern in patterns))


def read_readings(
    name: str,
    values: list[Any],
    studies: Mapping[str, Study],
    metrics: Mapping[str, Metric],
    claims: Sequence[Claim],
) -> tuple[Reading, ...]:
    """The readings of a file. Raises PaperError."""
    found = []
    for i, value in enumerate(values):
        table = Table(f"{name}: reading[{i}]", value)
        key = table.take("key", str)
        table.where = where = f"{name}: reading {key}"
        reading = Reading(
            key=key,
            title=table.take("title", str),
            where=table.take("where", str),
            text=table.take("text", str),
            taken=table.take("taken", str),
            parts=tuple(
                _part(Table(f"{where}.part[{n}]", part), studies)
                for n, part in enumerate(table.take("part", list, []))
            ),
            counted=_counted(where, table.take("ours", dict, {}), studies, metrics, claims),
        )
        table.end()
        if not re.fullmatch(r"[a-z0-9-]+", key):
            raise PaperError(f"{where}.key: may have letters a to z, digits and '-', not {key!r}")
        if not reading.parts and not reading.counted:
            raise PaperError(f"{where}: needs `part`, its settings, or `ours`, its way of counting")
        found.append(reading)
    check_distinct(name, "reading", [reading.key for reading in found])
    return tuple(found)


def _part(table: Table, studies: Mapping[str, Study]) -> Part:
    able = [key for key, study in studies.items() if study.scenario]
    wanted = table.take_each("studies", str, ["*"])
    chosen = _matching(f"{table.where}.studies", "study with a scenario", wanted, able)
    series = list(dict.fromkeys(s.key for key in chosen for s in studies[key].series))
    levels = list(dict.fromkeys(level.label for key in chosen for level in studies[key].levels))
    part = Part(
        chosen,
        _matching(f"{table.where}.series", "series", table.take_each("series", str, []), series),
        _matching(f"{table.where}.levels", "level", table.take_each("levels", str, []), levels),
        settings(table),
        table.take("scenario", str, None),
    )
    table.end()
    if not part.settings and part.scenario is None:
        raise PaperError(f"{table.where}: needs `set` or `scenario`")
    return part


def _counted(
    where: str,
    values: Mapping[str, Any],
    studies: Mapping[str, Study],
    metrics: Mapping[str, Metric],
    claims: Sequence[Claim],
) -> dict[str, Expression]:
    found = {}
    known = {claim.key: claim for claim in claims}
    for pattern, text in values.items():
        for key in _matching(f"{where}.ours", "claim", [pattern], list(known)):
            expression = to_expression(f"{where}.ours.{key}", text)
            check_selections(f"{where}.ours.{key}", expression, studies[known[key].study], metrics)
            found[key] = expression
    return found


def read_causes(
    name: str, values: list[Any], readings: Sequence[Reading], claims: Sequence[Claim]
) -> tuple[Cause, ...]:
    """The causes of a file. Raises PaperError."""
    found = []
    known = [claim.key for claim in claims]
    for i, value in enumerate(values):
        table = Table(f"{name}: cause[{i}]", value)
        key = table.take("key", str)
        table.where = where = f"{name}: cause {key}"
        says, kind = table.take("says", str), table.take("kind", str)
        if kind not in list(CauseKind):
            raise PaperError(f"{where}.kind: must be one of {', '.join(CauseKind)}, not {kind!r}")
        instead = table.take("instead", dict, None)
        within = table.take("within", (int, float), None)
        cause = Cause(
            key,
            says,
            CauseKind(kind),
            _matching(f"{where}.claims", "claim", table.take_each("claims", str, []), known),
            table.take("reading", str, None),
            None if within is None else float(within),
            instead,
        )
        table.end()
        _check(where, cause, readings, {claim.key: claim for claim in claims})
        found.append(cause)
    check_distinct(name, "cause", [cause.key for cause in found])
    return tuple(found)


def _check(where: str, cause: Cause, readings: Sequence[Reading], claims: Mapping[str, Claim]) -> None:
    """Raises PaperError for a cause that removes nothing."""
    ways = [cause.reading, cause.within, cause.instead]
    if sum(way is not None for way in ways) != 1:
        raise PaperError(f"{where}: needs exactly one of reading, within and instead, which remove the cause")
    if cause.reading is not None and cause.reading not in (keys := [reading.key for reading in readings]):
        raise PaperError(f"{where}.reading: no reading {cause.reading!r}; there are {', '.join(keys)}")
    if cause.within is not None and not 0 < cause.within <= MAX_DIGITS_ERROR:
        raise PaperError(
            f"{where}.within: must be above 0 and at most {MAX_DIGITS_ERROR:g}, not {cause.within:g}"
        )
    if (cause.within is not None) != (cause.kind is CauseKind.DIGITS):
        raise PaperError(f"{where}: `within` is required by kind digits, and allowed only there")
    if cause.within is not None:
        for key in cause.claims:
            if claims[key].published.kind not in NUMBERS or not claims[key].published.value:
                raise PaperError(f"{where}.claims: {key} has no number to compare")
    if cause.instead is not None:
        named = [*cause.instead, *cause.instead.values()]
        if missing := [key for key in named if key not in claims]:
            raise PaperError(f"{where}.instead: no claim {', '.join(map(str, missing))}")
    if bool(cause.claims) == (cause.instead is not None):
        raise PaperError(f"{where}: needs `claims`, or `instead`, which names them")


def read_abstract(name: str, values: list[Any], claims: Sequence[Claim]) -> tuple[Abstract, ...]:
    """The findings of a paper's abstract, in a file. Raises PaperError."""
    found = []
    known = [claim.key for claim in claims]
    for i, value in enumerate(values):
        table = Table(f"{name}: abstract[{i}]", value)
        finding = Abstract(
            table.take("says", str),
            table.take("answer", str),
            _matching(f"{table.where}.claims", "claim", table.take_each("claims", str, []), known),
        )
        table.end()
        if missing := [key for key in NAMED.findall(finding.answer) if key not in known]:
            raise PaperError(f"{table.where}.answer: no claim {', '.join(missing)}")
        found.append(finding)
    return tuple(found)
