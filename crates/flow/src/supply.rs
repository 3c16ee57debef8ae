//! The application's data as packets, numbered from 0 and sent once.

use std::collections::VecDeque;

/// Unlimited supply: more packets than a flow can number.
const ENDLESS: u32 = u32::MAX - 1;

/// The packets of a flow without retransmission: those sent, and those waiting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supply {
    /// The next packet; one past the last that the application has supplied.
    next: u32,
    end: u32,
    /// Packets that are not full, in order: number and payload size.
    shorts: VecDeque<(u32, u16)>,
}

impl Supply {
    /// The next packet's number, which is the number of packets sent.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// One past the last supplied packet.
    #[inline]
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// Whether packets wait.
    #[inline]
    pub(crate) fn is_left(&self) -> bool {
        self.next < self.end
    }

    /// The number of waiting packets that are not full.
    pub(crate) fn shorts(&self) -> usize {
        self.shorts.len()
    }

    /// Whether the supply is endless.
    #[inline]
    pub(crate) fn is_endless(&self) -> bool {
        self.end == ENDLESS
    }

    /// Adds `bytes` as full packets of `segment` and, for a remainder, a short last one; `whole` pads that. Returns the
    /// number of packets.
    pub(crate) fn add(&mut self, bytes: u64, segment: u16, whole: bool) -> u32 {
        let segment = u64::from(segment.max(1));
        let (full, rest) = (bytes / segment, bytes % segment);
        let packets = u32::try_from(full + u64::from(rest > 0)).unwrap_or(u32::MAX);
        self.end = self.end.saturating_add(packets).min(ENDLESS);
        if rest > 0 && !whole && !self.is_endless() {
            self.shorts.push_back((self.end - 1, rest as u16));
        }
        packets
    }

    /// Makes the supply endless.
    pub(crate) fn add_endlessly(&mut self) {
        self.end = ENDLESS;
    }

    /// Sets the number of waiting packets, all of them full.
    #[inline]
    pub(crate) fn set_left(&mut self, packets: u32) {
        self.end = self.next.saturating_add(packets).min(ENDLESS);
    }

    /// Discards unsent packets.
    pub(crate) fn clear(&mut self) {
        self.end = self.next;
        self.shorts.clear();
    }

    /// Uses the next number for a packet without payload; call it only if nothing waits. Returns the number.
    pub(crate) fn pass(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.end = self.end.max(self.next);
        number
    }

    /// Takes the next packet: its number and its payload size, which is `full` unless it is a short one.
    #[inline]
    pub(crate) fn take(&mut self, full: u16) -> (u32, u16) {
        let number = self.next;
        self.next += 1;
        match self.shorts.front() {
            Some(&(short, payload)) if short == number => {
                self.shorts.pop_front();
                (number, payload)
            }
            _ => (number, full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_and_short_packets_keep_their_place() {
        let mut supply = Supply::default();
        assert_eq!((supply.add(250, 100, false), supply.add(250, 100, true), supply.end()), (3, 3, 6));
        let taken: Vec<_> = (0..6).map(|_| supply.take(100)).collect();
        assert_eq!(taken, [(0, 100), (1, 100), (2, 50), (3, 100), (4, 100), (5, 100)]);
        assert!(!supply.is_left());
        supply.add(30, 100, false);
        supply.clear();
        assert!(!supply.is_left());
        supply.add(100, 100, false);
        assert_eq!(supply.take(100), (6, 100), "what was cleared is forgotten");
    }

    #[test]
    fn numbers_end_before_they_overflow() {
        let mut supply = Supply::default();
        supply.add(u64::MAX, 1, false);
        assert!(supply.is_endless());
        supply.set_left(u32::MAX);
        assert_eq!(supply.end(), ENDLESS);
    }
}
