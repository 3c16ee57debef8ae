//! What a receiver asks to be sent again: generic NACK (RFC 4585 section 6.2.1), by the rules of libwebrtc
//! (`modules/video_coding/nack_requester.cc`).
//!
//! A number that is passed over is asked for at once, or, where packets come reordered, when half of those that came late of
//! late would have come; then again each round trip, ten times at most. What lies 10,000 numbers back is given up, and all of
//! it when more than 1000 are missing. The round trip is libwebrtc's 100 ms until an answer to a number asked for once has
//! told one: a call of libwebrtc's, which sends both ways, has it of its own reports. It is smoothed as in RFC 6298. Asked for again
//! is at ticks of 20 ms, as there: an answer that is on its way has so much time more.

use paceline_units::{Span, Time};
use std::collections::{BTreeSet, VecDeque};

/// What lies further back is given up.
const MAX_AGE: u64 = 10_000;
/// So many may be missing.
const MAX_MISSING: usize = 1000;
/// How often one is asked for.
const MAX_ASKED: u8 = 10;
/// Before a round trip is known.
const DEFAULT_RTT: Span = Span::from_millis(100);
/// What has been asked for is looked at this often (kUpdateInterval).
const TICK: u64 = Span::from_millis(20).0;
/// The least time between two requests.
const LEAST_RTT: Span = Span::from_millis(1);
/// By how much so many of the last late packets came late; from `BUCKETS - 1` on it is all one.
const LATE: usize = 128;
const BUCKETS: usize = 10;
/// A number so far from the newest begins the sequence anew (RFC 3550 appendix A.1).
const MAX_JUMP: u16 = 3000;

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: u64,
    /// It is asked for when this number has come.
    ask_at: u64,
    /// When it was last asked for, and how often.
    asked: Time,
    times: u8,
}

/// What is missing of one source.
#[derive(Clone, Debug)]
pub struct NackLog {
    /// Its 16 bits are those on the wire.
    newest: Option<u64>,
    /// In ascending order.
    missing: VecDeque<Missing>,
    /// Asked for and given up: an answer may still be on its way. None lies further back than `MAX_AGE`.
    given_up: BTreeSet<u64>,
    late: VecDeque<u8>,
    rtt: Option<Span>,
    /// Nothing is to be asked for again before.
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
    /// When something is to be asked for again; it may be too early.
    #[must_use]
    pub fn due(&self) -> Time {
        self.due
    }

    /// Numbers that are missing and not given up.
    #[cfg(test)]
    fn missing(&self) -> usize {
        self.missing.len()
    }

    /// The number nearest to the newest that has these 16 bits.
    fn extended(&self, number: u16) -> Option<u64> {
        let newest = self.newest?;
        newest.checked_add_signed(i64::from(number.wrapping_sub(newest as u16) as i16))
    }

    /// A packet has come as it was first sent. Whether something is to be asked for now.
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
            let missing = |number| Missing { number, ask_at: number + wait, asked: Time::ZERO, times: 0 };
            self.missing.extend((newest + 1..extended).map(missing));
        }
        self.newest = Some(extended);
        self.is_ripe()
    }

    /// The sequence begins, or begins anew, far from zero so that what is older has a number too.
    fn begin(&mut self, number: u16) -> bool {
        *self = NackLog { newest: Some(1 << 32 | u64::from(number)), rtt: self.rtt, ..NackLog::default() };
        false
    }

    /// Whether one is to be asked for the first time.
    fn is_ripe(&self) -> bool {
        let newest = self.newest.unwrap_or_default();
        self.missing.iter().rev().take_while(|missing| missing.times == 0).any(|missing| missing.ask_at <= newest)
    }

    /// So many packets after a missing one half of those that came late would have come.
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

    /// A packet has come that was sent again. Whether it was missing, or given up and comes for the first time.
    pub fn repaired(&mut self, now: Time, number: u16) -> bool {
        let Some(number) = self.extended(number) else { return false };
        let Some(missing) = self.remove(number) else { return self.given_up.remove(&number) };
        if missing.times == 1 {
            let sample = now.since(missing.asked);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| Span((rtt.0 * 7 + sample.0) / 8)));
        }
        true
    }

    /// The numbers that are to be asked for now, which counts as done.
    pub fn ask(&mut self, now: Time) -> Vec<u16> {
        let newest = self.newest.unwrap_or_default();
        let rtt = self.rtt.unwrap_or(DEFAULT_RTT).max(LEAST_RTT);
        let (mut asked, mut due) = (Vec::new(), Time::NEVER);
        self.missing.retain_mut(|missing| {
            let is_due = if missing.times == 0 { missing.ask_at <= newest } else { tick(missing.asked + rtt) <= now };
            if is_due && missing.times == MAX_ASKED {
                self.given_up.insert(missing.number);
                return false;
            }
            if is_due {
                asked.push(missing.number as u16);
                (missing.asked, missing.times) = (now, missing.times + 1);
            }
            if missing.times > 0 {
                due = due.min(tick(missing.asked + rtt));
            }
            true
        });
        self.due = due;
        asked
    }
}

/// The tick at this time, or the next.
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
        assert_eq!(log.ask(ms(0)), [65_535, 0]);
        assert_eq!((log.ask(ms(99)), log.due()), (vec![], ms(100)));
        assert!(log.repaired(ms(99), 0), "a round trip of 99 ms");
        assert!(!log.repaired(ms(99), 0));
        assert!(!log.arrived(2));
        for round in 1..10 {
            assert_eq!((log.ask(ms(100 * round - 1)), log.ask(ms(100 * round))), (vec![], vec![65_535]), "{round}");
        }
        assert_eq!((log.ask(ms(1000)), log.missing(), log.due()), (vec![], 0, Time::NEVER), "given up");
        assert!(log.repaired(ms(1001), 65_535), "an answer after that is the first that comes");
        assert!(!log.repaired(ms(1002), 65_535), "another is a copy");
    }

    #[test]
    fn what_was_given_up_counts_once_by_whichever_way_it_comes() {
        let mut log = NackLog::default();
        log.arrived(0);
        log.arrived(3);
        for round in 0..=10 {
            log.ask(ms(100 * round));
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
        assert_eq!(log.ask(ms(0)), [1]);
        log.arrived(1003);
        assert_eq!(log.missing(), 1000);
        assert!(log.repaired(ms(30), 1));
    }

    #[test]
    fn the_round_trip_is_that_of_numbers_asked_for_once() {
        let mut log = NackLog::default();
        log.arrived(0);
        log.arrived(4);
        assert_eq!(log.ask(ms(0)), [1, 2, 3]);
        assert!(log.repaired(ms(40), 1));
        assert!(log.repaired(ms(80), 2), "(7 * 40 + 80) / 8 = 45");
        assert_eq!(log.ask(ms(85)), [3]);
        assert!(log.repaired(ms(90), 3), "whose request is answered is not known");
        assert!(log.arrived(6));
        log.ask(ms(100));
        assert_eq!(log.due(), ms(160), "145, at the next tick");
    }

    #[test]
    fn where_packets_are_late_it_waits_until_half_of_them_would_have_come() {
        let mut log = NackLog::default();
        let mut next = 10;
        log.arrived(9);
        // each second packet comes three late
        for _ in 0..20 {
            for number in [next + 1, next + 2, next + 3, next] {
                log.arrived(number);
            }
            next += 4;
        }
        assert!(!log.arrived(next + 1) && !log.arrived(next + 2) && !log.arrived(next + 3));
        assert!(log.arrived(next + 4), "three late: the bucket after is the fourth");
        assert_eq!(log.ask(ms(5)), [next]);
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
