//! The loss-based estimate: of several candidate rates, the one that explains the observed losses best.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/loss_based_bwe_v2.cc, with its defaults of January 2026. A
//! channel has an inherent loss p and a rate b: when sending at a rate s above b, 1 - b/s is lost in addition. The
//! likelihood of the last observations, with a preference for high rates while losses are rare, decides between
//! candidates; for each, p takes one Newton step. Left out: packets reported lost and received later, which do not
//! occur here; smoothing of the sending rate, a bound that grows with time, and a candidate at the upper bound, which
//! are off there.

mod observations;

use super::{MIN_BITRATE, PacketResult};
use observations::{Observations, lower, upper};
use paceline_units::{Span, Time};

/// How long the estimate is held after losses have lowered it: at first, and at most.
const FIRST_HOLD: Span = Span::from_millis(300);
const MAX_HOLD: Span = Span::from_secs(60);
/// Minimum distance of probabilities from 0 and 1.
const EDGE: f64 = 1e-6;

/// Configuration (WebRTC-Bwe-LossBasedBweV2), as far as tests or this controller change it; rates in bits per second.
#[derive(Clone, Debug)]
pub struct Settings {
    /// CandidateFactors: multiples of the estimate to try.
    pub candidates: Vec<f64>,
    /// HigherBwBiasFactor: the weight of the rate in kbit/s.
    pub bias: f64,
    /// HigherLogBwBiasFactor: the weight of its logarithm.
    pub log_bias: f64,
    /// LossThresholdOfHighBandwidthPreference: with more losses than this, low rates are preferred.
    pub preference: f64,
    /// BandwidthPreferenceSmoothingFactor.
    pub preference_smoothing: f64,
    /// InherentLossLowerBound: the minimum of p.
    pub inherent_loss_lower_bound: f64,
    /// InherentLossUpperBoundOffset: the maximum of p is this plus `inherent_balance` over b.
    pub inherent_offset: f64,
    /// InherentLossUpperBoundBwBalance.
    pub inherent_balance: f64,
    /// InitialInherentLossEstimate.
    pub inherent_first: f64,
    /// NewtonStepSize.
    pub step: f64,
    /// ObservationDurationLowerBound.
    pub observation: Span,
    /// ObservationWindowSize: observations kept.
    pub window: usize,
    /// MinNumObservations: observations needed.
    pub min_observations: usize,
    /// TemporalWeightFactor: factor of an observation's weight in the likelihood for each later observation.
    pub weight: f64,
    /// InstantUpperBoundTemporalWeightFactor: the same in the average loss.
    pub instant_weight: f64,
    /// InstantUpperBoundLossOffset: the rate is at most `instant_balance` over the average loss above this.
    pub instant_offset: f64,
    /// InstantUpperBoundBwBalance.
    pub instant_balance: f64,
    /// MedianSendingRateFactor: a loss while sending this many times faster than the median is not a spike.
    pub median_sending_rate_factor: f64,
    /// NotIncreaseIfInherentLossLessThanAverageLoss.
    pub not_increase_if_inherent_loss_less: bool,
    /// MaxIncreaseFactor, within a DelayedIncreaseWindow.
    pub increase: f64,
    /// DelayedIncreaseWindow.
    pub increase_window: Span,
    /// BwRampupUpperBoundFactor: while growing, the rate is at most this multiple of the acked bitrate.
    pub rampup_factor: f64,
    /// BwRampupUpperBoundInHoldFactor: this multiple instead, if the acked bitrate is less than `hold_threshold` times
    /// the held rate.
    pub rampup_factor_in_hold: f64,
    /// BwRampupUpperBoundHoldThreshold.
    pub hold_threshold: f64,
    /// HoldDurationFactor: each hold is this many times longer than the last.
    pub hold_factor: u64,
    /// LowerBoundByAckedRateFactor.
    pub acknowledged_lower_bound: f64,
    /// PaddingDuration: how long padding is sent while growing; zero: never.
    pub padding: Span,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            candidates: vec![1.02, 1.0, 0.95],
            bias: 0.0002,
            log_bias: 0.02,
            preference: 0.2,
            preference_smoothing: 0.002,
            inherent_loss_lower_bound: 1e-3,
            inherent_offset: 0.05,
            inherent_balance: 100e3,
            inherent_first: 0.01,
            step: 0.75,
            observation: Span::from_millis(250),
            window: 15,
            min_observations: 3,
            weight: 0.9,
            instant_weight: 0.9,
            instant_offset: 0.05,
            instant_balance: 100e3,
            median_sending_rate_factor: 2.0,
            not_increase_if_inherent_loss_less: true,
            increase: 1.3,
            increase_window: Span::from_millis(300),
            rampup_factor: 1.5,
            rampup_factor_in_hold: 1.2,
            hold_threshold: 1.3,
            hold_factor: 2,
            acknowledged_lower_bound: 1.0,
            padding: Span::from_secs(2),
        }
    }
}

