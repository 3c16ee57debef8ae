//! The interface between RTP's machine (RFC 3550) and its controllers.
//!
//! There are two kinds of feedback; a controller chooses with [`RtpSettings::feedback`]. Reports arrive seconds apart
//! and give the share of packets lost since the last report; the machine (crate `flow`, `rtp`) adds the round-trip
//! time, and the bottleneck's rate if the receiver measures it. Arrivals (RFC 8888) are sent many times a second and
//! give the arrival time of each packet.

use crate::coupled::CoupledRate;
use crate::{Controller, Interval};
use paceline_random::Stream;
use paceline_units::{Rate, Ratio, Size, Span, Time};

/// Constants of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RtpSession {
    /// A full packet on the wire, with all headers.
    pub packet: Size,
    /// The mean time from one report to the next (T_d of RFC 3550 section 6.3.1, without its randomness).
    pub interval: Span,
}

/// What a receiver report says about the sender's packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RtpReport {
    /// The share of packets lost since the previous report, at the resolution of the RTCP field.
    pub loss: Ratio,
    /// The round-trip time from this report; `None` if the receiver had no sender report to echo.
    pub rtt: Option<Span>,
    /// Time since the previous report arrived, or since the start.
    pub since: Span,
    /// The bottleneck's rate as the receiver estimates it; `None` without an estimate.
    pub bottleneck: Option<Rate>,
    /// Whether the sender has used its allowed rate since the previous report.
    pub interval: Interval,
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It arrived.
    Arrived {
        /// Arrival time by the receiver's clock, which may lie before the sending time. Resolution: 1/1024 s (RFC 8888)
        /// or 1/4 ms (transport-wide feedback). `None` if the receiver does not report it.
        at: Option<Time>,
        /// Whether it was CE-marked; only RFC 8888's feedback reports this.
        marked: bool,
    },
    /// Not received, although later packets were. A late arrival is not reported.
    Lost,
    /// Unknown, because the feedback itself was lost.
    Unknown,
}

/// A data packet, as its sender knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentPacket {
    /// Counts up by one for each packet, padding included.
    pub number: u32,
    /// Size on the wire, with all headers.
    pub size: Size,
    /// Application bytes in it; zero for padding.
    pub payload: Size,
    /// Whether this is the last packet of a frame.
    pub ends_frame: bool,
    /// The probe cluster that it belongs to ([`Probe::id`]).
    pub probe: Option<u32>,
}

/// A sent packet and what feedback says of it (libwebrtc's `PacketResult`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketResult {
    /// When it was sent.
    pub sent: Time,
    /// The packet as sent.
    pub packet: SentPacket,
    /// Its fate.
    pub fate: Fate,
}

impl PacketResult {
    /// Size on the wire, with all headers.
    #[must_use]
    pub fn size(&self) -> Size {
        self.packet.size
    }
}

/// Feedback on single packets (RFC 8888, or transport-wide).
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// Packets whose fate became known with this feedback, in sending order. Each packet is reported once.
    pub packets: Vec<PacketResult>,
    /// Round-trip time of the newest packet received, without the receiver's feedback delay; `None` if the feedback
    /// does not give it. Transport-wide feedback carries no time of its own, so the receiver's wait after the last
    /// reported arrival is included.
    pub rtt: Option<Span>,
    /// Time since the previous feedback arrived, or since the start.
    pub since: Span,
    /// Bytes queued at the sender, with all headers.
    pub backlog: Size,
    /// How long the oldest frame has been queued; zero if none is, or if writes are not frames.
    pub waiting: Span,
    /// Bytes on the wire sent after the newest packet that feedback has covered.
    pub in_flight: Size,
    /// Whether packets have had to wait for pacing since the previous feedback.
    pub interval: Interval,
}

/// A probe cluster: packets sent at a rate of their own, whose arrivals show whether the path carries that rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Identifies the cluster in [`SentPacket::probe`].
    pub id: u32,
    /// The rate, counting all bytes on the wire.
    pub rate: Rate,
    /// The cluster ends when this many bytes on the wire have been sent...
    pub bytes: Size,
    /// ...and at least this many packets.
    pub packets: u32,
}

