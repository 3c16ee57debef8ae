//! When what is in a packet was captured, by the clock of who receives it.

use paceline_packet::Stamp;
use paceline_units::Time;

/// Ticks of a sender's clock, as this end's times.
///
/// The clocks of two ends have nothing in common: times of capture count from the first packet's arrival, as if it had come the
/// instant that it was captured. What is faster than that one was captured after it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptureClock {
    /// Ticks a second.
    pub(crate) hz: u32,
    /// The first packet's time stamp.
    pub(crate) first: u32,
    /// When that came, or, at who sends it, was captured.
    pub(crate) at: Time,
    newest: u32,
    /// From the first to the newest: 32 bits go round.
    ticks: i64,
}

impl CaptureClock {
    /// Of a clock of `hz` ticks a second, from its first packet on.
    pub(crate) fn new(hz: u32, first: u32, at: Time) -> CaptureClock {
        CaptureClock { hz, first, at, newest: first, ticks: 0 }
    }

    /// When what has this time stamp was captured, which lies less than half a round of 32 bits from the newest.
    pub(crate) fn captured(&mut self, stamp: u32) -> Stamp {
        let later = stamp.wrapping_sub(self.newest) as i32;
        let ticks = self.ticks.saturating_add(later.into());
        if later > 0 {
            (self.newest, self.ticks) = (stamp, ticks);
        }
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.hz.max(1));
        // a stamp goes round, and so may what lies before there was a clock here
        Stamp::at(Time((i128::from(self.at.0) + nanos) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_where_32_bits_go_round_and_stand_anything() {
        let at = Time::from_secs_f64(100.0);
        for hz in [90_000, Stamp::HZ] {
            let mut clock = CaptureClock::new(hz, u32::MAX - 9, at);
            let nanos = |ticks: i64| i128::from(ticks) * 1_000_000_000 / i128::from(hz);
            let then = |ticks: i64| Stamp::at(Time(at.0 + nanos(ticks) as u64));
            assert_eq!(clock.captured(u32::MAX - 9), Stamp::at(at));
            assert_eq!(clock.captured(0), then(10));
            // an hour in steps of five minutes, each followed by one that is late
            for step in 1..=12u32 {
                let ticks = i64::from(step) * 300 * i64::from(hz);
                assert_eq!(clock.captured(ticks as u32), then(10 + ticks));
                assert_eq!(clock.captured((ticks as u32).wrapping_sub(hz)), then(10 + ticks - i64::from(hz)));
            }
        }
        let mut clock = CaptureClock::new(1, 0, Time(5 << 8));
        assert_eq!(clock.captured(u32::MAX), Stamp(5u32.wrapping_sub(Stamp::HZ)), "before there was a clock");
        let mut stamp = 0u32;
        for _ in 0..20 {
            stamp = stamp.wrapping_add(i32::MAX as u32);
            clock.captured(stamp);
        }
    }
}
