"""Limits that the command line's help names: a separate module, so that it imports nothing heavy."""

from __future__ import annotations

SEED_LIMIT_S = 60.0
"""The time limit for one seed of a check of `conform`; the built-in controllers take a few seconds at most."""
