//! What is known of each outstanding segment: when it was last sent, whether again, what the receiver has said of it; and, for
//! those who ask, the order of transmission.
//!
//! Vegas, TCP-Linux and profile `linux` keep it; RFC 6675 needs no more than what was reported (`repair/reported.rs`), and the
//! others nothing. Sources: RFC 8985 section 5.2 (per-segment state), RFC 2018; the counters are those of
//! `tcp_packets_in_flight` in `include/net/tcp.h`: what is out, less what was reported, less what is lost, and what of that
//! was sent again.

mod reports;

use super::ring::Ring;
use paceline_packet::Block;
use paceline_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No segment.
const NONE: u32 = u32::MAX;

/// The receiver has reported it.
const SACKED: u8 = 1;
/// It counts as lost.
const LOST: u8 = 1 << 1;
/// A retransmission of it is in flight.
const AGAIN: u8 = 1 << 2;
/// It has been sent again at some time.
const EVER: u8 = 1 << 3;
/// It stands in the list by time.
const LISTED: u8 = 1 << 4;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent: Time,
    /// Neighbours in order of transmission. Of what was reported, `later` is where to look for the next that was not.
    earlier: u32,
    later: u32,
    /// Which retransmission of the connection its last one was.
    number: u32,
    marks: u8,
}

/// A segment that an acknowledgement has told of for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    pub(super) seq: u32,
    /// Where it lies in the ring, until something is sent.
    pub(super) place: usize,
    pub(super) sent: Time,
    /// It had been sent again: which of its transmissions arrived is not known.
    pub(super) again: bool,
    /// The number of the retransmission of it that was in flight, if one was.
    pub(super) number: Option<u32>,
}

impl Slot {
    #[inline]
    fn delivered(&self, seq: u32, place: usize) -> Delivered {
        let number = (self.marks & AGAIN != 0).then_some(self.number);
        Delivered { seq, place, sent: self.sent, again: self.marks & EVER != 0, number }
    }
}

/// The outstanding segments.
#[derive(Debug)]
pub(super) struct Sent {
    slots: Ring<Slot>,
    /// Retransmissions of the connection.
    retransmissions: u32,
    /// Whether there is a list by time.
    by_time: bool,
    /// The list by time of those in flight: its ends.
    oldest: u32,
    newest: u32,
    /// The first of the list that is not judged ([`Sent::judge`]).
    unjudged: u32,
    /// Times in the list go back somewhere before `ordered`: what was taken for lost and had been sent again stands before
    /// what had left earlier.
    disordered: bool,
    ordered: u32,
    sacked: u32,
    lost: u32,
    again: u32,
    /// Segments out and not in flight: the first two less the third, modulo 2^32.
    missing: u32,
    /// Lost and not sent again yet: how many, and the first on top; among them some that are not any more.
    waiting: u32,
    firsts: BinaryHeap<Reverse<u32>>,
    /// One past the highest segment ever reported or acknowledged.
    forward: u32,
    /// The blocks of the last report: what is outstanding of them is known to have been reported.
    known: [Block; 3],
    /// Whether losses are told one by one, and those not told yet.
    reports_losses: bool,
    unreported_losses: Vec<u32>,
}

impl Sent {
    /// Nothing is outstanding, and `first` is the next segment. `by_time`: keep the order of transmission.
    pub(super) fn new(first: u32, by_time: bool) -> Sent {
        Sent {
            slots: Ring::new(first),
            retransmissions: 0,
            by_time,
            oldest: NONE,
            newest: NONE,
            unjudged: NONE,
            disordered: false,
            ordered: NONE,
            sacked: 0,
            lost: 0,
            again: 0,
            missing: 0,
            waiting: 0,
            firsts: BinaryHeap::new(),
            forward: first,
            known: [Block::default(); 3],
            reports_losses: false,
            unreported_losses: Vec::new(),
        }
    }

    /// Whether what is lost is kept for [`Sent::take_lost`].
    pub(super) fn telling(self, tells: bool) -> Sent {
        Sent { reports_losses: tells, ..self }
    }

    /// The same for a fresh connection; the room stays.
    pub(super) fn begin(&mut self, first: u32) {
        let mut slots = core::mem::replace(&mut self.slots, Ring::new(first));
        let mut firsts = core::mem::take(&mut self.firsts);
        slots.begin(first);
        firsts.clear();
        *self = Sent { slots, firsts, reports_losses: self.reports_losses, ..Sent::new(first, self.by_time) };
    }

    #[inline(always)]
    fn place(&self, seq: u32) -> Option<usize> {
        self.slots.place(seq)
    }

    pub(super) fn outstanding(&self) -> core::ops::Range<u32> {
        self.slots.first()..self.slots.end()
    }

