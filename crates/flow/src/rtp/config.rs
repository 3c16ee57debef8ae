//! The settings of an RTP session, with each profile's defaults.

use paceline_control::rtp::{FeedbackConfig, FeedbackFormat};
use paceline_control::{Profile, RtpFeedback, RtpSettings};
use paceline_packet::UDP_IPV4;
use paceline_packet::rtp::RtpData;
use paceline_units::{Rate, Size, Span};

/// The share of the session's bandwidth that feedback on arrivals may take.
const FEEDBACK_SHARE: f64 = 0.05;

/// The least time between two reports of one participant (RFC 3550 section 6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinInterval {
    /// This.
    Fixed(Span),
    /// The "reduced minimum": 360 s over the session's bandwidth in kbit/s.
    Reduced,
}

/// How the time to the next report is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// RFC 3550 section 6.3: by the share of the bandwidth, at random, half as long at first, reconsidered.
    Rfc3550,
    /// The least interval, always.
    Fixed,
}

/// When a participant reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The least interval (T_min).
    pub min_interval: MinInterval,
    /// The session's bandwidth, of which reports may take 5 %.
    pub bandwidth: Rate,
    /// What lies between two reports.
    pub spacing: Spacing,
}

impl Timing {
    /// T_min.
    #[must_use]
    pub fn least(&self) -> Span {
        match self.min_interval {
            MinInterval::Fixed(span) => span,
            MinInterval::Reduced => Span::from_secs_f64(360_000.0 / self.bandwidth.bps().max(1.0)),
        }
    }
}

/// How finely a receiver reports losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossField {
    /// As the report block does: in 256ths, rounded down.
    Eight,
    /// In an APP packet beside it as well, in units of 2^-32.
    ThirtyTwo,
}

/// Packet pairs: bursts of data packets, and what the receiver makes of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProbeConfig {
    /// Packets sent back to back after a sender report, at most; below 2: none are.
    pub burst: u16,
    /// Estimates up to this share above the least of them are alike.
    pub width: f64,
    /// So many of the last estimates count.
    pub history: usize,
}

/// The settings of a session, for both its ends.
#[derive(Clone, PartialEq, Debug)]
pub struct RtpConfig {
    /// What the controller asks of the machine.
    pub settings: RtpSettings,
    /// Payload of a full packet in bytes.
    pub segment: u16,
    /// Header bytes beside the payload.
    pub header: u16,
    /// The last packet of a write is filled up to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
    /// Gaps between packets are drawn uniformly from 1 - this to 1 + this.
    pub gap_jitter: f64,
    /// When reports are sent.
    pub timing: Timing,
    /// How finely losses are reported.
    pub loss: LossField,
    /// How the bottleneck is probed, if the controller wants to know it.
    pub probe: ProbeConfig,
    /// The time from one packet of feedback to the next, if the controller wants to know when packets arrive and nothing in
    /// `feedback` says otherwise.
    pub feedback_interval: Span,
    /// What that feedback is, and when else it leaves.
    pub feedback: FeedbackConfig,
    /// Whether data packets are ECN-capable.
    pub ecn: bool,
    /// Whether the receiver counts marks and tells of them, and the sender tries the path first (RFC 6679). Not with `nack`, whose
    /// retransmissions have a source of their own.
    pub ecn_reports: bool,
    /// Whether each write is a video frame: its packets share a timestamp, and the last of them has the marker.
    pub frames: bool,
    /// How far apart the frames are written; zero where there are none.
    pub frame_period: Span,
    /// The receiver asks for what has not come (RFC 4585), and it is sent again (RFC 4588). With transport-wide feedback alone, whose
    /// numbers are those of all that a sender sends: that of RFC 8888 would need those of two sources in one order.
    pub nack: bool,
    /// What it sends is sound, which in a bundle waits for nothing.
    pub sound: bool,
    /// Another flow of the same host sends its packets with its own, and is told when they arrived ([`Turn`](super::Turn)).
    pub bundled: bool,
}

