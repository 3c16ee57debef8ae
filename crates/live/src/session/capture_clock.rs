//! Capture times of packets, by the receiver's clock.

use paceline_packet::Stamp;
use paceline_units::Time;

/// Converts a sender's ticks to this end's time.
///
/// The clocks of the two ends are unrelated: capture times count from the first packet's arrival, as if it had been
/// captured at that instant. A packet with a shorter delay than the first therefore has a capture time later than its
/// arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaptureClock {
    /// Ticks per second.
    pub(crate) hz: u32,
    /// The first packet's time stamp.
    pub(crate) first: u32,
    /// When that packet arrived or, at the sender, was captured.
    pub(crate) at: Time,
    newest: u32,
    /// Ticks from the first to the newest, in 64 bits since 32 wrap.
    ticks: i64,
}

impl CaptureClock {
    /// A clock of `hz` ticks per second, starting with its first packet.
    pub(crate) fn new(hz: u32, first: u32, at: Time) -> CaptureClock {
        CaptureClock { hz, first, at, newest: first, ticks: 0 }
    }

    /// The capture time for this time stamp, which must be less than half the 32-bit range from the newest.
    pub(crate) fn captured(&mut self, stamp: u32) -> Stamp {
        let later = stamp.wrapping_sub(self.newest) as i32;
        let ticks = self.ticks.saturating_add(later.into());
        if later > 0 {
            (self.newest, self.ticks) = (stamp, ticks);
        }
        let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(self.hz.max(1));
        // a stamp wraps, and so may a time before this clock's zero
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
            // an hour in steps of five minutes, each followed by a late packet
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
