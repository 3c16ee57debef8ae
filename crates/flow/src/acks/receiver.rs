//! The receiving end: an acknowledgement for each packet.

use super::AcksConfig;
use crate::{Arrived, ReceiverStats, Segment, Transmit};
use paceline_packet::{Extra, Flags, LastHole, Packet};
use paceline_units::Time;

/// The receiving end of a flow.
#[derive(Debug)]
pub struct AcksReceiver {
    header: u16,
    ack_size: u16,
    /// One past the highest number received, and a bit set of the 64 numbers below it, the highest in the lowest bit.
    end: u32,
    seen: u64,
    /// One past the highest number received below these 64; zero without one.
    below: u32,
    stats: ReceiverStats,
}

/// Width of the bit set.
const WIDTH: u32 = u64::BITS;

impl AcksReceiver {
    /// Creates a receiver that waits for packets.
    #[must_use]
    pub fn new(config: &AcksConfig) -> AcksReceiver {
        let stats = ReceiverStats::default();
        AcksReceiver { header: config.header, ack_size: config.ack_size, end: 0, seen: 0, below: 0, stats }
    }

    /// Processes and acknowledges a packet. A duplicate of one of the last 64 is not delivered again.
    pub fn on_data(&mut self, now: Time, packet: &Packet, out: &mut impl Transmit) -> Arrived {
        let stats = &mut self.stats;
        stats.on_received(now, packet.size);
        stats.marks += u64::from(packet.flags.has(Flags::CE));
        // one past the highest possible number does not fit into an acknowledgement
        if packet.seq == u32::MAX {
            return Arrived::default();
        }
        let new = self.note(packet.seq);
        let bytes = u64::from(packet.size.saturating_sub(self.header));
        if new {
            self.stats.bytes += bytes;
        } else {
            self.stats.duplicates += 1;
        }
        self.stats.acks += 1;
        out.transmit(Segment {
            seq: packet.seq,
            stamp: packet.stamp,
            size: self.ack_size,
            flags: Flags::ACK,
            extra: Some(Extra::Ack(self.hole())),
        });
        if new { Arrived { bytes, segments: 1 } } else { Arrived::default() }
    }

    /// Records a number; returns whether it is new.
    #[inline]
    fn note(&mut self, seq: u32) -> bool {
        if seq >= self.end {
            let ahead = seq - self.end;
            if ahead < WIDTH - 1 {
                self.forget(ahead + 1);
                self.seen = self.seen << (ahead + 1) | 1;
            } else {
                self.below = if self.seen == 0 { self.below } else { self.end - self.seen.trailing_zeros() };
                self.seen = 1;
            }
            self.end = seq + 1;
            return true;
        }
        let behind = self.end - 1 - seq;
        let bit = if behind < WIDTH { 1 << behind } else { 0 };
        let new = self.seen & bit == 0;
        self.seen |= bit;
        if bit == 0 {
            self.below = self.below.max(seq + 1);
        }
        new
    }

    /// Prepares a shift of the bit set by `places`, fewer than its width.
    #[inline]
    fn forget(&mut self, places: u32) {
        let gone = self.seen >> (WIDTH - places);
        if gone != 0 {
            self.below = self.end - (WIDTH - places) - gone.trailing_zeros();
        }
    }

    /// The last hole in the received sequence.
    #[inline]
    fn hole(&self) -> LastHole {
        let received_end = self.end;
        let run = self.seen.trailing_ones();
        let hole_end = received_end.saturating_sub(run);
        // a run that extends below the bit set is followed only to its end
        let hole_start = match self.seen.checked_shr(run) {
            _ if hole_end == 0 => 0,
            None | Some(0) => self.below.min(hole_end),
            Some(rest) => hole_end - rest.trailing_zeros(),
        };
        LastHole { received_end, hole_end, hole_start }
    }

    /// Counters up to now.
    #[must_use]
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }
}
