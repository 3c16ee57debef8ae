//! What RTP's machine tells a controller (RFC 3550), and what it asks of one.
//!
//! Two kinds of feedback ride on it; [`RtpSettings::feedback`] says which a controller wants. Reports are rare, seconds apart,
//! and say what share of the packets was lost since the last one; the machine (crate `flow`, `rtp`) adds the round-trip time,
//! and the bottleneck's rate if the receiver measures it. Arrivals (RFC 8888) come many times a second and tell of each
//! packet when it arrived.

use crate::coupled::CoupledRate;
use crate::{Controller, Interval};
use paceline_random::Stream;
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
        /// When, by the receiver's clock: it may lie before the sending. To 1/1024 s (RFC 8888) or 1/4 ms (transport-wide
        /// feedback). `None` if the receiver does not tell.
        at: Option<Time>,
        /// Whether it was marked (ECN: congestion experienced), of which RFC 8888's feedback alone tells.
        marked: bool,
    },
    /// It has not, although later ones have; should it still arrive, that is not told.
    Lost,
    /// No feedback has told of it: the feedback itself was lost.
    Unknown,
}

/// A data packet, as its sender knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SentPacket {
    /// One more with each packet, fillers included.
    pub number: u32,
    /// Its size on the wire, all headers counted.
    pub size: Size,
    /// What the application wrote of it; zero in a filler.
    pub payload: Size,
    /// Whether it is the last packet of a frame.
    pub ends_frame: bool,
    /// The cluster that it was sent in ([`Probe::id`]).
    pub probe: Option<u32>,
}

/// A packet of which feedback has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketFate {
    /// When it left.
    pub sent: Time,
    /// What it was.
    pub packet: SentPacket,
    /// What has become of it.
    pub fate: Fate,
}

impl PacketFate {
    /// Its size on the wire, all headers counted.
    #[must_use]
    pub fn size(&self) -> Size {
        self.packet.size
    }
}

/// What feedback on the arrival of single packets has brought (RFC 8888, or transport-wide).
#[derive(Clone, PartialEq, Debug)]
pub struct Arrivals {
    /// The packets whose fate is known now and was not before, in the order of their sending. None is told of twice.
    pub packets: Vec<PacketFate>,
    /// The round-trip time of the last packet that has arrived, without the time that the receiver waited with its feedback;
    /// `None` if the feedback gives none. Transport-wide feedback does not say when it was made: what the receiver waited
    /// after the last arrival that it tells of is in it.
    pub rtt: Option<Span>,
    /// From the feedback before, or from the start, to this one, as they came.
    pub since: Span,
    /// What waits at the sender, all headers counted.
    pub backlog: Size,
    /// How long the oldest frame has waited there; zero if none waits, or if writes are no frames.
    pub waiting: Span,
    /// Bytes on the wire of the packets sent after the newest that feedback has covered.
    pub in_flight: Size,
    /// Whether packets have waited for their time since the feedback before.
    pub interval: Interval,
}

/// A cluster of packets that are to leave at a rate of their own, so that their arrival tells whether the path carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Names the cluster in [`SentPacket::probe`].
    pub id: u32,
    /// The rate of all bytes on the wire.
    pub rate: Rate,
    /// It ends when so many bytes on the wire have left.
    pub bytes: Size,
    /// And not before so many packets have.
    pub packets: u32,
}

/// When a frame is to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameTime {
    /// From when it was written to its first packet.
    pub delay: Span,
    /// From its first packet to its last; the others leave evenly between.
    pub span: Span,
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
    /// [`RtpSettings::tick`] has passed since the start, or since the tick before.
    Tick,
    /// The application has written a frame; if [`RtpSettings::tells_sending`].
    Frame {
        /// Its bytes on the wire, all headers counted.
        size: Size,
    },
    /// A data packet has left; if [`RtpSettings::tells_sending`].
    Sent {
        /// What it was.
        packet: SentPacket,
        /// Bytes in flight with it ([`Arrivals::in_flight`]).
        in_flight: Size,
    },
}

/// What the receiver sends back beside the reports that RTP has in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtpFeedback {
    /// Nothing: [`RtpEvent::Report`] is told.
    #[default]
    Reports,
    /// When each packet arrived (RFC 8888, or transport-wide): [`RtpEvent::Arrivals`] is told, reports are not.
    Arrivals,
}

/// How a receiver tells when each packet arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FeedbackFormat {
    /// By RTP's sequence numbers, in 1/1024 s, with ECN marks (RFC 8888).
    #[default]
    Rfc8888,
    /// By transport-wide numbers, in 250 us, without marks (draft-holmer-rmcat-transport-wide-cc-extensions-01).
    Transport,
}

