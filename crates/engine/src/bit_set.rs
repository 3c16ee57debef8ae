//! A hierarchical bit set: finds the next member without a scan over all words.

/// One bit per number, and a summary bit per nonzero word.
#[derive(Debug)]
pub(crate) struct BitSet {
    words: Vec<u64>,
    summary: Vec<u64>,
}

const BITS: usize = u64::BITS as usize;

impl BitSet {
    /// An empty set for numbers below `numbers`.
    pub(crate) fn new(numbers: usize) -> BitSet {
        let words = numbers.div_ceil(BITS);
        BitSet { words: vec![0; words], summary: vec![0; words.div_ceil(BITS)] }
    }

    #[inline(always)]
    pub(crate) fn insert(&mut self, number: usize) {
        let word = number / BITS;
        self.words[word] |= 1 << (number % BITS);
        self.summary[word / BITS] |= 1 << (word % BITS);
    }

    /// Whether it is empty.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.summary.iter().all(|&held| held == 0)
    }

    /// Removes all members.
    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.summary.fill(0);
    }

    /// Removes and returns the lowest member from `from` on.
    #[inline]
    pub(crate) fn take_first(&mut self, from: usize) -> Option<usize> {
        let mut word = from / BITS;
        let mut rest = self.words.get(word)? & (u64::MAX << (from % BITS));
        if rest == 0 {
            word = next_bit(&self.summary, word + 1)?;
            rest = self.words[word];
        }
        let bit = rest & rest.wrapping_neg();
        self.words[word] &= !bit;
        if self.words[word] == 0 {
            self.summary[word / BITS] &= !(1 << (word % BITS));
        }
        Some(word * BITS + bit.trailing_zeros() as usize)
    }
}

/// The index of the first set bit from `from` on.
#[inline(always)]
fn next_bit(words: &[u64], from: usize) -> Option<usize> {
    let mut word = from / BITS;
    let mut rest = words.get(word)? & (u64::MAX << (from % BITS));
    while rest == 0 {
        word += 1;
        rest = *words.get(word)?;
    }
    Some(word * BITS + rest.trailing_zeros() as usize)
}
