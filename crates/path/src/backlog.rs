//! The packets that wait for the transmitter, in order of service.
//!
//! A packet's departure time is known at its arrival, so an arrival only records both times; the integrals are computed
//! for many packets at once. Let at be a packet's arrival, start its departure from the queue, and q the number of
//! waiting packets. The integral of q over time is the sum of start - at. That of q^2, which counts pairs, is the sum
//! over packets j of start_j - at_j, plus twice start_i - at_j for each earlier packet i still waiting at at_j. All
//! arithmetic is on integers, hence exact.

use crate::occupancy::Occupancy;
use crate::queue_level::{Integrals, Level};

/// The fate of a packet after it leaves the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    Crosses,
    Lost,
    Outage,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: u64,
    start: u64,
    size: u16,
    exit: Exit,
}

/// Counts of packets that have left the queue, by [`Exit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Departed {
    pub packets: [u64; 4],
    pub bytes: [u64; 4],
}

/// Sums over the waiting packets.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    starts: u128,
    bytes: u64,
    byte_starts: u128,
}

impl Sums {
    fn add(&mut self, entry: &Entry) {
        let size = u64::from(entry.size);
        self.starts += u128::from(entry.start);
        self.bytes += size;
        self.byte_starts += u128::from(size) * u128::from(entry.start);
    }

    fn take(&mut self, entry: &Entry) {
        let size = u64::from(entry.size);
        self.starts -= u128::from(entry.start);
        self.bytes -= size;
        self.byte_starts -= u128::from(size) * u128::from(entry.start);
    }
}

/// The integrals of the queue level and of its square: `[packets, bytes]`, times nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Areas {
    first: [u128; 2],
    second: [u128; 2],
}

impl Areas {
    /// Adds a packet: `wait` is how long it waits, `before` the remaining waits of all packets ahead of it, summed:
    /// packets, then bytes.
    #[inline(always)]
    fn add(&mut self, size: u64, wait: u64, before: [u128; 2]) {
        let (size, wait) = (u128::from(size), u128::from(wait));
        let area = size * wait;
        self.first[0] += wait;
        self.first[1] += area;
        self.second[0] += wait + 2 * before[0];
        self.second[1] += size * (area + 2 * before[1]);
    }
}

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// A buffer, filled up to `tail`. Entries before `head` have left; entries before `booked` are included in the
    /// sums; entries before `left`, if that is beyond `head`, are known to have left.
    entries: Vec<Entry>,
    head: usize,
    booked: usize,
    left: usize,
    tail: usize,
    /// All entries from this index on have this size.
    alike: (usize, u16),
    /// The largest packet size so far.
    largest: u16,
    /// Sums over the booked packets that wait.
    sums: Sums,
    areas: Areas,
    /// The maximum number of packets that waited at once, among those booked.
    pub(crate) max: usize,
    /// Counts of all packets, both gone and waiting.
    pub(crate) entered: Departed,
    /// The occupancy histogram, optional: updated at each change.
    pub(crate) occupancy: Option<Box<(Level, Occupancy)>>,
}

impl Waiting {
    pub(crate) fn new(occupancy: Option<Occupancy>) -> Waiting {
        Waiting {
            entries: vec![Entry { at: 0, start: 0, size: 0, exit: Exit::Crosses }; 16],
            head: 0,
            booked: 0,
            left: 0,
            tail: 0,
            alike: (0, 0),
            largest: 0,
            sums: Sums::default(),
            areas: Areas::default(),
            max: 0,
            entered: Departed::default(),
            occupancy: occupancy.map(|occupancy| Box::new((Level::default(), occupancy))),
        }
    }

    /// Counts a packet by its exit, whether or not it waits.
    #[inline(always)]
    pub(crate) fn count(&mut self, size: u16, exit: Exit) {
        self.entered.packets[exit as usize] += 1;
        self.entered.bytes[exit as usize] += u64::from(size);
    }

    /// Enqueues a packet at `now` that leaves at `start`, which is later than `now` and no earlier than any other's.
    #[inline(always)]
    pub(crate) fn enter(&mut self, now: u64, start: u64, size: u16, exit: Exit) {
        if self.tail >= self.entries.len() {
            self.make_room(now);
        }
        if size != self.alike.1 {
            self.alike = (self.tail, size);
            self.largest = self.largest.max(size);
        }
        self.entries[self.tail] = Entry { at: now, start, size, exit };
        self.tail += 1;
    }

    /// Whether at least `limit` packets wait at `now`.
    #[inline(always)]
    pub(crate) fn is_full(&mut self, now: u64, limit: u32) -> bool {
        self.tail - self.left >= limit as usize && self.is_full_of_those_left(now, limit)
    }

