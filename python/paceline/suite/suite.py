"""A suite as data: its source's requirements by section, cases that test them, and thresholds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from paceline.scenarios import named_parameters
from paceline.studies.changes import Change
from paceline.studies.expression import Expression
from paceline.studies.metric import Metric
from paceline.studies.study import Level, Plot, Series, Settings
from paceline.suite.suite_folders import SuiteError
from paceline.suite.verdict import Threshold


class Kind(StrEnum):
    """What a suite tests."""

    SCHEME = "scheme"
    QUEUE = "queue"


@dataclass(frozen=True)
class Subject:
    """A scheme or queue under test, with settings: "cubic", "vegas:alpha=2,beta=4", "codel:target=10 ms"."""

    kind: Kind
    text: str
    name: str
    values: Settings

    @classmethod
    def parse(cls, kind: Kind, text: str) -> Subject:
        """Reads NAME[:KEY=VALUE,...]. Raises SuiteError."""
        try:
            name, values = named_parameters.read(text)
        except ValueError:
            raise SuiteError(
                f"--{kind} {text}: after the name and a colon write KEY=VALUE,..., as in {_EXAMPLE[kind]}"
            ) from None
        if not re.fullmatch(r"[\w.+-]+", name) or '"' in text:
            raise SuiteError(f"--{kind} {text}: not the name of a {kind}, as in {_EXAMPLE[kind]}")
        return cls(kind, text, name, values)

    def settings(self, tables: tuple[str, ...]) -> Settings:
        """Its settings in these tables of a scenario: `flow.test`, or `link.bottleneck`."""
        if self.name == AS_SPECIFIED:
            return ()
        found = []
        for table in tables:
            if self.kind is Kind.QUEUE:
                found += [
                    (f"{table}.queue.{key}", value) for key, value in (("kind", self.name), *self.values)
                ]
                continue
            found.append((f"{table}.cc", self.name))
            found += [
                (f"{table}.{key}" if key in _OF_FLOWS else f"{table}.params.{key}", value)
                for key, value in self.values
            ]
        return tuple(found)


MAX_RUNS = 1000
"""The limit on runs of a point."""
AS_SPECIFIED = "as-specified"
"""The subject of a suite from specifications that keeps each one's controller."""
_OF_FLOWS = frozenset(["profile", "ecn", "recovery", "segment", "initial_window", "delayed_ack", "min_rto"])
"""Keys of a flow, not parameters of its controller, that may follow a scheme's name."""
_EXAMPLE = {Kind.SCHEME: "cubic or vegas:alpha=2,beta=4", Kind.QUEUE: "pie or codel:target=10 ms"}


@dataclass(frozen=True)
class Check:
    """One number of a case, and its threshold."""

    key: str
    label: str
    """In a few words, for tables: "delay, 95 %"."""
    says: str
    """The statement that is tested, or a description of the number."""
    ours: str
    """An expression, in which `{scheme}` or `{queue}` stands for the subject's name."""
    unit: str
    threshold: Threshold | None
    source: str
    """The source of the threshold: a section, or "ours:" and the reason."""

    def expression(self, subject: Subject) -> Expression:
        """The expression for a subject."""
        return Expression(self.ours.replace(f"{{{subject.kind}}}", subject.text))


@dataclass(frozen=True)
class Case:
    """Runs that answer a question, and its checks."""

    key: str
    section: str
    title: str
    text: str
    scenario: str
    settings: Settings
    """The settings of all its points."""
    change: Change | None
    """A change at an instant that each run determines itself."""
    tables: tuple[str, ...]
    """The scenario tables that the subject is put into."""
    beside: tuple[Series, ...]
    """The series that run for comparison."""
    levels: tuple[Level, ...]
    axis_label: str
    axis_unit: str
    plots: tuple[Plot, ...]
    checks: tuple[Check, ...]
    record: tuple[str, ...]
    """The recordings; traces draw the first of them."""
    record_every_s: float
    own: Mapping[str, Settings] = field(default_factory=dict)
    """Settings by subject, with or without values: each goes into the subject's tables unless the case sets it."""
    not_for: Mapping[str, str] = field(default_factory=dict)
    """Subjects to which the case does not apply, and why."""
    refused: str = ""
    """Why it cannot run with any scheme."""

    def settings_of(self, subject: Subject) -> Settings:
        """All settings for a subject: the case's, the suite's for this subject, then the subject's own values."""
        own = self.own.get(subject.text, self.own.get(subject.name, ()))
        of_tables = tuple((f"{table}.{key}", value) for table in self.tables for key, value in own)
        return self.settings + of_tables + subject.settings(self.tables)


@dataclass(frozen=True)
class Section:
    """A requirement of the source, in Paceline's words."""

    key: str
    title: str
    asks: str
    later: str = ""
    """Why no run tests it."""


@dataclass(frozen=True)
class Suite:
    """A suite."""

    key: str
    folder: Path
    place: Path
    """The folder as commands name it."""
    title: str
    source: str
    """The document that it follows, as a page cites it."""
    summary: str
    kind: Kind
    default: tuple[str, ...]
    """The default subjects."""
    runs: int
    metrics: Mapping[str, Metric]
    sections: Mapping[str, Section]
    cases: tuple[Case, ...]
    from_specs: bool = False
    """Whether its cases are read from the user's files (`sim_specs`)."""
    given: tuple[str, ...] = ()
    """The option that names those files, as on the command line."""

    @property
    def name(self) -> str:
        """The suite's name in `paceline suite`."""
        return str(self.place) if self.place == self.folder else self.key

    def only(self, wanted: list[str]) -> Suite:
        """The suite with only these cases. Raises SuiteError for an unknown one."""
        there = [case.key for case in self.cases]
        for key in wanted:
            if key not in there:
                raise SuiteError(f"{self.name} has no case {key!r}; there are {', '.join(there)}")
        cases = tuple(case for case in self.cases if case.key in wanted)
        sections = {key: s for key, s in self.sections.items() if key in {case.section for case in cases}}
        return replace(self, cases=cases, sections=sections)
