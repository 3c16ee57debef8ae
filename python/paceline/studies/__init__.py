"""What papers, suites and leagues share: studies of points and metrics, run and judged.

A study (`paper`) is a scenario swept along an axis; `points` makes runs of it, `measure` takes metrics from the runs,
`expression` evaluates what is asked of them, `verdict` judges. `reproduction` runs it all: look there first.
"""

from __future__ import annotations
