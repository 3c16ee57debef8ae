"""Adversarial search: `paceline hunt` looks for the scenario in which a measure is worst.

`ranges` says where, `objective` what is worst, `searching` proposes (with Optuna, an extra), `candidates` runs,
`minimising` puts finds back towards the file, `finds` has what comes out. Look first at `running.py`.
"""

from __future__ import annotations

from paceline.hunts.finds import Change, Find, Hunt
from paceline.hunts.objective import Goal
from paceline.hunts.running import hunt

__all__ = ["Change", "Find", "Goal", "Hunt", "hunt"]
