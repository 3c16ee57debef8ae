"""Real calls: Chromium carries a scenario's `gcc` flows over an emulated path; and logs of browsers' calls.

`call` is `paceline.call`; `call_log` reads a call that a browser logged or that was captured; `captures`, `dump` and
`event_log` read the formats.
"""

from __future__ import annotations
