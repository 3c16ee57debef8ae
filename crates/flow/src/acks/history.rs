//! The sender's record of its packets: when each packet of unknown fate was sent.

use paceline_packet::LastHole;
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// A packet is lost when a packet this much higher has arrived.
const OVERTAKEN: u32 = 3;

/// Lost packets: their number, and the highest of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Losses {
    pub(super) packets: u32,
    pub(super) newest: u32,
}

impl Losses {
    fn add(&mut self, seq: u32) {
        self.packets += 1;
        self.newest = self.newest.max(seq);
    }
}

/// The times at which the packets from `first` on were sent; [`Time::NEVER`] for those whose fate is known. The first
/// one's is unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    first: u32,
    left: VecDeque<Time>,
    outstanding: u32,
    /// The last lost packets without an acknowledgement, by number, with the times at which they were sent.
    given_up: VecDeque<(u32, Time)>,
    /// Maximum number of them kept.
    max_given_up: usize,
}

impl History {
    /// Creates an empty history; at most `max_given_up` lost packets are kept.
    pub(super) fn new(max_given_up: usize) -> History {
        History { max_given_up, ..History::default() }
    }

    /// Empties the history; the next packet is `next`.
    pub(super) fn clear(&mut self, next: u32) {
        self.first = next;
        self.left.clear();
        self.outstanding = 0;
        self.given_up.clear();
    }

    /// Records the transmission of the next packet.
    #[inline]
    pub(super) fn sent(&mut self, now: Time) {
        self.left.push_back(now);
        self.outstanding += 1;
    }

    /// The number of packets whose fate is unknown.
    #[inline]
    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// The first of them; without any, the next packet to send.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// When the oldest of them was sent.
    #[inline]
    pub(super) fn oldest(&self) -> Option<Time> {
        self.left.front().copied()
    }

    /// When packet `seq` was sent, if its fate is unknown.
    #[inline]
    pub(super) fn departure(&self, seq: u32) -> Option<Time> {
        let index = seq.checked_sub(self.first)?;
        self.left.get(index as usize).copied().filter(|&time| time != Time::NEVER)
    }

    /// When packet `seq` was sent, if it is lost and has no acknowledgement.
    pub(super) fn departure_of_given_up(&self, seq: u32) -> Option<Time> {
        let index = self.given_up.binary_search_by_key(&seq, |&(seq, _)| seq).ok()?;
        Some(self.given_up[index].1)
    }

    /// Records that packet `seq`, lost before, has arrived; lost packets below it are dropped.
    pub(super) fn on_late_arrival(&mut self, seq: u32) {
        let through = self.given_up.partition_point(|&(given_up, _)| given_up <= seq);
        self.given_up.drain(..through);
    }

    /// Marks the packet at `index` as lost. Later losses have higher numbers, because a packet is overtaken or overdue
    /// together with all below it.
    fn give_up(&mut self, index: usize, lost: &mut Losses) {
        let seq = self.first + index as u32;
        lost.add(seq);
        if self.max_given_up > 0 {
            if self.given_up.len() == self.max_given_up {
                self.given_up.pop_front();
            }
            self.given_up.push_back((seq, self.left[index]));
        }
        self.resolve(index);
    }

    fn resolve(&mut self, index: usize) {
        if let Some(time) = self.left.get_mut(index) {
            *time = Time::NEVER;
            self.outstanding -= 1;
        }
    }

    #[inline]
    fn trim(&mut self) {
        while self.left.front() == Some(&Time::NEVER) {
            self.left.pop_front();
            self.first += 1;
        }
    }

    /// Records that packet `seq`, whose fate was unknown, has arrived.
    #[inline]
    pub(super) fn on_arrival(&mut self, seq: u32) {
        self.resolve((seq - self.first) as usize);
        self.trim();
    }

    /// Evaluates a hole (ns-2's `AckLostPacket`): returns the number of packets that have arrived although their own
    /// acknowledgement has not, and the losses. Packets overtaken by fewer than three stay open.
    #[inline]
    pub(super) fn learn(&mut self, hole: &LastHole) -> (u32, Losses) {
        let (mut arrived, mut lost) = (0, Losses::default());
        let known = hole.received_end.saturating_sub(self.first) as usize;
        for index in 0..known.min(self.left.len()) {
            if self.left[index] == Time::NEVER {
                continue;
            }
            let seq = self.first + index as u32;
            if seq >= hole.hole_end || seq + 1 == hole.hole_start {
                arrived += 1;
            } else if hole.received_end - 1 - seq >= OVERTAKEN {
                self.give_up(index, &mut lost);
                continue;
            } else {
                continue;
            }
            self.resolve(index);
        }
        self.trim();
        (arrived, lost)
    }