/// What limits the estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The delay, not losses.
    Delay,
    /// Losses, which lower the estimate or keep it low.
    Falling,
    /// Losses; the estimate grows.
    Growing,
    /// Losses; the estimate grows, and padding tests it.
    Padding,
}

/// A channel model.
#[derive(Clone, Copy, Debug)]
struct Channel {
    inherent: f64,
    rate: f64,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    until: Option<Time>,
    length: Span,
    rate: f64,
}

const NO_HOLD: Hold = Hold { until: None, length: FIRST_HOLD, rate: f64::INFINITY };

/// The estimator.
#[derive(Clone, Debug)]
pub struct Loss {
    settings: Settings,
    observations: Observations,
    average_loss: f64,
    min_bitrate: f64,
    max_bitrate: f64,
    acknowledged: Option<f64>,
    delay_based: f64,
    best: Option<Channel>,
    result: (f64, State),
    hold: Hold,
    /// When padding ends, and the rate at which it began.
    padding: Option<(Time, f64)>,
    /// When a DelayedIncreaseWindow began, and the rate that limits growth in it.
    growing: Option<(Time, f64)>,
}

impl Default for Loss {
    fn default() -> Loss {
        Loss::new(Settings::default())
    }
}

impl Loss {
    /// An estimator without observations.
    #[must_use]
    pub fn new(settings: Settings) -> Loss {
        Loss {
            settings,
            observations: Observations::default(),
            average_loss: 0.0,
            min_bitrate: 1e3,
            max_bitrate: f64::INFINITY,
            acknowledged: None,
            delay_based: f64::INFINITY,
            best: None,
            result: (0.0, State::Delay),
            hold: NO_HOLD,
            padding: None,
            growing: None,
        }
    }

    /// Whether there are enough observations.
    pub fn ready(&self) -> bool {
        self.best.is_some() && self.observations.count >= self.settings.min_observations
    }

    /// The rate, infinite if nothing limits it, and what limits it.
    pub fn result(&self) -> (f64, State) {
        if self.ready() { self.result } else { (self.delay_based, State::Delay) }
    }

    /// The recent share of lost bytes, and the channel's inherent loss.
    pub fn reading(&self) -> (f64, f64) {
        let known = self.observations.count > 0;
        (if known { self.average_loss } else { f64::NAN }, self.best.map_or(f64::NAN, |best| best.inherent))
    }

    /// Sets the session's bounds.
    pub fn set_bounds(&mut self, min_bitrate: f64, max_bitrate: f64) {
        self.min_bitrate = min_bitrate;
        self.max_bitrate = max_bitrate;
    }

    /// Sets the acked bitrate.
    pub fn set_acknowledged(&mut self, rate: f64) {
        self.acknowledged = Some(rate);
    }

