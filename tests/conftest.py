"""Makes `needs` importable from every test below this folder (pytest puts a conftest's folder on the path)."""

from __future__ import annotations
