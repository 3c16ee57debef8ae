//! What a sender remembers of its packets until feedback has told what became of them (RFC 8888).

use paceline_control::{Fate, PacketFate, SentPacket};
use paceline_packet::NtpMiddle;
use paceline_packet::rtcp::{Arrival, Ecn, StreamArrivals};
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
        let count = report.packets.len();
        // the last packet that it covers, counted back from the last one sent
        let behind = wire(self.end()).wrapping_sub(report.begin.wrapping_add(count as u16));
        if count == 0 || count > StreamArrivals::MAX || usize::from(behind) >= self.entries.len() {
            return None;
        }
        let end = self.end() - u32::from(behind);
        let made = clock(now, reported);
        let mut newest = None;
        for (place, arrival) in report.packets.iter().rev().enumerate() {
            let Some(number) = end.checked_sub(place as u32 + 1).filter(|number| *number >= self.first) else { break };
            let entry = &mut self.entries[(number - self.first) as usize];
            entry.covered = true;
            let Arrival::Received { ecn, offset } = arrival else { continue };
            if entry.fate.is_some() {
                continue;
            }
            let at = offset.span().map(|ago| Time(made.0.saturating_sub(ago.0)));
            entry.fate = Some(Fate::Arrived { at, marked: *ecn == Ecn::Ce });
            self.arrived_end = self.arrived_end.max(number + 1);
            if newest.is_none() {
                newest = Some((entry.at, offset.span()));
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

/// The instant on the receiver's clock that `middle` stands for: the one nearest to `now`.
fn clock(now: Time, middle: NtpMiddle) -> Time {
    let here = NtpMiddle::at(now);
    let (behind, ahead) = (here.since(middle).span(), middle.since(here).span());
    Time((now.0 + ahead.0).saturating_sub(behind.0))
}

#[cfg(test)]
mod tests;
