//! Detects growth of the one-way delay: the slope of a line through the smoothed delays of the last groups, compared
//! with an adaptive threshold.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/trendline_estimator.cc. The adaptive threshold is that of
//! draft-ietf-rmcat-gcc-02 section 5.4 (its paper: G. Carlucci and others, "Congestion Control for Web Real-Time
//! Communication", IEEE/ACM Transactions on Networking 25, 2017, equation 7).

use super::inter_arrival::Deltas;
use super::millis;
use paceline_units::Time;
use std::collections::VecDeque;

/// Groups in the line: kDefaultTrendlineWindowSize.
const WINDOW_SIZE: usize = 20;
/// The weight of the past in the smoothed delay: kDefaultTrendlineSmoothingCoeff.
const SMOOTHING_COEFF: f64 = 0.9;
/// kDefaultTrendlineThresholdGain.
const THRESHOLD_GAIN: f64 = 4.0;
/// Maximum number of groups by which the slope is multiplied: kMinNumDeltas.
const MIN_NUM_DELTAS: u32 = 60;
/// How fast the threshold follows the trend up and down, per millisecond: k_up and k_down.
const OVERUSE_K_UP: f64 = 0.0087;
const OVERUSE_K_DOWN: f64 = 0.039;
/// The threshold's initial value, minimum and maximum, in milliseconds.
const FIRST_THRESHOLD: f64 = 12.5;
const THRESHOLDS: (f64, f64) = (6.0, 600.0);
/// A trend this far above the threshold is a spike, which does not move the threshold: kMaxAdaptOffsetMs.
const MAX_ADAPT_OFFSET: f64 = 15.0;
/// The threshold adapts as if at most this many milliseconds had passed.
const MAX_TIME_DELTA: f64 = 100.0;
/// The trend must exceed the threshold for more than this many milliseconds: kOverUsingTimeThreshold.
const OVERUSING_TIME_THRESHOLD: f64 = 10.0;

/// The detector's state (bandwidth usage).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Usage {
    /// The delay is stable.
    #[default]
    Normal,
    /// The delay grows: the queue builds up.
    Over,
    /// The delay shrinks: the queue drains.
    Under,
}

/// The estimator and the detector.
#[derive(Clone, Debug)]
pub struct TrendlineEstimator {
    /// The first group's arrival; arrivals in the window are relative to it.
    first: Option<Time>,
    groups: u32,
    accumulated: f64,
    smoothed: f64,
    /// (arrival, smoothed delay) of the last groups, in milliseconds.
    window: VecDeque<(f64, f64)>,
    slope: f64,
    /// The scaled slope, which is compared with the threshold.
    trend: f64,
    threshold: f64,
    adapted: Option<Time>,
    /// How long the trend has been above the threshold, in milliseconds, and for how many groups.
    above: Option<f64>,
    groups_above: u32,
    usage: Usage,
}

impl Default for TrendlineEstimator {
    fn default() -> TrendlineEstimator {
        TrendlineEstimator {
            first: None,
            groups: 0,
            accumulated: 0.0,
            smoothed: 0.0,
            window: VecDeque::with_capacity(WINDOW_SIZE + 1),
            slope: 0.0,
            trend: 0.0,
            threshold: FIRST_THRESHOLD,
            adapted: None,
            above: None,
            groups_above: 0,
            usage: Usage::Normal,
        }
    }
}

impl TrendlineEstimator {
    /// The current state.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The trend (the slope times the number of groups, at most 60, and the gain) and the threshold, both in
    /// milliseconds.
    pub fn reading(&self) -> (f64, f64) {
        (if self.first.is_some() { self.trend } else { f64::NAN }, self.threshold)
    }

    /// Handles a complete group; the packet that ended it arrived at `arrived`.
    pub fn group(&mut self, deltas: &Deltas, arrived: Time) {
        let first = *self.first.get_or_insert(arrived);
        self.groups = (self.groups + 1).min(MIN_NUM_DELTAS);
        self.accumulated += deltas.arrived_ms - deltas.sent_ms;
        self.smoothed = SMOOTHING_COEFF * self.smoothed + (1.0 - SMOOTHING_COEFF) * self.accumulated;
        self.window.push_back((millis(arrived, first), self.smoothed));
        if self.window.len() > WINDOW_SIZE {
            self.window.pop_front();
        }
        let full = self.window.len() == WINDOW_SIZE;
        let slope = full.then(|| slope(&self.window)).flatten().unwrap_or(self.slope);
        self.detect(slope, deltas.sent_ms);
        if self.groups >= 2 {
            self.slope = slope;
            self.adapt(arrived);
        }
    }

