//! The base delay of RFC 6817: the minimum one-way delay of the last ten minutes, from a minimum per minute.

/// BASE_HISTORY, and the duration of each slot in seconds.
const SLOTS: usize = 10;
const SLOT: f64 = 60.0;

/// The minimum delays in seconds, including the offset between the two clocks.
#[derive(Clone, Debug)]
pub(super) struct BaseDelay {
    slots: [f64; SLOTS],
    since: f64,
}

impl Default for BaseDelay {
    fn default() -> BaseDelay {
        BaseDelay { slots: [f64::INFINITY; SLOTS], since: 0.0 }
    }
}

impl BaseDelay {
    /// The queueing part of this delay.
    pub(super) fn queueing(&mut self, now: f64, delay: f64) -> f64 {
        if now - self.since >= SLOT {
            self.slots.rotate_right(1);
            self.slots[0] = f64::INFINITY;
            self.since = now;
        }
        self.slots[0] = self.slots[0].min(delay);
        delay - self.slots.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minimum_is_forgotten_after_ten_minutes() {
        let mut base = BaseDelay::default();
        assert_eq!(base.queueing(0.0, -2.0), 0.0);
        assert_eq!(base.queueing(1.0, 1.0), 3.0);
        for minute in 1..10 {
            assert_eq!(base.queueing(60.0 * f64::from(minute), 1.0), 3.0, "{minute}");
        }
        assert_eq!(base.queueing(600.0, 1.0), 0.0);
    }
}
