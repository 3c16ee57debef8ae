//! Sets of numbers that mostly arrive in order: packet numbers, bytes of a stream.

use core::ops::Range;

/// Half-open ranges, ascending, neither overlapping nor adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    list: Vec<Range<u64>>,
}

impl Ranges {
    /// Adds `new`; passes each part of it that was missing to `fresh`, ascending.
    #[inline]
    pub(super) fn insert(&mut self, new: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        if new.is_empty() {
            return;
        }
        match self.list.last_mut() {
            // in order, the most common case
            Some(last) if new.start >= last.start && new.start <= last.end => {
                if new.end > last.end {
                    let from = last.end;
                    last.end = new.end;
                    fresh(from..new.end);
                }
            }
            Some(last) if new.start < last.start => self.insert_within(new, fresh),
            _ => {
                self.list.push(new.clone());
                fresh(new);
            }
        }
    }

    #[inline(never)]
    fn insert_within(&mut self, new: Range<u64>, mut fresh: impl FnMut(Range<u64>)) {
        let first = self.list.partition_point(|old| old.end < new.start);
        let (mut at, mut merged, mut last) = (new.start, new.clone(), first);
        while let Some(old) = self.list.get(last).filter(|old| old.start <= new.end) {
            if at < old.start {
                fresh(at..old.start);
            }
            at = at.max(old.end);
            merged = merged.start.min(old.start)..merged.end.max(old.end);
            last += 1;
        }
        if at < new.end {
            fresh(at..new.end);
        }
        if last == first + 1 {
            self.list[first] = merged;
        } else {
            self.list.splice(first..last, [merged]);
        }
    }

    /// Extends the highest range by `next` if that follows it directly.
    #[inline(always)]
    pub(super) fn follow(&mut self, next: Range<u64>) -> bool {
        match self.list.last_mut() {
            Some(last) if last.end == next.start => {
                last.end = next.end;
                true
            }
            _ => false,
        }
    }

    /// Removes `gone`.
    pub(super) fn remove(&mut self, gone: Range<u64>) {
        let first = self.list.partition_point(|old| old.end <= gone.start);
        let last = self.list.partition_point(|old| old.start < gone.end);
        if gone.is_empty() || first >= last {
            return;
        }
        let (before, after) = (self.list[first].start..gone.start, gone.end..self.list[last - 1].end);
        self.list.splice(first..last, [before, after].into_iter().filter(|part| !part.is_empty()));
    }

    /// Adds the part of `new` that is not in `others`.
    pub(super) fn insert_without(&mut self, new: Range<u64>, others: &Ranges) {
        self.insert(new.clone(), |_| {});
        let within = others.list.iter().filter(|other| other.start < new.end && other.end > new.start);
        within.for_each(|other| self.remove(other.clone()));
    }

    /// Removes the ranges that end at or below `end`.
    #[inline]
    pub(super) fn forget_below(&mut self, end: u64) {
        let gone = self.list.iter().take_while(|range| range.end <= end).count();
        if gone > 0 {
            self.list.drain(..gone);
        }
    }

    /// The number of ranges.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the set is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The ranges, ascending.
    #[inline]
    pub(super) fn iter(&self) -> core::slice::Iter<'_, Range<u64>> {
        self.list.iter()
    }

    /// The lowest range.
    #[inline]
    pub(super) fn first(&self) -> Option<Range<u64>> {
        self.list.first().cloned()
    }

    /// The highest range.
    #[inline]
    pub(super) fn last(&self) -> Option<Range<u64>> {
        self.list.last().cloned()
    }

    /// Whether `number` is in a range.
    #[cfg(test)]
    fn contains(&self, number: u64) -> bool {
        let at = self.list.partition_point(|range| range.end <= number);
        self.list.get(at).is_some_and(|range| range.start <= number)
    }

    /// The end of the gapless run that begins at 0.
    #[inline]
    pub(super) fn prefix(&self) -> u64 {
        self.list.first().filter(|range| range.start == 0).map_or(0, |range| range.end)
    }

    /// Keeps the highest `max` ranges.
    pub(super) fn keep_last(&mut self, max: usize) {
        let over = self.list.len().saturating_sub(max);
        self.list.drain(..over);
    }

    pub(super) fn clear(&mut self) {
        self.list.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Behaves as a set of numbers.
        #[test]
        fn as_a_set(steps in proptest::collection::vec((0u64..60, 0u64..12, any::<bool>()), 1..60)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, len, adds) in steps {
                let all = start..start + len;
                if adds {
                    let mut fresh = Vec::new();
                    ranges.insert(all.clone(), |part| fresh.extend(part));
                    let wanted: Vec<u64> = all.filter(|n| set.insert(*n)).collect();
                    prop_assert_eq!(fresh, wanted);
                } else {
                    ranges.remove(all.clone());
                    for n in all {
                        set.remove(&n);
                    }
                }
                let members: Vec<u64> = ranges.iter().cloned().flatten().collect();
                prop_assert_eq!(&members, &set.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.list.windows(2).all(|two| two[0].end < two[1].start), "{:?}", ranges);
                prop_assert!((0..80).all(|n| ranges.contains(n) == set.contains(&n)));
            }
        }
    }
}
