//! Recovery with selective acknowledgements.
//!
//! Sources: RFC 2018 (blocks), RFC 6675 (Update, IsLost, SetPipe, NextSeg, rescue retransmission); under `ns2`
//! `tcp-sack1.cc` and `scoreboard-rq.cc` of ns-2.35, whose pipe is a counter and which takes every hole below the
//! highest block for lost.

use super::sender::{Action, DUPLICATES, Phase, TcpSender};
use crate::Transmit;
use paceline_control::{Profile, TcpEvent, WindowController};
use paceline_packet::{Block, Packet, TcpOptions};
use paceline_units::Time;

/// The scoreboard.
#[derive(Debug)]
pub(super) struct Sack {
    /// What the receiver has beyond the left edge: in order, disjoint, not adjacent.
    blocks: Vec<Block>,
    /// Segments in `blocks`.
    total: u32,
    /// A segment, and how many of those below it lie in `blocks`: what is asked again and again moves little.
    counted: (u32, u32),
    /// One past the highest segment retransmitted in this recovery (HighRxt).
    high: u32,
    /// ns-2's estimate of what is in flight.
    pipe: i64,
    /// A rescue retransmission needs all below this acknowledged (RFC 6675's RescueRxt; NextSeg rule 4).
    rescue: u32,
    /// After a timeout duplicates say nothing until new data is acknowledged (ns-2's `timeout_`).
    mute: bool,
}

impl Sack {
    pub(super) fn new(base: u32) -> Sack {
        Sack { blocks: Vec::new(), total: 0, counted: (base, 0), high: base, pipe: 0, rescue: base, mute: false }
    }

    /// Whether there is nothing to look at.
    pub(super) fn is_clear(&self) -> bool {
        self.blocks.is_empty() && !self.mute
    }

    fn clear(&mut self) {
        self.blocks.clear();
        self.total = 0;
        self.counted.1 = 0;
    }

