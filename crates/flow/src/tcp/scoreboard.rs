//! The scoreboard: for each outstanding segment, when it was last sent, whether it was retransmitted, and what the
//! receiver has reported of it. Optionally, it keeps the order of transmission.
//!
//! Vegas, TCP-Linux and profile `linux` use it. RFC 6675 needs only the reported segments
//! (`loss_recovery/sack_scoreboard.rs`), and the other recoveries need nothing. Sources: RFC 8985 section 5.2
//! (per-segment state), RFC 2018. The counters are those of `tcp_packets_in_flight` in `include/net/tcp.h`: segments
//! out, minus SACKed, minus lost, plus retransmitted.

mod sack_blocks;

use super::ring::Ring;
use paceline_packet::Block;
use paceline_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No segment.
const NONE: u32 = u32::MAX;

/// The receiver has reported it (SACK).
const SACKED: u8 = 1;
/// It is marked lost.
const LOST: u8 = 1 << 1;
/// A retransmission of it is in flight.
const RETRANSMITTED: u8 = 1 << 2;
/// It has been retransmitted at least once.
const EVER_RETRANSMITTED: u8 = 1 << 3;
/// It is in the list by transmission time.
const LISTED: u8 = 1 << 4;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent: Time,
    /// Neighbours in order of transmission. For a SACKed segment, `later` says where to continue the search for one
    /// that is not.
    earlier: u32,
    later: u32,
    /// The number of its last retransmission, counted over the connection.
    number: u32,
    marks: u8,
}

/// A segment that an acknowledgement reports as received for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Delivered {
    pub(super) seq: u32,
    /// Its place in the ring; valid until the next segment is sent.
    pub(super) place: usize,
    pub(super) sent: Time,
    /// It was retransmitted, so it is unknown which transmission arrived.
    pub(super) retransmitted: bool,
    /// The number of its retransmission that was in flight, if any.
    pub(super) number: Option<u32>,
}

impl Slot {
    #[inline]
    fn delivered(&self, seq: u32, place: usize) -> Delivered {
        let number = (self.marks & RETRANSMITTED != 0).then_some(self.number);
        Delivered { seq, place, sent: self.sent, retransmitted: self.marks & EVER_RETRANSMITTED != 0, number }
    }
}

/// The outstanding segments.
#[derive(Debug)]
pub(super) struct Scoreboard {
    slots: Ring<Slot>,
    /// Number of retransmissions on the connection.
    retransmissions: u32,
    /// Whether the list by time is kept.
    by_time: bool,
    /// The ends of the list of segments in flight, by transmission time.
    oldest: u32,
    newest: u32,
    /// The first segment of the list that is not judged yet ([`Scoreboard::judge`]).
    unjudged: u32,
    /// Transmission times in the list decrease somewhere before `ordered`: a retransmitted segment that was no longer
    /// taken for lost was put before segments that had been sent earlier.
    disordered: bool,
    ordered: u32,
    sacked: u32,
    lost: u32,
    retransmitted: u32,
    /// Segments out and not in flight: `sacked` + `lost` - `retransmitted`, modulo 2^32.
    missing: u32,
    /// The number of segments marked lost and not yet retransmitted, and a heap with the lowest on top. The heap may
    /// contain segments that no longer wait.
    waiting: u32,
    firsts: BinaryHeap<Reverse<u32>>,
    /// One past the highest segment ever reported or acknowledged.
    forward: u32,
    /// The blocks of the last report: their outstanding segments are marked already.
    known: [Block; 3],
    /// Whether losses are reported one by one, and those not reported yet.
    reports_losses: bool,
    unreported_losses: Vec<u32>,
}

impl Scoreboard {
    /// Creates a scoreboard without outstanding segments; `first` is the next segment. `by_time`: keep the order of
    /// transmission.
    pub(super) fn new(first: u32, by_time: bool) -> Scoreboard {
        Scoreboard {
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
            retransmitted: 0,
            missing: 0,
            waiting: 0,
            firsts: BinaryHeap::new(),
            forward: first,
            known: [Block::default(); 3],
            reports_losses: false,
            unreported_losses: Vec::new(),
        }
    }

    /// Sets whether losses are kept for [`Scoreboard::take_lost`].
    pub(super) fn reporting_losses(self, reports_losses: bool) -> Scoreboard {
        Scoreboard { reports_losses, ..self }
    }

