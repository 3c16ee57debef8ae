"""The common part of papers, suites and leagues: studies of points and metrics, run and judged.

A study (`paper`) is a scenario swept along an axis. `points` makes runs of it, `measure` takes metrics from the runs,
`expression` evaluates expressions over them, `verdict` judges. `reproduction` runs everything: read it first.
"""

from __future__ import annotations
