"""The simulator for browsers gives under node what Python gives, to the last bit."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import paceline
from golden import GOLDEN, Golden
from needs import require
from paceline import _core

pytestmark = pytest.mark.page
ROOT = Path(__file__).resolve().parent.parent
EVERY_S = 0.25
OWN = ("python:", "library:")
EXAMPLES = [
    path for path in sorted(ROOT.glob("examples/*.toml")) if not any(word in path.read_text() for word in OWN)
]

SHORT = """
duration = "5 s"
[link.bottleneck]
rate = "2 Mbit/s"
delay = "10 ms"
[flow.a]
cc = "cubic"
"""

MISTAKES = {
    "no TOML": "duration = \n",
    "a key that is none": SHORT.replace("delay", "dely"),
    "a value out of range": SHORT.replace("2 Mbit/s", "-2 Mbit/s"),
    "a scheme that is none": SHORT.replace("cubic", "cubik"),
    "several": SHORT.replace("5 s", "5 parsecs").replace("cubic", "cubik"),
    "a key twice": SHORT + 'cc = "reno"\n',
    "a number beyond all": "seed = 99999999999999999999\n" + SHORT,
    "a loop without delay": 'duration = "1 s"\ntopology = "graph"\n'
    '[link.x]\nbetween = ["a", "b"]\nrate = "1 Mbit/s"\ndelay = "0 s"\n'
    '[link.y]\nbetween = ["b", "c"]\nrate = "1 Mbit/s"\ndelay = "0 s"\n'
    '[flow.f]\nfrom = "a"\nto = "c"\n',
    "ends that no link joins": 'duration = "1 s"\ntopology = "graph"\n'
    '[link.x]\nbetween = ["a", "b"]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
    '[link.y]\nbetween = ["c", "d"]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n'
    '[flow.f]\nfrom = "a"\nto = "d"\n',
}
BAD_VALUES = {"no such key": ("link.bottleneck.dely", "1 ms"), "no such flow": ("flow.b.cc", "reno")}
TRACES = """
duration = "1 s"
[link.bottleneck]
rate_trace = { file = "down.txt", format = "mahimahi" }
delay = "1 ms"
backward = { rate_trace = { file = "up.txt", format = "seconds-mbit" } }
[flow.a]
"""
BAD_RUNS = {
    "no such recording": (["cwnd", "cwd"], 0.1),
    "too short": (["cwnd"], 1e-10),
    "too long": (["cwnd"], 1e10),
    "no number": (["cwnd"], float("nan")),
    "too much": (["cwnd", "rate"], 1e-8),
}


def as_text(number: float) -> str:
    """A number as JavaScript reads it, since JSON has neither infinity nor NaN."""
    return repr(number).replace("inf", "Infinity").replace("nan", "NaN")


def column_of(values: list[float]) -> bytes:
    """A column as the core has it."""
    return struct.pack(f"<{len(values)}d", *values)


ROWS: dict[str, list[float]] = {
    "p": [1e-4, 0.01, 0.3],
    "rtt_s": [0.01, 0.25, 1.0],
    "rto_s": [0.2, 1.0, 4.0],
    "gamma": [0.0, 0.5, 0.99],
    "packets_per_ack": [1.0, 1.0, 2.0],
    "w_max_packets": [10.0, 100.0, float("inf")],
    "segment_bytes": [100.0, 1460.0, 8000.0],
    "base_rtt_s": [0.005, 0.2, 0.3],
    "capacity_packets_per_s": [100.0, 1e3, 1e5],
    "backlog_packets": [1.0, 2.0, 3.0],
    "total_backlog_packets": [2.0, 2.0, 9.0],
    "theta1": [0.7, 0.8, 0.9],
    "theta2": [0.4, 0.5, 0.6],
    "beta_packets": [1.0, 3.0, 5.0],
}
"""Three rows of what models take, in their domains."""


def columns_of(model: dict[str, Any], inverse: bool) -> list[list[float]]:
    """The columns that a model, or its inverse, takes."""
    columns = [ROWS[argument["name"]] for argument in model["arguments"]]
    return [[1e3, 1e4, 1e5], *columns[1:]] if inverse else columns


def cases() -> dict[str, list[dict[str, Any]]]:
    """What is asked of both: scenarios to run, by the test that asks."""
    found: dict[str, list[dict[str, Any]]] = {"golden": [], "examples": []}
    for scheme in paceline.controllers():
        path = Golden(scheme["name"]).scenario
        values = []
        if path == GOLDEN / "default.toml":
            values = [[f"flow.{name}.cc", scheme["name"]] for name in paceline.load(path).flow_names()]
        found["golden"].append({"path": path, "values": values, "seed": 1})
    found["examples"] = [
        {"path": path, "values": [], "seed": seed} for path in EXAMPLES for seed in (1, 2**63 + 12345)
    ]
    return found


def native(case: dict[str, Any]) -> dict[str, Any]:
    """What Python has of a run, and what node is to be asked for it."""
    path = case["path"]
    scenario = _core.Scenario.load(str(path), [tuple(pair) for pair in case["values"]])
    output = _core.run(scenario, case["seed"], scenario.recordable, EVERY_S)
    request = {
        "text": path.read_text(),
        "file": str(path),
        "files": dict(scenario.traces()),
        "values": case["values"],
        "seed": str(case["seed"]),
        "record": scenario.recordable,
        "every_s": as_text(EVERY_S),
        # every other one: a run that is watched goes in steps
        "told": case["seed"] > 1,
    }
    return {"asked": request, "scenario": scenario, "output": output}


class Both:
    """Every case natively and in WebAssembly."""

    def __init__(self, folder: Path) -> None:
        groups = cases()
        listed = [(group, case) for group, all_of in groups.items() for case in all_of]
        with ThreadPoolExecutor(2) as pool:
            self.native = list(pool.map(native, [case for _, case in listed]))
        self.groups = [group for group, _ in listed]
        runs = [one["asked"] for one in self.native]
        plain = {"files": {}, "values": [], "seed": "1", "record": [], "every_s": "0.1"}
        runs += [{**plain, "text": text, "file": "bad.toml"} for text in MISTAKES.values()]
        runs += [
            {**plain, "text": SHORT, "file": "x/short.toml", "values": [pair]} for pair in BAD_VALUES.values()
        ]
        runs += [{**plain, "text": TRACES, "file": "traces.toml"}]
        runs += [
            {**plain, "text": SHORT.replace('"cubic"', f'"{prefix}own.x"'), "file": "own.toml"}
            for prefix in OWN
        ]
        runs += [
            {**plain, "text": SHORT, "file": "short.toml", "record": record, "every_s": as_text(every)}
            for record, every in BAD_RUNS.values()
        ]
        self.models = [
            (model, inverse, columns_of(model, inverse))
            for model in json.loads(_core.models())
            for inverse in (False, True)[: 1 + model["inverse"]]
        ]
        edits = [{"text": path.read_text(), "changes": [["seed", 77]]} for path in EXAMPLES]
        edits += [{"text": SHORT, "changes": [["flow..x", 1]]}]
        request = {
            "runs": runs,
            "columns": [
                {
                    "name": model["name"],
                    "inverse": inverse,
                    "columns": [[as_text(x) for x in c] for c in columns],
                }
                for model, inverse, columns in self.models
            ],
            "edits": edits,
            "ended": {"text": SHORT, "file": "short.toml", "seed": "1"},
            "exhausted": {"rows": 40_000_000},
        }
        (folder / "cases.json").write_text(json.dumps(request))
        script = str(ROOT / "web/tests/same-bits.mjs")
        command = ["node", script, str(folder / "cases.json"), str(folder / "results.json")]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert ran.returncode == 0, f"is web/pkg of these sources (web/build --wasm)?\n{ran.stderr}"
        self.wasm = json.loads((folder / "results.json").read_text())

    def answers_after(self, groups: int) -> list[dict[str, Any]]:
        """What node said of the cases that are no runs of files: those of mistakes, values, and so on."""
        sizes = [len(self.native), len(MISTAKES), len(BAD_VALUES), 1, len(OWN), len(BAD_RUNS)]
        begin = sum(sizes[:groups])
        found: list[dict[str, Any]] = self.wasm["runs"][begin : begin + sizes[groups]]
        return found


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    """Asked once for all tests."""
    require("node", "wasm")
    return Both(tmp_path_factory.mktemp("web"))


@pytest.mark.parametrize("group", ["golden", "examples"])
def test_runs_have_the_same_bits(both: Both, group: str) -> None:
    many = 0
    for of, here, there in zip(both.groups, both.native, both.wasm["runs"], strict=False):
        if of != group:
            continue
        name = f"{here['asked']['file']} {here['asked']['values']}"
        assert "value" in there, f"{name}: {there}"
        found = there["value"]
        assert found["summary"] == here["output"].summary_json, f"{name}: the summary differs"
        assert len(found["series"]) == len(here["output"].series) > 0
        for series, other in zip(here["output"].series, found["series"], strict=True):
            assert (series.table, series.labels) == (other["table"], other["labels"]), name
            digests = {
                column: hashlib.sha256(values).hexdigest() for column, values in series.columns.items()
            }
            different = [column for column in digests if digests[column] != other["columns"][column]]
            assert not different, f"{name}: {series.table} of {series.labels} differs in {different}"
            assert list(digests) == list(other["columns"])
            many += sum(map(len, series.columns.values())) // 8
        shares = found["shares"]
        assert shares == sorted(shares)
        assert len(shares) <= 100
        assert bool(shares) == here["asked"]["told"]
    assert many > 100_000


def test_a_scenario_is_described_as_python_has_it(both: Both) -> None:
    for here, there in zip(both.native, both.wasm["runs"], strict=False):
        scenario, described = here["scenario"], json.loads(there["value"]["described"])
        assert described["toml"] == scenario.to_toml()
        assert described["filled"] == tomllib.loads(scenario.to_toml())
        assert described["files"] == [name for name, _ in scenario.traces()]
        for key in ("name", "seed", "duration_s", "warnings", "cut_short", "recordable"):
            assert described[key] == getattr(scenario, key), key


def test_the_catalogues_are_the_same(both: Both) -> None:
    assert both.wasm["schema"] == _core.schema_json()
    assert both.wasm["measures"] == _core.measures_json()
    assert both.wasm["schemes"] == _core.schemes()
    assert both.wasm["models"] == _core.models()
    assert both.wasm["version"] == _core.version().removesuffix("+dev")


def test_the_glue_is_of_the_version_of_the_library() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["dependencies"]
    bindgen = tomllib.loads((ROOT / "web/bindgen/Cargo.toml").read_text())["dependencies"]
    assert workspace["wasm-bindgen"] == bindgen["wasm-bindgen-cli-support"]
    assert re.fullmatch(r"=\d+\.\d+\.\d+", workspace["wasm-bindgen"])


def test_models_have_the_same_bits(both: Both) -> None:
    for (model, inverse, columns), there in zip(both.models, both.wasm["columns"], strict=True):
        here = _core.model(model["name"], [column_of(c) for c in columns], inverse=inverse)
        assert there["value"] == [hashlib.sha256(column).hexdigest() for column in here], model["name"]
    assert any(inverse for _, inverse, _ in both.models)


def test_mistakes_are_told_in_the_same_words(both: Both) -> None:
    for name, text, there in zip(MISTAKES, MISTAKES.values(), both.answers_after(1), strict=True):
        with pytest.raises(paceline.ScenarioError) as error:
            _core.Scenario.parse(text, ".", "bad.toml")
        assert there["thrown"]["message"] == str(error.value), name
        mistakes = there["thrown"]["mistakes"]
        assert len(mistakes) == len(str(error.value).split("\n"))
        for mistake, line in zip(mistakes, str(error.value).split("\n"), strict=True):
            assert mistake["problem"] in line
            assert mistake["key"] in line
            if name != "several":
                assert line.startswith(f"bad.toml:{mistake['line']}:"), name
        assert there["thrown"]["missing"] == []
    for pair, there in zip(BAD_VALUES.values(), both.answers_after(2), strict=True):
        with pytest.raises(paceline.ScenarioError) as error:
            _core.Scenario.parse(SHORT, ".", "x/short.toml", [pair])
        assert there["thrown"]["message"] == str(error.value)


def test_every_file_that_is_missing_is_named(both: Both) -> None:
    (there,) = both.answers_after(3)
    assert there["thrown"]["missing"] == ["down.txt", "up.txt"]
    assert [mistake["key"] for mistake in there["thrown"]["mistakes"]] == [
        "link.bottleneck.rate_trace",
        "link.bottleneck.backward.rate_trace",
    ]


def test_own_controllers_are_sent_to_the_command_line(both: Both) -> None:
    for there in both.answers_after(4):
        (mistake,) = there["thrown"]["mistakes"]
        assert (mistake["key"], mistake["line"]) == ("flow.a.cc", 7)
        assert "paceline run" in mistake["problem"]


def test_what_cannot_be_recorded_is_told_in_the_same_words(both: Both) -> None:
    scenario = _core.Scenario.parse(SHORT, ".", "short.toml")
    for (record, every), there in zip(BAD_RUNS.values(), both.answers_after(5), strict=True):
        with pytest.raises((ValueError, paceline.ScenarioError)) as error:
            _core.run(scenario, 1, record, every)
        assert there["thrown"] == {"message": str(error.value)}


def test_edits_change_what_they_say(both: Both) -> None:
    *edits, bad = both.wasm["edits"]
    for path, there in zip(EXAMPLES, edits, strict=True):
        was, now = path.read_text().split("\n"), there["value"].split("\n")
        # an example that has a seed changes in a line, the others have one more
        assert len([line for line in now if line not in was]) == 1
        assert now.count("seed = 77") == 1
        here = _core.Scenario.load(str(path), [("seed", "77")]).to_toml()
        assert _core.Scenario.parse(there["value"], str(path.parent), str(path)).to_toml() == here
    assert bad["thrown"]["name"] == "Error"
    assert bad["thrown"]["message"].startswith("flow..x: not a path of keys")


def test_what_progress_throws_ends_a_run_and_no_more(both: Both) -> None:
    scenario = _core.Scenario.parse(SHORT, ".", "short.toml")
    assert both.wasm["ended"]["thrown"] == {"message": "enough"}
    assert both.wasm["ended"]["again"] == _core.run(scenario, 1, [], 0.1).summary_json


def test_memory_that_runs_out_is_told_in_words(both: Both) -> None:
    assert both.wasm["exhausted"]["spent"] is True
    assert "takes more memory than the 1024 MiB" in both.wasm["exhausted"]["message"]
