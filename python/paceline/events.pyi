"""The events that your own controller receives: see `events.py`."""

from dataclasses import dataclass
from typing import final

@final
@dataclass(frozen=True)
class PathView:
    """The state of the path: times in seconds, counts in segments of `segment_bytes` of payload. `srtt_s` is zero
    before the first sample (RFC 6298); only TCP has `rttvar_s`. `acked` is the next segment that the receiver expects,
    `next` the next to send in order; `receive_window` is 2**32 - 1 if there is none.
    """

    now_s: float
    srtt_s: float
    rttvar_s: float
    min_rtt_s: float
    in_flight: int
    acked: int
    next: int
    receive_window: int
    segment_bytes: int

@final
@dataclass(frozen=True)
class Established:
    """The connection is established; `window` is the initial window in segments."""

    window: float

@final
@dataclass(frozen=True)
class Acked:
    """An acknowledgement of new data outside recovery: `segments` acknowledged, `in_flight` before it, and the
    round-trip time of the newest of them, None if it is ambiguous (Karn). It includes the receiver's acknowledgement
    delay.
    """

    segments: int
    in_flight: int
    rtt_s: float | None

@final
@dataclass(frozen=True)
class Repaired:
    """An acknowledgement of new data during recovery, under profiles ns2-linux and linux."""

    segments: int
    rtt_s: float | None

@final
@dataclass(frozen=True)
class Duplicate:
    """One more duplicate acknowledgement in Vegas' recovery."""

@final
@dataclass(frozen=True)
class Lost:
    """A loss, detected without a timeout: at most once a window of data. `duplicates` is the number of segments by
    which to inflate the window, zero if the sender does that; `again`: the segment was lost before.
    """

    duplicates: int
    again: bool

@final
@dataclass(frozen=True)
class Deflate:
    """A partial acknowledgement (RFC 6582, 3.2): shrink the window by `segments`."""

    segments: int

@final
@dataclass(frozen=True)
class Recovered:
    """Recovery is over; a window above `at_most` would send a burst."""

    at_most: float

@final
@dataclass(frozen=True)
class Undo:
    """The last reduction was spurious (RFC 4015), under profile linux: window and threshold before it."""

    window: float
    threshold: float

@final
@dataclass(frozen=True)
class Timeout:
    """The retransmission timer has expired; `cut`: reduce the threshold too."""

    cut: bool

@final
@dataclass(frozen=True)
class EcnEcho:
    """The receiver echoes a CE mark (RFC 3168), at most once a window of data."""

@final
@dataclass(frozen=True)
class Resumed:
    """Sending begins again after `idle_s` with nothing in flight, under profile linux."""

    idle_s: float
    app_limited: bool

@final
@dataclass(frozen=True)
class Idle:
    """Nothing was sent for longer than the RTO (RFC 5681, 4.1); `window` is the restart window."""

    window: float

@final
@dataclass(frozen=True)
class Delivery:
    """A delivery-rate sample (RS of draft-ietf-ccwg-bbr), with `needs` deliveries: volumes in bytes."""

    total: int
    newly_acked: int
    newly_lost: int
    newly_marked: int
    prior_delivered: int
    delivered: int
    interval_s: float
    rtt_s: float | None
    tx_in_flight: int
    lost: int
    app_limited: bool
    prior_in_flight: int
    in_flight: int
    window_limited: bool

@final
@dataclass(frozen=True)
class LostOne:
    """A segment that was declared lost, and the connection's state when it was sent, with `needs` deliveries: volumes
    in bytes.
    """

    seq: int
    size: int
    total: int
    tx_in_flight: int
    lost: int
    app_limited: bool

@final
@dataclass(frozen=True)
class Interval:
    """A summary of an interval, with `every`: bytes acknowledged, lost and sent (retransmissions included), CE marks,
    timeouts, and mean, minimum and maximum round-trip time. `loss` is lost / (acknowledged + lost).
    """

    duration_s: float
    acked_bytes: int
    lost_bytes: int
    sent_bytes: int
    marked: int
    timeouts: int
    rtt_s: float | None
    least_rtt_s: float | None
    most_rtt_s: float | None
    delivery_bps: float
    loss: float
    app_limited: bool

@final
@dataclass(frozen=True)
class Started:
    """A TFRC sender begins, without a round-trip sample yet."""

@final
@dataclass(frozen=True)
class RateReport:
    """A TFRC receiver's report: R_sample, t_RTO, X_recv and p of RFC 5348."""

    rtt_s: float
    timeout_s: float
    receive_rate_bps: float
    loss_event_rate: float
    data_limited: bool

@final
@dataclass(frozen=True)
class NoFeedback:
    """The nofeedback timer has expired (RFC 5348, 4.4)."""

    data_limited: bool

@final
@dataclass(frozen=True)
class SessionStarted:
    """An RTP sender begins: size of a full packet on the wire, and the mean time between reports."""

    packet_bytes: int
    report_interval_s: float

@final
@dataclass(frozen=True)
class MediaReport:
    """An RTP receiver's report (RFC 3550): the share lost since the previous report, and the bottleneck's rate if the
    receiver measures it.
    """

    loss: float
    rtt_s: float | None
    since_s: float
    bottleneck_bps: float | None
    data_limited: bool

@final
@dataclass(frozen=True)
class PacketFate:
    """The fate of a packet of `size` bytes on the wire, `payload` of them the application's. `arrived_s` is on the
    receiver's clock, None if it is not reported. If both `arrived` and `lost` are false, the feedback itself was lost.
    """

    number: int
    sent_s: float
    size: int
    payload: int
    ends_frame: bool
    probe: int | None
    arrived: bool
    lost: bool
    arrived_s: float | None
    marked: bool

@final
@dataclass(frozen=True)
class Arrivals:
    """Feedback on single packets (RFC 8888, or transport-wide): the packets whose fate is now known, the round-trip
    time of the last one, the sender's backlog, how long its oldest frame has waited, and the bytes in flight.
    """

    packets: list[PacketFate]
    rtt_s: float | None
    since_s: float
    backlog_bytes: int
    waiting_s: float
    in_flight_bytes: int
    data_limited: bool

@final
@dataclass(frozen=True)
class Silence:
    """No feedback has arrived for `silence` intervals, or for one more."""

@final
@dataclass(frozen=True)
class FrameWritten:
    """The application has written a frame of `size` bytes on the wire; requires `tells_sending`."""

    size: int

@final
@dataclass(frozen=True)
class PacketSent:
    """A packet has been sent; requires `tells_sending`. `in_flight` is in bytes and includes it."""

    number: int
    size: int
    payload: int
    in_flight: int
