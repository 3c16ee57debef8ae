"""Runs that have the shape of real ones and take no time: a path, and what its ends leave, made of a simulated run.

What `paceline.realtime` and `paceline.calls` do before a run and after it needs no clock: with `stand_in` it is tested
as it is, from what is handed to the ends to tables and messages. `tests/test_emulate_real.py` holds that the shape is
that of a real run.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import paceline
from paceline import _core, realtime
from paceline.calls import ends
from paceline.emulator import paths
from paceline.live.real_runs import live_results
from paceline.results.recordings import Recording
from paceline.results.results import RunRecord
from paceline.results.store import Store

LINK = """
duration = "6 s"
profile = "linux"
rate_bin = "500 ms"
[link.bottleneck]
rate = "4 Mbit/s"
delay = "20 ms"
queue = { limit = "40 packets" }
"""
"""What runs in real time and their stand-ins go over."""

BEGAN_S = 3038.25
"""When flows begin, by the clock of the machine that there is not."""

_KINDS: list[Recording] = [
    "cwnd",
    "rate",
    "rtcp",
    "sequence",
    "losses",
    "tfrc",
    "queue",
    "frames",
    "arrivals",
    "playout",
]
_WARNINGS = threading.Lock()
_UNKNOWN = ("packets_lost", "loss_rate", "goodput_cov", "startup_s", "send_rate_cov", "propagation_rtt_s")
"""What ends do not know of a flow, and what is not known before its rates are looked at."""
_REASONS = (
    "corrupt",
    "delay",
    "device",
    "early",
    "forced",
    "loss",
    "malformed",
    "memory",
    "outage",
    "overflow",
    "policed",
    "retries",
)


class StandIn:
    """In the place of `paths.path`: runs nothing, and leaves what the ends of a path would.

    `made` has the seeds of runs, in order. A seed of `stops` is stopped by Ctrl-C; one of `fails` ends with these words
    of the near end. `drops` has, by port, the seconds from the flows' beginning at which the path drops data.
    Goodputs and round trips are those of a simulated run times `gain`.
    """

    def __init__(
        self,
        *,
        stops: Sequence[int] = (),
        fails: Mapping[int, str] | None = None,
        drops: Mapping[int, Sequence[float]] | None = None,
        lag_s: float = 1e-6,
        gain: float = 1.0,
    ) -> None:
        self.made: list[int] = []
        self.stops = list(stops)
        self.fails = fails or {}
        self.drops = drops or {}
        self.lag_s = lag_s
        self.gain = gain

    def __call__(
        self,
        path: str | Path,
        command: Sequence[str],
        *,
        seed: int | None = None,
        record_every_s: float | None = None,
        **_: Any,
    ) -> paths.PathRun:
        if seed is None:
            return self._path(RunRecord(1, {"flows": [], "queues": [], "end_s": 0.1}), record_every_s)
        if seed in self.stops:
            raise KeyboardInterrupt
        where = Path(path).parent
        if seed in self.fails:
            (where / "near.txt").write_text(self.fails[seed])
            return self._path(RunRecord(seed, {"flows": [], "queues": [], "end_s": 0.1}), record_every_s, 1)
        self.made.append(seed)
        if (where / "plan.json").exists():
            return self._call(where, seed, record_every_s)
        scenario = realtime.read_scenario(where)
        ran = simulated(scenario, seed, realtime.RECORD_EVERY_S)
        near = kept(scenario, ran)
        for flow in near.summary["flows"]:
            flow |= {key: flow[key] and flow[key] * self.gain for key in ("goodput_bps", "rtt_mean_s")}
        Store(where).put("near", near)
        return self._path(ran, record_every_s)

    def _call(self, where: Path, seed: int, record_every_s: float | None) -> paths.PathRun:
        """Browsers that send at half the link's rate, and flows that are no calls."""
        planned = json.loads((where / "plan.json").read_text())
        queue = pl.DataFrame(
            {"link": ["bottleneck"], "direction": ["forward"], "time_s": [ends.lead_s(ends.READY_S) + 0.1]}
        ).with_columns(packets=1.0, bytes=1000.0, delay_s=0.01)
        summary = {"flows": [], "queues": [], "end_s": ends.lead_s(ends.READY_S) + planned["duration_s"]}
        ran = self._path(RunRecord(seed, summary, {"queue": queue}), record_every_s)
        zero = float(ran.report["start"]) + ends.lead_s(ends.READY_S)
        for end, way in (("near", "Sent"), ("far", "Received")):
            lines = []
            for call in planned["calls"]:
                number = round((call["stop_s"] - call["start_s"]) / planned["every_s"])
                for at in (call["start_s"] + planned["every_s"] * (k + 1) for k in range(number)):
                    counts = {f"transport_bytes{way}": 6e4 * at, f"transport_packets{way}": 50 * at}
                    lines.append(json.dumps({"call": call["name"], "at": zero + at, **counts}))
            (where / f"{end}-rows.jsonl").write_text("\n".join(lines) + "\n")
        others = where / ends.OTHERS
        if others.exists():
            scenario = realtime.read_scenario(others)
            Store(others).put("near", kept(scenario, simulated(scenario, seed, realtime.RECORD_EVERY_S)))
            (others / ends.ZERO).write_text(repr(BEGAN_S - 0.25))
        return ran

    def _path(self, ran: RunRecord, record_every_s: float | None, status: int = 0) -> paths.PathRun:
        report = _report(ran, self.lag_s) | {"status": status}
        of_queue = {"delay_mean_s": 0.01, "delay_max_s": 0.02}
        summary = {
            "name": report["name"],
            "seed": ran.seed,
            "duration_s": None,
            "warmup_s": 0.0,
            "end_s": ran.summary["end_s"],
            "measured_s": ran.summary["end_s"],
            "flows": [],
            "streams": [],
            "queues": [queue | of_queue for queue in ran.summary["queues"]],
            "groups": [],
            "notes": [],
            "path": report,
        }
        recorded = ("queue",) if record_every_s is not None and "queue" in ran.series else ()
        series = {kind: ran.series[kind] for kind in recorded}
        results = live_results([RunRecord(ran.seed, summary, series)], paths.KIND, "path")
        return paths.PathRun(status, results, self._lost, report)

    def _lost(self, port: int, from_near: bool, since_s: float, until_s: float) -> int:
        return sum(since_s <= BEGAN_S + at < until_s for at in self.drops.get(port, ()))


