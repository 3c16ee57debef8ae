//! Loss detection (RFC 5348 section 5.1), and the nominal arrival times of lost packets (section 5.2).

use super::loss_history::Indication;
use paceline_units::Time;

/// A received packet: its number and arrival time.
#[derive(Clone, Copy, Debug)]
struct Seen {
    seq: u32,
    at: Time,
}

/// The missing packets `start..end`.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u32,
    end: u32,
    /// S_before, if it exists, and S_after.
    before: Option<Seen>,
    after: Seen,
    /// Number of packets with higher numbers that have arrived.
    overtaken: u32,
}

impl Gap {
    /// Section 5.2's interpolation.
    fn lost(&self) -> Indication {
        let (at, spacing) = match self.before {
            Some(before) => {
                let spacing = self.after.at.since(before.at).0 as f64 / f64::from(self.after.seq - before.seq);
                let into = spacing * f64::from(self.start - before.seq);
                (Time(before.at.0.saturating_add(into as u64)), spacing)
            }
            None => (self.after.at, 0.0),
        };
        Indication { start: self.start, end: self.end, at, spacing, marked: false }
    }
}

/// The classification of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The highest number so far.
    Newest,
    /// It fills a gap that does not count as lost yet.
    Late,
    /// It is below the highest and in no such gap: it counts as lost, or is a duplicate.
    Known,
}

/// The packets received and missing.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// One past the highest number received.
    next: u32,
    highest: Option<Seen>,
    /// Sorted; each has been overtaken fewer than `enough` times.
    gaps: Vec<Gap>,
    enough: u32,
}

impl Gaps {
    /// Creates the state for packets numbered from `first`; `enough`: the number of later packets that indicate a loss
    /// (NDUPACK).
    pub(super) fn new(first: u32, enough: u32) -> Gaps {
        Gaps { next: first, highest: None, gaps: Vec::new(), enough: enough.max(1) }
    }

    /// One past the highest number received.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// Processes a packet; appends newly lost ranges to `lost`, sorted.
    #[inline]
    pub(super) fn add(&mut self, seq: u32, now: Time, lost: &mut Vec<Indication>) -> Place {
        if seq == self.next && self.gaps.is_empty() {
            self.next += 1;
            self.highest = Some(Seen { seq, at: now });
            return Place::Newest;
        }
        self.add_out_of_order(seq, now, lost)
    }

    fn add_out_of_order(&mut self, seq: u32, now: Time, lost: &mut Vec<Indication>) -> Place {
        let newest = seq >= self.next;
        if newest {
            if seq > self.next {
                let after = Seen { seq, at: now };
                self.gaps.push(Gap { start: self.next, end: seq, before: self.highest, after, overtaken: 0 });
            }
            self.next = seq + 1;
            self.highest = Some(Seen { seq, at: now });
        } else {
            let Some(i) = self.gaps.iter().position(|gap| (gap.start..gap.end).contains(&seq)) else {
                return Place::Known;
            };
            let gap = self.gaps[i];
            let parts = [Gap { end: seq, ..gap }, Gap { start: seq + 1, ..gap }];
            self.gaps.splice(i..=i, parts.into_iter().filter(|part| part.start < part.end));
        }
        for gap in self.gaps.iter_mut().take_while(|gap| gap.end <= seq) {
            gap.overtaken += 1;
        }
        // lower gaps have been overtaken at least as often
        let ripe = self.gaps.iter().take_while(|gap| gap.overtaken >= self.enough).count();
        lost.extend(self.gaps.drain(..ripe).map(|gap| gap.lost()));
        if newest { Place::Newest } else { Place::Late }
    }

    /// Processes a mark: it counts at once, and packets missing before it count as lost (section 5.1).
    pub(super) fn settle(&mut self, seq: u32, lost: &mut Vec<Indication>) {
        let below = self.gaps.iter().take_while(|gap| gap.end <= seq).count();
        lost.extend(self.gaps.drain(..below).map(|gap| gap.lost()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time(n * 1_000_000)
    }

    /// Receives packets in this order, 10 ms apart; returns the ranges lost at each.
    fn run(order: &[u32]) -> (Vec<Vec<(u32, u32)>>, Vec<Indication>) {
        let mut arrivals = Gaps::new(0, 3);
        let mut all = Vec::new();
        let mut runs = Vec::new();
        for (i, &seq) in order.iter().enumerate() {
            let mut lost = Vec::new();
            arrivals.add(seq, ms(10 * i as u64), &mut lost);
            runs.push(lost.iter().map(|l| (l.start, l.end)).collect());
            all.extend(lost);
        }
        (runs, all)
    }

    #[test]
    fn section_5_1_three_later_packets_tell_of_a_loss() {
        let (runs, _) = run(&[0, 1, 3, 4, 5, 6]);
        assert_eq!(runs, [vec![], vec![], vec![], vec![], vec![(2, 3)], vec![]]);
        // an arrival before the third later packet prevents the loss
        let (runs, _) = run(&[0, 2, 3, 1, 4, 5]);
        assert!(runs.iter().all(Vec::is_empty));
        // a late packet counts among those that overtake lower gaps
        let (runs, _) = run(&[0, 2, 5, 4, 6]);
        assert_eq!(runs[3], [(1, 2)]);
        let (runs, _) = run(&[0, 5, 3, 6, 7]);
        assert_eq!(runs, [vec![], vec![], vec![], vec![(1, 3)], vec![(4, 5)]]);
        // the first packet of all
        let (runs, lost) = run(&[1, 2, 3]);
        assert_eq!(runs[2], [(0, 1)]);
        assert_eq!(lost[0].at, ms(0));
    }

    #[test]
    fn section_5_2_interpolation() {
        // 1 at 10 ms, 5 at 20 ms: packets 2, 3, 4 at 12.5, 15, 17.5 ms
        let (_, lost) = run(&[0, 1, 5, 6, 7]);
        assert_eq!((lost[0].start, lost[0].end, lost[0].at), (2, 5, Time(12_500_000)));
        assert_eq!(lost[0].spacing, 2.5e6);
        // a late packet in the gap does not change the ends of section 5.2
        let (_, lost) = run(&[0, 1, 5, 3, 6, 7]);
        assert_eq!(lost.iter().map(|l| (l.start, l.at.0)).collect::<Vec<_>>(), [(2, 12_500_000), (4, 17_500_000)]);
    }

    #[test]
    fn duplicates_are_known() {
        let mut arrivals = Gaps::new(0, 3);
        let mut lost = Vec::new();
        for seq in [0, 1, 2] {
            assert_eq!(arrivals.add(seq, ms(0), &mut lost), Place::Newest);
        }
        assert_eq!(arrivals.add(1, ms(1), &mut lost), Place::Known);
        assert_eq!(arrivals.add(4, ms(1), &mut lost), Place::Newest);
        assert_eq!(arrivals.add(3, ms(1), &mut lost), Place::Late);
        assert_eq!(arrivals.add(3, ms(1), &mut lost), Place::Known);
        assert!(lost.is_empty());
    }

    #[test]
    fn a_mark_settles_what_is_missing_below_it() {
        // RFC 5348 section 5.1's example: n-1, then n+1, then n+2 marked: the event begins with n
        let mut arrivals = Gaps::new(0, 3);
        let mut lost = Vec::new();
        arrivals.add(0, ms(0), &mut lost);
        arrivals.add(2, ms(20), &mut lost);
        arrivals.add(3, ms(30), &mut lost);
        assert!(lost.is_empty());
        arrivals.settle(3, &mut lost);
        assert_eq!((lost[0].start, lost[0].end, lost[0].at), (1, 2, ms(10)));
    }
}
