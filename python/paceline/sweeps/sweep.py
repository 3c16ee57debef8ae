"""`paceline.sweep`: a scenario at every combination of values, with the same seeds at each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.arguments import checked
from paceline.axes import Vary, check_set, combinations, recorded
from paceline.errors import PacelineError
from paceline.results.recordings import MAX_RUNS, RECORD_EVERY_S, Recording
from paceline.results.results import Results
from paceline.results.store import Kept
from paceline.scenarios.scenario import ScenarioLike, Schemes, load, written
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Point, Progress, Shard, check_recordings, run_points, seeds_from


def grid(scenario: ScenarioLike, vary: Vary) -> list[Point]:
    """The points of a sweep: see `axes.combinations`. Raises PacelineError, and ScenarioError: nothing starts unless
    every point is valid and differs from all others."""
    base = load(scenario)
    points = [Point(load(base, changes), labels) for changes, labels in combinations(vary)]
    known: dict[str, Point] = {}
    for point in points:
        first = known.setdefault(point.identity, point)
        if first is not point:
            raise PacelineError(
                f"{_words(first.labels, point.labels)} and {_words(point.labels, first.labels)} give the same "
                "scenario: leave one out"
            )
    return points


def _words(labels: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The labels in which a point differs from another."""
    return ", ".join(f"{path}={value}" for path, value in labels.items() if other[path] != value)


@checked()
def sweep(
    scenario: ScenarioLike,
    vary: Vary,
    *,
    runs: int = 10,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record: Sequence[Recording] = (),
    record_every_s: float = RECORD_EVERY_S,
    workers: int | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    shard: tuple[int, int] = (1, 1),
    executor: ExecutorLike | None = None,
    until: str | Sequence[str] = (),
    most: int = MAX_RUNS,
    schemes: Schemes | None = None,
    progress: Progress | None = None,
) -> Results:
    """Runs a scenario at every combination of the values in `vary`, each with the same `runs` seeds.

    `vary` maps TOML paths to values, and tuples of paths that vary together to tuples of values (see `paceline.axes`);
    every table of the results has a column per path. With `out`, finished runs are stored there and an interrupted
    sweep resumes; at the end the directory holds the tables too. `shard` (k, n) makes part k of n of the runs, for one
    of n machines: `out` then has no tables, and `merge` combines the parts. `executor`, any
    `concurrent.futures.Executor` or a name as "dask=ADDRESS" (`paceline.simulate.executors.opened`), makes the runs
    elsewhere. With `until`, as "goodput_bps 1 %" or several, each point gets seeds until the 95 % intervals of those
    measures are that narrow, at most `most`: points with more scatter get more (`paceline.simulate.until`).

    Raises ScenarioError, PacelineError, StorageError, Interrupted.
    """
    from paceline.simulate.until import parsed, run_until  # noqa: PLC0415 (it stands on this module)

    part, untils = Shard(*shard), parsed(until)
    if untils and part.parts > 1:
        raise PacelineError("a shard has a fixed number of runs: leave out until, or shard")
    if part.parts > 1 and out is None:
        raise PacelineError("a shard's runs are merged later: give out, the directory that stores them")
    check_set(set or {}, vary)
    base = load(scenario, set, schemes)
    points = grid(base, vary)
    seeds = seeds_from(base.seed if seed is None else seed, runs)
    what = {
        "kind": "sweep",
        "name": base.name,
        **written(base),
        **recorded(vary),
        "seeds": seeds,
        "record": check_recordings(record, record_every_s),
        "record_every_s": record_every_s,
        **({"shard": list(shard)} if part.parts > 1 else {}),
        **({"until": [one.text for one in untils], "most": most} if untils else {}),
    }
    with Kept(what, out, fresh=fresh) as kept:
        how: dict[str, Any] = {
            "record": record,
            "record_every_s": record_every_s,
            "workers": workers,
            "store": kept.store,
            "progress": progress,
            "executor": executor,
        }
        if untils:
            records = run_until(points, seeds[0], untils, min_runs=runs, max_runs=most, **how)
            kept.manifest["seeds"] = sorted({record.seed for record in records})
        else:
            records = run_points(points, seeds, shard=part, **how)
        return kept.results(records) if part.parts == 1 else Results(records, kept.manifest)
