"""How threads are told apart. A module of its own: the command line asks, and imports nothing heavy for it."""

from __future__ import annotations

THREADS = "paceline"
"""How the names of the threads begin in which runs are simulated."""
