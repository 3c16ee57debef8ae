//! Delivery opportunities: instants at which a link can send some bytes, as recorded from cellular links.
//!
//! Source: Winstein, Sivaraman, Balakrishnan (NSDI 2013) and the link shell of mahimahi (Netravali et al., USENIX ATC
//! 2015). Each opportunity carries up to an MTU; small packets share one, a large packet takes several, and unused
//! capacity is lost.

use crate::RateError;
use paceline_units::{Rate, Size, Time};
use std::sync::Arc;

/// Instants at which a link can send some bytes; repeats after the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Time and bytes of each instant; times increase.
    slots: Arc<[(u64, u64)]>,
}

impl Opportunities {
    /// The capacity of an opportunity in a trace.
    pub const BYTES: Size = Size(1500);

    /// One opportunity of `size` at each of `times`; repeated times add up. The last one is also the start of the next
    /// repetition.
    ///
    /// # Errors
    /// If there is none, one is earlier than the one before, all are at zero, or the size is zero.
    pub fn new(times: impl IntoIterator<Item = Time>, size: Size) -> Result<Opportunities, RateError> {
        let mut slots: Vec<(u64, u64)> = Vec::new();
        for time in times {
            match slots.last_mut() {
                Some(last) if last.0 > time.0 => return Err(RateError::Disorder(time, Time(last.0))),
                Some(last) if last.0 == time.0 => last.1 = last.1.saturating_add(size.0),
                _ => slots.push((time.0, size.0)),
            }
        }
        match slots.last() {
            None => Err(RateError::Empty),
            Some((0, _)) => Err(RateError::ShortPeriod(Time::ZERO)),
            Some(_) if size == Size::ZERO => Err(RateError::Idle),
            Some(_) => Ok(Opportunities { slots: slots.into() }),
        }
    }

    fn period(&self) -> u64 {
        self.slots[self.slots.len() - 1].0
    }

    fn per_period(&self) -> u128 {
        self.slots.iter().map(|slot| u128::from(slot.1)).sum()
    }

    /// The mean rate.
    #[must_use]
    pub fn mean(&self) -> Rate {
        Rate((self.per_period() * 8_000_000_000 / u128::from(self.period())) as u64)
    }

    /// The peak rate over one millisecond, with milliseconds counted from time zero, as in traces.
    #[must_use]
    pub fn peak(&self) -> Rate {
        const MILLISECOND: u64 = 1_000_000;
        let (mut max, mut sum, mut current) = (0, 0u64, 0);
        for &(at, size) in &*self.slots {
            let millisecond = at / MILLISECOND;
            sum = if millisecond == current { sum.saturating_add(size) } else { size };
            current = millisecond;
            max = max.max(sum);
        }
        Rate(max.saturating_mul(8_000)).max(self.mean())
    }

    /// The times and sizes of one period.
    pub fn slots(&self) -> impl Iterator<Item = (Time, Size)> + '_ {
        self.slots.iter().map(|&(at, size)| (Time(at), Size(size)))
    }

    /// The bytes of the opportunities before `time`.
    fn carried(&self, time: u64) -> u128 {
        // A period has its opportunities in [0, period]; the next one starts at `period`.
        let (whole, rest) = (time / self.period(), time % self.period());
        let sum = |end: usize| self.slots[..end].iter().map(|slot| u128::from(slot.1)).sum::<u128>();
        let here = sum(self.slots.partition_point(|slot| slot.0 < rest));
        let last = u128::from(self.slots[self.slots.len() - 1].1);
        // Exactly at the end of a period, its last opportunity is not yet before `time`.
        let seam = if whole > 0 && rest == 0 { last } else { 0 };
        u128::from(whole) * self.per_period() + here - seam
    }

    /// The bytes that it can carry in `[from, to)`.
    pub(crate) fn capacity(&self, from: u64, to: u64) -> u128 {
        self.carried(to) - self.carried(from)
    }
}

/// A running count of the capacity offered so far.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    next: Delivery,
    bytes: u64,
}

impl Passed {
    pub(crate) fn new(opportunities: Opportunities) -> Passed {
        Passed { next: Delivery::new(opportunities), bytes: 0 }
    }

    /// The bytes of all opportunities before `time`; calls must come in order of time.
    pub(crate) fn before(&mut self, time: u64) -> u64 {
        while self.next.at() < time {
            self.bytes = self.bytes.saturating_add(self.next.left);
            self.next.advance();
        }
        self.bytes
    }
}

