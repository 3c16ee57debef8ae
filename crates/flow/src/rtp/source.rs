//! A receiver's state of a source: which packets are new, how many were lost, and their jitter (RFC 3550 appendix A.1,
//! A.3 and A.8).

use paceline_packet::rtcp::ReportBlock;
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{NtpMiddle, NtpSpan};
use paceline_units::Time;

/// Number of packets in sequence that make a source valid.
const MIN_SEQUENTIAL: u8 = 2;
/// A number this far ahead of the highest, or further, is not an ordinary gap.
const MAX_DROPOUT: u16 = 3000;
/// A number less than this far behind the highest is late.
const MAX_MISORDER: u16 = 100;

/// The classification of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In sequence so far, but the source is not valid yet.
    Probation,
    /// A new packet of a valid source.
    New,
    /// A new packet, the second in sequence after a leap; the counters restart with it.
    Restarted,
    /// A duplicate.
    Copy,
    /// Far from the sequence; it is not counted, unless the next packet follows it.
    Stray,
}

/// Expected and received packets since the last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Number of sequence numbers advanced.
    pub expected: u32,
    /// Packets received, including duplicates.
    pub received: u32,
}

/// A source.
#[derive(Clone, Debug)]
pub struct RtpSource {
    /// Highest number seen.
    highest: u16,
    /// 65536 times the number of wraps.
    cycles: u32,
    /// The first number.
    base: u16,
    /// The number that would follow a stray packet.
    stray: Option<u16>,
    /// Packets in sequence still needed until the source is valid.
    probation: u8,
    received: u32,
    expected_before: u32,
    received_before: u32,
    /// A bit set of the last 128 numbers received; bit 0 is `highest`.
    seen: u128,
    /// Arrival time minus timestamp of the last packet, in ticks of the timestamps.
    transit: Option<u32>,
    /// 16 times the jitter, in ticks.
    jitter: u64,
}

impl RtpSource {
    /// Creates a source whose first packet has this number.
    #[must_use]
    pub fn new(first: u16) -> RtpSource {
        let mut source = RtpSource {
            highest: first,
            cycles: 0,
            base: first,
            stray: None,
            probation: MIN_SEQUENTIAL,
            received: 0,
            expected_before: 0,
            received_before: 0,
            seen: 0,
            transit: None,
            jitter: 0,
        };
        source.begin(first);
        source.highest = first.wrapping_sub(1);
        source
    }

    /// Starts or restarts the sequence with this number.
    fn begin(&mut self, first: u16) {
        self.base = first;
        self.highest = first;
        self.stray = None;
        self.cycles = 0;
        self.received = 0;
        self.expected_before = 0;
        self.received_before = 0;
        self.seen = 1;
    }

