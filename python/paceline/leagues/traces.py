"""Recorded rates instead of drawn ones, for classes whose rate wanders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.leagues.drawing import Die, Drawn, Law
from paceline.scenarios import rate_traces


def found(folder: Path) -> list[Path]:
    """The traces in a folder: every file that `rate_trace` reads. Raises PacelineError."""
    if not folder.is_dir():
        raise PacelineError(f"--traces {folder}: must be a folder of traces")
    all_files = [file for file in sorted(folder.iterdir()) if file.is_file()]
    found = [file for file in all_files if _format(file)]
    if not found:
        raise PacelineError(
            f"--traces {folder}: none of its files is a rate trace (`paceline trace FILE` says what is wrong with one)"
        )
    return found


def law(found: Sequence[Path]) -> Law:
    """A random trace for each scenario."""
    many = len(found)

    def draw(die: Die, _before: object, _lasts: float) -> Drawn:
        file = found[int(die() * many)]
        return {"file": str(file.resolve()), "format": _format(file)}

    names = ", ".join(file.name for file in found)
    return Law(f"one of {many} recorded traces: {names}", draw)


def _format(file: Path) -> str:
    """The format of a trace; "" for any other file."""
    try:
        return rate_traces.read(file).format
    except (PacelineError, UnicodeError):
        return ""


def _read(trace: Mapping[str, Any]) -> rate_traces.Trace:
    return rate_traces.read(trace["file"], trace["format"])


def peak_bps(trace: Mapping[str, Any]) -> float:
    """The maximum rate of a trace, for mahimahi over a second, in bit/s. Raises PacelineError."""
    read = _read(trace)
    return float((read.rates_bps(1.0) if read.format == "mahimahi" else read.values).max())


def mean_bps(trace: Mapping[str, Any], begins_s: float, ends_s: float) -> float:
    """The mean rate between two instants of a repeating trace, in bit/s. Raises PacelineError."""
    return _read(trace).mean_between_bps(begins_s, ends_s)
