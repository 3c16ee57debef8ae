"""A paper as data: its studies (`figures.toml`), its published results (`published.toml`), and where the files lie.

A **study** is a scenario swept along one axis: its *levels*, each a handful of `path = value` settings, times its
*series* (the lines of a plot, such as the two TCP variants). A **plot** shows one metric of a study, or curves of
expressions over its points. A **claim** is one published statement with an expression for our value. Everything is read
strictly (`loading`): an unknown key, a claim about a level that no study has, or a metric that does not exist is an
error that names the file and the entry.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from paceline.files.paper_folders import FIGURES, PaperError
from paceline.statistics import Estimate
from paceline.studies.changes import Change
from paceline.studies.expression import Expression
from paceline.studies.readings import Abstract, Cause, Part, Reading
from paceline.studies.verdict import Kind, Published

Settings = tuple[tuple[str, str], ...]
"""(TOML path, value as text) in the order in which they are set."""


class World(StrEnum):
    """Where a point runs: in the simulator, or in real time over an emulated path."""

    SIMULATED = "simulated"
    EMULATED = "emulated"


@dataclass(frozen=True)
class Series:
    """One line of a study's plots."""

    key: str
    label: str
    settings: Settings
    dashed: bool = False
    world: World = World.SIMULATED
    """Where its points run; levels that are emulated make points run in real time too."""


@dataclass(frozen=True)
class Level:
    """One stop on a study's axis: its label, position, settings, and where it runs."""

    label: str
    x: float
    settings: Settings
    world: World = World.SIMULATED
    cut_s: float | None = None
    """Length of the intervals that its runs are cut into, in the short form, if it differs from the study's."""
    full: bool = False
    """Whether its points in real time run only in the full form."""


EACH = "each"
"""`Metric.rows` of a metric with a number for each interval that a run is cut into."""


@dataclass(frozen=True)
class Episode:
    """A part of a recording: the rows in which a column `is` a number, or lies `above` or `below` one."""

    field: str
    test: str
    bound: float
    nth: int = 0
    """Which of the contiguous periods in which that holds, from 1; 0: all of them."""
    until_below: float | None = None
    """A period `above` lasts until the column falls below this (a low watermark); None: below `bound`."""


@dataclass(frozen=True)
class Metric:
    """A number of each run: a field of the summary's rows that match, times a scale; or an expression over others.

    `rows` says how several rows are reduced: "first" takes the first, the others are in `over_time.REDUCTIONS`; "each"
    keeps all, in order: such a metric is for traces and for expressions that reduce it to one number.
    """

    key: str
    label: str
    unit: str
    table: str | None = None
    match: Mapping[str, str] = field(default_factory=dict)
    field: str | None = None
    scale: float = 1.0
    if_null: str | None = None
    expression: Expression | None = None
    rows: str = "first"
    from_s: float = 0.0
    """For a recording: rows before this instant do not count."""
    to_s: float = math.inf
    """For a recording: rows after this instant do not count."""
    during: Episode | None = None
    """For a recording: the part that counts."""
    every_s: float | None = None
    """For a recording: average its rows over intervals of this many seconds from `from_s` on; None: as recorded."""
    against: Mapping[str, str] | None = None
    """For a recording: each value becomes min / max of itself and that of these rows: 1 if they are equal."""

    def reach(self, ours: Estimate) -> tuple[float, float]:
        """How far an interval is drawn below and above its mean: measures are not negative, and a share (unit %) does
        not exceed 100 %."""
        mean, half = ours.mean or 0.0, ours.half_width or 0.0
        if self.field is None:
            return half, half
        maximum = 100.0 if self.unit == "%" else math.inf
        return min(half, max(0.0, mean)), min(half, max(0.0, maximum - mean))


@dataclass(frozen=True)
class Curve:
    """A line of a plot of kind `curves`: an expression for each level, its x position, and its style."""

    key: str
    label: str
    y: tuple[Expression, ...]
    x: tuple[Expression, ...] | None
    """None: the level's position on the study's axis."""
    colour: int
    dashed: bool = False
    marked: bool = True
    joined: bool = True


