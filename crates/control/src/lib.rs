//! Congestion controllers, one file each, and the registry of schemes.
//!
//! A controller owns only the decision: how much may be in flight, how fast to send. The machine around it (crate
//! `flow`) owns sequence numbers, round-trip samples, loss detection, pacing and timers. Nothing here reads a clock
//! or does I/O. Uses units. Look first at [`Controller`], then at [`reno`], the shortest one; [`registry`] lists
//! what there is, [`tcp`] what TCP's machine tells a controller, and [`models`] what
//! throughput theory promises. A controller's file has one order: citation,
//! parameters, state, update law, trait implementation, gauges.

pub mod acks;
pub mod cubic;
pub mod lda_plus;
pub mod models;
pub mod multfrc;
pub mod nada;
mod parameter;
pub mod rap;
pub mod registry;
pub mod reno;
pub mod rtp;
mod scheme;
pub mod tcp;
pub mod tfrc;
pub mod tfrc_veno;
pub mod tfrcp;
pub mod udp;
pub mod vegas;
pub mod veno;

pub use acks::{AckController, AckEvent, AckSettings, Estimator, Pacing};
pub use parameter::{Idle, Kind, Parameter, Setting};
pub use registry::{AcksController, RtpController, TcpController, TfrcController};
pub use rtp::{Arrivals, Fate, MediaController, PacketFate, RtpEvent, RtpFeedback, RtpReport, RtpSession, RtpSettings};
pub use scheme::{Build, Machine, ParameterError, Profile, Recovery, Scheme, UnknownScheme};
pub use tcp::{TcpEvent, Threshold, WindowController};
pub use tfrc::{Interval, Law, RateController, Settings, TfrcEvent, TfrcReport};

use paceline_units::{Rate, Span, Time};

/// What a controller may see of its path, kept by the machine around it.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// Now.
    pub now: Time,
    /// Smoothed round-trip time (RFC 6298); zero before the first sample.
    pub srtt: Span,
    /// Its variation (RFC 6298).
    pub rttvar: Span,
    /// Least round-trip time seen.
    pub min_rtt: Span,
    /// Segments sent and not yet acknowledged (FlightSize of RFC 5681).
    pub in_flight: u32,
    /// The next segment that the receiver expects: everything below it is acknowledged.
    pub acked: u32,
    /// The next segment to send in order.
    pub next: u32,
    /// The receiver's window in segments.
    pub receive_window: u32,
    /// Segment payload in bytes.
    pub segment: u32,
}

/// What a controller allows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Allowance {
    /// Congestion window in segments, fractions included.
    pub window: Option<f64>,
    /// Pacing rate.
    pub pacing: Option<Rate>,
    /// What an encoder should aim at.
    pub target: Option<Rate>,
}

/// Receives what a plot of a controller should show.
pub trait Gauges {
    /// One reading: a name such as `"cwnd"` and its value in the unit that the controller's docs give.
    fn gauge(&mut self, name: &'static str, value: f64);
}

/// A congestion controller.
pub trait Controller {
    /// What the scheme's receiver sends back, as the machine reports it.
    type Feedback;
    /// Feedback has come.
    fn on_feedback(&mut self, feedback: &Self::Feedback, path: &PathView);
    /// A segment has left.
    fn on_sent(&mut self, _segment: u32, _path: &PathView) {}
    /// The time that [`Controller::next_timer`] named has come.
    fn on_timer(&mut self, _path: &PathView) {}
    /// When to call [`Controller::on_timer`].
    fn next_timer(&self) -> Option<Time> {
        None
    }
    /// What is allowed now.
    fn allowance(&self) -> Allowance;
    /// Tells `to` what a plot should show.
    fn gauges(&self, _to: &mut dyn Gauges) {}
}
