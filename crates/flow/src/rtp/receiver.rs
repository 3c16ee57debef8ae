//! The receiving end (RFC 3550 section 6.4.2 and appendix A).

use super::ccfb::ArrivalLog;
use super::ecn::EcnLog;
use super::feedback_timer::FeedbackTimer;
use super::nack::NackLog;
use super::packet_pair::PacketPairs;
use super::participant::{self, Participant};
use super::source::{RtpSource, Verdict};
use super::timing::{Members, ReportTimer};
use super::twcc::TransportLog;
use super::{FeedbackFormat, LossField, RtpConfig};
use crate::{Arrived, ReceiverStats, Transmit};
use paceline_control::RtpFeedback;
use paceline_packet::rtcp::{
    App, ArrivalFeedback, Bottleneck, Compound, EcnFeedback, EcnSummary, Loss, Nack, Repair, ReportBlock,
};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{Extra, Flags, NtpMiddle, NtpSpan, Packet};
use paceline_random::Stream;
use paceline_units::Time;

/// A source times out after this many intervals without a packet (section 6.3.5).
const TIMEOUT_INTERVALS: u64 = 5;

/// Maximum number of packets kept for a source that is not valid yet.
const MAX_EARLY: usize = 64;

/// Whether two sequence numbers are close enough to belong to one sequence.
fn is_near(one: u16, other: u16) -> bool {
    one.wrapping_sub(other).min(other.wrapping_sub(one)) < 1000
}

/// Whether a packet belongs to the source of retransmissions and padding packets.
fn is_aside(data: &RtpData) -> bool {
    data.payload_type == RtpData::FILLER || RtpData::retransmitted_type(data.payload_type).is_some()
}

/// The receiver's state of the sender.
#[derive(Clone, Debug)]
struct Source {
    ssrc: Ssrc,
    source: RtpSource,
    pairs: PacketPairs,
    arrivals: ArrivalLog,
    numbered: TransportLog,
    /// LSR, and when that sender report arrived.
    report: Option<(NtpMiddle, Time)>,
    /// Data packets since the last report, and in the interval before it.
    fresh: u32,
    fresh_before: u32,
    /// Payload bytes received before the source was valid.
    held: u64,
    /// The sequence numbers of those packets, kept while duplicates of them may arrive.
    early: Vec<u16>,
    nacks: NackLog,
    ecn: EcnLog,
}

impl Source {
    /// The counters of the ECN field.
    fn ecn_feedback(&mut self) -> EcnFeedback {
        let counts = self.ecn.report(self.source.cumulative_lost());
        EcnFeedback { ssrc: self.ssrc, extended_highest: self.source.extended_highest(), counts }
    }

    /// Records a packet's arrival; returns whether there is anything to report. With transport-wide feedback, a packet
    /// without a transport-wide number cannot be reported.
    fn note(&mut self, now: Time, flags: Flags, data: &RtpData, format: FeedbackFormat) -> bool {
        match format {
            FeedbackFormat::Rfc8888 => {
                self.arrivals.note(now, data.sequence, flags);
                self.arrivals.has_news()
            }
            FeedbackFormat::Transport => {
                if let Some(number) = data.transport {
                    self.numbered.note(now, number);
                }
                self.numbered.has_news()
            }
        }
    }
}

/// A packet of another stream in a bundle, for the feedback of the leading stream's receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Its transport-wide number.
    pub number: u16,
    /// Its bytes on the wire.
    pub size: u16,
    /// Whether it is the last of a frame.
    pub ends_frame: bool,
}

/// Counters of the feedback that a receiver sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedbackSent {
    /// Bytes of all feedback on the wire.
    pub bytes: u64,
    /// Packets requested again, counted once per request.
    pub nacks: u64,
    /// Key frames requested.
    pub plis: u64,
}

/// The receiving end of a flow. It joins the session when the first packet arrives.
#[derive(Debug)]
pub struct RtpReceiver {
    config: Box<RtpConfig>,
    us: Participant,
    timer: Option<ReportTimer>,
    /// The timer of feedback on arrivals.
    feedback: FeedbackTimer,
    sender: Option<Source>,
    /// When separate feedback on the ECN field is due, and the earliest time that the session's bandwidth allows it.
    ecn_due: Time,
    ecn_free: Time,
    /// Another source that may replace the sender, after a restart.
    candidate: Option<(Ssrc, RtpSource)>,
    /// When the last packet arrived.
    last_received: Time,
    stats: ReceiverStats,
    feedback_sent: FeedbackSent,
    /// For a stream led by another: the packet to report to the leader's receiver.
    carried: Option<Carried>,
    /// For a leader's receiver: packets of other streams that arrived before the leader's source was known.
    early: Vec<(Time, Carried)>,
}

