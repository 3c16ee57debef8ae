//! When to probe, and at which rates.
//!
//! Source: libwebrtc, modules/congestion_controller/goog_cc/probe_controller.cc. Left out: repeated initial probes,
//! which an application must request, with their duration of 100 ms; probes that follow a network state estimate, of
//! which libwebrtc has none; what field trials enable.

use paceline_units::{Span, Time};

/// The first probes, as multiples of the start rate.
const FIRST_EXPONENTIAL_PROBE_SCALES: [f64; 2] = [3.0, 6.0];
/// If a probe's result exceeds this share of its rate, the next probe is at this multiple of the result.
const FURTHER_PROBE_THRESHOLD: f64 = 0.7;
const FURTHER_EXPONENTIAL_PROBE_SCALE: f64 = 2.0;
/// Maximum wait for a probe's result: kMaxWaitingTimeForProbingResult.
const MAX_WAITING_TIME_FOR_PROBING_RESULT: Span = Span::from_secs(1);
/// Probes while the application sends less than allowed: their interval, and their multiple of the estimate.
const ALR_PROBING_INTERVAL: Span = Span::from_secs(5);
const ALR_PROBE_SCALE: f64 = 2.0;
/// A drop below this share is large: kBitrateDropThreshold. After it, PROBE_FRACTION_AFTER_DROP of the rate before is
/// probed once the queue has drained, if that happens within BITRATE_DROP_TIMEOUT, if the probe exceeds the estimate by
/// PROBE_UNCERTAINTY, and if the last such probe is at least MIN_TIME_BETWEEN_ALR_PROBES ago.
const BITRATE_DROP_THRESHOLD: f64 = 0.66;
const PROBE_FRACTION_AFTER_DROP: f64 = 0.85;
const BITRATE_DROP_TIMEOUT: Span = Span::from_secs(5);
const PROBE_UNCERTAINTY: f64 = 0.05;
const MIN_TIME_BETWEEN_ALR_PROBES: Span = Span::from_secs(5);
/// This also requires that the application sends less than allowed, or did so within this time: kAlrEndedTimeout.
const ALR_ENDED_TIMEOUT: Span = Span::from_secs(3);
/// Maximum multiple of the estimate for a probe while losses limit the estimate and it grows.
const LOSS_LIMITED_PROBE_SCALE: f64 = 1.5;
/// Maximum multiple of the rate that the streams can use.
const MAX_ALLOCATION_FACTOR: f64 = 2.0;
/// Maximum probe rate if the session has no maximum: kDefaultMaxProbingBitrate.
const DEFAULT_MAX_PROBING_BITRATE: f64 = 5e6;
/// A new allocated rate is probed at these multiples, but at most at this multiple of the estimate.
const ALLOCATION: [f64; 2] = [1.0, 2.0];
const ALLOCATION_LIMIT: f64 = 2.0;
/// Minimum packets and duration of a probe.
const MIN_PROBE_PACKETS_SENT: u32 = 5;
const MIN_PROBE_DURATION: f64 = 0.015;

/// What limits the estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BandwidthLimitedCause {
    /// Losses, while the estimate grows.
    LossGrowing,
    /// Losses.
    Loss,
    /// The delay, which is stable.
    Delay,
    /// The delay, which grows or shrinks.
    Queue,
    /// A round-trip time of seconds.
    Rtt,
}

/// A probe cluster to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProbeClusterConfig {
    /// Its number, from 1.
    pub id: u32,
    /// Its rate in bits per second.
    pub rate: f64,
    /// Its minimum number of bytes.
    pub bytes: f64,
    /// Its minimum number of packets.
    pub packets: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Init,
    /// Probes are in progress whose results may lead to further ones.
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
    /// The rate that the streams can use; zero: unknown.
    allocated: f64,
    estimate: f64,
    limit: BandwidthLimitedCause,
    /// A result above this leads to another probe.
    further_above: f64,
    time_last_probing_initiated: Option<Time>,
    /// Whether to probe while the application sends less than allowed; since when it does so; when that last ended.
    periodic: bool,
    alr: Option<Time>,
    alr_ended: Option<Time>,
    /// The last large drop, and the rate before it.
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
    /// Whether to probe while the application sends less than allowed: libwebrtc does so for screen content.
    pub fn set_periodic(&mut self, on: bool) {
        self.periodic = on;
    }

    /// Sets since when the application has sent less than allowed.
    pub fn set_alr(&mut self, since: Option<Time>) {
        self.alr = since;
    }

    /// The application no longer sends less than allowed.
    pub fn alr_ended(&mut self, now: Time) {
        self.alr_ended = Some(now);
    }

    /// Sets the session's rates; the start is zero if not given, the maximum infinite.
    pub fn set_rates(&mut self, min_bitrate: f64, start: f64, max_bitrate: f64, now: Time) -> Vec<ProbeClusterConfig> {
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

    /// Sets whether packets can be sent.
    pub fn set_available(&mut self, available: bool, now: Time) -> Vec<ProbeClusterConfig> {
        self.available = available;
        if !available && self.state == State::WaitingForProbingResult {
            self.complete();
        }
        if available && self.state == State::Init && self.start > 0.0 { self.first(now) } else { Vec::new() }
    }

    /// Sets the maximum rate that the streams can use.
    pub fn set_allocated(&mut self, allocated: f64, now: Time) -> Vec<ProbeClusterConfig> {
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

    fn first(&mut self, now: Time) -> Vec<ProbeClusterConfig> {
        self.initiate(now, &FIRST_EXPONENTIAL_PROBE_SCALES.map(|scale| scale * self.start), true)
    }

    /// Sets the estimate, and what limits it.
    pub fn set_estimate(&mut self, estimate: f64, limit: BandwidthLimitedCause, now: Time) -> Vec<ProbeClusterConfig> {
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

    /// The queue has drained after an overuse: probes whether the rate before the drop is available again. If it is
    /// not, another flow or a change of path has taken it.
    pub fn recovered(&mut self, now: Time) -> Vec<ProbeClusterConfig> {
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

    /// Periodic processing: ends a wait that is too long, and starts periodic probes.
    pub fn process(&mut self, now: Time) -> Vec<ProbeClusterConfig> {
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

    fn initiate(&mut self, now: Time, rates: &[f64], further: bool) -> Vec<ProbeClusterConfig> {
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
        let clusters: Vec<ProbeClusterConfig> =
            rates.iter().map(|rate| self.create_probe_cluster_config(rate.min(max_bitrate))).collect();
        self.time_last_probing_initiated = Some(now);
        if let (true, Some(last)) = (further, clusters.last()) {
            self.state = State::WaitingForProbingResult;
            self.further_above = FURTHER_PROBE_THRESHOLD * last.rate;
        } else {
            self.complete();
        }
        clusters
    }

    fn create_probe_cluster_config(&mut self, rate: f64) -> ProbeClusterConfig {
        self.last += 1;
        ProbeClusterConfig {
            id: self.last,
            rate,
            bytes: rate * MIN_PROBE_DURATION / 8.0,
            packets: MIN_PROBE_PACKETS_SENT,
        }
    }
}

#[cfg(test)]
mod tests;
