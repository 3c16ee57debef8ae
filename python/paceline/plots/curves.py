"""One quantity over another, a line for each combination of the others: for throughput models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from paceline.plots import style
from paceline.quantities import unit_of

DECADE = 10.0
SCALES = {"bit/s": ((1e6, "Mbit/s"), (1e3, "kbit/s")), "s": ((1.0, "s"), (1e-3, "ms"))}


@dataclass(frozen=True)
class Axis:
    """The quantity along an axis."""

    label: str
    column: str
    """Its name, which ends in the unit."""
    values: np.ndarray


def figure(x: Axis, y: Axis, names: Sequence[str], title: str) -> Figure:
    """The figure: points of one name form a line. An axis that spans more than a decade is logarithmic."""
    with mpl.rc_context(style.RC):
        drawn = style.Shown(figsize=(6.2, 3.6), layout="constrained")
        axes = drawn.add_subplot()
        (x_values, x_label), (y_values, y_label) = _scaled(x), _scaled(y)
        for i, name in enumerate(dict.fromkeys(names)):
            mine = [k for k, other in enumerate(names) if other == name]
            mine.sort(key=lambda k: x_values[k])
            axes.plot(x_values[mine], y_values[mine], label=name, **style.line_of(i))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.set_title(title)
        for values, rescale in ((x_values, axes.set_xscale), (y_values, axes.set_yscale)):
            if values.min() > 0 and values.max() / values.min() > DECADE:
                rescale("log")
        if any(names):
            axes.legend()
    return drawn


def _scaled(axis: Axis) -> tuple[np.ndarray, str]:
    unit = unit_of(axis.column)
    if axis.column.endswith("_per_s"):
        unit = ""
    scales = SCALES.get(unit, ((1.0, unit),))
    reach = float(np.median(axis.values))
    factor, unit = next(((f, u) for f, u in scales if reach >= f), scales[-1])
    return axis.values / factor, f"{axis.label} ({unit})" if unit else axis.label