    fn detect(&mut self, slope: f64, sent_ms: f64) {
        if self.groups < 2 {
            self.usage = Usage::Normal;
            return;
        }
        self.trend = f64::from(self.groups) * slope * THRESHOLD_GAIN;
        if self.trend > self.threshold {
            // its beginning is unknown: half of the first interval counts
            let above = self.above.map_or(sent_ms / 2.0, |before| before + sent_ms);
            self.above = Some(above);
            self.groups_above += 1;
            if above > OVERUSING_TIME_THRESHOLD && self.groups_above > 1 && slope >= self.slope {
                self.above = Some(0.0);
                self.groups_above = 0;
                self.usage = Usage::Over;
            }
            return;
        }
        self.above = None;
        self.groups_above = 0;
        self.usage = if self.trend < -self.threshold { Usage::Under } else { Usage::Normal };
    }

    fn adapt(&mut self, arrived: Time) {
        let since = millis(arrived, self.adapted.unwrap_or(arrived)).min(MAX_TIME_DELTA);
        self.adapted = Some(arrived);
        let size = self.trend.abs();
        if size > self.threshold + MAX_ADAPT_OFFSET {
            return;
        }
        let speed = if size < self.threshold { OVERUSE_K_DOWN } else { OVERUSE_K_UP };
        let threshold = self.threshold + speed * (size - self.threshold) * since;
        self.threshold = threshold.clamp(THRESHOLDS.0, THRESHOLDS.1);
    }
}

/// The slope of the least-squares line; `None` if all points have the same time.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (x, y) = (x / n, y / n);
    let (mut up, mut down) = (0.0, 0.0);
    for point in points {
        up += (point.0 - x) * (point.1 - y);
        down += (point.0 - x) * (point.0 - x);
    }
    (down != 0.0).then(|| up / down)
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's trendline_estimator_unittest.cc: 25 packets, one each 20 ms, that arrive at
    //! the same spacing, a tenth slower, and 15 % faster.

    use super::*;

    /// The states after 24 packets, each of which arrives `pace` times 20 ms (in whole milliseconds) after the previous
    /// one.
    fn states(pace: f64) -> Vec<Usage> {
        let mut trendline = TrendlineEstimator::default();
        let arrival = |i: u64| 987_654_321 + (20.0 * pace * i as f64) as u64;
        (1..25)
            .map(|i| {
                let arrived_ms = (arrival(i) - arrival(i - 1)) as f64;
                trendline.group(&Deltas { sent_ms: 20.0, arrived_ms, size: 0.0 }, Time(arrival(i) * 1_000_000));
                trendline.usage()
            })
            .collect()
    }

    #[test]
    fn the_detector_says_what_the_delay_does() {
        assert!(states(1.0).iter().all(|&s| s == Usage::Normal));
        for (pace, want) in [(1.1, Usage::Over), (0.85, Usage::Under)] {
            let states = states(pace);
            let at = states.iter().position(|&s| s == want).unwrap();
            assert!(at >= WINDOW_SIZE - 1, "{at}: a line takes {WINDOW_SIZE} groups");
            assert!(states[..at].iter().all(|&s| s == Usage::Normal));
            assert!(states[at..].iter().all(|&s| s == want), "{pace}: {states:?}");
        }
    }

    /// Compared with the same law written in another language.
    #[test]
    fn the_threshold_follows_the_trend_slowly_and_ignores_spikes() {
        let mut trendline = TrendlineEstimator::default();
        let group = |trendline: &mut TrendlineEstimator, i: u64, arrived_ms: f64| {
            trendline.group(&Deltas { sent_ms: 20.0, arrived_ms, size: 0.0 }, Time(i * 20_000_000));
        };
        for i in 0..2 {
            group(&mut trendline, i, 20.0);
        }
        assert_eq!(trendline.reading(), (0.0, 12.5));
        group(&mut trendline, 2, 20.0);
        // 12.5 - 0.039 * 12.5 * 20 ms = 2.75, limited to 6
        assert_eq!(trendline.reading(), (0.0, 6.0));
        // a spike of 500 ms moves the threshold while the trend is less than 15 above it
        for i in 3..30 {
            group(&mut trendline, i, if i == 25 { 520.0 } else { 20.0 });
        }
        let (trend, threshold) = trendline.reading();
        assert!((trend - 47.959_375_939_849_62).abs() < 1e-9, "{trend}");
        assert!((threshold - 9.261_791_178_947_368).abs() < 1e-9, "{threshold}");
    }

    #[test]
    fn the_threshold_rises_to_a_trend_a_little_above_it() {
        let mut trendline = TrendlineEstimator { threshold: 6.0, groups: 60, ..TrendlineEstimator::default() };
        trendline.adapted = Some(Time::ZERO);
        trendline.trend = 10.0;
        trendline.adapt(Time(10_000_000));
        assert!((trendline.threshold - (6.0 + 0.0087 * 4.0 * 10.0)).abs() < 1e-12);
        trendline.adapt(Time(900_000_000));
        let before = 6.0 + 0.0087 * 4.0 * 10.0;
        assert!((trendline.threshold - (before + 0.0087 * (10.0 - before) * 100.0)).abs() < 1e-12, "100 ms at most");
    }
}
