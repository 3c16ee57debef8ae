"""Paceline: a workbench for the congestion control of streaming and real-time media.

    import paceline
    results = paceline.run("coffee-shop.toml", runs=10, record=("cwnd",))
    results.flows                  # a Polars table; units end the columns' names
    results.statistics("flows")    # mean, sd, 95 % interval

What you import by name lies here: `axes`, `campaign`, `conform`, `models`, `realtime`, `statistics`, `suite` and
others. The folders hold the rest by subject: `simulate/run.py` has `paceline.run`; `sweeps/` has `sweep`, `compare`
and `merge`; `results/` has the results; `cli/` is the command line. All simulation is in the extension module
`_core`.
"""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Any

from paceline import _core
from paceline._core import MediaController, RateController, Scenario, WindowController
from paceline.errors import (
    ArgumentError,
    Cancelled,
    ControllerError,
    InternalError,
    Interrupted,
    LiveError,
    PacelineError,
    PacelineWarning,
    PathError,
    ScenarioError,
    StorageError,
    UnwrittenError,
)

if TYPE_CHECKING:
    from paceline import axes as axes
    from paceline import campaign as campaign
    from paceline import conform as conform
    from paceline import events as events
    from paceline import interval as interval
    from paceline import models
    from paceline import playground as playground
    from paceline import plots as plots
    from paceline import realtime as realtime
    from paceline import statistics as statistics
    from paceline import suite as suite
    from paceline.calls.call import call
    from paceline.calls.call_log import call_log
    from paceline.emulator.fitting import fit
    from paceline.emulator.paths import PathRun, path
    from paceline.hunts import hunt
    from paceline.leagues import league
    from paceline.live.qlog import qlog
    from paceline.live.receive import receive
    from paceline.live.replay import Replayed, replay
    from paceline.live.send import send
    from paceline.live.watch import watch
    from paceline.own_controllers import parameter
    from paceline.realtime import run as emulate
    from paceline.results.results import Results, summarise
    from paceline.scenarios.scenario import load, parse
    from paceline.scenarios.schemas import schema
    from paceline.simulate.executor_like import Batched
    from paceline.simulate.run import run
    from paceline.statistics.over_time import cov, jain_over_time
    from paceline.sweeps.compare import Comparison, compare
    from paceline.sweeps.merge import merge
    from paceline.sweeps.sweep import sweep

# Where each public name is defined, for lazy imports: Polars and NumPy take a second to import, and `--help` of the
# command line needs neither. A name with "" is itself a module. No module or folder here may have the name of a
# public function, because importing it would hide the function.
_LATER = {
    "Batched": "simulate.executor_like",
    "Comparison": "sweeps.compare",
    "PathRun": "emulator.paths",
    "Replayed": "live.replay",
    "Results": "results.results",
    "axes": "",
    "call": "calls.call",
    "call_log": "calls.call_log",
    "campaign": "",
    "compare": "sweeps.compare",
    "conform": "",
    "cov": "statistics.over_time",
    "emulate": "realtime:run",
    "events": "",
    "fit": "emulator.fitting",
    "hunt": "hunts",
    "interval": "",
    "jain_over_time": "statistics.over_time",
    "league": "leagues",
    "load": "scenarios.scenario",
    "merge": "sweeps.merge",
    "models": "",
    "parameter": "own_controllers",
    "parse": "scenarios.scenario",
    "path": "emulator.paths",
    "playground": "",
    "plots": "",
    "qlog": "live.qlog",
    "realtime": "",
    "receive": "live.receive",
    "replay": "live.replay",
    "run": "simulate.run",
    "schema": "scenarios.schemas",
    "send": "live.send",
    "statistics": "",
    "suite": "",
    "summarise": "results.results",
    "sweep": "sweeps.sweep",
    "watch": "live.watch",
}

__version__ = _core.version()


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, called = _LATER[name].partition(":")
    found = importlib.import_module(f"{__name__}.{module or name}")
    if module:
        found = getattr(found, called or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def controllers() -> list[dict[str, Any]]:
    """Returns the congestion controllers: name, summary, source, parameters (default, range, unit, meaning)."""
    found: list[dict[str, Any]] = json.loads(_core.schemes())
    return found


__all__ = [
    "ArgumentError",
    "Batched",
    "Cancelled",
    "Comparison",
    "ControllerError",
    "InternalError",
    "Interrupted",
    "LiveError",
    "MediaController",
    "PacelineError",
    "PacelineWarning",
    "PathError",
    "PathRun",
    "RateController",
    "Replayed",
    "Results",
    "Scenario",
    "ScenarioError",
    "StorageError",
    "UnwrittenError",
    "WindowController",
    "__version__",
    "call",
    "call_log",
    "compare",
    "controllers",
    "cov",
    "emulate",
    "fit",
    "hunt",
    "jain_over_time",
    "league",
    "load",
    "merge",
    "models",
    "parameter",
    "parse",
    "path",
    "qlog",
    "receive",
    "replay",
    "run",
    "schema",
    "send",
    "summarise",
    "sweep",
    "watch",
]
