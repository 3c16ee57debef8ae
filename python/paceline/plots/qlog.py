"""Round-trip times of a QUIC connection over time, from its log, with a tick at each loss; for a single connection also
the samples and min_rtt."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes

from paceline.plots.kernel import round_trips
from paceline.plots.timeline import Kind, Line, without


def draw(axes: Axes, line: Line, look: dict[str, Any], span_s: float) -> None:
    """Draws a connection's smoothed RTT."""
    round_trips(axes, line, look, "lost_packets", "loss")
    if line.count == 1:
        for column, colour, name in (
            ("latest_rtt_s", "#D8D8D8", "latest RTT"),
            ("rtt_min_s", "#909090", "least RTT"),
        ):
            axes.plot(
                line.data["time_s"],
                line.data[column] * 1e3,
                color=colour,
                linewidth=0.7,
                zorder=1,
                label=name,
            )


KIND = Kind("qlog", lambda _span: "smoothed RTT (ms)", draw, ("flow", "instance"), empty=without("srtt_s"))
