"""Many points: `paceline.sweep`, `compare` and `merge`. Their engine is `simulate/points.py`."""

from __future__ import annotations
