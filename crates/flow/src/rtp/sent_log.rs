//! A sender's record of its packets until feedback has covered them (RFC 8888, or by transport-wide numbers).

use paceline_control::{Fate, PacketResult, SentPacket};
use paceline_packet::NtpMiddle;
use paceline_packet::rtcp::{Arrival, Ecn, StreamArrivals, TransportFeedback};
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// A packet whose fate is unknown.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    size: u16,
    payload: u16,
    ends_frame: bool,
    probe: Option<u32>,
    /// Its fate, if reported.
    fate: Option<Fate>,
    /// A report has covered it.
    covered: bool,
}

/// Feedback on a packet that has arrived.
struct ArrivedPacket {
    /// Its arrival time by the receiver's clock, if reported.
    at: Option<Time>,
    /// Its age when the feedback was sent.
    held: Option<Span>,
    marked: bool,
}

/// The information in a report.
#[derive(Clone, PartialEq, Debug)]
pub struct Feedback {
    /// Packets whose fate is now known, in order of sending.
    pub packets: Vec<PacketResult>,
    /// The round-trip time of the newest packet that has arrived; `None` if the report does not give it.
    pub rtt: Option<Span>,
    /// One past the newest packet that the report covers.
    pub end: u32,
}

/// The sent packets.
///
/// The fate of each packet is returned once. It has arrived when a report says so. It is lost when a report has covered
/// it and packets well after it have arrived. It is unknown when two reports that should have covered it did not. So a
/// lost, late or duplicate report can only reduce knowledge.
#[derive(Clone, Debug, Default)]
pub struct SentLog {
    /// The number of the first entry.
    first: u32,
    entries: VecDeque<Sent>,
    /// One past the newest packet that has arrived, and one past the newest that a report has covered.
    arrived_end: u32,
    covered_end: u32,
    /// Bytes on the wire from `covered_end` on.
    in_flight: u64,
    /// A packet is lost when one sent this many packets later has arrived; its own later arrival is ignored.
    reordering: u32,
    clock: ReportClock,
}

impl SentLog {
    /// Creates an empty log.
    #[must_use]
    pub fn new(reordering: u32) -> SentLog {
        SentLog { reordering, ..SentLog::default() }
    }

    /// Empties the log; the next packet is `number`.
    pub fn restart(&mut self, number: u32) {
        let reordering = self.reordering;
        *self = SentLog { first: number, arrived_end: number, covered_end: number, ..SentLog::new(reordering) };
    }

    /// Adds a packet; its number follows the last one's.
    pub fn push(&mut self, now: Time, packet: SentPacket) {
        if self.entries.len() == StreamArrivals::MAX {
            self.cover(self.first + 1);
            self.entries.pop_front();
            self.first += 1;
        }
        let SentPacket { size, payload, ends_frame, probe, .. } = packet;
        let (size, payload) = (size.bytes() as u16, payload.bytes() as u16);
        self.in_flight += u64::from(size);
        self.entries.push_back(Sent { at: now, size, payload, ends_frame, probe, fate: None, covered: false });
    }

    /// Bytes on the wire of the packets sent after the newest that a report has covered.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Removes packets before `end` from those in flight.
    fn cover(&mut self, end: u32) {
        while self.covered_end < end {
            self.in_flight -= u64::from(self.entries[(self.covered_end - self.first) as usize].size);
            self.covered_end += 1;
        }
    }

    /// When the oldest packet of unknown fate was sent; `None` if there is none.
    #[must_use]
    pub fn oldest(&self) -> Option<Time> {
        self.entries.front().map(|entry| entry.at)
    }

    /// One past the last packet.
    fn end(&self) -> u32 {
        self.first + self.entries.len() as u32
    }

    /// Processes a report made at `reported` by the receiver's clock. `wire` maps a packet number to the 16 bits on the
    /// wire. `None` if there is nothing new, or the report covers packets that were never sent.
    pub fn report(
        &mut self,
        now: Time,
        reported: NtpMiddle,
        report: &StreamArrivals,
        wire: impl Fn(u32) -> u16,
    ) -> Option<Feedback> {
        let made = self.clock.time(now, reported);
        let arrivals = report.packets.iter().map(|arrival| match arrival {
            Arrival::Missing => None,
            Arrival::Received { ecn, offset } => {
                let held = offset.span();
                let at = held.map(|ago| Time(made.0.saturating_sub(ago.0)));
                Some(ArrivedPacket { at, held, marked: *ecn == Ecn::Ce })
            }
        });
        self.record_fates(now, report.begin, arrivals, wire)
    }

