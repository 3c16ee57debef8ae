//! What the bottleneck's rate was when the queue last grew, and how sure that is.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/link_capacity_estimator.cc.

/// The weight of a new sample (OnOveruseDetected).
const ALPHA: f64 = 0.05;
/// The deviation at first and at least, and at most: of a rate in kbit/s, squared and divided by it.
const DEVIATIONS: (f64, f64) = (0.4, 2.5);
/// The bounds lie so many standard deviations away.
const SIGMAS: f64 = 3.0;

/// The estimate. Rates are in bits a second.
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

    /// A rate above this is of another link.
    pub fn upper(&self) -> f64 {
        self.mean.map_or(f64::INFINITY, |mean| (mean + SIGMAS * self.sigma(mean)) * 1e3)
    }

    /// So is one below this.
    pub fn lower(&self) -> f64 {
        self.mean.map_or(0.0, |mean| (mean - SIGMAS * self.sigma(mean)).max(0.0) * 1e3)
    }

    fn sigma(&self, mean: f64) -> f64 {
        (self.deviation * mean).sqrt()
    }

    /// The rate is no longer known; how far it deviated is kept.
    pub fn forget(&mut self) {
        self.mean = None;
    }

    /// The queue grew while this rate came through.
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

    /// By hand; libwebrtc has no test of this class alone.
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
        // 0.95 * 0.4 + 0.05 * 190^2 / 510 = 3.92, but 2.5 at most: sqrt(2.5 * 510) = 35.7 kbit/s
        assert!((capacity.upper() - 617_121.0).abs() < 1.0);
        capacity.forget();
        assert_eq!(capacity.estimate(), None);
        capacity.overuse(1e3);
        assert_eq!(capacity.lower(), 0.0, "never below zero");
    }
}
