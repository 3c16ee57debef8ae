"""Emulated paths in real time: `paceline.path`, fitting a path to a recorded network (`fitting`), and queued runs.

A scenario over an emulated path, `paceline.emulate`, is `paceline.realtime`.
"""

from __future__ import annotations
