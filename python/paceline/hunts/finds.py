"""The results of a hunt: each find's values on seeds that the search did not use, and its scenario."""

from __future__ import annotations

import json
import math
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from paceline import _core, files
from paceline.hunts.objective import Goal
from paceline.hunts.ranges import Axis, Candidate, Choices, Value
from paceline.hunts.searching import Try
from paceline.scenarios.rebase import text_from
from paceline.scenarios.scenario import load, toml_value
from paceline.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRIES, FIGURE = "tries", "hunt"


@dataclass(frozen=True)
class Change:
    """A path whose value differs from the file's."""

    path: str
    own: str | None
    """The file's value; None if it has none."""
    seen: str | None
    """The value in the search; None: the file's own."""
    to: str | None
    """The value after minimising."""


@dataclass(frozen=True)
class Find:
    """A scenario in which the expression is worse than in the file; for a crash the values are shares of the runs that
    fail alike."""

    number: int
    candidate: Candidate
    changes: tuple[Change, ...]
    crash: str | None
    """The controller's message, if runs fail; else None."""
    searched: float
    """The value in the search, by which it was chosen: biased upwards."""
    again: Estimate | None
    """The same scenario on seeds that the search did not use; None if there was no time for it."""
    value: Estimate | None
    """The minimised scenario, which is the file's, on unused seeds."""
    own: Estimate | None
    """The value of the hunted file itself on those seeds."""
    difference: Estimate | None
    """`value` minus `own`, seed by seed."""
    above: int
    """On how many of these seeds it exceeds the hunted file's value."""
    p_holm: float | None
    """p of the paired t test that they do not differ, corrected for the number of finds (Holm 1979)."""
    scenario: _core.Scenario
    """Its seed is the first on which it was checked; for a crash one that fails."""
    file: Path | None = None

    @property
    def is_checked(self) -> bool:
        """Whether it was run on fresh seeds after minimising."""
        return self.value is not None

    @property
    def is_shown(self) -> bool:
        """Whether it is worse than the file on fresh seeds: p below 5 %, or a failing run."""
        if self.value is None or self.value.mean is None:
            return False
        if self.crash is not None:
            return self.value.mean > 0
        mean = None if self.difference is None else self.difference.mean
        return self.p_holm is not None and self.p_holm < 0.05 and mean is not None and mean > 0


@dataclass(frozen=True)
class Hunt:
    """The tries and results of a hunt. `finds` are sorted from the worst."""

    worst: str
    goal: Goal
    axes: Sequence[Axis]
    own: Sequence[Value]
    base: _core.Scenario
    finds: tuple[Find, ...]
    own_searched: float
    """The file's value on the seeds of the search."""
    tried: Sequence[Try]
    seeds: Mapping[str, Sequence[int]]
    """The seeds of the search, of the check of its finds (`again`), and of the minimised ones (`fresh`)."""
    notes: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def tries(self) -> pl.DataFrame:
        """A row for each try: its number, its settings, `value`, the mean over the search's seeds (null: no run has a
        value), and `failed`, the share of runs that failed."""
        heads = [", ".join(axis.paths) for axis in self.axes]
        rows = [
            {"try": n, **dict(zip(heads, one.candidate, strict=True)), **_measured(one)}
            for n, one in enumerate(self.tried, 1)
        ]
        kinds = {
            "try": pl.Int64,
            **dict.fromkeys(heads, pl.String),
            "value": pl.Float64,
            "failed": pl.Float64,
        }
        return pl.DataFrame(rows, schema=kinds)

    def plot(self) -> Figure:
        """The values over the tries and along each axis, as a figure of matplotlib."""
        from paceline.plots.hunted import figure  # noqa: PLC0415 (matplotlib is slow to import)

        return figure(self)

    def document(self) -> dict[str, Any]:
        """The JSON of `--json`."""
        return {
            "name": self.base.name,
            "worst": self.worst,
            "own": self.own_searched,
            "tries": len(self.tried),
            "seeds": {what: list(seeds) for what, seeds in self.seeds.items()},
            "finds": [_entry(find) for find in self.finds],
            "notes": list(self.notes),
            "versions": files.versions(),
        }


