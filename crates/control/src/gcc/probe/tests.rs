//! The cases and numbers of libwebrtc's probe_controller_unittest.cc, in bits per second: a session with a minimum of
//! 100, a start of 300 and a maximum of 10000.

use super::*;

const MIN_BITRATE: f64 = 100.0;
const START: f64 = 300.0;
const MAX_BITRATE: f64 = 10_000.0;

struct Case {
    probes: ProbeController,
    now: Time,
}

fn rates(clusters: &[ProbeClusterConfig]) -> Vec<f64> {
    clusters.iter().map(|c| c.rate).collect()
}

/// A controller whose first probes are in progress.
fn case() -> Case {
    let mut case = Case { probes: ProbeController::default(), now: Time::ZERO };
    assert!(case.probes.set_available(true, Time::ZERO).is_empty());
    assert_eq!(case.set_rates(START, MAX_BITRATE), [900.0, 1800.0]);
    case
}

impl Case {
    fn set_rates(&mut self, start: f64, max_bitrate: f64) -> Vec<f64> {
        rates(&self.probes.set_rates(MIN_BITRATE, start, max_bitrate, self.now))
    }

    fn estimate(&mut self, rate: f64) -> Vec<f64> {
        self.limited(rate, BandwidthLimitedCause::Delay)
    }

    fn limited(&mut self, rate: f64, limit: BandwidthLimitedCause) -> Vec<f64> {
        rates(&self.probes.set_estimate(rate, limit, self.now))
    }

    fn allocated(&mut self, rate: f64) -> Vec<f64> {
        rates(&self.probes.set_allocated(rate, self.now))
    }

    fn recovered(&mut self) -> Vec<f64> {
        rates(&self.probes.recovered(self.now))
    }

    fn after(&mut self, ms: u64) -> Vec<f64> {
        self.now += Span::from_millis(ms);
        rates(&self.probes.process(self.now))
    }

    fn alr(&mut self) {
        self.probes.set_alr(Some(self.now));
    }
}

const NONE: [f64; 0] = [];

#[test]
fn the_first_probes_wait_for_rates_and_the_network() {
    let mut probes = ProbeController::default();
    assert!(probes.set_rates(MIN_BITRATE, START, MAX_BITRATE, Time::ZERO).is_empty());
    let clusters = probes.set_available(true, Time::ZERO);
    assert_eq!(rates(&clusters), [900.0, 1800.0]);
    assert_eq!(clusters.iter().map(|c| (c.id, c.packets)).collect::<Vec<_>>(), [(1, 5), (2, 5)]);
    assert!((clusters[1].bytes - 1800.0 * 0.015 / 8.0).abs() < 1e-9, "15 ms");

    let mut probes = ProbeController::default();
    assert!(probes.set_available(false, Time::ZERO).is_empty());
    assert!(probes.set_rates(MIN_BITRATE, START, MAX_BITRATE, Time::ZERO).is_empty());
    assert_eq!(rates(&probes.set_available(true, Time::ZERO)), [900.0, 1800.0]);

    let mut case = case();
    case.probes.set_available(false, case.now);
    assert_eq!(case.estimate(1800.0), NONE, "what was under way has ended");
}

#[test]
fn a_result_near_the_probe_is_followed_by_another() {
    let mut case = case();
    assert_eq!(case.estimate(1000.0), NONE);
    assert_eq!(case.estimate(1800.0), [3600.0]);
    assert_eq!(case.estimate(1800.0), NONE, "not twice");
}

#[test]
fn results_are_awaited_for_a_second() {
    let mut case = case();
    assert_eq!(case.after(5000), NONE);
    assert_eq!(case.estimate(1800.0), NONE);
}

#[test]
fn the_maximum_ends_it() {
    let mut case = Case { probes: ProbeController::default(), now: Time::ZERO };
    case.probes.set_available(true, Time::ZERO);
    assert_eq!(case.set_rates(10e6, 100e6), [30e6, 60e6]);
    assert_eq!(case.estimate(60e6), [100e6]);
    assert_eq!(case.estimate(100e6), NONE);
}

#[test]
fn a_maximum_that_grows_is_probed() {
    let mut case = case();
    case.now += Span::from_secs(5);
    case.estimate(START);
    case.after(0);
    assert_eq!(case.set_rates(START, MAX_BITRATE + 100.0), [MAX_BITRATE + 100.0]);
    case.estimate(MAX_BITRATE + 100.0);
    assert_eq!(case.set_rates(START, MAX_BITRATE + 200.0), [MAX_BITRATE + 200.0]);
}

#[test]
fn what_the_streams_can_use_limits_probes() {
    let mut case = case();
    assert_eq!(case.allocated(START), NONE);
    assert_eq!(case.estimate(1800.0), [2.0 * START]);
}

