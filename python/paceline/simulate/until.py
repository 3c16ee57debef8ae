"""Runs until a number is precise: `--until "goodput_bps 1 %"` adds seeds until its 95 % interval is that narrow.

Stopping at the first narrow interval often stops where the scatter happened to look small. Therefore there are
`MIN_RUNS` runs before the first check, and few checks: between two of them the number of runs grows by at least a
tenth. The coverage of these intervals was measured: docs/measures.md.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline import _core
from paceline.errors import PacelineError
from paceline.messages.argument_names import option
from paceline.messages.warn import warn
from paceline.quantities import unit_of
from paceline.results.columns import IDENTITY, TABLES, check_metrics
from paceline.results.results import Results, RunRecord
from paceline.simulate.points import Point, Progress, run_points, seeds_from

MIN_RUNS = 20
"""Runs before the first check."""
_UNITS = ("s", "B", "bit/s")
_STEP = (1.1, 1.5)
"""Minimum and maximum factor by which the number of runs grows between two checks."""


@dataclass(frozen=True)
class Gap:
    """How far a number is from the requested precision: the widest of its rows."""

    requested: str
    runs: int
    of: str
    """The row: "film", "bottleneck forward"; empty if there is only one."""
    ratio: float
    """The interval's half width over the requested one: at most 1 if reached, infinite without an interval."""

    @property
    def is_closed(self) -> bool:
        """Whether it has the requested precision."""
        return self.ratio <= 1.0

    @property
    def needed(self) -> int:
        """About how many runs it needs in all: the half width shrinks with the square root of their number."""
        fewest, limit = (math.ceil(self.runs * step) for step in _STEP)
        return limit if math.isinf(self.ratio) else max(math.ceil(self.runs * self.ratio**2), fewest)

    @property
    def more(self) -> int:
        """How many runs to make before the next check."""
        return 0 if self.is_closed else min(self.needed, math.ceil(self.runs * _STEP[1])) - self.runs

    def words(self) -> str:
        """The state, in words."""
        of = f", of {self.of}," if self.of else ""
        if math.isinf(self.ratio):
            return f'"{self.requested}"{of} has no interval after {self.runs} runs'
        return (
            f'the interval of "{self.requested}"{of} is {self.ratio:.2g} times as wide after {self.runs} runs; about '
            f"{self.needed} would do"
        )


@dataclass(frozen=True)
class Until:
    """A measure and its requested precision: "goodput_bps 1 %", "flows.rtt_mean_s of film 0.5 ms"."""

    text: str
    tables: tuple[str, ...]
    measure: str
    of: str | None
    """The flow, link or group whose row counts, or "COLUMN=NAME"; None: all."""
    bound: float
    relative: bool

    @classmethod
    def parse(cls, text: str) -> Until:
        """Reads [TABLE.]MEASURE [of NAME] PRECISION, the precision in per cent of the mean or in the measure's unit.
        NAME is a flow, link, group or the like, or COLUMN=NAME. Raises PacelineError."""
        found = re.fullmatch(r"(?:(\w+)\.)?(\w+)(?:\s+of\s+(\S+))?\s+([\d.eE+-]+\s*\S*)", text.strip())
        if found is None:
            raise PacelineError(
                f'until "{text}": give a measure and a precision, as "goodput_bps 1 %" or "rtt_mean_s of film 0.5 ms"'
            )
        table, measure, of, precision = found.groups()
        check_metrics([f"{table}.{measure}" if table else measure])
        number, percent, more = precision.partition("%")
        try:
            if more:
                raise ValueError(f"remove {more} after the %")
            bound = _bound(number, precision, unit_of(measure), percent=bool(percent))
        except ValueError as error:
            raise PacelineError(
                f'until "{text}": {precision} is not a precision of {measure}: {error}'
            ) from None
        if not 0 < bound < math.inf:
            raise PacelineError(f'until "{text}": the precision must be more than 0')
        return cls(text, (table,) if table else TABLES, measure, of, bound, bool(percent))

    def gap(self, records: Sequence[RunRecord]) -> Gap:
        """How far these runs are from it. Raises PacelineError if none of them has the measure, or if NAME matches
        different rows in two columns."""
        results = Results(records, {})
        runs = len({record.seed for record in records})
        gaps = []
        for name in self.tables:
            table = results.table(name)
            if self.measure not in table.columns or not len(table):
                continue
            by = [column for column in IDENTITY[name] if column in table.columns]
            for row in self._rows(results.statistics(name, by=by, measures=[self.measure]).to_dicts(), by):
                called = " ".join(str(row[column]) for column in by[: 1 if name == "flows" else 2])
                gaps.append(Gap(self.text, runs, called, self._ratio(row)))
        if not gaps:
            who = f" of {self.of}" if self.of else ""
            raise PacelineError(f'until "{self.text}": no run has a {self.measure}{who}')
        return max(gaps, key=lambda gap: gap.ratio)

    def _rows(self, rows: list[dict[str, Any]], by: Sequence[str]) -> list[dict[str, Any]]:
        """The rows that match NAME."""
        if self.of is None:
            return rows
        column, _, name = self.of.partition("=")
        if name and column in by:
            return [row for row in rows if str(row[column]) == name]
        found = {column: [row for row in rows if row[column] == self.of] for column in by}
        held = {column: rows for column, rows in found.items() if rows}
        columns = list(held)
        for other in columns[1:]:
            if held[other] != held[columns[0]]:
                raise PacelineError(
                    f'until "{self.text}": {self.of} is the {columns[0]} of one row and the {other} of another; write '
                    f"of {columns[0]}={self.of} or of {other}={self.of}"
                )
        return held[columns[0]] if columns else []

    def _ratio(self, row: dict[str, float | None]) -> float:
        mean, low, high = row["mean"], row["low"], row["high"]
        if low is None:
            # Measures dominated by rare events have an interval of the median instead of the mean.
            mean, low, high = row["median"], row["median_low"], row["median_high"]
        if mean is None or low is None or high is None or not math.isfinite(high - low):
            return math.inf
        wanted = self.bound * abs(mean) if self.relative else self.bound
        half = (high - low) / 2
        return 0.0 if half == 0 else half / wanted if wanted > 0 else math.inf


