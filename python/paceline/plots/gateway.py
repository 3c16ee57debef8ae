"""A gateway's measurements and actions: delay, rates, and the windows of the largest connections, over time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from paceline import files
from paceline.errors import PacelineError
from paceline.files.file_kinds import seems
from paceline.plots import style

MAX_NAMED = 6
"""The number of largest connections with a colour; others are grey."""

Status = dict[str, Any]
"""An interval, as `paceline gateway --out` writes it (docs/gateway.md)."""


def read(path: Path) -> list[Status]:
    """The intervals in a file of `paceline gateway --out` or `paceline-gateway --out`. Raises PacelineError for any
    other file, and StorageError."""
    found: list[Status] = []
    none = f"{path} is no qlog, and has no interval of a gateway (`paceline gateway --out`): {seems(path)}"
    try:
        lines = files.read_bytes(path).decode().splitlines()
    except UnicodeDecodeError:
        raise PacelineError(none) from None
    for number, line in enumerate(lines, 1):
        try:
            read_in = json.loads(line)
            if "flows" in read_in:
                found.append({key: read_in[key] for key in ("time_s", "delay_s", "udp_bps", "flows")})
        except (ValueError, TypeError, KeyError) as error:
            if number == len(lines):  # an incomplete last line of a killed gateway
                break
            if number == 1:
                raise PacelineError(none) from None
            raise PacelineError(
                f"{path}:{number}: not an interval of a gateway (a file of paceline gateway --out): {error}"
            ) from error
    if not found:
        raise PacelineError(none)
    return found


def figure(intervals: Sequence[Status], title: str) -> Figure:
    """Panels: the longest wait in ms, Mbit/s of each connection and of UDP, windows and outstanding data in kB."""
    time = np.array([one["time_s"] for one in intervals])
    size: dict[str, float] = {}
    for one in intervals:
        for flow in one["flows"]:
            name = _name(flow)
            size[name] = size.get(name, 0.0) + flow["rate_bps"]
    largest = sorted(size, key=lambda name: -size[name])
    named = largest if len(largest) <= MAX_NAMED + 1 else largest[:MAX_NAMED]
    with mpl.rc_context(style.RC):
        made = style.Shown(figsize=(7.2, 6.4), layout="constrained")
        waits, rates, windows = made.subplots(3, 1, sharex=True)
        waits.plot(time, [one["delay_s"] * 1e3 for one in intervals], color="black")
        waits.set_ylabel("longest wait (ms)")
        waits.set_title(title)
        rates.plot(
            time, [one["udp_bps"] / 1e6 for one in intervals], color="black", label="UDP", linestyle=":"
        )
        for i, name in reversed(list(enumerate(largest))):
            mine: list[dict[str, Any]] = [
                next((flow for flow in one["flows"] if _name(flow) == name), {}) for one in intervals
            ]
            look = style.line_of(i) if name in named else {"color": style.OTHERS, "linewidth": 0.5}
            label = name if name in named else None
            rates.plot(time, _column(mine, "rate_bps", 1e-6), label=label, **look)
            windows.plot(time, _column(mine, "window_bytes", 1e-3), **look)
            if i == 0:
                outstanding = _column(mine, "outstanding_bytes", 1e-3)
                windows.plot(
                    time, outstanding, color=style.OTHERS, label="outstanding of the largest", zorder=1
                )
        rates.set_ylabel("rate (Mbit/s)")
        handles = [*rates.get_legend_handles_labels()[0][::-1], *windows.get_legend_handles_labels()[0]]
        made.legend(handles=handles, loc="outside lower center", ncols=2)
        if len(largest) > len(named):
            rates.set_title(f"{len(largest) - len(named)} smaller connections in grey", fontsize=8)
        windows.set_ylabel("window set (kB)")
        windows.set_xlabel("time (s)")
        for axes in (waits, rates, windows):
            style.from_zero([axes])
        windows.set_xlim(left=0)
    return made


def _name(flow: dict[str, Any]) -> str:
    return f"{flow['station']} {flow['remote']}"


def _column(flows: Sequence[dict[str, Any]], key: str, scale: float) -> list[float]:
    """A connection's number in each interval; nan if it has none."""
    values = (flow.get(key) for flow in flows)
    return [float("nan") if value is None else value * scale for value in values]
