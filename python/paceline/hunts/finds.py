"""What a hunt found: each find as it is on seeds that the search has not seen, and the scenario that shows it."""

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
    """A path whose value is not the file's own."""

    path: str
    own: str | None
    """The file's own value; None where it has none."""
    seen: str | None
    """What the search had there; None: the file's own value."""
    to: str | None
    """What is left of it."""


@dataclass(frozen=True)
class Find:
    """A scenario in which the expression is worse than in the file; of a crash the values are shares of the runs that
    fail alike."""

    number: int
    candidate: Candidate
    changes: tuple[Change, ...]
    crash: str | None
    """What the controller said, of runs that fail; else None."""
    searched: float
    """What the search saw, by which it was chosen: on average too much."""
    again: Estimate | None
    """The same scenario on seeds that the search has not used; None where there was no time for it."""
    value: Estimate | None
    """The scenario of the file, made smaller, on seeds that nothing before has used."""
    own: Estimate | None
    """The file's own value on those seeds."""
    difference: Estimate | None
    """`value` less `own`, seed by seed."""
    above: int
    """On how many of these seeds it is above the file's own value."""
    p_holm: float | None
    """Of the paired t test that they do not differ, corrected for the number of finds (Holm 1979)."""
    scenario: _core.Scenario
    """Its seed is the first on which it was checked; of a crash one that fails."""
    file: Path | None = None

    @property
    def is_checked(self) -> bool:
        """Whether it was run on fresh seeds after it was made smaller."""
        return self.value is not None

    @property
    def is_shown(self) -> bool:
        """Whether it is worse than the file on fresh seeds: p below 5 %, or a run that fails."""
        if self.value is None or self.value.mean is None:
            return False
        if self.crash is not None:
            return self.value.mean > 0
        mean = None if self.difference is None else self.difference.mean
        return self.p_holm is not None and self.p_holm < 0.05 and mean is not None and mean > 0


@dataclass(frozen=True)
class Hunt:
    """What a hunt has tried and found. `finds` begin with the worst."""

    worst: str
    goal: Goal
    axes: Sequence[Axis]
    own: Sequence[Value]
    base: _core.Scenario
    finds: tuple[Find, ...]
    own_searched: float
    """The file's own value on the seeds of the search."""
    tried: Sequence[Try]
    seeds: Mapping[str, Sequence[int]]
    """Of the search, of the check of what it found (`again`), and of what is left of that (`fresh`)."""
    notes: tuple[str, ...] = ()
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def tries(self) -> pl.DataFrame:
        """A row for each try: its number, what it set, `value`, the mean over the search's seeds (null: no run has
        one), and `failed`, the share of runs that failed."""
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
    """The file's own value of each axis, defaults too, values that go together with colons between; None where one of
    its paths has none, or paths with one value have several."""
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
    """What a find changed of the file, and what is left of that."""
    table = tomllib.loads(base.to_toml())
    found = []
    for axis, before, now in zip(axes, seen, left, strict=True):
        old = {} if before is None else axis.changes(before)
        new = {} if now is None else axis.changes(now)
        found += [Change(path, _at(table, path), old.get(path), new.get(path)) for path in axis.paths]
    return tuple(found)


def text_of(find: Find, hunt: Hunt, directory: Path) -> str:
    """The scenario file of a find, for that directory: files that it names are named from there."""
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
        stopped = (
            "The hunt was stopped: this is what the search saw, neither made smaller nor run on other seeds."
        )
        return [stopped] if find.crash is None else [f"{stopped} {fails}"]
    seeds = hunt.seeds["fresh"]
    on = f"on {len(seeds)} seeds from {seeds[0]} on, which the search had not used"
    if find.crash is not None:
        return [
            f"{round((find.value.mean or 0) * len(seeds))} of {len(seeds)} runs fail alike, {on}. {fails}"
        ]
    own = hunt.goal.shown(None if find.own is None else find.own.mean)
    return [
        f"{hunt.goal.shown(find.value.mean, find.value.half_width)} here, {own} in the file itself, {on}. Its seed is "
        "the first of these."
    ]
