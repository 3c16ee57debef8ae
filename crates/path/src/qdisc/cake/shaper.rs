//! CAKE's shaper: when the next packet may leave. It is a virtual clock, without a bucket: each packet advances it by
//! the packet's time at the bandwidth. The clock stops only while nothing waits.

use super::model::{CakeModel, Framing};
use paceline_units::Rate;

/// The transmission time of `bytes`, in whole nanoseconds.
pub(super) fn time_of(bytes: u64, rate: Rate) -> u64 {
    (u128::from(bytes) * 8_000_000_000 / u128::from(rate.0.max(1))) as u64
}

/// The shaper's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    bandwidth: Option<Rate>,
    overhead: u64,
    mpu: u64,
    framing: Framing,
    /// When the next packet may leave.
    next: u64,
    /// The latest time of the next departure: drops do not move it (only an ingress shaper charges drops).
    at_last: u64,
}

impl Shaper {
    pub(super) fn new(model: &CakeModel) -> Shaper {
        let (overhead, mpu) = (model.overhead.0, model.mpu.0);
        Shaper { bandwidth: model.bandwidth, overhead, mpu, framing: model.framing, next: 0, at_last: 0 }
    }

    /// The bytes that a packet of this size counts as.
    pub(super) fn counted(&self, size: u16) -> u64 {
        let len = (u64::from(size) + self.overhead).max(self.mpu);
        match self.framing {
            Framing::None => len,
            Framing::Atm => len.div_ceil(48) * 53,
            Framing::Ptm => len + len.div_ceil(64),
        }
    }

    /// The instant before which nothing leaves.
    #[inline]
    pub(super) fn next_release(&self) -> u64 {
        self.next.min(self.at_last)
    }

    /// A packet arrives at an empty queue.
    pub(super) fn begin(&mut self, now: u64) {
        if self.next < now {
            (self.next, self.at_last) = (now, now);
        }
    }

    /// Charges bytes that have left, or have been dropped at the expense of later packets.
    pub(super) fn charge(&mut self, bytes: u64, dropped: bool) {
        let Some(rate) = self.bandwidth else { return };
        let time = time_of(bytes, rate);
        self.next = self.next.saturating_add(time);
        if !dropped {
            self.at_last = self.at_last.saturating_add(time + time / 2);
        }
    }
}
