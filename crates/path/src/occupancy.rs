//! How full a queue was, and for how long: a histogram in tenths of its limit, made of the queue's own changes.

use crate::level::Watch;
use crate::model::Limit;

/// Into how many parts the limit is cut.
pub(crate) const PARTS: usize = 10;

/// The time that a queue spent at each tenth of its limit while it was measured. Tenth k holds the levels from k/10 of
/// the limit up to, without it, (k + 1)/10; the last one also the full queue.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    /// 0: packets are counted, 1: bytes.
    of: usize,
    limit: f64,
    counting: bool,
    /// Nanoseconds: whole numbers, exact up to 2^53.
    time: [f64; PARTS],
}

impl Occupancy {
    /// Of a queue with this limit.
    pub(crate) fn new(limit: Limit) -> Occupancy {
        let (of, limit) = match limit {
            Limit::Packets(packets) => (0, f64::from(packets)),
            Limit::Bytes(size) => (1, size.0 as f64),
        };
        Occupancy { of, limit, counting: false, time: [0.0; PARTS] }
    }

    /// What lasts from now on counts.
    pub(crate) fn begin(&mut self) {
        self.counting = true;
    }

    /// What lasts from now on does not count.
    pub(crate) fn end(&mut self) {
        self.counting = false;
    }

    /// Shares of the time counted; zeros if there was none.
    pub(crate) fn shares(&self) -> [f64; PARTS] {
        let all: f64 = self.time.iter().sum();
        self.time.map(|time| if all > 0.0 { time / all } else { 0.0 })
    }
}

impl Watch for Occupancy {
    #[inline]
    fn lasted(&mut self, level: [f64; 2], span: f64) {
        if self.counting {
            // Whole numbers below 2^53 / 10, so that no rounding carries a level over the edge of a tenth. Of a limit
            // of nothing 0/0 becomes tenth 0.
            let part = (level[self.of] * PARTS as f64 / self.limit) as usize;
            self.time[part.min(PARTS - 1)] += span;
        }
    }
}