#[test]
fn what_the_streams_can_use_is_probed_if_the_application_is_the_limit() {
    let mut case = case();
    case.estimate(MAX_BITRATE - 1.0);
    assert_eq!(case.after(5000), NONE);
    case.alr();
    assert_eq!(case.allocated(MAX_BITRATE + 1.0), [MAX_BITRATE, MAX_BITRATE]);
    case.probes.set_alr(None);
    assert_eq!(case.allocated(MAX_BITRATE + 2.0), NONE);
}

#[test]
fn but_no_more_than_twice_the_estimate() {
    let mut case = case();
    case.estimate(START);
    assert_eq!(case.after(5000), NONE);
    case.alr();
    assert_eq!(case.allocated(MAX_BITRATE), [2.0 * START]);
    assert_eq!(case.estimate(1.5 * START), [3.0 * START]);
}

/// A drop from 500 to 250: 0.85 of 500 is probed.
#[test]
fn what_was_before_a_large_drop_is_probed() {
    let fall = |alr: bool| {
        let mut case = case();
        case.estimate(500.0);
        if alr {
            case.alr();
        }
        case.after(5001);
        case.estimate(250.0);
        case
    };
    assert_eq!(fall(true).recovered(), [425.0]);
    assert_eq!(fall(false).recovered(), NONE, "the application used what it had");
    for (later, want) in [(2999, vec![425.0]), (3001, vec![])] {
        let mut case = fall(false);
        case.probes.alr_ended(case.now);
        case.now += Span::from_millis(later);
        assert_eq!(case.recovered(), want, "{later} ms after it ceased to be the limit");
    }
    let mut case = fall(true);
    case.now += Span::from_millis(5001);
    assert_eq!(case.recovered(), NONE, "too late");
    let mut case = fall(true);
    assert_eq!(case.recovered(), [425.0]);
    assert_eq!(case.recovered(), NONE, "too soon after the last");
}

#[test]
fn periodic_probes() {
    let mut case = case();
    case.probes.set_periodic(true);
    case.estimate(500.0);
    case.alr();
    assert_eq!(case.after(5000), [1000.0]);
    assert_eq!(case.estimate(500.0), NONE);
    assert_eq!(case.after(4000), NONE);
    assert_eq!(case.estimate(500.0), NONE);
    assert_eq!(case.after(1000), [1000.0]);
    assert_eq!(case.estimate(500.0), NONE);
}

#[test]
fn a_camera_is_not_probed_periodically() {
    let mut case = case();
    case.estimate(500.0);
    case.alr();
    assert_eq!(case.after(60_000), NONE);
}

#[test]
fn periodic_probes_keep_to_twice_what_the_streams_can_use() {
    let mut case = Case { probes: ProbeController::default(), now: Time::ZERO };
    case.probes.set_available(true, Time::ZERO);
    case.set_rates(10e6, 100e6);
    case.probes.set_periodic(true);
    case.alr();
    case.estimate(10e6);
    assert_eq!(case.allocated(9e6), NONE);
    assert_eq!(case.after(5000), [18e6]);
    assert_eq!(case.allocated(0.0), NONE);
    assert_eq!(case.after(5000), [20e6]);
}

#[test]
fn losses_limit_probes() {
    let mut case = case();
    case.probes.set_periodic(true);
    case.estimate(500.0);
    case.alr();
    assert_eq!(case.after(5000), [1000.0]);
    case.limited(500.0, BandwidthLimitedCause::LossGrowing);
    assert_eq!(case.after(6000), [750.0]);
    case.estimate(750.0);
    assert_eq!(case.after(6000), [1500.0]);
}

/// (what limits the estimate, whether the application sends less than allowed, rates probed)
#[test]
fn what_limits_the_estimate_decides_on_probes() {
    for (limit, alr, want) in [
        (BandwidthLimitedCause::LossGrowing, true, vec![450.0]),
        (BandwidthLimitedCause::LossGrowing, false, vec![]),
        (BandwidthLimitedCause::Delay, true, vec![600.0]),
        (BandwidthLimitedCause::Loss, true, vec![]),
        (BandwidthLimitedCause::Queue, true, vec![]),
        (BandwidthLimitedCause::Rtt, true, vec![]),
    ] {
        let mut case = case();
        case.probes.set_periodic(true);
        case.limited(START, limit);
        assert_eq!(case.after(5000), NONE);
        if alr {
            case.alr();
        }
        assert_eq!(case.after(5001), want, "{limit:?}");
    }
}

#[test]
fn no_probe_follows_while_losses_or_a_queue_limit() {
    for limit in [BandwidthLimitedCause::Loss, BandwidthLimitedCause::Queue, BandwidthLimitedCause::Rtt] {
        let mut case = case();
        assert_eq!(case.limited(1800.0, limit), NONE, "{limit:?}");
        assert_eq!(case.estimate(1800.0), [3600.0], "but as soon as they do not");
    }
}
