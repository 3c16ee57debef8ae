//! What ns-2's TCP-Linux knows of each outstanding segment, with forward acknowledgement.
//!
//! Source: the behaviour of `scoreboard1.cc` of ns-2.35, which goes through all segments with every acknowledgement that
//! carries blocks. Here an acknowledgement costs what it changes, and gives the same marks: those below the forward edge
//! are judged as the edge passes, retransmissions in the order in which they left.

use super::sender::DUPLICATES;
use paceline_packet::{Block, TcpOptions};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What is known of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    InFlight,
    /// As all from here to below `to`.
    Sacked {
        to: u32,
    },
    Lost,
    /// Sent again as number `id` of this recovery.
    Again {
        id: i64,
    },
}

/// A retransmission: of which segment, its number in this recovery, and the next new segment when it left.
#[derive(Clone, Copy, Debug)]
struct Again {
    seq: u32,
    id: i64,
    next: u32,
}

/// Marks of the outstanding segments.
#[derive(Debug)]
pub(super) struct Scoreboard {
    /// Marks of the segments from `first` on.
    marks: VecDeque<Mark>,
    first: u32,
    /// Highest segment reported, if any is.
    forward: Option<u32>,
    /// Below it none is in flight for the first time.
    judged: u32,
    sacked: u32,
    lost: u32,
    /// The lost, the first on top; among them some that are not any more.
    waiting: BinaryHeap<Reverse<u32>>,
    /// Number of the next retransmission; of the newest that was acknowledged.
    again: i64,
    again_acked: i64,
    /// Retransmissions in order, of which some have been answered or lost since.
    order: VecDeque<Again>,
    /// Room for what [`Scoreboard::judge`] needs, empty between its calls.
    turns: Vec<(u32, i64)>,
    kept: Vec<Again>,
}

