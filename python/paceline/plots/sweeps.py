"""The data of a sweep's figure: a measure over one varied path, curves by other paths, panels by the rest.

The intervals are those of the tables: `Results.statistics` computes them, and `chart` draws them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from paceline.axes import short
from paceline.errors import PacelineError
from paceline.interval import Kind
from paceline.results.results import Results
from paceline.results.subjects import SUBJECT, alone, metrics_in

MAX_CURVES = 7
"""The number of colours."""
MAX_PANELS = 12
MAX_SCALE_RATIO = 20.0
"""If panels' maxima differ by a larger factor, each has its own scale: in a common one the smallest would look flat."""


_OF_MEDIAN = pl.col("kind") == Kind.MEDIAN.value
POINT = pl.when(_OF_MEDIAN).then("median").otherwise("mean")
"""The statistic drawn for a row of `Results.statistics`: the one that its interval is about."""
APART = _OF_MEDIAN & ~pl.col("mean").is_between("median_low", "median_high")
"""Whether the mean is drawn beside the median, because it lies outside the median's interval."""


@dataclass(frozen=True)
class Curve:
    """The points of one curve."""

    values: tuple[Any, ...]
    """The values that identify the curve, in the order of `Chart.by`."""
    data: pl.DataFrame
    """Rows of `Results.statistics`, and `x`: each one's position along the axis."""


@dataclass(frozen=True)
class Panel:
    """Curves in common axes."""

    values: tuple[Any, ...]
    """The values that identify the panel, in the order of `Chart.rest`."""
    curves: tuple[Curve, ...]

    @property
    def data(self) -> pl.DataFrame:
        """All points."""
        return pl.concat(curve.data for curve in self.curves)

    @property
    def reach(self) -> float:
        """The largest drawn value."""
        maximum = self.data.select("mean", "high", "median_high").max_horizontal().max()
        return float(maximum) if isinstance(maximum, int | float) else 0.0


@dataclass(frozen=True)
class Chart:
    """A sweep's figure as data."""

    table: str
    measure: str
    x: str
    """The column along the axis: a varied path, or an identity column (flow, link, ...)."""
    number: str | None
    """The numerical column of its values, which ends in the unit; None for words, which lie at 0, 1, ..."""
    ticks: tuple[tuple[float, Any], ...]
    """The positions of its values."""
    by: tuple[str, ...]
    rest: tuple[str, ...]
    flows: tuple[str, ...]
    """The chosen flows, of several."""
    panels: tuple[Panel, ...]
    numeric: frozenset[str]
    """Columns whose values are quantities."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Replacements of a value, a flow's name, the measure or a path."""

    @property
    def data(self) -> pl.DataFrame:
        """All points."""
        return pl.concat(panel.data for panel in self.panels)

    @property
    def reach(self) -> float:
        """The largest drawn value."""
        return max(panel.reach for panel in self.panels)

    @property
    def alike(self) -> bool:
        """Whether the panels have a common scale."""
        some = [panel.reach for panel in self.panels if panel.reach > 0]
        return not some or max(some) <= MAX_SCALE_RATIO * min(some)


def charts(
    results: Results,
    measures: Sequence[str],
    x: str | None = None,
    by: Sequence[str] | None = None,
    flows: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    xlabel: str = "",
) -> list[Chart]:
    """A chart of each measure, for one figure: see `Results.plot`. Raises PacelineError."""
    return [chart(results, measure, x, by, flows, labels, xlabel) for measure in measures]


def chart(
    results: Results,
    y: str,
    x: str | None = None,
    by: Sequence[str] | None = None,
    flows: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    xlabel: str = "",
) -> Chart:
    """Selects a sweep's data for a figure: see `Results.plot`. Raises PacelineError."""
    if not results.axes:
        raise PacelineError("these results are not a sweep: no varied path can be the axis")
    table, measure = metrics_in(results, [y])[0]
    subject = SUBJECT[table]
    named = {name: _column(results, subject, name) for name in (*([x] if x else []), *(by or ()))}
    rows, chosen = _rows(results, table, measure, flows, both_ways="direction" in named.values())
    along = named[x] if x else _along(results, rows)
    curves = [named[name] for name in by or ()]
    if along in curves:
        raise PacelineError(f"{along} is the axis: give other paths for the curves")
    rest: list[str] = []
    for column in (*results.axes, *subject):
        if column in (along, *curves) or _is_determined(rows, [along, *curves, *rest], column):
            continue
        # By default, curves are by the other paths, panels by the rows' identity.
        (curves if by is None and column in results.axes else rest).append(column)
    if by is None and not curves:
        curves, rest = rest, []
    rows, ticks = _placed(results, rows, along)
    panels = [
        Panel(at, tuple(Curve(name, one) for name, one in _parts(part, curves)))
        for at, part in _parts(rows, rest)
    ]
    _check_few(panels, curves, rest)
    return Chart(
        table=table,
        measure=measure,
        x=along,
        number=results.numbers.get(along),
        ticks=ticks,
        by=tuple(curves),
        rest=tuple(rest),
        flows=chosen,
        panels=tuple(panels),
        numeric=frozenset(results.numbers),
        labels=({along: xlabel} if xlabel else {}) | dict(labels or {}),
    )


