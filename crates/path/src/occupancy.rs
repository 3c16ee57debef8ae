//! How full a queue was, and for how long: a histogram in tenths of its limit, updated at each change of the queue.

use crate::model::Limit;
use crate::queue_level::Watch;

/// The number of bins.
pub(crate) const PARTS: usize = 10;

/// The time that a queue spent in each tenth of its limit while it was measured. Bin k holds the levels in [k/10, (k +
/// 1)/10) of the limit; the last one includes the full queue.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    /// The unit: 0 packets, 1 bytes.
    of: usize,
    limit: f64,
    counting: bool,
    /// Nanoseconds: integers, exact up to 2^53.
    time: [f64; PARTS],
}

impl Occupancy {
    /// A histogram for a queue with this limit.
    pub(crate) fn new(limit: Limit) -> Occupancy {
        let (of, limit) = match limit {
            Limit::Packets(packets) => (0, f64::from(packets)),
            Limit::Bytes(size) => (1, size.0 as f64),
        };
        Occupancy { of, limit, counting: false, time: [0.0; PARTS] }
    }

    /// Starts counting.
    pub(crate) fn begin(&mut self) {
        self.counting = true;
    }

    /// Stops counting.
    pub(crate) fn end(&mut self) {
        self.counting = false;
    }

    /// The fraction of the counted time in each bin; zeros if no time was counted.
    pub(crate) fn shares(&self) -> [f64; PARTS] {
        let all: f64 = self.time.iter().sum();
        self.time.map(|time| if all > 0.0 { time / all } else { 0.0 })
    }
}

impl Watch for Occupancy {
    #[inline]
    fn lasted(&mut self, level: [f64; 2], span: f64) {
        if self.counting {
            // Integers below 2^53 / 10, so rounding cannot move a level across a bin's edge. With a limit of zero, 0/0
            // becomes bin 0.
            let part = (level[self.of] * PARTS as f64 / self.limit) as usize;
            self.time[part.min(PARTS - 1)] += span;
        }
    }
}