def _bound(number: str, precision: str, unit: str, *, percent: bool) -> float:
    if percent:
        return float(number) / 100
    return _core.quantity(precision, unit) if unit in _UNITS else float(precision)


def parsed(texts: str | Sequence[str | Until]) -> list[Until]:
    """The requested precisions, read from texts. Raises PacelineError."""
    several = [texts] if isinstance(texts, str) else texts
    return [text if isinstance(text, Until) else Until.parse(text) for text in several]


def widest(untils: Sequence[Until], records: Sequence[RunRecord]) -> Gap:
    """The widest gap of several. Raises PacelineError."""
    return max((until.gap(records) for until in untils), key=lambda gap: gap.ratio)


def run_until(
    points: Sequence[Point],
    seed: int,
    untils: Sequence[Until],
    *,
    min_runs: int,
    max_runs: int,
    progress: Progress | None = None,
    **how: Any,
) -> list[RunRecord]:
    """Runs each point until its numbers have the requested precision, with seeds seed, seed + 1, ...: at least
    `min_runs` (and `MIN_RUNS`), at most `max_runs`. Records in the order of points, then seeds. Warns of numbers that
    lack the precision at `max_runs`. `progress` receives an estimate of the total number of runs from the scatter so
    far. Further arguments are those of `points.run_points`, whose exceptions it raises.
    """
    if min_runs > max_runs:
        raise PacelineError(
            f"{min_runs} runs exceed the limit of {max_runs}: {option('until')} adds runs to the first "
            f"{option('runs')}; raise {option('most')}, or ask for fewer"
        )
    if max_runs < MIN_RUNS:
        raise PacelineError(
            f"at most {max_runs} runs: precision needs {MIN_RUNS} at least, before the first check"
        )
    made: list[list[RunRecord]] = [[] for _ in points]
    numbers = dict.fromkeys(range(len(points)), min(max(min_runs, MIN_RUNS), max_runs))
    later = 0
    while numbers:
        before, ahead = sum(map(len, made)), later
        next_ones = [
            replace(points[i], seeds=tuple(seeds_from(seed + len(made[i]), many)))
            for i, many in numbers.items()
        ]

        def on_progress(done: float, total: float, before: int = before, ahead: int = ahead) -> None:
            if progress:
                progress(before + done, before + total + ahead)

        records = iter(run_points(next_ones, [], progress=on_progress, **how))
        for i, many in numbers.items():
            made[i] += itertools.islice(records, many)
        gaps = {i: widest(untils, made[i]) for i in numbers}
        short = {i: gap for i, gap in gaps.items() if not gap.is_closed and len(made[i]) >= max_runs}
        for gap in short.values():
            warn(f"{gap.words()}, and the limit is {max_runs} runs")
        numbers = {
            i: min(gap.more, max_runs - len(made[i]))
            for i, gap in gaps.items()
            if not gap.is_closed and i not in short
        }
    return [record for point in made for record in point]
