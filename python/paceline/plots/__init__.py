"""Figures of recordings over time: one kind per file, each a `Kind` that says its axes and draws one panel.

`timeline.figure` puts panels together, `style` holds what all share. A new kind is one file and one line here.
`gauges` draws what controllers say of themselves, whatever it is; `occupancy` histograms, which are no recordings.
`sweeps` says what a figure of a sweep shows, `chart` draws it, `words` labels it.
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
