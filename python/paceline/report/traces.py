"""Lines over time, for plots of kind trace, thinned to the resolution of a figure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from paceline.files.paper_folders import PaperError
from paceline.statistics.over_time import jain_over_time
from paceline.studies.points import Place
from paceline.studies.reproduction import Reproduction
from paceline.studies.study import Plot, Study

COLUMNS = 480
"""The columns that a line is thinned to: two per point of the figures' width."""


@dataclass(frozen=True)
class Line:
    """A line of a trace: one flow at one level."""

    level: int
    label: str
    time_s: list[float]
    y: list[float]
    dashed: bool = False
    """Dashed are, for several flows at several levels, the levels after the first; for several columns, all but the
    first."""

    def since(self, from_s: float) -> Line:
        """The part of it from this instant on."""
        kept = [(t, y) for t, y in zip(self.time_s, self.y, strict=True) if t >= from_s]
        return replace(self, time_s=[t for t, _ in kept], y=[y for _, y in kept])

    def thinned(self) -> Line:
        """The minimum and maximum in each column, a gap where the line has one, and both ends. A line with fewer points
        keeps them all."""
        if len(self.time_s) <= 2 * COLUMNS:
            return self
        times, values = np.array(self.time_s), np.array(self.y)
        width = (times[-1] - times[0]) / COLUMNS or 1.0
        columns = np.floor((times - times[0]) / width)
        kept = {0, len(times) - 1}
        for part in np.split(np.arange(len(times)), np.flatnonzero(np.diff(columns)) + 1):
            there = part[np.isfinite(values[part])]
            if there.size:
                kept |= {int(there[np.argmin(values[there])]), int(there[np.argmax(values[there])])}
            if there.size < part.size:
                kept.add(int(part[~np.isfinite(values[part])][0]))
        chosen = sorted(kept)
        return replace(self, time_s=times[chosen].tolist(), y=values[chosen].tolist())


def traces(reproduction: Reproduction, study: Study, series: str, plot: Plot) -> list[Line]:
    """The lines of a trace over the first seed's runs, one per level and flow; the flow is named if there are
    several."""
    assert plot.trace is not None  # the loader has seen to it
    found = []
    for i, level in enumerate(study.levels):
        table = reproduction.recorded.get(Place(study.key, series, level.label))
        if table is None or table.is_empty():
            continue
        table = table.filter(pl.col("seed") == reproduction.seeds[0])
        for column in plot.trace.columns:
            if column not in table.columns:
                there = ", ".join(table.columns)
                raise PaperError(f"plot {plot.key}: {study.record} has no {column}; there are {there}")
        if plot.trace.flows is not None:
            table = table.filter(pl.col("flow").is_in(plot.trace.flows))
        if plot.trace.jain_s is not None:
            index = jain_over_time(table, plot.trace.jain_s)
            values = index["jain"].fill_null(float("nan")).to_list()
            found.append(Line(i, level.label, index["time_s"].to_list(), values))
            continue
        instances = table.group_by("flow").agg(pl.col("instance").n_unique())
        several_of = dict(instances.iter_rows())
        of_flow = table.partition_by("flow", "instance", maintain_order=True)
        order = {name: n for n, name in enumerate(plot.trace.flows or ())}
        of_flow.sort(key=lambda one: order.get(one["flow"][0], 0))
        for one in of_flow:
            flow = one["flow"][0]
            name = f"{flow}[{one['instance'][0]}]" if several_of[flow] > 1 else flow
            several = name if len(study.levels) == 1 else f"{level.label}, {name}"
            label = several if len(of_flow) > 1 else level.label
            for n, column in enumerate(plot.trace.columns):
                # Unknown values of a real run are null.
                y = (one[column] * plot.trace.scale).fill_null(float("nan"))
                named = f"{label}, {plot.trace.labels[n]}" if plot.trace.labels else label
                dashed = n > 0 or (i > 0 and len(of_flow) > 1)
                found.append(Line(i, named, one["time_s"].to_list(), y.to_list(), dashed))
    return [line.since(plot.trace.from_s) for line in found]


def has_names(study: Study, plot: Plot, lines: int) -> bool:
    """Whether the lines of a trace's panel are named: by level, column, or flows that the plot names."""
    columns = max(1, len(plot.trace.columns)) if plot.trace else 1
    named = plot.trace is not None and len(plot.trace.flows or ()) > 1
    return named or lines <= len(study.levels) * columns or len(study.levels) > 1