def _column(results: Results, subject: Sequence[str], name: str) -> str:
    """The column of that name: a varied path, a unique ending of one, or an identity column."""
    there = (*results.axes, *subject)
    ends = [column for column in there if column.endswith(f".{name}")]
    if name in there:
        return name
    if len(ends) != 1:
        known = ", ".join(short(results.axes)[c] if c in results.axes else c for c in there)
        what = "is the end of several paths" if ends else "is not varied here"
        raise PacelineError(f'"{name}" {what}; there are {known}')
    return ends[0]


def _rows(
    results: Results, table: str, measure: str, flows: Sequence[str] | None, *, both_ways: bool
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A row per point and subject that has the measure, and the chosen flows if there are several."""
    subject = SUBJECT[table]
    rows = results.statistics(table, [*results.varied, *subject], [measure])
    if "direction" in subject and not both_ways:
        # As in tables, the backward direction is only shown on request.
        rows = rows.filter(pl.col("direction") == "forward")
    if measure == "jain":
        several = rows.filter(~pl.col("group").is_in(alone(results)))
        rows = several if len(several) else rows
    # Leave out flows that never have the measure, such as the frames of a download.
    has = pl.col("mean").is_not_null().any()
    rows = rows.filter(has.over(subject) if subject else has)
    if rows.is_empty():
        raise PacelineError(f"{table}.{measure} has no value in these results")
    if flows is None:
        return rows, ()
    if "flow" not in subject:
        raise PacelineError(f"{table}.{measure} is not a measure of single flows: leave out the flows")
    known = rows["flow"].unique(maintain_order=True).to_list()
    if missing := [flow for flow in flows if flow not in known]:
        raise PacelineError(f"no flow {', '.join(missing)} has {measure}; there are {', '.join(known)}")
    return rows.filter(pl.col("flow").is_in(list(flows))), tuple(flows) if len(known) > 1 else ()


def _along(results: Results, rows: pl.DataFrame) -> str:
    """The default axis: the first path with several quantities, or else with several values."""
    several = [axis for axis in results.axes if rows[axis].n_unique() > 1] or results.axes
    return next((axis for axis in several if axis in results.numbers), several[0])


def _is_determined(rows: pl.DataFrame, by: Sequence[str], column: str) -> bool:
    """Whether a column is determined by others: it varies with them, or is constant."""
    return rows.select(by).n_unique() == rows.select(*by, column).n_unique()


def _placed(
    results: Results, rows: pl.DataFrame, along: str
) -> tuple[pl.DataFrame, tuple[tuple[float, Any], ...]]:
    """The rows with their positions along the axis, in order, and the value at each."""
    values = rows[along].unique(maintain_order=True).to_list()
    if number := results.numbers.get(along):
        placed = rows.with_columns(pl.col(number).cast(pl.Float64).alias("x")).sort("x", maintain_order=True)
    else:
        order = pl.DataFrame({along: values, "x": [float(k) for k in range(len(values))]})
        placed = rows.join(order, on=along, nulls_equal=True, maintain_order="left").sort(
            "x", maintain_order=True
        )
    ticks = placed.select("x", along).unique("x", maintain_order=True).rows()
    return placed, tuple(ticks)


def _parts(rows: pl.DataFrame, by: Sequence[str]) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    """The rows grouped by some columns, in the order of the sweep."""
    if not by:
        return [((), rows)]
    return list(rows.partition_by(by, maintain_order=True, as_dict=True).items())


def _check_few(panels: Sequence[Panel], curves: Sequence[str], rest: Sequence[str]) -> None:
    many = max(len(panel.curves) for panel in panels)
    if many > MAX_CURVES:
        raise PacelineError(
            f"{many} curves by {', '.join(curves)} are too many (at most {MAX_CURVES}): name fewer paths for curves; "
            "the others get separate panels"
        )
    if len(panels) > MAX_PANELS:
        raise PacelineError(
            f"{len(panels)} panels of {', '.join(rest)} are too many for a figure (at most {MAX_PANELS}): "
            "sweep over fewer values, or choose flows"
        )
