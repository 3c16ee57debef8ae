"""Runs a scenario in real time: its flows on real sockets, over an emulated path made of its links.

The two ends are separate programs in separate network namespaces: a server as of `paceline serve`, and a client that
requests the scenario's flows from it. Between them is the path that `paceline path` makes of the links. Senders,
receivers, controllers, applications and players are the simulated ones; a flow with `kernel = true` is the kernel's
TCP. Access links and host delays are left out, because the hosts are real. A flow's own round-trip time is emulated:
the path tells flows apart by their ports.
"""

from __future__ import annotations

import functools
import json
import os
import pickle
import shlex
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import numpy.typing as npt
import polars as pl

from paceline import _core, files
from paceline.arguments import checked
from paceline.emulator import paths, quic_logs
from paceline.emulator.realtime_queue import OverPaths, Runner, kept_in_turn
from paceline.errors import ControllerError, LiveError, PacelineError, PathError, ScenarioError
from paceline.live import linux
from paceline.live.real_runs import live_record
from paceline.live.send import check_flows, listen
from paceline.results.recordings import PORT, REAL_SERIES
from paceline.results.results import Results, RunRecord
from paceline.results.store import Store
from paceline.scenarios.scenario import ScenarioLike, Schemes, load, toml_value, written
from paceline.simulate.points import Progress, check_recordings, seeds_from
from paceline.simulate.run import of_one_run

RECORD_EVERY_S = 0.1
"""Default recording interval. The flows themselves record at no longer intervals, since binned rates need that."""
PATIENCE_S = 60.0
"""How long a run may last beyond its duration before it is ended."""
_FIRST_PORT = 20_000
"""The client's port of the first flow; below the kernel's ephemeral ports."""
_STARTS_S = 20.0
"""How long the client waits for the server to listen."""

STARTED = 0.9
"""The share of its mean rate at which a flow's start-up is over, as in the simulator."""

Flow = tuple[str, int, list[tuple[str, str]], int, int, bool, str | None, str | None]
"""A flow as requested from a server: name, instance, settings, milliseconds, seed, whether the client sends it, the
kernel's congestion control, and its name within its bundle."""

_SCENARIO = "scenario.pickle"
_BEGINNING = "beginning"
"""The pipe in a run's folder through which the flows tell the path that they have begun."""

_OF_SCENARIO = ("count", "from", "to", "rtt", "group", "kernel", "stop", "name", "start", "bundle")
"""Keys of a scenario's flow table that a live flow does not have; `start` and `bundle` are set per instance."""
_KERNELS = {"newreno": "reno", "sack": "reno"}
"""TCP schemes that have another name in the kernel: its Reno includes SACK and NewReno's recovery."""


