"""What a controller of your own is told: typed objects with times in seconds, sizes in bytes, windows in segments.

Of TCP's machine (`WindowController`): `Established`, `Acked`, `Lost`, `EcnEcho`, `Timeout`, `Recovered`, `Undo`,
`Idle`, `Deflate`, `Repaired`, `Duplicate`, `Resumed`; with `needs` also `Delivery` and `LostOne`; with `every` an
`Interval` alone. Of TFRC's (`RateController`): `Started`, `RateReport`, `NoFeedback`. Of RTP's (`MediaController`):
`SessionStarted`, `Arrivals` of `PacketFate`s, `MediaReport`, `Silence`, `FrameWritten`, `PacketSent`. A `PathView`
comes with each.
"""

from paceline._core import (
    Acked,
    Arrivals,
    Deflate,
    Delivery,
    Duplicate,
    EcnEcho,
    Established,
    FrameWritten,
    Idle,
    Interval,
    Lost,
    LostOne,
    MediaReport,
    NoFeedback,
    PacketFate,
    PacketSent,
    PathView,
    RateReport,
    Recovered,
    Repaired,
    Resumed,
    SessionStarted,
    Silence,
    Started,
    Timeout,
    Undo,
)

__all__ = [
    "Acked",
    "Arrivals",
    "Deflate",
    "Delivery",
    "Duplicate",
    "EcnEcho",
    "Established",
    "FrameWritten",
    "Idle",
    "Interval",
    "Lost",
    "LostOne",
    "MediaReport",
    "NoFeedback",
    "PacketFate",
    "PacketSent",
    "PathView",
    "RateReport",
    "Recovered",
    "Repaired",
    "Resumed",
    "SessionStarted",
    "Silence",
    "Started",
    "Timeout",
    "Undo",
]
