//! What a receiver knows of one source: which of its packets are new, how many were lost, how they jitter (RFC 3550
//! appendix A.1, A.3 and A.8).

use paceline_packet::rtcp::ReportBlock;
use paceline_packet::rtp::{RtpData, Ssrc};
use paceline_packet::{NtpMiddle, NtpSpan};
use paceline_units::Time;

/// A source is valid after so many packets in sequence.
const MIN_SEQUENTIAL: u8 = 2;
/// A number so far ahead of the highest is no ordinary gap.
const MAX_DROPOUT: u16 = 3000;
/// A number this little behind the highest came late.
const MAX_MISORDER: u16 = 100;

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In sequence so far, but of a source that is not valid yet.
    Probation,
    /// New, of a valid source.
    New,
    /// New, and the second in sequence after a leap: what is counted begins anew with it.
    Anew,
    /// It has come before.
    Copy,
    /// Far from the sequence: not counted, unless the next packet follows it.
    Stray,
}

/// Expected and received packets since the last report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loss {
    /// How many numbers the sequence has advanced.
    pub expected: u32,
    /// How many packets have come, copies included.
    pub received: u32,
}

/// A source.
#[derive(Clone, Debug)]
pub struct RtpSource {
    /// Highest number seen.
    highest: u16,
    /// 65536 for each time that numbers have gone round.
    cycles: u32,
    /// The first number.
    base: u16,
    /// What would follow a stray packet.
    stray: Option<u16>,
    /// Packets in sequence still to come until the source is valid.
    probation: u8,
    received: u32,
    expected_before: u32,
    received_before: u32,
    /// Which of the last 128 numbers have come, that of `highest` in bit 0.
    seen: u128,
    /// Arrival less timestamp of the last packet, in ticks of the timestamps.
    transit: Option<u32>,
    /// 16 times the jitter, in ticks.
    jitter: u64,
}

impl RtpSource {
    /// A source whose first packet has this number.
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

    /// The sequence begins, or begins anew, with this number.
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

    /// Whether enough packets have come in sequence.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.probation == 0
    }

    /// A packet has come (A.1).
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
            // two in a row: the other side has begun anew
            self.begin(seq);
            Verdict::Anew
        } else {
            let bit = 1 << self.highest.wrapping_sub(seq);
            let known = self.seen & bit != 0;
            self.seen |= bit;
            if known { Verdict::Copy } else { Verdict::New }
        };
        self.received = self.received.wrapping_add(1);
        verdict
    }

    /// A packet with this number has come by another way, sent again: what the sequence says of losses stays. Whether it is new; of
    /// numbers too old to be known it is.
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

    /// The highest number with its cycles.
    #[must_use]
    pub fn extended_highest(&self) -> u32 {
        self.cycles.wrapping_add(u32::from(self.highest))
    }

    fn expected(&self) -> u32 {
        self.extended_highest().wrapping_sub(u32::from(self.base)).wrapping_add(1)
    }

    /// Expected less received, since the sequence began.
    #[must_use]
    pub fn lost(&self) -> i32 {
        self.expected().wrapping_sub(self.received) as i32
    }

    /// The same as its field of 24 bits holds it (A.3).
    #[must_use]
    pub fn cumulative_lost(&self) -> i32 {
        self.lost().clamp(ReportBlock::CUMULATIVE_MIN, ReportBlock::CUMULATIVE_MAX)
    }

    /// What has come since this was last asked for (A.3).
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

    /// What a report at `now` says of the source (section 6.4.1), and the loss since the last one; `heard` is the middle of the
    /// time stamp of its last sender report, and when that came.
    pub fn block(&mut self, now: Time, ssrc: Ssrc, heard: Option<(NtpMiddle, Time)>) -> (ReportBlock, Loss) {
        let interval = self.take_interval();
        let (lsr, dlsr) = match heard {
            Some((lsr, came)) => (lsr, NtpSpan::nearest(now.since(came))),
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

    /// A packet with this timestamp came at `now` (A.8).
    pub fn arrival(&mut self, timestamp: u32, now: Time) {
        let transit = ticks(now).wrapping_sub(timestamp);
        if let Some(before) = self.transit {
            let change = (transit.wrapping_sub(before) as i32).unsigned_abs();
            self.jitter = self.jitter + u64::from(change) - ((self.jitter + 8) >> 4);
        }
        self.transit = Some(transit);
    }

    /// The interarrival jitter in ticks of the timestamps.
    #[must_use]
    pub fn jitter(&self) -> u32 {
        u32::try_from(self.jitter >> 4).unwrap_or(u32::MAX)
    }
}

/// A clock in ticks of RTP's timestamps, modulo 2^32.
#[must_use]
pub fn ticks(now: Time) -> u32 {
    let (seconds, nanos) = (now.0 / 1_000_000_000, now.0 % 1_000_000_000);
    seconds.wrapping_mul(RtpData::CLOCK_HZ).wrapping_add(nanos * RtpData::CLOCK_HZ / 1_000_000_000) as u32
}

#[cfg(test)]
mod tests;
