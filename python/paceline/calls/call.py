"""`paceline.call`: a scenario in real time with Chromium's calls as its `gcc` flows."""

from __future__ import annotations

import functools
import shlex
import signal
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from paceline import _core, files, realtime
from paceline.arguments import checked
from paceline.calls import browser, camera, ends, plan, tables
from paceline.emulator import paths
from paceline.emulator.realtime_queue import OverPaths, kept_in_turn
from paceline.errors import LiveError, PacelineError
from paceline.live import linux
from paceline.results.recordings import REAL_SERIES
from paceline.results.results import Results, RunRecord
from paceline.results.store import Store
from paceline.scenarios.scenario import ScenarioLike, load, written
from paceline.simulate.points import seeds_from

KIND = "call"
"""The kind in the manifest of such a run directory."""
RECORD_EVERY_S = 0.2
"""The interval of getStats: short enough for a second's rates, and cheap compared with a call."""
MAX_READY_S = 600.0
_QUEUE_EVERY_S = 0.02
_PATIENCE_S = 20.0
_RECORD = ("rate", "rtcp", "queue")


@dataclass(frozen=True)
class _Plan:
    """The common part of a scenario's runs: its resolved table, its calls, its path's file, its other flows, the
    browser, the folder for the browsers' own logs, and the browsers' start-up time."""

    table: Mapping[str, Any]
    calls: list[dict[str, Any]]
    path: str
    others: _core.Scenario | None
    program: str
    event_logs: Path | None
    ready_s: float

    @property
    def lead_s(self) -> float:
        """The delay of the scenario's beginning after the path's."""
        return ends.lead_s(self.ready_s)


@checked()
def call(
    scenario: ScenarioLike,
    seed: int | None = None,
    runs: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    *,
    out: str | Path | None = None,
    event_logs: str | Path | None = None,
    ready_s: float = ends.READY_S,
) -> Results:
    """Runs a scenario in real time with Chromium's WebRTC as its `gcc` flows, one run after the other.

    Between two namespaces is the path that `paceline path` makes of the links. A headless Chromium runs at each end;
    the near one sends a separate video in each call, from the flow's start to its stop, at most at the encoder's
    `max_rate`. All other flows are as in `paceline.emulate`. Seeds are those of the path's random draws. Tables and the
    recordings `rate`, `rtcp` and `queue` are those of a simulated run, null where a browser reports nothing
    (docs/chromium.md). `event_logs` is a folder for the browsers' own logs (RtcEventLog), one per connection and end,
    for `paceline.call_log`. The browsers have `ready_s` to start, 1 to 600 s; the path runs that much longer before the
    scenario begins. `out` is as in `paceline.emulate`. Raises NeedsLinux, PathError, PacelineError, ScenarioError,
    StorageError, Interrupted.
    """
    linux.needed("a real call")
    if not 1 <= ready_s <= MAX_READY_S:
        raise PacelineError(f"ready_s = {ready_s:g}: must be 1 s to {MAX_READY_S:g} s, for browsers to start")
    loaded = load(scenario, set)
    seeds = seeds_from(loaded.seed if seed is None else seed, runs)
    program = browser.find()
    planned = _planned(loaded, program, None if event_logs is None else Path(event_logs), ready_s)
    version = browser.version(program)
    what = {
        "kind": KIND,
        "name": loaded.name,
        **written(loaded),
        "seeds": seeds,
        "browser": version,
        "record": list(_RECORD),
        "record_every_s": RECORD_EVERY_S,
    }
    return kept_in_turn(
        loaded,
        seeds,
        OverPaths(functools.partial(_run, planned)),
        what,
        out,
        over=f"a call by {version}",
        record=_RECORD,
        record_every_s=RECORD_EVERY_S,
    )


def _planned(scenario: _core.Scenario, program: str, event_logs: Path | None, ready_s: float) -> _Plan:
    """Raises PacelineError for what no real path, live flow or call supports."""
    table = tomllib.loads(scenario.to_toml())
    calls, path = plan.calls(table), plan.path(table, ends.lead_s(ready_s))
    flows = {name: flow for name, flow in table["flow"].items() if flow["cc"] != plan.CC}
    others = load({**table, "flow": flows}) if flows else None
    if others is not None:
        realtime.flows(others, others.seed)
    return _Plan(table, calls, path, others, program, event_logs, ready_s)