    fn is_full_of_those_left(&mut self, now: u64, limit: u32) -> bool {
        self.left = self.left.max(self.head);
        self.left += self.entries[self.left..self.tail].iter().take_while(|entry| entry.start <= now).count();
        self.tail - self.left >= limit as usize
    }

    /// Packets that wait; call [`Waiting::release`] first.
    #[inline]
    pub(crate) fn packets(&self) -> usize {
        self.tail - self.head
    }

    /// Bytes that wait at `now`; releases first.
    #[inline]
    pub(crate) fn bytes(&mut self, now: u64) -> u64 {
        self.release(now);
        self.sums.bytes
    }

    /// Books arrivals up to `now`, and removes packets whose transmission has begun by then.
    #[inline]
    pub(crate) fn release(&mut self, now: u64) {
        if self.packets() > 0 {
            self.settle(now);
        }
    }

    #[inline(never)]
    fn settle(&mut self, now: u64) {
        let latest = self.entries[self.tail - 1].start;
        // no newly booked packet waits longer than from the first one's arrival to the last one's start
        let wait = self.entries[self.booked..self.tail].first().map_or(0, |first| latest - first.at);
        let product = |factors: [u64; 3]| factors.into_iter().try_fold(4u64, u64::checked_mul);
        let (packets, size) = (self.packets() as u64, u64::from(self.largest));
        if product([packets, size, latest]).and(product([packets, packets, wait])).is_none() || self.occupancy.is_some()
        {
            self.settle_wide(now);
        } else if self.alike.0 <= self.head {
            self.settle_narrow::<true>(now);
        } else {
            self.settle_narrow::<false>(now);
        }
    }

    /// Settles with 64-bit sums; only the sum of squared bytes needs more. `ALIKE`: all packets have one size, so bytes
    /// follow from packet counts.
    fn settle_narrow<const ALIKE: bool>(&mut self, now: u64) {
        let (mut front, mut new) = (&self.entries[self.head..self.tail], &self.entries[self.booked..self.tail]);
        let mut max = self.max;
        let (mut starts, mut bytes, mut byte_starts) =
            (self.sums.starts as u64, self.sums.bytes, self.sums.byte_starts as u64);
        let (mut first, mut second) = ([0u64; 2], (0u64, 0u128));
        loop {
            // a packet to be booked has not left at its arrival, so the scan of the front stops there
            let time = new.first().map_or(now, |entry| entry.at);
            while let [Entry { start, size, .. }, rest @ ..] = front
                && *start <= time
            {
                starts -= start;
                if !ALIKE {
                    bytes -= u64::from(*size);
                    byte_starts -= u64::from(*size) * start;
                }
                front = rest;
            }
            let [Entry { at, start, size, .. }, rest @ ..] = new else { break };
            let ahead = front.len() - new.len();
            let wait = start - at;
            first[0] += wait;
            second.0 += wait + 2 * (starts - ahead as u64 * at);
            starts += start;
            if !ALIKE {
                let size = u64::from(*size);
                first[1] += size * wait;
                second.1 += u128::from(size) * u128::from(size * wait + 2 * (byte_starts - bytes * at));
                bytes += size;
                byte_starts += size * start;
            }
            max = max.max(ahead + 1);
            new = rest;
        }
        let left = front.len();
        (self.head, self.booked, self.max) = (self.tail - left, self.tail, max);
        let wide = u128::from;
        if ALIKE {
            let size = u64::from(self.alike.1);
            (bytes, first[1], second.1) = (left as u64 * size, first[0] * size, wide(second.0) * wide(size * size));
            byte_starts = size * starts;
        }
        self.sums = Sums { starts: wide(starts), bytes, byte_starts: wide(byte_starts) };
        for (sum, more) in self.areas.first.iter_mut().zip(first) {
            *sum += wide(more);
        }
        self.areas.second[0] += wide(second.0);
        self.areas.second[1] += second.1;
    }

    /// Settles for any magnitude.
    fn settle_wide(&mut self, now: u64) {
        while self.booked < self.tail {
            let entry = self.entries[self.booked];
            self.forget_until(entry.at);
            let (ahead, at) = ((self.booked - self.head) as u128, u128::from(entry.at));
            let before = [self.sums.starts - ahead * at, self.sums.byte_starts - u128::from(self.sums.bytes) * at];
            self.areas.add(u64::from(entry.size), entry.start - entry.at, before);
            self.sums.add(&entry);
            self.booked += 1;
            self.max = self.max.max(self.booked - self.head);
            if let Some(watch) = &mut self.occupancy {
                watch.0.change(entry.at, [1.0, f64::from(entry.size)], &mut watch.1);
            }
        }
        self.forget_until(now);
    }

    fn forget_until(&mut self, now: u64) {
        while self.head < self.booked && self.entries[self.head].start <= now {
            let entry = self.entries[self.head];
            self.sums.take(&entry);
            self.head += 1;
            if let Some(watch) = &mut self.occupancy {
                watch.0.change(entry.start, [-1.0, -f64::from(entry.size)], &mut watch.1);
            }
        }
    }