/// When to send a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameTime {
    /// From its writing to its first packet.
    pub delay: Span,
    /// From its first packet to its last; the others are spaced evenly between.
    pub span: Span,
}

/// Events from an RTP sender's machine to its controller.
#[derive(Clone, PartialEq, Debug)]
pub enum RtpEvent {
    /// The sender starts.
    Started(RtpSession),
    /// A report with new information arrived.
    Report(RtpReport),
    /// Feedback with new information arrived.
    Arrivals(Arrivals),
    /// No report (or feedback, with [`RtpFeedback::Arrivals`]) arrived for [`RtpSettings::silence`] intervals; repeated
    /// after each further interval.
    Silence,
    /// [`RtpSettings::tick`] has passed since the start or the previous tick.
    Tick,
    /// The application wrote a frame; only with [`RtpSettings::report_sent`].
    Frame {
        /// Its bytes on the wire, with all headers.
        size: Size,
    },
    /// A data packet was sent; only with [`RtpSettings::report_sent`].
    Sent {
        /// The packet.
        packet: SentPacket,
        /// Bytes in flight, this packet included ([`Arrivals::in_flight`]).
        in_flight: Size,
    },
}

/// The feedback that the receiver sends besides RTP's own reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtpFeedback {
    /// None: the controller receives [`RtpEvent::Report`].
    #[default]
    Reports,
    /// Arrival times of packets (RFC 8888, or transport-wide): the controller receives [`RtpEvent::Arrivals`] and no
    /// reports.
    Arrivals,
}

/// How a receiver reports the arrival times of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FeedbackFormat {
    /// By RTP's sequence numbers, in 1/1024 s, with ECN marks (RFC 8888).
    #[default]
    Rfc8888,
    /// By transport-wide numbers, in 250 us, without marks (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Transport,
}

/// When and how feedback on arrivals is sent, besides its interval ([`RtpSettings::feedback_interval`]).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FeedbackConfig {
    /// Its format.
    pub format: FeedbackFormat,
    /// Send it after this many packets if that is before the interval ends; 0: by time only.
    pub packets: u32,
    /// Send it at the end of a frame if that is before the interval ends.
    pub frames: bool,
    /// Choose the interval, from 50 ms to 250 ms, so that feedback takes this share of the bytes on the wire that
    /// arrive, once a rate is known; `None`: the interval is fixed.
    pub share: Option<f64>,
    /// Send it alone, without a report and a CNAME (RFC 5506).
    pub reduced: bool,
}

impl FeedbackConfig {
    /// RFC 8888's format, by time only, with a report.
    pub const PLAIN: FeedbackConfig =
        FeedbackConfig { format: FeedbackFormat::Rfc8888, packets: 0, frames: false, share: None, reduced: false };
}

/// What the controller requests of its machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RtpSettings {
    /// Whether to send packets in probe bursts, from which the receiver measures the bottleneck's rate.
    pub probes: bool,
    /// Intervals without a report (or feedback) until [`RtpEvent::Silence`], which repeats after each further one; 0:
    /// never.
    pub silence: u32,
    /// Which feedback to report.
    pub feedback: RtpFeedback,
    /// Time between two packets of feedback on arrivals, unless the flow sets it.
    pub feedback_interval: Span,
    /// Format of that feedback and when else it is sent, as in the controller's source, unless the flow sets it.
    pub feedback_config: FeedbackConfig,
    /// A packet is lost once a packet sent this many packets later has arrived.
    pub reordering: u32,
    /// Whether to report [`RtpEvent::Sent`] and [`RtpEvent::Frame`].
    pub report_sent: bool,
    /// Interval of [`RtpEvent::Tick`]; zero: none.
    pub tick: Span,
    /// Packets may leave in a burst of as much as the rate sends in this time.
    pub burst: Span,
    /// Whether packets declare their sender scalable (L4S, RFC 9331), if the flow is ECN-capable.
    pub l4s: bool,
    /// Whether the gap after each packet is that of a full packet, however small the packet was.
    pub by_packet: bool,
    /// Whether packets are spaced evenly unless the flow says otherwise; if not, gaps are random.
    pub even: bool,
    /// Whether the controller needs frames: the application must write them.
    pub frames: bool,
    /// Whether the controller may discard the sender's queue ([`MediaController::discards`]).
    pub discards: bool,
}

