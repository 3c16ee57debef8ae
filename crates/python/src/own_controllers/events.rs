//! Events for controllers in Python: each a small object, with times in seconds and rates in bit/s.

use paceline_control::monitor_interval::Monitored;
use paceline_control::rtp::{Fate, RtpEvent};
use paceline_control::{
    Interval as Sending, LostSegment, PathView as View, RateSample, TcpEvent, TfrcEvent, Threshold,
};
use paceline_units::{Span, Time};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

/// Seconds since the beginning of the run.
pub fn instant(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

/// Classes of events: fields, a constructor for controllers' tests, patterns for `match`, and `repr`.
macro_rules! events {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $of:ty),* $(,)? })+) => {
        $(
            $(#[$doc])*
            #[pyclass(frozen, get_all, module = "paceline.events")]
            #[derive(Debug)]
            pub struct $name { $($field: $of),* }

            #[pymethods]
            impl $name {
                #[new]
                #[allow(clippy::too_many_arguments, reason = "an event has as many fields as it has")]
                fn new($($field: $of),*) -> $name {
                    $name { $($field),* }
                }

                #[classattr]
                #[pyo3(name = "__match_args__")]
                fn match_args(py: Python<'_>) -> PyResult<Py<PyAny>> {
                    let names: Vec<&str> = vec![$(stringify!($field)),*];
                    pyo3::types::PyTuple::new(py, names)?.into_py_any(py)
                }

                fn __repr__(&self) -> String {
                    let fields: Vec<String> = vec![$(format!("{}={:?}", stringify!($field), self.$field)),*];
                    format!("{}({})", stringify!($name), fields.join(", "))
                }
            }
        )+

        /// Adds the classes to the module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            $(module.add_class::<$name>()?;)+
            module.add_class::<Arrivals>()
        }
    };
}

events! {
    /// A controller's view of its path: seconds, and segments of `segment_bytes` of payload. `srtt_s` is zero before
    /// the first sample (RFC 6298); `rttvar_s` is TCP's alone. `acked` is the next segment that the receiver expects,
    /// `next` the next one to send in order. `receive_window` is 2**32 - 1 if there is none.
    PathView {
        now_s: f64, srtt_s: f64, rttvar_s: f64, min_rtt_s: f64, in_flight: u32, acked: u32, next: u32,
        receive_window: u32, segment_bytes: u32,
    }
    /// The connection is established; `window` is the initial window in segments.
    Established { window: f64 }
    /// New data were acknowledged outside recovery: count of segments, the segments in flight before, and the newest
    /// segment's round-trip time unless ambiguous (Karn). It includes the receiver's ACK delay.
    Acked { segments: u32, in_flight: u32, rtt_s: Option<f64> }
    /// The same during recovery, under profiles ns2-linux and linux.
    Repaired { segments: u32, rtt_s: Option<f64> }
    /// A further duplicate ACK in Vegas' recovery.
    Duplicate {}
    /// A loss found without a timeout, at most once per window of data. `duplicates` is the inflation of the window,
    /// zero if the machine inflates it; `again` means that this segment was lost before.
    Lost { duplicates: u32, again: bool }
    /// A partial acknowledgement (RFC 6582, 3.2): deflate the window by this many segments.
    Deflate { segments: u32 }
    /// Recovery has ended; a window above `at_most` would release a burst.
    Recovered { at_most: f64 }
    /// The last reduction was spurious (RFC 4015), under profile linux: window and threshold before it.
    Undo { window: f64, threshold: f64 }
    /// The retransmission timer expired; `cut` means that the threshold must be reduced too.
    Timeout { cut: bool }
    /// The receiver echoed ECN marks (RFC 3168), at most once per window of data.
    EcnEcho {}
    /// Sending resumes after `idle_s` with nothing in flight, under profile linux.
    Resumed { idle_s: f64, app_limited: bool }
    /// Nothing was sent for longer than the timeout (RFC 5681, 4.1); `window` is the restart window.
    Idle { window: f64 }
    /// A delivery rate sample (RS of draft-ietf-ccwg-bbr), with `needs` deliveries: volumes in bytes.
    Delivery {
        total: u64, newly_acked: u64, newly_lost: u64, newly_marked: u32, prior_delivered: u64, delivered: u64,
        interval_s: f64, rtt_s: Option<f64>, tx_in_flight: u64, lost: u64, app_limited: bool, prior_in_flight: u64,
        in_flight: u64, window_limited: bool,
    }
    /// A lost segment, with the state when it was sent, with `needs` deliveries: volumes in bytes.
    LostOne { seq: u32, size: u64, total: u64, tx_in_flight: u64, lost: u64, app_limited: bool }
    /// Statistics of an interval, with `every`: bytes acknowledged, lost and sent (including retransmissions), marks,
    /// timeouts, and mean, minimum and maximum round-trip time. `loss` is the lost share of what was acknowledged or
    /// lost.
    Interval {
        duration_s: f64, acked_bytes: u64, lost_bytes: u64, sent_bytes: u64, marked: u32, timeouts: u32, rtt_s: Option<f64>,
        least_rtt_s: Option<f64>, most_rtt_s: Option<f64>, delivery_bps: f64, loss: f64, app_limited: bool,
    }
    /// A TFRC sender starts, without a round-trip sample yet.
    Started {}
    /// A receiver's TFRC report: R_sample, t_RTO, X_recv and p of RFC 5348.
    RateReport {
        rtt_s: f64, timeout_s: f64, receive_rate_bps: f64, loss_event_rate: f64, data_limited: bool,
    }
    /// The nofeedback timer expired (RFC 5348, 4.4).
    NoFeedback { data_limited: bool }
    /// An RTP sender starts: bytes of a full packet on the wire, and the mean time between reports.
    SessionStarted { packet_bytes: u64, report_interval_s: f64 }
    /// A receiver report over RTP (RFC 3550): the share lost since the previous report, and the bottleneck's rate, if
    /// the receiver measures it.
    MediaReport {
        loss: f64, rtt_s: Option<f64>, since_s: f64, bottleneck_bps: Option<f64>, data_limited: bool,
    }
    /// The fate of a packet with `size` bytes on the wire, including `payload` from the application. `arrived_s` is by
    /// the receiver's clock; None if it is not reported. If neither `arrived` nor `lost`, its feedback was lost.
    PacketFate {
        number: u32, sent_s: f64, size: u64, payload: u64, ends_frame: bool, probe: Option<u32>, arrived: bool,
        lost: bool, arrived_s: Option<f64>, marked: bool,
    }
    /// No feedback has arrived for `silence` intervals, or for one more.
    Silence {}
    /// The application wrote a frame of `size` bytes on the wire, with `tells_sending`.
    FrameWritten { size: u64 }
    /// A packet was sent, with `tells_sending`; `in_flight` is in bytes and includes it.
    PacketSent { number: u32, size: u64, payload: u64, in_flight: u64 }
}

