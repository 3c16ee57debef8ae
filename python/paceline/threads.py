"""The names of threads. A separate module, so that the command line can import it without anything heavy."""

from __future__ import annotations

THREADS = "paceline"
"""The prefix of the names of threads that simulate runs."""
