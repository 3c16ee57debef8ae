"""Real calls in a scenario: Chromium's WebRTC in the place of its `gcc` flows, over an emulated path."""

from __future__ import annotations

from paceline.webrtc.calling import call

__all__ = ["call"]
