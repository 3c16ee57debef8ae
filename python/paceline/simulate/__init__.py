"""Runs in the simulator: `paceline.run`, and its workers.

`run` runs one scenario with one or more seeds; `points` is the engine below it and below sweeps; `until` adds runs
until a number is as precise as requested. `workers` are threads, processes or machines, and `executors` finds them by
name; `memory` checks beforehand whether runs fit into memory.
"""

from __future__ import annotations
