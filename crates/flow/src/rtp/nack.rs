//! A receiver's requests for retransmission: generic NACK (RFC 4585 section 6.2.1), by the rules of libwebrtc
//! (`modules/video_coding/nack_requester.cc`).
//!
//! A missing number is requested at once. If packets are reordered, the request waits until half of the recently late
//! packets would have arrived. It is repeated each round trip, at most ten times. Numbers more than 10,000 back are
//! given up, and all of them if more than 1000 are missing. The round-trip time is libwebrtc's default of 100 ms until
//! the answer to a number requested once gives a sample. (A libwebrtc call, which sends in both directions, takes it
//! from its own reports.) It is smoothed as in RFC 6298. Repetitions happen at ticks of 20 ms, as in libwebrtc, which
//! gives answers in flight more time.

use paceline_units::{Span, Time};
use std::collections::{BTreeSet, VecDeque};

/// Numbers further back than this are given up.
const MAX_AGE: u64 = 10_000;
/// Maximum number of missing packets.
const MAX_MISSING: usize = 1000;
/// Maximum number of requests for a packet.
const MAX_NACK_RETRIES: u8 = 10;
/// The round-trip time before the first sample.
const DEFAULT_RTT: Span = Span::from_millis(100);
/// The interval of checks for repeated requests (kUpdateInterval).
const TICK: u64 = Span::from_millis(20).0;
/// Minimum time between two requests for a packet.
const MIN_RTT: Span = Span::from_millis(1);
/// `LATE`: number of late packets whose displacement is kept. Displacements from `BUCKETS - 1` on count as equal.
const LATE: usize = 128;
const BUCKETS: usize = 10;
/// A number this far from the newest restarts the sequence (RFC 3550 appendix A.1).
const MAX_JUMP: u16 = 3000;

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: u64,
    /// It is requested when this number has arrived.
    send_at: u64,
    /// When it was last requested, and how often.
    sent_at: Time,
    times: u8,
}

/// The missing packets of a source.
#[derive(Clone, Debug)]
pub struct NackLog {
    /// The highest number; its lower 16 bits are those on the wire.
    newest: Option<u64>,
    /// In ascending order.
    missing: VecDeque<Missing>,
    /// Packets requested and given up; an answer may still be in flight. None is further back than `MAX_AGE`.
    given_up: BTreeSet<u64>,
    late: VecDeque<u8>,
    rtt: Option<Span>,
    /// No request is repeated before this time.
    due: Time,
}

impl Default for NackLog {
    fn default() -> NackLog {
        NackLog {
            newest: None,
            missing: VecDeque::new(),
            given_up: BTreeSet::new(),
            late: VecDeque::new(),
            rtt: None,
            due: Time::NEVER,
        }
    }
}

impl NackLog {
    /// When to repeat requests; the time may be too early.
    #[must_use]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Number of packets missing and not given up.
    #[cfg(test)]
    fn missing(&self) -> usize {
        self.missing.len()
    }

    /// The number nearest to the newest that has these lower 16 bits.
    fn extended(&self, number: u16) -> Option<u64> {
        let newest = self.newest?;
        newest.checked_add_signed(i64::from(number.wrapping_sub(newest as u16) as i16))
    }

    /// Processes an original packet; returns whether there is something to request now.
    #[inline]
    pub fn arrived(&mut self, number: u16) -> bool {
        let next = self.newest.map(|newest| newest + 1);
        if next.is_some_and(|next| next as u16 == number) {
            self.newest = next;
            return !self.missing.is_empty() && self.is_ripe();
        }
        self.out_of_order(number)
    }