    /// Changes marks, and the counters with them.
    #[inline]
    fn mark(&mut self, i: usize, marks: u8) {
        let slot = &mut self.slots[i];
        let old = core::mem::replace(&mut slot.marks, marks);
        let count = |count: &mut u32, is: bool| *count = if is { *count + 1 } else { *count - 1 };
        if (old ^ marks) & SACKED != 0 {
            count(&mut self.sacked, marks & SACKED != 0);
            self.missing = self.not_in_flight();
        }
        if (old ^ marks) & (LOST | AGAIN) == 0 {
            return;
        }
        let waits = |m: u8| m & (LOST | AGAIN) == LOST;
        if (old ^ marks) & LOST != 0 {
            count(&mut self.lost, marks & LOST != 0);
        }
        if (old ^ marks) & AGAIN != 0 {
            count(&mut self.again, marks & AGAIN != 0);
        }
        if waits(old) != waits(marks) {
            count(&mut self.waiting, waits(marks));
        }
        self.missing = self.not_in_flight();
    }

    fn not_in_flight(&self) -> u32 {
        (self.sacked + self.lost).wrapping_sub(self.again)
    }

    fn unlink(&mut self, seq: u32, i: usize) {
        let Slot { earlier, later, marks, .. } = self.slots[i];
        if marks & LISTED == 0 {
            return;
        }
        self.slots[i].marks &= !LISTED;
        for begin in [&mut self.unjudged, &mut self.ordered] {
            if *begin == seq {
                *begin = later;
            }
        }
        match self.place(earlier) {
            Some(e) => self.slots[e].later = later,
            None => self.oldest = later,
        }
        match self.place(later) {
            Some(l) => self.slots[l].earlier = earlier,
            None => self.newest = earlier,
        }
    }

    #[inline(always)]
    fn link_newest(&mut self, seq: u32, i: usize) {
        if !self.by_time {
            return;
        }
        let earlier = self.append(seq);
        let slot = &mut self.slots[i];
        (slot.earlier, slot.later) = (earlier, NONE);
        slot.marks |= LISTED;
    }

    /// The segment is the last of the list; gives the one before it. Its own links are still to be set.
    #[inline(always)]
    fn append(&mut self, seq: u32) -> u32 {
        let newest = core::mem::replace(&mut self.newest, seq);
        match self.place(newest) {
            Some(n) => self.slots[n].later = seq,
            None => self.oldest = seq,
        }
        for begin in [&mut self.unjudged, &mut self.ordered] {
            if *begin == NONE {
                *begin = seq;
            }
        }
        newest
    }

    fn link_oldest(&mut self, seq: u32, i: usize) {
        if !self.by_time {
            return;
        }
        let oldest = core::mem::replace(&mut self.oldest, seq);
        match self.place(oldest) {
            Some(o) => {
                self.slots[o].earlier = seq;
                if self.slots[o].sent < self.slots[i].sent {
                    self.disordered = true;
                }
                if !self.disordered {
                    self.ordered = seq;
                }
            }
            None => {
                self.newest = seq;
                (self.disordered, self.ordered) = (false, seq);
            }
        }
        self.unjudged = seq; // the judgement begins again
        let slot = &mut self.slots[i];
        (slot.earlier, slot.later) = (NONE, oldest);
        slot.marks |= LISTED;
    }

    /// The segment leaves, for the first time or again. Gives its place in the ring.
    #[inline(always)]
    pub(super) fn leaves(&mut self, seq: u32, now: Time) -> Option<usize> {
        if self.slots.len() == 0 || seq == self.slots.end() {
            return Some(self.leaves_new(seq, now));
        }
        let i = self.place(seq)?;
        self.leaves_again(seq, i, now);
        Some(i)
    }

    /// The segment leaves, which is the one after the last that is outstanding, or the only one.
    #[inline(always)]
    pub(super) fn leaves_new(&mut self, seq: u32, now: Time) -> usize {
        if self.slots.len() == 0 {
            self.slots.begin(seq);
        }
        debug_assert!(seq == self.slots.end());
        if !self.by_time {
            return self.slots.push(Slot { sent: now, earlier: NONE, later: NONE, number: 0, marks: 0 });
        }
        let earlier = self.append(seq);
        self.slots.push(Slot { sent: now, earlier, later: NONE, number: 0, marks: LISTED })
    }

    /// How many places the ring has, and the segments that lie there: what is kept beside it moves with it.
    #[inline(always)]
    pub(super) fn places(&self) -> usize {
        self.slots.places()
    }

    #[cold]
    fn leaves_again(&mut self, seq: u32, i: usize, now: Time) {
        self.unlink(seq, i);
        self.slots[i].sent = now;
        self.slots[i].number = self.retransmissions;
        self.retransmissions = self.retransmissions.wrapping_add(1);
        self.mark(i, self.slots[i].marks | AGAIN | EVER);
        self.link_newest(seq, i);
    }

