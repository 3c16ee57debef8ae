"""Real networks: flows between hosts, the connections of other programs, and the logs of QUIC programs.

`send` and `receive` are `paceline.send` and `receive`; `watch` follows the kernel's TCP, `qlog` reads logs, `replay`
runs a controller on an event log; `kernel_cc` loads controllers into the kernel. `real_runs` makes results of them all.
"""

from __future__ import annotations
