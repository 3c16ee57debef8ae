"""What the small papers of several tests have in common."""

from __future__ import annotations

GOODPUT = """
[metric.goodput]
label = "Goodput"
unit = "Mbit/s"
table = "flows"
match = { flow = "media" }
field = "goodput_bps"
scale = 1e-6
"""
"""A metric of `figures.toml`: the medium's goodput in Mbit/s."""
