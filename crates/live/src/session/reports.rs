//! A receiver of plain RTP (RFC 3550) at the other end: how it agrees, and what its reports say.
//!
//! It has no shared secret. It only knows the stream's SSRC, which is random and sent only in the data: a report about
//! it shows that somebody there receives and understands the data. Until the first such report the sender's rate stays
//! below [`CAUTIOUS_BPS`]. It continues while reports acknowledge packets that no earlier report did, and stops when
//! none has for three intervals: these are the first two circuit breakers of RFC 8083 (sections 4.1 and 4.2). The
//! third, on congestion, is the task of the flow's controller. Feedback about arrivals, transport-wide or of RFC 8888,
//! also counts as a report.

use super::{End, SessionSpec, Side};
use paceline_flow::{Segment, Transport};
use paceline_packet::Extra;
use paceline_packet::rtcp::{Arrival, Compound, ReportBlock};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_scenario::model::FlowModel;
use paceline_scenario::{Mistake, ScenarioError};
use paceline_units::Span;
use serde::{Deserialize, Serialize};

/// Maximum rate to a receiver that has not reported yet, in bit/s of UDP payload: a telephone call's (G.711).
pub const CAUTIOUS_BPS: u32 = 64_000;
/// Number of intervals without news after which the flow ends.
const INTERVALS: u64 = 3;
/// Minimum length of an interval: the minimum recommended by RFC 3550 section 6.2, which a foreign receiver may well
/// use.
const MIN_INTERVAL: Span = Span::from_secs(5);

/// A receiver of plain RTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RtpPeer {
    /// The payload type of the data: 0 to 127, except those that look like RTCP on the same port (RFC 5761).
    pub payload_type: u8,
    /// Extension ID of transport-wide sequence numbers (RFC 8285 section 4.2): 1 to 14. Used only with transport-wide
    /// feedback.
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

/// What a receiver's reports have said about the stream.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Reported {
    /// Reports that covered packets not covered before.
    pub reports: u64,
    /// Packets from the first one sent up to the newest covered by a report.
    pub expected: u64,
    /// Of these, lost packets according to the last such report: the cumulative count of RFC 3550 section 6.4.1, which
    /// duplicates lower.
    pub lost: i64,
    /// Interarrival jitter in seconds, according to that report.
    pub jitter_s: Option<f64>,
    /// Compound packets with news of the stream that lack the CNAME of RFC 3550 section 6.1; they are read all the same.
    #[serde(default)]
    pub without_cname: u64,
}

/// Meaning of a datagram from the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReportKind {
    /// Packets have arrived that no report covered before.
    NewArrivals,
    /// A report without news.
    Nothing,
    /// The receiver leaves (BYE).
    Left,
}

/// The receiver's side of the agreement.
#[derive(Debug)]
pub(super) struct Reports {
    patience: Span,
    /// The stream: its SSRC and its first packet's sequence number.
    stream: Option<(Ssrc, u16)>,
    sent: u64,
    /// The SSRC that has reported on it.
    reporter: Option<Ssrc>,
    /// Number of reports on it since the last one with news.
    idle: u64,
    /// Packets up to the newest that arrival feedback has covered.
    arrived: u64,
    reported: Reported,
}

impl Reports {
    /// For a receiver that has not reported yet, of a flow with RTP's machines.
    pub(super) fn new(transport: &Transport) -> Reports {
        let interval = match transport {
            Transport::Rtp { config, .. } => config.timing.t_min(),
            _ => Span::ZERO,
        };
        let patience = interval.max(MIN_INTERVAL) * INTERVALS;
        Reports { patience, stream: None, sent: 0, reporter: None, idle: 0, arrived: 0, reported: Reported::default() }
    }

    /// How long the sender continues without news.
    pub(super) fn patience(&self) -> Span {
        self.patience
    }

    /// Counts a sent data packet.
    pub(super) fn sends(&mut self, segment: &Segment) {
        if let Some(Extra::Rtp(data)) = &segment.extra {
            if self.stream.is_none_or(|(ssrc, _)| ssrc != data.ssrc) {
                // the application has begun a new RTP session, on which nobody has reported yet
                self.stream = Some((data.ssrc, data.sequence));
                self.sent = 0;
                self.reported.expected = 0;
                self.arrived = 0;
            }
            self.sent += 1;
        }
    }

    /// Handles a compound packet from the receiver's address.
    pub(super) fn on_compound(&mut self, compound: &Compound) -> ReportKind {
        let Some((ssrc, first)) = self.stream.filter(|(ssrc, _)| *ssrc != compound.ssrc) else {
            return ReportKind::Nothing;
        };
        let block = compound.reports.iter().find(|block| block.ssrc == ssrc);
        let reported = block.is_some_and(|block| self.takes(block, first));
        let news = self.takes_arrivals(compound, ssrc, first) || reported;
        if news {
            self.reporter = Some(compound.ssrc);
            self.reported.without_cname += u64::from(compound.lacks_cname());
        }
        let leaves = compound.bye.as_ref().is_some_and(|bye| bye.sources.contains(&compound.ssrc));
        if leaves && self.reporter == Some(compound.ssrc) {
            return ReportKind::Left;
        }
        if news { ReportKind::NewArrivals } else { ReportKind::Nothing }
    }

    /// Handles feedback about arrivals; returns whether it covers a packet that none covered before.
    fn takes_arrivals(&mut self, compound: &Compound, ssrc: Ssrc, first: u16) -> bool {
        let newest = |at: Option<usize>, base: u16| at.map(|at| base.wrapping_add(at as u16));
        let by_transport = compound.transport.iter().filter(|feedback| feedback.ssrc == ssrc).filter_map(|feedback| {
            // transport-wide sequence numbers begin with 0
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

    /// Number of packets sent up to the one with this sequence number, if the first had `first`; 0 if none had it. The
    /// number has 16 bits, and cannot precede the first.
    fn up_to(&self, number: u16, first: u16) -> u64 {
        let last = first.wrapping_add(self.sent as u16).wrapping_sub(1);
        self.sent.saturating_sub(u64::from(last.wrapping_sub(number)))
    }

    /// Handles a report block on the stream; returns whether it covers packets that none covered before.
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
            ..self.reported
        };
        true
    }

    /// Why the flow ends when there is no news.
    pub(super) fn why(&self) -> End {
        match (self.reporter, self.idle) {
            (_, idle) if idle >= INTERVALS => End::NothingArrives,
            (None, _) => End::NoReports,
            (Some(_), _) => End::ReportsCeased,
        }
    }

    /// Summary of the reports; `None` before the first.
    pub(super) fn reported(&self) -> Option<Reported> {
        (self.reported.reports > 0).then_some(self.reported)
    }
}

/// Checks that a flow can be sent to a receiver of plain RTP.
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
    // RFC 5761 section 4: with the marker bit these look like RTCP
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

/// Whether a datagram of an RTP session is RTCP: its second byte is a packet type from 192 to 223, which no RTP packet
/// of Paceline has there (RFC 5761 section 4).
#[must_use]
pub(crate) fn is_rtcp(datagram: &[u8]) -> bool {
    datagram.get(1).is_some_and(|kind| (192..=223).contains(kind))
}
