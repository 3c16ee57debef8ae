"""The events that your own controller receives: typed objects, times in seconds, sizes in bytes, windows in segments.

`WindowController` (TCP) receives `Established`, `Acked`, `Lost`, `EcnEcho`, `Timeout`, `Recovered`, `Undo`, `Idle`,
`Deflate`, `Repaired`, `Duplicate`, `Resumed`; with `needs` also `Delivery` and `LostOne`; with `every` only `Interval`.
`RateController` (TFRC) receives `Started`, `RateReport`, `NoFeedback`. `MediaController` (RTP) receives
`SessionStarted`, `Arrivals` of `PacketFate`s, `MediaReport`, `Silence`, `FrameWritten`, `PacketSent`. Each comes with a
`PathView`.
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
