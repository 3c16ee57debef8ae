//! Linux's round-trip time estimator (`tcp_rtt_estimator`, `tcp_set_rto`): RFC 6298, but the minimum timeout applies to
//! the variation. The variation falls at most once per round trip, and a falling round-trip time hardly raises it.

use paceline_units::Span;

/// The estimate in nanoseconds: srtt scaled by 8, deviations by 4, as in the kernel.
#[derive(Debug, Default)]
pub(super) struct Estimator {
    srtt: u64,
    mdev: u64,
    /// The largest deviation of this round, and the variation for the timeout.
    mdev_max: u64,
    rttvar: u64,
    /// The round ends when this segment is acknowledged.
    round: u32,
}

impl Estimator {
    /// Takes a sample. `una` and `next`: the bounds of outstanding data; `min_rto`: the minimum timeout.
    pub(super) fn sample(&mut self, rtt: Span, una: u32, next: u32, min_rto: Span) {
        if self.srtt == 0 {
            self.srtt = (rtt.0 << 3).max(1);
            self.mdev = rtt.0 << 1; // the initial timeout is three round-trip times
            self.rttvar = self.mdev.max(min_rto.0);
            self.mdev_max = self.rttvar;
            self.round = next;
            return;
        }
        let (error, fell) = ((self.srtt >> 3).abs_diff(rtt.0), rtt.0 < self.srtt >> 3);
        self.srtt = (self.srtt - (self.srtt >> 3) + rtt.0).max(1);
        let old = self.mdev >> 2;
        self.mdev = match error.checked_sub(old) {
            // a falling round-trip time would raise the timeout: use an eighth of the increase
            Some(more) if fell => self.mdev + (more >> 3),
            Some(more) => self.mdev + more,
            None => self.mdev + error - old,
        };
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if una > self.round {
            self.rttvar -= self.rttvar.saturating_sub(self.mdev_max) >> 2;
            self.round = next;
            self.mdev_max = min_rto.0;
        }
    }

    /// Smoothed round-trip time; zero before a sample.
    pub(super) fn srtt(&self) -> Span {
        Span(self.srtt >> 3)
    }

    /// The timeout minus srtt: four deviations, at least the minimum timeout.
    pub(super) fn margin(&self) -> Span {
        Span(self.rttvar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTO: Span = Span::from_millis(200);
    const fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    #[test]
    fn the_minimum_is_one_of_the_variation() {
        let mut e = Estimator::default();
        e.sample(ms(50), 1, 2, MIN_RTO);
        assert_eq!((e.srtt(), e.margin()), (ms(50), ms(200))); // RTO 250 ms, not 200
        let mut slow = Estimator::default();
        slow.sample(ms(300), 1, 2, MIN_RTO);
        assert_eq!(slow.margin(), ms(600)); // three round trips
    }

    #[test]
    fn the_variation_falls_once_a_round_and_a_falling_time_hardly_raises_it() {
        let mut e = Estimator::default();
        e.sample(ms(300), 1, 10, MIN_RTO);
        for _ in 0..50 {
            e.sample(ms(300), 5, 10, MIN_RTO);
        }
        assert_eq!(e.margin(), ms(600)); // within the round: stays
        e.sample(ms(300), 11, 20, MIN_RTO);
        e.sample(ms(300), 21, 30, MIN_RTO);
        assert_eq!(e.margin(), ms(500)); // a quarter of the way to 200 ms
        let (mut up, mut down) = (Estimator::default(), Estimator::default());
        for e in [&mut up, &mut down] {
            e.sample(ms(200), 1, 10, MIN_RTO);
            for round in 1..100 {
                e.sample(ms(200), round * 10 + 1, round * 10 + 10, MIN_RTO);
            }
        }
        assert!(up.mdev < 4);
        up.sample(ms(360), 5, 10, MIN_RTO);
        down.sample(ms(40), 5, 10, MIN_RTO);
        assert!(up.mdev.abs_diff(ms(160).0) < 4 && down.mdev.abs_diff(ms(20).0) < 4);
        assert!(down.srtt().0.abs_diff(ms(180).0) < 4);
    }
}
