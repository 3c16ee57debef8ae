//! Transport-wide feedback: the receiver's log of arrivals by transport-wide sequence number, and the sender's view of
//! the receiver's clock (draft-holmer-rmcat-transport-wide-cc-extensions-01). The draft does not say when packets are
//! reported again; the rule here is libwebrtc's (`transport_sequence_number_feedback_generator.cc`).

use paceline_packet::rtcp::{ArrivalDelta, ReferenceTime, TransportFeedback};
use paceline_packet::rtp::Ssrc;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// Arrivals older than this are dropped once they have been reported.
const KEPT: Span = Span::from_millis(500);
/// Maximum number of packets kept; feedback on all of them fits into a datagram. libwebrtc keeps twice as many.
const MAX_PACKETS: usize = 16_384;

/// The arrivals of packets, by transport-wide number.
///
/// A feedback packet covers the numbers after those of the previous one, up to the highest. If a packet with a lower
/// number has arrived since, late or as a duplicate, it covers everything from that number on again.
#[derive(Clone, Debug, Default)]
pub struct TransportLog {
    /// The number of the first entry.
    base: u16,
    entries: VecDeque<Option<Time>>,
    /// The first entry that the next feedback covers.
    fresh: usize,
    /// Number of feedback packets so far, modulo 2^8.
    count: u8,
}

impl TransportLog {
    /// Records the arrival of packet `number`. Of duplicates, the first counts.
    pub fn note(&mut self, now: Time, number: u16) {
        if self.entries.is_empty() && self.fresh == 0 {
            self.base = number;
        }
        // the place nearest to the end that the number can have
        let end = self.entries.len();
        let next = self.base.wrapping_add(end as u16);
        let place = end as i64 + i64::from(number.wrapping_sub(next) as i16);
        self.forget(now, place);
        let place = place - (end - self.entries.len()) as i64;
        let Ok(place) = usize::try_from(place) else { return self.note_late(now, place.unsigned_abs() as usize) };
        self.fresh = self.fresh.min(place);
        if place >= self.entries.len() {
            self.entries.resize(place + 1, None);
        }
        self.entries[place].get_or_insert(now);
        let over = self.entries.len().saturating_sub(MAX_PACKETS);
        self.drop_first(over);
    }

    /// Records a packet whose place is `before` places before the first entry.
    #[cold]
    fn note_late(&mut self, now: Time, before: usize) {
        if before + self.entries.len() > MAX_PACKETS {
            return;
        }
        for _ in 0..before {
            self.entries.push_front(None);
        }
        self.base = self.base.wrapping_sub(before as u16);
        self.fresh = 0;
        self.entries[0] = Some(now);
    }

    /// Drops old entries before the entry `to`, unless there is something to report.
    fn forget(&mut self, now: Time, to: i64) {
        if self.has_news() || now.0 < KEPT.0 {
            return;
        }
        let limit = Time(now.0 - KEPT.0);
        let old = self.entries.iter().take(usize::try_from(to).unwrap_or(0));
        let count = old.take_while(|entry| entry.is_none_or(|at| at <= limit)).count();
        self.drop_first(count);
    }

    fn drop_first(&mut self, count: usize) {
        self.entries.drain(..count);
        self.base = self.base.wrapping_add(count as u16);
        self.fresh = self.fresh.saturating_sub(count);
    }

    /// Whether there is anything to report.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.fresh < self.entries.len()
    }

    /// Builds feedback on packets received since the last call, for the source `ssrc`; empty if there are none. It is
    /// split where two arrivals are further apart than a delta holds (8.19 s).
    pub fn report(&mut self, ssrc: Ssrc) -> Vec<TransportFeedback> {
        let mut all = Vec::new();
        while let Some((feedback, covered)) = self.piece(ssrc) {
            all.push(feedback);
            self.fresh += covered;
            self.count = self.count.wrapping_add(1);
        }
        all
    }

    /// The next feedback packet, and the number of entries it covers.
    fn piece(&self, ssrc: Ssrc) -> Option<(TransportFeedback, usize)> {
        let first = self.entries.iter().skip(self.fresh).find_map(|entry| *entry)?;
        // the reference time is that of the first packet received, whatever number the feedback begins with
        let (reference, mut last) = ReferenceTime::before(first);
        let (mut packets, mut covered) = (Vec::new(), 0);
        for entry in self.entries.iter().skip(self.fresh) {
            let delta = match *entry {
                None => None,
                Some(at) => match ArrivalDelta::nearest(last, at) {
                    None => break,
                    // the rounding error is carried over to the next delta
                    Some(delta) => {
                        last = delta.after(last);
                        covered = packets.len() + 1;
                        Some(delta)
                    }
                },
            };
            packets.push(delta);
        }
        packets.truncate(covered);
        let base = self.base.wrapping_add(self.fresh as u16);
        Some((TransportFeedback { ssrc, base, reference, count: self.count, packets }, covered))
    }
}

