//! A receiver's log of arrivals for RFC 8888 feedback (section 3.1).

use paceline_packet::Flags;
use paceline_packet::rtcp::{Arrival, ArrivalOffset, Ecn, StreamArrivals};
use paceline_packet::rtp::Ssrc;
use paceline_units::Time;
use std::collections::VecDeque;

/// Number of reported entries kept, for packets that arrive late.
const KEPT: usize = 128;
/// A jump by more than this many numbers is not a gap: the sequence restarts (RFC 3550 appendix A.1).
const MAX_JUMP: usize = 3000;

/// The arrivals of one source's packets, by sequence number.
///
/// A report covers the numbers from the first one received since the previous report up to the highest. If a packet
/// arrived late, numbers already reported are covered again, so nothing needs to be kept about what the sender knows.
#[derive(Clone, Debug, Default)]
pub struct ArrivalLog {
    /// The number of the first entry.
    base: u16,
    entries: VecDeque<Option<(Time, Ecn)>>,
    /// Number of entries that a report has covered.
    reported: usize,
    /// The first entry changed since then, if any.
    fresh: Option<usize>,
}

/// The ECN field that a packet's flags stand for.
fn ecn(flags: Flags) -> Ecn {
    if flags.has(Flags::CE) {
        Ecn::Ce
    } else if flags.has(Flags::L4S) {
        Ecn::Ect1
    } else if flags.has(Flags::ECT) {
        Ecn::Ect0
    } else {
        Ecn::NotEct
    }
}

impl ArrivalLog {
    /// Records the arrival of packet `number`. Of duplicates, the first counts, but a mark on any of them is kept.
    pub fn note(&mut self, now: Time, number: u16, flags: Flags) {
        let mut place = usize::from(number.wrapping_sub(self.base));
        if self.entries.is_empty() {
            self.base = number;
            place = 0;
        } else if place >= usize::from(u16::MAX / 2) && place >= self.entries.len() {
            return; // too late
        } else if place > self.entries.len() + MAX_JUMP {
            *self = ArrivalLog { base: number, ..ArrivalLog::default() };
            place = 0;
        }
        if place >= self.entries.len() {
            self.entries.resize(place + 1, None);
        }
        let ecn = ecn(flags);
        match &mut self.entries[place] {
            Some((_, before)) => {
                if ecn == Ecn::Ce && *before != Ecn::Ce {
                    *before = Ecn::Ce;
                    self.renew(place);
                }
            }
            entry @ None => {
                *entry = Some((now, ecn));
                self.renew(place);
            }
        }
        if self.entries.len() > StreamArrivals::MAX {
            self.forget(self.entries.len() - StreamArrivals::MAX);
        }
    }

    fn renew(&mut self, place: usize) {
        self.fresh = Some(self.fresh.map_or(place, |fresh| fresh.min(place)));
    }

    fn forget(&mut self, count: usize) {
        self.entries.drain(..count);
        self.base = self.base.wrapping_add(count as u16);
        self.reported = self.reported.saturating_sub(count);
        self.fresh = self.fresh.map(|fresh| fresh.saturating_sub(count));
    }

