//! The delay-based rate: it grows while the delay is stable, and falls below the throughput when the delay grows.
//!
//! Source: libwebrtc, modules/remote_bitrate_estimator/aimd_rate_control.cc; draft-ietf-rmcat-gcc-02 section 5.5. Left
//! out: everything that needs a network state estimate (libwebrtc has none), the period between overuses (reported to
//! encoders, used in no decision), and what field trials enable. Rates are in bits per second, times in seconds.

use super::MIN_BITRATE;
use super::link_capacity::LinkCapacityEstimator;
use super::trendline::Usage;
use paceline_units::{Span, Time};

/// Factor of the throughput on overuse: kDefaultBackoffFactor.
const BACKOFF_FACTOR: f64 = 0.85;
/// Subtracted from the reduced rate too, if that is above this.
const BACKOFF_OFFSET: f64 = 5e3;
/// Growth factor per second while the bottleneck's rate is unknown, and minimum growth per step.
const GROWTH: f64 = 1.08;
const MIN_MULTIPLICATIVE_INCREASE: f64 = 1e3;
/// Minimum growth per second near the bottleneck's rate.
const MIN_ADDITIVE_INCREASE: f64 = 4e3;
/// Frames per second and largest packet of the stream, which the growth near that rate assumes.
const FRAMES: f64 = 30.0;
const PACKET: f64 = 1200.0 * 8.0;
/// What the detector adds to the response time.
const DETECTION: f64 = 0.1;
/// The rate grows at most to this multiple of the throughput, plus this offset.
const LIMIT: f64 = 1.5;
const LIMIT_OFFSET: f64 = 10e3;
/// The round-trip time before the first sample: kDefaultRtt.
const FIRST_RTT: f64 = 0.2;
/// Bounds of the time between reductions, which otherwise is a round trip.
const APART: (f64, f64) = (0.010, 0.200);
/// Without a start rate, the rate becomes the throughput this long after its first measurement: kInitializationTime.
const INITIALIZATION_TIME: Span = Span::from_secs(5);
/// The rate while none is known.
const UNKNOWN: f64 = 30e6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// The delay-based rate controller.
#[derive(Clone, Debug)]
pub struct AimdRateControl {
    min_bitrate: f64,
    rate: f64,
    known: bool,
    throughput: f64,
    first_throughput: Option<Time>,
    capacity: LinkCapacityEstimator,
    state: State,
    changed: Option<Time>,
    rtt: f64,
}

impl Default for AimdRateControl {
    fn default() -> AimdRateControl {
        AimdRateControl {
            min_bitrate: MIN_BITRATE,
            rate: UNKNOWN,
            known: false,
            throughput: UNKNOWN,
            first_throughput: None,
            capacity: LinkCapacityEstimator::default(),
            state: State::Hold,
            changed: None,
            rtt: FIRST_RTT,
        }
    }
}

impl AimdRateControl {
    /// The rate; `None` until one has been set or measured.
    pub fn estimate(&self) -> Option<f64> {
        self.known.then_some(self.rate)
    }

    /// Sets the start rate of the session.
    pub fn start(&mut self, rate: f64) {
        self.rate = rate;
        self.throughput = rate;
        self.known = true;
    }

    /// Sets the minimum rate.
    pub fn set_min_bitrate(&mut self, min_bitrate: f64) {
        self.min_bitrate = min_bitrate;
        self.rate = self.rate.max(min_bitrate);
    }

    /// Sets the round-trip time.
    pub fn set_rtt(&mut self, rtt: f64) {
        self.rtt = rtt;
    }

    /// Sets a rate measured otherwise: by a probe.
    pub fn set(&mut self, rate: f64, now: Time) {
        self.known = true;
        self.rate = rate.max(self.min_bitrate);
        self.changed = Some(now);
    }

    /// Sets the rate from a flow state exchange. It does not count as a change after which a reduction would have to
    /// wait.
    pub fn share(&mut self, rate: f64) {
        self.known = true;
        self.rate = rate.max(self.min_bitrate);
    }

    /// Whether the rate may be reduced again: the last change has had time to take effect, or the throughput is below
    /// half the rate.
    pub fn may_reduce(&self, throughput: f64, now: Time) -> bool {
        let apart = self.rtt.clamp(APART.0, APART.1);
        self.changed.is_none_or(|changed| now.since(changed).as_secs_f64() >= apart)
            || self.known && throughput < 0.5 * self.rate
    }

