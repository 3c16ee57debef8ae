"""`paceline.run`: one scenario, one or more seeds."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.arguments import checked
from paceline.emulator import quic_logs
from paceline.errors import PacelineError
from paceline.results.recordings import MAX_RUNS, RECORD_EVERY_S, Recording
from paceline.results.results import Results
from paceline.results.store import Kept, claim
from paceline.scenarios.scenario import ScenarioLike, Schemes, load, written
from paceline.simulate.executor_like import ExecutorLike
from paceline.simulate.points import Captured, Point, Progress, check_recordings, run_points, seeds_from
from paceline.simulate.until import parsed, run_until


@checked()
def run(
    scenario: ScenarioLike,
    seed: int | None = None,
    runs: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record: Sequence[Recording] = (),
    *,
    record_every_s: float = RECORD_EVERY_S,
    workers: int | None = None,
    executor: ExecutorLike | None = None,
    out: str | Path | None = None,
    pcap: str | Path | None = None,
    pcap_at: Sequence[str] = (),
    qlog: str | Path | None = None,
    until: str | Sequence[str] = (),
    most: int = MAX_RUNS,
    schemes: Schemes | None = None,
    progress: Progress | None = None,
) -> Results:
    """Runs a scenario (a TOML file's path, or a loaded one) with seeds seed, seed + 1, ..., seed + runs - 1.

    `seed` defaults to the scenario's; `set` replaces values at TOML paths; `record` names what to record over time
    (cwnd, queue, rate, rtcp, sequence, losses, acks, tfrc, playout, arrivals, frames, airtime, windows), every
    `record_every_s` seconds. With `out` the results are also written there; of several runs, each is stored as it ends,
    and the same call resumes interrupted ones. `pcap` is a file for the packets of a single run as pcapng, as they
    leave and reach hosts: those named in `pcap_at`, or all. `qlog` is a new or empty folder for the QUIC logs of a
    single run, one file per connection and end, which `paceline.qlog` reads. `schemes` maps names that flows have in
    `cc` to your classes. `executor`, any `concurrent.futures.Executor` or a name as "dask=ADDRESS"
    (`paceline.simulate.executors.opened`), makes the runs elsewhere. With `until`, as "goodput_bps 1 %" or several,
    seeds are added until the 95 % intervals of those measures are that narrow, with at most `most` runs
    (`paceline.simulate.until`).

    Raises ScenarioError, ControllerError, PacelineError, StorageError, Interrupted.
    """
    of_one_run(runs, until, pcap=pcap, qlog=qlog)
    if pcap is None and pcap_at:
        raise PacelineError("pcap_at needs pcap: give the capture's file")
    untils = parsed(until)
    loaded = load(scenario, set, schemes)
    if qlog is not None:
        quic_logs.folder(qlog, tomllib.loads(loaded.to_toml()))
    seeds = seeds_from(loaded.seed if seed is None else seed, runs)
    what = {
        "kind": "run",
        "name": loaded.name,
        **written(loaded),
        "seeds": seeds,
        "record": check_recordings(record, record_every_s),
        "record_every_s": record_every_s,
        **({"until": [one.text for one in untils], "most": most} if untils else {}),
    }
    # Several runs are stored as they end; for a single run the old results stay until the new ones exist.
    several = runs > 1 or bool(untils)
    with Kept(what, out if several else None, over=True) as kept, claim(None if several else out, "run"):
        how: dict[str, Any] = {
            "record": record,
            "record_every_s": record_every_s,
            "workers": workers,
            "executor": executor,
            "store": kept.store,
            "progress": progress,
        }
        if untils:
            records = run_until([Point(loaded)], seeds[0], untils, min_runs=runs, max_runs=most, **how)
            kept.manifest["seeds"] = [record.seed for record in records]
        else:
            captured = None
            if pcap is not None or qlog is not None:
                file, folder = (None if where is None else Path(where) for where in (pcap, qlog))
                captured = Captured(file, pcap_at, folder)
            records = run_points([Point(loaded)], seeds, captured=captured, **how)
        results = Results(records, kept.manifest)
        if out is not None:
            results.write(out)
    return results


def of_one_run(runs: int, until: str | Sequence[str] = (), **places: str | Path | None) -> None:
    """Raises PacelineError if one of these `places`, which are written during a run, is set and there are several
    runs."""
    for word, where in places.items():
        if where is not None and runs != 1:
            raise PacelineError(f"{word}: a capture holds one run, not {runs}: leave out {word}, or runs")
        if where is not None and parsed(until):
            raise PacelineError(f"{word}: a capture holds one run: leave out {word}, or until")
