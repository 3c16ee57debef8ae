//! A ring buffer with an entry for each of consecutive segments. The capacity is a power of two, and the lower bits of
//! the sequence number are the index. So lookup, insertion and removal take a few instructions; a deque would have to
//! compute the index from its head.

use core::fmt;
use core::ops::{Index, IndexMut};

/// Entries of consecutive segments, beginning with `first`.
pub(super) struct Ring<T> {
    places: Vec<T>,
    first: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// Creates an empty ring; `first` is the next segment.
    pub(super) fn new(first: u32) -> Ring<T> {
        Ring { places: Vec::new(), first, len: 0 }
    }

    /// Empties the ring and keeps its allocation; `first` is the next segment.
    pub(super) fn begin(&mut self, first: u32) {
        (self.first, self.len) = (first, 0);
    }

    /// The first segment; if the ring is empty, the next one.
    #[inline(always)]
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// One past the last segment.
    #[inline(always)]
    pub(super) fn end(&self) -> u32 {
        self.first.wrapping_add(self.len)
    }

    #[inline(always)]
    fn index(&self, seq: u32) -> usize {
        seq as usize & self.places.len().wrapping_sub(1)
    }

    /// The capacity: a power of two, or 0 before the first entry.
    #[inline(always)]
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// The index of the segment's entry.
    #[inline(always)]
    pub(super) fn place(&self, seq: u32) -> Option<usize> {
        (seq.wrapping_sub(self.first) < self.len).then(|| self.index(seq))
    }

    #[inline(always)]
    pub(super) fn get(&self, seq: u32) -> Option<&T> {
        self.places.get(self.place(seq)?)
    }

    /// The first entry.
    #[inline(always)]
    pub(super) fn head(&self) -> Option<&T> {
        self.get(self.first)
    }

    /// Appends the entry of the next segment; returns its index.
    #[inline]
    pub(super) fn push(&mut self, entry: T) -> usize {
        if self.len as usize == self.places.len() {
            self.grow();
        }
        let i = self.index(self.end());
        self.places[i] = entry;
        self.len += 1;
        i
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mut places = vec![T::default(); (2 * self.places.len()).max(16)];
        for seq in (0..self.len).map(|i| self.first.wrapping_add(i)) {
            let to = seq as usize & (places.len() - 1);
            places[to] = self.places[self.index(seq)];
        }
        self.places = places;
    }

    /// Removes the first entry, if there is one.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        if self.len > 0 {
            self.first = self.first.wrapping_add(1);
            self.len -= 1;
        }
    }

    /// Removes the entries of all segments below `seq`. If `seq` lies beyond them all, it becomes the next segment.
    #[inline(always)]
    pub(super) fn drop_below(&mut self, seq: u32) {
        if seq > self.first {
            self.len = self.len.saturating_sub(seq - self.first);
            self.first = seq;
        }
    }
}

impl<T> Index<usize> for Ring<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, place: usize) -> &T {
        &self.places[place]
    }
}

impl<T> IndexMut<usize> for Ring<T> {
    #[inline(always)]
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.places[place]
    }
}

impl<T: Copy + Default + fmt::Debug> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = (0..self.len).filter_map(|i| self.get(self.first.wrapping_add(i)));
        write!(f, "{}: ", self.first)?;
        f.debug_list().entries(entries).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// A ring behaves as a deque with the number of its first element.
        #[test]
        fn a_ring_is_a_deque(first in 0u32..100, steps in prop::collection::vec((0u8..8, 0u32..40), 1..200)) {
            let (mut ring, mut deque, mut start) = (Ring::new(first), VecDeque::new(), first);
            for (what, n) in steps {
                match what {
                    0..4 => for i in 0..n {
                        let place = ring.push(i);
                        prop_assert_eq!(ring[place], i);
                        deque.push_back(i);
                    },
                    4 => {
                        ring.pop();
                        start += u32::from(deque.pop_front().is_some());
                    }
                    5 if n == 0 => {
                        ring.begin(n);
                        (start, deque) = (n, VecDeque::new());
                    }
                    _ => {
                        ring.drop_below(start + n);
                        deque.drain(..deque.len().min(n as usize));
                        start += n;
                    }
                }
                prop_assert_eq!((ring.first(), ring.len() as usize, ring.end()), (start, deque.len(), start + deque.len() as u32));
                prop_assert_eq!(ring.head(), deque.front());
                for seq in start.saturating_sub(3)..ring.end() + 3 {
                    let expected = seq.checked_sub(start).and_then(|i| deque.get(i as usize));
                    prop_assert_eq!(ring.get(seq), expected, "{}", seq);
                }
            }
        }
    }
}
