//! DualQ Coupled PI2: a low-latency L4S queue beside a Classic one, under one controller.
//!
//! De Schepper, Briscoe, White, RFC 9332, appendix A (figures 2 to 8, with the edge cases of A.2); the controller is
//! that of De Schepper, Bondarenko, Tsang, Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT
//! 2016. A base probability p' follows the greater of the two queues' delays. Classic packets are dropped or marked
//! with p'^2. L4S packets are marked with k p' or with the probability from the L4S queue's own delay, whichever is
//! greater.
//!
//! Linux (`sch_dualpi2`, since 6.17) is a variant: it draws at random where the RFC counts (`recur`), skips the coupled
//! law while less than two MTUs wait, and checks the L4S queue's length at enqueue, not at dequeue. Paceline uses
//! floating point, Linux 32 bits of fraction.

use super::fifo::{Fifo, Waiting};
use super::mark;
use super::model::{ClassCounts, DualPi2Model, DualPi2Variant, DualScheduler, NativeAqm};
use crate::DropReason;
use crate::model::Limit;
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;
use std::collections::VecDeque;

/// The maximum probability of a mark in the L4S queue (figure 2, line 21).
const P_L_MAX: f64 = 1.0;
/// The scheduler's weights are in millionths.
const WHOLE: i64 = 1_000_000;
/// The number of draws reserved per packet.
const DRAWS: u64 = 4;

const L4S: usize = 0;
const CLASSIC: usize = 1;

/// DualPI2's state; the probabilities' names are the RFC's. Delays are in seconds.
#[derive(Clone, Debug)]
pub(super) struct DualPi2 {
    model: DualPi2Model,
    /// The L4S queue, and the Classic one.
    queues: [Fifo; 2],
    /// Linux: whether the L4S queue was long enough at the arrival of each of its packets.
    long_enough: VecDeque<bool>,
    draws: Stream,
    /// Packets dequeued so far; they index the draws.
    taken: u64,
    /// p', from 0 to 1.
    base: f64,
    /// The delay at the last update.
    delay_before: f64,
    next_update: u64,
    /// The credit of the weighted round robin, in millionths of a byte; the L4S queue goes first while it is not above
    /// zero.
    credit: i64,
    /// `count` of each queue, for `recur`.
    counts: [f64; 2],
    pub(super) classes: [ClassCounts; 2],
}

/// The verdict on a packet that has been taken from its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Law {
    Pass,
    Mark,
    Drop,
}

impl DualPi2 {
    /// # Panics
    /// If the update interval is zero, or k is below 1.
    pub(super) fn new(model: &DualPi2Model, draws: Stream) -> DualPi2 {
        assert!(model.update.0 > 0, "DualPI2 must be renewed at an interval");
        assert!(model.coupling >= 1.0, "Classic probabilities beyond 1/k^2 are overload: k must be 1 at least");
        let mut queue = DualPi2 {
            model: *model,
            queues: Default::default(),
            long_enough: VecDeque::new(),
            draws,
            taken: 0,
            base: 0.0,
            delay_before: 0.0,
            next_update: model.update.0,
            credit: 0,
            counts: [0.0; 2],
            classes: Default::default(),
        };
        queue.reset_credit();
        queue
    }

    /// The base probability p'.
    pub(super) fn probability(&self) -> f64 {
        self.base
    }

    pub(super) fn limit_to(&mut self, limit: Limit) {
        self.model.limit = limit;
    }

    pub(super) fn packets(&self) -> u32 {
        self.queues[L4S].packets() + self.queues[CLASSIC].packets()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.queues[L4S].bytes() + self.queues[CLASSIC].bytes()
    }

    /// Runs the updates that are due. The queues must not have changed since the last call.
    fn catch_up(&mut self, now: u64) {
        while self.next_update <= now {
            self.update(self.next_update);
            let step = self.model.update.0;
            if self.packets() == 0 && self.base == 0.0 && self.delay_before == 0.0 {
                // Further updates would change nothing.
                self.next_update = now - now % step;
            }
            self.next_update = self.next_update.saturating_add(step);
        }
    }