impl Default for Scoreboard {
    fn default() -> Scoreboard {
        Scoreboard {
            marks: VecDeque::new(),
            first: 0,
            forward: None,
            judged: 0,
            sacked: 0,
            lost: 0,
            waiting: BinaryHeap::new(),
            again: 0,
            again_acked: -1,
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

impl Scoreboard {
    /// Forgets everything, but not the room for it.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
        self.waiting.clear();
        self.order.clear();
        (self.first, self.forward, self.judged) = (0, None, 0);
        (self.sacked, self.lost) = (0, 0);
        (self.again, self.again_acked) = (0, -1);
    }

    pub(super) fn in_flight(&self, una: u32, nxt: u32) -> u32 {
        (nxt - una).saturating_sub(self.lost + self.sacked)
    }

    /// Drops what lies below `una`. Says whether a newer retransmission than before was acknowledged.
    fn clean(&mut self, una: u32, news: &mut News) -> bool {
        let mut newer = false;
        while self.first < una {
            match self.marks.pop_front() {
                Some(Mark::Sacked { .. }) => self.sacked -= 1,
                Some(Mark::Lost) => self.lost -= 1,
                Some(Mark::Again { id }) => {
                    if id > self.again_acked {
                        self.again_acked = id;
                        newer = true;
                    }
                    news.ambiguous = true;
                }
                Some(Mark::InFlight) => {}
                None => {
                    self.first = una;
                    break;
                }
            }
            self.first += 1;
        }
        newer
    }

    /// Takes in an acknowledgement.
    pub(super) fn update(&mut self, una: u32, max: u32, extra: Option<&TcpOptions>, news: &mut News) {
        let mut thorough = self.clean(una, news);
        if self.marks.is_empty() {
            self.clear();
            self.first = una;
            thorough = false;
        }
        let mut blocks = [Block::default(); 3];
        let mut n = 0;
        for block in extra.into_iter().flat_map(TcpOptions::blocks) {
            let (start, end) = (block.start.max(una), block.end.min(max));
            if start < end {
                blocks[n] = Block { start, end };
                n += 1;
            }
        }
        let blocks = &mut blocks[..n];
        if blocks.is_empty() && !thorough {
            return;
        }
        blocks.sort_unstable_by_key(|b| b.start);
        if let Some(end) = blocks.iter().map(|b| b.end).max() {
            if self.forward.is_none_or(|f| f < end - 1) {
                self.forward = Some(end - 1);
                thorough = true;
            }
        }
        let Some(forward) = self.forward else { return };
        let length = (forward + 1).saturating_sub(self.first) as usize;
        while self.marks.len() < length {
            self.marks.push_back(Mark::InFlight);
        }
        self.judge(blocks, forward, thorough, news);
    }

    /// Marks what the blocks cover, and what lies far enough behind the forward edge as lost.
    ///
    /// ns-2 does this segment after segment, so two things count for a retransmission that is judged: which was the newest
    /// to be answered when its turn came, for a block may answer newer ones behind it; and, if the acknowledgement says
    /// nothing new of the edge or of retransmissions (it is not `thorough`), whether its turn comes, for then ns-2 stops
    /// with the first segment beyond the blocks.
    fn judge(&mut self, blocks: &[Block], forward: u32, thorough: bool, news: &mut News) {
        let before = self.again_acked;
        let mut newest = before;
        for block in blocks {
            let mut seq = self.not_sacked(block.start);
            while seq < block.end {
                let mark = &mut self.marks[(seq - self.first) as usize];
                match std::mem::replace(mark, Mark::Sacked { to: seq + 1 }) {
                    Mark::Lost => self.lost -= 1,
                    Mark::Again { id } => {
                        self.again_acked = id;
                        self.turns.push((seq, id));
                        newest = newest.max(id);
                        news.ambiguous = true;
                    }
                    Mark::InFlight | Mark::Sacked { .. } => {}
                }
                self.sacked += 1;
                news.sacked = true;
                seq = self.not_sacked(seq + 1);
            }
        }
        // Those in flight for the first time are behind the edge by more than duplicates explain once, when it passes.
        for seq in self.judged.max(self.first)..forward.saturating_sub(DUPLICATES) {
            if self.marks[(seq - self.first) as usize] == Mark::InFlight {
                self.lose(seq, news);
            }
        }
        self.judged = self.judged.max(forward.saturating_sub(DUPLICATES));
        if self.order.is_empty() {
            return self.turns.clear();
        }
        let beyond = blocks.iter().map(|b| b.end).max().filter(|_| !thorough && self.turns.is_empty());
        let turns_end = beyond.map_or(u32::MAX, |end| self.not_sacked(end) + 1);
        // The older the retransmission, the sooner it counts as lost: behind one that does not, none does.
        while let Some(&again) = self.order.front() {
            let Again { seq, id, next } = again;
            let mark = seq.checked_sub(self.first).and_then(|i| self.marks.get(i as usize));
            let stands = mark == Some(&Mark::Again { id });
            let is_lost = |newest: i64| next <= forward || id + i64::from(DUPLICATES) + 1 < newest;
            if stands && !is_lost(newest) {
                break;
            }
            self.order.pop_front();
            if stands {
                let turn = self.turns.partition_point(|&(at, _)| at < seq);
                let newest = turn.checked_sub(1).map_or(before, |i| self.turns[i].1);
                if seq < turns_end && is_lost(newest) {
                    self.lose(seq, news);
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

    fn lose(&mut self, seq: u32, news: &mut News) {
        self.marks[(seq - self.first) as usize] = Mark::Lost;
        self.lost += 1;
        self.waiting.push(Reverse(seq));
        news.lost = true;
    }

    /// The first segment from `seq` on that has not been reported.
    fn not_sacked(&mut self, seq: u32) -> u32 {
        let reported = |board: &Scoreboard, seq: u32| match board.marks.get((seq - board.first) as usize) {
            Some(Mark::Sacked { to }) => Some(*to),
            _ => None,
        };
        let mut end = seq;
        while let Some(to) = reported(self, end) {
            end = to;
        }
        // The next search from any of these goes there at once.
        let mut at = seq;
        while let Some(to) = reported(self, at) {
            self.marks[(at - self.first) as usize] = Mark::Sacked { to: end };
            at = to;
        }
        end
    }

    /// After a timeout everything that was not reported counts as lost.
    pub(super) fn all_lost(&mut self, una: u32, nxt: u32) {
        if self.marks.is_empty() {
            self.first = una;
        }
        while self.first + (self.marks.len() as u32) < nxt {
            self.marks.push_back(Mark::InFlight);
        }
        self.waiting.clear();
        for (seq, mark) in (self.first..).zip(&mut self.marks) {
            if matches!(mark, Mark::Sacked { .. }) {
                continue;
            }
            if *mark != Mark::Lost {
                *mark = Mark::Lost;
                self.lost += 1;
            }
            self.waiting.push(Reverse(seq));
        }
        self.order.clear();
        self.again = 0;
        self.again_acked = -1;
    }

    /// The next segment to send again.
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        while let Some(&Reverse(seq)) = self.waiting.peek() {
            let place = seq.checked_sub(self.first);
            if place.and_then(|i| self.marks.get(i as usize)) == Some(&Mark::Lost) {
                return Some(seq);
            }
            self.waiting.pop();
        }
        None
    }

    /// A lost segment leaves again, when the next new one is `next`.
    pub(super) fn sent_again(&mut self, seq: u32, next: u32) {
        if let Some(mark) = self.marks.get_mut((seq - self.first) as usize) {
            *mark = Mark::Again { id: self.again };
            self.order.push_back(Again { seq, id: self.again, next });
            self.again += 1;
            self.lost -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
