//! The application's data that no connection has sent yet.

use std::collections::VecDeque;

/// Packets to send, by any connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Supply {
    endless: bool,
    left: u64,
    /// Number of packets sent, which is the next packet's number within the flow.
    sent: u64,
    /// Packets that are not full, in order: number within the flow and payload size.
    shorts: VecDeque<(u64, u16)>,
}

impl Supply {
    /// Adds full packets, and a packet of `rest` bytes if that is not zero.
    pub(super) fn add(&mut self, full: u64, rest: u16) {
        if self.endless {
            return;
        }
        self.left = self.left.saturating_add(full);
        if rest > 0 {
            self.shorts.push_back((self.sent.saturating_add(self.left), rest));
            self.left = self.left.saturating_add(1);
        }
    }

    pub(super) fn add_endlessly(&mut self) {
        self.endless = true;
    }

    /// Discards unsent data.
    pub(super) fn clear(&mut self) {
        *self = Supply { sent: self.sent, ..Supply::default() };
    }

    /// The number of waiting packets that are not full.
    pub(super) fn shorts(&self) -> usize {
        self.shorts.len()
    }

    /// The number of waiting packets, at most `u32::MAX`.
    pub(super) fn left(&self) -> u32 {
        if self.endless { u32::MAX } else { u32::try_from(self.left).unwrap_or(u32::MAX) }
    }

    /// Takes the next packet; returns its payload size if it is not full.
    pub(super) fn take(&mut self) -> Option<u16> {
        let number = self.sent;
        self.sent += 1;
        self.left = self.left.saturating_sub(1);
        match self.shorts.front() {
            Some(&(short, payload)) if short == number => {
                self.shorts.pop_front();
                Some(payload)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_packets_stay_at_their_place() {
        let mut supply = Supply::default();
        supply.add(2, 100);
        supply.add(1, 0);
        supply.add(0, 7);
        assert_eq!(supply.left(), 5);
        let taken: Vec<_> = (0..5).map(|_| supply.take()).collect();
        assert_eq!(taken, [None, None, Some(100), None, Some(7)]);
        supply.add(1, 9);
        supply.clear();
        assert_eq!(supply.left(), 0);
        supply.add(0, 3);
        assert_eq!((supply.left(), supply.take()), (1, Some(3)));
        supply.add_endlessly();
        assert_eq!((supply.left(), supply.take()), (u32::MAX, None));
    }
}
