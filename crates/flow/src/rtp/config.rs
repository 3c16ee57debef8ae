//! RTP settings, with each profile's defaults.

use paceline_control::rtp::{FeedbackConfig, FeedbackFormat};
use paceline_control::{Profile, RtpFeedback, RtpSettings};
use paceline_packet::UDP_IPV4;
use paceline_packet::rtp::RtpData;
use paceline_units::{Rate, Size, Span};

/// The share of the session's bandwidth that feedback on arrivals may take.
const FEEDBACK_SHARE: f64 = 0.05;

/// The minimum interval between two reports of a participant (RFC 3550 section 6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MinInterval {
    /// A fixed time.
    Fixed(Span),
    /// The "reduced minimum": 360 s divided by the session's bandwidth in kbit/s.
    Reduced,
}

/// How the time until the next report is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// RFC 3550 section 6.3: by the share of the bandwidth, randomized, halved at first, with reconsideration.
    Rfc3550,
    /// Always the minimum interval.
    Fixed,
}

/// When a participant sends reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// The minimum interval (T_min).
    pub min_interval: MinInterval,
    /// The session's bandwidth, of which reports may take 5 %.
    pub bandwidth: Rate,
    /// How the time until the next report is chosen.
    pub spacing: Spacing,
}

impl Timing {
    /// T_min.
    #[must_use]
    pub fn t_min(&self) -> Span {
        match self.min_interval {
            MinInterval::Fixed(span) => span,
            MinInterval::Reduced => Span::from_secs_f64(360_000.0 / self.bandwidth.bps().max(1.0)),
        }
    }
}

/// The resolution of loss reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossField {
    /// As in the report block: in 256ths, rounded down.
    Eight,
    /// In addition, in an APP packet, in units of 2^-32.
    ThirtyTwo,
}

/// Packet pairs: bursts of data packets, and the receiver's estimator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProbeConfig {
    /// Maximum number of packets sent back to back after a sender report; below 2: no bursts.
    pub burst: u16,
    /// Estimates up to this share above the lowest of a group belong to the group.
    pub width: f64,
    /// The number of recent estimates that count.
    pub history: usize,
}

/// The settings of a session, for both ends.
#[derive(Clone, PartialEq, Debug)]
pub struct RtpConfig {
    /// The controller's requirements.
    pub settings: RtpSettings,
    /// Payload of a full packet in bytes.
    pub segment: u16,
    /// Header bytes of a data packet.
    pub header: u16,
    /// Pad the last packet of a write to a full one, as ns-2 counts whole packets.
    pub whole_segments: bool,
    /// Gaps between packets are multiplied by a uniform draw from 1 - this to 1 + this.
    pub gap_jitter: f64,
    /// When reports are sent.
    pub timing: Timing,
    /// The resolution of loss reports.
    pub loss: LossField,
    /// How the bottleneck is probed, if the controller needs its rate.
    pub probe: ProbeConfig,
    /// The interval of feedback on arrivals, if the controller needs it and `feedback` sets no other.
    pub feedback_interval: Span,
    /// The format of that feedback, and what else triggers it.
    pub feedback: FeedbackConfig,
    /// Whether data packets are ECN-capable.
    pub ecn: bool,
    /// Whether the receiver counts and reports marks, and the sender tests the path first (RFC 6679). Not with `nack`,
    /// whose retransmissions have a separate source.
    pub ecn_reports: bool,
    /// Whether each write is a video frame: its packets share a timestamp, and the last one has the marker bit.
    pub frames: bool,
    /// The interval between frames; zero without frames.
    pub frame_period: Span,
    /// The receiver requests missing packets (RFC 4585), and the sender retransmits them (RFC 4588). Only with
    /// transport-wide feedback, whose numbers cover everything that a sender sends: RFC 8888 feedback would have to
    /// merge the numbers of two sources.
    pub nack: bool,
    /// It sends audio, which waits for nothing in a bundle.
    pub sound: bool,
    /// Another flow of the same host sends its packets, and receives feedback on them ([`Turn`](super::Turn)).
    pub bundled: bool,
}

impl RtpConfig {
    /// The defaults of `profile` for a controller with these settings (docs/controllers/lda-plus.md).
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

    /// The minimum interval of feedback that takes a share of the arriving rate (libwebrtc).
    pub const SHORTEST_BY_SHARE: Span = Span::from_millis(50);
    /// The maximum interval.
    pub const LONGEST_BY_SHARE: Span = Span::from_millis(250);

    /// Sets the feedback format. Transport-wide numbers need a header extension in each packet, which reduces the
    /// payload. If headers are not counted, the extension is not counted either.
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

    /// Enables or disables retransmission. The original sequence number in a retransmission reduces the payload of all
    /// packets, so that no retransmission exceeds the path's packet size.
    #[must_use]
    pub fn with_nack(self, nack: bool) -> RtpConfig {
        let less = if nack { RtpData::ORIGINAL_LEN as u16 } else { 0 };
        RtpConfig { segment: self.segment.saturating_sub(less), nack, ..self }
    }

    /// Bytes of a data packet's RTP header, including the extension that the feedback needs.
    #[must_use]
    pub fn data_header(&self) -> usize {
        RtpData::LEN
            + match self.feedback.format {
                FeedbackFormat::Rfc8888 => 0,
                FeedbackFormat::Transport => RtpData::TRANSPORT_LEN,
            }
    }

    /// The time in which 5 % of the session's bandwidth carry a feedback packet of `size` bytes on the wire (RFC 8888
    /// section 6).
    #[must_use]
    pub(super) fn feedback_share(&self, size: u16) -> Span {
        let share = self.timing.bandwidth.bps() * FEEDBACK_SHARE;
        Span::from_secs_f64(Size::from_bytes(size.into()).bits() as f64 / share.max(1e-3))
    }

    /// The mean interval between reports that the controller uses; `reports`: the interval of RTCP reports. If the
    /// interval follows the arriving rate, this is its maximum.
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

    /// Size of a full packet on the wire in bytes.
    #[must_use]
    pub fn wire(&self) -> u16 {
        self.segment.saturating_add(self.header)
    }
}
