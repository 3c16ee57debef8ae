//! The target: the delay-based estimate, bounded by the loss-based one, by the session's rates, and by a backoff at
//! round trips of seconds.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/send_side_bandwidth_estimation.cc. Left out: the receiver's
//! own estimate (REMB), and the capacity from which a "stable" target for layered streams is derived.

use super::loss::{Loss, State};
use super::{MIN_BITRATE, PacketResult};
use paceline_units::{Span, Time};
use std::collections::VecDeque;

/// As long as nothing is lost, only the delay-based estimate counts for this time after the first report: kStartPhase.
const START_PHASE: Span = Span::from_secs(2);
/// A report of fewer packets is added to the next: kLimitNumPackets.
const PACKETS: u64 = 20;
/// Until the loss-based estimate is ready: with a loss of at most LOW_LOSS, the target grows by 8 % and 1 kbit/s above
/// the minimum of the last second (kBweIncreaseInterval); above HIGH_LOSS, it falls by half the share lost, at most
/// once per 300 ms and a round trip (kBweDecreaseInterval). Both apply while reports are less than 6 s old (1.2
/// kMaxRtcpFeedbackInterval).
const LOW_LOSS: f64 = 0.02;
const HIGH_LOSS: f64 = 0.10;
const GROWTH: f64 = 1.08;
const GROWTH_OFFSET: f64 = 1e3;
const INCREASE_INTERVAL: Span = Span::from_secs(1);
const DECREASE_INTERVAL: Span = Span::from_millis(300);
const REPORTS: Span = Span::from_secs(6);
/// Times are in whole milliseconds in libwebrtc, so up to one may be missing.
const PRECISION: Span = Span::from_millis(1);
/// With a round-trip time above RTT_LIMIT the target falls to RTT_FRACTION of itself each RTT_INTERVAL, at least to
/// RTT_FLOOR (RttBasedBackoff).
const RTT_LIMIT: Span = Span::from_secs(3);
const RTT_FRACTION: f64 = 0.8;
const RTT_INTERVAL: Span = Span::from_secs(1);
const RTT_FLOOR: f64 = 5e3;
/// The default maximum rate: kDefaultMaxBitrate.
const MAX_BITRATE: f64 = 1e9;

/// The estimator.
#[derive(Clone, Debug)]
pub struct SendSideBandwidthEstimation {
    loss: Loss,
    loss_state: State,
    target: f64,
    min_bitrate: f64,
    max_bitrate: f64,
    delay_based: f64,
    /// The last feedback (initially, the first packet) with its minimum round-trip time, and the last packet.
    last_feedback: Option<(Time, Span)>,
    sent: Option<Time>,
    rtt: Span,
    /// Lost packets and all packets since the last large enough report, and the share lost in that report.
    counts: (u64, u64),
    share: f64,
    first_report: Option<Time>,
    last_report: Option<Time>,
    decreased: Option<Time>,
    decreased_since_report: bool,
    /// Targets of the last second that may become its minimum; the first is the minimum.
    history: VecDeque<(Time, f64)>,
}

impl Default for SendSideBandwidthEstimation {
    fn default() -> SendSideBandwidthEstimation {
        SendSideBandwidthEstimation {
            loss: Loss::default(),
            loss_state: State::Delay,
            target: 0.0,
            min_bitrate: MIN_BITRATE,
            max_bitrate: MAX_BITRATE,
            delay_based: f64::INFINITY,
            last_feedback: None,
            sent: None,
            rtt: Span::ZERO,
            counts: (0, 0),
            share: 0.0,
            first_report: None,
            last_report: None,
            decreased: None,
            decreased_since_report: false,
            history: VecDeque::new(),
        }
    }
}

impl SendSideBandwidthEstimation {
    /// The target.
    pub fn target(&self) -> f64 {
        self.target.max(self.min_bitrate)
    }

    /// The session's minimum rate.
    pub fn min_bitrate(&self) -> f64 {
        self.min_bitrate
    }

    /// The state of the loss-based estimate.
    pub fn loss_state(&self) -> State {
        self.loss_state
    }

    /// The loss-based estimator, for gauges.
    pub fn loss(&self) -> &Loss {
        &self.loss
    }

    /// Sets the loss-based estimator.
    pub fn set_loss(&mut self, loss: Loss) {
        self.loss = loss;
        self.loss.set_bounds(self.min_bitrate, self.max_bitrate);
    }

    /// The delay-based estimate; infinite before the first.
    pub fn delay_based(&self) -> f64 {
        self.delay_based
    }