def _run(
    planned: _Plan,
    scenario: _core.Scenario,
    seed: int,
    record: Sequence[str],
    record_every_s: float,
    *,
    stop: _core.PathStop,
) -> RunRecord:
    """Runs once. Raises PacelineError if a call was not established."""
    with tempfile.TemporaryDirectory(prefix="paceline-", ignore_cleanup_errors=True) as name:
        where = Path(name)
        _prepare(where, planned, scenario.duration_s, record_every_s)
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
            " from paceline.calls import ends; getattr(ends, sys.argv[1])(*sys.argv[2:])"
        )
        here = [sys.executable, "-c", code]
        far = shlex.join([*here, "far", name, planned.program, str(planned.ready_s)])
        ran = paths.path(
            where / "path.toml",
            [
                *(*here, "near", name, planned.program, str(seed)),
                *(str(realtime.RECORD_EVERY_S), str(planned.ready_s)),
            ],
            far=f"{far} 2>{shlex.quote(str(where / 'far-errors.txt'))}",
            for_s=planned.lead_s + scenario.duration_s + _PATIENCE_S,
            seed=seed,
            record_every_s=_QUEUE_EVERY_S,
            stop=stop,
        )
        if ran.status == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        if ran.status != 0:
            raise LiveError(f"{scenario.name}: {_failure(where)}")
        if planned.event_logs is not None:
            _keep(where, planned.event_logs, seed)
        whole = _record(where, planned, ran, seed)
        return RunRecord(seed, whole.summary, {kind: whole.series[kind] for kind in record})


def _keep(where: Path, kept: Path, seed: int) -> None:
    """Copies the event logs of both ends, in the order of their connections. Raises StorageError."""
    files.make_directory(kept)
    for end in ("near", "far"):
        logs = sorted(browser.event_logs(where, end).iterdir(), key=lambda log: log.stat().st_mtime_ns)
        for number, log in enumerate(logs, 1):
            files.write_whole(kept / f"seed-{seed}-{end}-{number}.rtceventlog", log.read_bytes())


def _prepare(where: Path, planned: _Plan, lasts_s: float, every_s: float) -> None:
    """Writes the files that both ends read. Raises StorageError."""
    width, height = plan.picture(planned.calls)
    files.write_whole(where / "path.toml", planned.path)
    files.write_json(
        where / "plan.json",
        {
            "calls": planned.calls,
            "duration_s": lasts_s,
            "every_s": every_s,
            "width": width,
            "height": height,
            "frame_rate": plan.FRAME_RATE,
        },
    )
    camera.write(where / "camera.y4m", width, height, plan.FRAME_RATE)
    if planned.others is not None:
        files.make_directory(where / ends.OTHERS)
        realtime.write_scenario(where / ends.OTHERS, planned.others)


def _failure(where: Path) -> str:
    """Why the near end ended early."""
    for name in (ends.FAILED, f"{ends.OTHERS}/near.txt", "near-notes.txt"):
        if (where / name).exists():
            return (where / name).read_text().strip()
    return "no reason was given; this host may be too busy"


def _record(where: Path, planned: _Plan, ran: paths.PathRun, seed: int) -> RunRecord:
    """The run as tables and recordings."""
    (summary,) = ran.results.summaries
    table = planned.table
    lasts, warm = (_core.quantity(table[key], "s") for key in ("duration", "warmup"))
    zero = float(ran.report["start"]) + planned.lead_s
    flows, rates, gauges = [], [], []
    for one in planned.calls:
        near, far = (
            tables.rows(where / f"{end}-rows.jsonl", one["name"], zero, one["stop_s"])
            for end in ("near", "far")
        )
        if not near or not far:
            raise LiveError(f"{table['name']}: call {one['name']} was not established: {_failure(where)}")
        of = (pl.lit(one["name"]).alias("flow"), pl.lit(0, pl.Int64).alias("instance"))
        flows.append(tables.flow(one, near, far, warm))
        rates.append(tables.rate(near, far, one["start_s"]).select(*of, pl.all()))
        gauges.append(tables.rtcp(near).select(*of, pl.all()))
    others = Store(where / ends.OTHERS).get("near", seed, REAL_SERIES)
    if others is not None:
        flows += others.summary["flows"]
        rates.append(_moved(others, float((where / ends.OTHERS / ends.ZERO).read_text())))
    queue = tables.queue(ran.results.series("queue"), planned.lead_s, lasts)
    whole = {
        **summary,
        "name": table["name"],
        "seed": seed,
        "duration_s": lasts,
        "warmup_s": warm,
        "end_s": lasts,
        "measured_s": lasts - warm,
        "flows": flows,
        "queues": tables.queues(summary["queues"], queue, lasts / ran.report["duration_s"]),
        "notes": {"lag": ran.report["lag"], "host": ran.report["host"]},
    }
    series = {
        "rate": pl.concat(rates, how="diagonal"),
        "rtcp": pl.concat(gauges, how="diagonal"),
        "queue": queue,
    }
    return RunRecord(seed, whole, series)


def _moved(others: RunRecord, zero: float) -> pl.DataFrame:
    """The rates of the other flows, with times since the scenario's `zero` (by `time.monotonic`) instead of since their
    ends connected."""
    began = [flow["began_s"] for flow in others.summary["notes"]["flows"] if flow.get("began_s") is not None]
    late = min(began) - zero if began else 0.0
    return others.series["rate"].with_columns(pl.col("time_s") + late)
