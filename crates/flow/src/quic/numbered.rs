//! A list of items that are numbered as they begin, and finish mostly in that order: streams.

use core::ops::{Index, IndexMut, Range};

/// Minimum number of finished items to remove; they must also be half of the list.
const COMPACT_THRESHOLD: usize = 16;

/// All items from the oldest unfinished one on, by number; older ones may remain accessible for a while. A ring buffer
/// would take twice as long for a lookup.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    list: Vec<T>,
    /// The number of the first item in the list.
    base: u32,
    /// The number of finished items at the front.
    gone: usize,
}

impl<T> Numbered<T> {
    /// Creates an empty list; the first item gets number 0.
    pub(super) const fn new() -> Numbered<T> {
        Numbered { list: Vec::new(), base: 0, gone: 0 }
    }

    /// The numbers of accessible items.
    #[inline]
    pub(super) fn numbers(&self) -> Range<u32> {
        self.base..self.next()
    }

    /// The number of the oldest unfinished item; without one, the next number.
    #[inline]
    pub(super) fn first(&self) -> u32 {
        self.base + self.gone as u32
    }

    /// The next item's number.
    #[inline]
    pub(super) fn next(&self) -> u32 {
        self.base + self.list.len() as u32
    }

    /// Adds an item and returns its number.
    pub(super) fn push(&mut self, new: T) -> u32 {
        let number = self.next();
        self.list.push(new);
        number
    }

    /// The item with this number, if it is accessible.
    #[inline(always)]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.list.get(number.wrapping_sub(self.base) as usize)
    }

    /// The item with this number, if it is accessible.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.list.get_mut(number.wrapping_sub(self.base) as usize)
    }

    /// All accessible items, oldest first.
    pub(super) fn iter(&self) -> core::slice::Iter<'_, T> {
        self.list.iter()
    }

    /// Removes the oldest items while `is_done` holds for them; call it when an item is finished.
    pub(super) fn retire(&mut self, is_done: impl Fn(&T) -> bool) {
        self.gone += self.list[self.gone..].iter().take_while(|one| is_done(one)).count();
        if self.gone >= COMPACT_THRESHOLD && 2 * self.gone >= self.list.len() {
            self.list.drain(..self.gone);
            self.base += self.gone as u32;
            self.gone = 0;
        }
    }
}

impl<T> Index<u32> for Numbered<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.list[(number - self.base) as usize]
    }
}

impl<T> IndexMut<u32> for Numbered<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.list[(number - self.base) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_with_goes_in_order_and_numbers_stay() {
        let mut all = Numbered::new();
        for n in 0..100 {
            assert_eq!(all.push((n, false)), n);
        }
        for n in (0..60).filter(|n| n % 7 != 6) {
            all[n].1 = true;
            all.retire(|one| one.1);
        }
        assert_eq!((all.first(), all.next()), (6, 100), "the oldest holds the others up");
        for n in (6..60).step_by(7) {
            all[n].1 = true;
            all.retire(|one| one.1);
        }
        assert_eq!((all.first(), all.next()), (60, 100));
        assert!(all.get(0).is_none() && all.get(100).is_none());
        assert_eq!((all[60].0, all.get_mut(99).map(|one| one.0)), (60, Some(99)));
        assert!(all.iter().len() <= 80, "a half at most is kept in vain");
    }
}
