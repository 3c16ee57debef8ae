//! The packets that wait for the transmitter, as a ring in order of service.

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

/// Integrals over time, from the beginning of the clock, of the queue and of its square: `[packets, bytes]`, times
/// nanoseconds. Sums of whole numbers, so exact up to 2^53 and then to about one part in 10^12.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Integrals {
    pub first: [f64; 2],
    pub second: [f64; 2],
}

/// Packets that have left the queue, by [`Exit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Gone {
    pub packets: [u64; 4],
    pub bytes: [u64; 4],
}

/// How much waits, and its integrals.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// What waits. Whole numbers of two sizes, so that they are read as they were written: two equal ones are read as
    /// one vector just after they were written apart, for which the processor waits.
    packets: u32,
    bytes: u64,
    /// Up to when the integrals reach. While nothing waits they need not be carried on.
    reached: u64,
    integrals: Integrals,
}

impl Level {
    /// Carries the integrals on to `time`, up to which the level has been as it is.
    #[inline]
    fn integrate(&mut self, time: u64) {
        // By way of i64, which is one instruction.
        let span = (time - self.reached) as i64 as f64;
        self.reached = time;
        let now = [f64::from(self.packets), self.bytes as i64 as f64];
        for (i, level) in now.into_iter().enumerate() {
            self.integrals.first[i] += level * span;
            self.integrals.second[i] += level * span * level;
        }
    }

    #[inline]
    fn rise(&mut self, time: u64, size: u16) {
        self.integrate(time);
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    #[inline]
    fn fall(&mut self, time: u64, size: u16) {
        self.integrate(time);
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// When the first of them leaves; `u64::MAX` also when there is none.
    next: u64,
    head: u32,
    tail: u32,
    ring: Vec<Entry>,
    level: Level,
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
            level: Level::default(),
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
        self.level.bytes
    }

    /// Lets go of those whose transmission begins at `now` or before.
    #[inline]
    pub(crate) fn release(&mut self, now: u64) {
        if self.next <= now {
            let (mut level, mut head, mask) = (self.level, self.head, self.ring.len() - 1);
            while head != self.tail {
                let Entry { start, size, .. } = self.ring[head as usize & mask];
                self.next = start;
                if start > now {
                    break;
                }
                level.fall(start, size);
                head = head.wrapping_add(1);
            }
            if head == self.tail {
                self.next = u64::MAX;
            }
            (self.level, self.head) = (level, head);
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
        self.level.rise(now, size);
        let ahead = self.packets();
        if ahead as usize == self.ring.len() {
            self.grow();
        }
        if ahead == 0 {
            self.next = start;
        }
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

    /// The integrals up to `time`, and what left before it. No packet may have arrived after `time`.
    pub(crate) fn up_to(&mut self, time: u64) -> (Integrals, Gone) {
        if time > 0 {
            self.release(time - 1);
        }
        self.level.integrate(time);
        let (mut gone, mask) = (self.entered, self.ring.len() - 1);
        for i in 0..self.packets() {
            let Entry { size, exit, .. } = self.ring[self.head.wrapping_add(i) as usize & mask];
            gone.packets[exit as usize] -= 1;
            gone.bytes[exit as usize] -= u64::from(size);
        }
        (self.level.integrals, gone)
    }
}