impl RtpReceiver {
    /// Creates a receiver that waits for packets. `stream` supplies its SSRC and the random draws of its reports.
    #[must_use]
    pub fn new(config: &RtpConfig, stream: Stream) -> RtpReceiver {
        RtpReceiver {
            config: Box::new(config.clone()),
            us: Participant::new(stream),
            timer: None,
            feedback: FeedbackTimer::new(),
            sender: None,
            ecn_due: Time::NEVER,
            ecn_free: Time::ZERO,
            candidate: None,
            last_received: Time::ZERO,
            stats: ReceiverStats::default(),
            feedback_sent: FeedbackSent::default(),
            carried: None,
            early: Vec::new(),
        }
    }

    /// When to call [`RtpReceiver::on_timer`].
    #[inline]
    #[must_use]
    pub fn next_wake(&self) -> Time {
        let again = self.sender.as_ref().map_or(Time::NEVER, |sender| sender.nacks.due());
        self.timer.as_ref().map_or(Time::NEVER, ReportTimer::due).min(self.feedback.due()).min(again).min(self.ecn_due)
    }

    /// Counters up to now. Packets and bytes on the wire include the sender's reports.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    /// Counters of the feedback sent since the last reset.
    #[must_use]
    pub fn feedback_sent(&self) -> FeedbackSent {
        self.feedback_sent
    }

    /// Resets [`RtpReceiver::feedback_sent`].
    pub fn count_feedback_from_here(&mut self) {
        self.feedback_sent = FeedbackSent::default();
    }

    /// The receiver's SSRC.
    #[must_use]
    pub fn ssrc(&self) -> Ssrc {
        self.us.ssrc
    }

    /// Processes a packet of the sender. Duplicate data packets are not delivered again. Packets of a source that is
    /// not valid yet are delivered when it becomes valid.
    pub fn on_data(&mut self, now: Time, packet: &Packet, extra: Option<&Extra>, out: &mut impl Transmit) -> Arrived {
        let stats = &mut self.stats;
        stats.on_received(now, packet.size);
        stats.marks += u64::from(packet.flags.has(Flags::CE));
        match extra {
            Some(Extra::Rtp(data)) => {
                self.join(now);
                self.data(now, packet, data, out)
            }
            Some(Extra::Rtcp(report)) => {
                self.join(now);
                self.control(now, packet.size, report, out);
                Arrived::default()
            }
            _ => Arrived::default(),
        }
    }

    #[inline]
    fn join(&mut self, now: Time) {
        self.last_received = now;
        if self.timer.is_none() {
            self.begin(now);
        }
    }

    #[cold]
    fn begin(&mut self, now: Time) {
        let first = ReportBlock {
            ssrc: Ssrc(0),
            fraction_lost: 0,
            cumulative_lost: 0,
            extended_highest: 0,
            jitter: 0,
            lsr: NtpMiddle::NONE,
            dlsr: NtpSpan(0),
        };
        let first = Compound { reports: vec![first], ..self.us.report() };
        let timing = self.config.timing;
        self.timer = Some(ReportTimer::new(timing, participant::size(&first), self.us.timer_stream(), now));
    }

