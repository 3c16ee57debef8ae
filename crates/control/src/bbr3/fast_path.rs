//! The fast path: an acknowledgement that ends no round, exceeds no filter's maximum and reaches no deadline. Most of
//! the draft's steps then do nothing. The bounds that they compare with are computed whenever the state changes, which
//! leaves only a few sums. A test compares it with the full path.

use super::{Bbr3, EXTRA_ACKED_FILTER_LEN, MIN_RTT_FILTER_LEN, PROBE_RTT_INTERVAL, State};
use crate::RateSample;
use crate::delivery::{float, greater, lesser, seconds};
use paceline_units::{Span, Time};

/// The bounds within which a sample takes the fast path. No step of such a sample changes them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct FastPath {
    /// The first deadline, before which a sample must arrive; zero: no sample takes the fast path.
    before: Time,
    /// The path's minimum round-trip time, which a sample must not be below.
    min_rtt: Span,
    /// Limits of bytes in flight, exclusive: at `cruise_at` it would cruise, at `down_at` go down.
    cruise_at: f64,
    down_at: f64,
    /// The window from which on the long-term bound limits it while probing.
    probed: f64,
    /// Aggregation below this does not change its filter.
    extra_below: f64,
    /// The maximum window.
    max_cwnd: f64,
}

impl FastPath {
    /// No sample takes the fast path.
    pub(super) const NEVER: FastPath = FastPath {
        before: Time::ZERO,
        min_rtt: Span::ZERO,
        cruise_at: f64::NEG_INFINITY,
        down_at: f64::INFINITY,
        probed: f64::INFINITY,
        extra_below: f64::NEG_INFINITY,
        max_cwnd: 0.0,
    };
}

impl Bbr3 {
    /// Computes the bounds for the next sample after the full path has run.
    pub(super) fn update_fast_path(&mut self) {
        self.fast_path = self.fast_path_bounds().unwrap_or(FastPath::NEVER);
    }

    fn fast_path_bounds(&self) -> Option<FastPath> {
        let mut usual = FastPath::NEVER;
        let mut last = (self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL).min(self.min_rtt_stamp + MIN_RTT_FILTER_LEN);
        match self.state {
            State::ProbeBwDown | State::ProbeBwCruise => {
                if self.rounds_reach_reno_s() {
                    return None;
                }
                last = last.min(self.cycle_stamp + self.bw_probe_wait);
                if self.state == State::ProbeBwDown {
                    usual.cruise_at = self.in_flight_to_cruise();
                }
            }
            State::ProbeBwRefill => {}
            State::ProbeBwUp if !self.full_bw_now => {
                usual.probed = self.inflight_longterm;
                usual.down_at = if self.prev_probe_too_high { self.inflight_longterm } else { f64::INFINITY };
            }
            State::Startup | State::Drain | State::ProbeBwUp | State::ProbeRtt => return None,
        }
        let settled = self.full_bw_reached && self.seen_rtt && !self.idle_restart && !self.probe_rtt_expired;
        usual.min_rtt = self.probe_rtt_min_delay.filter(|&d| settled && self.min_rtt.is_some_and(|min| d >= min))?;
        usual.before = Time(last.0 + 1);
        usual.extra_below = self.extra_acked.ignored_below(self.rounds.count, EXTRA_ACKED_FILTER_LEN);
        usual.max_cwnd = lesser(self.max_inflight(), self.model_window_bound());
        Some(usual)
    }