    #[cold]
    fn out_of_order(&mut self, number: u16) -> bool {
        let extended = self.extended(number);
        let (Some(newest), Some(extended)) = (self.newest, extended) else {
            return self.begin(number);
        };
        if newest.abs_diff(extended) >= u64::from(MAX_JUMP) {
            return self.begin(number);
        }
        if extended <= newest {
            self.given_up.remove(&extended);
            if self.remove(extended).is_some_and(|missing| missing.times == 0) {
                self.late.push_back((newest - extended).min(BUCKETS as u64 - 1) as u8);
                if self.late.len() > LATE {
                    self.late.pop_front();
                }
            }
            return false;
        }
        let kept = extended.saturating_sub(MAX_AGE);
        self.given_up = self.given_up.split_off(&kept);
        while self.missing.front().is_some_and(|oldest| oldest.number < kept) {
            self.missing.pop_front();
        }
        let gap = (extended - newest - 1) as usize;
        if self.missing.len() + gap > MAX_MISSING {
            self.given_up
                .extend(self.missing.drain(..).filter(|missing| missing.times > 0).map(|missing| missing.number));
        }
        if gap <= MAX_MISSING {
            let wait = self.wait();
            let missing = |number| Missing { number, send_at: number + wait, sent_at: Time::ZERO, times: 0 };
            self.missing.extend((newest + 1..extended).map(missing));
        }
        self.newest = Some(extended);
        self.is_ripe()
    }

    /// Starts or restarts the sequence, far above zero so that older packets have valid numbers too.
    fn begin(&mut self, number: u16) -> bool {
        *self = NackLog { newest: Some(1 << 32 | u64::from(number)), rtt: self.rtt, ..NackLog::default() };
        false
    }

    /// Whether a packet must be requested for the first time.
    fn is_ripe(&self) -> bool {
        let newest = self.newest.unwrap_or_default();
        self.missing.iter().rev().take_while(|missing| missing.times == 0).any(|missing| missing.send_at <= newest)
    }

    /// The number of packets to wait after a missing one: half of the late packets would have arrived by then.
    fn wait(&self) -> u64 {
        if self.late.is_empty() {
            return 0;
        }
        let mut counts = [0; BUCKETS];
        self.late.iter().for_each(|&by| counts[usize::from(by)] += 1);
        let (mut seen, mut bucket) = (0, 0);
        while seen * 2 < self.late.len() {
            seen += counts[bucket];
            bucket += 1;
        }
        bucket as u64
    }

    fn remove(&mut self, number: u64) -> Option<Missing> {
        let place = self.missing.binary_search_by_key(&number, |missing| missing.number).ok()?;
        let missing = self.missing.remove(place);
        if self.missing.is_empty() {
            self.due = Time::NEVER;
        }
        missing
    }

    /// Processes a retransmission; returns whether the packet was missing, or was given up and arrives for the first
    /// time.
    pub fn repaired(&mut self, now: Time, number: u16) -> bool {
        let Some(number) = self.extended(number) else { return false };
        let Some(missing) = self.remove(number) else { return self.given_up.remove(&number) };
        if missing.times == 1 {
            let sample = now.since(missing.sent_at);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| Span((rtt.0 * 7 + sample.0) / 8)));
        }
        true
    }

    /// The numbers to request now; they count as requested.
    pub fn take_due(&mut self, now: Time) -> Vec<u16> {
        let newest = self.newest.unwrap_or_default();
        let rtt = self.rtt.unwrap_or(DEFAULT_RTT).max(MIN_RTT);
        let (mut requested, mut due) = (Vec::new(), Time::NEVER);
        self.missing.retain_mut(|missing| {
            let is_due =
                if missing.times == 0 { missing.send_at <= newest } else { tick(missing.sent_at + rtt) <= now };
            if is_due && missing.times == MAX_NACK_RETRIES {
                self.given_up.insert(missing.number);
                return false;
            }
            if is_due {
                requested.push(missing.number as u16);
                (missing.sent_at, missing.times) = (now, missing.times + 1);
            }
            if missing.times > 0 {
                due = due.min(tick(missing.sent_at + rtt));
            }
            true
        });
        self.due = due;
        requested
    }
}