    fn data(&mut self, now: Time, packet: &Packet, data: &RtpData, out: &mut impl Transmit) -> Arrived {
        let size = packet.size;
        let payload = match data.payload_type {
            RtpData::FILLER => 0,
            _ => u64::from(size.saturating_sub(self.config.header)),
        };
        if self.config.nack && is_aside(data) {
            return self.aside(now, packet, data, out);
        }
        if self.sender.as_ref().is_none_or(|sender| sender.ssrc != data.ssrc) && !self.is_the_sender(data, payload) {
            return Arrived::default();
        }
        let Some(sender) = &mut self.sender else { return Arrived::default() };
        let lost = if self.config.ecn_reports { sender.source.cumulative_lost() } else { 0 };
        let verdict = sender.source.update(data.sequence);
        if verdict == Verdict::Stray {
            return Arrived::default();
        }
        if self.config.ecn_reports {
            sender.ecn.arrived(packet.flags, verdict == Verdict::Copy);
            if sender.source.cumulative_lost() > lost {
                sender.ecn.lost();
            }
            // feedback on arrivals carries the ECN counts
            if sender.ecn.has_news() && self.config.settings.feedback == RtpFeedback::Reports {
                self.ecn_due = self.ecn_due.min(now.max(self.ecn_free));
            }
        }
        let sends_feedback =
            self.config.settings.feedback == RtpFeedback::Arrivals && self.note(now, packet, data, data.marker);
        let Some(sender) = &mut self.sender else { return Arrived::default() };
        sender.source.arrival(data.timestamp, now);
        sender.pairs.packet(now, data.sequence, size);
        sender.fresh += 1;
        let first = sender.fresh == 1;
        let sends_nacks = self.config.nack && sender.nacks.arrived(data.sequence);
        let arrived = match verdict {
            Verdict::New | Verdict::Restarted => {
                // packets from before the source was valid are not part of its sequence
                let copy = sender.early.contains(&data.sequence);
                sender.early.retain(|early| is_near(*early, data.sequence));
                self.stats.duplicates += u64::from(copy);
                let bytes = core::mem::take(&mut sender.held) + if copy { 0 } else { payload };
                self.stats.bytes += bytes;
                if first {
                    self.members(now);
                }
                Arrived { bytes, segments: u32::from(bytes > 0) }
            }
            Verdict::Copy => {
                self.stats.duplicates += 1;
                Arrived::default()
            }
            Verdict::Probation if sender.early.contains(&data.sequence) => {
                self.stats.duplicates += 1;
                Arrived::default()
            }
            Verdict::Probation | Verdict::Stray => {
                if sender.early.len() < MAX_EARLY {
                    sender.early.push(data.sequence);
                    sender.held += payload;
                }
                Arrived::default()
            }
        };
        if sends_feedback {
            self.send_feedback(now, out);
        }
        if self.ecn_due <= now {
            self.send_ecn(now, out);
        }
        if sends_nacks {
            self.send_nacks(now, out);
        }
        arrived
    }

    /// Records a packet's arrival, or keeps it for the leader's receiver; returns whether feedback is to be sent now.
    fn note(&mut self, now: Time, packet: &Packet, data: &RtpData, ends_frame: bool) -> bool {
        if self.config.bundled {
            self.carried = data.transport.map(|number| Carried { number, size: packet.size, ends_frame });
            return false;
        }
        let Some(sender) = &mut self.sender else { return false };
        let news = sender.note(now, packet.flags, data, self.config.feedback.format);
        self.feedback.arrived(now, packet.size, ends_frame, news, &self.config)
    }

    /// For a stream led by another: the packet that has arrived, for the leader's receiver.
    pub fn take_carried(&mut self) -> Option<Carried> {
        self.carried.take()
    }

    /// For a leader's receiver: processes a packet of a stream that it leads.
    pub fn carry(&mut self, now: Time, packet: Carried, out: &mut impl Transmit) {
        if self.sender.is_none() {
            if self.early.len() < MAX_EARLY {
                self.early.push((now, packet));
            }
            return;
        }
        self.last_received = now;
        if self.on_carried(now, packet) {
            self.send_feedback(now, out);
        }
    }

    fn on_carried(&mut self, now: Time, packet: Carried) -> bool {
        let Some(sender) = &mut self.sender else { return false };
        sender.numbered.note(now, packet.number);
        self.feedback.arrived(now, packet.size, packet.ends_frame, sender.numbered.has_news(), &self.config)
    }

    /// Sends the ECN counters at once (RFC 6679 section 7.3.2), as often as the session's bandwidth allows.
    #[cold]
    fn send_ecn(&mut self, now: Time, out: &mut impl Transmit) {
        self.ecn_due = Time::NEVER;
        let Some(sender) = self.sender.as_mut().filter(|sender| sender.ecn.has_news()) else { return };
        let ecn = vec![sender.ecn_feedback()];
        let size = self.transmit(Compound { ecn, ..self.us.report() }, now, out);
        if let Some(timer) = &mut self.timer {
            timer.received(size);
        }
        self.ecn_free = now + self.config.feedback_share(size);
    }

