//! What RTP's machine tells a controller (RFC 3550), and what it asks of one.
//!
//! Two kinds of feedback ride on it; [`RtpSettings::feedback`] says which a controller wants. Reports are rare, seconds apart,
//! and say what share of the packets was lost since the last one; the machine (crate `flow`, `rtp`) adds the round-trip time,
//! and the bottleneck's rate if the receiver measures it. Arrivals (RFC 8888) come many times a second and tell of each
//! packet when it arrived.

use crate::{Controller, Interval};
use paceline_units::{Rate, Ratio, Size, Span, Time};

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

/// What has become of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It has arrived.
    Arrived {
        /// When, by the receiver's clock and to 1/1024 s: it may lie before the sending. `None` if the receiver does not tell.
        at: Option<Time>,
        /// Whether it was marked (ECN: congestion experienced).
        marked: bool,
    },
    /// It has not, although later ones have; should it still arrive, that is not told.
    Lost,
    /// No feedback has told of it: the feedback itself was lost.
    Unknown,
}

/// A packet of which feedback has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketFate {
    /// When it left.
    pub sent: Time,
    /// Its size on the wire, all headers counted.
    pub size: Size,
    /// What has become of it.
    pub fate: Fate,
}

/// What feedback on the arrival of single packets has brought (RFC 8888).
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// The packets whose fate is known now and was not before, in the order of their sending. None is told of twice.
    pub packets: Vec<PacketFate>,
    /// The round-trip time of the last packet that has arrived, without the time that the receiver waited with its feedback;
    /// `None` if the feedback gives none.
    pub rtt: Option<Span>,
    /// From the feedback before, or from the start, to this one, as they came.
    pub since: Span,
    /// What waits at the sender, all headers counted.
    pub backlog: Size,
    /// Whether packets have waited for their time since the feedback before.
    pub interval: Interval,
}

/// What an RTP sender's machine tells its controller.
#[derive(Clone, PartialEq, Debug)]
pub enum RtpEvent {
    /// The sender begins to send.
    Started(RtpSession),
    /// A report that says something new has come.
    Report(RtpReport),
    /// Feedback has come that tells something new.
    Arrivals(Arrivals),
    /// No report (or feedback, if that is what the controller wants) has come for [`RtpSettings::silence`] intervals, or for
    /// one more.
    Silence,
}

/// What the receiver sends back beside the reports that RTP has in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtpFeedback {
    /// Nothing: [`RtpEvent::Report`] is told.
    #[default]
    Reports,
    /// When each packet arrived (RFC 8888): [`RtpEvent::Arrivals`] is told, reports are not.
    Arrivals,
}

/// What the machine around the controller is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpSettings {
    /// Whether packets are sent in probe bursts, for the receiver to measure the bottleneck's rate.
    pub probes: bool,
    /// After so many intervals without a report (or feedback) [`RtpEvent::Silence`] is told, then after each one more; 0: never.
    pub silence: u32,
    /// What is told.
    pub feedback: RtpFeedback,
}

/// A controller that RTP's machine can ride on.
pub trait MediaController: Controller<Feedback = RtpEvent> {
    /// The allowed sending rate in bytes on the wire a second, all headers counted: finite and above zero.
    fn rate(&self) -> f64;
    /// What an encoder should aim at, in whole bits a second with all headers; `None` if it says nothing of that.
    fn target(&self) -> Option<Rate> {
        None
    }
    /// What the machine is to do.
    fn settings(&self) -> RtpSettings;
}

impl<C: MediaController> MediaController for Box<C> {
    #[inline]
    fn rate(&self) -> f64 {
        (**self).rate()
    }
    fn target(&self) -> Option<Rate> {
        (**self).target()
    }
    fn settings(&self) -> RtpSettings {
        (**self).settings()
    }
}