def emulate(
    scenario: _core.Scenario,
    seed: int,
    record: Sequence[str] = (),
    record_every_s: float = RECORD_EVERY_S,
    *,
    pcap: str | Path | None = None,
    qlog: Path | None = None,
    stop: _core.PathStop | None = None,
) -> RunRecord:
    """Runs a scenario once in real time. Tables and recordings are those of a simulated run, with nulls where a real
    run cannot measure. Flows are measured from the end of the warm-up to the end of the run; links as long as the path
    exists.

    `qlog` is a folder for both ends' QUIC logs. With `stop`, which ends the run from another thread, signals are not
    handled here. Raises PathError if the system refuses what a path needs, PacelineError if no real path can carry the
    scenario or if the flows fail, ScenarioError.
    """
    check(scenario, seed)
    with tempfile.TemporaryDirectory(prefix="paceline-") as name:
        where = Path(name)
        files.write_whole(where / "scenario.toml", scenario.path_toml())
        write_scenario(where, scenario)
        for trace, text in scenario.traces():
            target = where / trace
            if not target.is_relative_to(where) or ".." in Path(trace).parts:
                continue  # the path names it from outside this folder, and it is there already
            files.make_directory(target.parent)
            files.write_whole(target, text)
        if qlog is not None:
            quic_logs.prepare(where)
        # Ctrl-C in a terminal also reaches the ends, which should exit without a traceback.
        call = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL);"
            " from paceline import realtime; getattr(realtime, sys.argv[1])(*sys.argv[2:])"
        )
        client = [sys.executable, "-c", call, "run_client", str(where), str(seed), str(record_every_s)]
        server = shlex.join([sys.executable, "-c", call, "run_server", str(where)])
        ran = paths.path(
            where / "scenario.toml",
            client,
            far=f"{server} 2>{shlex.quote(str(where / 'far.txt'))}",
            for_s=scenario.duration_s + PATIENCE_S,
            seed=seed,
            record_every_s=record_every_s if "queue" in record else None,
            pcap=pcap,
            ports=_FIRST_PORT,
            beginning=where / _BEGINNING,
            stop=stop,
        )
        if qlog is not None:
            quic_logs.keep(where, qlog, flows(scenario, seed))
        if ran.status == 128 + signal.SIGINT:
            raise KeyboardInterrupt
        kept = Store(where).get("near", seed, REAL_SERIES)
        if ran.status != 0 or kept is None:
            said = _said(where / "near.txt") or _said(where / "far.txt")
            raise PacelineError(f"{scenario.name}, in real time: {said or 'the flows did not end'}")
        # Its recordings are files in the temporary directory: read them before it is removed.
        kept = replace(kept, series=dict(kept.series))
        server_error = _said(where / "far.txt")
    try:
        check_moved(kept, scenario.name)
    except PacelineError as error:
        raise PacelineError(f"{error}\n{server_error}".rstrip()) from None
    return _whole(kept, ran, scenario, record, record_every_s)


def _said(file: Path) -> str:
    return file.read_text().strip() if file.exists() else ""


class Emulator(OverPaths):
    """Runs scenarios as `emulate` does."""

    def __init__(self, qlog: Path | None = None) -> None:
        """`qlog` is a folder for the QUIC logs of one run."""
        linux.needed("a run in real time")
        super().__init__(functools.partial(emulate, qlog=qlog))


@checked()
def run(
    scenario: ScenarioLike,
    seed: int | None = None,
    runs: int = 1,
    set: Mapping[str, Any] | None = None,  # noqa: A002 (the word of the command line)
    record: Sequence[str] = (),
    *,
    record_every_s: float = RECORD_EVERY_S,
    out: str | Path | None = None,
    qlog: str | Path | None = None,
    schemes: Schemes | None = None,
    progress: Progress | None = None,
) -> Results:
    """`paceline.emulate`: run a scenario in real time, with seeds seed, seed + 1, ..., one run after the other.

    Tables, `qlog` and `out` are as in `paceline.run`. If the runs in `out` had all finished, the same call runs them
    again. Raises PathError, PacelineError, ScenarioError, StorageError, Interrupted.
    """
    of_one_run(runs, qlog=qlog)
    loaded = load(scenario, set, schemes)
    seeds = seeds_from(loaded.seed if seed is None else seed, runs)
    check(loaded, seeds[0])
    logs = None if qlog is None else quic_logs.folder(qlog, _table(loaded))
    what = {
        "kind": "emulation",
        "name": loaded.name,
        **written(loaded),
        "seeds": seeds,
        "record": check_recordings(record, record_every_s, REAL_SERIES),
        "record_every_s": record_every_s,
    }
    return kept_in_turn(
        loaded,
        seeds,
        Emulator(logs),
        what,
        out,
        over="emulator",
        record=record,
        record_every_s=record_every_s,
        progress=progress,
    )


class Host:
    """Runs a scenario's flows to and from `paceline serve` on a host, over the real path between: the scenario's links
    are not used."""

    def __init__(self, host: str, port: int = PORT, key: bytes | None = None) -> None:
        self._to = (host, port, key)
        self._watch = _core.SendWatch()

    def __call__(
        self, scenario: _core.Scenario, seed: int, record: Sequence[str], record_every_s: float
    ) -> RunRecord:
        """Runs once. Raises PacelineError if the server refuses."""
        host, port, key = self._to
        kept = _request_flows(host, port, scenario, seed, record_every_s, key=key, watch=self._watch)
        check_moved(kept, scenario.name)
        return _measured(kept, {**kept.summary, "seed": seed}, scenario, record, record_every_s)

    def stop(self) -> None:
        """Stops the current run; no further run can start."""
        self._watch.stop()


