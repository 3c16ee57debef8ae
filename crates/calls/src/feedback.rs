//! What the receiver's RTCP reports about an end's sent packets: arrivals of single packets, and receiver reports.

use crate::log::{CallLog, RtpPacket, Way};
use paceline_control::{Fate, PacketResult, SentPacket};
use paceline_flow::rtp::{Feedback, ReferenceClock, SentLog};
use paceline_packet::rtcp::Compound;
use paceline_packet::rtp::Ssrc;
use paceline_packet::wire::rtcp::decode;
use paceline_sim::Series;
use paceline_units::{Size, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Offset added to the log's times. A receiver's clock may lie behind by half the range of its field, and times are
/// unsigned.
const ORIGIN: Time = Time(Span::from_secs(20 * 86_400).0);
/// Maximum gap of sequence numbers between two packets of a log; beyond it, the numbering has restarted.
const GAP: i16 = 1000;
/// Maximum numbers missing in all; beyond it, every gap counts as a restart.
const FILLED: usize = 1 << 20;
/// Maximum sender reports that are remembered until they are echoed.
const ECHOES: usize = 1024;
/// Maximum plausible round-trip time; longer ones are ignored.
const LONGEST: Span = Span::from_secs(60);

/// The readable RTCP of a log.
#[derive(Clone, PartialEq, Debug)]
pub struct Reports {
    /// Time, direction, size in bytes and content of each packet.
    pub packets: Vec<(Time, Way, usize, Compound)>,
    /// Packets that could not be read: encrypted, damaged, or only of unsupported types.
    pub unread: usize,
}

impl Reports {
    /// Reads the RTCP of a log.
    #[must_use]
    pub fn of(log: &CallLog) -> Reports {
        let mut found = Reports { packets: Vec::with_capacity(log.rtcp.len()), unread: 0 };
        for packet in &log.rtcp {
            match decode(&packet.bytes) {
                Ok(compound) => found.packets.push((packet.at, packet.way, packet.bytes.len(), compound)),
                Err(_) => found.unread += 1,
            }
        }
        found
    }

    /// The received packets with feedback on single packets' arrivals.
    pub fn feedback(&self) -> impl Iterator<Item = &(Time, Way, usize, Compound)> {
        let has_arrivals = |compound: &Compound| !compound.transport.is_empty() || compound.arrivals.is_some();
        self.packets.iter().filter(move |(_, way, _, compound)| *way == Way::In && has_arrivals(compound))
    }

    /// Whether feedback uses transport-wide sequence numbers rather than RTP's.
    #[must_use]
    pub fn is_transport_wide(&self) -> bool {
        self.feedback().any(|(.., compound)| !compound.transport.is_empty())
    }
}

/// A time of the log on the clock that [`Flight`] uses.
pub(crate) fn clock(at: Time) -> Time {
    ORIGIN + at.since(Time::ZERO)
}

/// Packets that share one sequence number space.
struct Numbered {
    sent: SentLog,
    /// Sequence number of the first packet.
    base: u16,
    /// For each packet, by index, its [`SentPacket::number`].
    names: Vec<u32>,
}

impl Numbered {
    fn new(base: u16, reordering: u32) -> Numbered {
        Numbered { sent: SentLog::new(reordering), base, names: Vec::new() }
    }

    fn push(&mut self, at: Time, packet: SentPacket) {
        self.sent.push(clock(at), packet);
        self.names.push(packet.number);
    }

    /// Replaces indices in the results by the packets' own numbers, and drops packets that were not logged.
    fn named(&self, mut results: Feedback) -> Feedback {
        results.packets.retain(|packet| packet.size() > Size(0));
        for packet in &mut results.packets {
            packet.packet.number = self.names[packet.packet.number as usize];
        }
        results
    }
}

/// The packets in flight, by the sequence numbers that feedback uses.
pub struct Flight {
    transport_wide: bool,
    /// By source; with transport-wide numbers, one entry for all.
    streams: BTreeMap<u32, Numbered>,
    clock: ReferenceClock,
    reordering: u32,
    filled: usize,
}

impl Flight {
    /// No packets yet. A packet is lost once `reordering` packets sent after it have arrived.
    #[must_use]
    pub fn new(transport_wide: bool, reordering: u32) -> Flight {
        Flight { transport_wide, streams: BTreeMap::new(), clock: ReferenceClock::default(), reordering, filled: 0 }
    }

    /// Adds a sent packet. Returns false, and ignores the packet, if it has no number, is a duplicate, or is out of
    /// order.
    pub fn push(&mut self, packet: &RtpPacket, sent: SentPacket) -> bool {
        let (key, number) = match (self.transport_wide, packet.transport) {
            (false, _) => (packet.ssrc.0, packet.number),
            (true, Some(number)) => (0, number),
            (true, None) => return false,
        };
        let reordering = self.reordering;
        let stream = self.streams.entry(key).or_insert_with(|| Numbered::new(number, reordering));
        let ahead = number.wrapping_sub(stream.base.wrapping_add(stream.names.len() as u16)) as i16;
        let far = !(-GAP..=GAP).contains(&ahead) || ahead > 0 && self.filled >= FILLED;
        if far {
            *stream = Numbered::new(number, reordering);
        } else if ahead < 0 {
            return false;
        } else {
            // Packets that were sent but not logged have no size.
            (0..ahead).for_each(|_| stream.push(packet.at, SentPacket::default()));
            self.filled += ahead as usize;
        }
        stream.push(packet.at, sent);
        true
    }

    /// Bytes of the packets sent after the newest that feedback has covered.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.streams.values().map(|stream| stream.sent.in_flight()).sum()
    }

    /// When the oldest packet without a known fate was sent.
    #[must_use]
    pub fn oldest(&self) -> Option<Time> {
        self.streams.values().filter_map(|stream| stream.sent.oldest()).min()
    }

    /// What feedback newly reports, in the order of sending; `None` if nothing.
    pub fn packet_results(&mut self, at: Time, compound: &Compound) -> Option<Feedback> {
        let now = clock(at);
        let mut all: Vec<Feedback> = Vec::new();
        if self.transport_wide {
            let stream = self.streams.get_mut(&0)?;
            for feedback in &compound.transport {
                let base = self.clock.time(now, feedback.reference);
                let first = stream.base;
                let results = stream.sent.transport(now, base, feedback, |n| first.wrapping_add(n as u16));
                all.extend(results.map(|results| stream.named(results)));
            }
        } else {
            let arrivals = compound.arrivals.as_ref()?;
            for report in &arrivals.streams {
                let Some(stream) = self.streams.get_mut(&report.ssrc.0) else { continue };
                let first = stream.base;
                let results = stream.sent.report(now, arrivals.reported, report, |n| first.wrapping_add(n as u16));
                all.extend(results.map(|results| stream.named(results)));
            }
        }
        let newest = all
            .iter()
            .filter(|results| results.rtt.is_some())
            .max_by_key(|results| results.packets.last().map(|p| p.sent));
        let (rtt, end) = (newest.and_then(|results| results.rtt), all.iter().map(|results| results.end).max()?);
        let mut packets: Vec<PacketResult> = all.into_iter().flat_map(|results| results.packets).collect();
        packets.sort_by_key(|packet| packet.sent);
        (!packets.is_empty()).then_some(Feedback { packets, rtt, end })
    }
}