    /// Updates p' (figure 8). A queue's delay is the age of its first packet; zero if it is empty.
    fn update(&mut self, at: u64) {
        let age = |queue: &Fifo| queue.first().map_or(0, |packet| at - packet.time.0);
        let delay = age(&self.queues[L4S]).max(age(&self.queues[CLASSIC])) as f64 * 1e-9;
        let target = self.model.target.as_secs_f64();
        let change = self.model.alpha * (delay - target) + self.model.beta * (delay - self.delay_before);
        // without overload drops, p' stops where all of L4S is marked, to be fair to Classic (Linux)
        let max = if self.model.drop_overload { 1.0 } else { P_L_MAX / self.model.coupling };
        self.base = (self.base + change).clamp(0.0, max);
        self.delay_before = delay;
    }

    /// p_CL, capped at p_Lmax: above it, a `recur` that drops and marks with one count would drop more than p_C.
    fn coupled(&self) -> f64 {
        (self.model.coupling * self.base).min(P_L_MAX)
    }

    /// Whether marks no longer suffice (A.2): p_CL has reached its maximum, so that p_C is at p_Cmax = 1/k^2.
    fn is_overloaded(&self) -> bool {
        let coupled = self.model.coupling * self.base;
        self.model.drop_overload
            && match self.model.variant {
                DualPi2Variant::Rfc9332 => coupled >= P_L_MAX,
                DualPi2Variant::Linux => coupled > P_L_MAX,
            }
    }

    /// p'_L for this delay in nanoseconds (figure 5).
    fn native(&self, delay: u64) -> f64 {
        match self.model.native {
            NativeAqm::Step(threshold) => match self.model.variant {
                DualPi2Variant::Rfc9332 => f64::from(delay >= threshold.0), // note c: a ramp without a range
                DualPi2Variant::Linux => f64::from(delay > threshold.0),
            },
            NativeAqm::Ramp { from, range } if delay >= from.0.saturating_add(range.0) => 1.0,
            NativeAqm::Ramp { from, range } if delay > from.0 => (delay - from.0) as f64 / range.0 as f64,
            NativeAqm::Ramp { .. } => 0.0,
        }
    }

    fn reset_credit(&mut self) {
        if let DualScheduler::Weighted(classic) = self.model.scheduler {
            let classic = weight(classic.0);
            self.credit = self.model.mtu.0 as i64 * (2 * classic - WHOLE);
        }
    }

    /// The class to serve.
    fn scheduled(&self, now: u64) -> Option<usize> {
        let heads = [L4S, CLASSIC].map(|class| self.queues[class].first());
        let [Some(low), Some(classic)] = heads else {
            return heads.iter().position(Option::is_some);
        };
        let low = match self.model.scheduler {
            DualScheduler::Weighted(_) => self.credit <= 0,
            // appendix B, figure 10, lines 28 to 33
            DualScheduler::TimeShifted(shift) => (now - low.time.0).saturating_add(shift.0) >= now - classic.time.0,
        };
        Some(if low { L4S } else { CLASSIC })
    }

    /// Updates the credit after a packet of this class left while both queues had packets.
    fn charge(&mut self, class: usize, size: u16) {
        if let DualScheduler::Weighted(share) = self.model.scheduler {
            let (classic, size) = (weight(share.0), i64::from(size));
            self.credit += if class == L4S { classic * size } else { (classic - WHOLE) * size };
        }
    }

    /// True with frequency `likelihood`, evenly spaced (figure 4, lines 23 to 30).
    fn recur(&mut self, class: usize, likelihood: f64) -> bool {
        let count = &mut self.counts[class];
        *count += likelihood;
        let due = *count > 1.0;
        if due {
            *count -= 1.0;
        }
        due
    }

    /// The RFC's law for a packet that has left its queue after `delay` (figure 7).
    fn rfc(&mut self, class: usize, delay: u64, packet: &Packet) -> Law {
        let (squared, overloaded) = (self.base * self.base, self.is_overloaded());
        match class {
            CLASSIC if !self.recur(CLASSIC, squared) => Law::Pass,
            CLASSIC if overloaded || !packet.flags.has(Flags::ECT) => Law::Drop,
            CLASSIC => Law::Mark,
            _ if overloaded => {
                if self.recur(L4S, squared) {
                    Law::Drop
                } else if self.recur(L4S, self.coupled()) {
                    Law::Mark
                } else {
                    Law::Pass
                }
            }
            _ => {
                let long = self.queues[L4S].packets() > self.model.native_packets;
                let native = if long { self.native(delay) } else { 0.0 };
                if self.recur(L4S, native.max(self.coupled())) { Law::Mark } else { Law::Pass }
            }
        }
    }