def unwell(notes: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """The flows in `notes` that did not end well: name, instance, and what each end reported."""
    return [
        (
            flow["flow"],
            flow["instance"],
            f"sender: {flow['sender_ended'] or 'unknown'}; receiver: {flow['receiver_ended'] or 'unknown'}",
        )
        for flow in notes["flows"]
        if not flow["well"]
    ]


def check_moved(kept: RunRecord, name: str) -> None:
    """Raises PacelineError if a flow failed before any of it arrived: its rate of zero would mean nothing."""
    delivered = {(flow["flow"], flow["instance"]): flow["bytes_delivered"] for flow in kept.summary["flows"]}
    for flow, instance, said in unwell(kept.summary["notes"]):
        if not delivered.get((flow, instance)):
            raise PacelineError(f"{name}, in real time: nothing of flow {flow}[{instance}] arrived. {said}")


def to_host(host: str, port: int = PORT, key: bytes | None = None) -> Runner:
    """Returns a `Host`, which runs a scenario's flows to and from a host."""
    linux.needed("a run in real time")
    return Host(host, port, key)


def _request_flows(
    host: str,
    port: int,
    scenario: _core.Scenario,
    seed: int,
    record_every_s: float,
    *,
    key: bytes | None = None,
    watch: _core.SendWatch | None = None,
    results: Path | None = None,
    ports: int | None = None,
    beginning: Path | None = None,
    qlogs: str | None = None,
) -> RunRecord:
    """Runs a scenario's flows with the server. `ports` is the first flow's port here, `beginning` the pipe at which the
    path below waits for the flows to begin. Raises LiveError and ScenarioError."""
    every_us = round(min(record_every_s, RECORD_EVERY_S) * 1e6)
    measure = (round(warmup_s(scenario) * 1000), round(scenario.duration_s * 1000), every_us)
    requested = flows(scenario, seed)
    folder = None if results is None else str(results)
    output, notes = _core.send(
        host,
        port,
        requested,
        watch or _core.SendWatch(),
        key,
        None,
        measure=measure,
        results=folder,
        ports=ports,
        beginning=None if beginning is None else str(beginning),
        schemes=scenario.schemes,
        qlogs=qlogs,
    )
    kept = live_record(output, seed)
    kept.summary["notes"] = json.loads(notes)
    return kept


def warmup_s(scenario: _core.Scenario) -> float:
    """The time at the beginning that a scenario's measures leave out."""
    return _core.quantity(_table(scenario).get("warmup", "0 s"), "s")


def _table(scenario: _core.Scenario) -> dict[str, Any]:
    return tomllib.loads(scenario.to_toml())


def refused() -> str | None:
    """Why this system cannot run anything over an emulated path; None if it can."""
    try:
        paths.path("wide-area", ["true"])
    except (PathError, linux.NeedsLinux) as error:
        return str(error)
    return None


def check(scenario: _core.Scenario, seed: int) -> None:
    """Raises PacelineError for what no real path or live flow supports, NeedsLinux on another system."""
    linux.needed("a run in real time")
    try:
        check_flows(flows(scenario, seed), scenario.schemes)
        if problem := scenario.unreal():
            raise PacelineError(problem)
    except PacelineError as error:
        raise PacelineError(f"{scenario.file}: {error}") from None


def flows(scenario: _core.Scenario, seed: int) -> list[Flow]:
    """A scenario's flows as requested from a server. Raises PacelineError for what a live flow does not support."""
    found: list[Flow] = []
    table = _table(scenario)
    lasts, ends = table["duration"], scenario.ends
    if ends is None:
        raise PacelineError("topology: a path in real time is a dumbbell or a parking lot, not a graph")
    starts = {(name, instance): start for name, instance, start in scenario.starts(seed)}
    names = list(table["flow"])
    for name, flow in table["flow"].items():
        if flow.get("app", {}).get("kind") == "relay":
            raise PacelineError(
                f"flow.{name}.app: relays run only in the simulator (paceline run); in real time leave flow {name} out"
            )
        here, there = flow.get("from", ends[0]), flow.get("to", ends[1])
        if {here, there} != set(ends):
            raise PacelineError(
                f"flow.{name}: in real time flows run between {ends[0]} and {ends[1]}, not from {here} to {there}"
            )
        if "access" in flow:
            raise PacelineError(f"flow.{name}.access: in real time there are no access links; leave it out")
        if "bundle" in flow and table["flow"][flow["bundle"].get("with", name)].get("transport") == "quic":
            raise PacelineError(
                f"flow.{name}.bundle: flows cannot share a QUIC connection in real time; leave `bundle` out and give "
                "each flow its own `cc` and `transport`, or use `paceline run`"
            )
        settings = [(key, toml_value(v)) for key, v in flow.items() if key not in _OF_SCENARIO]
        number = round(_core.quantity(flow.get("stop", lasts), "s") * 1000)
        kernel = _KERNELS.get(flow["cc"], flow["cc"]) if flow.get("kernel") else None
        for instance in range(flow.get("count", 1)):
            own_seed = (seed * 1_000_003 + len(found)) % 2**62
            own = [*settings, ("start", f"{starts[name, instance]} ns")]
            bundle = flow.get("bundle")
            called = None
            if bundle is not None:
                leader = f"{names.index(bundle.get('with', name))}-{instance}"
                own.append(("bundle.priority", toml_value(bundle["priority"])))
                if "with" in bundle:
                    own.append(("bundle.with", toml_value(leader)))
                else:
                    called = leader
            found.append((name, instance, own, number, own_seed, here == ends[0], kernel, called))
    return found


def _whole(
    kept: RunRecord,
    ran: paths.PathRun,
    scenario: _core.Scenario,
    record: Sequence[str],
    record_every_s: float,
) -> RunRecord:
    """Merges the measurements of flows and path into one run."""
    (path,) = ran.results.summaries
    summary = {**path, **kept.summary, "queues": path["queues"], "seed": kept.seed}
    measured = warmup_s(scenario), scenario.duration_s
    summary["flows"] = [
        flow | _lost(flow, notes, port, ran, measured)
        for port, (flow, notes) in enumerate(
            zip(kept.summary["flows"], kept.summary["notes"]["flows"], strict=True), _FIRST_PORT
        )
    ]
    run = _measured(kept, summary, scenario, record, record_every_s)
    if "queue" not in record:
        return run
    return replace(run, series={**run.series, "queue": ran.results.series("queue").drop("seed")})


def _lost(
    flow: Mapping[str, Any],
    notes: Mapping[str, Any],
    port: int,
    ran: paths.PathRun,
    measured: tuple[float, float],
) -> dict[str, float | None]:
    """The path's drops of a flow within the measured interval; empty for a flow that never began."""
    began = notes.get("began_s")
    if began is None:
        return {}
    lost = ran.lost(port, flow["from"] == "here", *(began + at for at in measured))
    return {"packets_lost": lost, "loss_rate": lost / flow["packets_sent"] if flow["packets_sent"] else None}


def _measured(
    kept: RunRecord,
    summary: dict[str, Any],
    scenario: _core.Scenario,
    record: Sequence[str],
    record_every_s: float,
) -> RunRecord:
    """The run with the measures that `rate_bin` defines, and only the requested recordings."""
    table, warm = _table(scenario), warmup_s(scenario)
    notes = summary["notes"]
    # `began_s` is on this machine's monotonic clock, which means nothing elsewhere.
    ends = [{key: value for key, value in flow.items() if key != "began_s"} for flow in notes["flows"]]
    summary |= {
        "notes": notes | {"flows": ends},
        "name": scenario.name,
        "duration_s": scenario.duration_s,
        "warmup_s": warm,
        "measured_s": summary["end_s"] - warm,
    }
    rates = kept.series.get("rate")
    bin_s = _core.quantity(table["rate_bin"], "s") if "rate_bin" in table else None
    if rates is not None and bin_s is not None:
        active = {
            (flow["flow"], flow["instance"]): (
                flow["start_s"],
                min(scenario.duration_s, _stop_s(table, flow["flow"])),
            )
            for flow in summary["flows"]
        }
        measured = _of_rates(rates, bin_s, warm, active)
        summary["flows"] = [
            flow | measured.get((flow["flow"], flow["instance"]), {}) for flow in summary["flows"]
        ]
    series = {
        kind: _thinned(kind, frame, record_every_s) for kind, frame in kept.series.items() if kind in record
    }
    return RunRecord(kept.seed, summary, series)


def _thinned(kind: str, frame: pl.DataFrame, every_s: float) -> pl.DataFrame:
    """A recording at longer intervals than the flows': the mean of rates, the sum of counts (`losses`, `frames`), the
    last value of everything else."""
    of = [name for name in ("flow", "instance", "direction") if name in frame.columns]
    rest = [name for name in frame.columns if name not in (*of, "time_s")]
    number = (pl.col("time_s") / every_s - 1e-6).ceil().alias("interval")
    # A rate covers the time since the previous value, and that time varies on a busy host.
    length = pl.col("time_s").diff().over(of).fill_null(pl.col("time_s")).alias("length")
    moved = [
        (
            (pl.col(name) * pl.col("length")).sum()
            / pl.col("length").filter(pl.col(name).is_not_null()).sum()
        ).fill_nan(None)
        for name in rest
    ]
    if kind == "rate":
        values = moved
    elif kind == "losses":
        values = [_counted(name) for name in rest]
    elif kind == "frames":
        values = [_framed(name) for name in rest]
    else:
        values = [pl.last(name) for name in rest]
    return (
        frame.with_columns(number, length)
        .group_by(*of, "interval", maintain_order=True)
        .agg(pl.last("time_s"), *values)
        .select(frame.columns)
    )


def _counted(name: str) -> pl.Expr:
    """A column of `losses` over several intervals: sums of counts, means weighted by samples, the last window."""
    if name == "cwnd_packets":
        return pl.last(name)
    if not name.endswith("_mean_s"):
        return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum())
    samples = pl.col(f"{name.removesuffix('_mean_s')}_samples")
    known = samples > 0
    mean = (pl.col(name) * samples).filter(known).sum() / samples.filter(known).sum()
    return mean.alias(name)