    /// Sets the rate from a flow state exchange; what limits it does not change.
    pub fn share(&mut self, rate: f64) {
        let Some(best) = &mut self.best else { return };
        let scale = rate / best.rate;
        best.rate = rate;
        self.result.0 = rate;
        self.hold.rate *= scale;
        self.padding = self.padding.map(|(until, began)| (until, began * scale));
        self.growing = self.growing.map(|(since, limit)| (since, limit * scale));
    }

    /// Handles feedback on these packets; `delay_based` is infinite without a delay-based estimate; `alr`: the
    /// application sends less than allowed.
    pub fn feedback(&mut self, results: &[PacketResult], delay_based: f64, alr: bool) {
        self.delay_based = delay_based;
        if !self.observations.feedback(results, &self.settings) {
            return;
        }
        self.average_loss = self.observations.average_loss(&self.settings);
        let Some(last) = self.observations.last else { return };
        let current = match self.best {
            Some(best) => best,
            None if delay_based.is_finite() => {
                self.result = (delay_based, State::Delay);
                Channel { inherent: self.settings.inherent_first, rate: delay_based }
            }
            None => return,
        };
        let mut best = self.likeliest(&current, alr, last);
        if self.settings.not_increase_if_inherent_loss_less && self.average_loss > best.inherent {
            best.rate = best.rate.min(current.rate);
        }
        if self.limited() {
            best.rate = self.bounded_growth(current.rate, best.rate, last);
        }
        let (lower_bound, upper_bound) = (
            lower(self.acknowledged, self.min_bitrate, &self.settings),
            upper(self.average_loss, self.max_bitrate, &self.settings),
        );
        let rate = best.rate.min(upper_bound).min(delay_based).max(lower_bound);
        let best = if rate < best.rate {
            Channel { inherent: 0.0, rate }
        } else {
            Channel { rate: best.rate.max(lower_bound), ..best }
        };
        self.best = Some(best);
        if self.holding(rate, last) {
            self.hold.rate = self.hold.rate.max(lower_bound);
            self.result.0 = self.hold.rate.min(rate);
            return;
        }
        self.result = (rate, self.decide(rate, last));
        if self.limited() && self.growing.is_none_or(|(since, _)| since + self.settings.increase_window < last) {
            self.growing = Some((last, MIN_BITRATE.max(best.rate * self.settings.increase)));
        }
    }

    fn limited(&self) -> bool {
        self.result.1 != State::Delay
    }

    /// Bounds growth by the limit of the current window, and by the acked bitrate.
    fn bounded_growth(&self, before: f64, mut rate: f64, last: Time) -> f64 {
        if let Some((since, limit)) = self.growing
            && since + self.settings.increase_window > last
        {
            rate = rate.min(limit);
        }
        let Some(acknowledged) = self.acknowledged.filter(|_| self.grows(before, rate)) else { return rate };
        let held = self.hold.rate.is_finite() && acknowledged < self.settings.hold_threshold * self.hold.rate;
        let factor = if held { self.settings.rampup_factor_in_hold } else { self.settings.rampup_factor };
        rate = rate.min(factor * acknowledged).max(before);
        // slightly more, so that it grows and padding is sent
        if self.result.1 == State::Falling && rate == before { rate + 1.0 } else { rate }
    }

    fn grows(&self, before: f64, after: f64) -> bool {
        let growing = matches!(self.result.1, State::Growing | State::Padding);
        self.limited() && (before < after || before == after && growing)
    }

    /// Whether the estimate is held after losses have lowered it, so that it does not return at once to a rate that was
    /// too high.
    fn holding(&self, rate: f64, last: Time) -> bool {
        self.result.1 == State::Falling && self.hold.until.is_some_and(|until| until > last) && rate < self.delay_based
    }

    /// The state that follows from `rate` after bounding.
    fn decide(&mut self, rate: f64, last: Time) -> State {
        let below = rate < self.delay_based && rate < self.max_bitrate;
        if below && self.grows(self.result.0, rate) && self.may_grow_on(rate, last) {
            return self.grow(rate, last);
        }
        self.padding = None;
        if !below {
            self.hold = NO_HOLD;
            return State::Delay;
        }
        if self.result.1 != State::Falling {
            let length = Span(self.hold.length.0.saturating_mul(self.settings.hold_factor)).min(MAX_HOLD);
            self.hold = Hold { until: Some(last + self.hold.length), length, rate };
        }
        State::Falling
    }

