"""Makes a path file from a recorded network: `fit`. `tcp.py` and `reports.py` read the kinds of recordings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paceline import _core, files
from paceline.arguments import checked
from paceline.emulator.fitting import reports, tcp
from paceline.emulator.fitting.frames import PCAP, PCAPNG, Unread
from paceline.emulator.fitting.measurements import Measured
from paceline.emulator.fitting.packets import segments
from paceline.emulator.fitting.path_file import path_file
from paceline.errors import PacelineError

MAX_BYTES = 64 << 20
"""The limit on a report's size; captures may be longer."""


@checked()
def fit(path: str | Path) -> str:
    """Fits a path file (TOML) to a recording of a network, with comments on what was measured and what is assumed. A
    recording is a capture of TCP at one end (pcap, pcapng), JSON of `iperf3 -J` or irtt, the output of `ping` or
    iperf3, or a rate trace that `rate_trace` reads.

    Raises PacelineError for any other file, StorageError for one that cannot be read.
    """
    path = Path(path)
    try:
        return path_file(_measured(path), path.name)
    except PacelineError as error:
        if type(error) is not PacelineError:
            raise
        raise PacelineError(f"{path}: {error}") from None


def _measured(path: Path) -> Measured:
    try:
        with files.opened(path) as file:
            start = file.read(4)
            file.seek(0)
            if start == PCAPNG or start in PCAP:
                unread = Unread()
                found = tcp.of_segments(segments(file, unread))
                found.notes += (notice["text"] for notice in unread.notices())
                return found
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise files.refused(path, error, "read") from error
    if start[:2] == b"\x1f\x8b":
        raise PacelineError("it is compressed: unpack it first, with gunzip")
    if len(content) > MAX_BYTES:
        raise PacelineError(f"it has more than {MAX_BYTES >> 20} MiB, which no report has")
    text = content.decode(errors="replace")
    if text.lstrip().startswith("{"):
        return _of_json(text)
    if "packets transmitted" in text:
        return reports.of_ping(text)
    from paceline.emulator.fitting import rates  # noqa: PLC0415 (it takes numpy)

    try:
        return rates.of_trace(*_core.trace(text))
    except ValueError as error:
        raise PacelineError(
            "it is neither a capture (pcap, pcapng), nor JSON of iperf3 or irtt, nor what ping prints, nor a trace of "
            f"rates: {error}"
        ) from None


def _of_json(text: str) -> Measured:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise PacelineError("it is damaged JSON, or has more than one document") from None
    if isinstance(document, Mapping):
        if isinstance(document.get("end"), Mapping) or "error" in document:
            return reports.of_iperf3(document)
        if isinstance(document.get("stats"), Mapping):
            return reports.of_irtt(document)
    raise PacelineError("its JSON is neither iperf3's (`end`) nor irtt's (`stats`)")
