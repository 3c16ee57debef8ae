"""Recorded rates in place of drawn ones, for classes whose rate wanders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline import files
from paceline.errors import PacelineError
from paceline.leagues.drawing import Die, Drawn, Law

_BITS = 1500 * 8
"""Of an opportunity of mahimahi's."""


def found(folder: Path) -> list[Path]:
    """The traces in a folder: what has lines of one number (mahimahi) or two (seconds and Mbit/s). Raises
    PacelineError."""
    if not folder.is_dir():
        raise PacelineError(f"--traces {folder}: a folder of traces")
    traces = [file for file in sorted(folder.iterdir()) if file.is_file() and _format(file)]
    if not traces:
        raise PacelineError(
            f"--traces {folder}: no file of it has lines of one number (mahimahi: milliseconds) or two (seconds and "
            "Mbit/s)"
        )
    return traces


def law(traces: Sequence[Path]) -> Law:
    """One of them for each scenario."""
    many = len(traces)

    def draw(die: Die, _before: object, _lasts: float) -> Drawn:
        file = traces[int(die() * many)]
        return {"file": str(file.resolve()), "format": _format(file)}

    names = ", ".join(file.name for file in traces)
    return Law(f"one of {many} recorded traces: {names}", draw)


def _format(file: Path) -> str:
    """How a trace is written; "" of what is none."""
    try:
        with files.opened(file) as trace:
            first = trace.readline(200).split()
    except OSError as error:
        raise files.refused(file, error, "read") from error
    try:
        [float(word) for word in first]
    except ValueError:
        return ""
    return {1: "mahimahi", 2: "seconds-mbit"}.get(len(first), "")


def _numbers(trace: Mapping[str, Any]) -> NDArray[np.float64]:
    try:
        return np.array(files.read_text(Path(trace["file"])).split(), dtype=float)
    except ValueError as error:
        raise PacelineError(f"{trace['file']}: {error}") from None


def peak_bps(trace: Mapping[str, Any]) -> float:
    """The greatest rate of a trace, of mahimahi's over a second, in bit/s. Raises PacelineError."""
    numbers = _numbers(trace)
    if trace["format"] == "mahimahi":
        return float(np.bincount((numbers // 1000).astype(int)).max()) * _BITS
    return float(numbers[1::2].max()) * 1e6


def mean_bps(trace: Mapping[str, Any], begins_s: float, ends_s: float) -> float:
    """The mean rate between two instants of a trace that begins again at its end, in bit/s. Raises PacelineError."""
    numbers = _numbers(trace)
    if trace["format"] == "mahimahi":
        period = numbers[-1] / 1e3

        def until(instant: float) -> float:
            whole, rest = divmod(instant, period)
            return float(whole * len(numbers) + np.searchsorted(numbers / 1e3, rest)) * _BITS
    else:
        times, rates = numbers[::2], numbers[1::2] * 1e6
        lasting = np.diff(times, append=2 * times[-1] - times[-2] if len(times) > 1 else times[-1] + 1)
        period = float(lasting.sum())
        sums = np.concatenate([[0.0], np.cumsum(rates * lasting)])

        def until(instant: float) -> float:
            whole, rest = divmod(instant, period)
            return float(
                whole * sums[-1] + np.interp(rest, np.concatenate([[0.0], np.cumsum(lasting)]), sums)
            )

    return (until(ends_s) - until(begins_s)) / (ends_s - begins_s)
