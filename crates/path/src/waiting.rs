//! The packets that wait for the transmitter, as a ring in order of service.
//!
//! What the meter needs of them is kept in sums that an arrival updates in constant time. For first-in first-out, the
//! packets ahead of a newcomer leave before it, so over the time that two packets wait together, the sooner start of
//! transmission ends it. With r_i the time that packet i still waits, the integral of the queue's square is
//! sum r_i + 2 sum_{i<j} r_i, and the second sum is known when j arrives: the starts of those ahead of it, less its
//! own arrival for each.

/// What becomes of a packet that leaves the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Exit {
    Crosses,
    Lost,
    Outage,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    size: u16,
    exit: Exit,
}

/// Integrals over time, from the beginning of the clock, of the queue in packets and in bytes, and of their squares.
/// Units: packets or bytes (or their squares) times nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Integrals {
    pub packets: u128,
    pub packets2: u128,
    pub bytes: u128,
    pub bytes2: u128,
}

/// Packets that have left the queue, by [`Exit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Gone {
    pub packets: [u64; 4],
    pub bytes: [u64; 4],
}

/// The queue. Its sums are exact as long as all that wait have less than 2^64 byte-nanoseconds left together (1 GB
/// for 18 s, 1 MB for 5 hours); packets that never leave are kept apart.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// When the first of them leaves; `u64::MAX` also when there is none.
    next: u64,
    head: u32,
    tail: u32,
    ring: Vec<Entry>,
    bytes: u64,
    /// The sum of their starts, and of their starts times their sizes, modulo 2^64.
    starts: u64,
    starts_bytes: u64,
    integrals: Integrals,
    /// Those that have left and those that wait.
    entered: Gone,
    pub(crate) max: u32,
}

impl Waiting {
    pub(crate) fn new() -> Waiting {
        Waiting {
            next: u64::MAX,
            head: 0,
            tail: 0,
            ring: vec![Entry { start: 0, size: 0, exit: Exit::Crosses }; 16],
            bytes: 0,
            starts: 0,
            starts_bytes: 0,
            integrals: Integrals::default(),
            entered: Gone::default(),
            max: 0,
        }
    }

    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Lets go of those whose transmission begins at `now` or before.
    #[inline]
    pub(crate) fn release(&mut self, now: u64) {
        while self.next <= now && self.head != self.tail {
            let mask = self.ring.len() - 1;
            let Entry { start, size, .. } = self.ring[self.head as usize & mask];
            self.head = self.head.wrapping_add(1);
            self.bytes -= u64::from(size);
            self.starts = self.starts.wrapping_sub(start);
            self.starts_bytes = self.starts_bytes.wrapping_sub(start.wrapping_mul(u64::from(size)));
            // Behind the last one lies an old entry, or nothing: the loop's other condition looks after that.
            self.next = if self.head == self.tail { u64::MAX } else { self.ring[self.head as usize & mask].start };
        }
    }

    /// Counts a packet that does not wait.
    #[inline]
    pub(crate) fn pass(&mut self, size: u16, exit: Exit) {
        self.entered.packets[exit as usize] += 1;
        self.entered.bytes[exit as usize] += u64::from(size);
    }

    /// Takes in a packet at `now` that leaves at `start`, later than that and not before any other.
    #[inline]
    pub(crate) fn enter(&mut self, now: u64, start: u64, size: u16, exit: Exit) {
        self.pass(size, exit);
        let (ahead, bytes_ahead, size64) = (self.packets(), self.bytes, u64::from(size));
        if ahead as usize == self.ring.len() {
            self.grow();
        }
        if ahead == 0 {
            self.next = start;
        }
        let mask = self.ring.len() - 1;
        self.ring[self.tail as usize & mask] = Entry { start, size, exit };
        self.tail = self.tail.wrapping_add(1);
        self.bytes = bytes_ahead + size64;
        self.max = self.max.max(ahead + 1);
        // What those ahead still wait, all together; the same weighted by their sizes.
        let rest = self.starts.wrapping_sub(u64::from(ahead).wrapping_mul(now));
        let rest_bytes = self.starts_bytes.wrapping_sub(bytes_ahead.wrapping_mul(now));
        self.starts = self.starts.wrapping_add(start);
        self.starts_bytes = self.starts_bytes.wrapping_add(start.wrapping_mul(size64));
        let wait = start - now;
        let sums = &mut self.integrals;
        sums.packets += u128::from(wait);
        sums.packets2 += u128::from(wait + 2 * rest);
        sums.bytes += u128::from(wait * size64);
        sums.bytes2 += u128::from(wait * size64 + 2 * rest_bytes) * u128::from(size64);
    }

    /// How many have been taken in that are not among those `gone`.
    pub(crate) fn since(&self, gone: &Gone) -> u64 {
        self.entered.packets.iter().sum::<u64>() - gone.packets.iter().sum::<u64>()
    }

    #[cold]
    fn grow(&mut self) {
        let (old, mask) = (self.packets(), self.ring.len() - 1);
        let mut ring = Vec::with_capacity(self.ring.len() * 2);
        ring.extend((0..old).map(|i| self.ring[self.head.wrapping_add(i) as usize & mask]));
        ring.resize(self.ring.len() * 2, ring[0]);
        (self.ring, self.head, self.tail) = (ring, 0, old);
    }

    /// The integrals up to `time`, and what left before it. No packet may have arrived at `time` or later. Walks the
    /// ring: what its packets add after `time` is taken off.
    pub(crate) fn up_to(&self, time: u64) -> (Integrals, Gone) {
        let (mut sums, mut gone) = (self.integrals, self.entered);
        let mask = self.ring.len() - 1;
        let mut behind = (0u128, 0u128); // packets and bytes behind the one looked at
        for i in (0..self.packets()).rev() {
            let Entry { start, size, exit } = self.ring[self.head.wrapping_add(i) as usize & mask];
            if start >= time {
                gone.packets[exit as usize] -= 1;
                gone.bytes[exit as usize] -= u64::from(size);
            }
            let (rest, size) = (u128::from(start.saturating_sub(time)), u128::from(size));
            sums.packets -= rest;
            sums.packets2 -= rest * (1 + 2 * behind.0);
            sums.bytes -= rest * size;
            sums.bytes2 -= rest * size * (size + 2 * behind.1);
            behind = (behind.0 + 1, behind.1 + size);
        }
        (sums, gone)
    }
}
