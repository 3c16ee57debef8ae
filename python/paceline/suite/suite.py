"""A suite as data: sections of what its source asks, cases that answer, and the thresholds they are held against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from paceline.scenarios import named_parameters
from paceline.studies.changes import Change
from paceline.studies.expression import Expression
from paceline.studies.paper import Level, Metric, Plot, Series, Settings
from paceline.suite.suite_folders import SuiteError
from paceline.suite.verdict import Threshold


class Kind(StrEnum):
    """What a suite tests."""

    SCHEME = "scheme"
    QUEUE = "queue"


@dataclass(frozen=True)
class Subject:
    """A scheme or a queue under test, with values of its own: "cubic", "vegas:alpha=2,beta=4", "codel:target=10 ms"."""

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
                f"--{kind} {text}: after the name and a colon KEY=VALUE,..., as in {_EXAMPLE[kind]}"
            ) from None
        if not re.fullmatch(r"[\w.+-]+", name) or '"' in text:
            raise SuiteError(f"--{kind} {text}: not the name of a {kind}, as in {_EXAMPLE[kind]}")
        return cls(kind, text, name, values)

    def settings(self, tables: tuple[str, ...]) -> Settings:
        """What it sets in these tables of a scenario: `flow.test`, or `link.bottleneck`."""
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


MOST_RUNS = 1000
"""Of a point."""
AS_SPECIFIED = "as-specified"
"""The subject of a suite from specifications that leaves each its own controller."""
_OF_FLOWS = frozenset(["profile", "ecn", "recovery", "segment", "initial_window", "delayed_ack", "min_rto"])
"""Keys of a flow, not parameters of its controller, that may stand after a scheme's name."""
_EXAMPLE = {Kind.SCHEME: "cubic or vegas:alpha=2,beta=4", Kind.QUEUE: "pie or codel:target=10 ms"}


@dataclass(frozen=True)
class Check:
    """One number of a case, and what it is held against."""

    key: str
    label: str
    """In a few words, for tables: "delay, 95 %"."""
    says: str
    """The statement that is tested, or what the number is."""
    ours: str
    """An expression, with the subject's name where `{scheme}` or `{queue}` stands."""
    unit: str
    threshold: Threshold | None
    source: str
    """Where the threshold is from: a section, or "ours:" and the reason."""

    def expression(self, subject: Subject) -> Expression:
        """What is measured of a subject."""
        return Expression(self.ours.replace(f"{{{subject.kind}}}", subject.text))


@dataclass(frozen=True)
class Case:
    """Runs that answer a question, and what is asked of them."""

    key: str
    section: str
    title: str
    text: str
    scenario: str
    settings: Settings
    """Of all its points."""
    change: Change | None
    """What changes at an instant that each run itself makes."""
    tables: tuple[str, ...]
    """The tables of the scenario that the subject is put into."""
    beside: tuple[Series, ...]
    """What is run for comparison."""
    levels: tuple[Level, ...]
    axis_label: str
    axis_unit: str
    plots: tuple[Plot, ...]
    checks: tuple[Check, ...]
    record: tuple[str, ...]
    """What is recorded over time; the first of them is what traces draw."""
    record_every_s: float
    own: Mapping[str, Settings] = field(default_factory=dict)
    """Of subjects by their names, with values or without: what each sets in its tables, unless the case does."""
    not_for: Mapping[str, str] = field(default_factory=dict)
    """Subjects, by their names, of which it does not ask, and why."""
    refused: str = ""
    """Why it cannot run, with whatever scheme."""

    def settings_of(self, subject: Subject) -> Settings:
        """All that it sets for a subject: for all, then what the suite has of this one, then the subject's values."""
        own = self.own.get(subject.text, self.own.get(subject.name, ()))
        of_tables = tuple((f"{table}.{key}", value) for table in self.tables for key, value in own)
        return self.settings + of_tables + subject.settings(self.tables)


@dataclass(frozen=True)
class Section:
    """What the source asks, in our words."""

    key: str
    title: str
    asks: str
    later: str = ""
    """Why no run answers it."""


@dataclass(frozen=True)
class Suite:
    """Everything about one suite."""

    key: str
    folder: Path
    place: Path
    """The folder as commands name it."""
    title: str
    source: str
    """What it follows, as a page cites it."""
    summary: str
    kind: Kind
    default: tuple[str, ...]
    """The subjects that are tested if none are named."""
    runs: int
    metrics: Mapping[str, Metric]
    sections: Mapping[str, Section]
    cases: tuple[Case, ...]
    from_specs: bool = False
    """Its cases are read from files of the user's (`sim_specs`)."""
    given: tuple[str, ...] = ()
    """Where from, as the command line has it."""

    @property
    def name(self) -> str:
        """What `paceline suite` takes for it."""
        return str(self.place) if self.place == self.folder else self.key

    def only(self, wanted: list[str]) -> Suite:
        """The suite with these cases alone. Raises SuiteError for one that is not there."""
        there = [case.key for case in self.cases]
        for key in wanted:
            if key not in there:
                raise SuiteError(f"{self.name} has no case {key!r}; there are {', '.join(there)}")
        cases = tuple(case for case in self.cases if case.key in wanted)
        sections = {key: s for key, s in self.sections.items() if key in {case.section for case in cases}}
        return replace(self, cases=cases, sections=sections)
