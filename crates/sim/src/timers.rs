//! One lazy timer entry for each endpoint of a host.
//!
//! An entry may be earlier than its endpoint's deadline (the endpoint then does nothing and the entry moves on), but
//! never later. A retransmission timer that every acknowledgement pushes back therefore costs nothing.

use paceline_units::Time;

/// A binary heap of (entry, slot), with each slot's position in it. Entries change in O(log n); ties go to the lower
/// slot.
#[derive(Debug, Default)]
pub struct Timers {
    entries: Vec<Time>,
    heap: Vec<u32>,
    place: Vec<u32>,
    first: Time,
}

impl Timers {
    /// Timers with one entry per slot.
    #[must_use]
    pub fn new(entries: Vec<Time>) -> Timers {
        let n = entries.len() as u32;
        let mut timers = Timers { entries, heap: (0..n).collect(), place: (0..n).collect(), first: Time::NEVER };
        for i in (0..timers.heap.len() / 2).rev() {
            timers.sink(i);
        }
        timers.note_first();
        timers
    }

    /// The earliest entry.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> Time {
        self.first
    }

    fn note_first(&mut self) {
        self.first = self.heap.first().map_or(Time::NEVER, |&slot| self.entries[slot as usize]);
    }

    /// The slot of the earliest entry.
    #[must_use]
    pub fn first_slot(&self) -> usize {
        self.heap[0] as usize
    }

    /// Whether there is only one entry, which is cheap to move back.
    #[inline(always)]
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.entries.len() == 1
    }

    /// Moves the entry of a slot to `time`, which is earlier.
    #[inline]
    pub fn earlier(&mut self, slot: usize, time: Time) {
        self.entries[slot] = time;
        if self.entries.len() == 1 {
            self.first = time;
        } else {
            self.rise_from(slot);
        }
    }

    #[cold]
    fn rise_from(&mut self, slot: usize) {
        self.rise(self.place[slot] as usize);
        self.note_first();
    }

    /// Sets the entry of a slot to `time`, later or earlier.
    #[inline]
    pub fn set(&mut self, slot: usize, time: Time) {
        let later = time > self.entries[slot];
        self.entries[slot] = time;
        if self.entries.len() == 1 {
            self.first = time;
        } else {
            self.move_entry(slot, later);
        }
    }

    fn move_entry(&mut self, slot: usize, later: bool) {
        let at = self.place[slot] as usize;
        if later {
            self.sink(at)
        } else {
            self.rise(at)
        }
        self.note_first();
    }

    fn before(&self, a: u32, b: u32) -> bool {
        (self.entries[a as usize], a) < (self.entries[b as usize], b)
    }

    fn put(&mut self, at: usize, slot: u32) {
        self.heap[at] = slot;
        self.place[slot as usize] = at as u32;
    }

    fn rise(&mut self, mut at: usize) {
        let slot = self.heap[at];
        while at > 0 && self.before(slot, self.heap[(at - 1) / 2]) {
            self.put(at, self.heap[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        self.put(at, slot);
    }

    fn sink(&mut self, mut at: usize) {
        let slot = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.before(self.heap[child + 1], self.heap[child]) {
                child += 1;
            }
            if self.before(slot, self.heap[child]) {
                break;
            }
            self.put(at, self.heap[child]);
            at = child;
        }
        self.put(at, slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_the_least(start in prop::collection::vec(0u64..50, 1..20), changes in prop::collection::vec((any::<prop::sample::Index>(), 0u64..50), 0..60)) {
            let mut plain: Vec<Time> = start.iter().map(|&t| Time(t)).collect();
            let mut timers = Timers::new(plain.clone());
            for (slot, time) in changes {
                let slot = slot.index(plain.len());
                plain[slot] = Time(time);
                timers.set(slot, Time(time));
                let min = plain.iter().enumerate().map(|(i, &t)| (t, i)).min().unwrap();
                prop_assert_eq!((timers.first(), timers.first_slot()), min);
            }
        }
    }
}
