//! Copa against others' numbers and by hand.
//!
//! The first tables are facebook/mvfst's (`quic/congestion_control/test/CopaTest.cpp` at 00e67c1b): its events, and where it expects the
//! window to go and how fast. Its standing round trip is that of a whole smoothed one, its velocity doubles after one round trip
//! more, it has one mode alone, and its slow start doubles at once where ours adds each segment: so ours begins one segment lower.

use paceline_control::{Controller, LostSegment, PathView, Profile, RateSample, TcpController, TcpEvent, Threshold};
use paceline_control::{WindowController, registry};
use paceline_units::{Span, Time};

const SEGMENT: u64 = 1252;

struct Driven {
    copa: TcpController,
    now: u64,
    total: u64,
}

impl Driven {
    fn new(window: f64, given: &[(&str, f64)]) -> Driven {
        let scheme = registry::scheme("copa").unwrap();
        let mut driven = Driven { copa: TcpController::new(scheme, Profile::Rfc, given).unwrap(), now: 1000, total: 0 };
        let path = driven.path(0);
        driven.copa.on_feedback(&TcpEvent::Established { window }, &path);
        driven
    }

    fn path(&self, srtt: u64) -> PathView {
        PathView {
            now: Time(self.now * 1_000_000),
            srtt: Span::from_millis(srtt),
            rttvar: Span::ZERO,
            min_rtt: Span::ZERO,
            in_flight: 10,
            acked: 0,
            next: 0,
            receive_window: u32::MAX,
            segment: SEGMENT as u32,
        }
    }

    /// After `later` milliseconds one segment is acknowledged, whose round trip took `rtt`; `round`: what left after the last
    /// round trip began is acknowledged for the first time. Gives the window's change.
    fn ack(&mut self, later: u64, rtt: u64, srtt: u64, round: bool) -> f64 {
        self.delivered(later, rtt, srtt, round, true)
    }

    fn delivered(&mut self, later: u64, rtt: u64, srtt: u64, round: bool, window_limited: bool) -> f64 {
        self.now += later;
        let sample = RateSample {
            total: self.total + SEGMENT,
            prior_delivered: if round { self.total } else { 0 },
            newly_acked: SEGMENT,
            rtt: Some(Span::from_millis(rtt)),
            window_limited,
            ..RateSample::default()
        };
        self.total += SEGMENT;
        let before = self.copa.window();
        let path = self.path(srtt);
        self.copa.on_delivery(&sample, &path);
        self.copa.window() - before
    }

    fn lose(&mut self) {
        let lost = LostSegment { seq: 0, size: SEGMENT, total: 0, tx_in_flight: 0, lost: SEGMENT, app_limited: false };
        let path = self.path(100);
        self.copa.on_lost(&lost, &path);
    }

    fn gauge(&self, name: &str) -> f64 {
        struct One<'a>(&'a str, f64);
        impl paceline_control::Gauges for One<'_> {
            fn gauge(&mut self, name: &'static str, _: paceline_control::GaugeUnit, value: f64) {
                if name == self.0 {
                    self.1 = value;
                }
            }
        }
        let mut one = One(name, f64::NAN);
        self.copa.gauges(&mut one);
        one.1
    }
}

const MVFST: [(&str, f64); 3] = [("competitive", 0.0), ("standing_window", 1.0), ("doubling_after", 4.0)];

/// mvfst's `exitSlowStart`, from a window of `window` on.
fn left_slow_start(window: f64) -> Driven {
    let mut driven = Driven::new(window - 1.0, &MVFST);
    assert_eq!(driven.ack(50, 50, 50, true), 1.0, "slow start");
    let step = driven.ack(110, 150, 100, false);
    assert!((step + 1.0 / (0.5 * window)).abs() < 1e-9, "{step}: 20 segments a second are the target, 73 the rate");
    driven
}

/// Steps of velocity / (delta · window), as mvfst expects them.
fn steps(driven: &mut Driven, table: &[(u64, u64, bool, f64)]) {
    for (row, &(later, rtt, round, velocity)) in table.iter().enumerate() {
        let before = driven.copa.window();
        let step = driven.ack(later, rtt, 100, round);
        let expected = velocity / (0.5 * before);
        assert!((step - expected).abs() < 1e-9, "row {row}: {step}, {expected} there");
    }
}

