//! The age of packets, from stamps that wrap around.

use crate::Stamp;
use paceline_units::{Offset, Time};

/// Ticks until stamps wrap around: 18 minutes.
const ROUND: i64 = 1 << 32;
/// How much older than the newest stamp a packet may be: 4.6 minutes.
const MAX_AGE: i64 = ROUND / 4;

/// Unwraps stamps in order of arrival: each is from about the time of the newest one before it, or later.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transit {
    /// When the last packet arrived, and when the newest was sent, in ticks of the receiver's clock.
    last_arrival: i64,
    newest: i64,
}

impl Transit {
    /// For stamps that begin at about `start`.
    #[must_use]
    pub const fn since(start: Time) -> Transit {
        let start = ticks(start);
        Transit { last_arrival: start, newest: start }
    }

    /// The time from the writing of `stamp` to `now`, with a resolution of 256 ns; negative if its clock is ahead of
    /// that of `now`.
    ///
    /// A stamp is ambiguous by multiples of 18 minutes. The result is closest to the newest stamp: up to 4.6 minutes
    /// before it, otherwise after it. After a long silence, either the sender was silent or the path was blocked. If
    /// the sender was silent, the packet took about as long as the newest one did. The interpretation with the smaller
    /// deviation wins.
    pub fn of(&mut self, stamp: Stamp, now: Time) -> Offset {
        let now = ticks(now);
        let mut step = i64::from(stamp.0.wrapping_sub(self.newest as u32));
        if step >= ROUND - MAX_AGE {
            step -= ROUND;
        }
        let silence = now.saturating_sub(self.last_arrival);
        if silence >= ROUND / 2 {
            let rounds = (silence.saturating_sub(step).saturating_add(ROUND / 2)).div_euclid(ROUND);
            let silent = step.saturating_add(rounds.saturating_mul(ROUND));
            if silent.saturating_sub(silence).abs() < step.abs() {
                step = silent;
            }
        }
        let written = self.newest.saturating_add(step);
        (self.last_arrival, self.newest) = (now, self.newest.max(written));
        Offset(now.saturating_sub(written).saturating_mul(1 << Stamp::TICK_BITS))
    }

    /// When `stamp`, which arrives at `now`, was written, on the clock of `now`; see [`Transit::of`].
    pub fn written(&mut self, stamp: Stamp, now: Time) -> Offset {
        Offset::at(now) - self.of(stamp, now)
    }
}

/// Ticks since the start of a clock.
const fn ticks(time: Time) -> i64 {
    (time.0 >> Stamp::TICK_BITS) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::Span;

    const MINUTE: Span = Span::from_secs(60);

    /// The delays of stamps that are written and arrive at these times, all in minutes, to a thousandth.
    fn minutes(transit: &mut Transit, of: &[(f64, f64)]) -> Vec<f64> {
        let at = |minutes: f64| Time::ZERO + MINUTE.mul_f64(minutes);
        let delays =
            of.iter().map(|&(written, arrived)| transit.of(Stamp::at(at(written)), at(arrived)).as_secs_f64() / 60.0);
        delays.map(|minutes| (minutes * 1e3).round() / 1e3).collect()
    }

    #[test]
    fn what_waits_for_long_is_as_old_as_it_is() {
        // a queue that grows by a minute every two, for three hours; then it is gone
        let mut of: Vec<_> = (0..180).map(|n| (f64::from(n), f64::from(2 * n))).collect();
        let mut transit = Transit::default();
        assert_eq!(minutes(&mut transit, &of), (0..180).map(f64::from).collect::<Vec<_>>());
        assert_eq!(minutes(&mut transit, &[(188.0, 359.0), (189.0, 359.0)]), [171.0, 170.0]);
        // to 256 ns, the resolution of a stamp
        of = vec![(0.0, 0.000_01)];
        assert_eq!(minutes(&mut Transit::default(), &of), [0.0]);
        let now = Time(1_234_567_890);
        assert_eq!(Transit::default().of(Stamp::at(Time(1_000_000_000)), now), Offset(234_567_680));
    }

    #[test]
    fn what_was_overtaken_is_older_across_the_round_too() {
        let round = ROUND as f64 * 256e-9 / 60.0;
        for rounds in [1.0, 2.0, 7.0] {
            let wraps = round * rounds;
            let mut transit = Transit::since(Time::ZERO + MINUTE.mul_f64(wraps - 1.0));
            // written before and after the wrap-around, and reordered
            let of = [(-0.5, 0.0), (0.25, 0.5), (-0.25, 0.5), (0.5, 0.75), (-4.0, 0.75), (1.0, 1.25)];
            let of = of.map(|(written, arrived)| (wraps + written, wraps + arrived));
            assert_eq!(minutes(&mut transit, &of), [0.5, 0.25, 0.75, 0.25, 4.75, 0.25], "{rounds}");
        }
    }

    #[test]
    fn a_writer_may_be_silent_and_a_path_stand_still_for_longer_than_a_round() {
        for long in [1.0, 8.0, 10.0, 15.0, 17.5, 19.0, 25.0, 40.0, 300.0] {
            let before = [(5.0, 5.25), (6.0, 6.25)];
            let (silent, still) = ((6.0 + long, 6.25 + long), (6.01, 6.25 + long));
            for (next, expected) in [(silent, 0.25), (still, 0.24 + long)] {
                let mut transit = Transit::since(Time::ZERO + MINUTE * 5);
                assert_eq!(minutes(&mut transit, &before), [0.25, 0.25]);
                let delays = minutes(&mut transit, &[next]);
                assert!((delays[0] - expected).abs() < 2e-3, "{long}: {delays:?}, not {expected}");
            }
        }
        // the very first packet may have been delayed for long too
        let mut transit = Transit::since(Time::ZERO + MINUTE * 70);
        assert_eq!(minutes(&mut transit, &[(70.01, 100.0)]), [29.99]);
    }

    /// The clock that writes stamps may be ahead by a growing offset.
    #[test]
    fn what_was_faster_than_the_first_took_less_than_nothing() {
        let mut transit = Transit::since(Time::ZERO);
        let of = [(1.0, 1.0), (2.0, 1.5), (2.5, 2.5), (3.0, 2.25)];
        assert_eq!(minutes(&mut transit, &of), [0.0, -0.5, 0.0, -0.75]);
    }

    #[test]
    fn any_stamps_are_borne() {
        let mut transit = Transit::default();
        for n in 0..100_000u32 {
            let now = Time(u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            transit.of(Stamp(n.wrapping_mul(0x9e37_79b9)), now);
        }
    }
}