/// Feedback on single packets (RFC 8888, or transport-wide): the packets whose fate is now known, the last one's
/// round-trip time, the sender's backlog, the waiting time of its oldest frame, and the bytes in flight.
#[pyclass(frozen, get_all, module = "paceline.events")]
#[derive(Debug)]
pub struct Arrivals {
    packets: Vec<Py<PacketFate>>,
    rtt_s: Option<f64>,
    since_s: f64,
    backlog_bytes: u64,
    waiting_s: f64,
    in_flight_bytes: u64,
    data_limited: bool,
}

#[pymethods]
impl Arrivals {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "an event has as many fields as it has")]
    fn new(
        packets: Vec<Py<PacketFate>>,
        rtt_s: Option<f64>,
        since_s: f64,
        backlog_bytes: u64,
        waiting_s: f64,
        in_flight_bytes: u64,
        data_limited: bool,
    ) -> Arrivals {
        Arrivals { packets, rtt_s, since_s, backlog_bytes, waiting_s, in_flight_bytes, data_limited }
    }

    #[classattr]
    #[pyo3(name = "__match_args__")]
    fn match_args() -> (&'static str, &'static str) {
        ("packets", "rtt_s")
    }

    fn __repr__(&self) -> String {
        format!("Arrivals({} packets, rtt_s={:?})", self.packets.len(), self.rtt_s)
    }
}

impl PathView {
    /// From the core's view.
    #[inline]
    pub fn of(path: &View) -> PathView {
        PathView {
            now_s: instant(path.now),
            srtt_s: seconds(path.srtt),
            rttvar_s: seconds(path.rttvar),
            min_rtt_s: seconds(path.min_rtt),
            in_flight: path.in_flight,
            acked: path.acked,
            next: path.next,
            receive_window: path.receive_window,
            segment_bytes: path.segment,
        }
    }
}

fn is_limited(interval: Sending) -> bool {
    interval == Sending::DataLimited
}

/// An event of TCP's machine.
pub fn of_tcp(py: Python<'_>, event: &TcpEvent) -> PyResult<Py<PyAny>> {
    match *event {
        TcpEvent::Acked { segments, in_flight, rtt } => {
            Acked { segments, in_flight, rtt_s: rtt.map(seconds) }.into_py_any(py)
        }
        TcpEvent::Established { window } => Established { window }.into_py_any(py),
        TcpEvent::Repaired { segments, rtt } => Repaired { segments, rtt_s: rtt.map(seconds) }.into_py_any(py),
        TcpEvent::Duplicate => Duplicate {}.into_py_any(py),
        TcpEvent::Lost { duplicates, again } => Lost { duplicates, again }.into_py_any(py),
        TcpEvent::Deflate { segments } => Deflate { segments }.into_py_any(py),
        TcpEvent::Recovered { at_most } => Recovered { at_most }.into_py_any(py),
        TcpEvent::Undo { window, threshold } => Undo { window, threshold }.into_py_any(py),
        TcpEvent::Timeout(threshold) => Timeout { cut: threshold == Threshold::Cut }.into_py_any(py),
        TcpEvent::EcnEcho => EcnEcho {}.into_py_any(py),
        TcpEvent::Resumed { idle, app_limited } => Resumed { idle_s: seconds(idle), app_limited }.into_py_any(py),
        TcpEvent::Idle { window } => Idle { window }.into_py_any(py),
    }
}

