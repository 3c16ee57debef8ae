//! The round-trip time estimate (RFC 9002 section 5).

use paceline_units::{Span, Time};

/// kGranularity.
const GRANULARITY: Span = Span::from_millis(1);
/// kInitialRtt.
const INITIAL: Span = Span::from_millis(333);

/// The round-trip time estimate of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtt {
    /// The latest sample, including the peer's acknowledgement delay; zero before the first.
    pub latest_rtt: Span,
    /// The smoothed round-trip time (smoothed_rtt).
    pub smoothed_rtt: Span,
    /// Its variation (rttvar).
    pub rttvar: Span,
    /// The minimum (min_rtt), without adjustment for acknowledgement delay; [`Span::MAX`] before the first.
    pub min_rtt: Span,
}

impl Default for Rtt {
    fn default() -> Rtt {
        Rtt { latest_rtt: Span::ZERO, smoothed_rtt: INITIAL, rttvar: INITIAL / 2, min_rtt: Span::MAX }
    }
}

impl Rtt {
    /// Whether there has been a sample.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.min_rtt < Span::MAX
    }

    /// Takes a sample; the peer reports `delay` as its acknowledgement delay, already limited to max_ack_delay.
    #[inline]
    pub fn sample(&mut self, latest: Span, delay: Span) {
        self.latest_rtt = latest;
        if !self.is_known() {
            (self.min_rtt, self.smoothed_rtt, self.rttvar) = (latest, latest, latest / 2);
            return;
        }
        self.min_rtt = self.min_rtt.min(latest);
        let adjusted = if latest >= self.min_rtt + delay { latest - delay } else { latest };
        let off = Span(self.smoothed_rtt.0.abs_diff(adjusted.0));
        self.rttvar = Span((3 * self.rttvar.0 + off.0) / 4);
        self.smoothed_rtt = Span((7 * self.smoothed_rtt.0 + adjusted.0) / 8);
    }

    /// The time after which an unacknowledged packet is declared lost when a later one was acknowledged (section
    /// 6.1.2).
    #[inline]
    #[must_use]
    pub fn loss_delay(&self) -> Span {
        // kTimeThreshold is 9/8
        let base = self.latest_rtt.max(self.smoothed_rtt);
        (base + base / 8).max(GRANULARITY)
    }

    /// The probe timeout (section 6.2.1); `delay`: the peer's max_ack_delay.
    #[inline]
    #[must_use]
    pub fn probe_timeout(&self, delay: Span) -> Span {
        self.smoothed_rtt + (self.rttvar * 4).max(GRANULARITY) + delay
    }

    /// The minimum duration of persistent congestion (section 7.6.1); `delay`: the peer's max_ack_delay.
    #[must_use]
    pub fn persistent(&self, delay: Span) -> Span {
        // kPersistentCongestionThreshold is 3
        self.probe_timeout(delay) * 3
    }
}

/// `later` - `earlier`, or zero if they are in the other order.
pub(super) fn between(earlier: Time, later: Time) -> Span {
    Span(later.0.saturating_sub(earlier.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Span {
        Span::from_millis(n)
    }

    /// RFC 9002 section 5.3, step by step.
    #[test]
    fn as_the_rfc_says() {
        let mut rtt = Rtt::default();
        assert_eq!((rtt.probe_timeout(Span::ZERO), rtt.is_known()), (ms(999), false));
        rtt.sample(ms(100), ms(20));
        assert_eq!((rtt.smoothed_rtt, rtt.rttvar, rtt.min_rtt), (ms(100), ms(50), ms(100)), "the first as it is");
        rtt.sample(ms(140), ms(20));
        assert_eq!(rtt.smoothed_rtt, ms(100) * 7 / 8 + ms(120) / 8);
        assert_eq!(rtt.rttvar, ms(50) * 3 / 4 + ms(20) / 4);
        rtt.sample(ms(110), ms(20));
        assert_eq!(rtt.min_rtt, ms(100), "less than the least with its delay taken off: the delay is not");
        assert!(rtt.smoothed_rtt > ms(102));
        let steady = Rtt { latest_rtt: ms(80), smoothed_rtt: ms(72), rttvar: Span::ZERO, min_rtt: ms(70) };
        assert_eq!((steady.loss_delay(), steady.probe_timeout(ms(25))), (ms(90), ms(98)));
        assert_eq!(steady.persistent(ms(25)), ms(294));
    }

    /// RFC 9002 sections 5.2 and 6.1.2: min_rtt falls with each lesser sample; the time threshold is at least kGranularity.
    #[test]
    fn the_least_sample_and_the_granularity() {
        let mut rtt = Rtt::default();
        for (sample, min) in [(80, 80), (90, 80), (70, 70), (75, 70)] {
            rtt.sample(ms(sample), Span::ZERO);
            assert_eq!(rtt.min_rtt, ms(min));
        }
        let mut short = Rtt::default();
        short.sample(Span::from_micros(100), Span::ZERO);
        assert_eq!(short.loss_delay(), GRANULARITY);
    }
}