impl RtpSettings {
    /// Ten times a second (DELTA of RFC 8698).
    pub const FEEDBACK_INTERVAL: Span = Span::from_millis(100);
    /// TCP's duplicate ACK threshold (RFC 5681 section 3.2).
    pub const REORDERING: u32 = 3;
    /// Reports only.
    pub const PLAIN: RtpSettings = RtpSettings {
        probes: false,
        silence: 0,
        feedback: RtpFeedback::Reports,
        feedback_interval: RtpSettings::FEEDBACK_INTERVAL,
        feedback_config: FeedbackConfig::PLAIN,
        reordering: RtpSettings::REORDERING,
        report_sent: false,
        tick: Span::ZERO,
        burst: Span::ZERO,
        l4s: false,
        by_packet: false,
        even: false,
        frames: false,
        discards: false,
    };

    /// Gaps between packets are multiplied by draws from 1 - this to 1 + this, unless the flow sets another value.
    #[must_use]
    pub fn gap_jitter(&self) -> f64 {
        if self.even { 0.0 } else { 0.5 }
    }
}

impl Default for RtpSettings {
    fn default() -> RtpSettings {
        RtpSettings::PLAIN
    }
}

/// A controller for RTP's machine.
pub trait MediaController: Controller<Feedback = RtpEvent> {
    /// The allowed sending rate in bytes on the wire per second, with all headers: finite and above zero.
    fn rate(&self) -> f64;
    /// The target rate of an encoder in whole bits per second, with all headers; `None` if the controller gives none.
    fn target(&self) -> Option<Rate> {
        None
    }
    /// What the controller requests of its machine.
    fn settings(&self) -> RtpSettings;
    /// Bytes on the wire that may be in flight ([`Arrivals::in_flight`]); `None`: no window.
    fn window(&self) -> Option<Size> {
        None
    }
    /// The rate, in bytes on the wire per second, up to which the machine adds padding packets.
    fn padding_rate(&self) -> f64 {
        0.0
    }
    /// Sets the stream of its random draws. Called before [`RtpEvent::Started`].
    fn draw_from(&mut self, _stream: Stream) {}
    /// Sets the application's frame interval, if it writes frames. Called before [`RtpEvent::Started`].
    fn frames_every(&mut self, _period: Span) {}
    /// When to send a new frame of `size` bytes on the wire; `None`: at the rate. Called once, when the frame has been
    /// written. When its time comes, whatever remains of earlier frames leaves at once.
    fn frame_time(&mut self, _size: Size) -> Option<FrameTime> {
        None
    }
    /// Whether to discard everything queued at the sender. Called after each [`RtpEvent::Frame`] and
    /// [`RtpEvent::Arrivals`]; if it returns true, the controller counts nothing as queued, not even a frame just
    /// written.
    fn discards(&mut self) -> bool {
        false
    }
    /// The next probe cluster to send. Called after each external event until it returns `None`; clusters are sent one
    /// after another, with the application's data first and then with padding packets.
    fn next_probe(&mut self) -> Option<Probe> {
        None
    }
    /// What it reports to a flow state exchange (RFC 8699); `None` if it cannot be coupled.
    fn coupled(&self) -> Option<CoupledRate> {
        None
    }
    /// Replaces its own rate with that from the flow state exchange; its own bounds still hold.
    fn share(&mut self, _rate: Rate, _now: Time) {}
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
    #[inline]
    fn window(&self) -> Option<Size> {
        (**self).window()
    }
    fn padding_rate(&self) -> f64 {
        (**self).padding_rate()
    }
    fn draw_from(&mut self, stream: Stream) {
        (**self).draw_from(stream);
    }
    fn frames_every(&mut self, period: Span) {
        (**self).frames_every(period);
    }
    fn frame_time(&mut self, size: Size) -> Option<FrameTime> {
        (**self).frame_time(size)
    }
    fn discards(&mut self) -> bool {
        (**self).discards()
    }
    fn next_probe(&mut self) -> Option<Probe> {
        (**self).next_probe()
    }
    fn coupled(&self) -> Option<CoupledRate> {
        (**self).coupled()
    }
    fn share(&mut self, rate: Rate, now: Time) {
        (**self).share(rate, now);
    }
}