    /// Discards entries that left by `now`. If more than half remain, doubles the buffer, so that the next compaction
    /// is not soon.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, now: u64) {
        self.release(now);
        self.entries.copy_within(self.head..self.tail, 0);
        self.left = self.left.saturating_sub(self.head);
        self.alike.0 = self.alike.0.saturating_sub(self.head);
        self.tail -= self.head;
        (self.head, self.booked) = (0, self.tail);
        if self.tail > self.entries.len() / 2 {
            self.entries.resize(self.entries.len() * 2, self.entries[0]);
        }
    }

    /// The integrals up to `time`, and the packets that left before it. No packet may have arrived after `time`.
    pub(crate) fn up_to(&mut self, time: u64) -> (Integrals, Departed) {
        // at time zero nothing leaves, but arrivals are booked
        self.release(time.saturating_sub(1));
        if let Some(watch) = &mut self.occupancy {
            watch.0.integrate(time, &mut watch.1);
        }
        // booked packets count their whole wait: subtract the part after `time`
        let (mut ahead, mut departed, mut before) = (Areas::default(), self.entered, [0; 2]);
        for &Entry { start, size, exit, .. } in &self.entries[self.head..self.tail] {
            departed.packets[exit as usize] -= 1;
            departed.bytes[exit as usize] -= u64::from(size);
            ahead.add(u64::from(size), start - time, before);
            before[0] += u128::from(start - time);
            before[1] += u128::from(start - time) * u128::from(size);
        }
        let past = |all: [u128; 2], ahead: [u128; 2]| [0, 1].map(|i| (all[i] - ahead[i]) as f64);
        let Areas { first, second } = self.areas;
        (Integrals { first: past(first, ahead.first), second: past(second, ahead.second) }, departed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Arrivals and starts of a busy link, as integers: gap, service time, size.
    fn packets() -> impl Strategy<Value = Vec<(u64, u64, u16)>> {
        let size = prop_oneof![Just(1000u16), Just(1000), 40..=1500u16];
        prop::collection::vec((0..30u64, 1..25u64, size), 1..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against the definition: the waiting packets in each nanosecond, counted.
        #[test]
        fn the_account_is_the_sum_over_each_nanosecond(
            packets in packets(),
            looks in prop::collection::vec(0..3000u64, 0..5),
            scale in prop_oneof![Just(1u64), Just(1_000_000), Just(10_000_000_000_000)],
            watched: bool,
        ) {
            let occupancy = watched.then(|| Occupancy::new(crate::Limit::Packets(10)));
            let mut waiting = Waiting::new(occupancy);
            let (mut now, mut free, mut all) = (0u64, 0u64, Vec::new());
            let mut looks = looks;
            looks.sort_unstable();
            let check = |waiting: &mut Waiting, all: &[(u64, u64, u16)], time: u64| {
                let (mut first, mut second) = ([0f64; 2], [0f64; 2]);
                for t in 0..time {
                    let there = all.iter().filter(|&&(at, start, _)| at <= t && t < start);
                    let (n, bytes) = there.fold((0u64, 0u64), |(n, b), p| (n + 1, b + u64::from(p.2)));
                    for (i, level) in [n as f64, bytes as f64].into_iter().enumerate() {
                        first[i] += level * scale as f64;
                        second[i] += level * level * scale as f64;
                    }
                }
                let (integrals, departed) = waiting.up_to(time * scale);
                for i in 0..2 {
                    assert!((integrals.first[i] / first[i] - 1.0).abs() < 1e-12 || integrals.first[i] == first[i]);
                    assert!((integrals.second[i] / second[i] - 1.0).abs() < 1e-12 || integrals.second[i] == second[i]);
                }
                let left = all.iter().filter(|&&(_, start, _)| start < time);
                assert_eq!(departed.packets[0], left.clone().count() as u64);
                assert_eq!(departed.bytes[0], left.map(|p| u64::from(p.2)).sum::<u64>());
            };
            let mut max = 0;
            for (gap, service, size) in packets {
                now += gap;
                while looks.first().is_some_and(|&look| look <= now) {
                    let look = looks.remove(0);
                    check(&mut waiting, &all, look);
                }
                waiting.count(size, Exit::Crosses);
                if free > now {
                    waiting.enter(now * scale, free * scale, size, Exit::Crosses);
                } // else it does not wait
                all.push((now, free.max(now), size));
                max = max.max(all.iter().filter(|&&(at, start, _)| at <= now && now < start).count() as u64);
                free = free.max(now) + service;
            }
            check(&mut waiting, &all, free);
            prop_assert_eq!(waiting.max as u64, max);
            prop_assert_eq!(waiting.packets(), 0);
        }
    }
}