    /// Handles the detector's state and the throughput, if known; returns the new rate.
    pub fn update(&mut self, usage: Usage, throughput: Option<f64>, now: Time) -> f64 {
        if let (false, Some(measured)) = (self.known, throughput) {
            let first = *self.first_throughput.get_or_insert(now);
            if now.since(first) > INITIALIZATION_TIME {
                self.rate = measured;
                self.known = true;
            }
        }
        self.throughput = throughput.unwrap_or(self.throughput);
        // an overuse sets a rate even if none was known
        if self.known || usage == Usage::Over {
            self.turn(usage, now);
            let rate = match self.state {
                State::Hold => self.rate,
                State::Increase => self.increased(now),
                State::Decrease => self.decreased(now),
            };
            self.rate = rate.max(self.min_bitrate);
        }
        self.rate
    }

    fn turn(&mut self, usage: Usage, now: Time) {
        match usage {
            Usage::Normal if self.state == State::Hold => {
                self.changed = Some(now);
                self.state = State::Increase;
            }
            Usage::Normal => {}
            Usage::Over => self.state = State::Decrease,
            Usage::Under => self.state = State::Hold,
        }
    }

    fn increased(&mut self, now: Time) -> f64 {
        if self.throughput > self.capacity.upper() {
            self.capacity.forget();
        }
        let since = self.changed.map_or(1.0, |changed| now.since(changed).as_secs_f64());
        self.changed = Some(now);
        let limit = LIMIT * self.throughput + LIMIT_OFFSET;
        if self.rate >= limit {
            return self.rate;
        }
        let growth = if self.capacity.estimate().is_some() {
            self.slope() * since
        } else {
            (self.rate * (libm::pow(GROWTH, since.min(1.0)) - 1.0)).max(MIN_MULTIPLICATIVE_INCREASE)
        };
        (self.rate + growth).min(limit)
    }

    /// Growth per second near the bottleneck's rate: half a packet per response time.
    fn slope(&self) -> f64 {
        let frame = self.rate / FRAMES;
        let packet = frame / (frame / PACKET).ceil();
        (packet / (2.0 * (self.rtt + DETECTION))).max(MIN_ADDITIVE_INCREASE)
    }

    fn decreased(&mut self, now: Time) -> f64 {
        let mut lower = BACKOFF_FACTOR * self.throughput;
        if lower > BACKOFF_OFFSET {
            lower -= BACKOFF_OFFSET;
        }
        if lower > self.rate {
            lower = self.capacity.estimate().map_or(lower, |capacity| BACKOFF_FACTOR * capacity);
        }
        if self.throughput < self.capacity.lower() {
            self.capacity.forget();
        }
        self.known = true;
        self.capacity.overuse(self.throughput);
        // until the queue has drained
        self.state = State::Hold;
        self.changed = Some(now);
        lower.min(self.rate)
    }
}

#[cfg(test)]
mod tests {
    //! The cases and numbers of libwebrtc's aimd_rate_control_unittest.cc.

    use super::*;

    const START: Time = Time(123_456_000_000);

    fn at(ms: u64) -> Time {
        START + Span::from_millis(ms)
    }

    fn set(rate: f64) -> AimdRateControl {
        let mut aimd = AimdRateControl::default();
        aimd.set(rate, START);
        aimd
    }

    #[test]
    fn growth_near_the_capacity_is_a_packet_in_two_response_times() {
        // (rate, round-trip time if known, growth in bit/s per second)
        for (rate, rtt, want) in
            [(30e3, None, 4_000.0), (90e3, None, 5_000.0), (60e3, Some(0.1), 5_000.0), (216e3, None, 12_000.0)]
        {
            let mut aimd = set(rate);
            aimd.set_rtt(rtt.unwrap_or(FIRST_RTT));
            assert!((aimd.slope() - want).abs() < 1e-6, "{rate}: {}", aimd.slope());
        }
        let mut aimd = set(300e3);
        aimd.update(Usage::Over, Some(300e3), START);
        assert!((aimd.slope() - 14_000.0).abs() <= 1_000.0);
    }

