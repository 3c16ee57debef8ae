//! One-way delay, and what of it is queue: the excess over the least of the last 500 s.

use super::SECOND;

/// How long a minimum is taken, and how many of them are kept.
const SLOT: u32 = 10 * SECOND;
const SLOTS: usize = 50;
/// Greater than this, a difference of clocks is one below zero.
const NEGATIVE: u32 = 0xFFFF_0000;

/// The least one-way delays, in ticks with whatever the two clocks differ by.
#[derive(Clone, Debug)]
pub(super) struct Owd {
    current_min: u32,
    slots: [u32; SLOTS],
    place: usize,
    slots_min: u32,
    since: u32,
}

impl Default for Owd {
    fn default() -> Owd {
        Owd { current_min: u32::MAX, slots: [u32::MAX; SLOTS], place: 0, slots_min: u32::MAX, since: 0 }
    }
}

impl Owd {
    pub(super) fn begin(&mut self, now: u32) {
        self.since = now;
    }

    pub(super) fn forget(&mut self) {
        self.current_min = u32::MAX;
        self.slots = [u32::MAX; SLOTS];
        self.slots_min = u32::MAX;
    }

    /// What of this delay is queue; `None` if it lies below the least of all, and the clocks are not what they were.
    pub(super) fn queueing(&mut self, now: u32, delay: u32) -> Option<u32> {
        self.current_min = self.current_min.min(delay);
        if now.wrapping_sub(self.since) >= SLOT {
            self.place = (self.place + 1) % SLOTS;
            self.slots[self.place] = self.current_min;
            self.since = now;
            self.current_min = u32::MAX;
            self.slots_min = self.slots.iter().copied().min().unwrap_or(u32::MAX);
        }
        let queueing = delay.wrapping_sub(self.current_min.min(self.slots_min));
        (queueing <= NEGATIVE).then_some(queueing)
    }
}
