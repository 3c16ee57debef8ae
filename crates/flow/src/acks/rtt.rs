//! Round-trip time and timeout, by the estimator that the controller selects.

use paceline_control::Estimator;
use paceline_units::Span;

/// The minimum sample.
const MIN_SAMPLE: Span = Span::from_micros(1);

/// The estimates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    law: Estimator,
    /// In seconds; zero before the first sample.
    mean: f64,
    deviation: f64,
    /// `mean` and `deviation`, rounded.
    rounded: Span,
    rounded_deviation: Span,
    timeout: Span,
    min_rtt: Span,
}

impl Rtt {
    pub(super) fn new(law: Estimator) -> Rtt {
        let timeout = law.first_timeout;
        Rtt {
            law,
            mean: 0.0,
            deviation: 0.0,
            rounded: Span::ZERO,
            rounded_deviation: Span::ZERO,
            timeout,
            min_rtt: Span::ZERO,
        }
    }

    /// Takes a sample; returns it, limited to the minimum.
    pub(super) fn sample(&mut self, sample: Span) -> Span {
        let sample = sample.max(MIN_SAMPLE);
        let seconds = sample.as_secs_f64();
        if self.mean == 0.0 && self.law.first_mean == Span::ZERO {
            self.mean = seconds;
            self.deviation = self.law.first_deviation * seconds;
            self.min_rtt = sample;
        } else {
            if self.mean == 0.0 {
                self.mean = self.law.first_mean.as_secs_f64();
                self.min_rtt = sample;
            }
            let error = seconds - self.mean;
            self.mean += self.law.gain * error;
            self.deviation += self.law.deviation_gain * (error.abs() - self.deviation);
            self.min_rtt = self.min_rtt.min(sample);
        }
        self.rounded = Span::from_secs_f64(self.mean).max(MIN_SAMPLE);
        self.rounded_deviation = Span::from_secs_f64(self.deviation);
        let timeout = self.law.srtt_factor * self.mean + self.law.deviation_factor * self.deviation;
        self.timeout = Span::from_secs_f64(timeout).max(self.law.min_rto).max(MIN_SAMPLE);
        sample
    }

    /// The smoothed round-trip time; zero before the first sample.
    #[inline]
    pub(super) fn smoothed(&self) -> Span {
        self.rounded
    }

    /// The smoothed deviation.
    #[inline]
    pub(super) fn deviation(&self) -> Span {
        self.rounded_deviation
    }

    /// The minimum sample; zero before the first.
    pub(super) fn min_rtt(&self) -> Span {
        self.min_rtt
    }

    /// The time after which a packet without an acknowledgement is lost.
    #[inline]
    pub(super) fn timeout(&self) -> Span {
        self.timeout
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_control::registry::scheme;
    use paceline_control::{AckController, AcksController, Profile};

    fn law(name: &str) -> Estimator {
        AcksController::new(scheme(name).unwrap(), Profile::Rfc, &[]).unwrap().settings().estimator
    }

    #[test]
    fn rap_halves_and_times_out_at_1_2_srtt_and_4_deviations() {
        let mut rtt = Rtt::new(law("rap"));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Span::ZERO, Span::from_secs(2)));
        rtt.sample(Span::from_millis(100));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Span::from_millis(100), Span::from_millis(120)));
        rtt.sample(Span::from_millis(200));
        // mean 150 ms, deviation 50 ms
        assert_eq!((rtt.smoothed(), rtt.deviation()), (Span::from_millis(150), Span::from_millis(50)));
        assert_eq!(rtt.timeout(), Span::from_millis(380));
        rtt.sample(Span::ZERO);
        assert_eq!(rtt.min_rtt(), MIN_SAMPLE);
    }

    #[test]
    fn a_mean_that_is_given_moves_with_the_first_sample() {
        let mut rtt = Rtt::new(Estimator { first_mean: Span::from_secs(2), ..law("rap") });
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Span::ZERO, Span::from_secs(2)));
        rtt.sample(Span::from_millis(100));
        // mean 2 - 1.9/2, deviation 1.9/2
        assert_eq!((rtt.smoothed(), rtt.deviation()), (Span::from_millis(1050), Span::from_millis(950)));
        assert_eq!((rtt.timeout(), rtt.min_rtt()), (Span::from_millis(1260 + 3800), Span::from_millis(100)));
    }

    #[test]
    fn tfrcp_has_the_timeout_of_tcp() {
        let mut rtt = Rtt::new(law("tfrcp"));
        rtt.sample(Span::from_millis(800));
        assert_eq!(rtt.timeout(), Span::from_millis(2400)); // RFC 6298, (2.2)
        rtt.sample(Span::from_millis(1600));
        assert_eq!(rtt.smoothed(), Span::from_millis(900)); // (2.3)
        assert_eq!(rtt.timeout(), Span::from_millis(900 + 4 * 500));
        for _ in 0..100 {
            rtt.sample(Span::from_millis(100));
        }
        assert_eq!(rtt.timeout(), Span::from_secs(1)); // (2.4)
    }
}
