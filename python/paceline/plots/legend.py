"""A legend outside the axes, for which the figure grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend


def outside(
    figure: Figure, handles: Sequence[Artist], place: Any, title: str = "", **look: Any
) -> Legend | None:
    """Puts the entries, if any, at matplotlib's `place` ("outside lower center"), in as few rows as the width allows;
    the figure grows by them. `look` goes to `Figure.legend`."""
    for rows in range(1, len(handles) + 1):
        columns = math.ceil(len(handles) / rows)
        if rows > 1 and columns == math.ceil(len(handles) / (rows - 1)):
            continue
        legend = figure.legend(handles=list(handles), title=title or None, ncols=columns, loc=place, **look)
        box = legend.get_window_extent()
        if columns == 1 or box.width <= figure.bbox.width:
            figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)
            return legend
        legend.remove()
    return None