/// Feedback on arrivals, if the controller wants it, beside its interval ([`RtpSettings::feedback_interval`]).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct FeedbackConfig {
    /// What it is.
    pub format: FeedbackFormat,
    /// It leaves after so many packets, if that is sooner than by time; 0: by time alone.
    pub packets: u32,
    /// It leaves at a frame's end, if that is sooner.
    pub frames: bool,
    /// The interval lets feedback take this share of the bytes on the wire that arrive, from 50 ms to 250 ms, once a rate is known;
    /// `None`: it is fixed.
    pub share: Option<f64>,
    /// It stands alone, without a report and a CNAME (RFC 5506).
    pub reduced: bool,
}

impl FeedbackConfig {
    /// RFC 8888's, by time alone, with a report.
    pub const PLAIN: FeedbackConfig =
        FeedbackConfig { format: FeedbackFormat::Rfc8888, packets: 0, frames: false, share: None, reduced: false };
}

/// What the machine around the controller is to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RtpSettings {
    /// Whether packets are sent in probe bursts, for the receiver to measure the bottleneck's rate.
    pub probes: bool,
    /// After so many intervals without a report (or feedback) [`RtpEvent::Silence`] is told, then after each one more; 0: never.
    pub silence: u32,
    /// What is told.
    pub feedback: RtpFeedback,
    /// From one packet of feedback on arrivals to the next, unless the flow says otherwise.
    pub feedback_interval: Span,
    /// What that feedback is and when else it leaves, as the controller's source has it, unless the flow says otherwise.
    pub feedback_config: FeedbackConfig,
    /// A packet is lost once one has come that was sent so many after it.
    pub reordering: u32,
    /// Whether [`RtpEvent::Sent`] and [`RtpEvent::Frame`] are told.
    pub tells_sending: bool,
    /// From one [`RtpEvent::Tick`] to the next; zero: none.
    pub tick: Span,
    /// What the rate sends in this time may leave at once.
    pub burst: Span,
    /// Whether packets say of themselves that their sender is scalable (L4S, RFC 9331), where the flow is ECN-capable at all.
    pub l4s: bool,
    /// Whether each packet waits as long as a full one, however small the one before it is.
    pub by_packet: bool,
    /// Whether packets leave evenly unless the flow says otherwise; if not, their gaps are drawn.
    pub even: bool,
    /// Whether the controller can do nothing without frames: the application has to write them.
    pub frames: bool,
    /// Whether the controller may throw away what waits ([`MediaController::discards`]).
    pub discards: bool,
}

impl RtpSettings {
    /// Ten times a second, as RFC 8698 has it (DELTA).
    pub const FEEDBACK_INTERVAL: Span = Span::from_millis(100);
    /// As many as TCP waits for (RFC 5681 section 3.2).
    pub const REORDERING: u32 = 3;
    /// Reports alone, and nothing more.
    pub const PLAIN: RtpSettings = RtpSettings {
        probes: false,
        silence: 0,
        feedback: RtpFeedback::Reports,
        feedback_interval: RtpSettings::FEEDBACK_INTERVAL,
        feedback_config: FeedbackConfig::PLAIN,
        reordering: RtpSettings::REORDERING,
        tells_sending: false,
        tick: Span::ZERO,
        burst: Span::ZERO,
        l4s: false,
        by_packet: false,
        even: false,
        frames: false,
        discards: false,
    };

    /// Gaps between packets are multiplied by draws from 1 - this to 1 + this, unless the flow says otherwise.
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
    /// Bytes on the wire that may be in flight ([`Arrivals::in_flight`]); `None`: no window.
    fn window(&self) -> Option<Size> {
        None
    }
    /// The rate, in bytes on the wire a second, up to which the machine fills with packets that carry nothing.
    fn filling(&self) -> f64 {
        0.0
    }
    /// Where its draws come from: told before [`RtpEvent::Started`].
    fn draw_from(&mut self, _stream: Stream) {}
    /// How far apart the application writes frames, if it does: told before [`RtpEvent::Started`].
    fn frames_every(&mut self, _period: Span) {}
    /// When a new frame, of `size` bytes on the wire, is to leave; `None`: by the rate. Asked once, when it has been written.
    /// When its time has come, what is left of those before it leaves at once.
    fn frame_time(&mut self, _size: Size) -> Option<FrameTime> {
        None
    }
    /// Whether all that waits at the sender is to be thrown away. Asked after each [`RtpEvent::Frame`] and [`RtpEvent::Arrivals`]; the
    /// controller counts nothing as waiting then, a frame just written included.
    fn discards(&mut self) -> bool {
        false
    }
    /// The next cluster to send. Asked after each event that comes from outside until there is none; clusters leave one after
    /// the other, with what the application has written and, where nothing is left of that, with packets that carry nothing.
    fn next_probe(&mut self) -> Option<Probe> {
        None
    }
    /// What a flow state exchange is told (RFC 8699); `None` if this one cannot be coupled.
    fn coupled(&self) -> Option<CoupledRate> {
        None
    }
    /// The exchange gives it this rate in place of what it has found; its own bounds still hold.
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
    fn filling(&self) -> f64 {
        (**self).filling()
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
