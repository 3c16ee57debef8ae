"""Many points: `paceline.sweep`, `compare` and `merge`, run by `simulate/points.py`."""

from __future__ import annotations