    /// Marks packets sent at least `timeout` ago as lost.
    #[inline]
    pub(super) fn expire(&mut self, now: Time, timeout: Span) -> Losses {
        let mut lost = Losses::default();
        while let Some(&left) = self.left.front()
            && left + timeout <= now
        {
            self.give_up(0, &mut lost);
            self.trim();
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(packets: u64) -> History {
        let mut history = History::default();
        (0..packets).for_each(|i| history.sent(Time(i * 10)));
        history
    }

    fn hole(received_end: u32, hole_end: u32, hole_start: u32) -> LastHole {
        LastHole { received_end, hole_end, hole_start }
    }

    #[test]
    fn in_order_nothing_stays() {
        let mut h = history(10);
        for seq in 0..10 {
            assert_eq!(h.departure(seq), Some(Time(u64::from(seq) * 10)));
            h.on_arrival(seq);
            assert_eq!(h.learn(&hole(seq + 1, 0, 0)), (0, Losses::default()));
            assert_eq!(h.outstanding(), 9 - seq);
        }
        assert_eq!((h.departure(3), h.first(), h.oldest()), (None, 10, None));
    }

    #[test]
    fn a_hole_is_a_loss_once_three_have_overtaken_it() {
        let mut h = history(10);
        h.on_arrival(0);
        for seq in [2, 3] {
            h.on_arrival(seq);
            assert_eq!(h.learn(&hole(seq + 1, 2, 1)), (0, Losses::default()));
        }
        h.on_arrival(4);
        assert_eq!(h.learn(&hole(5, 2, 1)), (0, Losses { packets: 1, newest: 1 }));
        assert_eq!((h.first(), h.outstanding()), (5, 5));
    }

    #[test]
    fn a_hole_makes_up_for_lost_acknowledgements() {
        let mut h = history(10);
        // 0 to 2 and 5 to 8 have arrived, 3 and 4 have not; only the acknowledgement of 8 arrives
        h.on_arrival(8);
        assert_eq!(h.learn(&hole(9, 5, 3)), (4, Losses { packets: 4, newest: 4 }));
        // of 0 to 2 the hole shows only the last one
        assert_eq!(h.outstanding(), 1);
    }

    #[test]
    fn what_is_given_up_is_remembered_until_its_answer_comes() {
        let mut h = History::new(3);
        (0..10).for_each(|i| h.sent(Time(i * 10)));
        assert_eq!(h.departure_of_given_up(0), None);
        h.on_arrival(1);
        h.learn(&hole(2, 1, 0));
        assert_eq!(h.expire(Time(140), Span(100)).packets, 4);
        // of 0, 2, 3 and 4 the last three
        let left = |h: &History| (0..10).filter(|&seq| h.departure_of_given_up(seq).is_some()).collect::<Vec<_>>();
        assert_eq!(left(&h), [2, 3, 4]);
        assert_eq!(h.departure_of_given_up(3), Some(Time(30)));
        h.on_late_arrival(3);
        assert_eq!(left(&h), [4]);
        // 9 has arrived, 5 to 8 have not: 5 and 6 are overtaken by three
        h.on_arrival(9);
        assert_eq!(h.learn(&hole(10, 9, 5)).1, Losses { packets: 2, newest: 6 });
        assert_eq!(left(&h), [4, 5, 6]);
        h.clear(10);
        assert!(left(&h).is_empty());
        let mut none = history(3);
        none.expire(Time(1000), Span(100));
        assert!(left(&none).is_empty());
    }

    #[test]
    fn what_is_old_is_lost() {
        let mut h = history(10);
        h.on_arrival(1);
        assert_eq!(h.expire(Time(119), Span(100)), Losses { packets: 1, newest: 0 });
        assert_eq!(h.expire(Time(120), Span(100)), Losses { packets: 1, newest: 2 });
        assert_eq!(h.expire(Time(120), Span(100)), Losses::default());
        assert_eq!(h.expire(Time(1000), Span(100)), Losses { packets: 7, newest: 9 });
        assert_eq!((h.outstanding(), h.first()), (0, 10));
    }
}