    /// Everything below `una` is acknowledged; tells what had not been reported.
    #[inline]
    pub(super) fn acked(&mut self, una: u32, mut news: impl FnMut(Delivered)) {
        while self.slots.first() < una
            && let Some(i) = self.place(self.slots.first())
        {
            let (seq, slot) = (self.slots.first(), self.slots[i]);
            let delivered = slot.delivered(seq, i);
            if slot.marks & LISTED != 0 {
                self.unlink(seq, i);
            }
            if slot.marks & (SACKED | LOST | AGAIN) != 0 {
                self.mark(i, 0);
            }
            self.slots.pop();
            if slot.marks & SACKED == 0 {
                news(delivered);
            }
        }
        self.slots.drop_below(una);
        self.forward = self.forward.max(una);
    }

    /// Whether all below `una` left once, and nothing has been heard of it.
    #[inline]
    pub(super) fn are_plain(&self, una: u32) -> bool {
        (self.slots.first()..una).all(|seq| self.slots.get(seq).is_some_and(|slot| slot.marks == LISTED))
    }

    /// The same as [`Sent::acked`] for segments that [are plain](Sent::are_plain); tells each.
    #[inline]
    pub(super) fn acked_in_order(&mut self, una: u32, mut news: impl FnMut(Delivered)) {
        while self.slots.first() < una
            && let Some(i) = self.place(self.slots.first())
        {
            let (seq, sent) = (self.slots.first(), self.slots[i].sent);
            if self.oldest == seq {
                self.leave_oldest(i);
            } else {
                self.unlink(seq, i);
            }
            self.slots.pop();
            news(Delivered { seq, place: i, sent, again: false, number: None });
        }
        self.forward = self.forward.max(una);
    }

    /// Takes the first segment, which is the oldest, off the list by time.
    #[inline]
    fn leave_oldest(&mut self, i: usize) {
        let (seq, later) = (self.oldest, self.slots[i].later);
        for begin in [&mut self.unjudged, &mut self.ordered] {
            if *begin == seq {
                *begin = later;
            }
        }
        self.oldest = later;
        match self.place(later) {
            Some(l) => self.slots[l].earlier = NONE,
            None => self.newest = NONE,
        }
    }

    /// The segment counts as lost, it or its retransmission. Says whether it was a retransmission.
    pub(super) fn lose(&mut self, seq: u32) -> bool {
        let Some(i) = self.place(seq) else { return false };
        let marks = self.slots[i].marks;
        if marks & SACKED != 0 || marks & (LOST | AGAIN) == LOST {
            return false; // the receiver has it, or it waits to be sent again already
        }
        if self.waiting == 0 {
            self.firsts.clear(); // of those that waited once
        }
        self.unlink(seq, i);
        self.mark(i, self.slots[i].marks & !AGAIN | LOST);
        self.firsts.push(Reverse(seq));
        if self.reports_losses {
            self.unreported_losses.push(seq);
        }
        marks & AGAIN != 0
    }

    /// Whether [`Sent::take_lost`] has something to give.
    #[inline]
    pub(super) fn has_lost(&self) -> bool {
        !self.unreported_losses.is_empty()
    }

