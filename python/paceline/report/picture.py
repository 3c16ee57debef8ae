"""A figure with data for the page: positions and values of its points, the scales of its axes, its legend.

Artists' names (`gid`) go into the SVG; `inline` turns them into data attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from paceline.plots import legend
from paceline.studies.points import Place

TITLE = "title"
PUBLISHED = "published"
POINTS_PER_INCH = 72
"""The resolution of an SVG, and so the unit of all measures here."""
_LEGEND_POINTS = 7.5


def gid(kind: str, *words: str) -> str:
    """The name of an artist: its kind and subject."""
    return "|".join([kind, *(quote(word, safe="") for word in words)])


def tag(artists: Artist | Iterable[Any] | None, series: str, name: str | None = None) -> None:
    """Assigns artists to a series, with which they are hidden, and to a legend entry by `name`."""
    if artists is None:
        return
    if isinstance(artists, Artist):
        artists.set_gid(gid("of", series, name or series))
        return
    for artist in artists:
        tag(artist, series, name)


@dataclass(frozen=True)
class Mark:
    """A point with a value to show: in data coordinates, and its description."""

    axes: Axes
    x: float
    y: float
    series: str
    name: str
    text: str
    place: Place | None = None


@dataclass
class Picture:
    """A drawn figure, with its contents."""

    figure: Figure
    title: Text
    marks: list[Mark] = field(default_factory=list)
    panels: list[tuple[Axes, str]] = field(default_factory=list)
    """Axes of lines over time, and the unit of their values."""
    entries: list[tuple[Any, str, str]] = field(default_factory=list)
    """(handle, series, name) of the legend's entries."""
    svg: bytes = b""
    """Empty until it is made."""

    def mark(self, axes: Axes, x: float, y: float, series: str, text: str, **more: Any) -> None:
        """Registers a point; `name` is its line's legend entry, if not its series' key."""
        if math.isfinite(x) and math.isfinite(y):
            self.marks.append(Mark(axes, x, y, series, more.pop("name", series), text, **more))

    def enter(self, handle: Any, series: str, name: str | None = None) -> None:
        """Puts a handle with a label into the legend, once."""
        if all(handle.get_label() != there.get_label() for there, _, _ in self.entries):
            self.entries.append((handle, series, name or series))

    def legend(self, title: str = "") -> None:
        """The legend below the axes, in as many columns as fit; the figure grows by its rows."""
        if len(self.entries) < 2:
            return
        handles = [handle for handle, _, _ in self.entries]
        made = legend.outside(
            self.figure, handles, "outside lower center", title, fontsize=_LEGEND_POINTS, columnspacing=1.0,
            handlelength=1.8, title_fontsize=_LEGEND_POINTS, borderaxespad=0.2,
        )  # fmt: skip
        assert made is not None  # it has entries
        artists = zip(made.legend_handles, made.get_texts(), strict=True)
        for (handle, text), (_, series, name) in zip(artists, self.entries, strict=True):
            for artist in (handle, text):
                if artist is not None:
                    artist.set_gid(gid("legend", series, name))

    @property
    def is_empty(self) -> bool:
        """Whether the figure has none of our points, because they were not run."""
        ours = any(mark.name != PUBLISHED for mark in self.marks)
        return not ours and not any(panel.lines for panel, _ in self.panels)

    def where(self, axes: Axes, x: float, y: float) -> tuple[float, float]:
        """The position of a point of the axes in the SVG."""
        across, up = axes.transData.transform((x, y)) / self.figure.dpi * POINTS_PER_INCH
        return float(across), float(self.figure.get_figheight() * POINTS_PER_INCH - up)
