"""Controllers' gauges over time: a row of axes for each gauge, a column for each run.

The gauges are the columns of the recordings `GAUGES`, with any names; a name ends in the unit. This module does not
depend on particular gauges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paceline.errors import PacelineError
from paceline.plots import style
from paceline.plots.curves import SCALES
from paceline.plots.timeline import Key, Kind, Line, Panel, draw_panel, end_of
from paceline.quantities import UNITS, unit_of

MAX_RUNS = 4
"""The limit on columns of a figure."""
_LABELS = {"seed", "flow", "instance", "time_s"}


def gauges(panels: Sequence[Panel]) -> list[str]:
    """The columns that have a value somewhere, in order of first appearance; a sweep's axes are not gauges."""
    found: dict[str, None] = {}
    for panel in panels:
        numbers = [name for name, kind in panel.data.schema.items() if kind == pl.Float64]
        finite = panel.data.select(pl.col(numbers).is_finite().any())
        found |= dict.fromkeys(
            c for c in numbers if c not in _LABELS and c not in panel.axes and finite[c][0]
        )
    return list(found)


def figure(panels: Sequence[Panel], flows: Sequence[Key] = ()) -> Figure:
    """The figure, with the colours of `timeline.figure`. Raises PacelineError for too many runs or no gauge."""
    if len(panels) > MAX_RUNS:
        raise PacelineError(
            f"{len(panels)} runs are too many for one figure (at most {MAX_RUNS}): plot fewer"
        )
    names = gauges(panels)
    if not names:
        raise PacelineError("no gauge has a value: no flow began, or its machine has none")
    width = 7.2 if len(panels) == 1 else 4.2 * len(panels)
    with mpl.rc_context(style.RC):
        made = style.Shown(figsize=(width, 0.7 + 1.5 * len(names)), layout="constrained")
        grid = made.subplots(len(names), len(panels), sharex=True, sharey="row", squeeze=False)
        named = list(flows)
        for row, name in zip(grid, names, strict=True):
            factor, unit = _scale(name, panels)
            kind = _kind(name, factor)
            for axes, panel in zip(row, panels, strict=True):
                title = panel.title if axes in grid[0] else ""
                own = (
                    panel.data
                    if name in panel.data.columns
                    else panel.data.with_columns(pl.lit(None).alias(name))
                )
                here = replace(panel, title=title, data=own)
                draw_panel(axes, kind, here, end_of(panel.data), named)
            style.ends_at_one(row)
            row[0].set_ylabel(f"{_plain(name)}\n({unit})" if unit else _plain(name))
        for axes in grid[-1]:
            axes.set_xlabel("time (s)")
        grid[0, 0].set_xlim(0, max(end_of(panel.data) for panel in panels))
    return made


def _kind(name: str, factor: float) -> Kind:
    def draw(axes: Axes, line: Line, look: dict[str, Any], _span_s: float) -> None:
        values = pl.col(name).cast(pl.Float64) / factor
        data = line.data.select("time_s", pl.when(values.is_finite()).then(values).alias(name))
        axes.plot(data["time_s"], data[name], **look)

    return Kind("gauges", lambda _span: name, draw, ("flow", "instance"), lambda data: not _known(data, name))


def _known(data: pl.DataFrame, name: str) -> bool:
    return bool(data[name].cast(pl.Float64).is_finite().any())


def _plain(column: str) -> str:
    """The gauge's name: the column's without its unit."""
    return next((column.removesuffix(end) for end in UNITS if column.endswith(end)), column)


def _scale(name: str, panels: Sequence[Panel]) -> tuple[float, str]:
    """The divisor of the values, and the resulting unit."""
    unit = unit_of(name)
    reach = 0.0
    for panel in panels:
        if name in panel.data.columns:
            known = panel.data.filter(pl.col(name).is_finite())[name].abs().max()
            reach = max(reach, known if isinstance(known, float) else 0.0)
    scales = SCALES.get(unit, ((1.0, unit),))
    return next(((factor, unit) for factor, unit in scales if reach >= factor), scales[-1])