#[test]
fn mvfst_test_steady_state_changes() {
    let mut driven = left_slow_start(9.0);
    // ms later, round trip, a round trip ends, velocity with its sign
    steps(&mut driven, &[(10, 100, false, -1.0), (10, 50, false, 1.0), (10, 100, false, 1.0), (110, 100, true, -1.0)]);
}

#[test]
fn mvfst_test_velocity() {
    let mut driven = left_slow_start(11.0);
    // the last is 8 there: beyond delta · window, where the authors' code stops, and so do we
    let velocities = [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 4.0];
    let table: Vec<_> = velocities.map(|velocity| (100, 50, true, velocity)).to_vec();
    steps(&mut driven, &table);
    // however fast: it turns at once
    steps(&mut driven, &[(110, 200, true, -1.0)]);
}

/// Section 2.1: doubling begins once the direction has been the same for three round trips.
#[test]
fn the_paper_doubles_a_round_trip_earlier() {
    let mut driven = Driven::new(10.0, &[("competitive", 0.0)]);
    driven.ack(50, 50, 50, true);
    driven.ack(110, 150, 100, false);
    let table: Vec<_> = [1.0, 1.0, 1.0, 1.0, 2.0, 4.0].map(|velocity| (100, 50, true, velocity)).to_vec();
    steps(&mut driven, &table);
}

/// cwnd / RTTstanding against 1 / (delta dq): 20 segments over 120 ms of which 20 ms are queue carry 3.33 in it.
#[test]
fn section_2_1_the_target_is_a_queue_of_one_over_delta() {
    for (delta, grows) in [(0.29, true), (0.31, false)] {
        let mut driven = Driven::new(19.0, &[("delta", delta), ("competitive", 0.0)]);
        driven.ack(10, 100, 100, true);
        let step = driven.ack(100, 120, 100, false);
        // what grows is still slow start's
        let expected = if grows { 1.0 } else { -1.0 / (delta * 20.0) };
        assert!((step - expected).abs() < 1e-9, "{delta}: {step}");
    }
}

/// The standing round trip is the least of half a smoothed one: 49 ms after a short one it counts, after 51 it does not.
#[test]
fn section_2_1_the_standing_round_trip_is_that_of_half_a_smoothed_one() {
    for (later, queue) in [(49, 0.0), (51, 0.020)] {
        let mut driven = Driven::new(10.0, &[]);
        driven.ack(10, 100, 100, true);
        driven.ack(later, 120, 100, false);
        assert!((driven.gauge("queueing_delay") - queue).abs() < 1e-12, "{later} ms");
    }
}

/// The least round trip of ten seconds.
#[test]
fn section_2_1_the_least_round_trip_is_forgotten_after_ten_seconds() {
    let mut driven = Driven::new(10.0, &[]);
    driven.ack(10, 100, 100, true);
    for _ in 0..100 {
        driven.ack(100, 130, 100, true);
        assert!((driven.gauge("min_rtt") - 0.1).abs() < 1e-12);
    }
    driven.ack(1, 130, 100, true);
    assert!((driven.gauge("min_rtt") - 0.13).abs() < 1e-12);
}

/// 2 cwnd / RTTstanding.
#[test]
fn section_2_1_it_paces_at_two_windows_a_standing_round_trip() {
    let mut driven = Driven::new(9.0, &[]);
    assert!(driven.copa.pacing_rate().is_infinite(), "nothing has been measured");
    driven.ack(10, 80, 80, true);
    assert!((driven.copa.pacing_rate() - 2.0 * 10.0 * 1252.0 / 0.080).abs() < 1e-6);
    assert_eq!(driven.copa.send_quantum(), 1252, "a segment takes longer than 50 us");
}

