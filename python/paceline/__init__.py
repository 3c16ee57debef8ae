"""Paceline: a workbench for the congestion control of streaming and real-time media.

    import paceline
    results = paceline.run("coffee-shop.toml", runs=10, record=("cwnd",))
    results.flows                  # a Polars table; units end the columns' names
    results.statistics("flows")    # mean, sd, 95 % interval

Look first at `running.py`, `sweep.py`, `comparing.py` and `results.py`; `cli/` is the same from a shell.
`models.py` has throughput models. All simulation lies in the extension module `_core`.
"""

from __future__ import annotations

import json
from typing import Any

from paceline import _core, models
from paceline._core import Cancelled, InternalError, Scenario, ScenarioError
from paceline.comparing import Comparison, compare
from paceline.errors import Interrupted, PacelineError, StorageError
from paceline.paths import PathError, PathRun, path
from paceline.realtime import run as emulate
from paceline.results import Results, summarise
from paceline.running import run
from paceline.scenario import load, parse
from paceline.sending import send
from paceline.sweep import sweep
from paceline.variation import cov, jain_over_time
from paceline.watching import watch

__version__ = _core.version()


def schema() -> dict[str, Any]:
    """The JSON Schema of scenario files."""
    found: dict[str, Any] = json.loads(_core.schema_json())
    return found


def schemes() -> list[dict[str, Any]]:
    """The registered schemes: name, summary, source, and parameters with default, range, unit and meaning."""
    found: list[dict[str, Any]] = json.loads(_core.schemes())
    return found


__all__ = [
    "Cancelled",
    "Comparison",
    "InternalError",
    "Interrupted",
    "PacelineError",
    "PathError",
    "PathRun",
    "Results",
    "Scenario",
    "ScenarioError",
    "StorageError",
    "__version__",
    "compare",
    "cov",
    "emulate",
    "jain_over_time",
    "load",
    "models",
    "parse",
    "path",
    "run",
    "schema",
    "schemes",
    "send",
    "summarise",
    "sweep",
    "watch",
]
