//! Which bytes of a connection's streams have been counted, so that none counts twice.

use std::collections::BTreeMap;

/// Maximum number of separate pieces; a stream without gaps is one. Beyond it, new pieces count in full.
const MAX_PIECES: usize = 1 << 17;

/// Counts each byte of the streams once.
#[derive(Clone, Debug, Default)]
pub struct ByteRanges {
    streams: BTreeMap<u64, BTreeMap<u64, u64>>,
    pieces: usize,
}

impl ByteRanges {
    /// Adds a piece of a stream; returns how many of its bytes are new.
    pub fn add(&mut self, stream: u64, offset: u64, length: u64) -> u64 {
        let end = offset.saturating_add(length);
        if end == offset {
            return 0;
        }
        if self.pieces >= MAX_PIECES {
            return end - offset;
        }
        let pieces = self.streams.entry(stream).or_default();
        let (mut first, mut last, mut new) = (offset, end, end - offset);
        // Merge it with the pieces that it overlaps or touches.
        while let Some((&from, &to)) = pieces.range(..=last).next_back() {
            if to < first {
                break;
            }
            new -= to.min(end).saturating_sub(from.max(offset)).min(new);
            first = first.min(from);
            last = last.max(to);
            pieces.remove(&from);
            self.pieces -= 1;
        }
        pieces.insert(first, last);
        self.pieces += 1;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_byte_counts_once(pieces in proptest::collection::vec((0u64..2, 0u64..60, 0u64..20), 0..40)) {
            let mut ranges = ByteRanges::default();
            let mut seen = std::collections::BTreeSet::new();
            for (stream, offset, length) in pieces {
                let before = seen.len();
                seen.extend((offset..offset + length).map(|byte| (stream, byte)));
                prop_assert_eq!(ranges.add(stream, offset, length), (seen.len() - before) as u64);
            }
        }
    }

    #[test]
    fn the_end_of_numbers_is_no_trap() {
        let mut ranges = ByteRanges::default();
        assert_eq!(ranges.add(0, u64::MAX - 1, 10), 1);
        assert_eq!(ranges.add(0, u64::MAX, 10), 0);
    }
}