    fn grow(&mut self, rate: f64, last: Time) -> State {
        if self.settings.padding == Span::ZERO {
            return State::Growing;
        }
        if self.padding.is_none_or(|(_, began)| rate > began) {
            self.padding = Some((last + self.settings.padding, rate));
        }
        State::Padding
    }

    fn may_grow_on(&self, rate: f64, last: Time) -> bool {
        self.result.1 != State::Padding || self.padding.is_some_and(|(until, began)| until >= last || began < rate)
    }

    /// The channel with the greatest likelihood.
    fn likeliest(&self, current: &Channel, alr: bool, last: Time) -> Channel {
        let mut best = (*current, f64::MIN);
        for rate in self.candidates(current.rate, alr, last) {
            let inherent = self.newton(&Channel { rate, inherent: self.feasible(current.inherent, rate) });
            let channel = Channel { rate, inherent };
            let objective = self.objective(&channel);
            if objective > best.1 {
                best = (channel, objective);
            }
        }
        best.0
    }

    fn candidates(&self, current: f64, alr: bool, last: Time) -> Vec<f64> {
        let mut rates: Vec<f64> = self.settings.candidates.iter().map(|factor| factor * current).collect();
        let padded = self.padding.is_some_and(|(until, _)| until >= last);
        rates.extend(self.acknowledged.filter(|_| !alr || padded));
        rates.extend(Some(self.delay_based).filter(|&rate| rate.is_finite() && rate > current));
        let limit = self.growing.filter(|_| self.limited()).map_or(self.max_bitrate, |(_, limit)| limit);
        rates.iter().map(|rate| rate.min(limit.max(current))).collect()
    }

    fn feasible(&self, inherent: f64, rate: f64) -> f64 {
        let s = &self.settings;
        let max = if rate > 0.0 { (s.inherent_offset + s.inherent_balance / rate).min(1.0) } else { 1.0 };
        inherent.max(s.inherent_loss_lower_bound).min(max)
    }

    fn newton(&self, channel: &Channel) -> f64 {
        let (mut first, mut second) = (0.0, 0.0);
        for (weight, piece) in self.observations.weighted(self.settings.weight) {
            let p = loss_probability(channel, piece.rate);
            let (lost, received) = (piece.lost / 1e3, (piece.size - piece.lost) / 1e3);
            first += weight * (lost / p - received / (1.0 - p));
            second -= weight * (lost / (p * p) + received / ((1.0 - p) * (1.0 - p)));
        }
        if second >= 0.0 {
            return channel.inherent;
        }
        self.feasible(channel.inherent - self.settings.step * first / second, channel.rate)
    }

    fn objective(&self, channel: &Channel) -> f64 {
        let s = &self.settings;
        let off = s.preference - self.average_loss;
        let kbit = channel.rate / 1e3;
        let bias = (s.bias * kbit + s.log_bias * libm::log1p(kbit)) * off / (s.preference_smoothing + off.abs());
        let mut objective = 0.0;
        for (weight, piece) in self.observations.weighted(s.weight) {
            let p = loss_probability(channel, piece.rate);
            let (lost, received) = (piece.lost / 1e3, (piece.size - piece.lost) / 1e3);
            objective += weight * (lost * libm::log(p) + received * libm::log(1.0 - p));
            objective += weight * bias * piece.size / 1e3;
        }
        objective
    }
}

fn loss_probability(channel: &Channel, sent: f64) -> f64 {
    let p = channel.inherent;
    let over = if sent > channel.rate { (1.0 - p) * (sent - channel.rate) / sent } else { 0.0 };
    (p + over).clamp(EDGE, 1.0 - EDGE)
}

#[cfg(test)]
mod tests;