    /// Processes a retransmission or a padding packet.
    fn aside(&mut self, now: Time, packet: &Packet, data: &RtpData, out: &mut impl Transmit) -> Arrived {
        let sends_feedback = self.note(now, packet, data, false);
        let Some(sender) = &mut self.sender else { return Arrived::default() };
        let mut arrived = Arrived::default();
        if let Some(original) = data.original {
            if sender.nacks.repaired(now, original) && sender.source.repair(original) {
                let below = self.config.header + RtpData::ORIGINAL_LEN as u16;
                let bytes = u64::from(packet.size.saturating_sub(below));
                self.stats.bytes += bytes;
                arrived = Arrived { bytes, segments: u32::from(bytes > 0) };
            } else {
                self.stats.duplicates += 1;
            }
        }
        if sends_feedback {
            self.send_feedback(now, out);
        }
        arrived
    }

    /// Sends NACKs at once; as in libwebrtc, they do not wait for a report interval.
    #[cold]
    fn send_nacks(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(sender) = &mut self.sender else { return };
        let (ssrc, lost) = (sender.ssrc, sender.nacks.take_due(now));
        if !lost.is_empty() {
            self.feedback_sent.nacks += lost.len() as u64;
            self.repair(Repair::Nack(Nack { ssrc, lost }), now, out);
        }
    }

    /// Requests a key frame (PLI, RFC 4585 section 6.3.1); without a sender it does nothing.
    #[cold]
    pub fn request_key_frame(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(ssrc) = self.sender.as_ref().map(|sender| sender.ssrc) else { return };
        self.feedback_sent.plis += 1;
        self.repair(Repair::Pli(ssrc), now, out);
    }

    fn repair(&mut self, repair: Repair, now: Time, out: &mut impl Transmit) {
        let report = Compound { repair: vec![repair], ..self.us.feedback(self.config.feedback.reduced) };
        let size = self.transmit(report, now, out);
        if let Some(timer) = &mut self.timer {
            timer.received(size);
        }
    }

    /// Sends a report; returns its bytes on the wire.
    fn transmit(&mut self, report: Compound, now: Time, out: &mut impl Transmit) -> u16 {
        let size = participant::transmit(report, Flags::ACK, now, out);
        self.stats.acks += 1;
        self.feedback_sent.bytes += u64::from(size);
        size
    }

    /// Processes a packet of an unknown source: the first sender, or a new source that replaces it once it is valid.
    /// Returns whether the source is now the sender.
    #[cold]
    fn is_the_sender(&mut self, data: &RtpData, payload: u64) -> bool {
        if self.sender.is_none() {
            self.sender = Some(self.new_source(data.ssrc, RtpSource::new(data.sequence)));
            for (at, packet) in std::mem::take(&mut self.early) {
                self.on_carried(at, packet);
            }
            return true;
        }
        let known = self.candidate.take().filter(|(ssrc, _)| *ssrc == data.ssrc);
        let source = known.map_or_else(|| RtpSource::new(data.sequence), |(_, source)| source);
        let mut tried = source.clone();
        if tried.update(data.sequence) != Verdict::New {
            self.candidate = Some((data.ssrc, tried));
            return false;
        }
        // in sequence; the caller counts this packet
        let early = vec![data.sequence.wrapping_sub(1)];
        self.sender = Some(Source { held: payload, early, ..self.new_source(data.ssrc, source) });
        true
    }

    fn new_source(&self, ssrc: Ssrc, source: RtpSource) -> Source {
        let pairs = PacketPairs::new(self.config.probe);
        let (arrivals, numbered) = (ArrivalLog::default(), TransportLog::default());
        let (report, early, nacks, ecn) = (None, Vec::new(), NackLog::default(), EcnLog::default());
        Source {
            ssrc,
            source,
            pairs,
            arrivals,
            numbered,
            report,
            fresh: 0,
            fresh_before: 0,
            held: 0,
            early,
            nacks,
            ecn,
        }
    }

