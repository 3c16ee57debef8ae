"""Campaigns: schemes run in alternation, case by case and test by test, over a simulated, emulated or real path.

A campaign file (TOML) names scenarios and what differs between schemes and between cases:

    name = "wide-area"
    scenario = "wide-area.toml"        # of every case that names no scenario
    tests = 12
    rest = "5 s"                       # pause between two runs in real time

    [scheme.tcp]
    set = { "flow.media.cc" = "newreno" }
    [scheme.tfrc]
    set = { "flow.media.cc" = "tfrc" }

    [case.alone]
    [case.reverse]
    scenario = "wide-area-reverse.toml"
    [case.rates]                       # a case for each step; paths that vary together share a key
    vary = { "link.bottleneck.rate,link.bottleneck.delay" = [["1 Mbit/s", "50 ms"], ["4 Mbit/s", "5 ms"]] }

Test k runs every case with every scheme in turn, with seed k, so that changes of the path over time affect all schemes
alike. The results are those of a sweep over `case` and `scheme`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline import _core
from paceline.arguments import checked
from paceline.axes import combinations, named, short
from paceline.emulator.realtime_queue import RATE_EVERY_S, Runner, in_turn
from paceline.errors import PacelineError
from paceline.files.package_data import find
from paceline.results.results import Results
from paceline.results.store import Kept
from paceline.scenarios.scenario import load, toml_value, written
from paceline.scenarios.schemas import MAX_TESTS
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Point, Progress, check_recordings, run_points, seeds_from
from paceline.studies.strict import Table, read_toml, settings
from paceline.studies.study import Settings

AXES = ("case", "scheme")


@dataclass(frozen=True)
class Campaign:
    """A campaign, read and checked."""

    name: str
    description: str
    tests: int
    rest_s: float
    points: tuple[Point, ...]
    """By case, then by scheme; the labels name both."""

    def seconds(self, tests: int | None = None) -> float:
        """The campaign's duration in real time, in seconds."""
        once = sum(point.scenario.duration_s + self.rest_s for point in self.points)
        return once * (self.tests if tests is None else tests)


@checked()
def read(path: str | Path, changes: Mapping[str, Any] | None = None) -> Campaign:
    """Reads a campaign and every scenario it names; `changes` are set in all of them, last. Raises ScenarioError, and
    PacelineError, which names the file and the key."""
    file = Path(find(str(path)))
    values = read_toml(file)
    if "scheme" not in values and "flow" in values:
        raise PacelineError(
            f"{path}: this is a scenario. A campaign names it (scenario = ...) and the schemes that it runs with, "
            "as examples/campaigns/wide-area.toml does; `paceline run` and `paceline emulate` run the scenario alone"
        )
    table = Table(file.name, values)
    name = table.take("name", str, file.stem)
    description = table.take("description", str, "")
    tests = table.take("tests", int, 1)
    if not 1 <= tests <= MAX_TESTS:
        raise PacelineError(f"{file.name}.tests: must be 1 to {MAX_TESTS}, not {tests}")
    common = table.take("scenario", str, None)
    rest_s = _rest(file.name, table.take("rest", str, "0 s"))
    schemes = {}
    for key, entry in _tables(table, "scheme", ...):
        schemes[key] = settings(entry)
        entry.end()
    cases = []
    for key, entry in _tables(table, "case", {"": {}}):
        scenario = entry.take("scenario", str, common)
        if scenario is None:
            raise PacelineError(
                f"{file.name}: scenario is missing: give one for all cases, or one for {key or 'each case'}"
            )
        sets, varied = settings(entry), entry.take("vary", dict, {})
        entry.end()
        for steps, labels in _steps(entry.where, varied):
            steps_text = ", ".join(f"{name}={labels[path]}" for path, name in short(list(labels)).items())
            label = ", ".join(part for part in (key, steps_text) if part)
            cases.append((label, file.parent / scenario, (*sets, *steps)))
    table.end()
    points = []
    for case, scenario, sets in cases:
        for scheme, more in schemes.items():
            loaded = load(scenario, {**dict(sets), **dict(more), **(changes or {})})
            points.append(Point(loaded, {"case": case or loaded.name, "scheme": scheme}))
    return Campaign(name, description, tests, rest_s, tuple(points))


def _tables(table: Table, key: str, default: Any) -> list[tuple[str, Table]]:
    entries = table.take(key, dict, default)
    if not entries:
        raise PacelineError(f"{table.where}: needs at least one [{key}.NAME]")
    return [(name, Table(f"{table.where}: {key}.{name}", entry)) for name, entry in entries.items()]


def _steps(where: str, vary: Mapping[str, Any]) -> list[tuple[Settings, Mapping[str, Any]]]:
    """The steps of a case: each step's settings and its labels. Raises PacelineError."""
    try:
        found = combinations(named(vary))
    except PacelineError as error:
        raise PacelineError(f"{where}.vary: {error}") from None
    return [(tuple((p, toml_value(v)) for p, v in changes.items()), labels) for changes, labels in found]


def _rest(where: str, text: str) -> float:
    try:
        return _core.quantity(text, "s")
    except ValueError as error:
        raise PacelineError(f"{where}.rest: {error}") from None


@checked()
def run(
    campaign: Campaign,
    *,
    over: str = "simulator",
    runner: Runner | None = None,
    tests: int | None = None,
    record: Sequence[str] = ("rate",),
    record_every_s: float = RATE_EVERY_S,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Results:
    """Runs a campaign: with `runner` in real time, one run after the other, else simulated; `over` names what it runs
    over.

    With `out`, finished runs are kept there, and an interrupted campaign resumes. Tables have the columns `case` and
    `scheme`; the seed is the test's number. Raises PacelineError, StorageError, Interrupted.
    """
    seeds = seeds_from(1, campaign.tests if tests is None else tests)
    what = {
        "kind": "campaign",
        "name": campaign.name,
        "scenario": [written(point.scenario)["scenario"] for point in campaign.points],
        "identity": [written(point.scenario)["identity"] for point in campaign.points],
        "over": over,
        "vary": {axis: list(dict.fromkeys(point.labels[axis] for point in campaign.points)) for axis in AXES},
        "seeds": seeds,
        "record": check_recordings(record, record_every_s),
        "record_every_s": record_every_s,
    }
    run_all = (
        functools.partial(run_points, workers=workers, executor=executor)
        if runner is None
        else functools.partial(in_turn, runner=runner, over=over, rest_s=campaign.rest_s)
    )
    with Kept(what, out, fresh=fresh) as kept:
        records = run_all(
            campaign.points,
            seeds,
            record=record,
            record_every_s=record_every_s,
            store=kept.store,
            progress=progress,
        )
        return kept.results(records)
