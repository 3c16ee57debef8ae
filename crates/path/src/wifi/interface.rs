//! One transmitter of a cell: its queue, the pending frame, its backoff.

use super::counters::{Counters, InterfaceCounts};
use super::dcf::{Limits, Rules};
use super::edca::Access;
use super::exchange::{Frames, Outcome};
use super::queue::Queue;
use super::session::Mpdu;
use super::timing::Phy;
use crate::meter::Measure;
use crate::{DropReason, Queue as QueueModel};
use paceline_packet::Packet;
use paceline_random::{Sequence, Stream};
use paceline_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// An interface: the access point's, or a station's.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub(super) queue: Queue,
    pub(super) pending: Option<PendingFrame>,
    /// For aggregates: packets taken from the queue that are not pending, in order.
    pub(super) held: VecDeque<Mpdu>,
    /// AIFS minus DIFS: the additional idle time before it counts slots (AIFS, clause 9.3.2.3.6).
    pub(super) beyond_difs: Span,
    /// It follows EDCA, not DCF.
    with_qos: bool,
    /// Backoff slots left as of `from`; without a pending frame, of the post-backoff.
    pub(super) slots: u32,
    /// When it began, or begins, to count slots.
    pub(super) from: Time,
    /// The earliest start of a frame that found the medium idle.
    pub(super) not_before: Time,
    /// Whether the backoff was drawn; otherwise the frame found the medium idle.
    pub(super) drawn: bool,
    /// Its device: 0 for the access point, otherwise a station. A device with categories has one interface for each.
    pub(super) device: usize,
    /// The contention window, its initial value, and its maximum.
    window: u32,
    cw_min: u32,
    cw_max: u32,
    /// The TXOP limit (zero: one exchange), and the end of the current TXOP.
    txop: Span,
    txop_end: Time,
    short: u32,
    long: u32,
    draws: Sequence,
    errors: Sequence,
    pub(super) counts: InterfaceCounts,
    /// Packets, and their bytes, that arrived and need nothing more from this interface.
    pub(super) departed: (u64, u64),
    pub(super) counters: Counters,
}

/// The transmitter's next frame or frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingFrame {
    /// `None`: held packets, or a BlockAckReq.
    pub(super) packet: Option<Packet>,
    pub(super) frames: Frames,
    pub(super) tries: u32,
    /// It has arrived, but its sender may not know; the receiver drops duplicates (clause 10.3.2.11).
    pub(super) delivered: bool,
}

impl PendingFrame {
    /// A single packet.
    pub(super) fn of_one(packet: Packet, frames: Frames) -> PendingFrame {
        PendingFrame { packet: Some(packet), frames, tries: 0, delivered: false }
    }

    /// Held packets, or a BlockAckReq.
    pub(super) fn of_several(frames: Frames) -> PendingFrame {
        PendingFrame { packet: None, frames, tries: 0, delivered: false }
    }
}

impl Interface {
    /// A device's transmitter with these contention parameters; `slot` is the cell's.
    pub(super) fn new(
        (queue, rate): (&QueueModel, Rate),
        device: usize,
        (access, slot): (Access, Span),
        measure: Measure,
        stream: Stream,
    ) -> Interface {
        Interface {
            queue: Queue::new(queue, rate, stream.fork(0)),
            pending: None,
            held: VecDeque::new(),
            beyond_difs: slot * u64::from(access.aifsn.saturating_sub(2)),
            with_qos: access.with_qos,
            slots: 0,
            from: Time::ZERO,
            not_before: Time::ZERO,
            drawn: true,
            device,
            window: access.cw_min,
            cw_min: access.cw_min,
            cw_max: access.cw_max,
            txop: access.txop,
            txop_end: Time::ZERO,
            short: 0,
            long: 0,
            draws: Sequence::new(stream.fork(1)),
            errors: Sequence::new(stream.fork(2)),
            counts: InterfaceCounts::default(),
            departed: (0, 0),
            counters: Counters::new(measure),
        }
    }

    /// Packets that wait, are pending, or are held.
    pub(super) fn holding(&self) -> u64 {
        u64::from(self.queue.len())
            + u64::from(self.pending.is_some_and(|pending| pending.packet.is_some()))
            + self.held.len() as u64
    }

    /// When it begins to send, unless another transmission begins first.
    pub(super) fn expiry(&self, phy: &Phy) -> Time {
        match self.pending {
            Some(_) => (self.from + phy.slot * u64::from(self.slots)).max(self.not_before),
            None => Time::NEVER,
        }
    }

    /// Counts an attempt to send the pending frame.
    pub(super) fn count_attempt(&mut self) {
        let Some(pending) = &mut self.pending else { return };
        self.counts.attempts += 1;
        self.counts.retries += u64::from(pending.tries > 0);
        pending.tries += 1;
    }

