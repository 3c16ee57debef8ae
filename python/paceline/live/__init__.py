"""Real networks: flows between hosts, the connections of other programs, and what QUIC programs logged.

`send` and `receive` are `paceline.send` and `receive`; `watch` follows the kernel's TCP, `qlog` reads logs, `replay`
runs a controller on one; `kernel_cc` loads controllers into the kernel. `real_runs` makes results of all of them.
"""

from __future__ import annotations