    /// Resets the scoreboard for a new connection, and keeps its allocations.
    pub(super) fn begin(&mut self, first: u32) {
        let mut slots = core::mem::replace(&mut self.slots, Ring::new(first));
        let mut firsts = core::mem::take(&mut self.firsts);
        slots.begin(first);
        firsts.clear();
        *self =
            Scoreboard { slots, firsts, reports_losses: self.reports_losses, ..Scoreboard::new(first, self.by_time) };
    }

    #[inline(always)]
    fn place(&self, seq: u32) -> Option<usize> {
        self.slots.place(seq)
    }

    pub(super) fn outstanding(&self) -> core::ops::Range<u32> {
        self.slots.first()..self.slots.end()
    }

    /// Sets the marks of a slot and updates the counters.
    #[inline]
    fn mark(&mut self, i: usize, marks: u8) {
        let slot = &mut self.slots[i];
        let old = core::mem::replace(&mut slot.marks, marks);
        let count = |count: &mut u32, is: bool| *count = if is { *count + 1 } else { *count - 1 };
        if (old ^ marks) & SACKED != 0 {
            count(&mut self.sacked, marks & SACKED != 0);
            self.missing = self.not_in_flight();
        }
        if (old ^ marks) & (LOST | RETRANSMITTED) == 0 {
            return;
        }
        let waits = |m: u8| m & (LOST | RETRANSMITTED) == LOST;
        if (old ^ marks) & LOST != 0 {
            count(&mut self.lost, marks & LOST != 0);
        }
        if (old ^ marks) & RETRANSMITTED != 0 {
            count(&mut self.retransmitted, marks & RETRANSMITTED != 0);
        }
        if waits(old) != waits(marks) {
            count(&mut self.waiting, waits(marks));
        }
        self.missing = self.not_in_flight();
    }

    fn not_in_flight(&self) -> u32 {
        (self.sacked + self.lost).wrapping_sub(self.retransmitted)
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

    /// Makes the segment the last of the list and returns the one before it. The caller sets the segment's own links.
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
        self.unjudged = seq; // judging starts over
        let slot = &mut self.slots[i];
        (slot.earlier, slot.later) = (NONE, oldest);
        slot.marks |= LISTED;
    }

    /// Records a transmission of the segment, the first or a later one. Returns its place in the ring.
    #[inline(always)]
    pub(super) fn leaves(&mut self, seq: u32, now: Time) -> Option<usize> {
        if self.slots.len() == 0 || seq == self.slots.end() {
            return Some(self.leaves_new(seq, now));
        }
        let i = self.place(seq)?;
        self.leaves_again(seq, i, now);
        Some(i)
    }

    /// Records the first transmission of the segment; it follows the last outstanding one, or nothing is outstanding.
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

