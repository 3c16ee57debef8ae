"""Scenarios as text: read, checked against their schema, given by name, made to stand elsewhere.

`scenario` reads one (`paceline.load`, `parse`); `schemas` are those of all files; `examples` are those of the package;
`rate_traces` reads what a link carried over time.
"""

from __future__ import annotations
