//! When to probe, and at what rates.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/probe_controller.cc. Left out: repeated initial probes, which an
//! application must ask for, with the 100 ms that theirs last; probes that follow a network state estimate, of which
//! libwebrtc has none; what field trials switch on.

use paceline_units::{Span, Time};

/// The first probes, as multiples of the start rate.
const FIRST_EXPONENTIAL_PROBE_SCALES: [f64; 2] = [3.0, 6.0];
/// While a probe brings more than this share of its rate, the next is so many times its result.
const FURTHER_PROBE_THRESHOLD: f64 = 0.7;
const FURTHER_EXPONENTIAL_PROBE_SCALE: f64 = 2.0;
/// A probe's result is awaited for so long: kMaxWaitingTimeForProbingResult.
const MAX_WAITING_TIME_FOR_PROBING_RESULT: Span = Span::from_secs(1);
/// While the application sends less than it may: how often, at what multiple of the estimate.
const ALR_PROBING_INTERVAL: Span = Span::from_secs(5);
const ALR_PROBE_SCALE: f64 = 2.0;
/// A fall to less than this share is large: kBitrateDropThreshold. What was before is probed, times the second, if the queue
/// has drained within the third, if that is so much above the estimate, and not too often.
const BITRATE_DROP_THRESHOLD: f64 = 0.66;
const PROBE_FRACTION_AFTER_DROP: f64 = 0.85;
const BITRATE_DROP_TIMEOUT: Span = Span::from_secs(5);
const PROBE_UNCERTAINTY: f64 = 0.05;
const MIN_TIME_BETWEEN_ALR_PROBES: Span = Span::from_secs(5);
/// And if the application sends less than it may or did so within this: kAlrEndedTimeout.
const ALR_ENDED_TIMEOUT: Span = Span::from_secs(3);
/// While losses limit the estimate and it grows, a probe has at most this multiple of it.
const LOSS_LIMITED_PROBE_SCALE: f64 = 1.5;
/// At most so many times what the streams can use.
const MAX_ALLOCATION_FACTOR: f64 = 2.0;
/// At most this, if no maximum is given: kDefaultMaxProbingBitrate.
const DEFAULT_MAX_PROBING_BITRATE: f64 = 5e6;
/// What the streams can use is probed at once and twice that, but no more than so many times the estimate.
const ALLOCATION: [f64; 2] = [1.0, 2.0];
const ALLOCATION_LIMIT: f64 = 2.0;
/// A probe has so many packets at least, and lasts so long.
const MIN_PROBE_PACKETS_SENT: u32 = 5;
const MIN_PROBE_DURATION: f64 = 0.015;

/// What limits the estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BandwidthLimitedCause {
    /// Losses; it grows.
    LossGrowing,
    /// Losses.
    Loss,
    /// The delay, which does not grow or shrink.
    Delay,
    /// The delay, which does.
    Queue,
    /// A round-trip time of seconds.
    Rtt,
}

/// A cluster of packets to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Order {
    /// Its number, from 1.
    pub id: u32,
    /// In bits a second.
    pub rate: f64,
    /// Bytes at least.
    pub bytes: f64,
    /// Packets at least.
    pub packets: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Init,
    /// Probes are under way that others may follow.
    WaitingForProbingResult,
    ProbingComplete,
}

/// The state.
#[derive(Clone, Debug)]
pub struct ProbeController {
    state: State,
    available: bool,
    start: f64,
    max_bitrate: f64,
    /// What the streams can use; zero: unknown.
    allocated: f64,
    estimate: f64,
    limit: BandwidthLimitedCause,
    /// A result above this is followed by another probe.
    further_above: f64,
    time_last_probing_initiated: Option<Time>,
    /// Whether probes are sent while the application sends less than it may, since when it does, when it last ceased to.
    periodic: bool,
    alr: Option<Time>,
    alr_ended: Option<Time>,
    /// The last large drop, and what was before it.
    drop: (Time, f64),
    after_drop: Time,
    last: u32,
}

impl Default for ProbeController {
    fn default() -> ProbeController {
        ProbeController {
            state: State::Init,
            available: false,
            start: 0.0,
            max_bitrate: DEFAULT_MAX_PROBING_BITRATE,
            allocated: 0.0,
            estimate: 0.0,
            limit: BandwidthLimitedCause::Delay,
            further_above: f64::INFINITY,
            time_last_probing_initiated: None,
            periodic: false,
            alr: None,
            alr_ended: None,
            drop: (Time::ZERO, 0.0),
            after_drop: Time::ZERO,
            last: 0,
        }
    }
}

impl ProbeController {
    /// Whether to probe while the application sends less than it may: libwebrtc does so for screen content.
    pub fn set_periodic(&mut self, on: bool) {
        self.periodic = on;
    }

    /// Since when the application sends less than it may.
    pub fn set_alr(&mut self, since: Option<Time>) {
        self.alr = since;
    }

    /// It ceased to.
    pub fn alr_ended(&mut self, now: Time) {
        self.alr_ended = Some(now);
    }

    /// The rates of the session; the start is zero if it is not given, the maximum infinite.
    pub fn set_rates(&mut self, min_bitrate: f64, start: f64, max_bitrate: f64, now: Time) -> Vec<Order> {
        if start > 0.0 {
            self.start = start;
            self.estimate = start;
        } else if self.start == 0.0 {
            self.start = min_bitrate;
        }
        let before = self.max_bitrate;
        self.max_bitrate = if max_bitrate.is_finite() { max_bitrate } else { DEFAULT_MAX_PROBING_BITRATE };
        match self.state {
            State::Init if self.available => self.first(now),
            State::ProbingComplete
                if self.estimate > 0.0 && before < self.max_bitrate && self.estimate < self.max_bitrate =>
            {
                self.initiate(now, &[self.max_bitrate], false)
            }
            _ => Vec::new(),
        }
    }

