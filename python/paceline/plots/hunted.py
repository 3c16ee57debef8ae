"""A hunt: the values of the tries with the worst so far, and along each axis with the finds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

from paceline.hunts.ranges import Axis, Choices
from paceline.plots.style import OTHERS, PALETTE, RC, Shown
from paceline.quantities import unit_of

if TYPE_CHECKING:
    from paceline.hunts.finds import Hunt

_WIDTH_IN, _HEIGHT_IN, _PANEL_IN = 7.16, 2.2, 1.9
_ACROSS = 3
_LOG_SPAN = 100.0
"""Positive values that span a larger factor have a logarithmic axis."""


def figure(hunt: Hunt) -> Shown:
    """The figure of a hunt."""
    values = [one.outcome.mean for one in hunt.tried]
    known = [value for value in values if not math.isnan(value)]
    rows = math.ceil(len(hunt.axes) / _ACROSS)
    with mpl.rc_context(RC):
        drawn = Shown(figsize=(_WIDTH_IN, _HEIGHT_IN + rows * _PANEL_IN), layout="constrained")
        across = min(_ACROSS, len(hunt.axes))
        grid = drawn.add_gridspec(rows + 1, across, height_ratios=[_HEIGHT_IN, *[_PANEL_IN] * rows])
        first: Any = drawn.add_subplot(grid[0, :])
        _over_tries(first, hunt, values)
        if known and min(known) > 0 and max(known) > _LOG_SPAN * min(known):
            first.set_yscale("log")
        for place, axis in enumerate(hunt.axes):
            panel: Any = drawn.add_subplot(grid[1 + place // _ACROSS, place % _ACROSS], sharey=first)
            _along(panel, hunt, place, axis, values)
            if place % _ACROSS:
                panel.tick_params(labelleft=False)
    return drawn


def _crashes(hunt: Hunt) -> list[int]:
    return [n for n, one in enumerate(hunt.tried) if one.outcome.crashes]


def _over_tries(panel: Any, hunt: Hunt, values: Sequence[float]) -> None:
    numbers = range(1, len(values) + 1)
    panel.plot(numbers, values, ".", color=OTHERS, markersize=4, label="a try")
    best, so_far = -math.inf, []
    for value in values:
        best = best if math.isnan(value) else max(best, value)
        so_far.append(best if best > -math.inf else math.nan)
    panel.plot(numbers, so_far, color=PALETTE[0], label="the greatest so far", drawstyle="steps-post")
    panel.axhline(
        hunt.own_searched, color=PALETTE[6], linestyle=(0, (4, 2)), linewidth=0.8, label="the file itself"
    )
    if crashed := _crashes(hunt):
        # above all values, in axes coordinates
        top = panel.get_xaxis_transform()
        panel.plot(
            [n + 1 for n in crashed],
            [0.97] * len(crashed),
            "x",
            color=PALETTE[1],
            markersize=4,
            transform=top,
            clip_on=False,
            label="a run fails",
        )
    if hunt.finds:
        panel.plot(
            [],
            [],
            "o",
            markerfacecolor="none",
            color=PALETTE[1],
            markersize=7,
            label="a find, on fresh seeds",
        )
    unit = unit_of(hunt.goal.measure or "")
    panel.set_xlabel("try")
    panel.set_title(f"{hunt.worst} ({unit})" if unit else hunt.worst)
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.0)


def _along(panel: Any, hunt: Hunt, place: int, axis: Axis, values: Sequence[float]) -> None:
    where = [axis.place(one.candidate[place]) or 0.0 for one in hunt.tried]
    panel.plot(where, values, ".", color=OTHERS, markersize=3)
    top = panel.get_xaxis_transform()
    if crashed := _crashes(hunt):
        panel.plot(
            [where[n] for n in crashed],
            [0.97] * len(crashed),
            "x",
            color=PALETTE[1],
            markersize=3,
            transform=top,
        )
    own = hunt.own[place]
    own_place = None if own is None else axis.place(own)
    if own_place is not None and -0.05 <= own_place <= 1.05:
        panel.axvline(own_place, color=PALETTE[6], linestyle=(0, (4, 2)), linewidth=0.8)
    for find in hunt.finds:
        value = find.candidate[place]
        at = own_place if value is None else axis.place(value)
        height = None if find.crash or find.value is None else find.value.mean
        if at is None:
            continue
        if height is None:
            panel.annotate(
                str(find.number),
                (at, 0.9),
                xycoords=("data", "axes fraction"),
                ha="center",
                color=PALETTE[1],
                fontweight="bold",
            )
        else:
            panel.plot([at], [height], "o", markerfacecolor="none", color=PALETTE[1], markersize=7)
            panel.annotate(
                str(find.number),
                (at, height),
                textcoords="offset points",
                xytext=(5, 3),
                color=PALETTE[1],
                fontweight="bold",
            )
    panel.set_title(", ".join(axis.paths), fontsize=8)
    if isinstance(axis, Choices):
        panel.set_xticks(range(len(axis.steps)), axis.values(), fontsize=7)
        panel.set_xlim(-0.5, len(axis.steps) - 0.5)
    else:
        panel.set_xticks([0, 0.5, 1], [axis.at(0.0), axis.at(0.5), axis.at(1.0)], fontsize=7)
        panel.set_xlim(-0.05, 1.05)
