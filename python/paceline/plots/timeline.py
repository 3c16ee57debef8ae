"""A figure of one kind over time: a panel per run, with common axes, so that runs can be compared by eye."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from paceline.plots import style

MAX_NAMED = 7
"""The number of lines in a panel with a colour; the others are grey, and counted in the legend."""

MAX_MEANS = 250
"""The limit on means of a line over time in a figure."""

MAX_LISTED = 4
"""The number of undrawn lines that are named below the figure; the others are counted."""


Key = tuple[str, int | str]
"""A flow and its instance, or a link and a direction."""


@dataclass(frozen=True)
class Line:
    """A recording of one subject in one run."""

    name: str
    data: pl.DataFrame
    """Its recording, in order of time_s."""
    count: int
    """The number of lines in the panel."""
    key: Key
    """Its identity in a run across all recordings: it determines the colour."""


def without(*columns: str) -> Callable[[pl.DataFrame], bool]:
    """A test for whether none of these columns has a value."""
    return lambda data: (
        not any(data[column].is_finite().any() for column in columns if column in data.columns)
    )


def while_busy(data: pl.DataFrame) -> pl.DataFrame:
    """The recording up to the instant after which nothing was in flight and nothing changed: the flow had ended then.
    All of it if it does not contain packets in flight."""
    if "in_flight_packets" not in data.columns or data.is_empty():
        return data
    news = [pl.col("in_flight_packets").fill_null(1.0) != 0]
    news += [pl.col(name).ne_missing(pl.col(name).last()) for name in data.columns if name != "time_s"]
    rows = data.select(pl.any_horizontal(news).arg_true()).to_series()
    return data.head(int(rows[-1]) + 2) if len(rows) else data


def draw_beside(axes: Axes, line: Line, column: str, label: str) -> None:
    """Draws a single flow's other rate, in grey: a column in bit/s, where it is finite."""
    if line.count > 1 or column not in line.data.columns:
        return
    known = line.data.filter(pl.col(column).is_finite())
    if known.is_empty():
        return
    axes.plot(known["time_s"], known[column] / 1e6, color="#B8B8B8", linewidth=0.7, zorder=2, label=label)


@dataclass(frozen=True)
class Kind:
    """A kind of figure."""

    name: str
    """The recording that it draws."""
    y_label: Callable[[float], str]
    """Label with unit, given the time span in seconds."""
    draw: Callable[[Axes, Line, dict[str, object], float], None]
    """Draws one line with the given colour and style; the last argument is the time span in seconds."""
    by: tuple[str, str]
    """The columns that identify lines."""
    empty: Callable[[pl.DataFrame], bool] | None = None
    """Whether a line is uninformative; such lines are named below the figure instead of drawn, unless all are so."""
    instead: Callable[[pl.DataFrame], str] | None = None
    """What a line shows instead of the labelled quantity; empty: that quantity."""
    label_instead: Callable[[float], str] | None = None
    """The label of a figure with such lines."""


@dataclass(frozen=True)
class Panel:
    """One run: its title, and its recording of the figure's kind (one seed)."""

    title: str
    data: pl.DataFrame
    warmup_s: float = 0.0
    """The end of the warm-up, which measures leave out: the panel is shaded up to there."""
    axes: tuple[str, ...] = ()
    """Columns that identify the point of a sweep."""
    goes_on: bool = True
    """Whether recordings continue after a flow has ended, as the simulator's do: its line is then cut at the end."""


def lines(kind: Kind, data: pl.DataFrame, flows: Sequence[Key] = ()) -> list[Line]:
    """The lines of a panel; a flow with a single instance, here and among the `flows` of the run, has no number.

    Flows of few instances come first: a single stream matters more than the tenth of twenty web clients.
    """
    name, detail = kind.by
    parts = data.partition_by([name, detail], maintain_order=True)
    if detail == "direction":
        parts.sort(key=lambda part: (part[name][0], part[detail][0] != "forward"))
    else:
        instances = Counter(part[name][0] for part in parts)
        parts.sort(key=lambda part: (instances[part[name][0]], part[name][0], part[detail][0]))
    names = [str(part[name][0]) for part in parts]
    details = {part[detail][0] for part in parts}
    alike = Counter(name for name, _ in flows)
    found = []
    for part, who in zip(parts, names, strict=True):
        many = names.count(who) > 1 or (detail == "instance" and alike[who] > 1)
        extra = (f"[{part[detail][0]}]" if detail == "instance" else f" {part[detail][0]}") if many else ""
        if detail == "direction" and not many and details != {"forward"}:
            extra = f" {part[detail][0]}"
        key = (who, part[detail][0])
        found.append(Line(f"{who}{extra}", part.sort("time_s", maintain_order=True), len(parts), key))
    return found


