//! The receiving end of a sender that is not ours: any number of streams, of any payload types, and feedback on all of them.
//!
//! Nobody has agreed to get reports, so that they are few: none before a stream is valid (two packets in sequence, RFC 3550
//! appendix A.1), and in all no more than [`SHARE`] of the bytes that have come. Whoever sends in another's name makes this
//! end send that one a twentieth of it at most.

mod leaps;

use super::arrivals::ArrivalLog;
use super::due::FeedbackTimer;
use super::participant::{self, Participant};
use super::source::{RtpSource, Verdict};
use super::timing::{Members, ReportTimer};
use super::transport::TransportLog;
use super::{FeedbackFormat, RtpConfig};
use crate::Transmit;
use leaps::Leaps;
use paceline_control::RtpFeedback;
use paceline_packet::rtcp::{ArrivalFeedback, Compound};
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{Flags, NtpMiddle};
use paceline_random::Stream;
use paceline_units::{Span, Time};

/// Of the bytes on the wire that have come, what all that is sent back may have.
pub const SHARE: f64 = 0.05;
/// A stream that sends so long after its BYE has come back: what was under way has arrived by then.
const RETURNED: Span = Span::from_secs(2);
/// Streams of a sender, at most; packets of others are counted and left.
pub const MOST_STREAMS: usize = 31;
/// Report blocks that one packet has room for (RFC 3550 section 6.4.1): one for each stream.
const _: () = assert!(MOST_STREAMS <= 31);

/// A stream, as it is heard.
#[derive(Clone, Debug)]
pub struct HeardStream {
    /// Its name.
    pub ssrc: Ssrc,
    /// What its last packet carried.
    pub payload_type: u8,
    /// Packets, copies included, and the bytes of their payloads.
    pub packets: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Bytes on the wire, all headers counted.
    pub wire_bytes: u64,
    /// Packets that were marked (ECN).
    pub marks: u64,
    /// When the first one came.
    pub first: Time,
    /// When the last one came.
    pub last: Time,
    source: RtpSource,
    leaps: Leaps,
    /// When it said BYE.
    left: Option<Time>,
    arrivals: ArrivalLog,
    report: Option<(NtpMiddle, Time)>,
    fresh: bool,
}

impl HeardStream {
    /// Whether enough packets have come in sequence.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.source.is_valid()
    }

    /// Packets expected less packets received: copies lower it. Where numbers leapt and timestamps went on, what lies between
    /// is lost, though RFC 3550's count in reports begins anew there.
    #[must_use]
    pub fn lost(&self) -> i64 {
        self.leaps.lost + i64::from(self.source.lost())
    }

    /// How often its numbers began anew: what was lost there is not known.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        self.leaps.restarts
    }

    /// Whether it has said that it ends (BYE).
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.left.is_some()
    }

    /// Interarrival jitter in seconds, where timestamps count 90000 a second, as video's do.
    #[must_use]
    pub fn jitter_s(&self) -> f64 {
        f64::from(self.source.jitter()) / RtpData::CLOCK_HZ as f64
    }
}

/// A packet that has come.
#[derive(Clone, Copy, Debug)]
pub struct Heard<'a> {
    /// Its header.
    pub data: &'a RtpData,
    /// Bytes on the wire, all headers counted.
    pub size: u16,
    /// Bytes of its payload.
    pub payload: u16,
    /// What its IP header says of marks.
    pub flags: Flags,
}

/// The receiving end.
#[derive(Debug)]
pub struct RtpListener {
    config: Box<RtpConfig>,
    us: Participant,
    timer: Option<ReportTimer>,
    feedback: FeedbackTimer,
    streams: Vec<HeardStream>,
    numbered: TransportLog,
    /// Bytes on the wire that have come, and that have been sent back.
    came: u64,
    sent: u64,
    reports: u64,
    beyond: u64,
}

impl RtpListener {
    /// One that has heard nothing. `stream` gives its SSRC and the randomness of its reports.
    #[must_use]
    pub fn new(config: &RtpConfig, stream: Stream) -> RtpListener {
        RtpListener {
            config: Box::new(config.clone()),
            us: Participant::new(stream),
            timer: None,
            feedback: FeedbackTimer::new(),
            streams: Vec::new(),
            numbered: TransportLog::default(),
            came: 0,
            sent: 0,
            reports: 0,
            beyond: 0,
        }
    }

    /// The streams, in the order of their first packets.
    #[must_use]
    pub fn streams(&self) -> &[HeardStream] {
        &self.streams
    }

    /// Packets of RTCP and their bytes on the wire that have been sent back.
    #[must_use]
    pub fn told(&self) -> (u64, u64) {
        (self.reports, self.sent)
    }

    /// Whether a stream is valid.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.streams.iter().any(HeardStream::is_valid)
    }

    /// Whether all streams have said that they end, each by its BYE.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.is_valid() && self.streams.iter().filter(|stream| stream.is_valid()).all(HeardStream::has_left)
    }

    /// Packets of streams that are not heard, as [`MOST_STREAMS`] are.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// When [`RtpListener::on_timer`] should be called.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.timer.as_ref().map_or(Time::NEVER, ReportTimer::due).min(self.feedback.due())
    }

    /// A packet of RTP has come.
    pub fn on_data(&mut self, now: Time, heard: Heard<'_>, out: &mut impl Transmit) {
        let Heard { data, size, payload, flags } = heard;
        let place = self.streams.iter().position(|stream| stream.ssrc == data.ssrc);
        let Some(place) = place.or_else(|| self.join(now, data)) else {
            self.beyond += 1;
            return;
        };
        self.came += u64::from(size);
        let stream = &mut self.streams[place];
        stream.packets += 1;
        stream.bytes += u64::from(payload);
        stream.wire_bytes += u64::from(size);
        stream.marks += u64::from(flags.has(Flags::CE));
        (stream.payload_type, stream.last) = (data.payload_type, now);
        if stream.left.is_some_and(|left| now.since(left) > RETURNED) {
            stream.left = None;
        }
        if leaps::update(&mut stream.source, &mut stream.leaps, now, data) == Verdict::Stray {
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

    /// A stream begins; `None` where there are too many.
    #[cold]
    fn join(&mut self, now: Time, data: &RtpData) -> Option<usize> {
        if self.streams.len() == MOST_STREAMS {
            return None;
        }
        self.streams.push(HeardStream {
            ssrc: data.ssrc,
            payload_type: data.payload_type,
            packets: 0,
            bytes: 0,
            wire_bytes: 0,
            marks: 0,
            first: now,
            last: now,
            source: RtpSource::new(data.sequence),
            leaps: Leaps::default(),
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

    /// A packet of RTCP has come.
    pub fn on_rtcp(&mut self, now: Time, size: u16, report: &Compound) {
        self.came += u64::from(size);
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

    /// A report may be due; a call too early does nothing.
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

    /// That this end leaves (RFC 3550 section 6.6).
    pub fn leave(&mut self, now: Time, out: &mut impl Transmit) {
        if self.is_valid() && self.is_free() {
            let report = Compound { bye: Some(self.us.bye()), ..self.us.report() };
            self.transmit(report, now, out);
        }
        self.timer = None;
        self.feedback.nothing();
    }

    /// Whether something may be sent back: what came has paid for what was sent.
    fn is_free(&self) -> bool {
        (self.sent as f64) < SHARE * self.came as f64
    }

    fn send_feedback(&mut self, now: Time, out: &mut impl Transmit) {
        if !self.is_valid() || !self.is_free() {
            // what has come is told of by the next one
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
