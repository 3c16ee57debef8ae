//! The sender's queue, computed from what was written and what was sent.

use std::collections::VecDeque;

/// Frames in the queue, the oldest first; `T` is the clock's type.
#[derive(Clone, Debug)]
pub(super) struct Queue<T> {
    frames: VecDeque<Frame<T>>,
    bytes: u32,
}

/// The unsent part of a frame.
#[derive(Clone, Copy, Debug)]
struct Frame<T> {
    written: T,
    bytes: u32,
    /// The size of its packets; the last may be smaller.
    packet: u32,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue { frames: VecDeque::new(), bytes: 0 }
    }
}

impl<T: Copy + PartialEq> Queue<T> {
    /// A packet was written; packets written at the same time belong to one frame.
    pub(super) fn write(&mut self, now: T, size: u32) {
        self.bytes = self.bytes.saturating_add(size);
        match self.frames.back_mut().filter(|frame| frame.written == now) {
            Some(frame) => {
                frame.bytes = frame.bytes.saturating_add(size);
                frame.packet = frame.packet.max(size);
            }
            None => self.frames.push_back(Frame { written: now, bytes: size, packet: size }),
        }
    }

    /// `size` bytes were sent; returns when the first of them was written.
    pub(super) fn take(&mut self, size: u32) -> Option<T> {
        let written = self.oldest();
        let mut left = size;
        while let Some(frame) = self.frames.front_mut() {
            let part = left.min(frame.bytes);
            frame.bytes -= part;
            left -= part;
            self.bytes = self.bytes.saturating_sub(part);
            if frame.bytes > 0 {
                break;
            }
            self.frames.pop_front();
            if left == 0 {
                break;
            }
        }
        written
    }

    /// When the oldest frame was written.
    pub(super) fn oldest(&self) -> Option<T> {
        self.frames.front().map(|frame| frame.written)
    }

    /// The size of the next packet to send.
    pub(super) fn next(&self) -> Option<u32> {
        self.frames.front().map(|frame| frame.bytes.min(frame.packet))
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
        queue.write(1, 600);
        queue.write(1, 400);
        queue.write(2, 500);
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (Some(1), Some(600), 1500));
        assert_eq!(queue.take(600), Some(1));
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (Some(1), Some(400), 900));
        assert_eq!(queue.take(400), Some(1));
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (Some(2), Some(500), 500));
        // padding is sent too, but was never written
        assert_eq!(queue.take(700), Some(2));
        assert_eq!((queue.oldest(), queue.next(), queue.bytes()), (None, None, 0));
        assert_eq!(queue.take(1), None);
    }
}
