//! What a receiver has reported beyond the left edge, and what RFC 6675 section 4 asks of it.

use crate::tcp::connection::DUPLICATES;
use paceline_packet::{Block, TcpOptions};

/// The reported segments, as ranges: nothing is kept of a segment that came in order.
#[derive(Debug)]
pub(super) struct Reported {
    /// In order, disjoint, not adjacent.
    blocks: Vec<Block>,
    /// Segments in `blocks`.
    total: u32,
    /// A segment, and how many of those below it lie in `blocks`: what is asked again and again moves little.
    counted: (u32, u32),
}

impl Reported {
    pub(super) fn new(base: u32) -> Reported {
        Reported { blocks: Vec::new(), total: 0, counted: (base, 0) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Segments reported beyond the left edge.
    pub(super) fn total(&self) -> u32 {
        self.total
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.total = 0;
        self.counted.1 = 0;
    }

    /// Forgets what lies below `una`; all, if the receiver asks for what it had reported: it has dropped it, and maybe more
    /// (RFC 2018 section 8).
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

    /// Takes in the blocks of an acknowledgement; absurd ones are cut to what has been sent. Says whether anything
    /// was news.
    pub(super) fn update(&mut self, una: u32, max: u32, extra: Option<&TcpOptions>) -> bool {
        self.trim(una);
        let before = self.total;
        for block in extra.into_iter().flat_map(TcpOptions::blocks) {
            // the left edge itself is missing, or it would have been acknowledged
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

    /// One past the highest segment that the receiver has reported.
    pub(super) fn highest(&self) -> Option<u32> {
        self.blocks.last().map(|b| b.end)
    }

    /// The first segment from `seq` on that the receiver does not have.
    pub(super) fn hole(&self, seq: u32) -> u32 {
        let i = self.blocks.partition_point(|b| b.end <= seq);
        match self.blocks.get(i) {
            Some(b) if b.start <= seq => b.end,
            _ => seq,
        }
    }

    /// Segments in `from..to` that the receiver has.
    pub(super) fn covered(&self, from: u32, to: u32) -> u32 {
        let i = self.blocks.partition_point(|b| b.end <= from);
        let inside = self.blocks[i..].iter().take_while(|b| b.start < to);
        inside.map(|b| b.end.min(to) - b.start.max(from)).sum()
    }

    /// Segments below `seq` that the receiver has, beyond the left edge.
    fn covered_below(&mut self, seq: u32) -> u32 {
        let (at, below) = self.counted;
        let below = if seq < at { below - self.covered(seq, at) } else { below + self.covered(at, seq) };
        self.counted = (seq, below);
        below
    }

    /// IsLost: holes below this have three segments reported above them. (Three discontiguous ones are
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

    /// SetPipe: what is in flight of `una..max`, of which the holes below `high` (HighRxt) have been sent again.
    pub(super) fn in_flight(&mut self, una: u32, max: u32, high: u32) -> u32 {
        let lost = self.lost_below().clamp(una, max);
        let not_lost = (max - lost) - self.covered(lost, max);
        let high = high.clamp(una, max);
        let again = (high - una) - self.covered_below(high);
        not_lost + again
    }
}

#[cfg(test)]
mod tests;