/// A delivery rate sample.
pub fn of_delivery(sample: &RateSample) -> Delivery {
    Delivery {
        total: sample.total,
        newly_acked: sample.newly_acked,
        newly_lost: sample.newly_lost,
        newly_marked: sample.newly_marked,
        prior_delivered: sample.prior_delivered,
        delivered: sample.delivered,
        interval_s: seconds(sample.interval),
        rtt_s: sample.rtt.map(seconds),
        tx_in_flight: sample.tx_in_flight,
        lost: sample.lost,
        app_limited: sample.app_limited,
        prior_in_flight: sample.prior_in_flight,
        in_flight: sample.in_flight,
        window_limited: sample.window_limited,
    }
}

/// Statistics of an interval.
pub fn of_interval(interval: &Monitored) -> Interval {
    Interval {
        duration_s: seconds(interval.duration),
        acked_bytes: interval.acked,
        lost_bytes: interval.lost,
        sent_bytes: interval.sent,
        marked: interval.marked,
        timeouts: interval.timeouts,
        rtt_s: interval.rtt(),
        least_rtt_s: interval.min_rtt.map(seconds),
        most_rtt_s: interval.max_rtt.map(seconds),
        delivery_bps: interval.delivery_rate() * 8.0,
        loss: interval.loss(),
        app_limited: interval.app_limited,
    }
}

/// A lost segment.
pub fn of_lost(lost: &LostSegment) -> LostOne {
    let LostSegment { seq, size, total, tx_in_flight, lost, app_limited } = *lost;
    LostOne { seq, size, total, tx_in_flight, lost, app_limited }
}

/// An event of TFRC's machine.
pub fn of_tfrc(py: Python<'_>, event: &TfrcEvent) -> PyResult<Py<PyAny>> {
    match *event {
        TfrcEvent::Started => Started {}.into_py_any(py),
        TfrcEvent::Report(report) => RateReport {
            rtt_s: seconds(report.rtt),
            timeout_s: seconds(report.timeout),
            receive_rate_bps: report.receive_rate * 8.0,
            loss_event_rate: report.loss_event_rate,
            data_limited: is_limited(report.interval),
        }
        .into_py_any(py),
        TfrcEvent::NoFeedback { interval } => NoFeedback { data_limited: is_limited(interval) }.into_py_any(py),
    }
}

/// An event of RTP's machine; None for a tick, which has its own method.
pub fn of_rtp(py: Python<'_>, event: &RtpEvent) -> PyResult<Option<Py<PyAny>>> {
    Ok(Some(match event {
        RtpEvent::Tick => return Ok(None),
        RtpEvent::Started(session) => {
            SessionStarted { packet_bytes: session.packet.bytes(), report_interval_s: seconds(session.interval) }
                .into_py_any(py)?
        }
        RtpEvent::Report(report) => MediaReport {
            loss: report.loss.0,
            rtt_s: report.rtt.map(seconds),
            since_s: seconds(report.since),
            bottleneck_bps: report.bottleneck.map(|rate| rate.bps()),
            data_limited: is_limited(report.interval),
        }
        .into_py_any(py)?,
        RtpEvent::Arrivals(told) => {
            let fate = |packet: &paceline_control::PacketResult| {
                let (arrived_s, marked) = match packet.fate {
                    Fate::Arrived { at, marked } => (at.map(instant), marked),
                    Fate::Lost | Fate::Unknown => (None, false),
                };
                let of = packet.packet;
                let fate = PacketFate {
                    number: of.number,
                    sent_s: instant(packet.sent),
                    size: of.size.bytes(),
                    payload: of.payload.bytes(),
                    ends_frame: of.ends_frame,
                    probe: of.probe,
                    arrived: matches!(packet.fate, Fate::Arrived { .. }),
                    lost: packet.fate == Fate::Lost,
                    arrived_s,
                    marked,
                };
                Py::new(py, fate)
            };
            Arrivals {
                packets: told.packets.iter().map(fate).collect::<PyResult<_>>()?,
                rtt_s: told.rtt.map(seconds),
                since_s: seconds(told.since),
                backlog_bytes: told.backlog.bytes(),
                waiting_s: seconds(told.waiting),
                in_flight_bytes: told.in_flight.bytes(),
                data_limited: is_limited(told.interval),
            }
            .into_py_any(py)?
        }
        RtpEvent::Silence => Silence {}.into_py_any(py)?,
        RtpEvent::Frame { size } => FrameWritten { size: size.bytes() }.into_py_any(py)?,
        RtpEvent::Sent { packet, in_flight } => PacketSent {
            number: packet.number,
            size: packet.size.bytes(),
            payload: packet.payload.bytes(),
            in_flight: in_flight.bytes(),
        }
        .into_py_any(py)?,
    }))
}