    /// Packets can be sent, or no longer.
    pub fn set_available(&mut self, available: bool, now: Time) -> Vec<Order> {
        self.available = available;
        if !available && self.state == State::WaitingForProbingResult {
            self.complete();
        }
        if available && self.state == State::Init && self.start > 0.0 { self.first(now) } else { Vec::new() }
    }

    /// What the streams can use at most.
    pub fn set_allocated(&mut self, allocated: f64, now: Time) -> Vec<Order> {
        let before = std::mem::replace(&mut self.allocated, allocated);
        let idle = self.state == State::ProbingComplete && self.alr.is_some();
        if !idle || allocated == before || self.estimate >= self.max_bitrate.min(allocated) {
            return Vec::new();
        }
        let limit = ALLOCATION_LIMIT * self.estimate;
        let [first, second] = ALLOCATION.map(|scale| scale * allocated);
        if limit < first {
            return self.initiate(now, &[limit], true);
        }
        let further = limit < second;
        let second = second.min(limit);
        if second > first {
            self.initiate(now, &[first, second], further)
        } else {
            self.initiate(now, &[first], further)
        }
    }

    fn first(&mut self, now: Time) -> Vec<Order> {
        self.initiate(now, &FIRST_EXPONENTIAL_PROBE_SCALES.map(|scale| scale * self.start), true)
    }

    /// The estimate, and what limits it.
    pub fn set_estimate(&mut self, estimate: f64, limit: BandwidthLimitedCause, now: Time) -> Vec<Order> {
        self.limit = limit;
        if estimate < BITRATE_DROP_THRESHOLD * self.estimate {
            self.drop = (now, self.estimate);
        }
        self.estimate = estimate;
        if self.state == State::WaitingForProbingResult && estimate > self.further_above {
            return self.initiate(now, &[FURTHER_EXPONENTIAL_PROBE_SCALE * estimate], true);
        }
        Vec::new()
    }

    /// The queue has drained after an overuse: whether what was there before is there again. If it is not, another flow or
    /// another path has taken it.
    pub fn recovered(&mut self, now: Time) -> Vec<Order> {
        let idle = self.alr.is_some() || self.alr_ended.is_some_and(|ended| now.since(ended) < ALR_ENDED_TIMEOUT);
        if !idle || self.state != State::ProbingComplete {
            return Vec::new();
        }
        let probe = PROBE_FRACTION_AFTER_DROP * self.drop.1;
        let worth = (1.0 - PROBE_UNCERTAINTY) * probe > self.estimate;
        if worth
            && now.since(self.drop.0) < BITRATE_DROP_TIMEOUT
            && now.since(self.after_drop) > MIN_TIME_BETWEEN_ALR_PROBES
        {
            self.after_drop = now;
            return self.initiate(now, &[probe], false);
        }
        Vec::new()
    }

    /// Time has passed.
    pub fn process(&mut self, now: Time) -> Vec<Order> {
        let initiated = self.time_last_probing_initiated.unwrap_or(Time::ZERO);
        if self.state == State::WaitingForProbingResult && now.since(initiated) > MAX_WAITING_TIME_FOR_PROBING_RESULT {
            self.complete();
        }
        if self.estimate == 0.0 || self.state != State::ProbingComplete {
            return Vec::new();
        }
        match self.alr {
            Some(since) if self.periodic && now >= since.max(initiated) + ALR_PROBING_INTERVAL => {
                self.initiate(now, &[ALR_PROBE_SCALE * self.estimate], true)
            }
            _ => Vec::new(),
        }
    }

    fn complete(&mut self) {
        self.state = State::ProbingComplete;
        self.further_above = f64::INFINITY;
    }

    fn initiate(&mut self, now: Time, rates: &[f64], further: bool) -> Vec<Order> {
        let mut max_bitrate = if self.allocated > 0.0 {
            self.max_bitrate.min(MAX_ALLOCATION_FACTOR * self.allocated)
        } else {
            self.max_bitrate
        };
        match self.limit {
            BandwidthLimitedCause::Rtt | BandwidthLimitedCause::Queue | BandwidthLimitedCause::Loss => {
                return Vec::new();
            }
            BandwidthLimitedCause::LossGrowing => {
                max_bitrate = max_bitrate.min(LOSS_LIMITED_PROBE_SCALE * self.estimate)
            }
            BandwidthLimitedCause::Delay => {}
        }
        let further = further && rates.iter().all(|&rate| rate < max_bitrate);
        let orders: Vec<Order> = rates.iter().map(|rate| self.order(rate.min(max_bitrate))).collect();
        self.time_last_probing_initiated = Some(now);
        if let (true, Some(last)) = (further, orders.last()) {
            self.state = State::WaitingForProbingResult;
            self.further_above = FURTHER_PROBE_THRESHOLD * last.rate;
        } else {
            self.complete();
        }
        orders
    }

    fn order(&mut self, rate: f64) -> Order {
        self.last += 1;
        Order { id: self.last, rate, bytes: rate * MIN_PROBE_DURATION / 8.0, packets: MIN_PROBE_PACKETS_SENT }
    }
}

#[cfg(test)]
mod tests;
