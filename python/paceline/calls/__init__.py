"""Real calls: Chromium in the place of a scenario's `gcc` flows over an emulated path, and what browsers log.

`call` is `paceline.call`, `call_log` reads a call that a browser logged or that was captured; `captures`, `dump` and
`event_log` are the formats.
"""

from __future__ import annotations
