//! The least of many keys, and where it is, without looking at all of them.
//!
//! Over the keys lies a row with the least of every eight, over that a row with the least of every eight of these, up to
//! one. A key that changes touches one place in each row; the first key below a bound is found on the way down. Eight
//! keys are a cache line.

/// Keys lie under one of the row above by so many bits of their number.
const BITS: u32 = 3;
const WIDTH: usize = 1 << BITS;

/// Keys by number.
#[derive(Clone, Debug, Default)]
pub struct Least {
    /// So many, and then as many of `u64::MAX` as make it eights.
    keys: Vec<u64>,
    len: usize,
    /// The rows above, each of eights too, one behind the other, and where each begins; the last has one key.
    above: Vec<u64>,
    starts: Vec<usize>,
}

/// The eight of `row` under number `at` of the row above.
#[inline(always)]
fn eight(row: &[u64], at: usize) -> &[u64; WIDTH] {
    let from = at << BITS;
    row[from..from + WIDTH].first_chunk().expect("rows are of eights")
}

#[inline(always)]
fn least_of(keys: &[u64; WIDTH]) -> u64 {
    keys.iter().fold(u64::MAX, |least, &key| least.min(key))
}

fn fill_up(row: &mut Vec<u64>) {
    row.resize(row.len().next_multiple_of(WIDTH), u64::MAX);
}

impl Least {
    /// These keys.
    #[must_use]
    pub fn new(mut keys: Vec<u64>) -> Least {
        let len = keys.len();
        fill_up(&mut keys);
        let mut least = Least { keys, len, above: Vec::new(), starts: Vec::new() };
        least.tend();
        least
    }

    /// Makes the rows above.
    fn tend(&mut self) {
        let mut many = self.keys.len() >> BITS;
        for at in 0..many {
            self.above.push(least_of(eight(&self.keys, at)));
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
                self.above.push(least_of(eight(&self.above, at)));
            }
            (start, many) = (next, self.above.len() - next);
        }
    }

    /// How many keys there are.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The least key; `u64::MAX` if there is none.
    #[inline]
    #[must_use]
    pub fn least(&self) -> u64 {
        self.starts.last().map_or(u64::MAX, |&start| self.above[start])
    }

    /// Sets the key of a number.
    #[inline]
    pub fn set(&mut self, number: usize, key: u64) {
        let before = std::mem::replace(&mut self.keys[number], key);
        if key <= before { self.note_lower(number, key) } else { self.note_higher(number) }
    }

    /// A key has become `key`, which is not more than it was.
    fn note_lower(&mut self, number: usize, key: u64) {
        let mut at = number;
        for start in &self.starts {
            at >>= BITS;
            let least = &mut self.above[start + at];
            if *least <= key {
                break;
            }
            *least = key;
        }
    }

    /// A key is more than it was.
    fn note_higher(&mut self, number: usize) {
        let mut at = number >> BITS;
        let mut least = least_of(eight(&self.keys, at));
        let mut starts = self.starts.iter();
        let mut start = starts.next();
        while let Some(from) = start {
            let held = &mut self.above[from + at];
            if *held == least {
                break;
            }
            *held = least;
            start = starts.next();
            if start.is_some() {
                at >>= BITS;
                least = least_of(eight(&self.above, (from >> BITS) + at));
            }
        }
    }

    /// The lowest number whose key is at most `bound`.
    #[must_use]
    pub fn first_at_most(&self, bound: u64) -> Option<usize> {
        if bound == u64::MAX { (self.len > 0).then_some(0) } else { self.first_below(0, bound + 1) }
    }

    /// The lowest number from `from` on whose key is below `bound`.
    #[must_use]
    pub fn first_below(&self, from: usize, bound: u64) -> Option<usize> {
        if from >= self.len || self.least() >= bound {
            return None;
        }
        // Up, until a row has one in what is left of eight; from number 0 on the last row has it.
        let (mut at, mut height) = if from == 0 { (0, self.starts.len()) } else { (from, 0) };
        while height < self.starts.len() {
            let row = if height == 0 { &self.keys[..] } else { &self.above[self.starts[height - 1]..] };
            let rest = row.get(at..at.next_multiple_of(WIDTH)).unwrap_or_default();
            if let Some(ahead) = rest.iter().position(|&key| key < bound) {
                at += ahead;
                break;
            }
            // The next eight are one of the row above.
            at = at.div_ceil(WIDTH);
            height += 1;
        }
        if height == self.starts.len() && at > 0 {
            return None;
        }
        // And down.
        while height > 0 {
            height -= 1;
            let eight = if height == 0 {
                eight(&self.keys, at)
            } else {
                eight(&self.above, (self.starts[height - 1] >> BITS) + at)
            };
            at = (at << BITS) + eight.iter().position(|&key| key < bound)?;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_random::{Sequence, Stream};

    /// Whatever changes: the least, and the first below any bound from any number on, are those of a search through all.
    #[test]
    fn finds_what_a_search_finds() {
        for seed in 0..200 {
            let mut draws = Sequence::new(Stream::new(seed, "least"));
            let mut below = |n: u64| (draws.unit() * n as f64) as u64;
            let n = [0, 1, 7, 8, 9, 63, 64, 65, 600, 5000][below(10) as usize];
            let range = [2, 30, 1 << 40][below(3) as usize];
            let mut plain: Vec<u64> = (0..n).map(|_| below(range)).collect();
            let mut least = Least::new(plain.clone());
            for _ in 0..60 {
                for _ in 0..below(5).min(n) {
                    let (number, key) = (below(n) as usize, if below(4) == 0 { u64::MAX } else { below(range) });
                    plain[number] = key;
                    least.set(number, key);
                }
                assert_eq!(least.least(), plain.iter().copied().min().unwrap_or(u64::MAX), "seed {seed}");
                assert_eq!((least.len() as u64, least.is_empty()), (n, n == 0));
                let (from, bound) = (below(n + 2) as usize, below(range + 1));
                let found = (from..n as usize).find(|&i| plain[i] < bound);
                assert_eq!(least.first_below(from, bound), found, "seed {seed}");
                for bound in [bound, least.least()] {
                    assert_eq!(least.first_at_most(bound), plain.iter().position(|&key| key <= bound), "seed {seed}");
                }
            }
        }
    }
}
