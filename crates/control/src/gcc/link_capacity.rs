//! The bottleneck's rate at recent overuses, and its deviation.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/link_capacity_estimator.cc.

/// The weight of a new sample (OnOveruseDetected).
const ALPHA: f64 = 0.05;
/// Initial and minimum, and maximum deviation: squared deviation of a rate in kbit/s, divided by the rate.
const DEVIATIONS: (f64, f64) = (0.4, 2.5);
/// Distance of the bounds in standard deviations.
const SIGMAS: f64 = 3.0;

/// The estimate. Rates are in bits per second.
#[derive(Clone, Copy, Debug)]
pub struct LinkCapacityEstimator {
    /// In kbit/s.
    mean: Option<f64>,
    deviation: f64,
}

impl Default for LinkCapacityEstimator {
    fn default() -> LinkCapacityEstimator {
        LinkCapacityEstimator { mean: None, deviation: DEVIATIONS.0 }
    }
}

impl LinkCapacityEstimator {
    /// The rate; `None` before the first overuse and after a reset.
    pub fn estimate(&self) -> Option<f64> {
        self.mean.map(|mean| mean * 1e3)
    }

    /// Upper bound: a rate above it indicates another link capacity.
    pub fn upper(&self) -> f64 {
        self.mean.map_or(f64::INFINITY, |mean| (mean + SIGMAS * self.sigma(mean)) * 1e3)
    }

    /// Lower bound: a rate below it indicates another link capacity.
    pub fn lower(&self) -> f64 {
        self.mean.map_or(0.0, |mean| (mean - SIGMAS * self.sigma(mean)).max(0.0) * 1e3)
    }

    fn sigma(&self, mean: f64) -> f64 {
        (self.deviation * mean).sqrt()
    }

    /// Forgets the rate, but keeps the deviation.
    pub fn forget(&mut self) {
        self.mean = None;
    }

    /// Adds the throughput at an overuse.
    pub fn overuse(&mut self, throughput: f64) {
        let sample = throughput / 1e3;
        let mean = self.mean.map_or(sample, |mean| (1.0 - ALPHA) * mean + ALPHA * sample);
        let error = mean - sample;
        let deviation = (1.0 - ALPHA) * self.deviation + ALPHA * error * error / mean.max(1.0);
        self.deviation = deviation.clamp(DEVIATIONS.0, DEVIATIONS.1);
        self.mean = Some(mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand; libwebrtc has no unit test of this class.
    #[test]
    fn the_bounds_lie_three_deviations_away() {
        let mut capacity = LinkCapacityEstimator::default();
        assert_eq!((capacity.estimate(), capacity.lower(), capacity.upper()), (None, 0.0, f64::INFINITY));
        capacity.overuse(500e3);
        assert_eq!(capacity.estimate(), Some(500e3));
        // sqrt(0.4 * 500) = 14.14 kbit/s
        assert!((capacity.upper() - 542_426.0).abs() < 1.0 && (capacity.lower() - 457_573.0).abs() < 1.0);
        capacity.overuse(700e3);
        assert_eq!(capacity.estimate(), Some(510e3));
        // 0.95 * 0.4 + 0.05 * 190^2 / 510 = 3.92, limited to 2.5: sqrt(2.5 * 510) = 35.7 kbit/s
        assert!((capacity.upper() - 617_121.0).abs() < 1.0);
        capacity.forget();
        assert_eq!(capacity.estimate(), None);
        capacity.overuse(1e3);
        assert_eq!(capacity.lower(), 0.0, "never below zero");
    }
}