    /// Whether the source is valid: enough packets have arrived in sequence.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.probation == 0
    }

    /// Processes a packet (A.1).
    pub fn update(&mut self, seq: u16) -> Verdict {
        let ahead = seq.wrapping_sub(self.highest);
        if self.probation > 0 {
            self.highest = seq;
            if ahead != 1 {
                self.probation = MIN_SEQUENTIAL - 1;
                return Verdict::Probation;
            }
            self.probation -= 1;
            if self.probation > 0 {
                return Verdict::Probation;
            }
            self.begin(seq);
            self.received = 1;
            return Verdict::New;
        }
        let verdict = if ahead < MAX_DROPOUT {
            if seq < self.highest {
                self.cycles = self.cycles.wrapping_add(1 << 16);
            }
            self.highest = seq;
            let fresh = ahead > 0;
            self.seen = if ahead >= 128 { 0 } else { self.seen << ahead } | 1;
            if fresh { Verdict::New } else { Verdict::Copy }
        } else if ahead <= u16::MAX - MAX_MISORDER + 1 {
            if self.stray != Some(seq) {
                self.stray = Some(seq.wrapping_add(1));
                return Verdict::Stray;
            }
            // two in a row: the other end has restarted
            self.begin(seq);
            Verdict::Restarted
        } else {
            let bit = 1 << self.highest.wrapping_sub(seq);
            let known = self.seen & bit != 0;
            self.seen |= bit;
            if known { Verdict::Copy } else { Verdict::New }
        };
        self.received = self.received.wrapping_add(1);
        verdict
    }

    /// Records a retransmitted packet, without effect on the loss counters. Returns whether it is new; a number too old
    /// to be known counts as new.
    pub fn repair(&mut self, seq: u16) -> bool {
        let behind = self.highest.wrapping_sub(seq);
        if behind >= 128 {
            return true;
        }
        let bit = 1 << behind;
        let known = self.seen & bit != 0;
        self.seen |= bit;
        !known
    }

    /// The highest number, extended by its cycles.
    #[must_use]
    pub fn extended_highest(&self) -> u32 {
        self.cycles.wrapping_add(u32::from(self.highest))
    }

    fn expected(&self) -> u32 {
        self.extended_highest().wrapping_sub(u32::from(self.base)).wrapping_add(1)
    }

    /// Packets expected minus received, since the sequence began.
    #[must_use]
    pub fn lost(&self) -> i32 {
        self.expected().wrapping_sub(self.received) as i32
    }

    /// [`RtpSource::lost`], clamped to the 24-bit field (A.3).
    #[must_use]
    pub fn cumulative_lost(&self) -> i32 {
        self.lost().clamp(ReportBlock::CUMULATIVE_MIN, ReportBlock::CUMULATIVE_MAX)
    }

    /// Packets expected and received since the last call (A.3).
    pub fn take_interval(&mut self) -> Loss {
        let expected = self.expected();
        let interval = Loss {
            expected: expected.wrapping_sub(self.expected_before),
            received: self.received.wrapping_sub(self.received_before),
        };
        self.expected_before = expected;
        self.received_before = self.received;
        interval
    }

    /// Builds a report block for the source at `now` (section 6.4.1), and returns it with the loss since the last one.
    /// `last_report`: the middle of the NTP timestamp of its last sender report, and when that arrived.
    pub fn block(&mut self, now: Time, ssrc: Ssrc, last_report: Option<(NtpMiddle, Time)>) -> (ReportBlock, Loss) {
        let interval = self.take_interval();
        let (lsr, dlsr) = match last_report {
            Some((lsr, at)) => (lsr, NtpSpan::nearest(now.since(at))),
            None => (NtpMiddle::NONE, NtpSpan(0)),
        };
        let block = ReportBlock {
            ssrc,
            fraction_lost: ReportBlock::fraction_of(interval.expected, interval.received),
            cumulative_lost: self.cumulative_lost(),
            extended_highest: self.extended_highest(),
            jitter: self.jitter(),
            lsr,
            dlsr,
        };
        (block, interval)
    }

    /// Updates the jitter with a packet of this timestamp, received at `now` (A.8).
    pub fn arrival(&mut self, timestamp: u32, now: Time) {
        let transit = ticks(now).wrapping_sub(timestamp);
        if let Some(before) = self.transit {
            let change = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter = self.jitter + u64::from(change) - ((self.jitter + 8) >> 4);
        }
        self.transit = Some(transit);
    }

    /// The interarrival jitter in timestamp ticks.
    #[must_use]
    pub fn jitter(&self) -> u32 {
        u32::try_from(self.jitter >> 4).unwrap_or(u32::MAX)
    }
}

/// The time in ticks of RTP timestamps, modulo 2^32.
#[must_use]
pub fn ticks(now: Time) -> u32 {
    let (seconds, nanos) = (now.0 / 1_000_000_000, now.0 % 1_000_000_000);
    seconds.wrapping_mul(RtpData::CLOCK_HZ).wrapping_add(nanos * RtpData::CLOCK_HZ / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests;
