//! Which packets are lost (RFC 5348 section 5.1) and when they would have come (section 5.2).

use super::history::Indication;
use paceline_units::Time;

/// A packet that came: its number and when.
#[derive(Clone, Copy, Debug)]
struct Seen {
    seq: u32,
    at: Time,
}

/// Packets `start..end` that have not come.
#[derive(Clone, Copy, Debug)]
struct Gap {
    start: u32,
    end: u32,
    /// S_before, if there is one, and S_after.
    before: Option<Seen>,
    after: Seen,
    /// So many packets with higher numbers have come.
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

/// Where a packet that came belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The highest number so far.
    Newest,
    /// It fills a hole that does not count as lost yet.
    Late,
    /// It lies below the highest and in no such hole: it counts as lost, or has come before.
    Known,
}

/// What has come and what is missing.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    /// One past the highest number that has come.
    next: u32,
    highest: Option<Seen>,
    /// In order; none has been overtaken `enough` times.
    gaps: Vec<Gap>,
    enough: u32,
}

impl Gaps {
    /// Packets are numbered from `first` on; `enough` later ones tell of a loss (NDUPACK).
    pub(super) fn new(first: u32, enough: u32) -> Gaps {
        Gaps { next: first, highest: None, gaps: Vec::new(), enough: enough.max(1) }
    }

    /// One past the highest number that has come.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// A packet has come; what is lost now goes to `lost`, in order.
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
        // the lower a gap, the more have overtaken it
        let ripe = self.gaps.iter().take_while(|gap| gap.overtaken >= self.enough).count();
        lost.extend(self.gaps.drain(..ripe).map(|gap| gap.lost()));
        if newest { Place::Newest } else { Place::Late }
    }

    /// A mark counts at once, and what is missing before it counts as lost with it (section 5.1).
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

    /// Packets in this order, 10 ms apart; the runs lost by each of them.
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
        // what comes before the third is not lost
        let (runs, _) = run(&[0, 2, 3, 1, 4, 5]);
        assert!(runs.iter().all(Vec::is_empty));
        // a late packet counts among those that overtake the gaps below it
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
        // with a late packet in the gap the ends stay those of section 5.2
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
