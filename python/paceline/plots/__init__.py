"""Figures of recordings over time: one kind per file, each a `Kind` that defines its axes and draws one panel.

`timeline.figure` combines panels; `style` has the common style. A new kind is one file and one line here. `gauges`
draws controllers' gauges of any kind; `occupancy` draws histograms, which are not recordings. `sweeps` selects the data
of a sweep's figure, `chart` draws it, `wording` labels it.
"""

from __future__ import annotations

from paceline.plots import (
    acks,
    airtime,
    arrivals,
    cwnd,
    feedback,
    frames,
    kernel,
    losses,
    playout,
    qlog,
    queue,
    rate,
    rtcp,
    sequence,
    tfrc,
    windows,
)
from paceline.plots.style import save
from paceline.plots.timeline import Kind, figure

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        cwnd.KIND,
        rate.KIND,
        rtcp.KIND,
        sequence.KIND,
        losses.KIND,
        acks.KIND,
        tfrc.KIND,
        kernel.KIND,
        qlog.KIND,
        queue.KIND,
        playout.KIND,
        arrivals.KIND,
        frames.KIND,
        feedback.KIND,
        airtime.KIND,
        windows.KIND,
    )
}

__all__ = ["KINDS", "Kind", "figure", "save"]