    /// Whether there is anything to report.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.fresh.is_some()
    }

    /// Builds a report at `now` on packets received since the last one, for the source `ssrc`; `None` if there are
    /// none.
    pub fn report(&mut self, now: Time, ssrc: Ssrc) -> Option<StreamArrivals> {
        let fresh = self.fresh.take()?;
        let first = fresh.min(self.reported);
        let arrival = |entry: &Option<(Time, Ecn)>| match entry {
            Some((at, ecn)) => Arrival::Received { ecn: *ecn, offset: ArrivalOffset::nearest(now.since(*at)) },
            None => Arrival::Missing,
        };
        let packets = self.entries.iter().skip(first).map(arrival).collect();
        let report = StreamArrivals { ssrc, begin: self.base.wrapping_add(first as u16), packets };
        self.reported = self.entries.len();
        self.forget(self.reported.saturating_sub(KEPT));
        Some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    fn offsets(report: &StreamArrivals) -> Vec<Option<u16>> {
        let offset = |arrival: &Arrival| match arrival {
            Arrival::Missing => None,
            Arrival::Received { offset, .. } => Some(offset.bits()),
        };
        report.packets.iter().map(offset).collect()
    }

    const US: Ssrc = Ssrc(7);

    #[test]
    fn section_3_1_a_report_covers_what_came_since_the_last_one() {
        let mut log = ArrivalLog::default();
        assert_eq!(log.report(ms(0), US), None);
        log.note(ms(1000), 65_534, Flags::NONE);
        log.note(ms(1500), 0, Flags::ECT); // 65535 is missing
        let first = log.report(ms(2000), US).unwrap();
        assert_eq!((first.ssrc, first.begin), (US, 65_534));
        assert_eq!(offsets(&first), [Some(1024), None, Some(512)], "units of 1/1024 s before the report");
        assert_eq!(log.report(ms(2000), US), None, "nothing new");
        log.note(ms(2250), 2, Flags::NONE);
        let second = log.report(ms(2500), US).unwrap();
        assert_eq!((second.begin, offsets(&second)), (1, vec![None, Some(256)]), "a gap at its beginning is covered");
    }

    /// RFC 8888 section 3.1: the ECN field as received; CE hides whether ECT(0) or ECT(1) was sent.
    #[test]
    fn the_ecn_field_is_reported_as_it_came() {
        let mut log = ArrivalLog::default();
        let l4s = Flags::ECT.with(Flags::L4S);
        for (number, flags) in
            (0..).zip([Flags::NONE, Flags::ECT, l4s, Flags::ECT.with(Flags::CE), l4s.with(Flags::CE)])
        {
            log.note(ms(1000), number, flags);
        }
        let of = |arrival: &Arrival| match arrival {
            Arrival::Missing => None,
            Arrival::Received { ecn, .. } => Some(*ecn),
        };
        let report = log.report(ms(1000), US).unwrap();
        let fields: Vec<Ecn> = report.packets.iter().filter_map(of).collect();
        assert_eq!(fields, [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce, Ecn::Ce]);
    }

    #[test]
    fn what_comes_late_is_reported_with_what_lies_between() {
        let mut log = ArrivalLog::default();
        for number in [10, 12, 13] {
            log.note(ms(1000), number, Flags::NONE);
        }
        log.report(ms(1000), US);
        log.note(ms(1250), 11, Flags::NONE);
        let late = log.report(ms(1500), US).unwrap();
        assert_eq!((late.begin, offsets(&late)), (11, vec![Some(256), Some(512), Some(512)]));
        log.note(ms(1500), 9, Flags::NONE);
        assert!(!log.has_news(), "before the first");
    }

    #[test]
    fn the_first_copy_counts_but_a_mark_of_any_does() {
        let mut log = ArrivalLog::default();
        log.note(ms(0), 1, Flags::ECT);
        log.note(ms(500), 1, Flags::ECT.with(Flags::CE));
        log.note(ms(600), 1, Flags::ECT);
        let report = log.report(ms(1000), US).unwrap();
        assert_eq!(report.packets, [Arrival::Received { ecn: Ecn::Ce, offset: ArrivalOffset::from_bits(1024) }]);
    }

    #[test]
    fn offsets_saturate() {
        let mut log = ArrivalLog::default();
        log.note(ms(0), 1, Flags::NONE);
        let report = log.report(ms(9000), US).unwrap();
        assert_eq!(offsets(&report), [Some(ArrivalOffset::TOO_LONG.bits())]);
    }

    #[test]
    fn a_long_run_is_kept_short_and_a_jump_begins_anew() {
        let mut log = ArrivalLog::default();
        for round in 0..2000_u64 {
            for k in 0..100 {
                log.note(ms(round * 100 + k), (round * 100 + k) as u16, Flags::NONE);
            }
            let report = log.report(ms(round * 100 + 100), US).unwrap();
            assert_eq!((report.begin, report.packets.len()), ((round * 100) as u16, 100));
            assert!(log.entries.len() <= KEPT);
        }
        let next = 200_000_u64 as u16;
        log.note(ms(300_000), next.wrapping_add(5000), Flags::NONE);
        let report = log.report(ms(300_000), US).unwrap();
        assert_eq!((report.begin, report.packets.len()), (next.wrapping_add(5000), 1));
        for number in 0..20_000_u16 {
            log.note(ms(300_000), number.wrapping_add(next).wrapping_add(5001), Flags::NONE);
        }
        assert_eq!(log.report(ms(300_001), US).unwrap().packets.len(), StreamArrivals::MAX);
    }
}
