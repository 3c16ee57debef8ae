//! What waits at the sender, told from what was written and what has left.

use std::collections::VecDeque;

/// Packets that wait, the oldest first; `T` is the clock's type.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    packets: VecDeque<(T, u32)>,
    bytes: u32,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Copy> Queue<T> {
    pub(super) fn write(&mut self, now: T, size: u32) {
        self.packets.push_back((now, size));
        self.bytes = self.bytes.saturating_add(size);
    }

    /// So many bytes have left: when the first of them were written.
    pub(super) fn take(&mut self, size: u32) -> Option<T> {
        let written = self.oldest();
        let mut left = size;
        while let Some(packet) = self.packets.front_mut() {
            let part = left.min(packet.1);
            packet.1 -= part;
            left -= part;
            self.bytes -= part;
            if packet.1 > 0 {
                break;
            }
            self.packets.pop_front();
            if left == 0 {
                break;
            }
        }
        written
    }

    /// When the oldest was written.
    pub(super) fn oldest(&self) -> Option<T> {
        self.packets.front().map(|packet| packet.0)
    }

    /// The size of the oldest.
    pub(super) fn next(&self) -> Option<u32> {
        self.packets.front().map(|packet| packet.1)
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_written_leaves_first() {
        let mut queue = Queue::default();
        queue.write(1, 1000);
        queue.write(2, 500);
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (Some(1), Some(1000), 1500));
        assert_eq!(queue.take(600), Some(1));
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (Some(1), Some(400), 900));
        assert_eq!(queue.take(400), Some(1));
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (Some(2), Some(500), 500));
        // padding leaves too, and was never written
        assert_eq!(queue.take(700), Some(2));
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (None, None, 0));
        assert_eq!(queue.take(1), None);
    }
}