def _framed(name: str) -> pl.Expr:
    """A column of `frames` over several intervals: frames are summed; mean and maximum delay; how long the
    picture has been frozen at the end."""
    frames = pl.col("frames")
    known = frames.filter(pl.col("frame_delay_s").is_not_null())
    of = {
        "frames": frames.sum(),
        "frame_delay_s": ((pl.col("frame_delay_s") * frames).sum() / known.sum()).fill_nan(None),
        "frame_delay_max_s": pl.max("frame_delay_max_s"),
    }
    return of.get(name, pl.last(name))


def _stop_s(table: dict[str, Any], flow: str) -> float:
    return _core.quantity(table["flow"][flow].get("stop", table["duration"]), "s")


def _of_rates(
    rates: pl.DataFrame, bin_s: float, warm_s: float, active: Mapping[tuple[str, int], tuple[float, float]]
) -> dict[tuple[str, int], dict[str, float | None]]:
    """Each flow's `goodput_cov`, `startup_s` and `send_rate_cov`, from rates that the ends recorded at arbitrary times,
    over the whole bins after the warm-up between its start and its stop (`active`)."""
    found: dict[tuple[str, int], dict[str, float | None]] = {}
    for (flow, instance), own in rates.group_by("flow", "instance", maintain_order=True):
        start_s, to_s = active[flow, instance]
        from_s = max(warm_s, start_s)
        edges = np.arange(0.0, to_s + bin_s / 1e6, bin_s)
        edges = edges[edges >= from_s - bin_s / 1e6]
        goodput_bps, send_rate_bps = (
            _in_bins(own, column, edges) for column in ("goodput_bps", "send_rate_bps")
        )
        mean = float(goodput_bps.mean()) if len(goodput_bps) else 0.0
        found[flow, instance] = {
            "goodput_cov": _cov(goodput_bps),
            "startup_s": float(edges[int(np.argmax(goodput_bps >= STARTED * mean)) + 1]) - start_s
            if mean > 0
            else None,
            "send_rate_cov": _cov(send_rate_bps),
        }
    return found


