//! What RTP's machine tells a controller (RFC 3550), and what it asks of one.
//!
//! The receiver's reports are rare, seconds apart, and say what share of the packets was lost since the last one; the
//! machine (crate `flow`, `rtp`) adds the round-trip time, and the bottleneck's rate if the receiver measures it. Another kind
//! of feedback over the same machine is another variant of [`RtpEvent`].

use crate::{Controller, Interval};
use paceline_units::{Rate, Ratio, Size, Span};

/// What stays the same for the length of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpSession {
    /// A full packet on the wire, all headers counted.
    pub packet: Size,
    /// The mean time from one report to the next (T_d of RFC 3550 section 6.3.1, without its randomness).
    pub interval: Span,
}

/// What a receiver's report says of our packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RtpReport {
    /// The share of packets lost since the report before, as coarse as its field is.
    pub loss: Ratio,
    /// The round-trip time that the report gives; `None` if the receiver had no sender report to echo.
    pub rtt: Option<Span>,
    /// From the report before, or from the start, to this one, as they came.
    pub since: Span,
    /// The bottleneck's rate as the receiver estimates it; `None` without an estimate.
    pub bottleneck: Option<Rate>,
    /// Whether the sender has used what it was allowed since the report before.
    pub interval: Interval,
}

/// What an RTP sender's machine tells its controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RtpEvent {
    /// The sender begins to send.
    Started(RtpSession),
    /// A report that says something new has come.
    Report(RtpReport),
    /// No report has come for [`RtpSettings::silence`] intervals, or for one more.
    Silence,
}

/// What the machine around the controller is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpSettings {
    /// Whether packets are sent in probe bursts, for the receiver to measure the bottleneck's rate.
    pub probes: bool,
    /// After so many report intervals without a report [`RtpEvent::Silence`] is told, then after each one more; 0: never.
    pub silence: u32,
}

/// A controller that RTP's machine can ride on.
pub trait MediaController: Controller<Feedback = RtpEvent> {
    /// The allowed sending rate in bytes on the wire a second, all headers counted: finite and above zero.
    fn rate(&self) -> f64;
    /// What the machine is to do.
    fn settings(&self) -> RtpSettings;
}

impl<C: MediaController> MediaController for Box<C> {
    #[inline]
    fn rate(&self) -> f64 {
        (**self).rate()
    }
    fn settings(&self) -> RtpSettings {
        (**self).settings()
    }
}
