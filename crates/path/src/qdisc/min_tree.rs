//! A tournament tree: the minimum of many keys and its index, without a scan over all of them.
//!
//! Above the keys lies a row with the minimum of every eight, above that a row with the minimum of every eight of
//! these, up to a single one. A change of a key updates at most one entry per row; the index of the minimum is found on
//! the way down. Eight keys are a cache line.

/// The shift from an index to its parent's.
const BITS: u32 = 3;
const WIDTH: usize = 1 << BITS;

/// Keys by index.
#[derive(Clone, Debug, Default)]
pub(super) struct MinTree {
    /// The keys, padded with `u64::MAX` to a multiple of eight.
    keys: Vec<u64>,
    len: usize,
    /// The rows above, each padded too and stored one after the other, and the start of each; the last row has one key.
    above: Vec<u64>,
    starts: Vec<usize>,
}

/// The eight children in `row` of entry `at` in the row above.
#[inline(always)]
fn eight(row: &[u64], at: usize) -> &[u64; WIDTH] {
    let from = at << BITS;
    row[from..from + WIDTH].first_chunk().expect("rows are of eights")
}

#[inline(always)]
fn min_of(keys: &[u64; WIDTH]) -> u64 {
    keys.iter().fold(u64::MAX, |min, &key| min.min(key))
}

fn fill_up(row: &mut Vec<u64>) {
    row.resize(row.len().next_multiple_of(WIDTH), u64::MAX);
}

impl MinTree {
    /// A tree of these keys.
    pub(super) fn new(mut keys: Vec<u64>) -> MinTree {
        let len = keys.len();
        fill_up(&mut keys);
        let mut tree = MinTree { keys, len, above: Vec::new(), starts: Vec::new() };
        tree.build();
        tree
    }

    /// Builds the rows above.
    fn build(&mut self) {
        let mut many = self.keys.len() >> BITS;
        for at in 0..many {
            self.above.push(min_of(eight(&self.keys, at)));
        }
        let mut start = 0;
        while many > 0 {
            self.starts.push(start);
            fill_up(&mut self.above);
            if many == 1 {
                break;
            }
            let next = self.above.len();
            for at in start >> BITS..next >> BITS {
                self.above.push(min_of(eight(&self.above, at)));
            }
            (start, many) = (next, self.above.len() - next);
        }
    }

    /// The number of keys.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Sets the key at an index.
    #[inline]
    pub(super) fn set(&mut self, number: usize, key: u64) {
        let before = std::mem::replace(&mut self.keys[number], key);
        if key <= before { self.note_lower(number, key) } else { self.note_higher(number) }
    }

    /// Propagates a key that has become `key`, no more than before.
    fn note_lower(&mut self, number: usize, key: u64) {
        let mut at = number;
        for start in &self.starts {
            at >>= BITS;
            let min = &mut self.above[start + at];
            if *min <= key {
                break;
            }
            *min = key;
        }
    }

    /// Propagates a key that has increased.
    fn note_higher(&mut self, number: usize) {
        let mut at = number >> BITS;
        let mut min = min_of(eight(&self.keys, at));
        let mut starts = self.starts.iter();
        let mut start = starts.next();
        while let Some(from) = start {
            let held = &mut self.above[from + at];
            if *held == min {
                break;
            }
            *held = min;
            start = starts.next();
            if start.is_some() {
                at >>= BITS;
                min = min_of(eight(&self.above, (from >> BITS) + at));
            }
        }
    }

    /// The minimum key and the lowest index that has it; `None` if there are no keys.
    pub(super) fn first(&self) -> Option<(u64, usize)> {
        let min = self.above[*self.starts.last()?];
        let mut at = 0;
        for &start in self.starts[..self.starts.len() - 1].iter().rev() {
            at = (at << BITS) + eight(&self.above[start..], at).iter().position(|&key| key == min)?;
        }
        at = (at << BITS) + eight(&self.keys, at).iter().position(|&key| key == min)?;
        Some((min, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_random::{Sequence, Stream};

    /// For any changes: the minimum, and the first index that has it, match a linear search.
    #[test]
    fn finds_what_a_search_finds() {
        for seed in 0..200 {
            let mut draws = Sequence::new(Stream::new(seed, "least"));
            let mut below = |n: u64| (draws.unit() * n as f64) as u64;
            let n = [0, 1, 7, 8, 9, 63, 64, 65, 600, 5000][below(10) as usize];
            let range = [2, 30, 1 << 40][below(3) as usize];
            let mut plain: Vec<u64> = (0..n).map(|_| below(range)).collect();
            let mut tree = MinTree::new(plain.clone());
            for _ in 0..60 {
                for _ in 0..below(5).min(n) {
                    let (number, key) = (below(n) as usize, if below(4) == 0 { u64::MAX } else { below(range) });
                    plain[number] = key;
                    tree.set(number, key);
                }
                let all = plain.iter().enumerate().map(|(number, &key)| (key, number));
                assert_eq!(tree.first(), all.min(), "seed {seed}");
                assert_eq!(tree.len() as u64, n);
            }
        }
    }
}