    /// Handles a sample if it is within the bounds. `false`: nothing was done.
    #[inline(always)]
    pub(super) fn update_on_fast_path(&mut self, sample: &RateSample, now: Time) -> bool {
        let usual = &self.fast_path;
        let (in_flight, rate) = (float(sample.in_flight), sample.rate());
        let loss_round = sample.prior_delivered >= self.loss_round_delivered;
        let round = self.rounds.ends_with(sample) || (loss_round && self.is_loss_in_round);
        if round || now >= usual.before || sample.rtt.is_some_and(|rtt| rtt < usual.min_rtt) {
            return false;
        }
        if rate > self.max_bw || in_flight <= usual.cruise_at || in_flight >= usual.down_at {
            return false;
        }
        let newly = float(sample.newly_acked);
        let probed = sample.window_limited && self.cwnd >= usual.probed;
        if self.raises_longterm(sample) || (probed && self.bw_probe_up_acked + newly >= self.probe_up_acked_per_inc) {
            return false;
        }
        // UpdateACKAggregation
        let mut expected = self.bw * seconds(now.since(self.extra_acked_start));
        let (mut delivered, mut start) = (self.extra_acked_delivered, self.extra_acked_start);
        if delivered <= expected {
            (delivered, start, expected) = (0.0, now, 0.0);
        }
        delivered += newly;
        let extra = lesser(delivered - expected, self.cwnd);
        if extra >= usual.extra_below && self.raises_extra_acked(extra) {
            return false;
        }
        (self.extra_acked_delivered, self.extra_acked_start) = (delivered, start);
        (self.total, self.in_flight) = (sample.total, in_flight);
        (self.loss_round_start, self.rounds.start) = (loss_round, false);
        if loss_round {
            (self.loss_round_delivered, self.loss_ranges) = (sample.total, 0);
            (self.bw_latest, self.inflight_latest) = (rate, float(sample.delivered));
        } else {
            self.bw_latest = greater(self.bw_latest, rate);
            self.inflight_latest = greater(self.inflight_latest, float(sample.delivered));
        }
        if probed {
            self.probes_on(sample, newly, rate);
        }
        if rate >= self.max_bw || !sample.app_limited {
            self.max_bw_of[1] = greater(self.max_bw_of[1], rate);
        }
        self.cwnd = lesser(self.cwnd + newly, self.fast_path.max_cwnd);
        true
    }

    /// ProbeInflightLongtermUpward and IsTimeToGoDown when the long-term bound limits the window and does not change.
    #[inline(never)]
    fn probes_on(&mut self, sample: &RateSample, newly: f64, rate: f64) {
        if !Bbr3::is_inflight_too_high(sample.lost, sample.tx_in_flight) {
            self.bw_probe_up_acked += newly;
        }
        self.reset_full_bw(rate);
    }

    /// Whether a sample raises the long-term bound, which one with too much loss does not.
    #[inline(always)]
    fn raises_longterm(&self, sample: &RateSample) -> bool {
        float(sample.tx_in_flight) > self.inflight_longterm
            && !Bbr3::is_inflight_too_high(sample.lost, sample.tx_in_flight)
    }

    /// Whether `extra` changes the maximum of the aggregation filter. If not, updates the filter, and nothing else
    /// remains to do.
    #[inline(never)]
    fn raises_extra_acked(&mut self, extra: f64) -> bool {
        let (mut filter, at) = (self.extra_acked, self.rounds.count);
        if filter.update(at, extra, EXTRA_ACKED_FILTER_LEN) != self.extra_acked.get() {
            return true;
        }
        self.fast_path.extra_below = filter.ignored_below(at, EXTRA_ACKED_FILTER_LEN);
        self.extra_acked = filter;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Build, Controller, LostSegment, PathView, Profile, TcpEvent, Threshold, WindowController};
    use proptest::prelude::*;

    const SEGMENT: u64 = 1000;

    fn path(now: Time, in_flight: u64) -> PathView {
        let (rtt, in_flight) = (Span::from_millis(50), (in_flight / SEGMENT) as u32);
        let (acked, next, receive_window, segment) = (0, 0, 1000, SEGMENT as u32);
        PathView { now, srtt: rtt, rttvar: rtt, min_rtt: rtt, in_flight, acked, next, receive_window, segment }
    }

