"""Paceline: a workbench for the congestion control of streaming and real-time media.

    import paceline
    results = paceline.run("coffee-shop.toml", runs=10, record=("cwnd",))
    results.flows                  # a Polars table; units end the columns' names
    results.statistics("flows")    # mean, sd, 95 % interval

Look first at `running.py`, `sweeping.py`, `comparing.py` and `results.py`; `cli/` is the same from a shell.
`models.py` has throughput models. All simulation lies in the extension module `_core`.
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
    from paceline.comparing import Comparison, compare
    from paceline.executing import Batched
    from paceline.fitting import fit
    from paceline.foreign import parameter
    from paceline.hunting import hunt
    from paceline.leagues import league
    from paceline.merging import merge
    from paceline.paths import PathRun, path
    from paceline.qlogs import qlog
    from paceline.realtime import run as emulate
    from paceline.receiving import receive
    from paceline.replaying import Replayed, replay
    from paceline.results import Results, summarise
    from paceline.running import run
    from paceline.scenario import load, parse
    from paceline.schemas import schema
    from paceline.sending import send
    from paceline.sweeping import sweep
    from paceline.variation import cov, jain_over_time
    from paceline.watching import watch
    from paceline.webrtc import call, call_log

# Where the names above are, for those that are asked for: with Polars and NumPy they take a second to import, and
# the command line's `--help` needs none of them. A name with "" is a module itself. No module here is called as a
# function is: its import would hide it.
_LATER = {
    "Batched": "executing",
    "Comparison": "comparing",
    "PathRun": "paths",
    "Replayed": "replaying",
    "Results": "results",
    "axes": "",
    "call": "webrtc",
    "call_log": "webrtc",
    "campaign": "",
    "compare": "comparing",
    "conform": "",
    "cov": "variation",
    "emulate": "realtime.run",
    "events": "",
    "fit": "fitting",
    "hunt": "hunting",
    "interval": "",
    "jain_over_time": "variation",
    "league": "leagues",
    "load": "scenario",
    "merge": "merging",
    "models": "",
    "parameter": "foreign",
    "parse": "scenario",
    "path": "paths",
    "playground": "",
    "plots": "",
    "qlog": "qlogs",
    "realtime": "",
    "receive": "receiving",
    "replay": "replaying",
    "run": "running",
    "schema": "schemas",
    "send": "sending",
    "statistics": "",
    "suite": "",
    "summarise": "results",
    "sweep": "sweeping",
    "watch": "watching",
}

__version__ = _core.version()


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, called = _LATER[name].partition(".")
    found = importlib.import_module(f"{__name__}.{module or name}")
    if module:
        found = getattr(found, called or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def controllers() -> list[dict[str, Any]]:
    """The congestion controllers: name, summary, source, and parameters with default, range, unit and meaning."""
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
