//! Congestion controllers, one file each, and the registry of schemes.
//!
//! A controller only decides how much may be in flight and how fast to send. The machine around it (crate `flow`) owns
//! sequence numbers, round-trip samples, loss detection, pacing and timers. Nothing here reads a clock or does I/O.
//! Uses units. Start with [`Controller`], then read [`reno`], the shortest controller; [`registry`] lists all of them,
//! [`tcp`] defines the events of TCP's machine, and [`models`] holds throughput models. Each controller's file has the
//! same order: citation, parameters, state, update law, trait implementation, gauges.

pub mod acks;
mod allocated;
pub mod allocation;
mod base_delay;
pub mod bbr;
pub mod bbr3;
pub mod c4;
pub mod conformance;
pub mod copa;
pub mod coupled;
pub mod cubic;
pub mod dctcp;
pub mod delivery;
pub mod foreign;
pub mod gcc;
pub mod lda_plus;
pub mod ledbat;
pub mod ledbat_plus_plus;
pub mod models;
pub mod monitor_interval;
pub mod multfrc;
pub mod nada;
pub mod ndtc;
mod parameter;
pub mod prague;
pub mod rap;
pub mod registry;
pub mod reno;
pub mod rtp;
mod scheme;
pub mod scream;
mod slow_start;
pub mod tcp;
pub mod tfrc;
pub mod tfrc_veno;
pub mod tfrcp;
pub mod udp;
pub mod vegas;
pub mod veno;

pub use acks::{AckController, AckEvent, AckSettings, Estimator, Pacing};
pub use allocated::Allocated;
pub use delivery::{Ecn, LostSegment, Needs, RateSample};
pub use foreign::{Failure, Foreign};
pub use parameter::{EncoderRate, Idle, Kind, Parameter, Setting};
pub use registry::{AcksController, RtpController, TcpController, TfrcController};
pub use rtp::{
    Arrivals, Fate, FrameTime, MediaController, PacketResult, Probe, RtpEvent, RtpFeedback, RtpReport, RtpSession,
    RtpSettings, SentPacket,
};
pub use scheme::{Build, Machine, ParameterError, Profile, Recovery, Scheme, UnknownScheme, VARIANT};
pub use tcp::{TcpEvent, Threshold, WindowController};
pub use tfrc::{Interval, Law, RateController, Settings, TfrcEvent, TfrcReport};

use paceline_units::{Span, Time};

/// The path as a controller sees it, kept by the machine around it. Every machine fills every field.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Now.
    pub now: Time,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Round-trip time variation (RFC 6298); zero under TFRC and RTP, whose machines keep none.
    pub rttvar: Span,
    /// Minimum round-trip time.
    pub min_rtt: Span,
    /// Segments sent and not yet acknowledged (FlightSize of RFC 5681).
    pub in_flight: u32,
    /// The next segment that the receiver expects: everything below it is acknowledged.
    pub acked: u32,
    /// The next segment to send in order.
    pub next: u32,
    /// The receive window in segments; `u32::MAX` where there is none: under all machines except TCP's.
    pub receive_window: u32,
    /// Segment payload in bytes.
    pub segment: u32,
}

/// The unit of a gauge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GaugeUnit {
    /// A share, a ratio, a count, or an index.
    One,
    /// Packets or segments.
    Packets,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Bits a second.
    BitsPerSecond,
}

impl GaugeUnit {
    /// The suffix of a column's name in this unit.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            GaugeUnit::One => "",
            GaugeUnit::Packets => "_packets",
            GaugeUnit::Bytes => "_bytes",
            GaugeUnit::Seconds => "_s",
            GaugeUnit::BitsPerSecond => "_bps",
        }
    }

    /// Whether values of parts sum to that of the whole; other units are averaged.
    #[must_use]
    pub const fn adds_up(self) -> bool {
        matches!(self, GaugeUnit::Packets | GaugeUnit::Bytes | GaugeUnit::BitsPerSecond)
    }
}

/// `value` if it is positive and finite, else NaN: for readings that are zero or infinite until they are known.
#[must_use]
pub fn known(value: f64) -> f64 {
    if value > 0.0 && value.is_finite() { value } else { f64::NAN }
}

/// Receives a controller's readings for plots.
pub trait Gauges {
    /// One reading: a name such as `"cwnd"`, its unit, and its value, NaN while unknown.
    fn gauge(&mut self, name: &'static str, unit: GaugeUnit, value: f64);

    /// A reading in packets or segments.
    fn packets(&mut self, name: &'static str, value: f64) {
        self.gauge(name, GaugeUnit::Packets, value);
    }
    /// A reading in seconds.
    fn seconds(&mut self, name: &'static str, value: f64) {
        self.gauge(name, GaugeUnit::Seconds, value);
    }
    /// A reading in bits a second.
    fn bits_per_second(&mut self, name: &'static str, value: f64) {
        self.gauge(name, GaugeUnit::BitsPerSecond, value);
    }
    /// A reading without a unit.
    fn number(&mut self, name: &'static str, value: f64) {
        self.gauge(name, GaugeUnit::One, value);
    }
}

/// A congestion controller, as every machine uses it. Each kind's own trait has the methods that only that kind's
/// machine calls: [`WindowController`], [`AckController`], [`RateController`], [`MediaController`].
pub trait Controller {
    /// Events from the machine: the receiver's feedback, timers, and the like.
    type Feedback;
    /// Handles an event.
    fn on_feedback(&mut self, feedback: &Self::Feedback, path: &PathView);
    /// Reports the readings that a plot should show to `to`: each once, with the same names and units at every call.
    /// They are recorded under these names; the machine adds its own readings.
    fn gauges(&self, _to: &mut dyn Gauges) {}
}
