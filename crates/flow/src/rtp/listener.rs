//! A receiving end for senders other than Paceline's: any number of streams, any payload types, and feedback on all of
//! them.
//!
//! The senders have not agreed to get reports, so the listener sends few: none before a stream is valid (two packets in
//! sequence, RFC 3550 appendix A.1), and at most [`SHARE`] of the bytes received. So if someone sends under a forged
//! address, the victim gets at most a twentieth of that traffic.

mod sequence_jumps;

use super::ccfb::ArrivalLog;
use super::feedback_timer::FeedbackTimer;
use super::participant::{self, Participant};
use super::source::{RtpSource, Verdict};
use super::timing::{Members, ReportTimer};
use super::twcc::TransportLog;
use super::{FeedbackFormat, RtpConfig};
use crate::Transmit;
use paceline_control::RtpFeedback;
use paceline_packet::rtcp::{ArrivalFeedback, Compound};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{Flags, NtpMiddle};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use sequence_jumps::SequenceJumps;

/// The share of the bytes received, on the wire, that all reports may take.
pub const SHARE: f64 = 0.05;
/// A stream that still sends this long after its BYE has returned; packets in flight at the BYE have arrived by then.
const RETURNED: Span = Span::from_secs(2);
/// Maximum number of streams; packets of others are counted and ignored.
pub const MAX_STREAMS: usize = 31;
/// One packet has room for this many report blocks (RFC 3550 section 6.4.1), one per stream.
const _: () = assert!(MAX_STREAMS <= 31);

/// A received stream.
#[derive(Clone, Debug)]
pub struct ReceivedStream {
    /// Its SSRC.
    pub ssrc: Ssrc,
    /// The payload type of its last packet.
    pub payload_type: u8,
    /// Packets, including duplicates.
    pub packets: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Bytes on the wire, including all headers.
    pub wire_bytes: u64,
    /// Packets that arrived marked (ECN).
    pub marks: u64,
    /// When the first packet arrived.
    pub first: Time,
    /// When the last packet arrived.
    pub last: Time,
    source: RtpSource,
    jumps: SequenceJumps,
    /// When its BYE arrived.
    left: Option<Time>,
    arrivals: ArrivalLog,
    report: Option<(NtpMiddle, Time)>,
    fresh: bool,
}

impl ReceivedStream {
    /// Whether it is valid: enough packets have arrived in sequence.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.source.is_valid()
    }

    /// Packets expected minus packets received, so duplicates reduce it. If numbers jump but timestamps continue, the
    /// numbers between count as lost, although RFC 3550's count in reports restarts there.
    #[must_use]
    pub fn lost(&self) -> i64 {
        self.jumps.lost + i64::from(self.source.lost())
    }

    /// How often its sequence restarted; losses there are unknown.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.jumps.restarts
    }

    /// Whether it has sent BYE.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// Interarrival jitter in seconds, for timestamps of 90 kHz, as for video.
    #[must_use]
    pub fn jitter_s(&self) -> f64 {
        f64::from(self.source.jitter()) / RtpData::CLOCK_HZ as f64
    }
}

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<'a> {
    /// Its RTP header.
    pub data: &'a RtpData,
    /// Bytes on the wire, including all headers.
    pub size: u16,
    /// Payload bytes.
    pub payload: u16,
    /// The ECN bits of its IP header.
    pub flags: Flags,
}

/// The receiving end.
#[derive(Debug)]
pub struct RtpListener {
    config: Box<RtpConfig>,
    us: Participant,
    timer: Option<ReportTimer>,
    feedback: FeedbackTimer,
    streams: Vec<ReceivedStream>,
    numbered: TransportLog,
    /// Bytes on the wire received, and sent back.
    received: u64,
    sent: u64,
    reports: u64,
    beyond: u64,
}

impl RtpListener {
    /// Creates a listener. `stream` supplies its SSRC and the random draws of its reports.
    #[must_use]
    pub fn new(config: &RtpConfig, stream: Stream) -> RtpListener {
        RtpListener {
            config: Box::new(config.clone()),
            us: Participant::new(stream),
            timer: None,
            feedback: FeedbackTimer::new(),
            streams: Vec::new(),
            numbered: TransportLog::default(),
            received: 0,
            sent: 0,
            reports: 0,
            beyond: 0,
        }
    }

    /// The streams, in the order of their first packets.
    #[must_use]
    pub fn streams(&self) -> &[ReceivedStream] {
        &self.streams
    }

    /// RTCP packets sent back, and their bytes on the wire.
    #[must_use]
    pub fn reports_sent(&self) -> (u64, u64) {
        (self.reports, self.sent)
    }

