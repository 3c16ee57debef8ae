"""Figures of recordings: a panel per run, or per point of a sweep."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from matplotlib.figure import Figure

from paceline.errors import PacelineError
from paceline.plots import KINDS, chart, gauges, sweeps, timeline
from paceline.plots.sweeps import MAX_PANELS
from paceline.plots.timeline import Panel
from paceline.results.recordings import GAUGES

if TYPE_CHECKING:
    from paceline.results.results import Results

_MAX_LISTED = 12
"""The number of flows that a message names."""


def figure(
    runs: Mapping[Path, Results], kind: str, seed: int | None = None, flows: Collection[str] = ()
) -> Figure:
    """A figure of one kind, one of `KINDS` or "gauges": of one seed, by default the first, and of these flows, by
    default all. Raises PacelineError for what was not recorded."""
    drawn = panels(runs, kind, seed, flows)
    every = list(dict.fromkeys(key for results in runs.values() for key in timeline.keys(results.flows)))
    return gauges.figure(drawn, every) if kind == "gauges" else timeline.figure(KINDS[kind], drawn, every)


def drawn(
    results: Results,
    y: str | Sequence[str],
    x: str | None,
    by: Sequence[str] | None,
    flows: Sequence[str] | None,
    labels: Mapping[str, str] | None,
    xlabel: str,
    width: str,
    seed: int | None,
) -> Figure:
    """The figure of `Results.plot`."""
    recorded = results.recorded()
    measures = [y] if isinstance(y, str) else list(y)
    if len(measures) > 1 or (y not in KINDS and y != "gauges") or (results.axes and y not in recorded):
        return chart.figure(sweeps.charts(results, measures, x, by, flows, labels, xlabel), width)
    (y,) = measures
    if x or by or labels or xlabel:
        raise PacelineError(
            f"{y} is drawn over time: x, by, labels and xlabel only apply to measures of sweeps"
        )
    if y in KINDS and y not in recorded:
        raise PacelineError(f'{y} was not recorded: run again with record=("{y}",)')
    return figure({Path("results"): results}, y, seed, flows or ())


def has_values(results: Results, kind: str, flows: Collection[str] = ()) -> bool:
    """Whether a kind was recorded, for one of these flows if some are named; for logs, whether a connection has a
    value."""
    if kind not in results.recorded():
        return False
    data = results.series(kind)
    if flows:
        if "flow" not in data.columns:
            return False
        data = data.filter(_is_one_of(flows))
    empty = KINDS[kind].empty
    return not data.is_empty() and ("qlog" not in results.manifest or empty is None or not empty(data))


def _is_one_of(flows: Collection[str]) -> pl.Expr:
    """Rows of these flows: a name means all its instances, "web[3]" a single one."""
    one = pl.format("{}[{}]", "flow", "instance")
    return pl.col("flow").is_in(flows) | one.is_in(flows)


def panels(
    runs: Mapping[Path, Results], kind: str, seed: int | None, flows: Collection[str] = ()
) -> list[Panel]:
    """A panel per run, or per point of a sweep, of one seed each."""
    found = []
    for path, results in runs.items():
        tables = [k for k in (GAUGES if kind == "gauges" else (kind,)) if k in results.recorded()]
        if not tables:
            one = " or ".join(GAUGES) if kind == "gauges" else kind
            if "qlog" in results.manifest:
                raise PacelineError(f"{path} is a log, which has {', '.join(results.recorded())}, not {one}")
            raise PacelineError(f"{path} did not record {one}: run again with --record {one.split()[0]}")
        chosen = results.seeds[0] if seed is None else seed
        if chosen not in results.seeds:
            raise PacelineError(
                f"{path} has no run with seed {chosen}; there are {', '.join(map(str, results.seeds))}"
            )
        data = pl.concat([results.series(k) for k in tables], how="diagonal").filter(pl.col("seed") == chosen)
        data = _of_flows(data, flows, kind)
        name = results.manifest.get("name", path.name)
        label = f"{name} ({path})" if len(runs) > 1 else str(name)
        # Real traffic has no seed, and a single log or watch has no number.
        real = results.manifest.get("kind", "run") not in ("run", "sweep", "comparison")
        number = "" if real and len(results.seeds) == 1 else f", {'run' if real else 'seed'} {chosen}"
        points = data.partition_by(results.axes, maintain_order=True) if results.axes else [data]
        for point in points:
            values = ", ".join(f"{axis} = {point[axis][0]}" for axis in results.axes)
            title = f"{label}{': ' if values else ''}{values}{number}"
            warmup_s = _warmup_s(results, point, chosen)
            found.append(Panel(title, point, warmup_s, tuple(results.axes), goes_on=not real))
    if len(found) > MAX_PANELS:
        raise PacelineError(
            f"{len(found)} panels are too many for a figure (at most {MAX_PANELS}): plot fewer runs or points"
        )
    return found


def _of_flows(data: pl.DataFrame, flows: Collection[str], kind: str) -> pl.DataFrame:
    if not flows:
        return data
    if "flow" not in data.columns:
        raise PacelineError(f"{kind} of flow {next(iter(flows))}: this recording is not about flows")
    for name in flows:
        if data.filter(_is_one_of([name])).is_empty():
            raise PacelineError(f"{kind} of flow {name}: flows recorded: {listed(data)}")
    return data.filter(_is_one_of(flows))


def listed(flows: pl.DataFrame) -> str:
    """The names of a table's flows, as many as fit into a message."""
    there = flows["flow"].unique(maintain_order=True).to_list()
    rest = len(there) - _MAX_LISTED
    return ", ".join(there[:_MAX_LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _warmup_s(results: Results, point: pl.DataFrame, seed: int) -> float:
    """The warm-up of a point's run, in seconds."""
    runs = results.table("runs")
    here = [pl.col(axis).eq_missing(point[axis][0]) for axis in results.axes]
    if "warmup_s" not in runs.columns:
        return 0.0
    values = runs.filter(pl.col("seed") == seed, *here)["warmup_s"]
    return float(values[0] or 0.0) if len(values) else 0.0