/// Default mode is lossless and knows 1/delta = 2. Beside a queue that stands at 100 ms, whose round trips are 100 ms longer than the
/// least: nearly empty is below 10 ms, and ten round trips of 100 ms are the patience, or section 2.2's five.
#[test]
fn section_2_2_without_a_nearly_empty_queue_it_competes() {
    for (given, patience) in [(("whole_segments", 0.0), 10), (("empties_within", 5.0), 5)] {
        let mut driven = Driven::new(99.0, &[("whole_segments", 0.0), given]);
        driven.ack(0, 100, 100, true);
        driven.lose();
        assert_eq!((driven.gauge("delta"), driven.gauge("competing")), (0.5, 0.0));
        for i in 1..=patience {
            driven.ack(100, 200, 100, true);
            assert_eq!((driven.gauge("delta"), driven.gauge("competing")), (0.5, 0.0), "{i}");
        }
        competes_until_the_queue_is_nearly_empty(driven);
    }
}

fn competes_until_the_queue_is_nearly_empty(mut driven: Driven) {
    // one round trip more: it competes, and 1/delta grows by one with each
    for inverse_delta in [2.0, 3.0, 4.0, 5.0] {
        driven.ack(100, 200, 100, true);
        assert_eq!((1.0 / driven.gauge("delta"), driven.gauge("competing")), (inverse_delta, 1.0));
    }
    driven.ack(10, 200, 100, false);
    assert_eq!(driven.gauge("delta"), 0.2, "not within one");
    // a loss halves it, a second one within a round trip does not, nor does the round trip that had one add
    driven.lose();
    driven.ack(10, 200, 100, false);
    assert_eq!(driven.gauge("delta"), 0.4);
    driven.lose();
    driven.ack(80, 200, 100, true);
    assert_eq!(driven.gauge("delta"), 0.4);
    driven.lose();
    driven.ack(100, 200, 100, true);
    assert_eq!(driven.gauge("delta"), 0.5, "no more than in the default mode");
    driven.ack(100, 200, 100, true);
    driven.ack(100, 200, 100, true);
    assert!((1.0 / driven.gauge("delta") - 3.0).abs() < 1e-9);
    // 11 ms are not nearly empty, 9 are
    driven.ack(60, 111, 100, false);
    assert_eq!(driven.gauge("competing"), 1.0);
    driven.ack(10, 109, 100, false);
    assert_eq!((driven.gauge("delta"), driven.gauge("competing")), (0.5, 0.0));
}

/// Less than a segment of its own: 4 of 100 ms, with 10 ms of queue, are 0.36 of one; of 40 they are 3.6.
#[test]
fn less_than_a_segment_of_its_own_is_an_empty_queue() {
    for (window, whole, competes) in [(4.0, 1.0, 0.0), (4.0, 0.0, 1.0), (40.0, 1.0, 1.0)] {
        let mut driven = Driven::new(window, &[("whole_segments", whole)]);
        driven.delivered(0, 100, 100, true, false);
        driven.delivered(100, 1000, 100, true, false);
        for _ in 0..20 {
            driven.delivered(100, 110, 100, true, false);
        }
        assert_eq!(driven.gauge("competing"), competes, "{window} {whole}");
    }
}

/// What the application does not use is no reason to grow, but the window may fall.
#[test]
fn an_unused_window_does_not_grow() {
    let mut driven = Driven::new(10.0, &[]);
    for _ in 0..10 {
        assert_eq!(driven.delivered(10, 100, 100, true, false), 0.0);
    }
    assert!(driven.delivered(100, 200, 100, true, false) < 0.0);
    assert_eq!(driven.delivered(100, 100, 100, true, false), 0.0);
}

/// After a timeout two segments and slow start; the least window is two.
#[test]
fn a_timeout_begins_anew() {
    let mut driven = left_slow_start(11.0);
    let path = driven.path(100);
    driven.copa.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path);
    assert_eq!(driven.copa.window(), 2.0);
    assert_eq!(driven.ack(100, 50, 100, true), 1.0);
    for _ in 0..20 {
        driven.ack(200, 400, 100, true);
    }
    assert_eq!(driven.copa.window(), 2.0);
    driven.copa.on_feedback(&TcpEvent::Undo { window: 30.0, threshold: 0.0 }, &path);
    assert_eq!(driven.copa.window(), 30.0);
}
