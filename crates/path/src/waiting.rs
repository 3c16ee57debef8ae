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
/// Units: packets or bytes (or their squares) times nanoseconds. 128 bits, so that a packet that waits for ever (it
/// starts at 2^64 - 1) is a number like any other.
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

#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// When the first of them leaves; `u64::MAX` also when there is none.
    next: u64,
    head: u32,
    tail: u32,
    ring: Vec<Entry>,
    bytes: u64,
    /// The sum of their starts, and of their starts times their sizes.
    starts: u128,
    starts_bytes: u128,
    pub(crate) integrals: Integrals,
    pub(crate) gone: Gone,
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
            gone: Gone::default(),
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
            let entry = self.ring[self.head as usize & mask];
            self.head = self.head.wrapping_add(1);
            self.bytes -= u64::from(entry.size);
            self.starts -= u128::from(entry.start);
            self.starts_bytes -= u128::from(entry.start) * u128::from(entry.size);
            self.leave(entry.size, entry.exit);
            self.next = if self.head == self.tail { u64::MAX } else { self.ring[self.head as usize & mask].start };
        }
    }

    /// Counts a packet that leaves the queue.
    #[inline]
    pub(crate) fn leave(&mut self, size: u16, exit: Exit) {
        self.gone.packets[exit as usize] += 1;
        self.gone.bytes[exit as usize] += u64::from(size);
    }

    /// Takes in a packet at `now` that leaves at `start`, later than that and not before any other.
    #[inline]
    pub(crate) fn enter(&mut self, now: u64, start: u64, size: u16, exit: Exit) {
        let (ahead, bytes_ahead) = (self.packets(), self.bytes);
        if ahead as usize == self.ring.len() {
            self.grow();
        }
        if ahead == 0 {
            self.next = start;
        }
        let (wait, size128) = (u128::from(start - now), u128::from(size));
        // What those ahead still wait, all together; the same weighted by their sizes.
        let rest = self.starts - u128::from(ahead) * u128::from(now);
        let rest_bytes = self.starts_bytes - u128::from(bytes_ahead) * u128::from(now);
        let sums = &mut self.integrals;
        sums.packets += wait;
        sums.packets2 += wait + 2 * rest;
        sums.bytes += wait * size128;
        sums.bytes2 += (wait * size128 + 2 * rest_bytes) * size128;
        self.starts += u128::from(start);
        self.starts_bytes += u128::from(start) * size128;
        self.bytes = bytes_ahead + u64::from(size);
        let mask = self.ring.len() - 1;
        self.ring[self.tail as usize & mask] = Entry { start, size, exit };
        self.tail = self.tail.wrapping_add(1);
        self.max = self.max.max(ahead + 1);
    }

    #[cold]
    fn grow(&mut self) {
        let (old, mask) = (self.packets(), self.ring.len() - 1);
        let mut ring = Vec::with_capacity(self.ring.len() * 2);
        ring.extend((0..old).map(|i| self.ring[self.head.wrapping_add(i) as usize & mask]));
        ring.resize(self.ring.len() * 2, ring[0]);
        (self.ring, self.head, self.tail) = (ring, 0, old);
    }

    /// The integrals up to `time`: those of now, less what the packets that wait will add after `time`. No packet may
    /// have arrived after `time`. Walks the ring.
    pub(crate) fn integrals_at(&self, time: u64) -> Integrals {
        let mut sums = self.integrals;
        let mask = self.ring.len() - 1;
        let mut behind = (0u128, 0u128); // packets and bytes behind the one looked at
        for i in (0..self.packets()).rev() {
            let entry = self.ring[self.head.wrapping_add(i) as usize & mask];
            let (rest, size) = (u128::from(entry.start.saturating_sub(time)), u128::from(entry.size));
            sums.packets -= rest;
            sums.packets2 -= rest * (1 + 2 * behind.0);
            sums.bytes -= rest * size;
            sums.bytes2 -= rest * size * (size + 2 * behind.1);
            behind = (behind.0 + 1, behind.1 + size);
        }
        sums
    }
}