    /// Sets the session's bounds.
    pub fn set_bounds(&mut self, min_bitrate: f64, max_bitrate: f64) {
        self.min_bitrate = min_bitrate.max(MIN_BITRATE);
        self.max_bitrate =
            if max_bitrate > 0.0 && max_bitrate.is_finite() { max_bitrate.max(self.min_bitrate) } else { MAX_BITRATE };
        self.loss.set_bounds(self.min_bitrate, self.max_bitrate);
    }

    /// Sets the target, whatever limited it: to the start rate, or to a probe's result.
    pub fn set_target(&mut self, rate: f64) {
        self.delay_based = f64::INFINITY;
        self.limit(rate);
        self.history.clear();
    }

    /// Sets the delay-based estimate.
    pub fn set_delay_based(&mut self, rate: f64) {
        self.delay_based = rate;
        self.limit(self.target);
    }

    /// Sets the target and the estimates that limit it from a flow state exchange.
    pub fn share(&mut self, rate: f64) {
        if self.delay_based.is_finite() {
            self.delay_based = rate;
        }
        self.loss.share(rate);
        self.target = rate.min(self.max_bitrate).max(self.min_bitrate);
    }

    /// Sets the acked bitrate, if known.
    pub fn set_acknowledged(&mut self, rate: Option<f64>) {
        if let Some(rate) = rate {
            self.loss.set_acknowledged(rate);
        }
    }

