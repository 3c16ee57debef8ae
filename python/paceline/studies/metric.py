"""A metric: a number of each run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.statistics import Estimate
from paceline.studies.expression import Expression

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