def _in_bins(rates: pl.DataFrame, column: str, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The amount moved between the edges, each rate covering the interval that ends at its time; empty with fewer than
    two bins or without such rates."""
    known = rates[column].is_not_nan() & rates[column].is_not_null()
    if len(edges) < 3 or not known.any():
        return np.empty(0)
    times = rates["time_s"].to_numpy()
    moved = np.cumsum(np.nan_to_num(rates[column].to_numpy()) * np.diff(times, prepend=0.0))
    return np.diff(np.interp(edges, times, moved, left=0.0))


def _cov(bins: npt.NDArray[np.float64]) -> float | None:
    """Coefficient of variation; None without bins, or if nothing moved."""
    mean = float(bins.mean()) if len(bins) else 0.0
    return float(bins.std()) / mean if mean > 0 else None


def run_client(folder: str, number: str, every_s: str) -> None:
    """The client at the near end of the path: requests the flows of the scenario in `folder` from the server, with seed
    `number` and recordings every `every_s`, and stores the results there."""
    where, seed = Path(folder), int(number)
    scenario = read_scenario(where)
    until = time.monotonic() + _STARTS_S
    while True:
        try:
            kept = _request_flows(
                os.environ["PACELINE_PEER"],
                PORT,
                scenario,
                seed,
                float(every_s),
                results=where / "far",
                ports=_FIRST_PORT,
                beginning=where / _BEGINNING,
                qlogs=quic_logs.of(where, "near"),
            )
            break
        except (ControllerError, LiveError, ScenarioError) as error:
            # On a busy machine the server may start later than the path waits for it.
            if "does `paceline serve` run there" in str(error) and time.monotonic() < until:
                time.sleep(0.1)
                continue
            files.write_whole(where / "near.txt", str(error))
            raise SystemExit(1) from None
    Store(where).put("near", kept)


def write_scenario(where: Path, scenario: _core.Scenario) -> None:
    """Writes what `run_client` and `run_server` run, including the user's own controllers, also those defined in a
    script. Raises StorageError."""
    files.write_whole(where / _SCENARIO, pickle.dumps((sys.path, cloudpickle.dumps(scenario))))


def read_scenario(where: Path) -> _core.Scenario:
    """Reads what `write_scenario` wrote."""
    path, kept = pickle.loads((where / _SCENARIO).read_bytes())  # noqa: S301 (this program wrote it)
    # Controller modules must be found where the calling script found them.
    sys.path += [place for place in path if place not in sys.path]
    scenario = pickle.loads(kept)  # noqa: S301
    assert isinstance(scenario, _core.Scenario)
    return scenario


def run_server(folder: str) -> None:
    """The server at the far end, until it is killed. It leaves its measurements in `folder`: sending them over the path
    would take as long as a flow and disturb others."""
    results = Path(folder) / "far"
    files.make_directory(results)
    # in its own network namespace, which nobody else can reach
    schemes = read_scenario(Path(folder)).schemes
    logs = quic_logs.of(Path(folder), "far")
    bounds = (None, PORT, 10**12, 864_000, 64, None, str(results))
    qlogs = None if logs is None else (logs, *quic_logs.LIMITS)
    server = listen(*bounds, strangers=True, schemes=schemes, qlogs=qlogs)
    try:
        server.run()
    except (ControllerError, LiveError) as error:
        raise SystemExit(str(error)) from None