/// A packet's bytes on the wire, with all headers that the log reports.
pub(crate) fn wire(log: &CallLog, packet: &RtpPacket) -> Size {
    Size::from_bytes(u64::from(packet.payload.saturating_add(packet.beside).saturating_add(log.overhead).min(65_535)))
}

/// The feedback on arrivals over time, one row for each feedback packet with news: packets arrived and lost, bytes on
/// the wire of those that arrived, their mean and maximum delay above the minimum of the whole log (`delay_s` and
/// `delay_max_s`: the ends' clocks need not agree), the round-trip time of the newest, and the bytes of the feedback.
#[must_use]
pub fn table(log: &CallLog, reports: &Reports, reordering: u32) -> Series {
    const COLUMNS: [&str; 8] = [
        "time_s",
        "arrived_packets",
        "lost_packets",
        "arrived_bytes",
        "delay_s",
        "delay_max_s",
        "rtt_s",
        "feedback_bytes",
    ];
    let mut flight = Flight::new(reports.is_transport_wide(), reordering);
    let mut leaving = log.rtp.iter().filter(|packet| packet.way == Way::Out).peekable();
    let mut rows: Vec<[f64; 8]> = Vec::new();
    let mut min_delay = f64::INFINITY;
    for (at, _, bytes, compound) in reports.feedback() {
        while let Some(packet) = leaving.next_if(|packet| packet.at <= *at) {
            flight.push(packet, SentPacket { size: wire(log, packet), ..SentPacket::default() });
        }
        let Some(results) = flight.packet_results(*at, compound) else { continue };
        let lost = results.packets.iter().filter(|packet| packet.fate == Fate::Lost).count();
        let (mut arrived, mut size, mut delays) = (0_u32, 0, Vec::new());
        for packet in &results.packets {
            let Fate::Arrived { at, .. } = packet.fate else { continue };
            arrived += 1;
            size += packet.size().bytes();
            delays.extend(at.map(|at| (at.0 as i64 - packet.sent.0 as i64) as f64 / 1e9));
        }
        min_delay = delays.iter().copied().fold(min_delay, f64::min);
        let max_delay = delays.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let max_delay = if delays.is_empty() { f64::NAN } else { max_delay };
        let rtt = results.rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64());
        let time = at.as_secs_f64();
        rows.push([time, f64::from(arrived), lost as f64, size as f64, mean, max_delay, rtt, *bytes as f64]);
    }
    let mut series = Series::new("feedback", Vec::new(), &COLUMNS);
    for mut row in rows {
        row[4] -= min_delay;
        row[5] -= min_delay;
        series.columns.iter_mut().zip(row).for_each(|((_, column), value)| column.push(value));
    }
    series
}

