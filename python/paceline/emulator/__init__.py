"""Emulated paths in real time: `paceline.path`, what a recorded network is like (`fitting`), and runs in turn.

A scenario over an emulated path, `paceline.emulate`, is `paceline.realtime`.
"""

from __future__ import annotations
