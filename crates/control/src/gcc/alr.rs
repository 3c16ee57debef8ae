//! Detects whether the application sends less than the estimate allows (ALR: application limited region).
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/alr_detector.cc and modules/pacing/interval_budget.cc. The
//! three ratios are those of rtc_base/experiments/alr_experiment.cc ("on by default with fixed settings"), which
//! override the 0.65, 0.80 and 0.50 of alr_detector.h.

use paceline_units::Time;

/// The budget is this share of the estimate.
const BANDWIDTH_USAGE_RATIO: f64 = 0.80;
/// A region begins when more than this share of the budget is unused, and ends when less than the second share is.
const START_BUDGET_LEVEL_RATIO: f64 = 0.40;
const STOP_BUDGET_LEVEL_RATIO: f64 = -0.60;
/// The budget is limited to this many seconds of its rate, unused or overdrawn.
const WINDOW: f64 = 0.5;

/// The budget, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlrDetector {
    /// Bytes per second.
    rate: f64,
    bytes_remaining: f64,
    last: Option<Time>,
    since: Option<Time>,
}

impl AlrDetector {
    /// When the current region began; `None` outside a region.
    pub fn since(&self) -> Option<Time> {
        self.since
    }

    /// Sets the estimate.
    pub fn set_estimate(&mut self, rate: f64) {
        self.rate = BANDWIDTH_USAGE_RATIO * rate / 8.0;
        self.bytes_remaining = self.bytes_remaining.clamp(-self.max_budget(), self.max_budget());
    }

    fn max_budget(&self) -> f64 {
        WINDOW * self.rate
    }

    /// A packet of `size` bytes was sent.
    pub fn sent(&mut self, size: f64, now: Time) {
        let Some(last) = self.last.replace(now) else { return };
        let max_budget = self.max_budget();
        self.bytes_remaining = (self.bytes_remaining - size).max(-max_budget);
        self.bytes_remaining = (self.bytes_remaining + self.rate * now.since(last).as_secs_f64()).min(max_budget);
        let unused = if max_budget > 0.0 { self.bytes_remaining / max_budget } else { 0.0 };
        if unused > START_BUDGET_LEVEL_RATIO && self.since.is_none() {
            self.since = Some(now);
        } else if unused < STOP_BUDGET_LEVEL_RATIO {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's alr_detector_unittest.cc: an estimate of 300 kbit/s, a packet each 10 ms.

    use super::*;
    use paceline_units::Span;

    const ESTIMATE: f64 = 300e3;

    struct Application(AlrDetector, Time);

    fn application() -> Application {
        let mut alr = AlrDetector::default();
        alr.set_estimate(ESTIMATE);
        Application(alr, Time(1_000_000_000))
    }

    impl Application {
        /// Sends for `ms` at this share of the estimate; returns whether it is in a region then.
        fn sends(&mut self, ms: u64, percent: f64) -> bool {
            for _ in 0..ms / 10 {
                self.1 += Span::from_millis(10);
                self.0.sent((ESTIMATE * percent / 100.0 * 0.01 / 8.0).floor(), self.1);
            }
            self.0.since().is_some()
        }
    }

    #[test]
    fn a_region_begins_at_a_fifth_and_ends_at_the_whole() {
        let mut application = application();
        assert!(!application.sends(1000, 90.0));
        assert!(application.sends(1500, 20.0));
        assert!(!application.sends(4000, 100.0));
    }

    #[test]
    fn a_short_burst_does_not_end_it() {
        let mut application = application();
        assert!(application.sends(1000, 20.0));
        assert!(application.sends(100, 150.0));
        assert!(!application.sends(3000, 100.0));
    }

    #[test]
    fn an_estimate_that_falls_ends_it_only_by_and_by() {
        let mut application = application();
        assert!(application.sends(1000, 20.0));
        application.0.set_estimate(ESTIMATE / 5.0);
        assert!(application.0.since().is_some());
        assert!(!application.sends(1000, 50.0));
    }

    /// By hand: at 50 %, 0.3 of the estimate is unused, which is 0.375 of the budget's rate: 0.4 of half a second of
    /// the budget after 0.54 s, not counting the first packet.
    #[test]
    fn it_remembers_when_it_began() {
        let mut application = application();
        assert!(application.sends(1000, 50.0));
        assert_eq!(application.0.since(), Some(Time(1_550_000_000)));
    }
}
