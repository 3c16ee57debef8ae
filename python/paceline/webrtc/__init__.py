"""Real calls: Chromium in the place of a scenario's `gcc` flows over an emulated path, and what browsers log."""

from __future__ import annotations

from paceline.webrtc.calling import call
from paceline.webrtc.logged import call_log

__all__ = ["call", "call_log"]
