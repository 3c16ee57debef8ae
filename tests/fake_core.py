"""A stand-in for `paceline._core`: the same interface, invented results. For what the real core must not be asked to
do in a test (to fail, to hang), and until it is built."""

from __future__ import annotations

import json
import random
import struct
import time
import tomllib
from typing import Any

_KEYS = {"name", "description", "seed", "duration", "warmup", "stop_after", "profile", "topology"}
_KEYS |= {"access", "flow", "link", "delay_ms", "crash"}


class ScenarioError(Exception):
    pass


class Cancelled(Exception):  # noqa: N818
    pass


class InternalError(Exception):
    pass


class Scenario:
    def __init__(self, tree: dict[str, Any], name: str) -> None:
        self._tree = tree
        self.name = str(tree.get("name", name))
        self.seed = int(tree.get("seed", 1))
        if "duration" not in tree:
            raise ScenarioError(f"{name}: duration is required")
        for key in tree:
            if key not in _KEYS:
                raise ScenarioError(f'{name}: unknown key "{key}"; the nearest known one is "duration"')

    @staticmethod
    def load(path: str) -> Scenario:
        try:
            with open(path, encoding="utf-8") as file:  # noqa: PTH123
                return Scenario.parse(file.read(), ".", path)
        except OSError as error:
            raise ScenarioError(f"{path}: {error.strerror}") from error

    @staticmethod
    def parse(text: str, base_dir: str, name: str) -> Scenario:
        return Scenario(tomllib.loads(text), name)

    def set(self, path: str, value: str) -> Scenario:
        tree = json.loads(json.dumps(self._tree))
        *parents, last = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        try:
            node[last] = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            node[last] = value
        return Scenario(tree, self.name)

    def set_all(self, values: list[tuple[str, str]]) -> Scenario:
        changed = self
        for path, value in values:
            changed = changed.set(path, value)
        return changed

    def traces(self) -> list[tuple[str, str]]:
        return []

    def to_toml(self) -> str:
        return json.dumps(self._tree, sort_keys=True)

    def flow_names(self) -> list[str]:
        return list(self._tree.get("flow", {}))


class Watch:
    def __init__(self) -> None:
        self.progress = 0.0
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Series:
    def __init__(self, table: str, labels: dict[str, str], columns: dict[str, bytes]) -> None:
        self.table, self.labels, self.columns = table, labels, columns


class RunOutput:
    def __init__(self, summary_json: str, series: list[Series]) -> None:
        self.summary_json, self.series = summary_json, series


_COLUMNS = {
    "cwnd": ["time_s", "cwnd_packets", "ssthresh_packets", "srtt_s", "in_flight_packets"],
    "queue": ["time_s", "packets", "bytes"],
    "rate": ["time_s", "goodput_bps"],
    "playout": ["time_s", "buffer_s"],
}


def run(
    scenario: Scenario, seed: int, record: list[str], record_every_s: float, watch: Watch | None = None
) -> RunOutput:
    for i in range(int(scenario._tree.get("delay_ms", 0))):
        time.sleep(0.001)
        if watch is not None:
            watch.progress = i / scenario._tree["delay_ms"]
            if watch.cancelled:
                raise Cancelled
    if scenario._tree.get("crash") == seed:
        raise InternalError("a defect of Paceline: please report it")
    draw = random.Random(f"{scenario.to_toml()} {seed}")
    flows: list[dict[str, Any]] = []
    for name, flow in scenario._tree.get("flow", {}).items():
        base = {"vegas": 4e6, "newreno": 3e6}.get(flow.get("cc", "newreno"), 2e6)
        flows += [
            {
                "flow": name,
                "instance": i,
                "group": name,
                "cc": flow.get("cc", "newreno"),
                "profile": "rfc",
                "from": "left",
                "to": "right",
                "goodput_bps": base + draw.gauss(0, 1e5),
                "packets_sent": draw.randrange(10000),
                "loss_rate": draw.random() / 100,
                "rtt_mean_s": 0.05 + draw.random() / 100,
                "transfer_time_mean_s": None,
            }
            for i in range(flow.get("count", 1))
        ]
    streams = [
        {"flow": f["flow"], "instance": f["instance"], "fill_s": None, "late_share": draw.random()}
        for f in flows[:1]
    ]
    queue = {"link": "bottleneck", "direction": "forward", "mean_packets": draw.random() * 50}
    queue |= {"drops": {"overflow": 3, "early": 0}}
    summary = {
        "name": scenario.name,
        "seed": seed,
        "duration_s": 10.0,
        "engine": {"packets_sent": 5},
        "flows": flows,
        "streams": streams,
        "queues": [queue],
        "groups": [
            {"group": f["flow"], "flows": 1, "jain": 1.0, "goodput_bps": f["goodput_bps"]} for f in flows[:1]
        ],
    }
    series = []
    for kind in record:
        labels = (
            {"link": "bottleneck", "direction": "forward"}
            if kind == "queue"
            else {"flow": "media", "instance": "0"}
        )
        columns = {}
        for column in _COLUMNS[kind]:
            values = [0.02 * i if column == "time_s" else draw.random() * 10 for i in range(50)]
            columns[column] = struct.pack("<50d", *values)
        series.append(Series(kind, labels, columns))
    return RunOutput(json.dumps(summary), series)


def schema_json() -> str:
    return json.dumps({"title": "Scenario", "type": "object"})


def schemes() -> str:
    return json.dumps(
        [
            {
                "name": "vegas",
                "summary": "delay-based",
                "source": "Brakmo, Peterson 1995",
                "params": [
                    {"name": "alpha", "default": 1, "min": 0, "max": 100, "unit": "packets", "doc": "low"}
                ],
            }
        ]
    )


def version() -> str:
    return "0.1.0"
