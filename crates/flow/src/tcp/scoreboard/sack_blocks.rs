//! SACK blocks that the receiver has reported (RFC 2018).

use super::{Delivered, EVER_RETRANSMITTED, LISTED, SACKED, Scoreboard};
use paceline_packet::Block;

/// The end of what is known to have been reported of the block that begins with `start`.
fn known_end(known: &[Block; 3], start: u32) -> u32 {
    known.iter().filter(|block| block.start == start).map(|block| block.end).max().unwrap_or(0)
}

impl Scoreboard {
    /// Processes SACK blocks in the common case: the first block of the last report has grown by one new segment, not
    /// marked lost, and the others are unchanged. `None`: another case, for [`Scoreboard::reported`].
    #[inline(always)]
    pub(in crate::tcp) fn grown(&mut self, blocks: &[Block; 3]) -> Option<Delivered> {
        let seq = self.known[0].end;
        let grows = blocks[0] == Block { start: self.known[0].start, end: seq.wrapping_add(1) };
        if !(grows && blocks[1..] == self.known[1..] && seq > self.slots.first()) {
            return None;
        }
        let i = self.place(seq)?;
        let slot = self.slots[i];
        if slot.marks & !EVER_RETRANSMITTED != LISTED {
            return None;
        }
        self.known[0].end = seq + 1;
        if self.oldest == seq {
            self.leave_oldest(i);
        } else {
            self.unlink(seq, i);
        }
        let to = &mut self.slots[i];
        to.marks = slot.marks & EVER_RETRANSMITTED | SACKED;
        to.later = seq + 1;
        self.sacked += 1;
        self.missing = self.missing.wrapping_add(1);
        self.forward = self.forward.max(seq + 1);
        Some(slot.delivered(seq, i))
    }

    /// Processes SACK blocks; passes newly reported segments to `news`.
    #[inline]
    pub(in crate::tcp) fn reported(&mut self, blocks: &[Block; 3], mut news: impl FnMut(Delivered)) {
        let before = self.known;
        for (n, block) in blocks.iter().enumerate() {
            let end = block.end.min(self.slots.end());
            let start = block.start.max(self.slots.first().saturating_add(1)); // otherwise `una` would have advanced
            let known = known_end(&before, block.start);
            self.known[n] = Block { start: block.start, end: end.max(known) };
            let start = start.max(known);
            if start < end {
                self.report(start, end, &mut news);
                self.forward = self.forward.max(end);
            }
        }
    }

    /// Marks the segments from `seq` to `end` as reported; skips those already marked.
    #[inline]
    fn report(&mut self, mut seq: u32, end: u32, news: &mut impl FnMut(Delivered)) {
        while seq < end {
            let Some(i) = self.place(seq) else { return };
            let slot = self.slots[i];
            if slot.marks & SACKED != 0 {
                seq = self.not_sacked(seq);
                continue;
            }
            if self.oldest == seq && slot.marks & LISTED != 0 {
                self.leave_oldest(i);
            } else {
                self.unlink(seq, i);
            }
            self.mark(i, slot.marks & EVER_RETRANSMITTED | SACKED);
            self.slots[i].later = seq + 1;
            news(slot.delivered(seq, i));
            seq += 1;
        }
    }

    /// The first segment at or after `seq` that has not been reported.
    pub(in crate::tcp) fn not_sacked(&mut self, seq: u32) -> u32 {
        let reported = |sent: &Scoreboard, seq: u32| {
            let slot = &sent.slots[sent.place(seq)?];
            (slot.marks & SACKED != 0).then_some(slot.later)
        };
        let mut end = seq;
        while let Some(to) = reported(self, end) {
            end = to;
        }
        // Let the next search from any of these jump to the end.
        let mut at = seq;
        while at < end {
            let Some(i) = self.place(at) else { break };
            at = std::mem::replace(&mut self.slots[i].later, end);
        }
        end
    }
}