/// The tick at this time, or the next one.
fn tick(time: Time) -> Time {
    Time(time.0.div_ceil(TICK) * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    #[test]
    fn a_gap_is_asked_for_at_once_and_again_each_round_trip_ten_times() {
        let mut log = NackLog::default();
        assert!(!log.arrived(65_533) && !log.arrived(65_534));
        assert!(log.arrived(1), "65535 and 0 are passed over");
        assert_eq!(log.take_due(ms(0)), [65_535, 0]);
        assert_eq!((log.take_due(ms(99)), log.due()), (vec![], ms(100)));
        assert!(log.repaired(ms(99), 0), "a round trip of 99 ms");
        assert!(!log.repaired(ms(99), 0));
        assert!(!log.arrived(2));
        for round in 1..10 {
            assert_eq!(
                (log.take_due(ms(100 * round - 1)), log.take_due(ms(100 * round))),
                (vec![], vec![65_535]),
                "{round}"
            );
        }
        assert_eq!((log.take_due(ms(1000)), log.missing(), log.due()), (vec![], 0, Time::NEVER), "given up");
        assert!(log.repaired(ms(1001), 65_535), "an answer after that is the first that comes");
        assert!(!log.repaired(ms(1002), 65_535), "another is a copy");
    }

    #[test]
    fn what_was_given_up_counts_once_by_whichever_way_it_comes() {
        let mut log = NackLog::default();
        log.arrived(0);
        log.arrived(3);
        for round in 0..=10 {
            log.take_due(ms(100 * round));
        }
        assert_eq!(log.missing(), 0);
        assert!(!log.arrived(2), "as it was first sent, late");
        assert!(!log.repaired(ms(1100), 2), "so the answer is a copy");
        log.arrived(4);
        log.arrived(10_500);
        log.begin(20_000);
        assert!(!log.repaired(ms(1200), 1), "a sequence that begins anew has given nothing up");
    }

    #[test]
    fn what_was_given_up_for_there_was_too_much_of_it_still_comes() {
        let mut log = NackLog::default();
        log.arrived(0);
        log.arrived(2);
        assert_eq!(log.take_due(ms(0)), [1]);
        log.arrived(1003);
        assert_eq!(log.missing(), 1000);
        assert!(log.repaired(ms(30), 1));
    }

    #[test]
    fn the_round_trip_is_that_of_numbers_asked_for_once() {
        let mut log = NackLog::default();
        log.arrived(0);
        log.arrived(4);
        assert_eq!(log.take_due(ms(0)), [1, 2, 3]);
        assert!(log.repaired(ms(40), 1));
        assert!(log.repaired(ms(80), 2), "(7 * 40 + 80) / 8 = 45");
        assert_eq!(log.take_due(ms(85)), [3]);
        assert!(log.repaired(ms(90), 3), "whose request is answered is not known");
        assert!(log.arrived(6));
        log.take_due(ms(100));
        assert_eq!(log.due(), ms(160), "145, at the next tick");
    }

    #[test]
    fn where_packets_are_late_it_waits_until_half_of_them_would_have_come() {
        let mut log = NackLog::default();
        let mut next = 10;
        log.arrived(9);
        // every fourth packet is three late
        for _ in 0..20 {
            for number in [next + 1, next + 2, next + 3, next] {
                log.arrived(number);
            }
            next += 4;
        }
        assert!(!log.arrived(next + 1) && !log.arrived(next + 2) && !log.arrived(next + 3));
        assert!(log.arrived(next + 4), "three late: the bucket after is the fourth");
        assert_eq!(log.take_due(ms(5)), [next]);
    }

    #[test]
    fn what_is_missing_is_bounded_in_number_and_age() {
        let mut log = NackLog::default();
        log.arrived(0);
        log.arrived(2);
        for number in 3..10_001 {
            log.arrived(number);
        }
        log.arrived(10_002);
        assert_eq!(log.missing(), 1, "1 lies more than 10,000 back: 10,001 alone");
        log.arrived(10_802);
        assert_eq!(log.missing(), 800);
        log.arrived(11_004);
        assert_eq!(log.missing(), 201, "more than 1000: the old ones are given up");
        log.arrived(13_000);
        assert_eq!(log.missing(), 0);
        assert!(!log.arrived(50_000), "a jump begins anew");
    }
}
