"""Runs in the simulator: `paceline.run`, and who makes the runs.

`run` is one scenario with one or more seeds, `points` the engine under it and under sweeps, `until` adds runs until a
number is as precise as was asked. `workers` are threads, processes or machines, and `executors` finds them by name;
`memory` says whether runs fit before they begin.
"""

from __future__ import annotations