def _measured(one: Try) -> dict[str, float | None]:
    mean = one.outcome.mean
    return {"value": None if math.isnan(mean) else mean, "failed": one.outcome.failing}


def _entry(find: Find) -> dict[str, Any]:
    def numbers(of: Estimate | None) -> dict[str, Any] | None:
        return (
            None if of is None else {"n": of.n, "mean": of.mean, "sd": of.sd, "low": of.low, "high": of.high}
        )

    return {
        "find": find.number,
        "changes": [vars(change) for change in find.changes],
        "crash": find.crash,
        "searched": None if math.isnan(find.searched) else find.searched,
        "again": numbers(find.again),
        "fresh": numbers(find.value),
        "own": numbers(find.own),
        "difference": numbers(find.difference),
        "above": find.above,
        "p_holm": find.p_holm,
        "shown": find.is_shown,
        "file": None if find.file is None else str(find.file),
    }


def own_values(base: _core.Scenario, axes: Sequence[Axis]) -> list[Value]:
    """The file's value on each axis, including defaults, with colons between values of paths that vary together; None
    if one of its paths has none, or if paths of a common value differ."""
    table = tomllib.loads(base.to_toml())
    found: list[Value] = []
    for axis in axes:
        texts = [_at(table, path) for path in axis.paths]
        known = [text for text in texts if text is not None]
        whole = len(known) == len(texts)
        joined = ":".join(known) if isinstance(axis, Choices) else known[0] if len(set(known)) == 1 else None
        found.append(joined if whole else None)
    return found


def _at(table: Any, path: str) -> str | None:
    for key in path.split("."):
        if not isinstance(table, dict) or key not in table:
            return None
        table = table[key]
    return toml_value(table)


def changes(
    base: _core.Scenario, axes: Sequence[Axis], seen: Sequence[Value], left: Candidate
) -> tuple[Change, ...]:
    """A find's changes to the file, and what is left of them."""
    table = tomllib.loads(base.to_toml())
    found = []
    for axis, before, now in zip(axes, seen, left, strict=True):
        old = {} if before is None else axis.changes(before)
        new = {} if now is None else axis.changes(now)
        found += [Change(path, _at(table, path), old.get(path), new.get(path)) for path in axis.paths]
    return tuple(found)


def text_of(find: Find, hunt: Hunt, directory: Path) -> str:
    """The scenario file of a find, with file names relative to that directory."""
    named = load(find.scenario, {"name": json.dumps(f"{hunt.base.name}-find-{find.number}")})
    said = [f"Found by `paceline hunt` in {hunt.base.name}: {hunt.worst}", *_said(find, hunt)]
    changed = [
        f"  {change.path}: {change.own or 'none'} -> {change.to}"
        for change in find.changes
        if change.to is not None
    ]
    lines = [
        line for words in said for line in textwrap.wrap(" ".join(words.split()), 116, break_on_hyphens=False)
    ]
    return (
        "".join(f"# {line}\n" for line in [*lines, "Changed:", *changed]) + "\n" + text_from(named, directory)
    )


def _said(find: Find, hunt: Hunt) -> list[str]:
    fails = f"With its seed, {find.scenario.seed}, it fails."
    if find.value is None:
        stopped = "The hunt was stopped: this is the search's find, neither minimised nor run on other seeds."
        return [stopped] if find.crash is None else [f"{stopped} {fails}"]
    seeds = hunt.seeds["fresh"]
    on = f"on {len(seeds)} seeds from {seeds[0]} on, which the search did not use"
    if find.crash is not None:
        return [
            f"{round((find.value.mean or 0) * len(seeds))} of {len(seeds)} runs fail alike, {on}. {fails}"
        ]
    own = hunt.goal.shown(None if find.own is None else find.own.mean)
    return [
        f"{hunt.goal.shown(find.value.mean, find.value.half_width)} here, {own} in the file itself, {on}. Its seed is "
        "the first of these."
    ]
