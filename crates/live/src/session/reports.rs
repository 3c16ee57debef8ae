//! A receiver of plain RTP (RFC 3550) at the other end: how it agrees, and what its reports say.
//!
//! It knows no token. What it has is the stream's SSRC, which is drawn at random and told in the data alone: a report on it
//! shows that somebody there receives the data and understands them. Until the first such report the sender stays below
//! [`CAUTIOUS_BPS`]. It goes on for as long as reports tell of packets that no report has told of before, and ceases when none
//! has for three intervals: the first two circuit breakers of RFC 8083 (sections 4.1 and 4.2). The third, on congestion, is
//! what the flow's controller is for. Feedback on when packets arrived, transport-wide or RFC 8888's, is a report, too.

use super::{End, SessionSpec, Side};
use paceline_flow::{Segment, Transport};
use paceline_packet::Extra;
use paceline_packet::rtcp::{Arrival, Compound, ReportBlock};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_sim::model::FlowModel;
use paceline_sim::scenario::{Mistake, ScenarioError};
use paceline_units::Span;
use serde::{Deserialize, Serialize};

/// The most that is sent to a receiver which has not reported yet, in bits of datagrams' contents a second: a telephone
/// call's (G.711).
pub const CAUTIOUS_BPS: u32 = 64_000;
/// So many intervals without news end the flow.
const INTERVALS: u64 = 3;
/// An interval is at least this long: the least that RFC 3550 section 6.2 recommends, and what a receiver may well take
/// whose settings are not ours.
const MIN_INTERVAL: Span = Span::from_secs(5);

/// A receiver of plain RTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RtpPeer {
    /// The payload type of the data: 0 to 127, but for those that RTCP on the same port would be mistaken for (RFC 5761).
    pub payload_type: u8,
    /// The ID of the extension with transport-wide numbers (RFC 8285 section 4.2): 1 to 14. It counts where the flow's feedback is
    /// that.
    #[serde(default = "transport_id")]
    pub transport_id: u8,
}

fn transport_id() -> u8 {
    RtpData::TRANSPORT_ID
}

impl Default for RtpPeer {
    fn default() -> RtpPeer {
        RtpPeer { payload_type: RtpData::PAYLOAD_TYPE, transport_id: RtpData::TRANSPORT_ID }
    }
}

/// What a receiver's reports have said of the stream.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Reported {
    /// Reports that told of packets which none had told of before.
    pub reports: u64,
    /// Packets from the first one sent up to the newest that a report has told of.
    pub expected: u64,
    /// Of these the lost ones, as the last such report says: the cumulative count of RFC 3550 section 6.4.1, which copies
    /// lower.
    pub lost: i64,
    /// Interarrival jitter in seconds, as it says.
    pub jitter_s: Option<f64>,
}

/// What a datagram of the receiver means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReportKind {
    /// Packets have arrived of which no report has told before.
    News,
    /// A report, and nothing new in it.
    Nothing,
    /// It leaves.
    Left,
}

/// The receiver's side of the agreement.
#[derive(Debug)]
pub(super) struct Reports {
    patience: Span,
    /// The stream: its SSRC, its first packet's number, how many packets.
    stream: Option<(Ssrc, u16)>,
    sent: u64,
    /// Who has reported on it.
    reporter: Option<Ssrc>,
    /// Reports on it since the last one with news.
    idle: u64,
    /// Packets up to the newest that feedback on arrivals has told of.
    arrived: u64,
    reported: Reported,
}

impl Reports {
    /// Of a receiver of which nothing is known, for a flow with RTP's machines.
    pub(super) fn new(transport: &Transport) -> Reports {
        let interval = match transport {
            Transport::Rtp { config, .. } => config.timing.least(),
            _ => Span::ZERO,
        };
        let patience = interval.max(MIN_INTERVAL) * INTERVALS;
        Reports { patience, stream: None, sent: 0, reporter: None, idle: 0, arrived: 0, reported: Reported::default() }
    }

    /// How long the sender goes on without news.
    pub(super) fn patience(&self) -> Span {
        self.patience
    }

    /// A data packet leaves.
    pub(super) fn sends(&mut self, segment: &Segment) {
        if let Some(Extra::Rtp(data)) = &segment.extra {
            if self.stream.is_none_or(|(ssrc, _)| ssrc != data.ssrc) {
                // the application has begun another session, of which nobody has reported yet
                self.stream = Some((data.ssrc, data.sequence));
                self.sent = 0;
                self.reported.expected = 0;
                self.arrived = 0;
            }
            self.sent += 1;
        }
    }

