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

TCP_AND_TFRC = """
[[series]]
key = "tcp"
label = "TCP"
[[series]]
key = "tfrc"
label = "TFRC"
set = { "flow.media.cc" = "tfrc" }
"""
"""Series of `figures.toml`: the medium by TCP, and by TFRC."""