@dataclass(frozen=True)
class Trace:
    """The recorded data of a plot of kind `trace`: a column times a scale, for the named flows (None: all)."""

    columns: tuple[str, ...]
    scale: float
    flows: tuple[str, ...] | None = None
    labels: tuple[str, ...] = ()
    """The columns' labels, if there are several: all but the first are dashed."""
    jain_s: float | None = None
    """Instead of a column: Jain's index of the flows' goodputs, in bins of that length."""
    from_s: float = 0.0
    """The trace before this instant is not shown."""


@dataclass(frozen=True)
class Plot:
    """A picture of a study's metric; `kind`: line, bars, trace (over time), scatter (`over` another metric: a study's
    points with intervals, or a pool's as a cloud), ellipses (`over` another metric, of each point's runs), or curves
    (expressions over the points)."""

    key: str
    title: str
    metric: str
    kind: str
    over: str | None = None
    log_x: bool = False
    lines_at: tuple[float, ...] = ()
    log_y: bool = False
    label: str = ""
    """The y axis' label, instead of the metric's."""
    x_label: str = ""
    """The x axis' label, instead of the study's."""
    curves: tuple[Curve, ...] = ()
    trace: Trace | None = None
    y_from: float = 0.0
    """The start of a line plot's y axis."""


SHORT = ("duration", "rate_bin")
"""What a study that runs in real time sets only in its short form."""


@dataclass(frozen=True)
class Study:
    """A scenario swept along one axis; or a pool: all points of other studies together; or a study that cannot run yet,
    with the reason (`later`)."""

    key: str
    figure: str
    title: str
    text: str
    scenario: str | None
    axis_label: str
    axis_unit: str
    series: tuple[Series, ...]
    levels: tuple[Level, ...]
    plots: tuple[Plot, ...]
    pool: tuple[str, ...] = ()
    record: str | None = None
    """The recording for plots of kind trace."""
    record_every_s: float = 0.5
    """The interval of the recording."""
    record_also: tuple[str, ...] = ()
    """Further recordings for metrics."""
    cut_s: float | None = None
    """Length of the intervals that its runs are cut into: see `time_slices`. The recording is then `losses`."""
    later: str = ""
    change: Change | None = None
    """A change at an instant that each run determines itself."""
    seconds: float | None = None
    """Mean core seconds of a run on the machine of the paper's README; None: estimated for each point."""
    parts: tuple[Part, ...] = ()
    """A reading's settings in it."""

    @property
    def drawn(self) -> set[str]:
        """The metrics in its plots."""
        expressions = [
            e for plot in self.plots for curve in plot.curves for e in (*curve.y, *(curve.x or ()))
        ]
        named = {name for plot in self.plots for name in (plot.metric, plot.over) if name}
        return named.union(*(expression.names for expression in expressions))

    @property
    def is_emulated(self) -> bool:
        """Whether some of its points run in real time."""
        worlds = {level.world for level in self.levels} | {series.world for series in self.series}
        return World.EMULATED in worlds

    def world(self, series: Series, level: Level) -> World:
        """Where a series' points at a level run."""
        return World.EMULATED if World.EMULATED in (series.world, level.world) else World.SIMULATED

    def cut_at(self, level: Level) -> float | None:
        """Length of the intervals that runs at the level are cut into; None: they are not cut."""
        return level.cut_s or self.cut_s

    def full(self) -> Study:
        """The study with all its points, with runs and intervals of the full length."""

        def kept(settings: Settings) -> Settings:
            return tuple(s for s in settings if s[0] not in SHORT)

        levels = (replace(x, settings=kept(x.settings), cut_s=None, full=False) for x in self.levels)
        series = (replace(x, settings=kept(x.settings)) for x in self.series)
        return replace(self, levels=tuple(levels), series=tuple(series))

    def level(self, label: str) -> int:
        """The index of the level with this label. Raises KeyError."""
        for i, level in enumerate(self.levels):
            if level.label == label:
                return i
        raise KeyError(label)


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


_ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


def _plain(figure: str) -> str:
    """A figure's name in files: "Figure 4" is "4", "Table II" and "II" are "table-2"."""
    word, _, name = figure.strip().rpartition(" ")
    if name.upper() in _ROMAN:
        return f"table-{_ROMAN.index(name.upper()) + 1}"
    return f"table-{name}" if word.lower() == "table" else name


@dataclass(frozen=True)
class Finding:
    """A paragraph of the page: the reason for a difference, as far as it is known."""

    title: str
    text: str


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
