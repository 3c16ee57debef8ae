//! Compares loss detection with a reference that searches all segments at every acknowledgement, as ns-2 does.

use super::{Forward, News};
use crate::tcp::connection::DUPLICATES;
use crate::tcp::scoreboard::Scoreboard;
use paceline_packet::{Block, TcpOptions};
use paceline_units::Time;
use proptest::prelude::*;
use std::collections::VecDeque;

/// The state of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    InFlight,
    Sacked,
    Lost,
    /// Retransmitted as number `id` of this recovery, when the next new segment was `next`.
    Retransmitted {
        next: u32,
        id: i64,
    },
}

/// The reference, segment by segment.
#[derive(Debug)]
struct Plain {
    marks: VecDeque<Mark>,
    first: u32,
    forward: Option<u32>,
    sacked: u32,
    lost: u32,
    again: i64,
    again_acked: i64,
    /// Below this, no segment waits for its retransmission.
    cursor: u32,
}

impl Default for Plain {
    fn default() -> Plain {
        Plain {
            marks: VecDeque::new(),
            first: 0,
            forward: None,
            sacked: 0,
            lost: 0,
            again: 0,
            again_acked: -1,
            cursor: 0,
        }
    }
}

impl Plain {
    fn clear(&mut self) {
        *self = Plain::default();
    }

