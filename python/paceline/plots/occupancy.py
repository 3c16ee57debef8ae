"""The occupancy of queues: the share of the time at each tenth of their limit, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import polars as pl
from matplotlib.figure import Figure

from paceline.errors import PacelineError
from paceline.plots import style
from paceline.results.results import Results
from paceline.statistics import Estimate, estimate

TENTHS = tuple(f"occupancy_{k}" for k in range(10))
"""The columns in the table of queues."""

MAX_QUEUES = 8


@dataclass(frozen=True)
class Histogram:
    """A queue's histogram: its name, and each run's share of the time at each tenth."""

    name: str
    shares: list[Estimate]


def measured(results: Results) -> bool:
    """Whether any queue's occupancy was measured."""
    return TENTHS[0] in results.queues.columns


def histograms(results: Results, label: str = "") -> list[Histogram]:
    """The histograms of every measured queue, at every point of a sweep."""
    if not measured(results):
        raise PacelineError("no queue's occupancy was measured: give a link `occupancy = true`")
    table = results.queues.filter(pl.col(TENTHS[0]).is_not_null())
    found = []
    for part in table.partition_by([*results.axes, "link", "direction"], maintain_order=True):
        values = [f"{axis} = {part[axis][0]}" for axis in results.axes]
        name = ", ".join([*([label] if label else []), f"{part['link'][0]} {part['direction'][0]}", *values])
        found.append(Histogram(name, [estimate(part[column].to_list()) for column in TENTHS]))
    return found


def figure(queues: Sequence[Histogram]) -> Figure:
    """Bars of all queues side by side, tenth by tenth; for several runs with 95 % intervals."""
    if len(queues) > MAX_QUEUES:
        raise PacelineError(
            f"{len(queues)} queues are too many for a figure (at most {MAX_QUEUES}): plot fewer runs or points"
        )
    with mpl.rc_context(style.RC):
        made = style.Shown(figsize=(7.2, 3.0), layout="constrained")
        axes = made.subplots()
        width = 0.8 / len(queues)
        for i, queue in enumerate(queues):
            left = [k - 0.4 + (i + 0.5) * width for k in range(10)]
            heights = [100 * (share.mean or 0.0) for share in queue.shares]
            halves = [100 * (share.half_width or 0.0) for share in queue.shares]
            axes.bar(left, heights, width, color=style.PALETTE[i % len(style.PALETTE)], label=queue.name)
            if any(halves):
                axes.errorbar(
                    left, heights, halves, fmt="none", ecolor="#404040", elinewidth=0.8, capsize=1.5
                )
        axes.set_xticks(range(10), [f"{10 * k}-{10 * k + 10}" for k in range(10)])
        axes.set_xlabel("queue (% of its limit)")
        axes.set_ylabel("time (%)")
        axes.set_ylim(bottom=0)
        axes.grid(visible=False, axis="x")
        axes.legend(loc="upper right")
    return made
