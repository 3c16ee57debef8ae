//! COBALT: CoDel and BLUE combined on one queue.
//!
//! CoDel (RFC 8289) is for flows that respond to a drop or mark. BLUE (Feng, Kandlur, Saha, Shin, "BLUE: A New Class of
//! Active Queue Management Algorithms", University of Michigan CSE-TR-387-99, 1999) is for those that do not: a drop
//! probability that grows when the queue overflows and falls when it runs empty. CoDel is in the form of `sch_cake`:
//! one instant, `drop_next`, times both the first drop and the following ones, and once the delay is good again the
//! count falls by the same law by which it rose.
//!
//! Linux computes 1/sqrt(n) in 32 bits of fixed point, exact up to n = 15 and with a Newton step from there; here it is
//! exact. In Linux a queue that is new, or has been empty for an interval, signals one packet after the delay exceeds
//! the target. The cause: it compares with the `drop_next` from before it was set, to decide whether the next signal is
//! overdue (and a new queue's factor 1/sqrt(count) starts at 0 where the comment says 1). Here the first signal always
//! waits for an interval.

use super::model::CakeModel;
use crate::DropReason;

/// How much BLUE's probability rises at an overflow, and falls when the queue is found empty; units of 2^-32.
const P_INC: u32 = 1 << 24;
const P_DEC: u32 = 1 << 20;

/// The parameters, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Settings {
    pub(super) target: u64,
    pub(super) interval: u64,
    /// The shaper's transmission time of the longest packet.
    pub(super) mtu_time: u64,
}

impl Settings {
    /// A shaped link's target is at least one and a half times the transmission time of its longest packet. The
    /// interval grows by as much as the target, and is at least twice the target.
    pub(super) fn new(model: &CakeModel) -> Settings {
        let mtu_time = model.bandwidth.map_or(0, |rate| super::shaper::time_of(model.mtu.0, rate));
        let usual = (model.rtt.0 / 20).max(1000);
        let target = usual.max(mtu_time + mtu_time / 2);
        let interval = (model.rtt.0 + target - usual).max(target * 2);
        Settings { target, interval, mtu_time }
    }

    fn control_law(&self, time: u64, count: u32) -> u64 {
        time.saturating_add((self.interval as f64 / f64::from(count.max(1)).sqrt()) as u64)
    }
}

/// COBALT's state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// When the next drop is due, or until when the queue counts as active.
    drop_next: u64,
    dropping: bool,
    /// When BLUE's probability last changed.
    blue_at: u64,
    /// BLUE's probability, in units of 2^-32.
    blue: u32,
}

/// The verdict on a packet that has left its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Verdict {
    pub(super) mark: bool,
    pub(super) drop: Option<DropReason>,
}

impl Cobalt {
    #[cfg(test)]
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    #[cfg(test)]
    pub(super) fn blue(&self) -> u32 {
        self.blue
    }

    /// A packet of this queue was dropped on overflow.
    pub(super) fn queue_full(&mut self, settings: &Settings, now: u64) {
        if now - self.blue_at > settings.target {
            self.blue = self.blue.saturating_add(P_INC);
            self.blue_at = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty. Returns whether no state is left to decay.
    pub(super) fn queue_empty(&mut self, settings: &Settings, now: u64) -> bool {
        if self.blue > 0 && now - self.blue_at > settings.target {
            self.blue = self.blue.saturating_sub(P_DEC);
            self.blue_at = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = settings.control_law(self.drop_next, self.count);
        }
        self.blue == 0 && self.count == 0 && now >= self.drop_next
    }

    /// A packet leaves after `waited`. `bulk_flows`: the number of bulk flows, each of which is allowed some delay;
    /// `draw`: BLUE's draw, in units of 2^-32.
    pub(super) fn should_drop(
        &mut self,
        settings: &Settings,
        now: u64,
        waited: u64,
        bulk_flows: u64,
        capable: bool,
        draw: impl FnOnce() -> u32,
    ) -> Verdict {
        let own = settings.mtu_time.saturating_mul(bulk_flows.saturating_mul(2).max(4));
        let above = waited > settings.target && waited > own;
        let due = self.count > 0 && now >= self.drop_next;
        if above {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = settings.control_law(now, self.count);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let signal = due && self.dropping;
        if signal {
            self.count = self.count.saturating_add(1);
            self.drop_next = settings.control_law(self.drop_next, self.count);
        } else if due {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.drop_next = settings.control_law(self.drop_next, self.count);
            }
        }
        let mut drop = (signal && !capable).then_some(DropReason::Delay);
        // flows that do not respond to marks need drops
        if drop.is_none() && self.blue > 0 && draw() < self.blue {
            drop = Some(DropReason::Early);
        }
        if self.count == 0 {
            self.drop_next = now.saturating_add(settings.interval);
        } else if now > self.drop_next && drop.is_none() {
            self.drop_next = now;
        }
        Verdict { mark: signal && capable, drop }
    }
}
