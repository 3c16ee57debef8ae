"""QUIC logs (qlog) of an emulated run: each end writes its own, and they are renamed after the flows."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paceline import files
from paceline.errors import PacelineError
from paceline.live.send import for_logs
from paceline.messages.argument_names import option

_OF_SERVER = re.compile(r".*-(\d+)((?:\.\d+)?-(?:client|server)\.sqlog)")
"""A server's names for its flows' logs: the client's address and a number."""

LIMITS = (10**9, 10**18)
"""Limits on the far end's files and bytes: unlimited in practice, since it has no other client."""


def folder(where: str | Path, table: dict[str, Any]) -> Path:
    """The folder for the logs of a scenario, created or empty. Raises PacelineError if there would be no logs."""
    if all(flow.get("transport") != "quic" for flow in table["flow"].values()):
        raise PacelineError(
            f"{option('qlog')}: no flow is over QUIC, so there is nothing to log: give one "
            '`transport = "quic"`, or leave it out'
        )
    return for_logs(Path(where))


def prepare(run: Path) -> None:
    """Makes both ends of the run in this folder write logs."""
    for end in ("near", "far"):
        files.make_directory(run / "qlog" / end)


def of(run: Path, end: str) -> str | None:
    """The folder for the logs of the run's "near" or "far" end; None if it writes none."""
    there = run / "qlog" / end
    return str(there) if there.is_dir() else None


def keep(run: Path, to: Path, flows: Sequence[tuple[Any, ...]]) -> None:
    """Moves both ends' logs to a folder. A server numbers the `flows` that are not the kernel's, in the order of the
    requests. Raises StorageError."""
    of_name = Counter(flow[0] for flow in flows)
    names = [
        name if of_name[name] == 1 else f"{name}.{n}" for name, n, *_, kernel, _ in flows if kernel is None
    ]
    try:
        for file in (run / "qlog").glob("*/*.sqlog"):
            found = _OF_SERVER.fullmatch(file.name) if file.parent.name == "far" else None
            name = file.name if found is None else names[int(found[1]) - 1] + found[2]
            shutil.move(file, to / name)
    except OSError as error:
        raise files.refused(to, error) from error
