//! Send time and number of transmissions of every outstanding segment, for those who need them.

use paceline_units::Time;

/// Transmissions are counted in the low bits of an entry, up to 255; the rest is the time (2^56 ns: two years).
const COUNT_BITS: u32 = 8;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Entries of the segments `first..end`, in a ring.
#[derive(Debug)]
pub(super) struct Clock {
    first: u32,
    end: u32,
    ring: Vec<u64>,
}

impl Clock {
    pub(super) fn new(first: u32) -> Clock {
        Clock { first, end: first, ring: vec![0; 64] }
    }

    #[inline]
    fn place(&self, seq: u32) -> usize {
        seq as usize & (self.ring.len() - 1)
    }

    /// The segment leaves, for the first time or again.
    #[inline]
    pub(super) fn sent(&mut self, seq: u32, now: Time) {
        if seq == self.end {
            if (self.end - self.first) as usize == self.ring.len() {
                self.grow();
            }
            self.end += 1;
            let i = self.place(seq);
            self.ring[i] = now.0 << COUNT_BITS | 1;
        } else if (self.first..self.end).contains(&seq) {
            let i = self.place(seq);
            let count = (self.ring[i] & COUNT_MASK).min(COUNT_MASK - 1) + 1;
            self.ring[i] = now.0 << COUNT_BITS | count;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![0; self.ring.len() * 2];
        for seq in self.first..self.end {
            ring[seq as usize & (self.ring.len() * 2 - 1)] = self.ring[self.place(seq)];
        }
        self.ring = ring;
    }

    /// When the segment was last sent, and how often.
    #[inline]
    pub(super) fn get(&self, seq: u32) -> Option<(Time, u32)> {
        let entry = (self.first..self.end).contains(&seq).then(|| self.ring[self.place(seq)])?;
        Some((Time(entry >> COUNT_BITS), (entry & COUNT_MASK) as u32))
    }

    /// Everything below `una` is acknowledged.
    #[inline]
    pub(super) fn trim(&mut self, una: u32) {
        self.first = self.first.max(una);
        self.end = self.end.max(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_what_is_outstanding() {
        let mut clock = Clock::new(7);
        for seq in 7..300 {
            clock.sent(seq, Time(u64::from(seq)));
        }
        clock.sent(8, Time(1000));
        assert_eq!(clock.get(7), Some((Time(7), 1)));
        assert_eq!(clock.get(8), Some((Time(1000), 2)));
        assert_eq!(clock.get(299), Some((Time(299), 1)));
        clock.trim(9);
        assert_eq!((clock.get(8), clock.get(9), clock.get(300)), (None, Some((Time(9), 1)), None));
    }
}