/// The period with which reference times wrap.
const PERIOD: u64 = ReferenceTime::TICK.0 << 24;

/// The receiver's clock, as derived from its reference times, which wrap and have an arbitrary zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceClock {
    /// The last reference time, and the instant that it stands for.
    last: Option<(ReferenceTime, Time)>,
}

impl ReferenceClock {
    /// The instant of `reference`, received at `now`. The first one is resolved to the instant nearest to `now`, later
    /// ones to the instant nearest to the previous one, unless that is more than a period away from `now`.
    pub fn time(&mut self, now: Time, reference: ReferenceTime) -> Time {
        let nearest = |(from, at): (ReferenceTime, Time)| {
            let ticks = i64::from(reference.since(from));
            Time(at.0.saturating_add_signed(ticks * ReferenceTime::TICK.0 as i64))
        };
        let going_on = self.last.map(nearest).filter(|time| time.0.abs_diff(now.0) <= PERIOD);
        let time = going_on.unwrap_or_else(|| nearest(ReferenceTime::before(now)));
        self.last = Some((reference, time));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Ssrc = Ssrc(7);

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// The only feedback packet: its base number, its reference time, and the deltas.
    fn reported(log: &mut TransportLog) -> (u16, u32, Vec<Option<i16>>) {
        let all = log.report(US);
        assert_eq!(all.len(), 1, "{all:?}");
        let deltas = all[0].packets.iter().map(|packet| packet.map(|delta| delta.0)).collect();
        (all[0].base, all[0].reference.bits(), deltas)
    }

    #[test]
    fn each_packet_is_told_of_once_and_gaps_with_what_follows() {
        let mut log = TransportLog::default();
        assert!(log.report(US).is_empty());
        log.note(ms(1000), 65_534);
        log.note(ms(1010), 0); // 65535 is missing
        // 15 ticks of 64 ms are 960 ms
        assert_eq!(reported(&mut log), (65_534, 15, vec![Some(160), None, Some(40)]));
        assert!(!log.has_news() && log.report(US).is_empty());
        log.note(ms(1100), 3);
        assert_eq!(reported(&mut log), (1, 17, vec![None, None, Some(48)]), "of 1088 ms, though 1 and 2 have not come");
        let counts: Vec<u8> = (0..300).map(|k| (log.note(ms(1100), 4 + k), log.report(US)[0].count).1).collect();
        assert_eq!((counts[0], counts[253], counts[254]), (2, 255, 0));
    }

    #[test]
    fn what_comes_late_or_again_is_told_with_all_that_follows() {
        let mut log = TransportLog::default();
        for (at, number) in [(0, 10), (10, 12), (20, 13)] {
            log.note(ms(at), number);
        }
        log.report(US);
        log.note(ms(30), 11);
        assert_eq!(reported(&mut log), (11, 0, vec![Some(120), Some(-80), Some(40)]));
        log.note(ms(40), 12);
        assert_eq!(reported(&mut log), (12, 0, vec![Some(40), Some(40)]), "with the first copy's time");
        log.note(ms(50), 9);
        assert_eq!(reported(&mut log).0, 9, "before the first");
    }

    #[test]
    fn half_a_second_is_remembered() {
        let mut log = TransportLog::default();
        for k in 0..200u16 {
            log.note(ms(u64::from(k) * 10), k);
            log.report(US);
        }
        assert!((50..=52).contains(&log.entries.len()), "{}", log.entries.len());
        // a dropped packet arrives again: those after it were reported, and are no longer known
        log.note(ms(2000), 100);
        let (base, _, deltas) = reported(&mut log);
        assert_eq!((base, deltas.len()), (100, 100));
        assert!(deltas[1..40].iter().all(Option::is_none) && deltas[60..].iter().all(Option::is_some), "{deltas:?}");
        // nothing is dropped before it was reported
        let mut log = TransportLog::default();
        (0..200u16).for_each(|k| log.note(ms(u64::from(k) * 10), k));
        assert_eq!(reported(&mut log).2.len(), 200);
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut log = TransportLog::default();
        (0..1000u64).for_each(|k| log.note(Time(k * 100_000), k as u16));
        let (_, _, deltas) = reported(&mut log);
        assert_eq!(deltas.iter().flatten().map(|delta| i64::from(*delta)).sum::<i64>(), 400, "99.9 ms");
        assert_eq!(deltas[..6], [Some(0), Some(0), Some(1), Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn a_gap_too_long_for_a_delta_begins_another_piece() {
        let mut log = TransportLog::default();
        log.note(ms(1000), 1);
        log.note(ms(9300), 4);
        let all = log.report(US);
        let bases: Vec<_> = all.iter().map(|piece| (piece.base, piece.packets.len(), piece.count)).collect();
        assert_eq!(bases, [(1, 1, 0), (2, 3, 1)]);
        assert_eq!(all[1].reference.bits(), 9300 / 64);
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = TransportLog::default();
        log.note(ms(0), 0);
        log.note(ms(1), 32_767);
        assert_eq!(log.entries.len(), MAX_PACKETS);
        assert_eq!(log.report(US)[0].packets.len(), MAX_PACKETS);
        log.note(ms(2), 32_767u16.wrapping_sub(MAX_PACKETS as u16));
        assert!(!log.has_news(), "too late");
        for k in 0..100_000u32 {
            log.note(ms(3), k as u16);
            assert!(log.entries.len() <= MAX_PACKETS);
        }
    }

    #[test]
    fn the_receivers_clock_goes_on_where_its_field_wraps() {
        let of = ReferenceTime::from_bits;
        let mut clock = ReferenceClock::default();
        assert_eq!(clock.time(ms(1000), of(20)), ms(1280), "nearest to now");
        assert_eq!(clock.time(ms(1000), of(10)), ms(640));
        let mut far = ReferenceClock::default();
        let period = 64 << 24;
        assert_eq!(far.time(ms(period - 64), of(0xff_ffff)), ms(period - 64));
        assert_eq!(far.time(ms(period + 70), of(1)), ms(period + 64));
        // a clock with another zero
        let mut other = ReferenceClock::default();
        assert_eq!(other.time(ms(0), of(0x70_0000)), ms(64 * 0x70_0000));
        assert_eq!(other.time(ms(0), of(0x90_0000)), ms(64 * 0x90_0000));
        // a clock that jumps continually is unusable
        for k in 0..100_000u32 {
            let time = other.time(ms(1000), of(k.wrapping_mul(0x7f_ffff)));
            assert!(time.0 <= ms(1000).0 + PERIOD, "{time:?}");
        }
    }

    proptest! {
        /// For any arrivals: all are reported, with their times to a quarter of a millisecond.
        #[test]
        fn what_is_told_is_what_has_come(
            steps in prop::collection::vec((0..40i32, 0..30_000_000u64, any::<bool>()), 1..300),
        ) {
            let (mut log, mut clock) = (TransportLog::default(), ReferenceClock::default());
            let (mut now, mut highest) = (ms(5000), 70_000i64);
            let mut arrivals = std::collections::BTreeMap::new();
            let mut reported = std::collections::BTreeMap::new();
            let last = steps.len() - 1;
            for (index, (back, wait, report)) in steps.into_iter().enumerate() {
                now += Span(wait);
                let number = highest + 5 - i64::from(back);
                highest = highest.max(number);
                log.note(now, number as u16);
                arrivals.entry(number).or_insert(now);
                if !report && index != last {
                    continue;
                }
                for piece in log.report(US) {
                    let mut at = clock.time(now, piece.reference);
                    let from = highest + i64::from(piece.base.wrapping_sub(highest as u16) as i16);
                    prop_assert!(piece.packets.last().is_some_and(Option::is_some));
                    for (number, delta) in (from..).zip(&piece.packets) {
                        let Some(delta) = delta else { continue };
                        at = delta.after(at);
                        reported.entry(number).or_insert(at);
                    }
                }
            }
            prop_assert_eq!(reported.keys().collect::<Vec<_>>(), arrivals.keys().collect::<Vec<_>>());
            for (number, at) in &reported {
                let exact = arrivals[number];
                prop_assert!(at.0.abs_diff(exact.0) <= 125_000, "{} {:?} {:?}", number, at, exact);
            }
        }
    }
}