    /// Whether any stream is valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.streams.iter().any(ReceivedStream::is_valid)
    }

    /// Whether every valid stream has sent BYE.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.is_valid() && self.streams.iter().filter(|stream| stream.is_valid()).all(ReceivedStream::has_left)
    }

    /// Packets of streams beyond [`MAX_STREAMS`], which are ignored.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// When to call [`RtpListener::on_timer`].
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.timer.as_ref().map_or(Time::NEVER, ReportTimer::due).min(self.feedback.due())
    }

    /// Processes an RTP packet.
    pub fn on_data(&mut self, now: Time, packet: ReceivedPacket<'_>, out: &mut impl Transmit) {
        let ReceivedPacket { data, size, payload, flags } = packet;
        let place = self.streams.iter().position(|stream| stream.ssrc == data.ssrc);
        let Some(place) = place.or_else(|| self.join(now, data)) else {
            self.beyond += 1;
            return;
        };
        self.received += u64::from(size);
        let stream = &mut self.streams[place];
        stream.packets += 1;
        stream.bytes += u64::from(payload);
        stream.wire_bytes += u64::from(size);
        stream.marks += u64::from(flags.has(Flags::CE));
        (stream.payload_type, stream.last) = (data.payload_type, now);
        if stream.left.is_some_and(|left| now.since(left) > RETURNED) {
            stream.left = None;
        }
        if sequence_jumps::update(&mut stream.source, &mut stream.jumps, now, data) == Verdict::Stray {
            return;
        }
        stream.source.arrival(data.timestamp, now);
        stream.fresh = true;
        if self.config.settings.feedback != RtpFeedback::Arrivals {
            return;
        }
        let news = match (self.config.feedback.format, data.transport) {
            (FeedbackFormat::Rfc8888, _) => {
                stream.arrivals.note(now, data.sequence, flags);
                stream.arrivals.has_news()
            }
            (FeedbackFormat::Transport, Some(number)) => {
                self.numbered.note(now, number);
                self.numbered.has_news()
            }
            (FeedbackFormat::Transport, None) => self.numbered.has_news(),
        };
        if self.feedback.arrived(now, size, data.marker, news, &self.config) {
            self.send_feedback(now, out);
        }
    }

    /// Adds a stream; `None` if there are too many.
    #[cold]
    fn join(&mut self, now: Time, data: &RtpData) -> Option<usize> {
        if self.streams.len() == MAX_STREAMS {
            return None;
        }
        self.streams.push(ReceivedStream {
            ssrc: data.ssrc,
            payload_type: data.payload_type,
            packets: 0,
            bytes: 0,
            wire_bytes: 0,
            marks: 0,
            first: now,
            last: now,
            source: RtpSource::new(data.sequence),
            jumps: SequenceJumps::default(),
            left: None,
            arrivals: ArrivalLog::default(),
            report: None,
            fresh: false,
        });
        let size = participant::size(&self.us.report());
        let timer = ReportTimer::new(self.config.timing, size, self.us.timer_stream(), now);
        let timer = self.timer.get_or_insert(timer);
        let count = self.streams.len() as u32;
        timer.set_members(Members { all: 1 + count, senders: count, we_sent: false }, now);
        Some(self.streams.len() - 1)
    }

    /// Processes an RTCP packet.
    pub fn on_rtcp(&mut self, now: Time, size: u16, report: &Compound) {
        self.received += u64::from(size);
        if let Some(timer) = &mut self.timer {
            timer.received(size);
        }
        if let (Some(info), Some(stream)) =
            (&report.sender, self.streams.iter_mut().find(|stream| stream.ssrc == report.ssrc))
        {
            stream.report = Some((info.ntp.middle(), now));
        }
        if let Some(bye) = &report.bye {
            for stream in self.streams.iter_mut().filter(|stream| bye.sources.contains(&stream.ssrc)) {
                stream.left = Some(now);
            }
        }
    }

    /// Sends reports and feedback that are due; a call too early does nothing.
    pub fn on_timer(&mut self, now: Time, out: &mut impl Transmit) {
        if self.feedback.due() <= now {
            self.send_feedback(now, out);
        }
        if !self.timer.as_mut().is_some_and(|timer| timer.expire(now)) {
            return;
        }
        let mut report = self.us.report();
        if self.is_free() {
            for stream in self.streams.iter_mut().filter(|stream| stream.fresh && stream.source.is_valid()) {
                stream.fresh = false;
                report.reports.push(stream.source.block(now, stream.ssrc, stream.report).0);
            }
        }
        let size = if report.reports.is_empty() { 0 } else { self.transmit(report, now, out) };
        if let Some(timer) = &mut self.timer {
            timer.sent(now, size);
        }
    }

    /// Sends BYE (RFC 3550 section 6.6).
    pub fn leave(&mut self, now: Time, out: &mut impl Transmit) {
        if self.is_valid() && self.is_free() {
            let report = Compound { bye: Some(self.us.bye()), ..self.us.report() };
            self.transmit(report, now, out);
        }
        self.timer = None;
        self.feedback.nothing();
    }

    /// Whether anything may be sent back: the bytes received cover those sent.
    fn is_free(&self) -> bool {
        (self.sent as f64) < SHARE * self.received as f64
    }

    fn send_feedback(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.is_valid() || !self.is_free() {
            // the next feedback will cover these packets
            return self.feedback.sent(now, 0, &self.config);
        }
        let mut report = self.us.feedback(self.config.feedback.reduced);
        match self.config.feedback.format {
            FeedbackFormat::Rfc8888 => {
                let valid = self.streams.iter_mut().filter(|stream| stream.source.is_valid());
                let streams: Vec<_> = valid.filter_map(|s| s.arrivals.report(now, s.ssrc)).collect();
                let reported = NtpMiddle::at(now);
                report.arrivals = (!streams.is_empty()).then_some(ArrivalFeedback { reported, streams });
            }
            FeedbackFormat::Transport => report.transport = self.numbered.report(self.streams[0].ssrc),
        }
        if report.arrivals.is_none() && report.transport.is_empty() {
            return self.feedback.nothing();
        }
        let size = self.transmit(report, now, out);
        self.feedback.sent(now, size, &self.config);
    }

    fn transmit(&mut self, report: Compound, now: Time, out: &mut impl Transmit) -> u16 {
        let size = participant::transmit(report, Flags::ACK, now, out);
        self.sent += u64::from(size);
        self.reports += 1;
        size
    }
}

#[cfg(test)]
mod tests;