/// A server that sends only at opportunities. A packet takes the first opportunity after its arrival that earlier
/// packets have not used up. At one instant, the opportunity precedes the arrival.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    opportunities: Opportunities,
    /// The current opportunity, the start of its period, and its remaining bytes.
    slot: usize,
    base: u64,
    left: u64,
    free: u64,
}

impl Delivery {
    pub(crate) fn new(opportunities: Opportunities) -> Delivery {
        let left = opportunities.slots[0].1;
        Delivery { opportunities, slot: 0, base: 0, left, free: 0 }
    }

    pub(crate) fn opportunities(&self) -> &Opportunities {
        &self.opportunities
    }

    #[inline]
    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    #[inline]
    fn at(&self) -> u64 {
        self.base.saturating_add(self.opportunities.slots[self.slot].0)
    }

    #[inline]
    fn advance(&mut self) {
        self.slot += 1;
        if self.slot == self.opportunities.slots.len() {
            self.slot = 0;
            self.base = self.base.saturating_add(self.opportunities.period());
        }
        self.left = self.opportunities.slots[self.slot].1;
    }

    /// Moves to the first opportunity after `now`, which is not before the current one.
    fn seek(&mut self, now: u64) {
        self.advance();
        if self.at() > now {
            return;
        }
        let period = self.opportunities.period();
        self.base += (now - self.base) / period * period;
        let position = now - self.base;
        // The last one is at `period`, beyond any position within the period.
        self.slot = self.opportunities.slots.partition_point(|slot| slot.0 <= position);
        self.left = self.opportunities.slots[self.slot].1;
    }

    /// The first opportunity after `now` with bytes left; those before it are wasted.
    pub(crate) fn ready(&mut self, now: u64) -> u64 {
        if self.at() <= now {
            self.seek(now);
        } else if self.left == 0 {
            self.advance();
        }
        self.at()
    }

    pub(crate) fn serve(&mut self, now: u64, size: u16) -> (u64, u64) {
        let (start, mut need) = (self.ready(now), u64::from(size));
        loop {
            let taken = need.min(self.left);
            (self.left, need) = (self.left - taken, need - taken);
            if need == 0 {
                self.free = self.at();
                return (start, self.free);
            }
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(times: &[u64]) -> Delivery {
        Delivery::new(Opportunities::new(times.iter().map(|&t| Time(t)), Opportunities::BYTES).unwrap())
    }

    #[test]
    fn small_packets_share_and_large_ones_spread() {
        let mut server = delivery(&[10, 20, 20, 40]);
        assert_eq!(server.serve(0, 500), (10, 10));
        assert_eq!(server.serve(0, 1000), (10, 10));
        assert_eq!(server.serve(1, 3500), (20, 40)); // 3000 at 20, 500 at 40
        assert_eq!(server.serve(1, 1001), (40, 50)); // 1000 at 40, 1 at 10 of the next period
        assert_eq!(server.serve(50, 1), (60, 60)); // the one at 50 has passed
    }

    #[test]
    fn unused_ones_are_wasted() {
        let mut server = delivery(&[10, 20, 30]);
        assert_eq!(server.serve(10, 1500), (20, 20));
        assert_eq!(server.serve(20, 1500), (30, 30));
        assert_eq!(server.serve(1_000_000_000_007, 1500), (1_000_000_000_010, 1_000_000_000_010));
        assert_eq!(server.serve(1_000_000_000_020, 1500).0, 1_000_000_000_030);
    }

    #[test]
    fn the_seam_of_two_rounds() {
        let mut server = delivery(&[0, 10]);
        assert_eq!(server.serve(0, 1500), (10, 10));
        assert_eq!(server.serve(0, 1500), (10, 10)); // the first of the next period is at 10 too
        assert_eq!(server.serve(0, 1500), (20, 20));
        let all = server.opportunities().clone();
        assert_eq!(all.mean(), Rate(3000 * 800_000_000));
        let per_instant = |t| all.capacity(t, t + 1);
        assert_eq!([0, 9, 10, 11, 20].map(per_instant), [1500, 0, 3000, 0, 3000]);
        assert_eq!(all.capacity(0, 21), 7500);
    }

    #[test]
    fn refuses_what_makes_no_sense() {
        let make = |times: &[u64], size| Opportunities::new(times.iter().map(|&t| Time(t)), Size(size));
        assert_eq!(make(&[], 1500), Err(RateError::Empty));
        assert_eq!(make(&[0, 0], 1500), Err(RateError::ShortPeriod(Time::ZERO)));
        assert_eq!(make(&[5, 4], 1500), Err(RateError::Disorder(Time(4), Time(5))));
        assert_eq!(make(&[5], 0), Err(RateError::Idle));
    }
}