    /// Drops segments below `una`. Returns whether a newer retransmission than before was acknowledged.
    fn clean(&mut self, una: u32, news: &mut News) -> bool {
        let mut newer = false;
        while self.first < una {
            match self.marks.pop_front() {
                Some(Mark::Sacked) => self.sacked -= 1,
                Some(Mark::Lost) => self.lost -= 1,
                Some(Mark::Retransmitted { id, .. }) => {
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

    /// Processes an acknowledgement.
    fn update(&mut self, una: u32, max: u32, extra: Option<&TcpOptions>, news: &mut News) {
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
        if let Some(end) = blocks.iter().map(|b| b.end).max()
            && self.forward.is_none_or(|f| f < end - 1)
        {
            self.forward = Some(end - 1);
            thorough = true;
        }
        let Some(forward) = self.forward else { return };
        let length = (forward + 1).saturating_sub(self.first) as usize;
        while self.marks.len() < length {
            self.marks.push_back(Mark::InFlight);
        }
        self.cursor = self.first;
        self.judge(blocks, forward, thorough, news);
    }

    /// Marks the segments in the blocks as SACKed, and those far enough below the forward edge as lost.
    fn judge(&mut self, blocks: &[Block], forward: u32, mut thorough: bool, news: &mut News) {
        let mut block = 0;
        for i in 0..self.marks.len() {
            if block >= blocks.len() && !thorough {
                break;
            }
            let seq = self.first + i as u32;
            let mark = self.marks[i];
            if mark == Mark::Sacked {
                continue;
            }
            while blocks.get(block).is_some_and(|b| b.end <= seq) {
                block += 1;
            }
            if blocks.get(block).is_some_and(|b| b.start <= seq) {
                match mark {
                    Mark::Lost => self.lost -= 1,
                    Mark::Retransmitted { id, .. } => {
                        self.again_acked = id;
                        news.ambiguous = true;
                        thorough = true;
                    }
                    _ => {}
                }
                self.sacked += 1;
                news.sacked = true;
                self.marks[i] = Mark::Sacked;
                continue;
            }
            let lost = match mark {
                Mark::InFlight => seq + DUPLICATES < forward,
                Mark::Retransmitted { next, id } => {
                    next <= forward || id + i64::from(DUPLICATES) + 1 < self.again_acked
                }
                _ => false,
            };
            if lost {
                self.marks[i] = Mark::Lost;
                self.lost += 1;
                news.lost = true;
            }
        }
    }

    /// After a timeout, marks all segments that are not SACKed as lost.
    fn all_lost(&mut self, una: u32, nxt: u32) {
        if self.marks.is_empty() {
            self.first = una;
        }
        while self.first + (self.marks.len() as u32) < nxt {
            self.marks.push_back(Mark::InFlight);
        }
        for mark in &mut self.marks {
            if !matches!(mark, Mark::Sacked | Mark::Lost) {
                *mark = Mark::Lost;
                self.lost += 1;
            }
        }
        self.again = 0;
        self.again_acked = -1;
        self.cursor = self.first;
    }

    /// The next segment to retransmit.
    fn next_lost(&mut self) -> Option<u32> {
        self.cursor = self.cursor.max(self.first);
        loop {
            match self.marks.get((self.cursor - self.first) as usize)? {
                Mark::Lost => return Some(self.cursor),
                _ => self.cursor += 1,
            }
        }
    }

    fn sent_again(&mut self, seq: u32, next: u32) {
        if let Some(mark) = self.marks.get_mut((seq - self.first) as usize) {
            *mark = Mark::Retransmitted { next, id: self.again };
            self.again += 1;
            self.lost -= 1;
        }
    }
}

/// An event for both.
#[derive(Clone, Debug)]
enum Step {
    /// An acknowledgement: how far `una` advances, and blocks relative to it: their distance and their length.
    Ack(u32, Vec<(u32, u32)>),
    /// Sends new segments, and lost segments.
    Send(u32, u32),
    Timeout,
    Recovered,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let blocks = prop::collection::vec((1u32..40, 0u32..12), 0..=3);
    let edge = prop_oneof![5 => Just(0u32), 1 => 0u32..4, 1 => 0u32..60];
    let step = prop_oneof![
        12 => (edge, blocks).prop_map(|(edge, blocks)| Step::Ack(edge, blocks)),
        8 => (0u32..6, 0u32..6).prop_map(|(new, again)| Step::Send(new, again)),
        1 => Just(Step::Timeout),
        1 => Just(Step::Recovered),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #[test]
    fn the_same_as_segment_after_segment(steps in steps()) {
        let (mut forward, mut sent, mut plain) = (Forward::default(), Scoreboard::new(0, false), Plain::default());
        let (mut una, mut nxt) = (0u32, 20u32);
        (0..nxt).for_each(|seq| _ = sent.leaves(seq, Time::ZERO));
        for step in steps {
            match step {
                Step::Ack(edge, blocks) => {
                    // a receiver acknowledges everything that it has in order
                    una = sent.not_sacked((una + edge).min(nxt));
                    let mut options = TcpOptions::NONE;
                    for (to, (from, long)) in options.sack.iter_mut().zip(blocks) {
                        *to = Block { start: una + from, end: una + from + long };
                    }
                    let (mut news, mut expected) = (News::default(), News::default());
                    forward.update(&mut sent, (una, nxt), Some(&options), &mut news);
                    plain.update(una, nxt, Some(&options), &mut expected);
                    prop_assert_eq!(format!("{news:?}"), format!("{expected:?}"));
                }
                Step::Send(new, again) => {
                    (nxt..nxt + new).for_each(|seq| _ = sent.leaves(seq, Time::ZERO));
                    nxt += new;
                    for _ in 0..again {
                        let lost = sent.next_lost();
                        prop_assert_eq!(lost, plain.next_lost());
                        let Some(seq) = lost else { break };
                        sent.leaves(seq, Time::ZERO);
                        forward.sent_again(&sent, seq, nxt);
                        plain.sent_again(seq, nxt);
                    }
                }
                Step::Timeout if una < nxt => {
                    forward.all_lost(&mut sent, nxt);
                    plain.all_lost(una, nxt);
                }
                Step::Recovered => {
                    forward.recovered(&mut sent);
                    plain = Plain::default();
                }
                Step::Timeout => {}
            }
            prop_assert_eq!(forward.edge, plain.forward);
            prop_assert_eq!((sent.sacked(), sent.lost() - sent.retransmitted()), (plain.sacked, plain.lost));
            prop_assert_eq!(sent.in_flight(), nxt - una - plain.sacked - plain.lost);
            // numbers continue after a timeout; ns-2's restart
            let first = i64::from(sent.next_number()) - plain.again;
            prop_assert_eq!(forward.acked - first, plain.again_acked);
            for seq in una..nxt {
                let mark = seq.checked_sub(plain.first).and_then(|i| plain.marks.get(i as usize));
                let number = sent.number(seq).map(|n| i64::from(n) - first);
                let again = mark.and_then(|mark| match mark {
                    Mark::Retransmitted { id, .. } => Some(*id),
                    _ => None,
                });
                prop_assert_eq!(number, again, "{}", seq);
                prop_assert_eq!(sent.is_pristine(seq), mark.is_none_or(|mark| *mark == Mark::InFlight), "{}", seq);
                let reported = sent.not_sacked(seq) != seq;
                prop_assert_eq!(reported, mark == Some(&Mark::Sacked), "{}", seq);
            }
        }
    }
}
