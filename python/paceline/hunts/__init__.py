"""Adversarial search: `paceline hunt` looks for the scenario in which a measure is worst.

`ranges` defines the search space, `objective` the measure; `searching` proposes candidates (with Optuna, an extra),
`candidates` runs them, `minimising` moves finds back towards the file, `finds` has the results. Read `running` first.
"""

from __future__ import annotations

from paceline.hunts.finds import Change, Find, Hunt
from paceline.hunts.objective import Goal
from paceline.hunts.running import hunt

__all__ = ["Change", "Find", "Goal", "Hunt", "hunt"]