def simulated(scenario: _core.Scenario, seed: int, every_s: float) -> RunRecord:
    """A simulated run with all that a real one records."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not every kind is of each scenario
        return paceline.run(scenario, seed=seed, record=_KINDS, record_every_s=every_s).records[0]


def kept(scenario: _core.Scenario, ran: RunRecord) -> RunRecord:
    """What the near end keeps of flows that did as the simulated ones."""
    kernels = {
        (name, instance): kernel for name, instance, *_, kernel, _ in realtime.flows(scenario, ran.seed)
    }
    rows, notes = [], []
    for flow in ran.summary["flows"]:
        ways = (
            ("here", "198.18.0.2") if flow["from"] == (scenario.ends or ("",))[0] else ("198.18.0.2", "here")
        )
        kernel = kernels[flow["flow"], flow["instance"]]
        own = {"cc": kernel, "profile": "kernel"} if kernel else {}
        ended = "time is up" if kernel else "done"
        rows.append(
            {key: None if key in _UNKNOWN or key.startswith("owd_") else value for key, value in flow.items()}
            | {"program": None, "pid": None}
            | own
            | {"from": ways[0], "to": ways[1], "ended": ended}
            | {"active_s": ran.summary["measured_s"]}
        )
        notes.append(
            {
                "flow": flow["flow"],
                "instance": flow["instance"],
                "sender_ended": ended,
                "receiver_ended": ended,
                "well": True,
                "late_p50_s": None if kernel else 3e-5,
                "late_p99_s": None if kernel else 2e-3,
                "garbage": 0,
                "disregarded": 0,
                "no_room": 0,
                "began_s": BEGAN_S,
            }
        )
    end_s = ran.summary["end_s"]
    summary = {
        "name": "live",
        "seed": 1,
        "duration_s": end_s,
        "warmup_s": 0.0,
        "end_s": end_s,
        "measured_s": end_s,
        "flows": rows,
        "streams": ran.summary["streams"],
        "queues": [],
        "groups": ran.summary["groups"],
        "notes": {"server": "198.18.0.2:5050", "host": _host(), "flows": notes},
    }
    series = {kind: table for kind, table in ran.series.items() if kind != "queue"}
    if "rate" in series:
        series["rate"] = _to_the_end(series["rate"], end_s)
    return RunRecord(ran.seed, summary, series)


def _to_the_end(rates: pl.DataFrame, end_s: float) -> pl.DataFrame:
    """A simulated run's end is not recorded; a real one's is."""
    last = rates.group_by("flow", "instance", maintain_order=True).last()
    last = last.filter(pl.col("time_s") < end_s - 1e-9).with_columns(time_s=pl.lit(end_s))
    return pl.concat([rates, last.select(rates.columns)]).sort(
        "flow", "instance", "time_s", maintain_order=True
    )


def _host() -> dict[str, Any]:
    state = {"kernel": "6.1", "cores": 2, "load_1min": 0.5, "steal_ticks": 10, "total_ticks": 1000}
    return {"before": state, "after": state | {"total_ticks": 2000}, "steal_share": 0.0}


def _lateness(count: int, high_s: float) -> dict[str, Any]:
    return {"count": count, "p50_s": high_s, "p95_s": high_s, "p99_s": 2 * high_s, "max_s": 2 * high_s}


def _report(ran: RunRecord, lag_s: float) -> dict[str, Any]:
    """What the emulator says of a path with these links."""
    directions = [
        {
            "direction": way,
            "entered": 100,
            "entered_bytes": 100_000,
            "duplicated": 0,
            "delivered": 100,
            "delivered_bytes": 100_000,
            "in_flight": 0,
            "drops": dict.fromkeys(_REASONS, 0),
            "delay": _lateness(100, 0.02),
            "delay_min_s": 0.02,
        }
        for way in ("forward", "backward")
    ]
    return {
        "name": "scenario",
        "seed": ran.seed,
        "duration_s": ran.summary["end_s"],
        "set_up_s": 1.5,
        "directions": directions,
        "host": _host(),
        "lag": _lateness(200, lag_s),
        "wake": _lateness(200, lag_s),
        "start": "1795928037.304557169",
        "command_start_s": 0.5,
        "far_status": None,
        "status": 0,
        "limited": False,
        "devices": ["tun", "tun"],
        "lost_before": [0, 0],
        "without": [],
    }


def stand_in(monkeypatch: pytest.MonkeyPatch, **how: Any) -> StandIn:
    """Stands for every path of a test; `how` is as of `StandIn`."""
    found = StandIn(**how)
    monkeypatch.setattr(paths, "path", found)
    return found


class Output:
    """What the core gives of a run in real time, without one."""

    def __init__(self, summary: Mapping[str, Any], status: int = 0) -> None:
        self.summary_json = json.dumps(summary)
        self.series: list[_core.Series] = []
        self.status = status

    def lost(self, *_: float) -> int:
        return 0


def path_output(status: int = 0, **changes: Any) -> Output:
    """What `_core.run_path` gives; `told` is what the report says otherwise."""
    report = _report(RunRecord(1, {"end_s": 1.0}), 1e-6) | {"status": status, **changes}
    flows: dict[str, list[Any]] = {"flows": [], "streams": [], "queues": [], "groups": [], "notes": []}
    return Output({"name": "link", "seed": 1, "end_s": 1.0, **flows, "path": report}, status)


def connection(**other: Any) -> dict[str, Any]:
    """The row of a connection that a watch has followed."""
    return {
        "flow": "python",
        "instance": 0,
        "group": "python",
        "cc": "reno",
        "profile": "kernel",
        "from": "127.0.0.1:57470",
        "to": "127.0.0.1:45589",
        "start_s": 0.002,
        "goodput_bps": 6e6,
        "send_rate_bps": 6e6,
        "packets_sent": 30,
        "packets_delivered": 32,
        "packets_retransmitted": 0,
        "rtt_mean_s": 2e-5,
        "rtt_min_s": 1e-5,
        "rtt_max_s": 3e-5,
        "cwnd_mean_packets": 10.0,
        "cwnd_max_packets": 10.0,
        "bytes_delivered": 300_000,
        "active_s": 0.4,
        "ended": "closed",
        "pid": 17_888,
        "program": "python",
        **other,
    }


class Watch:
    """In the place of `_core.TcpWatch`: has followed `flows`, and lasts until it is told to end; without `lasts` it is
    over at once."""

    def __init__(self, flows: Sequence[Mapping[str, Any]] = (), *, lasts: bool = True) -> None:
        self.flows = flows
        self.opened: tuple[Any, ...] = ()
        self.over = threading.Event()
        if not lasts:
            self.over.set()

    def __call__(self, *how: Any) -> Watch:
        self.opened = how
        return self

    def run(self, name: str) -> Output:
        assert self.over.wait(60), "nobody ends it"
        tables = {"flows": list(self.flows), "streams": [], "queues": [], "groups": [], "notes": []}
        spans = {"duration_s": None, "warmup_s": 0.0, "end_s": 0.5, "measured_s": 0.5}
        return Output({"name": name, "seed": 1, **spans, **tables})

    def view(self) -> str:
        return json.dumps({"time_s": 0.1, "connections": len(self.flows), "ended": 0})

    def stop(self) -> None:
        self.over.set()

    finish = stop
