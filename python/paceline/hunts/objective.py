"""The objective that a hunt maximises: an expression over a run's measures.

    flows.frame_delay_p95_s[call]
    1 - groups.jain
    flows.goodput_bps[a] / flows.goodput_bps[b]
    most(flows.rtt_p95_s)

Arithmetic and functions are those of the claims of papers and suites (`paceline.studies.expression`). A measure is
[TABLE.]MEASURE, in the first table that has it; words in brackets select its rows: a flow, a link or a group. Links
mean the forward direction unless the words include "backward". Several rows need a function that reduces them to one
number: mean, least, most.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from paceline.errors import PacelineError
from paceline.messages.argument_names import meant, option
from paceline.quantities import digits, quantity
from paceline.results.columns import IDENTITY, TABLES, check_metrics, measures_by_table
from paceline.results.results import Results, RunRecord
from paceline.studies.expression import FUNCTIONS, Array, Column, Expression, ExpressionError

GREATEST = 1e12
"""The value of a division by zero, with its sign: a starved flow below the bar is the worst, not an error."""

_TERM = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\.\w+)*)\b(?:\[([^\]]*)\])?(?!\s*[\[(])")
_WAYS = ("queues", "link_flows")


@dataclass(frozen=True)
class Term:
    """A measure, and the words that select its rows."""

    text: str
    table: str
    measure: str
    words: tuple[str, ...]

    def rows(self, results: Results) -> pl.DataFrame:
        """The matching rows in a run's results."""
        table = results.table(self.table)
        if self.table in _WAYS and len(table) and "backward" not in self.words:
            table = table.filter(pl.col("direction") == "forward")
        for word in self.words:
            table = (
                table.filter(
                    pl.any_horizontal(pl.col(c).cast(pl.String) == word for c in self._identity(table))
                )
                if len(table)
                else table
            )
        return table

    def _identity(self, table: pl.DataFrame) -> list[str]:
        return [column for column in IDENTITY[self.table] if column in table.columns]

    def value(self, results: Results) -> Array:
        """A number for each row, nan if it has none."""
        rows = self.rows(results)
        if not len(rows) or self.measure not in rows.columns:
            return np.asarray(math.nan)
        found = np.array(rows[self.measure].cast(pl.Float64).to_list(), dtype=np.float64)
        return np.asarray(found[0] if len(found) == 1 else found)

    def check(self, results: Results) -> None:
        """Raises PacelineError, which lists the possible words, if a run has no such row."""
        if len(self.rows(results)):
            return
        table = results.table(self.table)
        there = [str(n) for c in self._identity(table)[:1] for n in table[c].unique(maintain_order=True)]
        hint = meant(" ".join(self.words), there, 2)
        has = f"there are {', '.join(there)}" if there else f"a run has no {self.table}"
        raise PacelineError(f"no row of {self.table} matches {' '.join(self.words) or 'any'}{hint}: {has}")


class Goal:
    """A parsed expression. Raises PacelineError if it is invalid."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if not self.text:
            raise PacelineError(f"{option('worst')} is empty: give an expression, as 1 - groups.jain")
        self._terms: dict[str, Term] = {}
        self._check_brackets()
        written = _TERM.sub(self._name, self.text)
        try:
            self._expression = Expression(written)
        except ExpressionError as error:
            raise self._mistake(self._shown(str(error))) from None
        if not self._terms:
            raise self._mistake("it has no measure, as flows.goodput_bps[film]")

    def _check_brackets(self) -> None:
        """Checks brackets, since words without one would be taken for measures."""
        opened: int | None = None
        for found in re.finditer(r"[\w.]*\[|\]", self.text):
            if found[0] == "]":
                if opened is None:
                    raise self._unmatched(self.text[: found.end()], "]", "[")
                opened = None
            elif opened is None:
                opened = found.start()
            else:
                raise self._unmatched(self.text[opened : found.start()], "[", "]")
        if opened is not None:
            raise self._unmatched(self.text[opened:], "[", "]")

    def _unmatched(self, part: str, one: str, other: str) -> PacelineError:
        return self._mistake(f'a bracket is missing: "{part.strip()}" has "{one}" without "{other}"')

    def _mistake(self, what: str) -> PacelineError:
        return PacelineError(f'{option("worst")} "{self.text}": {what}')

    def _shown(self, words: str) -> str:
        """A message with the measures as the user wrote them."""
        for name, term in self._terms.items():
            words = words.replace(name, term.text)
        return words.removeprefix(f"'{self.text}': ")

    def _name(self, found: re.Match[str]) -> str:
        name, words = found[1], found[2]
        if name in FUNCTIONS and words is None:
            raise self._mistake(f"{name} is a function: {name}(...)")
        try:
            check_metrics([name])
        except PacelineError as error:
            raise self._mistake(str(error)) from None
        table, dot, measure = name.partition(".")
        if not dot:
            known = measures_by_table()
            table, measure = next(one for one in TABLES if name in known.get(one, ())), name
        key = f"measure_{len(self._terms)}_"
        cleaned = tuple((words or "").replace('"', " ").replace("'", " ").split())
        self._terms[key] = Term(found[0], table, measure, cleaned)
        return key

    @property
    def measure(self) -> str | None:
        """The measure, if the expression is only a measure."""
        terms = list(self._terms.values())
        return terms[0].measure if len(terms) == 1 and terms[0].text == self.text else None

    def shown(self, value: float | None, half_width: float | None = None) -> str:
        """A value for people, in the measure's unit if it has one."""
        if self.measure is not None:
            return quantity(self.measure, value, half_width)
        return "-" if value is None or math.isnan(value) else digits(value, half_width)

    def check(self, record: RunRecord) -> None:
        """Raises PacelineError if the run lacks a name in the expression, or if the value is several numbers."""
        results = Results([record], {})
        for term in self._terms.values():
            try:
                term.check(results)
            except PacelineError as error:
                raise self._mistake(str(error)) from None
        self._evaluated(results)

    def of(self, record: RunRecord) -> float:
        """The value of a run; nan if it has none."""
        return self._evaluated(Results([record], {}))

    def _evaluated(self, results: Results) -> float:
        names: Mapping[str, Column | Array] = {
            name: term.value(results) for name, term in self._terms.items()
        }
        try:
            value = np.asarray(self._expression.value(names, np.ones(1)))
        except ExpressionError as error:
            raise self._mistake(self._shown(str(error))) from None
        except ValueError as error:
            raise self._mistake(f"{self._sizes(names)}: {error}") from None
        if value.size != 1:
            raise self._mistake(
                f"{self._sizes(names)}: name one in brackets, or reduce them to one number with mean, least or most"
            )
        one = float(np.ravel(value)[0])
        return one if math.isnan(one) else min(max(one, -GREATEST), GREATEST)

    def _sizes(self, names: Mapping[str, Any]) -> str:
        several = [
            f"{self._terms[name].text} has {np.size(value)} rows"
            for name, value in names.items()
            if np.size(value) > 1
        ]
        return ", ".join(several) or "it is no single number"


def known_mean(values: Sequence[float]) -> float:
    """The mean of the values that exist; nan if there is none."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
