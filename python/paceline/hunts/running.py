"""`paceline.hunt`: the search, the check of its finds on other seeds, minimising, and the files."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline.arguments import Kind, checked
from paceline.errors import HuntStopped, PacelineError, PacelineWarning, ScenarioError
from paceline.files import table_files
from paceline.hunts.candidates import Runner
from paceline.hunts.finds import FIGURE, TRIES, Hunt, own_values, text_of
from paceline.hunts.minimising import KEPT_SHARE
from paceline.hunts.objective import Goal
from paceline.hunts.ranges import Axis, Range, axes_of
from paceline.hunts.searching import Tpe, Try
from paceline.hunts.stages import SPARE, Stages
from paceline.messages.argument_names import option
from paceline.results.store import Kept
from paceline.scenarios.scenario import ScenarioLike, Schemes, load, written
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Progress, seeds_from

BUDGET_S = 300.0
"""Default budget of a hunt, in seconds."""


def _check_values(base: _core.Scenario, axes: Sequence[Axis]) -> None:
    """Raises PacelineError, which names the axis, if none of an axis' values is valid, either by itself or with the
    first or last values of the others."""
    ends = [axis.ends_text() if isinstance(axis, Range) else axis.values() for axis in axes]
    together = [
        {
            path: value
            for axis, own in zip(axes, ends, strict=True)
            for path, value in axis.changes(own[end]).items()
        }
        for end in (0, -1)
    ]
    if any(_refusal(base, changes) is None for changes in together):
        return
    for axis, values in zip(axes, ends, strict=True):
        alone = [_refusal(base, axis.changes(value)) for value in values]
        if None not in alone:
            raise PacelineError(f"{option('over', ', '.join(axis.paths))}: {alone[0]}")


def _refusal(base: _core.Scenario, changes: Mapping[str, Any]) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacelineWarning)
        try:
            load(base, changes)
        except ScenarioError as error:
            return str(error)
    return None


def _write(hunt: Hunt, directory: Path) -> Hunt:
    """Writes a scenario for each find, the tries and the figure. Raises StorageError."""
    from paceline.plots.style import save  # noqa: PLC0415 (matplotlib is slow to import)

    for old in directory.glob("find-*.toml"):
        files.remove(old)
    finds = []
    for find in hunt.finds:
        path = directory / f"find-{find.number}.toml"
        files.write_whole(path, text_of(find, hunt, directory))
        finds.append(replace(find, file=path))
    now = replace(hunt, finds=tuple(finds))
    table_files.write_parquet(directory / f"{TRIES}.parquet", now.tries)
    table_files.write_csv(directory / f"{TRIES}.csv", now.tries)
    document = now.document()
    files.write_json(
        directory / "manifest.json", {**hunt.manifest, "finds": document["finds"], "notes": document["notes"]}
    )
    if len(now.tried) > 1:
        save(now.plot(), directory / FIGURE)
    return now


@checked(
    over=Kind(
        'a dict of TOML paths and ranges as text, or lists of choices, as {"link.x.delay": "5 ms..200 ms"}',
        lambda v: isinstance(v, Mapping),
    )
)
def hunt(
    scenario: ScenarioLike,
    over: Mapping[Any, Any],
    worst: str,
    *,
    budget_s: float | None = None,
    tries: int | None = None,
    runs: int = 3,
    again: int = 10,
    finds: int = 3,
    keep: float = KEPT_SHARE,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    out: str | Path | None = None,
    schemes: Schemes | None = None,
    progress: Progress | None = None,
) -> Hunt:
    """Searches for the scenario in which an expression is greatest, runs the finds again on other seeds, and minimises
    them.

    `over` maps TOML paths, or tuples of paths, to a range as text ("5 ms..200 ms", "1..20") or to a list of choices;
    `worst` is an expression over measures (`paceline.hunts.objective`), as "1 - groups.jain". Each candidate is run
    with the same `runs` seeds from `seed` on. The search ends after `tries` candidates, or when 60 % of `budget_s`
    seconds are spent (300 unless either is given); with the same seed and tries the finds are the same for any number
    of workers. At most `finds` finds are kept. Each is run with `again` seeds that the search did not use, minimised on
    these while it keeps the share `keep` of its excess over the file's value, and run with as many further seeds. A run
    whose controller fails is worse than any value. With `out`, finished runs are stored there, so that the same call
    resumes an interrupted hunt, and the directory gets a scenario file for each find, the tries and a figure.

    Raises ScenarioError, PacelineError (also if Optuna is not installed), StorageError; HuntStopped on Ctrl-C. The
    finds up to then are in `out`.
    """
    began = time.monotonic()
    minima = {"runs": (runs, 1), "again": (again, 2), "finds": (finds, 1), "tries": (tries, 1)}
    for name, (value, bound) in minima.items():
        if value is not None and value < bound:
            raise PacelineError(f"{option(name, value)}: it must be at least {bound}")
    if not 0 < keep <= 1:
        raise PacelineError(f"{option('keep', keep)}: it must be a share above 0 and at most 1")
    if budget_s is None and tries is None:
        budget_s = BUDGET_S
    if budget_s is not None and not 0 < budget_s <= 1e7:
        raise PacelineError(f"{option('budget', f'{budget_s:g}s')}: it must be above 0 s and at most 1e7 s")
    axes, goal = axes_of(over, set or {}), Goal(worst)
    base = load(scenario, set, schemes)
    _check_values(base, axes)
    first = base.seed if seed is None else seed
    all_seeds = seeds_from(first, runs + 2 * again)
    seeds = {
        "search": all_seeds[:runs],
        "again": all_seeds[runs : runs + again],
        "fresh": all_seeds[runs + again :],
    }
    sampler = Tpe(axes, first)
    what = {
        "kind": "hunt",
        "name": base.name,
        **written(base),
        "worst": goal.text,
        "over": {", ".join(axis.paths): _range_text(axis) for axis in axes},
        "seeds": seeds,
        "tries": tries,
        "budget_s": budget_s,
    }
    tried: list[Try] = []

    def on_progress(share: float = 0.0) -> None:
        if progress is None:
            return
        if budget_s is not None:
            progress(min(time.monotonic() - began, budget_s), budget_s)
        elif tries is not None:
            progress(min(len(tried), tries), tries)

    runner = Runner(
        base, axes, goal, workers=workers, executor=executor, ends_s=math.inf, on_progress=on_progress
    )
    with Kept(what, out, over=True) as kept, runner:
        manifest, runner.store = kept.manifest, kept.store
        hunting = Stages(
            base, axes, goal, own_values(base, axes), seeds, finds, keep, began, budget_s, runner, tried
        )
        try:
            hunting.begin()
            hunting.search(sampler, tries, on_progress)
            hunting.pick(SPARE)
            if hunting.found:
                hunting.check()
                hunting.minimise()
                hunting.confirm()
        except (KeyboardInterrupt, PacelineError) as error:
            if not hunting.found and tried:
                hunting.pick()
            stopped = hunting.result(manifest)
            if out is not None and tried:
                stopped = _write(stopped, Path(out))
            if isinstance(error, PacelineError):
                raise
            raise HuntStopped(len(tried), len(stopped.finds), None if out is None else str(out)) from None
        result = hunting.result(manifest)
        return result if out is None else _write(result, Path(out))


def _range_text(axis: Axis) -> str:
    if isinstance(axis, Range):
        return "..".join(axis.ends_text()) + (" (logarithmic)" if axis.logarithmic else "")
    return ", ".join(axis.values())