    /// Processes transport-wide feedback; `base`: the origin of its first delta by the receiver's clock. The feedback
    /// does not say when it was made, so the time of the last arrival in it is used, and the receiver's delay since
    /// then is part of the round-trip time. `wire` maps a packet number to the 16 bits on the wire. `None` if there is
    /// nothing new.
    pub fn transport(
        &mut self,
        now: Time,
        base: Time,
        report: &TransportFeedback,
        wire: impl Fn(u32) -> u16,
    ) -> Option<Feedback> {
        let mut last = base;
        let mut times = Vec::with_capacity(report.packets.len());
        for packet in &report.packets {
            last = packet.map_or(last, |delta| delta.after(last));
            times.push(packet.map(|_| last));
        }
        let made = times.iter().flatten().max().copied().unwrap_or(base);
        let arrivals = times
            .into_iter()
            .map(|at| at.map(|at| ArrivedPacket { at: Some(at), held: Some(made.since(at)), marked: false }));
        self.record_fates(now, report.base, arrivals, wire)
    }

    /// Records the fate of the packets from `begin` on.
    fn record_fates(
        &mut self,
        now: Time,
        begin: u16,
        arrivals: impl DoubleEndedIterator<Item = Option<ArrivedPacket>> + ExactSizeIterator,
        wire: impl Fn(u32) -> u16,
    ) -> Option<Feedback> {
        let count = arrivals.len();
        // the last packet covered, counted back from the last one sent
        let behind = wire(self.end()).wrapping_sub(begin.wrapping_add(count as u16));
        if count == 0 || count > StreamArrivals::MAX || usize::from(behind) >= self.entries.len() {
            return None;
        }
        let end = self.end() - u32::from(behind);
        let mut newest = None;
        for (place, arrival) in arrivals.rev().enumerate() {
            let Some(number) = end.checked_sub(place as u32 + 1).filter(|number| *number >= self.first) else { break };
            let entry = &mut self.entries[(number - self.first) as usize];
            entry.covered = true;
            let Some(ArrivedPacket { at, held, marked }) = arrival else { continue };
            if entry.fate.is_some() {
                continue;
            }
            entry.fate = Some(Fate::Arrived { at, marked });
            self.arrived_end = self.arrived_end.max(number + 1);
            if newest.is_none() {
                newest = Some((entry.at, held));
            }
        }
        let rtt = newest.and_then(|(sent, held)| Some(Span(now.since(sent).0.saturating_sub(held?.0))));
        let before = self.covered_end;
        self.cover(end);
        let packets = self.settle(before);
        (!packets.is_empty()).then_some(Feedback { packets, rtt, end })
    }

    /// Removes packets of known fate, in order, up to the first whose fate is open. `covered_end` is one past the
    /// newest packet that the previous report covered.
    fn settle(&mut self, covered_end: u32) -> Vec<PacketResult> {
        let mut packets = Vec::new();
        while let Some(entry) = self.entries.front() {
            let passed = self.first + self.reordering < self.arrived_end;
            let fate = match entry.fate {
                Some(fate) => fate,
                None if entry.covered && passed => Fate::Lost,
                None if !entry.covered && self.first < covered_end && passed => Fate::Unknown,
                None => break,
            };
            let packet = SentPacket {
                number: self.first,
                size: Size::from_bytes(entry.size.into()),
                payload: Size::from_bytes(entry.payload.into()),
                ends_frame: entry.ends_frame,
                probe: entry.probe,
            };
            packets.push(PacketResult { sent: entry.at, packet, fate });
            self.entries.pop_front();
            self.first += 1;
        }
        packets
    }
}

/// The receiver's clock, as derived from its reports; its zero is arbitrary.
#[derive(Clone, Copy, Debug, Default)]
struct ReportClock {
    last: Option<Time>,
}

impl ReportClock {
    /// The period of a report's 32-bit time.
    const PERIOD: i64 = 1_000_000_000 << 16;

    /// The instant that `middle` stands for. The first one is resolved to the instant nearest to `now`, or a period
    /// later if that would be before the clock's zero. Later ones are resolved to the instant nearest to the previous
    /// one.
    fn time(&mut self, now: Time, middle: NtpMiddle) -> Time {
        let here = NtpMiddle::at(now);
        let (behind, ahead) = (here.since(middle).span(), middle.since(here).span());
        let nearest = (now.0 + ahead.0) as i64 - behind.0 as i64;
        let periods = match self.last {
            None => i64::from(nearest < 0),
            Some(last) => (last.0 as i64 - nearest + Self::PERIOD / 2).div_euclid(Self::PERIOD),
        };
        let time = Time(u64::try_from(nearest + periods * Self::PERIOD).unwrap_or(0));
        self.last = Some(time);
        time
    }
}

#[cfg(test)]
mod tests;
