//! What ns-2's TCP-Linux takes for lost: forward acknowledgement.
//!
//! Source: the behaviour of `scoreboard1.cc` of ns-2.35, which goes through all segments with every acknowledgement that
//! carries blocks. Here an acknowledgement costs what it changes, and gives the same marks: those below the forward edge
//! are judged as the edge passes, retransmissions in the order in which they left.

use crate::tcp::connection::DUPLICATES;
use crate::tcp::sent::Sent;
use paceline_packet::{Block, TcpOptions};
use std::collections::VecDeque;

/// A retransmission: of which segment, its number, and the next new segment when it left.
#[derive(Clone, Copy, Debug)]
struct Again {
    seq: u32,
    number: u32,
    next: u32,
}

/// The forward edge, and the retransmissions that it is to judge.
#[derive(Debug)]
pub(super) struct Forward {
    /// Highest segment reported, if any is.
    edge: Option<u32>,
    /// One past the highest segment that may be reported or lost.
    end: u32,
    /// Below it none is in flight for the first time.
    judged: u32,
    /// Number of the newest retransmission that was acknowledged; before any, one less than the first's.
    acked: i64,
    /// Retransmissions in order, of which some have been answered or lost since.
    order: VecDeque<Again>,
    /// Room for what [`Forward::judge`] needs, empty between its calls.
    turns: Vec<(u32, i64)>,
    kept: Vec<Again>,
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

/// What an acknowledgement told.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct News {
    pub(super) sacked: bool,
    pub(super) lost: bool,
    /// It may answer a retransmission: its round trip is ambiguous.
    pub(super) ambiguous: bool,
}

impl Forward {
    /// Forgets everything, but not the room for it.
    fn clear(&mut self, sent: &Sent) {
        self.order.clear();
        (self.edge, self.end, self.judged) = (None, 0, 0);
        self.acked = i64::from(sent.next_number()) - 1;
    }

    /// Recovery is over: what was reported, and what was taken for lost, is forgotten.
    pub(super) fn recovered(&mut self, sent: &mut Sent) {
        sent.forget();
        self.clear(sent);
    }

    /// Drops what lies below `una`. Says whether a newer retransmission than before was acknowledged.
    fn clean(&mut self, sent: &mut Sent, una: u32, news: &mut News) -> bool {
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

    /// Takes in an acknowledgement, of what lies below `max`.
    pub(super) fn update(
        &mut self,
        sent: &mut Sent,
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
            // the left edge itself is missing, or it would have been acknowledged
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

    /// Marks what the blocks cover, and what lies far enough behind the forward edge as lost.
    ///
    /// ns-2 does this segment after segment, so two things count for a retransmission that is judged: which was the newest
    /// to be answered when its turn came, for a block may answer newer ones behind it; and, if the acknowledgement says
    /// nothing new of the edge or of retransmissions (it is not `thorough`), whether its turn comes, for then ns-2 stops
    /// with the first segment beyond the blocks.
    fn judge(&mut self, sent: &mut Sent, una: u32, blocks: &[Block; 3], edge: u32, thorough: bool, news: &mut News) {
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
        // Those in flight for the first time are behind the edge by more than duplicates explain once, when it passes.
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
        // The older the retransmission, the sooner it counts as lost: behind one that does not, none does.
        while let Some(&again) = self.order.front() {
            let Again { seq, number, next } = again;
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

    /// After a timeout everything that was not reported counts as lost.
    pub(super) fn all_lost(&mut self, sent: &mut Sent, nxt: u32) {
        sent.timed_out(|_| true);
        self.end = self.end.max(nxt);
        self.order.clear();
        self.acked = i64::from(sent.next_number()) - 1;
    }

    /// A lost segment has left again; the next new one is `next`.
    pub(super) fn sent_again(&mut self, sent: &Sent, seq: u32, next: u32) {
        if let Some(number) = sent.number(seq) {
            self.order.push_back(Again { seq, number, next });
        }
    }
}

#[cfg(test)]
mod tests;
