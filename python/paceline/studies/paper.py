"""A paper as data: its studies (`figures.toml`), its published results (`published.toml`), and where the files lie.

A **claim** is one published statement with an expression for our value. A **reading** resolves what the text leaves
open differently from the paper's scenarios, and a **cause** explains why statements differ (`readings`). Everything is
read strictly (`loading`): an unknown key, a claim about a level that no study has, or a metric that does not exist is
an error that names the file and the entry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from paceline.files.paper_folders import FIGURES, PaperError
from paceline.studies.expression import Expression
from paceline.studies.metric import Metric
from paceline.studies.study import Part, Study
from paceline.studies.verdict import Kind, Published


@dataclass(frozen=True)
class Show:
    """Where a published number is drawn: a point of a plot, or the edge of a bound."""

    plot: str
    series: str
    level: str
    bound: str | None = None
    value: float | None = None


@dataclass(frozen=True)
class Claim:
    """One published statement and its comparison."""

    key: str
    figure: str
    where: str
    says: str
    study: str
    ours: Expression | None
    """None if the study cannot run yet."""
    published: Published
    unit: str
    shows: tuple[Show, ...]
    if_differs: str
    bound: float | None
    needs_s: float = 0.0
    """The shortest real-time run that can test it, in seconds."""
    beside: str = ""
    """Why it is shown but not counted: set by construction, fitted to the compared value, another reading."""

    @property
    def printed(self) -> str:
        """The published statement, in words: "about 8", "above 0.6", "falls"."""
        published, sign = self.published, self.published.sign or 1
        if published.value is not None:
            words = {Kind.ABOUT: "about ", Kind.SAME: "the same: "}.get(published.kind, "")
            return f"{words}{published.value:g}"
        if published.kind is Kind.TREND:
            return "rises" if sign > 0 else "falls"
        return f"{'above' if sign > 0 else 'below'} {self.bound or 0:g}"


@dataclass(frozen=True)
class Finding:
    """A paragraph of the page: the reason for a difference, as far as it is known."""

    title: str
    text: str


@dataclass(frozen=True)
class Reading:
    """Another reading of the paper."""

    key: str
    title: str
    where: str
    """The place in the paper."""
    text: str
    """What the text leaves open there."""
    taken: str
    """The choice in the paper's scenarios."""
    parts: tuple[Part, ...]
    counted: Mapping[str, Expression]
    """Claims whose value on our side is counted otherwise."""


class CauseKind(StrEnum):
    """The origin of a difference."""

    DIGITS = "digits"
    UNSAID = "unsaid"
    PAPER = "paper"
    OURS = "ours"

    @property
    def words(self) -> str:
        """The kind as pages name it."""
        return {
            CauseKind.DIGITS: "printed digits missed by a little",
            CauseKind.UNSAID: "a setting that the paper does not give",
            CauseKind.PAPER: "the paper against itself",
            CauseKind.OURS: "ours",
        }[self]


MAX_DIGITS_ERROR = 0.05
"""The largest relative error that may be put down to printed digits."""


@dataclass(frozen=True)
class Cause:
    """Why some statements differ, and how the cause is removed: by exactly one of `reading`, `within`, `instead`."""

    key: str
    says: str
    kind: CauseKind
    claims: tuple[str, ...]
    reading: str | None = None
    """The reading without the cause."""
    within: float | None = None
    """The allowed relative deviation of our value from the published number, at most `MAX_DIGITS_ERROR`."""
    instead: Mapping[str, str] | None = None
    """Claim -> the claim for the paper's statement on the same thing elsewhere."""


@dataclass(frozen=True)
class Abstract:
    """A finding of the abstract, and our answer, in whose text {KEY} is that claim's value."""

    says: str
    answer: str
    claims: tuple[str, ...]


_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


def _plain(figure: str) -> str:
    """A figure's name in files: "Figure 4" is "4", "Table II" and "II" are "table-2"."""
    word, _, name = figure.strip().rpartition(" ")
    if name.upper() in _ROMAN:
        return f"table-{_ROMAN.index(name.upper()) + 1}"
    return f"table-{name}" if word.lower() == "table" else name


@dataclass(frozen=True)
class Paper:
    """A paper."""

    key: str
    """The folder's name."""
    folder: Path
    place: Path
    """The folder as commands name it: papers/KEY of an installed paper, else the given path."""
    title: str
    authors: str
    published_in: str
    summary: str
    metrics: Mapping[str, Metric]
    studies: Mapping[str, Study]
    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]
    runs: int = 10
    """Default runs of each point: as many as the paper made, if it says."""
    emulated_runs: int = 3
    """Runs of each point in real time, in the short form."""
    real_record: tuple[str, ...] = ("rate", "rtcp")
    """The recordings of every run in real time, so that each figure alone can reuse the runs of the others."""
    abstract: tuple[Abstract, ...] = ()
    """The abstract's findings, with our answers."""
    readings: tuple[Reading, ...] = ()
    causes: tuple[Cause, ...] = ()
    key_figure: str = ""
    """The plot that shows the paper's result best."""
    file: str = FIGURES
    """The file that describes the studies, as messages name it."""

    @property
    def name(self) -> str:
        """The paper's name in `paceline reproduce`."""
        return str(self.place) if self.place == self.folder else self.key

    def figures(self) -> list[str]:
        """The figures in the order of the studies, each once."""
        return list(dict.fromkeys(study.figure for study in self.studies.values()))

    def has(self, figure: str) -> bool:
        """Whether there is such a figure, under any of its names."""
        return bool(self._named(figure))

    def _named(self, figure: str) -> set[str]:
        """The figures that a name means: "4" and "Figure 4", "4c" by one of its plots, "Table I" and "I"; and for one
        whose plots or claims are in other figures, those."""
        name = _plain(figure)
        if name in self.figures():
            return {name}
        plots = [(s.figure, p.key) for s in self.studies.values() for p in s.plots]
        exact = {of for of, key in plots if key == name}
        begins = {of for of, key in plots if re.match(rf"{re.escape(name)}[a-z]?(-|$)", key)}
        claimed = {self.studies[c.study].figure for c in self.claims if c.figure == name}
        return exact or begins | claimed

    def only(self, figure: str) -> Paper:
        """The paper with only one figure's studies and claims, by any of the figure's names. Raises PaperError for an
        unknown one."""
        wanted = self._named(figure)
        studies = {k: s for k, s in self.studies.items() if s.figure in wanted}
        if not studies:
            raise PaperError(f"{self.key} has no figure {figure}: there are {', '.join(self.figures())}")
        for study in list(studies.values()):
            studies.update({k: self.studies[k] for k in study.pool})
        studies = {k: s for k, s in self.studies.items() if k in studies}
        claims = tuple(
            c for c in self.claims if c.study in studies and self.studies[c.study].figure in wanted
        )
        if (name := _plain(figure)) not in self.figures():
            # the figure's claims are among those of other figures
            claims = tuple(c for c in claims if c.figure == name) or claims
        return replace(self, studies=studies, claims=claims)

    def full(self) -> Paper:
        """The paper with real-time runs of the paper's own length and number: if some of a study's points run in real
        time, all have the duration of its scenario."""
        studies = {k: s.full() if s.is_emulated else s for k, s in self.studies.items()}
        return replace(self, studies=studies, emulated_runs=self.runs)
