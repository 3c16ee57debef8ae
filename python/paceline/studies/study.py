"""A study: a scenario swept along one axis, and its plots.

Its *levels* on the axis, each a handful of `path = value` settings, times its *series* (the lines of a plot, such as
the two TCP variants) are its points. A **plot** shows one metric of a study, or curves of expressions over its points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from paceline.studies.changes import Change
from paceline.studies.expression import Expression

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


@dataclass(frozen=True)
class Part:
    """A reading's settings, and where they apply: after those of series and levels."""

    studies: tuple[str, ...]
    series: tuple[str, ...]
    """Only for these series; empty: all."""
    levels: tuple[str, ...]
    """Only for these levels; empty: all."""
    settings: Settings
    scenario: str | None
    """The file that the studies run instead of their own, if any."""

    def is_of(self, series: str, level: str) -> bool:
        """Whether it applies to a point of its studies."""
        return series in (self.series or (series,)) and level in (self.levels or (level,))


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
