//! Distributions of times.

use crate::Span;

/// A log-linear histogram of times: buckets of 1 us at first, then 512 per octave of the time plus 512 us. It stores
/// the buckets from the lowest to the highest ever filled, so its size depends on the range of times: 2 kB per octave.
/// The buckets of the first 64 times are only listed: otherwise, with thousands of flows of few packets, each packet
/// would cost the creation, filling and reading of hundreds of empty buckets.
///
/// Bins of 3 % are too coarse: intervals for means over runs missed the value, because all runs fell into one or two
/// bins.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Counts of the buckets from `first` on; empty while there is a list.
    counts: Vec<u32>,
    /// The bucket of the first of `counts`.
    first: usize,
    /// The bucket of each time in order of counting, while there are few.
    few: Vec<u32>,
}

/// Maximum number of listed times.
const FEW: usize = 64;

/// Bits of the fraction that distinguish buckets.
const SUB_BITS: u32 = 9;
const SUB: u64 = 1 << SUB_BITS;

impl Histogram {
    /// The bucket of time zero.
    const ZERO: usize = (1023 + SUB_BITS as usize) << SUB_BITS;

    /// Counts a time.
    #[inline]
    pub fn count(&mut self, time: Span) {
        let i = Self::bucket(time);
        // A bucket below the first wraps to an index far above the last.
        if let Some(n) = self.counts.get_mut(i.wrapping_sub(self.first)) {
            *n += 1;
        } else {
            self.grow(i);
        }
    }

    #[cold]
    fn grow(&mut self, i: usize) {
        if self.counts.is_empty() {
            if self.few.len() < FEW {
                self.few.push(i as u32);
                return;
            }
            self.convert();
        }
        self.extend_to(i);
        self.counts[i - self.first] += 1;
    }

    /// Turns the list into counts.
    fn convert(&mut self) {
        let few = core::mem::take(&mut self.few);
        // Extend to both ends first, in two steps, instead of one for each new end.
        for &end in few.iter().min().into_iter().chain(few.iter().max()) {
            self.extend_to(end as usize);
        }
        for i in few {
            self.counts[i as usize - self.first] += 1;
        }
    }

    /// Extends the counts to a bucket.
    fn extend_to(&mut self, i: usize) {
        if self.counts.is_empty() {
            self.first = i;
        }
        if i < self.first {
            self.counts.splice(0..0, core::iter::repeat_n(0, self.first - i));
            self.first = i;
        } else if i - self.first >= self.counts.len() {
            self.counts.resize(i - self.first + 1, 0);
        }
    }

    /// The exponent and the leading fraction bits of a double; the addition keeps the first buckets at 1 us.
    #[inline]
    fn bucket(time: Span) -> usize {
        (((time.0 / 1000 + SUB) as i64 as f64).to_bits() >> (52 - SUB_BITS)) as usize
    }

    /// The start of the bucket in microseconds.
    fn start(i: usize) -> u64 {
        let (octave, sub) = ((i - Self::ZERO) as u64 / SUB, (i - Self::ZERO) as u64 % SUB);
        ((SUB + sub) << octave) - SUB
    }

