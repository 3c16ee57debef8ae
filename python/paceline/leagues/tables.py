"""A league as tables for people: the ranking over all classes and in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paceline.report.numbers import plus_minus
from paceline.tables.layout import Column, Layout

if TYPE_CHECKING:
    from paceline.leagues.running import League

_NAMED = 3
"""The number of schemes named that are not significantly behind."""


def tables(found: League) -> list[Layout]:
    """The ranking over all classes and in each."""
    rows = [
        (
            one.scheme,
            one.rank,
            plus_minus(one.score),
            "" if one.behind is None else plus_minus(one.behind.estimate),
            f"{one.wins * 100:.0f} %",
        )
        for one in found.standings()
    ]
    heads = ("scheme", "rank", "score", "behind the first", "wins")
    columns = [
        Column(head, cells, right=head != "scheme")
        for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
    ]
    several = "es" if len(found.classes) != 1 else ""
    return [Layout(f"{found.rounds} rounds of {len(found.classes)} class{several}", columns), _classes(found)]


def _classes(found: League) -> Layout:
    rows = []
    for of in found.classes:
        standings = found.standings(of)
        others = [one.scheme for one in standings[1:] if one.best == 1]
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        last = standings[-1]
        rows.append(
            (
                of.key,
                standings[0].scheme,
                ", ".join(others[:_NAMED]) + more,
                last.scheme if last.best > 1 else "",
            )
        )
    heads = ("class", "first", "not shown to be behind", "last")
    columns = [
        Column(head, cells, right=False) for head, cells in zip(heads, zip(*rows, strict=True), strict=True)
    ]
    return Layout("Class by class", columns)
