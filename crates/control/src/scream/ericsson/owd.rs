//! One-way delay and its queueing part: the excess over the minimum of the last 500 s.

use super::SECOND;

/// Duration of each minimum, and number of minima kept.
const SLOT: u32 = 10 * SECOND;
const SLOTS: usize = 50;
/// A clock difference above this is negative.
const NEGATIVE: u32 = 0xFFFF_0000;

/// The minimum one-way delays in ticks, including the offset between the two clocks.
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

    /// The queueing part of this delay; `None` if it is below all minima, because a clock has changed.
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