    /// The capacity of the ring. Data kept in a parallel vector must move when it changes.
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
        self.mark(i, self.slots[i].marks | RETRANSMITTED | EVER_RETRANSMITTED);
        self.link_newest(seq, i);
    }

    /// Removes everything below `una`, which is acknowledged; passes to `news` the segments that had not been SACKed.
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
            if slot.marks & (SACKED | LOST | RETRANSMITTED) != 0 {
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

    /// Whether all segments below `una` were sent once, with no report on them.
    #[inline]
    pub(super) fn are_plain(&self, una: u32) -> bool {
        (self.slots.first()..una).all(|seq| self.slots.get(seq).is_some_and(|slot| slot.marks == LISTED))
    }

    /// Does [`Scoreboard::acked`] for segments that [are plain](Scoreboard::are_plain); passes each to `news`.
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
            news(Delivered { seq, place: i, sent, retransmitted: false, number: None });
        }
        self.forward = self.forward.max(una);
    }

    /// Removes the first outstanding segment, which is the oldest, from the list by time.
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

    /// Marks the segment, or its retransmission, as lost. Returns whether it was a retransmission.
    pub(super) fn lose(&mut self, seq: u32) -> bool {
        let Some(i) = self.place(seq) else { return false };
        let marks = self.slots[i].marks;
        if marks & SACKED != 0 || marks & (LOST | RETRANSMITTED) == LOST {
            return false; // the receiver has it, or it already waits for retransmission
        }
        if self.waiting == 0 {
            self.firsts.clear(); // only segments that no longer wait
        }
        self.unlink(seq, i);
        self.mark(i, self.slots[i].marks & !RETRANSMITTED | LOST);
        self.firsts.push(Reverse(seq));
        if self.reports_losses {
            self.unreported_losses.push(seq);
        }
        marks & RETRANSMITTED != 0
    }

    /// Whether [`Scoreboard::take_lost`] would return any segments.
    #[inline]
    pub(super) fn has_lost(&self) -> bool {
        !self.unreported_losses.is_empty()
    }

    /// The segments marked lost since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<u32> {
        core::mem::take(&mut self.unreported_losses)
    }

    /// Handles a retransmission timeout (RFC 8985 section 6.3): marks as lost the first segment and those for which
    /// `old` returns true. All are lost if the receiver has discarded what it had reported (RFC 2018 section 8).
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

    /// Clears the SACKed and lost marks (ns-2's TCP-Linux, when a recovery ends).
    pub(super) fn forget(&mut self) {
        debug_assert!(!self.by_time, "what is found again has no place in the order");
        for seq in self.outstanding() {
            let Some(i) = self.place(seq) else { break };
            self.mark(i, self.slots[i].marks & EVER_RETRANSMITTED);
        }
        self.known = [Block::default(); 3];
        self.firsts.clear();
    }

    /// Clears all lost marks: the losses were spurious (`tcp_undo_cwnd_reduction`).
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

    /// The next segment to retransmit, in order of sequence number.
    #[inline(always)]
    pub(super) fn next_lost(&mut self) -> Option<u32> {
        if self.waiting == 0 { None } else { self.first_waiting() }
    }

    #[inline(never)]
    fn first_waiting(&mut self) -> Option<u32> {
        while let Some(&Reverse(seq)) = self.firsts.peek() {
            if self.place(seq).is_some_and(|i| self.slots[i].marks & (LOST | RETRANSMITTED) == LOST) {
                return Some(seq);
            }
            self.firsts.pop();
        }
        None
    }

    /// The segment in flight that was sent longest ago, with its transmission time.
    pub(super) fn oldest(&self) -> Option<(u32, Time)> {
        self.place(self.oldest).map(|i| (self.oldest, self.slots[i].sent))
    }

    pub(super) fn after(&self, seq: u32) -> Option<(u32, Time)> {
        let later = self.slots[self.place(seq)?].later;
        self.place(later).map(|i| (later, self.slots[i].sent))
    }

    /// Whether transmission times in the list never decrease.
    #[inline]
    pub(super) fn is_ordered(&mut self) -> bool {
        self.disordered &= self.oldest != self.ordered;
        !self.disordered
    }

    /// Forces the search through the whole list.
    #[cfg(test)]
    pub(super) fn take_for_disordered(&mut self) {
        (self.disordered, self.ordered) = (true, NONE);
    }

    /// Extends the judged part of the list to the segments sent before `newest`, a time and a segment, which must not
    /// decrease between calls. Returns whether that part has any segments.
    #[inline(always)]
    pub(super) fn judge(&mut self, newest: (Time, u32)) -> bool {
        while let Some(i) = self.place(self.unjudged)
            && (self.slots[i].sent, self.unjudged) < newest
        {
            self.unjudged = self.slots[i].later;
        }
        self.oldest != self.unjudged
    }

    /// The transmission time of the last judged segment.
    pub(super) fn last_judged(&self) -> Option<Time> {
        let last = self.place(self.unjudged).map_or(self.newest, |i| self.slots[i].earlier);
        self.place(last).map(|i| self.slots[i].sent)
    }

    /// The judged segment that was sent longest ago.
    pub(super) fn oldest_judged(&self) -> Option<(u32, Time)> {
        self.oldest().filter(|&(seq, _)| seq != self.unjudged)
    }

    /// When the first outstanding segment was last sent, and whether it was retransmitted.
    #[inline(always)]
    pub(super) fn head(&self) -> Option<(Time, bool)> {
        self.slots.head().map(|s| (s.sent, s.marks & EVER_RETRANSMITTED != 0))
    }

    /// When the segment was last sent, and whether it was retransmitted.
    pub(super) fn get(&self, seq: u32) -> Option<(Time, bool)> {
        self.place(seq).map(|i| (self.slots[i].sent, self.slots[i].marks & EVER_RETRANSMITTED != 0))
    }

    /// Whether the segment has no mark: it is neither SACKed, lost nor retransmitted.
    pub(super) fn is_pristine(&self, seq: u32) -> bool {
        self.place(seq).is_some_and(|i| self.slots[i].marks & (SACKED | LOST | RETRANSMITTED) == 0)
    }

    /// The number of the segment's retransmission that is in flight, if any.
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

    /// Number of segments outstanding; below, those SACKed, lost, and retransmitted.
    pub(super) fn out(&self) -> u32 {
        self.slots.len()
    }
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }
    /// Number of SACKed segments below `seq`.
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
    pub(super) fn retransmitted(&self) -> u32 {
        self.retransmitted
    }
    pub(super) fn forward(&self) -> u32 {
        self.forward
    }
}

#[cfg(test)]
mod tests;