impl RtpConfig {
    /// The defaults of a flow of `profile` around a controller of these settings (docs/controllers/lda-plus.md).
    #[must_use]
    pub fn new(profile: Profile, settings: RtpSettings) -> RtpConfig {
        let header = (UDP_IPV4 + RtpData::LEN) as u16;
        let rfc = RtpConfig {
            settings,
            segment: 1500 - header,
            header,
            whole_segments: false,
            gap_jitter: settings.gap_jitter(),
            timing: Timing {
                min_interval: MinInterval::Fixed(Span::from_secs(5)),
                bandwidth: Rate::from_bps(1_000_000),
                spacing: Spacing::Rfc3550,
            },
            loss: LossField::Eight,
            probe: ProbeConfig { burst: 4, width: 0.1, history: 30 },
            feedback_interval: settings.feedback_interval,
            feedback: settings.feedback_config,
            ecn: false,
            ecn_reports: false,
            frames: false,
            frame_period: Span::ZERO,
            nack: false,
            sound: false,
            bundled: false,
        };
        let config = match profile {
            Profile::Rfc | Profile::Linux => rfc,
            Profile::Ns2 | Profile::Ns2Linux => RtpConfig { segment: 1000, header: 0, whole_segments: true, ..rfc },
        };
        config.with_feedback(settings.feedback_config.format)
    }

    /// The shortest interval of feedback that follows what arrives (libwebrtc).
    pub const SHORTEST_BY_SHARE: Span = Span::from_millis(50);
    /// The longest.
    pub const LONGEST_BY_SHARE: Span = Span::from_millis(250);

    /// The settings with this feedback. With transport-wide numbers each packet has their extension, which takes its bytes from
    /// the payload; where headers are not counted, it is not counted either.
    #[must_use]
    pub fn with_feedback(self, format: FeedbackFormat) -> RtpConfig {
        let plain = (UDP_IPV4 + RtpData::LEN) as u16;
        let header = match (self.header, format) {
            (0, _) => 0,
            (_, FeedbackFormat::Rfc8888) => plain,
            (_, FeedbackFormat::Transport) => plain + RtpData::TRANSPORT_LEN as u16,
        };
        let segment = (self.segment + self.header).saturating_sub(header);
        RtpConfig { segment, header, feedback: FeedbackConfig { format, ..self.feedback }, ..self }
    }

    /// The settings with retransmissions, if they are asked for: the number that one begins with takes its bytes from the
    /// payload of all, lest what is sent again be longer than what the path takes.
    #[must_use]
    pub fn with_nack(self, nack: bool) -> RtpConfig {
        let less = if nack { RtpData::ORIGINAL_LEN as u16 } else { 0 };
        RtpConfig { segment: self.segment.saturating_sub(less), nack, ..self }
    }

    /// Bytes of a data packet's RTP header, with the extension that the feedback needs.
    #[must_use]
    pub fn data_header(&self) -> usize {
        RtpData::LEN
            + match self.feedback.format {
                FeedbackFormat::Rfc8888 => 0,
                FeedbackFormat::Transport => RtpData::TRANSPORT_LEN,
            }
    }

    /// What 5 % of the session's bandwidth take to carry a packet of feedback of `size` bytes on the wire (RFC 8888 section 6).
    #[must_use]
    pub(super) fn feedback_share(&self, size: u16) -> Span {
        let share = self.timing.bandwidth.bps() * FEEDBACK_SHARE;
        Span::from_secs_f64(Size::from_bytes(size.into()).bits() as f64 / share.max(1e-3))
    }

    /// The mean time from one of the reports that the controller heeds to the next, if reports alone are `reports` apart; the
    /// longest, where it follows what arrives.
    #[must_use]
    pub(super) fn heeded_interval(&self, reports: Span) -> Span {
        match self.settings.feedback {
            RtpFeedback::Reports => reports,
            RtpFeedback::Arrivals if self.feedback.share.is_some() => {
                self.feedback_interval.max(RtpConfig::LONGEST_BY_SHARE)
            }
            RtpFeedback::Arrivals => self.feedback_interval.max(Span(1)),
        }
    }

    /// Bytes on the wire of a full packet.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}