    fn control(&mut self, now: Time, size: u16, report: &Compound, out: &mut impl Transmit) {
        if let Some(timer) = &mut self.timer {
            timer.received(size);
        }
        let Some(sender) = self.sender.as_mut().filter(|sender| sender.ssrc == report.ssrc) else { return };
        if let Some(info) = &report.sender {
            sender.report = Some((info.ntp.middle(), now));
        }
        for app in &report.apps {
            if let App::Probe(probe) = app {
                sender.pairs.announce(*probe);
            }
        }
        if report.bye.as_ref().is_some_and(|bye| bye.sources.contains(&report.ssrc)) {
            // a session of two is over; with so few members nobody waits before leaving (section 6.3.7)
            let last = Compound { bye: Some(self.us.bye()), ..self.compound(now) };
            self.transmit(last, now, out);
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.timer = None;
        self.feedback = FeedbackTimer::new();
        self.sender = None;
        self.ecn_due = Time::NEVER;
        self.candidate = None;
    }

    /// Sends reports and feedback that are due; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.feedback.due() <= now {
            self.send_feedback(now, out);
        }
        if self.ecn_due <= now {
            self.send_ecn(now, out);
        }
        if self.sender.as_ref().is_some_and(|sender| sender.nacks.due() <= now) {
            self.send_nacks(now, out);
        }
        let Some(timer) = &mut self.timer else { return };
        if now.since(self.last_received).0 > timer.deterministic().0.saturating_mul(TIMEOUT_INTERVALS) {
            return self.leave();
        }
        if !timer.expire(now) {
            return;
        }
        let report = self.compound(now);
        let size = self.transmit(report, now, out);
        self.members(now);
        if let Some(timer) = &mut self.timer {
            timer.sent(now, size);
        }
    }

    /// Sends feedback on packets received since the last one, if there are any.
    #[cold]
    fn send_feedback(&mut self, now: Time, out: &mut impl Transmit) {
        let Some(sender) = &mut self.sender else { return self.feedback.nothing() };
        let mut report = self.us.feedback(self.config.feedback.reduced);
        match self.config.feedback.format {
            FeedbackFormat::Rfc8888 => {
                let streams: Vec<_> = sender.arrivals.report(now, sender.ssrc).into_iter().collect();
                let reported = NtpMiddle::at(now);
                report.arrivals = (!streams.is_empty()).then_some(ArrivalFeedback { reported, streams });
            }
            FeedbackFormat::Transport => report.transport = sender.numbered.report(sender.ssrc),
        }
        if report.arrivals.is_none() && report.transport.is_empty() {
            return self.feedback.nothing();
        }
        // RFC 8888 itself reports marks
        let marks_too = self.config.feedback.format == FeedbackFormat::Transport || !sender.ecn.is_reported();
        if self.config.ecn_reports && sender.ecn.has_news() && marks_too {
            report.ecn.push(sender.ecn_feedback());
        }
        let size = self.transmit(report, now, out);
        if let Some(timer) = &mut self.timer {
            // it counts for the mean size of reports, but not as one of them
            timer.received(size);
        }
        self.feedback.sent(now, size, &self.config);
    }

    /// Updates the members of the session.
    fn members(&mut self, now: Time) {
        let sender = self.sender.as_ref().filter(|sender| sender.source.is_valid());
        let sends = sender.is_some_and(|sender| sender.fresh + sender.fresh_before > 0);
        let members = Members { all: 1 + u32::from(sender.is_some()), senders: u32::from(sends), we_sent: false };
        if let Some(timer) = &mut self.timer {
            timer.set_members(members, now);
        }
    }

    /// Builds a report on packets received since the last one.
    fn compound(&mut self, now: Time) -> Compound {
        let mut report = self.us.report();
        let Some(sender) = self.sender.as_mut().filter(|sender| sender.source.is_valid()) else { return report };
        if sender.fresh > 0 {
            let (block, interval) = sender.source.block(now, sender.ssrc, sender.report);
            report.reports.push(block);
            if self.config.loss == LossField::ThirtyTwo {
                let fraction = Loss::fraction_of(interval.expected, interval.received);
                report.apps.push(App::Loss(Loss { ssrc: sender.ssrc, fraction }));
            }
            if self.config.ecn_reports {
                let EcnFeedback { ssrc, counts, .. } = sender.ecn_feedback();
                report.ecn_summary.push(EcnSummary { ssrc, counts });
            }
            if let Some(rate) = sender.pairs.estimate() {
                report.apps.push(App::Bottleneck(Bottleneck { ssrc: sender.ssrc, rate }));
            }
        }
        sender.fresh_before = core::mem::take(&mut sender.fresh);
        report
    }
}