    /// Draws a backoff.
    pub(super) fn draw(&mut self, rules: Rules) {
        self.slots = rules.backoff(self.window, self.draws.unit());
        self.drawn = true;
    }

    /// Whole slots counted by `now`.
    fn counted(&self, phy: &Phy, now: Time) -> u32 {
        let idle = now.0.saturating_sub(self.from.0);
        (idle / phy.slot.0).min(u64::from(u32::MAX)) as u32
    }

    /// Starts contention at `now`: a frame is pending, and the medium is idle and not reserved.
    pub(super) fn contend(&mut self, rules: Rules, phy: &Phy, now: Time) {
        let counted = self.counted(phy, now);
        if counted < self.slots || (self.slots > 0 && now < self.from) {
            // The backoff after the last packet continues.
            self.drawn = true;
            return;
        }
        self.slots = 0;
        match rules {
            Rules::Ns2 => {
                self.draw(rules);
                self.from = now + phy.difs();
            }
            Rules::Ieee | Rules::Bianchi => {
                self.drawn = false;
                // the next slot boundary of the idle period, which is common to all
                let borders = if now < self.from { 0 } else { u64::from(counted) + 1 };
                self.not_before = self.from + phy.slot * borders;
            }
        }
    }

    /// Whether the medium is still reserved for this interface by announced durations (NAV); they do not bind their own
    /// senders.
    pub(super) fn is_reserved(&self, phy: &Phy, now: Time) -> bool {
        now + phy.difs() + self.beyond_difs < self.from
    }

    /// Starts contention while the medium is busy or reserved.
    pub(super) fn contend_later(&mut self, rules: Rules) {
        if self.slots == 0 {
            self.draw(rules);
        }
    }

    /// Freezes the backoff: another transmission begins at `now`.
    pub(super) fn freeze(&mut self, rules: Rules, phy: &Phy, now: Time) {
        // EDCA counts at slot boundaries, including the end of AIFS, and so also at the one at which the other
        // transmission begins (clause 9.19.2.3); DCF counts idle slots.
        let busy_step = match rules {
            Rules::Bianchi => 1,
            Rules::Ieee if self.with_qos => u32::from(now >= self.from),
            Rules::Ieee | Rules::Ns2 => 0,
        };
        let counted = self.counted(phy, now).saturating_add(busy_step);
        self.slots = self.slots.saturating_sub(counted);
        self.not_before = Time::ZERO;
        if self.pending.is_some() && !self.drawn {
            self.draw(rules);
        }
    }

    /// Draws whether a frame with this error probability fails.
    pub(super) fn fails(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.errors.unit() < probability
    }

    /// Ends an attempt. Returns the packet if it is given up and has not arrived.
    pub(super) fn settle(&mut self, outcome: Outcome, rules: Rules, limits: Limits) -> Option<Packet> {
        let pending = self.pending?;
        let packet = pending.packet?;
        let given_up = match outcome {
            Outcome::Acknowledged => false,
            Outcome::NoAck if pending.frames.has_rts() => {
                self.long += 1;
                limits.long.is_some_and(|limit| self.long >= limit)
            }
            Outcome::NoAck | Outcome::NoCts => {
                self.short += 1;
                limits.short.is_some_and(|limit| self.short >= limit)
            }
        };
        let mut lost = None;
        if given_up || outcome == Outcome::Acknowledged {
            (self.short, self.long, self.window) = (0, 0, self.cw_min);
            self.pending = None;
            if pending.delivered {
                self.departed.0 += 1;
                self.departed.1 += u64::from(packet.size);
            } else {
                self.queue.dropped[DropReason::Retries] += 1;
                lost = Some(packet);
            }
        } else {
            if outcome == Outcome::NoAck && pending.frames.has_rts() {
                // RTS and CTS were successful: the short retry count is reset (clause 10.3.4.4).
                self.short = 0;
            }
            self.window = Rules::wider(self.window, self.cw_max);
        }
        self.draw(rules);
        lost
    }

    /// Updates the window and draws a backoff after an attempt; `is_last`: no retry follows.
    pub(super) fn back_off(&mut self, is_last: bool, rules: Rules) {
        self.window = if is_last { self.cw_min } else { Rules::wider(self.window, self.cw_max) };
        self.draw(rules);
    }

    /// Internal collision: a more urgent category of the same device begins to send in the same slot. It counts as a
    /// collision, without a frame on the air (clause 9.19.2.3).
    pub(super) fn give_way(&mut self, rules: Rules) {
        self.window = Rules::wider(self.window, self.cw_max);
        self.not_before = Time::ZERO;
        self.draw(rules);
    }

    /// Starts a TXOP.
    pub(super) fn begin_txop(&mut self, start: Time) {
        self.txop_end = start + self.txop;
    }

    /// The end of its TXOP, if that may have more than one exchange.
    pub(super) fn txop_end(&self) -> Option<Time> {
        (self.txop > Span::ZERO).then_some(self.txop_end)
    }
}