    /// Linux' law: random draws for the coupled probability, then the L4S queue's own AQM.
    fn linux(&self, class: usize, delay: u64, long_enough: bool, packet: &Packet) -> Law {
        let roll = |which: u64, probability| self.draws.unit(self.taken * DRAWS + which) < probability;
        let squared = || roll(0, self.base) && roll(1, self.base);
        let overloaded = self.is_overloaded();
        let applies = self.bytes() >= 2 * self.model.mtu.0;
        if class == CLASSIC {
            return match applies && squared() {
                true if overloaded || !packet.flags.has(Flags::ECT) => Law::Drop,
                true => Law::Mark,
                false => Law::Pass,
            };
        }
        if applies && overloaded {
            return if squared() { Law::Drop } else { Law::Mark };
        }
        let coupled = applies && roll(0, self.coupled());
        let marks = coupled || long_enough && roll(2, self.native(delay));
        if marks { Law::Mark } else { Law::Pass }
    }

    pub(super) fn enqueue(&mut self, packet: Packet, mut dropped: impl FnMut(&Packet, DropReason)) {
        self.catch_up(packet.time.0);
        // ECT(1) or CE (figure 3, line 6)
        let class = if packet.flags.has(Flags::L4S) || packet.flags.has(Flags::CE) { L4S } else { CLASSIC };
        if !self.fits(packet.size) {
            self.classes[class].drops += 1;
            return dropped(&packet, DropReason::Overflow);
        }
        if class == L4S {
            let before = self.queues[L4S].packets();
            self.long_enough.push_back(before >= self.model.native_packets);
        }
        self.queues[class].push(packet);
    }

    /// Whether the packet fits. An empty queue accepts any packet; the RFC requires space for an MTU, whatever the
    /// packet's size.
    fn fits(&self, size: u16) -> bool {
        self.packets() == 0
            || match (self.model.limit, self.model.variant) {
                (Limit::Packets(limit), _) => self.packets() < limit,
                (Limit::Bytes(limit), DualPi2Variant::Rfc9332) => self.bytes() + self.model.mtu.0 <= limit.0,
                (Limit::Bytes(limit), DualPi2Variant::Linux) => self.bytes() + u64::from(size) <= limit.0,
            }
    }

    /// The next packet (figure 7); `None` also if all are dropped.
    pub(super) fn dequeue(
        &mut self,
        now: u64,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) -> Option<Packet> {
        self.catch_up(now);
        while let Some(class) = self.scheduled(now) {
            let contended = self.queues.iter().all(|queue| queue.packets() > 0);
            let mut packet = self.queues[class].pop()?;
            let long_enough = class == L4S && self.long_enough.pop_front() == Some(true);
            self.taken += 1;
            let delay = now - packet.time.0;
            let law = match self.model.variant {
                DualPi2Variant::Rfc9332 => self.rfc(class, delay, &packet),
                DualPi2Variant::Linux => self.linux(class, delay, long_enough, &packet),
            };
            let counts = &mut self.classes[class];
            if law == Law::Drop {
                counts.drops += 1;
                dropped(&packet, DropReason::Early);
                continue;
            }
            if law == Law::Mark && mark(&mut packet) {
                counts.marks += 1;
                *marks += 1;
            }
            counts.departures += 1;
            counts.departed_bytes += u64::from(packet.size);
            counts.waited += u128::from(delay);
            if contended {
                self.charge(class, packet.size);
            }
            return Some(packet);
        }
        self.reset_credit();
        None
    }
}

/// A share in millionths.
fn weight(share: f64) -> i64 {
    (share.clamp(0.0, 1.0) * WHOLE as f64).round() as i64
}

#[cfg(test)]
mod tests;
