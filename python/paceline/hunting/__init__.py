"""Adversarial search: `paceline hunt` looks for the scenario in which a measure is worst.

`ranges` says where, `goal` what is worst, `searching` proposes (with Optuna, an extra), `trying` runs,
`minimising` puts finds back towards the file, `finds` has what comes out. Look first at `running.py`.
"""

from __future__ import annotations

from paceline.hunting.finds import Change, Find, Hunt
from paceline.hunting.goal import Goal
from paceline.hunting.running import hunt

__all__ = ["Change", "Find", "Goal", "Hunt", "hunt"]
