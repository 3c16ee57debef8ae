"""Reads a dump of chrome://webrtc-internals: JSON text, often compressed (gzip).

For each connection of a page a dump has series of the values that getStats returned each second, one per report and
key, named "REPORT-key". The series of a report end together; a key that appeared later has a shorter one.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline import files
from paceline.errors import PacelineError

MAX_BYTES = 64 << 20
"""The limit on a dump's text; Chromium keeps 1000 values of each series, so ten connections take some 10 MB."""
MAX_VALUES = 100_000
"""The limit on a series' values."""
_GZIP = b"\x1f\x8b"
_RTCSTATS = b"RTCStatsDump"


@dataclass(frozen=True)
class Report:
    """The series of one getStats report."""

    kind: str
    """Its type: "outbound-rtp", "inbound-rtp", "transport" and others."""
    times_s: list[float]
    """Seconds since 1970."""
    series: dict[str, list[Any]]
    """By key, as long as `times_s`; None before the first value."""

    def numbers(self, key: str) -> list[float | None]:
        """A series as numbers; None for missing ones."""
        found = self.series.get(key, [None] * len(self.times_s))
        return [float(v) if isinstance(v, int | float) and math.isfinite(v) else None for v in found]

    def last(self, key: str) -> Any:
        """The last value of a series; None without one."""
        return self.series.get(key, [None])[-1]


Connection = Mapping[str, Report]
"""The reports of a connection by their ids."""


def read(path: Path) -> dict[str, Connection]:
    """The connections of a dump by their IDs. Raises PacelineError for an invalid dump, StorageError."""
    try:
        found = json.loads(_text(path), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        raise PacelineError(
            f"{path} is not a dump of chrome://webrtc-internals, or is cut off: its text is not JSON"
        ) from None
    connections = found.get("PeerConnections") if isinstance(found, dict) else None
    if not isinstance(connections, dict):
        raise PacelineError(f'{path} is not a dump of chrome://webrtc-internals: it has no "PeerConnections"')
    made: dict[str, Connection] = {
        str(name): dict(_reports(one.get("stats")))
        for name, one in connections.items()
        if isinstance(one, dict)
    }
    if not any(made.values()):
        raise PacelineError(
            f"{path} has no statistics: keep chrome://webrtc-internals open during the call, and save the dump before "
            "the page is left"
        )
    return made


def _text(path: Path) -> bytes:
    try:
        with files.opened(path) as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            text = gzip.GzipFile(fileobj=file).read(MAX_BYTES + 1) if packed else file.read(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise PacelineError(f"{path} is cut off or damaged: it cannot be unpacked") from None
    except OSError as error:
        raise files.refused(path, error, "read") from error
    if len(text) > MAX_BYTES:
        raise PacelineError(
            f"{path} holds more than {MAX_BYTES >> 20} MB of text: it is not a dump, or damaged"
        )
    if text.startswith(_RTCSTATS):
        raise PacelineError(
            f"{path} is in the format rtcstats: save the other one, the dump in JSON, from chrome://webrtc-internals"
        )
    return text


def _reports(stats: Any) -> Iterator[tuple[str, Report]]:
    """The reports of a connection that have time stamps."""
    if not isinstance(stats, dict):
        return
    by_report: dict[str, dict[str, list[Any]]] = {}
    kinds: dict[str, str] = {}
    for name, one in stats.items():
        report, _, key = name.rpartition("-")
        values = _values(one)
        if values and report and not key.endswith("]"):  # series with brackets are derived by the page
            by_report.setdefault(report, {})[key] = values
            kinds[report] = str(one.get("statsType"))
    for report, series in by_report.items():
        times = [t for t in series.get("timestamp", []) if isinstance(t, int | float) and math.isfinite(t)]
        if times:
            aligned = {key: _aligned(values, len(times)) for key, values in series.items()}
            yield report, Report(kinds[report], [t / 1e3 for t in times], aligned)


def _values(one: Any) -> list[Any]:
    if not isinstance(one, dict) or not isinstance(one.get("values"), str):
        return []
    try:
        found = json.loads(one["values"], parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return []
    return found[-MAX_VALUES:] if isinstance(found, list) else []


def _aligned(values: list[Any], length: int) -> list[Any]:
    return ([None] * length + values)[-length:]
