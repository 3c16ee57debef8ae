//! What a sender remembers of its packets until feedback has told what became of them (RFC 8888, or by transport-wide
//! numbers).

use paceline_control::{Fate, PacketFate, SentPacket};
use paceline_packet::NtpMiddle;
use paceline_packet::rtcp::{Arrival, Ecn, StreamArrivals, TransportFeedback};
use paceline_units::{Size, Span, Time};
use std::collections::VecDeque;

/// A packet whose fate is not known.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    size: u16,
    payload: u16,
    ends_frame: bool,
    probe: Option<u32>,
    /// What has been told of it.
    fate: Option<Fate>,
    /// A report has covered it.
    covered: bool,
}

/// What feedback says of a packet that has come.
struct Came {
    /// When, on the receiver's clock, if it says.
    at: Option<Time>,
    /// How long before the feedback.
    held: Option<Span>,
    marked: bool,
}

/// What a report tells.
#[derive(Clone, PartialEq, Debug)]
pub struct Told {
    /// The packets whose fate is known now, in the order of their sending.
    pub packets: Vec<PacketFate>,
    /// The round-trip time of the newest one that has come; `None` if the report does not tell.
    pub rtt: Option<Span>,
    /// One past the newest packet that the report covers.
    pub end: u32,
}

/// The packets on their way.
///
/// A packet is told of once: as arrived when a report says so, as lost when a report has covered it and packets well after it
/// have come, as unknown when two reports have come that should have covered it. So a report that is lost, late or
/// twice there takes away knowledge at most.
#[derive(Clone, Debug, Default)]
pub struct SentLog {
    /// The number of the first entry.
    first: u32,
    entries: VecDeque<Sent>,
    /// One past the newest packet that has come, and one past the newest that a report has covered.
    arrived_end: u32,
    covered_end: u32,
    /// Bytes on the wire from `covered_end` on.
    in_flight: u64,
    /// A packet is lost once one has come that was sent so many after it: what comes later than that is told of no more.
    reordering: u32,
    clock: ReportClock,
}

impl SentLog {
    /// An empty one.
    #[must_use]
    pub fn new(reordering: u32) -> SentLog {
        SentLog { reordering, ..SentLog::default() }
    }

    /// Empties it: the next packet is `number`.
    pub fn restart(&mut self, number: u32) {
        let reordering = self.reordering;
        *self = SentLog { first: number, arrived_end: number, covered_end: number, ..SentLog::new(reordering) };
    }

    /// The packet that follows the last one leaves.
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

    /// Packets before `end` are in flight no more.
    fn cover(&mut self, end: u32) {
        while self.covered_end < end {
            self.in_flight -= u64::from(self.entries[(self.covered_end - self.first) as usize].size);
            self.covered_end += 1;
        }
    }

    /// When the oldest packet left whose fate is open; `None` if there is none.
    #[must_use]
    pub fn oldest(&self) -> Option<Time> {
        self.entries.front().map(|entry| entry.at)
    }

    /// One past the last packet.
    fn end(&self) -> u32 {
        self.first + self.entries.len() as u32
    }

    /// A report made at `reported` by the receiver's clock has come. `wire` gives the 16 bits by which a packet goes. `None`
    /// if it tells nothing new, or of packets that have never been sent.
    pub fn report(
        &mut self,
        now: Time,
        reported: NtpMiddle,
        report: &StreamArrivals,
        wire: impl Fn(u32) -> u16,
    ) -> Option<Told> {
        let made = self.clock.time(now, reported);
        let arrivals = report.packets.iter().map(|arrival| match arrival {
            Arrival::Missing => None,
            Arrival::Received { ecn, offset } => {
                let held = offset.span();
                let at = held.map(|ago| Time(made.0.saturating_sub(ago.0)));
                Some(Came { at, held, marked: *ecn == Ecn::Ce })
            }
        });
        self.tell(now, report.begin, arrivals, wire)
    }

    /// Transport-wide feedback has come, whose first delta counts from `base` on the receiver's clock. What it does not say,
    /// when it was made, is taken for the last arrival that it tells of: the receiver's wait since then is part of the
    /// round-trip time. `wire` gives a number as it goes over the wire. `None` if it tells nothing new.
    pub fn transport(
        &mut self,
        now: Time,
        base: Time,
        report: &TransportFeedback,
        wire: impl Fn(u32) -> u16,
    ) -> Option<Told> {
        let mut last = base;
        let mut times = Vec::with_capacity(report.packets.len());
        for packet in &report.packets {
            last = packet.map_or(last, |delta| delta.after(last));
            times.push(packet.map(|_| last));
        }
        let made = times.iter().flatten().max().copied().unwrap_or(base);
        let arrivals =
            times.into_iter().map(|at| at.map(|at| Came { at: Some(at), held: Some(made.since(at)), marked: false }));
        self.tell(now, report.base, arrivals, wire)
    }

    /// What has become of the packets from `begin` on.
    fn tell(
        &mut self,
        now: Time,
        begin: u16,
        arrivals: impl DoubleEndedIterator<Item = Option<Came>> + ExactSizeIterator,
        wire: impl Fn(u32) -> u16,
    ) -> Option<Told> {
        let count = arrivals.len();
        // the last packet that it covers, counted back from the last one sent
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
            let Some(Came { at, held, marked }) = arrival else { continue };
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
        (!packets.is_empty()).then_some(Told { packets, rtt, end })
    }

    /// Takes out the packets of which something is to be told, in order: none after one whose fate is still open.
    /// `covered_end` is one past the newest that the report before covered.
    fn settle(&mut self, covered_end: u32) -> Vec<PacketFate> {
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
            packets.push(PacketFate { sent: entry.at, packet, fate });
            self.entries.pop_front();
            self.first += 1;
        }
        packets
    }
}

/// The receiver's clock as its reports show it, from any zero.
#[derive(Clone, Copy, Debug, Default)]
struct ReportClock {
    last: Option<Time>,
}

impl ReportClock {
    /// What the 32 bits of a report's time count modulo.
    const PERIOD: i64 = 1_000_000_000 << 16;

    /// The instant that `middle` stands for. The first is the nearest to `now`, or that a period later where it would lie before
    /// the clock's zero; those after it are the nearest to the one before.
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