    /// Sets the round-trip time.
    pub fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt;
    }

    /// A packet was sent.
    pub fn sent(&mut self, now: Time) {
        self.last_feedback.get_or_insert((now, Span::ZERO));
        self.sent = Some(now);
    }

    /// Feedback arrived, with this minimum round-trip time.
    pub fn on_feedback(&mut self, now: Time, rtt: Span) {
        self.last_feedback = Some((now, rtt));
    }

    /// Whether the round-trip time plus the time without feedback on sent packets exceeds the limit of seconds.
    pub fn rtt_above_limit(&self) -> bool {
        let Some((last, rtt)) = self.last_feedback else { return false };
        self.sent.map_or(Span::ZERO, |sent| sent.since(last)) + rtt > RTT_LIMIT
    }

    /// Handles feedback on these packets; `alr`: the application sends less than allowed.
    pub fn feedback(&mut self, results: &[PacketResult], alr: bool, now: Time) {
        self.loss.feedback(results, self.delay_based, alr);
        self.update(now);
    }

    /// Handles a report: `lost` of `all` packets were lost since the last one.
    pub fn report(&mut self, lost: u64, all: u64, now: Time) {
        self.first_report.get_or_insert(now);
        if all == 0 {
            return;
        }
        self.counts = (self.counts.0 + lost, self.counts.1 + all);
        if self.counts.1 < PACKETS {
            return;
        }
        self.decreased_since_report = false;
        // as an eight-bit fixed-point number, as in a receiver report
        self.share = ((256 * self.counts.0 / self.counts.1) as f64).min(255.0) / 256.0;
        self.counts = (0, 0);
        self.last_report = Some(now);
        self.update(now);
    }

    /// Updates the target; called periodically, and after feedback and reports.
    pub fn update(&mut self, now: Time) {
        if self.rtt_above_limit() {
            let again = self.decreased.is_none_or(|last| now.since(last) >= RTT_INTERVAL);
            if again && self.target > RTT_FLOOR {
                self.decreased = Some(now);
                self.limit((RTT_FRACTION * self.target).max(RTT_FLOOR));
            } else {
                self.limit(self.target);
            }
            return;
        }
        if self.share == 0.0 && self.starting(now) && !self.loss.ready() {
            let rate = if self.delay_based.is_finite() { self.delay_based.max(self.target) } else { self.target };
            if rate != self.target {
                self.history.clear();
                self.history.push_back((now, self.target));
                self.limit(rate);
                return;
            }
        }
        self.remember(now);
        let Some(reported) = self.last_report else {
            self.limit(self.target);
            return;
        };
        if self.loss.ready() {
            let (rate, state) = self.loss.result();
            self.loss_state = state;
            self.limit(rate);
            return;
        }
        self.by_reports(reported, now);
    }

    /// The target before the loss-based estimate is ready.
    fn by_reports(&mut self, reported: Time, now: Time) {
        let mut rate = self.target;
        if now.since(reported) < REPORTS {
            let apart = DECREASE_INTERVAL + self.rtt;
            if self.share <= LOW_LOSS {
                let min_rate = self.history.front().map_or(self.target, |&(_, rate)| rate);
                rate = GROWTH * min_rate + GROWTH_OFFSET;
            } else if self.share > HIGH_LOSS
                && !self.decreased_since_report
                && self.decreased.is_none_or(|last| now.since(last) >= apart)
            {
                self.decreased = Some(now);
                self.decreased_since_report = true;
                rate = self.target * (1.0 - self.share / 2.0);
            }
        }
        self.limit(rate);
    }

    fn starting(&self, now: Time) -> bool {
        self.first_report.is_none_or(|first| now.since(first) < START_PHASE)
    }

    fn remember(&mut self, now: Time) {
        while self.history.front().is_some_and(|&(at, _)| now.since(at) + PRECISION > INCREASE_INTERVAL) {
            self.history.pop_front();
        }
        while self.history.back().is_some_and(|&(_, rate)| self.target <= rate) {
            self.history.pop_back();
        }
        self.history.push_back((now, self.target));
    }

    fn limit(&mut self, rate: f64) {
        self.target = rate.min(self.delay_based).min(self.max_bitrate).max(self.min_bitrate);
    }
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's send_side_bandwidth_estimation_unittest.cc, except those of REMB.

    use super::*;

    fn at(ms: u64) -> Time {
        Time((1000 + ms) * 1_000_000)
    }

    fn started(min_bitrate: f64, target: f64, max_bitrate: f64) -> SendSideBandwidthEstimation {
        let mut side = SendSideBandwidthEstimation::default();
        side.set_bounds(min_bitrate, max_bitrate);
        side.set_target(target);
        side
    }

    /// For two seconds the delay-based estimate counts at once; after that it only limits.
    #[test]
    fn the_start_follows_the_delay() {
        let mut side = started(100e3, 200e3, 1.5e6);
        side.report(0, 1, at(0));
        side.set_rtt(Span::from_millis(50));
        side.set_delay_based(1e6);
        side.update(at(0));
        assert_eq!(side.target(), 1e6);
        side.set_delay_based(1.5e6);
        side.update(at(2001));
        assert_eq!(side.target(), 1e6);
    }

    /// With half lost, the target falls by a quarter, once, and not again until the next report.
    #[test]
    fn one_report_lowers_it_once() {
        let mut side = started(100e3, 1e6, 1.5e6);
        side.set_rtt(Span::from_millis(50));
        side.report(50, 100, at(10_000));
        assert_eq!(side.target(), 750e3);
        side.update(at(11_000));
        assert_eq!(side.target(), 750e3);
        side.report(50, 100, at(11_100));
        assert_eq!(side.target(), 562.5e3);
        side.report(50, 100, at(11_200));
        assert_eq!(side.target(), 562.5e3, "300 ms and a round trip apart");
    }

    #[test]
    fn few_losses_let_it_grow_by_8_percent_of_the_least_in_a_second() {
        let mut side = started(100e3, 200e3, 1.5e6);
        side.report(1, 100, at(3000));
        assert_eq!(side.target(), 1.08 * 200e3 + 1e3);
        side.update(at(3100));
        assert_eq!(side.target(), 1.08 * 200e3 + 1e3);
        side.report(5, 100, at(4500));
        assert_eq!(side.target(), 1.08 * 200e3 + 1e3, "5 % are neither few nor many");
        side.report(0, 19, at(5000));
        assert_eq!(side.target(), 1.08 * 200e3 + 1e3, "19 packets tell nothing");
    }

    #[test]
    fn setting_it_ends_every_limit_but_the_bounds() {
        let mut side = started(10e3, 250e3, 1e6);
        side.set_delay_based(250e3);
        assert_eq!(side.target(), 250e3);
        side.set_target(500e3);
        assert_eq!(side.target(), 500e3);
        side.set_target(2e6);
        assert_eq!(side.target(), 1e6);
    }

    /// By hand: after 3 s without feedback on sent packets, the target falls by a fifth each second.
    #[test]
    fn a_round_trip_of_seconds_lowers_it() {
        let mut side = started(5e3, 1e6, 1e9);
        side.sent(at(0));
        for (ms, target) in [(3000, 1e6), (3010, 800e3), (3900, 800e3), (4010, 640e3)] {
            side.sent(at(ms));
            side.update(at(ms));
            assert_eq!(side.target(), target, "{ms}");
        }
        for i in 0..40 {
            side.sent(at(5010 + 1000 * i));
            side.update(at(5010 + 1000 * i));
        }
        assert_eq!(side.target(), 5e3);
        assert!(side.rtt_above_limit());
        side.on_feedback(at(60_000), Span::from_millis(100));
        assert!(!side.rtt_above_limit());
        for (ms, above) in [(5000, true), (1000, false)] {
            let mut side = started(10e3, 300e3, 1e7);
            side.on_feedback(at(0), Span::from_millis(ms));
            assert_eq!(side.rtt_above_limit(), above);
        }
    }
}
