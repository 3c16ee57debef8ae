"""Reads a suite's file strictly: anything unknown, missing or of the wrong kind is an error that names its place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from paceline.papers.loading import read_levels, read_metrics, read_plots, read_series
from paceline.results.recordings import SERIES
from paceline.studies.changes import Change
from paceline.studies.expression import ExpressionError
from paceline.studies.metric import Metric
from paceline.studies.strict import Table, check_distinct, check_selections, read_toml, settings
from paceline.studies.study import Settings, World
from paceline.suite import sim_specs
from paceline.suite.compiled import study
from paceline.suite.suite import MAX_RUNS, Case, Check, Kind, Section, Subject, Suite
from paceline.suite.suite_folders import SUITE, SuiteError, find
from paceline.suite.verdict import Rule, Threshold

Word = TypeVar("Word", Kind, Rule)


def load(name_or_path: str, specs: Path | None = None) -> Suite:
    """Reads a suite by its key or folder; a suite of specifications takes its cases from the folder `specs`, and has
    none without it. Raises SuiteError for an unknown suite or a mistake in its files."""
    folder, place = find(name_or_path)
    name = f"{place if place == folder else folder.name}/{SUITE}"
    top = Table(name, read_toml(folder / SUITE))
    about = Table(f"{name}: suite", top.take("suite", dict))
    kind = _word(about, "tests", list(Kind))
    metrics = read_metrics(name, top.take("metric", dict))
    sections = {
        key: _section(f"{name}: section.{key}", key, value)
        for key, value in top.take("section", dict).items()
    }
    own = {key: _own(f"{name}: {kind}.{key}", value) for key, value in top.take(str(kind), dict, {}).items()}
    cases = tuple(
        replace(_case(f"{name}: case[{i}]", value, kind, metrics, sections), own=own)
        for i, value in enumerate(top.take("case", list, []))
    )
    from_specs = about.take("specs", bool, False)
    if specs is not None and not from_specs:
        raise SuiteError(f"--specs {specs}: {name} has its own cases and takes no specifications")
    if from_specs and specs is not None:
        cases += sim_specs.cases(specs, next(iter(sections), ""))
    top.end()
    suite = Suite(
        key=folder.resolve().name,
        folder=folder,
        place=place,
        title=about.take("title", str),
        source=about.take("source", str),
        summary=about.take("summary", str),
        kind=kind,
        default=tuple(about.take_each("default", str)),
        runs=about.take("runs", int, 5),
        metrics=metrics,
        sections=sections,
        cases=cases,
        from_specs=from_specs,
        given=() if specs is None else ("--specs", str(specs)),
    )
    about.end()
    if from_specs and len(sections) != 1:
        raise SuiteError(f"{name}: needs exactly one section, for the cases of the specifications")
    if not cases and not from_specs:
        raise SuiteError(f"{name}: needs at least one [[case]]")
    if not 1 <= suite.runs <= MAX_RUNS:
        raise SuiteError(f"{about.where}.runs: must be 1 to {MAX_RUNS}, not {suite.runs}")
    if not suite.default:
        raise SuiteError(f"{about.where}.default: needs at least one {kind}")
    check_distinct(name, "case", [case.key for case in cases])
    check_distinct(name, "plot", [plot.key for case in cases for plot in case.plots])
    for case in cases:
        if not (folder / case.scenario).is_file():
            raise SuiteError(f"{name}: case {case.key}: no scenario file {case.scenario}")
        _check_expressions(f"{name}: case {case.key}", case, Subject.parse(kind, suite.default[0]), suite)
    used = {case.section for case in cases}
    if cases and (
        idle := [key for key, section in sections.items() if key not in used and not section.later]
    ):
        raise SuiteError(
            f"{name}: section {', '.join(idle)}: no case answers it, and `later` does not say why"
        )
    return suite


def _word(table: Table, key: str, known: Sequence[Word], default: Word | None = None) -> Word:
    word = table.take(key, str, default if default is not None else ...)
    for one in known:
        if one == word:
            return one
    raise SuiteError(f"{table.where}.{key}: must be {' or '.join(known)}, not {word!r}")


def _section(where: str, key: str, value: Any) -> Section:
    table = Table(where, value)
    section = Section(key, table.take("title", str), table.take("asks", str), table.take("later", str, ""))
    table.end()
    return section


def _own(where: str, value: Any) -> Settings:
    table = Table(where, value)
    found = settings(table)
    table.end()
    return found


def _case(
    where: str, value: Any, kind: Kind, metrics: Mapping[str, Metric], sections: Mapping[str, Section]
) -> Case:
    table = Table(where, value)
    key = table.take("key", str)
    if not re.fullmatch(r"[\w.-]+", key):
        raise SuiteError(f"{where}.key: may contain letters, digits, '-', '_' and '.', not {key!r}")
    table.where = where = f"{where.rpartition(': ')[0]}: case {key}"
    section = table.take("section", str)
    if section not in sections:
        raise SuiteError(f"{where}.section: no section {section!r}; there are {', '.join(sections)}")
    axis = Table(f"{where}.axis", table.take("axis", dict, {"level": [{"label": ""}]}))
    label, unit = axis.take("label", str, ""), axis.take("unit", str, "")
    levels = read_levels(f"{where}.axis", axis)
    axis.end()
    checks = tuple(_check(f"{where}: check[{i}]", entry) for i, entry in enumerate(table.take("check", list)))
    case = Case(
        key=key,
        section=section,
        title=table.take("title", str),
        text=table.take("text", str, ""),
        scenario=table.take("scenario", str),
        settings=settings(table),
        change=_change(where, table, kind, metrics),
        tables=tuple(table.take_each("of", str, ["flow.test" if kind is Kind.SCHEME else "link.bottleneck"])),
        beside=read_series(f"{where}.beside", table.take("beside", list, [])),
        levels=levels,
        axis_label=label,
        axis_unit=unit,
        plots=read_plots(where, table.take("plot", list, []), levels, metrics),
        checks=checks,
        record=_record(table),
        record_every_s=float(table.take("record_every", (int, float), 0.5)),
        not_for=table.take("not_for", dict, {}),
    )
    table.end()
    _check_case(where, case, metrics)
    return case


def _change(where: str, table: Table, kind: Kind, metrics: Mapping[str, Metric]) -> Change | None:
    at, then = table.take("at", str, None), settings(table, "then")
    if at is None and not then:
        return None
    if at is None or not then:
        raise SuiteError(
            f"{where}: `at` is an instant and `then` the settings from then on: give both or neither"
        )
    if at not in metrics:
        raise SuiteError(f"{where}.at: no metric {at!r}; there are {', '.join(metrics)}")
    change = Change(at, then, str(kind))
    if change.mistake:
        raise SuiteError(f"{where}.then: {change.mistake}")
    return change


def _record(table: Table) -> tuple[str, ...]:
    value = table.take("record", (str, list), [])
    return (value,) if isinstance(value, str) else tuple(map(str, value))


def _check_case(where: str, case: Case, metrics: Mapping[str, Metric]) -> None:
    if not case.checks:
        raise SuiteError(f"{where}: needs at least one [[case.check]]")
    check_distinct(where, "check", [check.key for check in case.checks])
    check_distinct(where, "beside", [series.key for series in case.beside])
    check_distinct(f"{where}.axis", "level", [level.label for level in case.levels])
    check_distinct(f"{where}.record", "recording", case.record)
    if unknown := [kind for kind in case.record if kind not in SERIES]:
        raise SuiteError(f"{where}.record: must be one of {', '.join(SERIES)}, not {unknown[0]!r}")
    if case.change and metrics[case.change.metric].table in SERIES and not case.record:
        raise SuiteError(f"{where}.at: {case.change.metric} is measured in a recording: name one in `record`")
    if not case.record and any(plot.kind == "trace" for plot in case.plots):
        raise SuiteError(f"{where}: a trace needs a recording: name one in `record`")
    worlds = {series.world for series in case.beside} | {level.world for level in case.levels}
    if World.EMULATED in worlds:
        raise SuiteError(f"{where}: suites run in the simulator; leave out `world`")


def _check(where: str, value: Any) -> Check:
    table = Table(where, value)
    least, most = (table.take(key, (int, float), None) for key in ("least", "most"))
    given = least is not None or most is not None
    rule = _word(table, "rule", list(Rule), Rule.INTERVAL)
    threshold = (
        Threshold(
            -math.inf if least is None else float(least), math.inf if most is None else float(most), rule
        )
        if given
        else None
    )
    label = table.take("label", str)
    check = Check(
        key=table.take("key", str, re.sub(r"\W+", "-", label).strip("-").lower()),
        label=label,
        says=table.take("says", str),
        ours=table.take("ours", str),
        unit=table.take("unit", str, ""),
        threshold=threshold,
        source=table.take("source", str, "" if not given else ...),
    )
    table.end()
    if threshold is None and (rule is Rule.WORST or check.source):
        raise SuiteError(
            f"{where}: a rule and a source need a threshold: give least or most, or leave them out"
        )
    if threshold is not None and not threshold.least <= threshold.most:
        raise SuiteError(f"{where}: least {least} must not exceed most {most}")
    return check


def _check_expressions(where: str, case: Case, subject: Subject, suite: Suite) -> None:
    """Raises SuiteError if a check names an unknown metric, series or level."""
    compiled = study(case, [subject], World.SIMULATED)
    for check in case.checks:
        at = f"{where}, check {check.key}"
        try:
            ours = check.expression(subject)
        except ExpressionError as error:
            raise SuiteError(f"{at}: {error}") from None
        check_selections(at, ours, compiled, suite.metrics)
        if not ours.names - {"x"}:
            raise SuiteError(f"{at}: {check.ours!r} measures nothing")