def keys(flows: pl.DataFrame) -> list[Key]:
    """The lines of all flows of a table, in a panel's order, which determines colours."""
    if not {"flow", "instance"} <= set(flows.columns):
        return []
    counted = flows.select("flow", "instance").unique().with_columns(many=pl.len().over("flow"))
    return counted.sort("many", "flow", "instance").select("flow", "instance").rows()


def named_first(kind: Kind, flows: Sequence[Key]) -> list[Key]:
    """The lines of a kind that have the first colours: the flows of the run, if the kind is about flows."""
    return list(flows) if kind.by[0] == "flow" else []


def figure(kind: Kind, panels: Sequence[Panel], flows: Sequence[Key] = ()) -> Figure:
    """The figure. Axes start at zero and are common to all panels. `flows` are those of the runs; each keeps its colour
    whether or not it is drawn."""
    span = max((_span(panel.data) for panel in panels), default=1.0)
    with mpl.rc_context(style.RC):
        made = style.Shown(figsize=(7.2, 0.7 + 2.2 * len(panels)), layout="constrained")
        grid = made.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)
        named = named_first(kind, flows)
        left_out: list[str] = []
        for axes, panel in zip(grid[:, 0], panels, strict=True):
            left_out += draw_panel(axes, kind, panel, span, named)
        caption = f"\nempty in every sample, not drawn: {_listed(left_out)}" if left_out else ""
        grid[-1, 0].set_xlabel(f"time (s){caption}")
        grid[0, 0].set_xlim(0, max(end_of(panel.data) for panel in panels))
        style.from_zero(grid[:, 0])
        label = kind.y_label
        if kind.instead and any(
            kind.instead(line.data) for panel in panels for line in lines(kind, panel.data)
        ):
            label = kind.label_instead or label
        made.supylabel(label(span), fontsize=9)
    return made


def _span(data: pl.DataFrame) -> float:
    """The drawn time span, or the duration of as many samples as a figure holds if that is longer."""
    times = data["time_s"].unique().sort()
    if len(times) < 2:
        return 0.0
    apart = times.diff().drop_nulls().median()
    return max(float(times[-1] - times[0]), MAX_MEANS * float(apart))  # type: ignore[arg-type]


def end_of(data: pl.DataFrame) -> float:
    """The end of the recording: one interval after its last sample, which holds until then."""
    times = data["time_s"].unique().sort()
    if len(times) < 2:
        return max(1.0, *(float(time) for time in times), 0.0)
    return float(times[-1]) + float(times[-1] - times[-2])


def _listed(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(names))
    rest = len(distinct) - MAX_LISTED
    return ", ".join(distinct[:MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def draw_panel(axes: Axes, kind: Kind, panel: Panel, span: float, named: list[Key]) -> list[str]:
    """Draws a panel, with each line's colour by its index in `named`; returns the lines left out because they are
    empty."""
    axes.set_title(panel.title)
    if panel.warmup_s > 0:
        axes.axvspan(0, panel.warmup_s, color=style.SHADE, linewidth=0, zorder=0.5, label="warm-up")
    every = lines(kind, panel.data, named)
    if panel.goes_on:
        every = [replace(line, data=while_busy(line.data)) for line in every]
    found = [line for line in every if kind.empty is None or not kind.empty(line.data)] or every
    shown = found if len(found) <= MAX_NAMED else found[: MAX_NAMED - 1]
    for line in found[len(shown) :]:
        kind.draw(axes, line, {"color": style.OTHERS, "linewidth": 0.5, "zorder": 1.5}, span)
    handles = []
    for place, line in enumerate(shown):
        # A flow has the same colour in all panels.
        if line.key not in named:
            named.append(line.key)
        look = style.line_of(named.index(line.key))
        # The first line lies on top: of two equal ones, the later would hide the earlier completely.
        kind.draw(axes, line, {**look, "zorder": 2.9 - 0.05 * place}, span)
        instead = kind.instead(line.data) if kind.instead else ""
        handles.append(Line2D([], [], label=f"{line.name}, {instead}" if instead else line.name, **look))
    if len(found) > len(shown):
        handles.append(Line2D([], [], label=f"{len(found) - len(shown)} others", color=style.OTHERS))
    # Each kind of mark has one legend entry, for all lines.
    marks = {str(h.get_label()): h for h in reversed(axes.get_legend_handles_labels()[0])}
    extra = [h for label, h in reversed(marks.items()) if not label.startswith("_")]
    axes.legend(handles=[*handles, *extra], loc="upper left", bbox_to_anchor=(1.0, 1.0))
    drawn = {line.name for line in found}
    return [line.name for line in every if line.name not in drawn]
