"""What a controller of your own is told: see `events.py`."""

from dataclasses import dataclass
from typing import final

@final
@dataclass(frozen=True)
class PathView:
    """What a controller may see of its path: seconds, and segments of `segment_bytes` of payload. `srtt_s` is
    zero before the first sample (RFC 6298), `rttvar_s` of TCP alone; `acked` is the next segment that the
    receiver expects, `next` the next to send in order; `receive_window` is 2**32 - 1 where there is none.
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
    """The connection stands; `window` is the initial window in segments."""

    window: float

@final
@dataclass(frozen=True)
class Acked:
    """New data are acknowledged, outside of recovery: how many segments, what was in flight before, and the
    round-trip time of the newest of them, unless it is ambiguous (Karn). What the receiver delayed its acknowledgement
    by is in it.
    """

    segments: int
    in_flight: int
    rtt_s: float | None

@final
@dataclass(frozen=True)
class Repaired:
    """The same during recovery, under profiles ns2-linux and linux."""

    segments: int
    rtt_s: float | None

@final
@dataclass(frozen=True)
class Duplicate:
    """One more duplicate in Vegas' recovery."""

@final
@dataclass(frozen=True)
class Lost:
    """A loss, found without a timeout: at most once a window of data. `duplicates` is by how many the window is
    to be inflated, zero where the machine does it; `again`: this loss is not the segment's first.
    """

    duplicates: int
    again: bool

@final
@dataclass(frozen=True)
class Deflate:
    """A partial acknowledgement (RFC 6582, 3.2): the window is to shrink by so many segments."""

    segments: int

@final
@dataclass(frozen=True)
class Recovered:
    """Recovery is over; a window above `at_most` would let a burst out."""

    at_most: float

@final
@dataclass(frozen=True)
class Undo:
    """The last reduction was for nothing (RFC 4015), under profile linux: window and threshold before it."""

    window: float
    threshold: float

@final
@dataclass(frozen=True)
class Timeout:
    """The retransmission timer has expired; `cut`: the threshold is to be cut too."""

    cut: bool

@final
@dataclass(frozen=True)
class EcnEcho:
    """The receiver echoes a mark (RFC 3168), at most once a window of data."""

@final
@dataclass(frozen=True)
class Resumed:
    """Sending begins again after nothing was in flight for so long, under profile linux."""

    idle_s: float
    app_limited: bool

@final
@dataclass(frozen=True)
class Idle:
    """Nothing was sent for longer than the timeout (RFC 5681, 4.1); `window` is the restart window."""

    window: float

@final
@dataclass(frozen=True)
class Delivery:
    """A sample of the delivery rate (RS of draft-ietf-ccwg-bbr), with `needs` deliveries: volumes in bytes."""

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
    """A segment that was found lost, and what was known when it left, with `needs` deliveries: volumes in
    bytes.
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
    """What an interval was like, with `every`: bytes acknowledged, lost, and sent (again too), marks, timeouts, and
    round-trip times: mean, least, greatest. `loss` is the share lost of what was acknowledged or lost.
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
    """A sender on TFRC begins, without a round-trip sample yet."""

@final
@dataclass(frozen=True)
class RateReport:
    """A receiver's report on TFRC: R_sample, t_RTO, X_recv and p of RFC 5348."""

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
    """A sender on RTP begins: bytes of a full packet on the wire, and the mean time between reports."""

    packet_bytes: int
    report_interval_s: float

@final
@dataclass(frozen=True)
class MediaReport:
    """A receiver's report on RTP (RFC 3550): the share lost since the one before it, and the bottleneck's rate,
    if the receiver measures it.
    """

    loss: float
    rtt_s: float | None
    since_s: float
    bottleneck_bps: float | None
    data_limited: bool

@final
@dataclass(frozen=True)
class PacketFate:
    """What has become of a packet of `size` bytes on the wire, of which the application wrote `payload`.
    `arrived_s` is by the receiver's clock, None if it does not tell; neither `arrived` nor `lost`: its
    feedback was lost itself.
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
    """Feedback on single packets (RFC 8888, or transport-wide): those whose fate is known now, the round-trip
    time of the last one, what waits at the sender, how long its oldest frame has, and the bytes in flight.
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
    """No feedback has come for `silence` intervals, or for one more."""

@final
@dataclass(frozen=True)
class FrameWritten:
    """The application has written a frame of `size` bytes on the wire, with `tells_sending`."""

    size: int

@final
@dataclass(frozen=True)
class PacketSent:
    """A packet has left, with `tells_sending`; `in_flight` are bytes with it."""

    number: int
    size: int
    payload: int
    in_flight: int
