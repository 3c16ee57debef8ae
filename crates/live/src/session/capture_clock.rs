//! When what is in a packet was captured, by the clock of who receives it.

use paceline_units::Time;

/// Ticks of a sender's clock, as this end's times.
///
/// The clocks of two ends have nothing in common: times of capture count from the first packet's arrival, as if it had come the
/// instant that it was captured.
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

    /// The time of a time stamp, which lies less than half a round of 32 bits from the newest.
    pub(crate) fn time(&mut self, stamp: u32) -> Time {
        let later = stamp.wrapping_sub(self.newest) as i32;
        let ticks = self.ticks.saturating_add(later.into());
        if later > 0 {
            (self.newest, self.ticks) = (stamp, ticks);
        }
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.hz.max(1));
        self.at
            .0
            .checked_add_signed(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
            .map_or_else(|| if nanos < 0 { Time::ZERO } else { Time::NEVER }, Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_on_where_32_bits_go_round_and_stand_anything() {
        let hz = 3_906_250; // of 256 ns
        let mut clock = CaptureClock::new(hz, u32::MAX - 9, Time::from_secs_f64(100.0));
        assert_eq!(clock.time(0), Time(100_000_000_000 + 10 * 256));
        // an hour in steps of five minutes, each followed by one that is late
        for step in 1..=12u32 {
            let stamp = step.wrapping_mul(300 * hz);
            let then = Time(100_000_000_000 + (10 + u64::from(step) * 300 * u64::from(hz)) * 256);
            assert_eq!(clock.time(stamp), then);
            assert_eq!(clock.time(stamp.wrapping_sub(hz)), Time(then.0 - 1_000_000_000));
        }
        let mut stamp = 0u32;
        let mut hostile = CaptureClock::new(1, 0, Time(5));
        assert_eq!(hostile.time(u32::MAX), Time::ZERO, "before there was a clock");
        let mut last = Time::ZERO;
        for _ in 0..20 {
            stamp = stamp.wrapping_add(i32::MAX as u32);
            let time = hostile.time(stamp);
            assert!(time >= last);
            last = time;
        }
        assert!(last > Time(u64::MAX / 2));
    }
}
