"""Checks whether runs fit into memory before they are built: if the core runs out of memory, the whole process ends,
and a notebook with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from paceline import _core
from paceline.errors import PacelineError
from paceline.messages.argument_names import option

_FLOW = 24_000
"""Minimum bytes of a flow with its links and its row of results: among 20,000 flows, one of TCP takes 26 kB, one of
GCC 40 kB."""
_FREE = 256 << 20
"""Fewer flows than take this many bytes are not checked."""
_CGROUP = Path("/sys/fs/cgroup")


def check(scenarios: Sequence[_core.Scenario], at_once: int) -> None:
    """Raises PacelineError if `at_once` runs of the largest of these scenarios need more memory than this process may
    have."""
    flows = max((scenario.instances for scenario in scenarios), default=0)
    if flows * _FLOW * at_once <= _FREE or (free := free_bytes()) is None or flows * _FLOW * at_once <= free:
        return
    needed = flows * _FLOW
    fewer = f", or {option('workers', max(1, free // needed))}" if at_once > 1 and needed <= free else ""
    many = f"{at_once} runs at once of " if at_once > 1 else ""
    raise PacelineError(
        f"{many}{flows:,} flows need at least {needed * at_once / 1e9:.1f} GB, and this process may have "
        f"{free / 1e9:.1f} GB: use fewer flows (`count`){fewer}"
    )


def free_bytes() -> int | None:
    """Bytes that this process may still allocate: what the machine, its control group and its own limit leave; None if
    none of them is known."""
    found = [free for free in (_of_machine(), _of_group(), _of_limit()) if free is not None]
    return max(0, min(found)) if found else None


def _of_machine() -> int | None:
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _of_group() -> int | None:
    limit, used = ("".join(_lines(_CGROUP / name)) for name in ("memory.max", "memory.current"))
    if not (limit.isdigit() and used.isdigit()):
        return None
    # The kernel frees cached files that are not in use.
    kept = [line.split()[1] for line in _lines(_CGROUP / "memory.stat") if line.startswith("inactive_file ")]
    return int(limit) - int(used) + sum(map(int, kept))


def _of_limit() -> int | None:
    try:
        import resource  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = "".join(_lines(Path("/proc/self/statm"))).split()[:1]
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