    /// Feeds the same drawn samples of a path of 1 MB/s and 50 ms to a controller with the fast path and to one
    /// without. Returns how many samples took the fast path, and how many there were.
    fn compare(draws: &[(u8, u8, u8)], loss: u8) -> Result<(u32, u32), TestCaseError> {
        let mut pair = [Bbr3::build(Profile::Rfc, &[]), Bbr3::build(Profile::Rfc, &[])];
        let (mut now, mut total, mut lost, mut short, mut samples) = (Time::ZERO, 0_u64, 0_u64, 0, 0);
        for bbr in &mut pair {
            bbr.on_feedback(&TcpEvent::Established { window: 10.0 }, &path(now, 0));
        }
        for &(what, a, b) in draws {
            let (x, y) = (u64::from(a), u64::from(b));
            now += Span::from_micros(1000 + 4 * x * if what == 255 { 10_000 } else { 1 });
            let in_flight = (10 + y % 90) * SEGMENT;
            if what < loss {
                lost += SEGMENT;
                let lost = LostSegment {
                    seq: a.into(),
                    size: SEGMENT,
                    total,
                    tx_in_flight: in_flight,
                    lost: (1 + x % 4) * SEGMENT,
                    app_limited: b > 250,
                };
                pair.iter_mut().for_each(|bbr| bbr.on_lost(&lost, &path(now, in_flight)));
            } else if what == 254 {
                let event = match x % 6 {
                    0 => TcpEvent::Lost { duplicates: 0, again: false },
                    1 => TcpEvent::Timeout(Threshold::Cut),
                    2 => TcpEvent::Undo { window: 10.0, threshold: 10.0 },
                    3 => TcpEvent::Resumed { idle: Span::from_millis(10), app_limited: true },
                    _ => TcpEvent::Recovered { at_most: f64::INFINITY },
                };
                pair.iter_mut().for_each(|bbr| bbr.on_feedback(&event, &path(now, in_flight)));
            }
            total += SEGMENT * (1 + x % 3 / 2);
            let delivered = (40 + x % 20).min(total / SEGMENT) * SEGMENT;
            let sample = RateSample {
                total,
                newly_acked: SEGMENT * (1 + x % 3 / 2),
                prior_delivered: total - delivered,
                delivered,
                interval: Span::from_micros(delivered + 10 * (y % 50)),
                rtt: (y % 7 > 0).then(|| Span::from_micros(50_000 + 10 * y)),
                tx_in_flight: (10 + x % 90) * SEGMENT,
                lost: if y % 5 == 0 { lost.min(3 * SEGMENT) } else { 0 },
                app_limited: y % 11 == 0,
                prior_in_flight: in_flight + SEGMENT,
                in_flight,
                window_limited: x % 4 > 0,
                ..RateSample::default()
            };
            samples += 1;
            if pair[0].on_delivery_fast(&sample, now) {
                short += 1;
            } else {
                pair[0].on_delivery(&sample, &path(now, in_flight));
            }
            pair[1].on_delivery(&sample, &path(now, in_flight));
            prop_assert_eq!(format!("{:?}", pair[0]), format!("{:?}", pair[1]), "{:?} at {:?}", sample, now);
        }
        Ok((short, samples))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_short_way_is_the_way_of_all(
            draws in prop::collection::vec(any::<(u8, u8, u8)>(), 1..1500), loss in prop_oneof![Just(0u8), Just(3), Just(12)]
        ) {
            compare(&draws, loss)?;
        }
    }

    /// The test above does exercise the fast path.
    #[test]
    fn most_samples_take_the_short_way() {
        use paceline_random::{Sequence, Stream};
        let mut draws = Sequence::new(Stream::new(1, "usual"));
        let mut byte = || (draws.unit() * 256.0) as u8;
        let draws: Vec<_> = (0..5000).map(|_| (byte().min(253), byte(), byte())).collect();
        let (short, samples) = compare(&draws, 1).unwrap_or_else(|e| panic!("{e}"));
        assert!(2 * short > samples, "{short} of {samples}");
    }
}