/// The receiver reports over time, for each source and direction of the report (`ssrc` in hexadecimal; `way` is the
/// reporter, `peer` or `self`): the share lost since the previous report, the round-trip time if the log has the sender
/// report that it echoes, and the jitter in ticks of the source's timestamps (RFC 3550 section 6.4.1).
#[must_use]
pub fn receiver_reports(reports: &Reports) -> Vec<Series> {
    let mut found: BTreeMap<(Way, Ssrc), Series> = BTreeMap::new();
    let mut echoes: VecDeque<(Way, u32, Time)> = VecDeque::new();
    for (at, way, _, compound) in &reports.packets {
        if let Some(sender) = &compound.sender {
            echoes.push_back((*way, sender.ntp.middle().0, *at));
            if echoes.len() > ECHOES {
                echoes.pop_front();
            }
        }
        for block in &compound.reports {
            let echoed = echoes.iter().rev().find(|(other, middle, _)| other != way && *middle == block.lsr.0);
            let rtt = echoed
                .map(|(_, _, left)| at.since(*left).0 as f64 / 1e9 - block.dlsr.span().as_secs_f64())
                .filter(|rtt| (0.0..LONGEST.as_secs_f64()).contains(rtt));
            let series = found.entry((*way, block.ssrc)).or_insert_with(|| {
                let who = if *way == Way::In { "peer" } else { "self" };
                let labels = vec![("ssrc", format!("{:08x}", block.ssrc.0)), ("way", who.to_owned())];
                Series::new("reports", labels, &["time_s", "loss_rate", "rtt_s", "jitter_ticks"])
            });
            let row = [at.as_secs_f64(), block.fraction().0, rtt.unwrap_or(f64::NAN), f64::from(block.jitter)];
            series.columns.iter_mut().zip(row).for_each(|((_, column), value)| column.push(value));
        }
    }
    found.into_values().collect()
}