    /// A compound packet has come from the receiver's address.
    pub(super) fn on_compound(&mut self, compound: &Compound) -> ReportKind {
        let Some((ssrc, first)) = self.stream.filter(|(ssrc, _)| *ssrc != compound.ssrc) else {
            return ReportKind::Nothing;
        };
        let block = compound.reports.iter().find(|block| block.ssrc == ssrc);
        let reported = block.is_some_and(|block| self.takes(block, first));
        let news = self.takes_arrivals(compound, ssrc, first) || reported;
        if news {
            self.reporter = Some(compound.ssrc);
        }
        let leaves = compound.bye.as_ref().is_some_and(|bye| bye.sources.contains(&compound.ssrc));
        if leaves && self.reporter == Some(compound.ssrc) {
            return ReportKind::Left;
        }
        if news { ReportKind::News } else { ReportKind::Nothing }
    }

    /// Feedback on when packets of the stream arrived: whether one has of which none has told before.
    fn takes_arrivals(&mut self, compound: &Compound, ssrc: Ssrc, first: u16) -> bool {
        let newest = |at: Option<usize>, base: u16| at.map(|at| base.wrapping_add(at as u16));
        let by_transport = compound.transport.iter().filter(|feedback| feedback.ssrc == ssrc).filter_map(|feedback| {
            // these numbers begin with 0
            newest(feedback.packets.iter().rposition(Option::is_some), feedback.base).map(|number| (number, 0))
        });
        let by_sequence = compound.arrivals.iter().flat_map(|feedback| &feedback.streams);
        let by_sequence = by_sequence.filter(|of| of.ssrc == ssrc).filter_map(|of| {
            let at = of.packets.iter().rposition(|arrival| matches!(arrival, Arrival::Received { .. }));
            newest(at, of.begin).map(|number| (number, first))
        });
        let furthest = by_transport.chain(by_sequence).map(|(number, first)| self.up_to(number, first)).max();
        let news = furthest.is_some_and(|furthest| furthest > self.arrived);
        self.arrived = self.arrived.max(furthest.unwrap_or(0));
        news
    }

    /// How many packets have been sent up to the one of this number, if the first had `first`: 0 if none had it. There are 16
    /// bits of it; it cannot be further behind than the first.
    fn up_to(&self, number: u16, first: u16) -> u64 {
        let last = first.wrapping_add(self.sent as u16).wrapping_sub(1);
        self.sent.saturating_sub(u64::from(last.wrapping_sub(number)))
    }

    /// A block on the stream: whether it tells of packets that none has told of before.
    fn takes(&mut self, block: &ReportBlock, first: u16) -> bool {
        let expected = self.up_to(block.extended_highest as u16, first);
        if expected <= self.reported.expected {
            self.idle += 1;
            return false;
        }
        self.idle = 0;
        self.reported = Reported {
            reports: self.reported.reports + 1,
            expected,
            lost: i64::from(block.cumulative_lost),
            jitter_s: Some(f64::from(block.jitter) / RtpData::CLOCK_HZ as f64),
        };
        true
    }

    /// Why the flow ends for want of news.
    pub(super) fn why(&self) -> End {
        match (self.reporter, self.idle) {
            (_, idle) if idle >= INTERVALS => End::NothingArrives,
            (None, _) => End::NoReports,
            (Some(_), _) => End::ReportsCeased,
        }
    }

    /// What the reports have said; nothing before the first.
    pub(super) fn reported(&self) -> Option<Reported> {
        (self.reported.reports > 0).then_some(self.reported)
    }
}

/// What a flow to a receiver of plain RTP must be.
pub(super) fn check(spec: &SessionSpec, model: &FlowModel) -> Result<(), ScenarioError> {
    let mistake = |problem: String| {
        Err(ScenarioError { file: super::flow::NAME.to_owned(), mistakes: vec![Mistake::new("cc", &problem)] })
    };
    if !matches!(model.transport, Transport::Rtp { .. }) {
        return mistake(format!(
            "{} does not send RTP; to a receiver of RTP use lda-plus, gcc, scream or nada",
            model.scheme
        ));
    }
    let RtpPeer { payload_type, transport_id } = spec.rtp.unwrap_or_default();
    // RFC 5761 section 4: with the marker these look like RTCP
    if payload_type > 127 || (64..96).contains(&payload_type) {
        return mistake(format!("payload type {payload_type} is not in 0 to 63 or 96 to 127 (RFC 5761)"));
    }
    if !(1..=14).contains(&transport_id) {
        return mistake(format!("the ID {transport_id} of transport-wide numbers is not in 1 to 14 (RFC 8285)"));
    }
    if model.bundle.is_some() {
        return mistake("a bundle goes to `paceline serve` alone; leave `bundle` out".to_owned());
    }
    if spec.side == Side::Receiver {
        return mistake("a receiver of plain RTP only receives".to_owned());
    }
    Ok(())
}

/// Whether a datagram of an RTP session is of RTCP: its second byte is a packet type from 192 to 223, which no RTP packet of
/// ours has there (RFC 5761 section 4).
#[must_use]
pub(crate) fn is_rtcp(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|kind| (192..=223).contains(kind))
}
