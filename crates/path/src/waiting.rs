//! The packets that wait for the transmitter, as a ring in order of service.

use crate::occupancy::Occupancy;

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

/// Who is told how long each level lasted.
pub(crate) trait Watch {
    /// `packets` and `bytes` waited for `span` nanoseconds.
    fn lasted(&mut self, level: [f64; 2], span: f64);
}

/// Nobody.
impl Watch for () {
    #[inline(always)]
    fn lasted(&mut self, _: [f64; 2], _: f64) {}
}

/// How much waits, and its integrals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    /// What waits: packets and bytes. Whole numbers; as floats they need not be made ones with each step.
    now: [f64; 2],
    /// Up to when the integrals reach. While nothing waits they need not be carried on.
    reached: u64,
    pub(crate) integrals: Integrals,
}

impl Level {
    /// Carries the integrals on to `time`, up to which the level has been as it is.
    #[inline(always)]
    pub(crate) fn integrate(&mut self, time: u64, watch: &mut impl Watch) {
        // By way of i64, which is one instruction.
        let span = (time - self.reached) as i64 as f64;
        self.reached = time;
        watch.lasted(self.now, span);
        for i in 0..2 {
            let area = self.now[i] * span;
            self.integrals.first[i] += area;
            self.integrals.second[i] += area * self.now[i];
        }
    }

    #[inline(always)]
    fn rise(&mut self, time: u64, size: u16, watch: &mut impl Watch) {
        self.change(time, [1.0, f64::from(size)], watch);
    }

    #[inline(always)]
    fn fall(&mut self, time: u64, size: u16, watch: &mut impl Watch) {
        self.change(time, [-1.0, f64::from(-i32::from(size))], watch);
    }

    /// Both at once, so that it is done with vectors.
    #[inline(always)]
    pub(crate) fn change(&mut self, time: u64, by: [f64; 2], watch: &mut impl Watch) {
        self.integrate(time, watch);
        for (now, by) in self.now.iter_mut().zip(by) {
            *now += by;
        }
    }
}

/// What changes with every packet: small, so that a batch can have it in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    /// When the first of those that wait leaves; `u64::MAX` also when there is none.
    next: u64,
    head: u32,
    tail: u32,
    level: Level,
    /// The most packets that waited at once.
    pub(crate) max: u32,
}

impl Count {
    #[inline(always)]
    pub(crate) fn packets(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Lets go of those whose transmission begins at `now` or before.
    #[inline(always)]
    pub(crate) fn release(&mut self, now: u64, ring: &Ring, watch: &mut impl Watch) {
        while self.next <= now {
            if self.head == self.tail {
                self.next = u64::MAX;
                return;
            }
            let Entry { start, size, .. } = ring.0[ring.place(self.head)];
            self.next = start;
            if start <= now {
                self.level.fall(start, size, watch);
                self.head = self.head.wrapping_add(1);
            }
        }
    }

    /// Takes in a packet at `now` that leaves at `start`, later than that and not before any other.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        (now, start): (u64, u64),
        (size, exit): (u16, Exit),
        ring: &mut Ring,
        watch: &mut impl Watch,
    ) {
        self.level.rise(now, size, watch);
        let ahead = self.packets();
        if ahead as usize == ring.0.len() {
            ring.grow(self.head);
        }
        if ahead == 0 {
            self.next = start;
        }
        let place = ring.place(self.tail);
        ring.0[place] = Entry { start, size, exit };
        self.tail = self.tail.wrapping_add(1);
        self.max = self.max.max(ahead + 1);
    }
}

/// A power of two of places; a packet's is its number modulo that.
#[derive(Clone, Debug)]
pub(crate) struct Ring(Vec<Entry>);

impl Ring {
    #[inline(always)]
    fn place(&self, number: u32) -> usize {
        number as usize & (self.0.len() - 1)
    }

    /// Doubles it, full of the packets from number `head` on.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, head: u32) {
        let old = self.0.len();
        let mut ring = vec![self.0[0]; old * 2];
        for number in (0..old as u32).map(|i| head.wrapping_add(i)) {
            ring[number as usize & (old * 2 - 1)] = self.0[self.place(number)];
        }
        self.0 = ring;
    }
}

/// The queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) count: Count,
    pub(crate) ring: Ring,
    /// Those that have left and those that wait.
    pub(crate) entered: Gone,
    /// Asked for by few: what is told of it is told by [`Waiting::release`] and [`Waiting::enter`], not by [`Count`]'s.
    pub(crate) occupancy: Option<Box<Occupancy>>,
}

impl Waiting {
    pub(crate) fn new(occupancy: Option<Occupancy>) -> Waiting {
        Waiting {
            count: Count { next: u64::MAX, head: 0, tail: 0, level: Level::default(), max: 0 },
            ring: Ring(vec![Entry { start: 0, size: 0, exit: Exit::Crosses }; 16]),
            entered: Gone::default(),
            occupancy: occupancy.map(Box::new),
        }
    }

    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.count.packets()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.count.level.now[1] as u64
    }

    /// As [`Count::release`].
    #[inline]
    pub(crate) fn release(&mut self, now: u64) {
        match &mut self.occupancy {
            None => self.count.release(now, &self.ring, &mut ()),
            Some(watch) => self.count.release(now, &self.ring, &mut **watch),
        }
    }

    /// Counts a packet that does not wait.
    #[inline]
    pub(crate) fn pass(&mut self, size: u16, exit: Exit) {
        self.entered.packets[exit as usize] += 1;
        self.entered.bytes[exit as usize] += u64::from(size);
    }

    /// As [`Count::enter`].
    #[inline]
    pub(crate) fn enter(&mut self, now: u64, start: u64, size: u16, exit: Exit) {
        self.pass(size, exit);
        match &mut self.occupancy {
            None => self.count.enter((now, start), (size, exit), &mut self.ring, &mut ()),
            Some(watch) => self.count.enter((now, start), (size, exit), &mut self.ring, &mut **watch),
        }
    }

    /// The integrals up to `time`, and what left before it. No packet may have arrived after `time`.
    pub(crate) fn up_to(&mut self, time: u64) -> (Integrals, Gone) {
        if time > 0 {
            self.release(time - 1);
        }
        match &mut self.occupancy {
            None => self.count.level.integrate(time, &mut ()),
            Some(watch) => self.count.level.integrate(time, &mut **watch),
        }
        let mut gone = self.entered;
        for i in 0..self.packets() {
            let Entry { size, exit, .. } = self.ring.0[self.ring.place(self.count.head.wrapping_add(i))];
            gone.packets[exit as usize] -= 1;
            gone.bytes[exit as usize] -= u64::from(size);
        }
        (self.count.level.integrals, gone)
    }
}