    /// The time that the share `q` of those counted does not exceed, to 0.2 % or 1 us. Times within a bucket are
    /// assumed to be spread evenly, but within `extremes`, the minimum and maximum time that the caller knows.
    #[must_use]
    pub fn quantile(&self, q: f64, extremes: (Span, Span)) -> Option<Span> {
        let total = self.few.len() as u64 + Self::sum(&self.counts);
        if total == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).max(1);
        let (i, n, before) = if self.few.is_empty() { self.counted(rank) } else { self.listed(rank) }?;
        let (start, end) = (Self::start(i) * 1000, Self::start(i + 1) * 1000);
        // The middle of its part of the bucket.
        let middle = Span(start + ((end - start) as f64 * ((rank - before) as f64 - 0.5) / n as f64) as u64);
        Some(middle.max(extremes.0).min(extremes.1))
    }

    fn sum(counts: &[u32]) -> u64 {
        counts.iter().map(|&n| u64::from(n)).sum()
    }

    /// From the counts: the bucket of the time with this rank (from 1), the number of times in it, and the number below
    /// it.
    fn counted(&self, rank: u64) -> Option<(usize, u64, u64)> {
        let mut before = 0;
        // Whole blocks first: summing them takes a third of the time of checking each count.
        let block = self.counts.chunks(64).position(|counts| {
            let sum = Self::sum(counts);
            let here = before + sum >= rank;
            before += if here { 0 } else { sum };
            here
        })?;
        let at = 64 * block
            + self.counts[64 * block..].iter().position(|&n| {
                let here = before + u64::from(n) >= rank;
                before += if here { 0 } else { u64::from(n) };
                here
            })?;
        Some((at + self.first, u64::from(self.counts[at]), before))
    }

    /// The same from the list.
    fn listed(&self, rank: u64) -> Option<(usize, u64, u64)> {
        let at = rank as usize - 1;
        let mut parted = self.few.clone();
        let i = (at < parted.len()).then(|| *parted.select_nth_unstable(at).1)?;
        let of = |is: fn(&u32, &u32) -> bool| self.few.iter().map(|k| u64::from(is(k, &i))).sum();
        Some((i as usize, of(u32::eq), of(u32::lt)))
    }

    /// The start of the lowest filled bucket and the end of the highest.
    #[must_use]
    pub fn bounds(&self) -> Option<(Span, Span)> {
        let listed =
            self.few.iter().min().zip(self.few.iter().max()).map(|(&low, &high)| (low as usize, high as usize));
        let filled = |at: Option<usize>| at.map(|at| self.first + at);
        let counted = || {
            let lowest = filled(self.counts.iter().position(|&n| n > 0))?;
            Some((lowest, filled(self.counts.iter().rposition(|&n| n > 0))?))
        };
        let (lowest, highest) = listed.or_else(counted)?;
        Some((Span(Self::start(lowest) * 1000), Span(Self::start(highest + 1) * 1000)))
    }

    /// The times counted after `earlier`, an earlier copy of this histogram.
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        if self.counts.is_empty() {
            return Histogram { few: self.few[earlier.few.len()..].to_vec(), ..Histogram::default() };
        }
        let mut counts = self.counts.clone();
        for &i in &earlier.few {
            counts[i as usize - self.first] -= 1;
        }
        if !earlier.counts.is_empty() {
            // It can only have grown at its ends.
            for (n, before) in counts[earlier.first - self.first..].iter_mut().zip(&earlier.counts) {
                *n -= before;
            }
        }
        Histogram { counts, first: self.first, few: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: (Span, Span) = (Span::ZERO, Span::MAX);

    #[test]
    fn buckets_follow_one_another() {
        assert_eq!(Histogram::start(Histogram::ZERO), 0);
        for i in Histogram::ZERO..Histogram::ZERO + 10_000 {
            assert_eq!(Histogram::bucket(Span(Histogram::start(i) * 1000)), i);
            assert!(Histogram::start(i + 1) > Histogram::start(i));
        }
    }

    #[test]
    fn quantiles_to_a_fifth_of_a_per_cent() {
        let mut h = Histogram::default();
        for i in 1..=1000 {
            h.count(Span::from_micros(i * 50));
        }
        for (q, us) in [(0.5, 25_000.0), (0.95, 47_500.0), (0.99, 49_500.0)] {
            let got = h.quantile(q, ANY).unwrap().0 as f64 / 1000.0;
            assert!((got / us - 1.0).abs() < 0.002, "{q}: {got} {us}");
        }
        assert_eq!(Histogram::default().quantile(0.5, ANY), None);
    }

    /// Times in one bucket are spread over it.
    #[test]
    fn quantiles_move_within_a_bucket() {
        let mut h = Histogram::default();
        for _ in 0..1000 {
            h.count(Span::from_micros(100_000));
        }
        let (low, middle, high) =
            (h.quantile(0.1, ANY).unwrap(), h.quantile(0.5, ANY).unwrap(), h.quantile(0.9, ANY).unwrap());
        assert!(low < middle && middle < high && high.0 - low.0 < middle.0 / 500);
    }

    /// A bucket ends above the maximum time in it, and begins below the minimum.
    #[test]
    fn no_quantile_lies_beyond_the_extremes() {
        let mut h = Histogram::default();
        let (min, max) = (Span(100_020_123), Span(100_050_000));
        h.count(min);
        h.count(max);
        assert!(h.quantile(0.0, ANY).unwrap() < min && h.quantile(1.0, ANY).unwrap() > max);
        for q in [0.0, 0.3, 0.5, 0.9, 1.0] {
            let got = h.quantile(q, (min, max)).unwrap();
            assert!(min <= got && got <= max, "{q}: {got}");
        }
    }

    const TIMES: [u64; 7] = [70_000, 300, 70_001, 900_000, 5, 70_000, 80_000_000];

    /// In whatever order times are counted, and whatever was counted before.
    #[test]
    fn it_grows_at_both_ends() {
        let (mut h, mut earlier) = (Histogram::default(), Histogram::default());
        for (k, &us) in TIMES.iter().enumerate() {
            h.count(Span::from_micros(us));
            if k == 0 {
                h.convert();
            }
            if k == 2 {
                earlier = h.clone();
            }
        }
        let total = |h: &Histogram| h.counts.iter().sum::<u32>();
        assert_eq!((total(&h), total(&h.since(&earlier)), total(&h.since(&Histogram::default()))), (7, 4, 7));
        let (low, high) = h.since(&earlier).bounds().unwrap();
        assert_eq!(low, Span::from_micros(5));
        assert!(high > Span::from_micros(80_000_000) && high < Span::from_micros(80_200_000));
        let after = h.since(&earlier).quantile(0.5, ANY).unwrap();
        assert!(after > Span::from_micros(69_880) && after < Span::from_micros(70_020), "{after:?}");
    }

    /// Few times take only the list's bytes, however far apart they are: five octaves of buckets would be 10 kB. (With
    /// those, creating and reading empty buckets was half of a packet's cost with 5000 flows.)
    #[test]
    fn few_times_make_no_buckets() {
        let mut h = Histogram::default();
        for k in 0..FEW {
            h.count(Span::from_micros(TIMES[k % TIMES.len()]));
            assert_eq!((h.counts.capacity(), h.few.len()), (0, k + 1));
        }
        assert!(h.few.capacity() <= FEW);
        h.count(Span::from_micros(1));
        assert_eq!((h.few.capacity(), Histogram::sum(&h.counts)), (0, FEW as u64 + 1));
    }

    /// A million transfers of 10 ms to a minute.
    #[test]
    fn many_times_take_no_more_than_what_they_span() {
        let mut h = Histogram::default();
        for k in 0..1_000_000_u64 {
            h.count(Span::from_micros(10_000 + k * 60));
        }
        assert!(h.counts.len() * size_of::<u32>() < 28_000, "{}", h.counts.len());
        assert!((h.quantile(0.95, ANY).unwrap().as_secs_f64() / 57.01 - 1.0).abs() < 0.002);
    }

    /// Listed or counted, and whenever the list was converted: the results are the same.
    #[test]
    fn a_list_answers_as_counts_do() {
        let answers = |h: &Histogram| (h.bounds(), [0.0, 0.01, 0.3, 0.5, 0.95, 0.99, 1.0].map(|q| h.quantile(q, ANY)));
        let (mut h, mut counted) = (Histogram::default(), Histogram::default());
        let mut earlier = Vec::new();
        for k in 0..2 * FEW + 10 {
            earlier.push((h.clone(), counted.clone()));
            // some the same, some in one bucket, some far apart
            let time = Span::from_micros(TIMES[k * k % TIMES.len()] + (k as u64 * 37) % 120);
            h.count(time);
            counted.count(time);
            counted.convert();
            assert!(counted.few.is_empty() && h.few.is_empty() == (k >= FEW));
            assert_eq!(answers(&h), answers(&counted), "{k}");
            for (from, (listed, reference)) in earlier.iter().enumerate() {
                let after = h.since(listed);
                assert_eq!(answers(&after), answers(&counted.since(reference)), "{from} to {k}");
                assert!(after.quantile(0.5, ANY).is_some());
            }
            assert_eq!(answers(&h.since(&h.clone())), answers(&Histogram::default()));
        }
    }
}
