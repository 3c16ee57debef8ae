//! Send time and number of transmissions of every outstanding segment, for those who need them.

use paceline_units::Time;
use std::collections::VecDeque;

/// Entries of the segments from `first` on.
#[derive(Debug)]
pub(super) struct Clock {
    first: u32,
    entries: VecDeque<(Time, u32)>,
}

impl Clock {
    pub(super) fn new(first: u32) -> Clock {
        Clock { first, entries: VecDeque::new() }
    }

    /// The segment leaves, for the first time or again.
    pub(super) fn sent(&mut self, seq: u32, now: Time) {
        let Some(i) = seq.checked_sub(self.first) else { return };
        while self.entries.len() <= i as usize {
            self.entries.push_back((now, 0));
        }
        let entry = &mut self.entries[i as usize];
        *entry = (now, entry.1 + 1);
    }

    /// When the segment was last sent, and how often.
    pub(super) fn get(&self, seq: u32) -> Option<(Time, u32)> {
        let i = seq.checked_sub(self.first)?;
        self.entries.get(i as usize).copied().filter(|e| e.1 > 0)
    }

    /// Everything below `una` is acknowledged.
    pub(super) fn trim(&mut self, una: u32) {
        while self.first < una {
            self.entries.pop_front();
            self.first += 1;
        }
    }
}