    /// ns-2 forgets the blocks at a timeout. RFC 6675 section 5.1 and the erratum 1610 to RFC 2018 let a sender keep them
    /// that notices when the receiver has dropped what it had reported ([`Sack::trim`]).
    pub(super) fn timed_out(&mut self, una: u32, profile: Profile) {
        if profile == Profile::Ns2 {
            self.clear();
            self.mute = true;
        }
        self.high = una;
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
    fn update(&mut self, una: u32, max: u32, extra: Option<&TcpOptions>) -> bool {
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
    fn highest(&self) -> Option<u32> {
        self.blocks.last().map(|b| b.end)
    }

    /// The first segment from `seq` on that the receiver does not have.
    fn hole(&self, seq: u32) -> u32 {
        let i = self.blocks.partition_point(|b| b.end <= seq);
        match self.blocks.get(i) {
            Some(b) if b.start <= seq => b.end,
            _ => seq,
        }
    }

    /// Segments in `from..to` that the receiver has.
    fn covered(&self, from: u32, to: u32) -> u32 {
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

    /// RFC 6675 IsLost: holes below this have three segments reported above them. (Three discontiguous ones are
    /// three segments too.)
    fn lost_below(&self) -> u32 {
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

    /// RFC 6675 SetPipe: what is in flight, of `una..max`.
    fn in_flight(&mut self, una: u32, max: u32) -> u32 {
        let lost = self.lost_below().clamp(una, max);
        let not_lost = (max - lost) - self.covered(lost, max);
        let high = self.high.clamp(una, max);
        let again = (high - una) - self.covered_below(high);
        not_lost + again
    }

    /// ns-2's `GetNextRetran`: the next hole below the highest block.
    fn next_hole(&mut self, una: u32) -> Option<u32> {
        self.high = self.high.max(una);
        let seq = self.hole(self.high);
        (seq < self.highest()?).then(|| {
            self.high = seq;
            seq
        })
    }
}

impl TcpSender {
    fn board(&mut self) -> &mut Sack {
        let base = self.base;
        self.sack.get_or_insert_with(|| Box::new(Sack::new(base)))
    }

    /// An acknowledgement that the short way does not take.
    pub(super) fn on_ack_sack(
        &mut self,
        now: Time,
        packet: &Packet,
        extra: Option<&TcpOptions>,
        out: &mut impl Transmit,
    ) {
        if self.config.profile == Profile::Ns2 {
            self.on_ack_sack1(now, packet, extra, out);
        } else {
            self.on_ack_6675(now, packet, extra, out);
        }
    }

    // ------------------------------------------------------------------ RFC 6675

    fn on_ack_6675(&mut self, now: Time, packet: &Packet, extra: Option<&TcpOptions>, out: &mut impl Transmit) {
        let recovering = self.phase == Phase::Recovery;
        if packet.seq > self.una {
            if recovering {
                self.advance(now, packet);
                if self.timing && packet.seq > self.timed {
                    self.sample(now);
                }
                self.rearm(now);
            } else {
                let rtt = packet.stamp.elapsed(now);
                self.new_ack(now, packet, Some(rtt));
            }
        }
        let (una, max) = (self.una, self.max);
        let news = self.board().update(una, max, extra);
        if recovering {
            if una < self.recover {
                return self.pump_sack(now, out);
            }
            self.phase = Phase::Open;
            self.dupacks = 0;
            self.action = Action::Exited;
            self.tell(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
        }
        // a duplicate is what reports something new, even if it moves the left edge (section 2)
        if news {
            self.dupacks = self.dupacks.saturating_add(1);
            let lost = self.board().lost_below() > una;
            // after a timeout not before all that was sent until then is acknowledged (section 5.1)
            if (self.dupacks >= DUPLICATES || lost) && una >= self.recover {
                return self.enter_6675(now, out);
            }
        }
        self.pump_holes(now, out);
    }

    /// Section 5 step (4).
    fn enter_6675(&mut self, now: Time, out: &mut impl Transmit) {
        if self.reduces() {
            self.tell(TcpEvent::Lost { duplicates: 0, transmissions: 1 }, now);
        }
        self.recover = self.max;
        self.limited = 0;
        self.action = Action::Duplicates;
        self.phase = Phase::Recovery;
        self.stats.fast_retransmits += 1;
        self.timing = false;
        self.set_timer(now);
        let una = self.una;
        let board = self.board();
        board.high = una + 1;
        board.rescue = una + 1;
        self.emit(now, una, out);
        self.pump_sack(now, out);
    }

    /// Sends what the window allows outside of recovery, in order, but nothing that the receiver has reported; what it has
    /// reported has left the network. That is limited transmit (section 5 step (3)), and what fills the holes after a
    /// timeout (section 5.1).
    pub(super) fn pump_holes(&mut self, now: Time, out: &mut impl Transmit) {
        if self.board().blocks.is_empty() {
            return self.pump(now, u32::MAX, out);
        }
        let window = self.window();
        let edge = self.una.saturating_add(self.receive_window).min(self.limit);
        let (una, next) = (self.una, self.nxt);
        let reported = self.board().covered(una, next);
        let mut pipe = next - una - reported;
        while pipe < window {
            let next = self.nxt;
            let seq = self.board().hole(next);
            // new data in place of what was reported is what limited transmit adds
            let more = seq >= self.max && seq - self.una >= window;
            if seq >= edge || more && !self.config.limited_transmit || !self.may_send(now) || self.is_held(out) {
                break;
            }
            self.nxt = seq + 1;
            self.limited += u32::from(more);
            self.emit(now, seq, out);
            pipe += 1;
        }
    }

    // ------------------------------------------------------------------ ns-2's Sack1

    fn on_ack_sack1(&mut self, now: Time, packet: &Packet, extra: Option<&TcpOptions>, out: &mut impl Transmit) {
        let new = packet.seq > self.una;
        if self.phase == Phase::Recovery {
            self.board().pipe -= 1;
            if packet.seq >= self.recover {
                self.phase = Phase::Open;
                self.recover = self.base + 1;
                self.advance(now, packet);
                self.dupacks = 0;
                if self.timing && packet.seq > self.timed {
                    self.sample(now);
                }
                self.rearm(now);
                let board = self.board();
                board.mute = false;
                board.clear();
                self.tell(TcpEvent::Recovered { at_most: f64::INFINITY }, now);
            } else if new {
                self.advance(now, packet);
                let (una, max) = (self.una, self.max);
                let board = self.board();
                board.update(una, max, extra);
                board.pipe -= 1;
                self.settle();
                self.set_timer(now);
            } else if !self.board().mute {
                let (una, max) = (self.una, self.max);
                if self.board().update(una, max, extra) && self.dupacks > 0 {
                    self.dupacks += 1;
                }
            }
            return if self.phase == Phase::Recovery {
                self.pump_sack(now, out);
            } else {
                self.pump(now, u32::MAX, out);
            };
        }
        if new {
            let rtt = packet.stamp.elapsed(now);
            self.new_ack(now, packet, Some(rtt));
            let una = self.una;
            let board = self.board();
            board.mute = false;
            board.clear();
            board.high = una;
        } else if !self.board().mute && self.una < self.max {
            let (una, max) = (self.una, self.max);
            if self.board().update(una, max, extra) {
                self.dupacks += 1;
                if self.dupacks == DUPLICATES {
                    self.enter_sack1(now, out);
                } else if self.dupacks < DUPLICATES && self.config.limited_transmit {
                    self.limited_transmit(now, out);
                }
            }
        }
        if self.phase == Phase::Recovery {
            return; // Sack1 sends no more with the acknowledgement that begins recovery
        }
        if self.dupacks == 0 {
            self.pump(now, u32::MAX, out);
        }
    }

    fn enter_sack1(&mut self, now: Time, out: &mut impl Transmit) {
        let marked = self.action == Action::Ecn;
        if self.una <= self.recover && self.una != self.base + 1 && !marked {
            return;
        }
        let cut = self.una > self.recover || self.una == self.base + 1;
        if cut {
            self.recover = self.max;
        }
        self.action = Action::Duplicates;
        self.phase = Phase::Recovery;
        self.timing = false;
        self.set_timer(now);
        self.stats.fast_retransmits += 1;
        if cut {
            self.tell(TcpEvent::Lost { duplicates: 0, transmissions: 1 }, now);
        }
        self.limited = 0;
        let (una, max) = (self.una, self.max);
        let board = self.board();
        board.pipe = i64::from(max - una) - i64::from(DUPLICATES);
        board.high = board.high.max(una + 1);
        self.emit(now, una, out);
    }

    // ------------------------------------------------------------------ sending in recovery

    /// Sends while the window exceeds what is in flight: holes first, then new data (RFC 6675 section 5 step (C)).
    pub(super) fn pump_sack(&mut self, now: Time, out: &mut impl Transmit) {
        let window = self.controller.window() as u32;
        let ns2 = self.config.profile == Profile::Ns2;
        // the pipe is counted once and then goes up by one with each segment sent
        let (una, max) = (self.una, self.max);
        let board = self.board();
        let mut pipe = if ns2 { board.pipe } else { i64::from(board.in_flight(una, max)) };
        while pipe < i64::from(window) {
            if !self.may_send(now) || self.is_held(out) {
                break;
            }
            let Some(seq) = self.next_segment() else { break };
            self.nxt = self.nxt.max(seq.saturating_add(1));
            self.emit(now, seq, out);
            pipe += 1;
        }
        self.board().pipe = pipe;
    }

    /// RFC 6675 NextSeg; ns-2's order is the same without rules 3 and 4.
    fn next_segment(&mut self) -> Option<u32> {
        let ns2 = self.config.profile == Profile::Ns2;
        let (una, max, recover) = (self.una, self.max, self.recover);
        let edge = una.saturating_add(self.receive_window);
        let next = self.nxt;
        let fresh = next < self.limit && next < edge;
        let board = self.board();
        let hole = board.next_hole(una);
        // rule 1; ns-2 does not ask whether it is lost
        if let Some(seq) = hole.filter(|&seq| ns2 || seq < board.lost_below()) {
            board.high = seq + 1;
            return (seq < edge).then_some(seq);
        }
        if fresh {
            return Some(next); // rule 2
        }
        if ns2 {
            return None;
        }
        if let Some(seq) = hole {
            board.high = seq + 1;
            return Some(seq); // rule 3
        }
        // rule 4: the highest outstanding segment, once, lest its loss cost a timeout
        if una > board.rescue {
            board.rescue = recover;
            return (una..max).rev().find(|&s| board.hole(s) == s);
        }
        None
    }
}

#[cfg(test)]
mod tests;