    /// 20 s at a throughput of 10 kbit/s: the rate grows to 1.5 times that plus 10 kbit/s, stays there while the
    /// throughput is lower, and does not fall.
    #[test]
    fn growth_ends_where_the_throughput_says() {
        let mut aimd = set(10e3);
        for i in 0..200 {
            aimd.update(Usage::Normal, Some(10e3), at(100 * i));
        }
        assert_eq!(aimd.estimate(), Some(25e3));
        assert_eq!(aimd.update(Usage::Normal, Some(5e3), at(20_000)), 25e3);
    }

    #[test]
    fn growth_ends_there_although_the_throughput_is_not_known_any_more() {
        let mut aimd = AimdRateControl::default();
        aimd.update(Usage::Normal, Some(123e3), START);
        assert_eq!(aimd.estimate(), None);
        aimd.update(Usage::Normal, Some(123e3), at(5001));
        assert!(aimd.estimate().is_some(), "the throughput, 5 s after the first");
        for i in 0..100 {
            aimd.update(Usage::Normal, None, at(5001 + 100 * i));
        }
        let rate = aimd.estimate().unwrap();
        assert!(rate > 123e3 && rate <= 1.5 * 123e3 + 10e3, "{rate}");
    }

    /// From 264 kbit/s to 0.85 of the throughput minus 5 kbit/s: 216 kbit/s if the throughput was 260.
    #[test]
    fn an_overuse_takes_the_rate_below_the_throughput() {
        let mut aimd = set(264e3);
        let throughput = (216e3 + 5e3) / 0.85;
        let rate = aimd.update(Usage::Over, Some(throughput), at(100));
        assert!((rate - 216e3).abs() < 1e-6, "{rate}");
        // then it holds, grows by the slope, and holds while the queue drains
        assert_eq!(aimd.update(Usage::Under, Some(throughput), at(200)), rate);
        assert_eq!(aimd.update(Usage::Normal, Some(throughput), at(300)), rate, "the time begins to count");
        let more = aimd.update(Usage::Normal, Some(throughput), at(800));
        assert!((more - rate - 6_000.0).abs() < 1e-6, "12 kbit/s each second: {more}");
    }

    #[test]
    fn growth_without_a_capacity_is_8_percent_a_second() {
        let mut aimd = set(200e3);
        aimd.update(Usage::Normal, Some(200e3), START);
        let rate = aimd.update(Usage::Normal, Some(200e3), at(1000));
        assert!((rate - 1.08 * 201e3).abs() < 1.0, "1 kbit/s at once, then 8 %: {rate}");
        let rate = aimd.update(Usage::Normal, Some(200e3), at(9000));
        assert!((rate - 1.08 * 1.08 * 201e3).abs() < 1.0, "a pause counts as a second: {rate}");
    }

    #[test]
    fn a_throughput_far_from_the_capacity_forgets_it() {
        let mut aimd = set(300e3);
        aimd.update(Usage::Over, Some(300e3), START);
        assert!(aimd.capacity.estimate().is_some());
        aimd.update(Usage::Normal, Some(400e3), at(100));
        assert_eq!(aimd.capacity.estimate(), None);
    }

    #[test]
    fn an_overuse_never_raises_the_rate() {
        let mut aimd = set(100e3);
        assert_eq!(aimd.update(Usage::Over, Some(1e6), at(500)), 100e3);
        // the link capacity, which that overuse has set to 1 Mbit/s, does not raise it either
        assert_eq!(aimd.update(Usage::Over, Some(1e6), at(1000)), 100e3);
    }

    #[test]
    fn reductions_are_a_round_trip_apart_but_for_a_throughput_of_less_than_half() {
        let mut aimd = set(300e3);
        assert!(!aimd.may_reduce(200e3, at(199)) && aimd.may_reduce(200e3, at(200)));
        assert!(aimd.may_reduce(149e3, at(1)));
        aimd.set_rtt(0.001);
        assert!(!aimd.may_reduce(200e3, at(9)) && aimd.may_reduce(200e3, at(10)), "10 ms at least");
        aimd.set_rtt(5.0);
        assert!(aimd.may_reduce(200e3, at(200)), "200 ms at most");
    }

    #[test]
    fn a_probe_raises_it_at_once_and_the_least_holds() {
        let mut aimd = set(123e3);
        aimd.set(246e3, START);
        assert_eq!(aimd.estimate(), Some(246e3));
        aimd.set_min_bitrate(30e3);
        aimd.set(10e3, START);
        assert_eq!(aimd.estimate(), Some(30e3));
    }
}