    /// What was lost since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.unreported_losses)
    }

    /// A retransmission timeout (RFC 8985 section 6.3): lost is the first segment, and what `old` says; all, if the
    /// receiver has thrown away what it had reported (RFC 2018 section 8).
    pub(super) fn timed_out(&mut self, old: impl Fn(Time) -> bool) {
        let renounced = self.slots.head().is_some_and(|s| s.marks & SACKED != 0);
        if renounced {
            self.known = [Block::default(); 3];
        }
        for seq in self.outstanding() {
            let Some(i) = self.place(seq) else { break };
            let Slot { sent, marks, .. } = self.slots[i];
            if renounced {
                self.mark(i, marks & !SACKED);
            }
            if renounced || seq == self.slots.first() || old(sent) {
                self.lose(seq);
            }
        }
    }

    /// What was reported, and what was taken for lost, is forgotten (ns-2's TCP-Linux, when a recovery ends).
    pub(super) fn forget(&mut self) {
        debug_assert!(!self.by_time, "what is found again has no place in the order");
        for seq in self.outstanding() {
            let Some(i) = self.place(seq) else { break };
            self.mark(i, self.slots[i].marks & EVER);
        }
        self.known = [Block::default(); 3];
        self.firsts.clear();
    }

    /// Nothing was lost after all (`tcp_undo_cwnd_reduction`).
    pub(super) fn found(&mut self) {
        for seq in self.outstanding().rev() {
            let Some(i) = self.place(seq) else { break };
            let marks = self.slots[i].marks;
            if marks & LOST != 0 {
                self.mark(i, marks & !LOST);
                if marks & LISTED == 0 {
                    self.link_oldest(seq, i);
                }
            }
        }
    }

    /// The next segment to send again, in order of number.
    #[inline(always)]
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        if self.waiting == 0 { None } else { self.first_waiting() }
    }

    #[inline(never)]
    fn first_waiting(&mut self) -> Option<u32> {
        while let Some(&Reverse(seq)) = self.firsts.peek() {
            if self.place(seq).is_some_and(|i| self.slots[i].marks & (LOST | AGAIN) == LOST) {
                return Some(seq);
            }
            self.firsts.pop();
        }
        None
    }

    /// The segment that was sent longest ago and is in flight, and when; then the one after it.
    pub(super) fn oldest(&self) -> Option<(u32, Time)> {
        self.place(self.oldest).map(|i| (self.oldest, self.slots[i].sent))
    }

    pub(super) fn after(&self, seq: u32) -> Option<(u32, Time)> {
        let later = self.slots[self.place(seq)?].later;
        self.place(later).map(|i| (later, self.slots[i].sent))
    }

    /// Whether times in the list never go back.
    #[inline]
    pub(super) fn is_ordered(&mut self) -> bool {
        self.disordered &= self.oldest != self.ordered;
        !self.disordered
    }

    /// So that all are gone through.
    #[cfg(test)]
    pub(super) fn take_for_disordered(&mut self) {
        (self.disordered, self.ordered) = (true, NONE);
    }

    /// Moves the part of the list that is judged up to what left before `newest`, a time and a segment, which must not go
    /// back from one call to the next. Says whether there is such a part.
    #[inline(always)]
    pub(super) fn judge(&mut self, newest: (Time, u32)) -> bool {
        while let Some(i) = self.place(self.unjudged)
            && (self.slots[i].sent, self.unjudged) < newest
        {
            self.unjudged = self.slots[i].later;
        }
        self.oldest != self.unjudged
    }

    /// When the last segment of the part that is judged was sent.
    pub(super) fn last_judged(&self) -> Option<Time> {
        let last = self.place(self.unjudged).map_or(self.newest, |i| self.slots[i].earlier);
        self.place(last).map(|i| self.slots[i].sent)
    }

    /// The segment that was sent longest ago of those that are judged.
    pub(super) fn oldest_judged(&self) -> Option<(u32, Time)> {
        self.oldest().filter(|&(seq, _)| seq != self.unjudged)
    }

    /// When the first outstanding segment was last sent, and whether it was sent again.
    #[inline(always)]
    pub(super) fn head(&self) -> Option<(Time, bool)> {
        self.slots.head().map(|s| (s.sent, s.marks & EVER != 0))
    }

    /// When the segment was last sent, and whether it was sent again.
    pub(super) fn get(&self, seq: u32) -> Option<(Time, bool)> {
        self.place(seq).map(|i| (self.slots[i].sent, self.slots[i].marks & EVER != 0))
    }

    /// Whether nothing is known of the segment but that it was sent once.
    pub(super) fn is_pristine(&self, seq: u32) -> bool {
        self.place(seq).is_some_and(|i| self.slots[i].marks & (SACKED | LOST | AGAIN) == 0)
    }

    /// Which retransmission of the segment is in flight, if one is.
    pub(super) fn number(&self, seq: u32) -> Option<u32> {
        let i = self.place(seq)?;
        self.slots[i].delivered(seq, i).number
    }

    /// The number of the next retransmission.
    pub(super) fn next_number(&self) -> u32 {
        self.retransmissions
    }

    /// Segments in flight.
    #[inline(always)]
    pub(super) fn in_flight(&self) -> u32 {
        debug_assert!(self.missing == self.not_in_flight());
        self.slots.len().wrapping_sub(self.missing)
    }

    /// Segments out, reported, lost, and sent again.
    pub(super) fn out(&self) -> u32 {
        self.slots.len()
    }
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }
    /// Segments below `seq` that were reported.
    pub(super) fn sacked_below(&self, seq: u32) -> u32 {
        if self.sacked == 0 {
            return 0;
        }
        let below = (self.outstanding().start..seq).filter_map(|seq| self.place(seq));
        below.filter(|&i| self.slots[i].marks & SACKED != 0).count() as u32
    }
    pub(super) fn lost(&self) -> u32 {
        self.lost
    }
    pub(super) fn again(&self) -> u32 {
        self.again
    }
    pub(super) fn forward(&self) -> u32 {
        self.forward
    }
}

#[cfg(test)]
mod tests;
