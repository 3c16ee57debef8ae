//! Loss detection of ns-2's TCP-Linux: forward acknowledgement (FACK).
//!
//! Source: the behaviour of `scoreboard1.cc` of ns-2.35, which searches all segments at every acknowledgement with SACK
//! blocks. Here an acknowledgement costs as much as it changes, with the same resulting marks: segments below the
//! forward edge are judged as the edge passes, retransmissions in the order of their transmission.

use crate::tcp::connection::DUPLICATES;
use crate::tcp::scoreboard::Scoreboard;
use paceline_packet::{Block, TcpOptions};
use std::collections::VecDeque;

/// A retransmission: its segment, its number, and the next new segment at its transmission.
#[derive(Clone, Copy, Debug)]
struct Retransmission {
    seq: u32,
    number: u32,
    next: u32,
}

/// The forward edge, and the retransmissions still to be judged.
#[derive(Debug)]
pub(super) struct Forward {
    /// The highest segment SACKed, if any.
    edge: Option<u32>,
    /// One past the highest segment that may be SACKed or lost.
    end: u32,
    /// Below this, no segment's first transmission is in flight.
    judged: u32,
    /// The number of the newest acknowledged retransmission; before any, one less than the first number.
    acked: i64,
    /// Retransmissions in order; some have been acknowledged or lost since.
    order: VecDeque<Retransmission>,
    /// Buffers of [`Forward::judge`], kept for their allocation and empty between calls.
    turns: Vec<(u32, i64)>,
    kept: Vec<Retransmission>,
}

impl Default for Forward {
    fn default() -> Forward {
        Forward {
            edge: None,
            end: 0,
            judged: 0,
            acked: -1,
            order: VecDeque::new(),
            turns: Vec::new(),
            kept: Vec::new(),
        }
    }
}

/// The information in an acknowledgement.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct News {
    pub(super) sacked: bool,
    pub(super) lost: bool,
    /// It may answer a retransmission, so its round-trip time is ambiguous.
    pub(super) ambiguous: bool,
}

impl Forward {
    /// Resets the state and keeps the allocations.
    fn clear(&mut self, sent: &Scoreboard) {
        self.order.clear();
        (self.edge, self.end, self.judged) = (None, 0, 0);
        self.acked = i64::from(sent.next_number()) - 1;
    }

    /// The recovery has ended: clears all SACKed and lost marks.
    pub(super) fn recovered(&mut self, sent: &mut Scoreboard) {
        sent.forget();
        self.clear(sent);
    }

    /// Drops segments below `una`. Returns whether a newer retransmission than before was acknowledged.
    fn clean(&mut self, sent: &mut Scoreboard, una: u32, news: &mut News) -> bool {
        let mut newer = false;
        sent.acked(una, |delivered| {
            if let Some(number) = delivered.number.map(i64::from) {
                newer |= number > self.acked;
                self.acked = self.acked.max(number);
                news.ambiguous = true;
            }
        });
        newer
    }

    /// Processes an acknowledgement; segments below `max` have been sent.
    pub(super) fn update(
        &mut self,
        sent: &mut Scoreboard,
        (una, max): (u32, u32),
        options: Option<&TcpOptions>,
        news: &mut News,
    ) {
        let mut thorough = self.clean(sent, una, news);
        if self.end <= una {
            self.clear(sent);
            thorough = false;
        }
        let mut blocks = [Block::default(); 3];
        let mut n = 0;
        for block in options.into_iter().flat_map(TcpOptions::blocks) {
            // the segment `una` itself is missing, otherwise it would have been acknowledged
            let (start, end) = (block.start.max(una.saturating_add(1)), block.end.min(max));
            if start < end {
                blocks[n] = Block { start, end };
                n += 1;
            }
        }
        if n == 0 && !thorough {
            return;
        }
        blocks[..n].sort_unstable_by_key(|b| b.start);
        if let Some(end) = blocks[..n].iter().map(|b| b.end).max()
            && self.edge.is_none_or(|f| f < end - 1)
        {
            self.edge = Some(end - 1);
            thorough = true;
        }
        let Some(edge) = self.edge else { return };
        self.end = self.end.max(edge + 1);
        self.judge(sent, una, &blocks, edge, thorough, news);
    }

    /// Marks the segments in the blocks as SACKed, and those far enough below the forward edge as lost.
    ///
    /// ns-2 does this segment by segment, which matters for retransmissions in two ways. First, each one is compared
    /// with the newest retransmission acknowledged before its turn, since a block may acknowledge newer ones further
    /// on. Second, if the acknowledgement has nothing new about the edge or retransmissions (it is not `thorough`),
    /// ns-2 stops at the first segment beyond the blocks, so later ones get no turn.
    fn judge(
        &mut self,
        sent: &mut Scoreboard,
        una: u32,
        blocks: &[Block; 3],
        edge: u32,
        thorough: bool,
        news: &mut News,
    ) {
        let before = self.acked;
        let mut newest = before;
        sent.reported(blocks, |delivered| {
            if let Some(number) = delivered.number.map(i64::from) {
                self.acked = number;
                self.turns.push((delivered.seq, number));
                newest = newest.max(number);
                news.ambiguous = true;
            }
            news.sacked = true;
        });
        // A first transmission is judged once, when the edge has passed it by more than DupThresh segments.
        for seq in self.judged.max(una)..edge.saturating_sub(DUPLICATES) {
            if sent.is_pristine(seq) {
                sent.lose(seq);
                news.lost = true;
            }
        }
        self.judged = self.judged.max(edge.saturating_sub(DUPLICATES));
        if self.order.is_empty() {
            return self.turns.clear();
        }
        let beyond = blocks.iter().map(|b| b.end).max().filter(|&end| end > 0 && !thorough && self.turns.is_empty());
        let turns_end = beyond.map_or(u32::MAX, |end| sent.not_sacked(end) + 1);
        // Older retransmissions are lost earlier: if one is not lost, no later one is.
        while let Some(&again) = self.order.front() {
            let Retransmission { seq, number, next } = again;
            let stands = sent.number(seq) == Some(number);
            let is_lost = |newest: i64| next <= edge || i64::from(number) + i64::from(DUPLICATES) + 1 < newest;
            if stands && !is_lost(newest) {
                break;
            }
            self.order.pop_front();
            if stands {
                let turn = self.turns.partition_point(|&(at, _)| at < seq);
                let newest = turn.checked_sub(1).map_or(before, |i| self.turns[i].1);
                if seq < turns_end && is_lost(newest) {
                    sent.lose(seq);
                    news.lost = true;
                } else {
                    self.kept.push(again);
                }
            }
        }
        while let Some(again) = self.kept.pop() {
            self.order.push_front(again);
        }
        self.turns.clear();
    }

    /// After a timeout, marks all segments that are not SACKed as lost.
    pub(super) fn all_lost(&mut self, sent: &mut Scoreboard, nxt: u32) {
        sent.timed_out(|_| true);
        self.end = self.end.max(nxt);
        self.order.clear();
        self.acked = i64::from(sent.next_number()) - 1;
    }

    /// A lost segment was retransmitted; `next` is the next new segment.
    pub(super) fn sent_again(&mut self, sent: &Scoreboard, seq: u32, next: u32) {
        if let Some(number) = sent.number(seq) {
            self.order.push_back(Retransmission { seq, number, next });
        }
    }
}

#[cfg(test)]
mod tests;
