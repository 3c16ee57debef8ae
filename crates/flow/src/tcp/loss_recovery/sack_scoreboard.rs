//! The SACK scoreboard of RFC 6675 section 4.

use crate::tcp::connection::DUPLICATES;
use paceline_packet::{Block, TcpOptions};

/// The SACKed segments, as ranges. Segments that arrived in order need no entry.
#[derive(Debug)]
pub(super) struct Reported {
    /// Sorted, disjoint, not adjacent.
    blocks: Vec<Block>,
    /// Number of segments in `blocks`.
    total: u32,
    /// A segment, and the number of segments below it in `blocks`: a cache, since successive queries differ little.
    counted: (u32, u32),
}

impl Reported {
    pub(super) fn new(base: u32) -> Reported {
        Reported { blocks: Vec::new(), total: 0, counted: (base, 0) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Number of SACKed segments.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.total = 0;
        self.counted.1 = 0;
    }

    /// Drops the blocks below `una`. If the receiver requests data that it had reported, it has discarded that, and
    /// maybe more: all blocks are dropped (RFC 2018 section 8).
    fn trim(&mut self, una: u32) {
        let before = self.total;
        let gone = self.blocks.iter().take_while(|b| b.end <= una).count();
        self.total -= self.blocks.drain(..gone).map(|b| b.end - b.start).sum::<u32>();
        if self.blocks.first().is_some_and(|b| b.start <= una) {
            self.clear();
        }
        let (seq, below) = self.counted;
        self.counted = if seq <= una { (una, 0) } else { (seq, below.saturating_sub(before - self.total)) };
    }

    /// Adds the SACK blocks of an acknowledgement; invalid ones are clipped to the segments sent. Returns whether any
    /// segment was new.
    pub(super) fn update(&mut self, una: u32, max: u32, extra: Option<&TcpOptions>) -> bool {
        self.trim(una);
        let before = self.total;
        for block in extra.into_iter().flat_map(TcpOptions::blocks) {
            // the segment `una` itself is missing, otherwise it would have been acknowledged
            let (start, end) = (block.start.max(una.saturating_add(1)), block.end.min(max));
            if start < end {
                self.add(start, end);
            }
        }
        self.total != before
    }

    fn add(&mut self, mut start: u32, mut end: u32) {
        let from = self.blocks.partition_point(|b| b.end < start);
        let to = self.blocks.partition_point(|b| b.start <= end);
        let below = |block: Block| block.end.min(self.counted.0).saturating_sub(block.start);
        if let Some(touched) = self.blocks.get(from..to).filter(|t| !t.is_empty()) {
            self.counted.1 -= touched.iter().map(|b| below(*b)).sum::<u32>();
            start = start.min(touched[0].start);
            end = end.max(touched[touched.len() - 1].end);
            self.total -= touched.iter().map(|b| b.end - b.start).sum::<u32>();
        }
        self.total += end - start;
        self.counted.1 += below(Block { start, end });
        if to == from + 1 {
            self.blocks[from] = Block { start, end };
        } else {
            self.blocks.splice(from..to, [Block { start, end }]);
        }
    }

    /// One past the highest SACKed segment.
    pub(super) fn highest(&self) -> Option<u32> {
        self.blocks.last().map(|b| b.end)
    }

    /// The first segment at or after `seq` that is not SACKed.
    pub(super) fn hole(&self, seq: u32) -> u32 {
        let i = self.blocks.partition_point(|b| b.end <= seq);
        match self.blocks.get(i) {
            Some(b) if b.start <= seq => b.end,
            _ => seq,
        }
    }

    /// Number of SACKed segments in `from..to`.
    pub(super) fn covered(&self, from: u32, to: u32) -> u32 {
        let i = self.blocks.partition_point(|b| b.end <= from);
        let inside = self.blocks[i..].iter().take_while(|b| b.start < to);
        inside.map(|b| b.end.min(to) - b.start.max(from)).sum()
    }

    /// Number of SACKed segments below `seq`.
    fn covered_below(&mut self, seq: u32) -> u32 {
        let (at, below) = self.counted;
        let below = if seq < at { below - self.covered(seq, at) } else { below + self.covered(at, seq) };
        self.counted = (seq, below);
        below
    }

    /// IsLost: holes below the returned segment have three SACKed segments above them. (Three discontiguous ones are
    /// three segments too.)
    pub(super) fn lost_below(&self) -> u32 {
        let mut need = DUPLICATES;
        for block in self.blocks.iter().rev() {
            let size = block.end - block.start;
            if size >= need {
                return block.end - need;
            }
            need -= size;
        }
        0
    }

    /// SetPipe: the number of segments of `una..max` in flight; holes below `high_rxt` were retransmitted.
    pub(super) fn in_flight(&mut self, una: u32, max: u32, high_rxt: u32) -> u32 {
        let lost = self.lost_below().clamp(una, max);
        let not_lost = (max - lost) - self.covered(lost, max);
        let high_rxt = high_rxt.clamp(una, max);
        let again = (high_rxt - una) - self.covered_below(high_rxt);
        not_lost + again
    }
}

#[cfg(test)]
mod tests;
