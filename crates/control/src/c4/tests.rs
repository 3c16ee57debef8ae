//! C4's law, step by step.

use super::*;
use paceline_units::Time;

const SMSS: u32 = 1000;

fn path(next: u32) -> PathView {
    PathView {
        now: Time::ZERO,
        srtt: Span::from_millis(100),
        rttvar: Span::ZERO,
        min_rtt: Span::from_millis(100),
        in_flight: 0,
        acked: 0,
        next,
        receive_window: u32::MAX,
        segment: SMSS,
    }
}

/// An acknowledged segment of a path with `rate` bytes per second and a round trip of `rtt` ms; `prior` bytes had been
/// delivered when it was sent.
fn ack(total: u64, prior: u64, rate: f64, rtt: u64) -> RateSample {
    RateSample {
        total,
        newly_acked: u64::from(SMSS),
        prior_delivered: prior,
        delivered: (rate * 0.1) as u64,
        interval: Span::from_millis(100),
        rtt: Some(Span::from_millis(rtt)),
        ..RateSample::default()
    }
}

fn started() -> C4 {
    let mut c4 = C4::build(Profile::Rfc, &[]);
    c4.on_feedback(&TcpEvent::Established { window: 10.0 }, &path(0));
    c4
}

/// A controller past Initial, whose eras end with each acknowledgement.
fn recovering(rate: f64) -> (C4, u64) {
    let (mut c4, mut total) = (started(), 0);
    for _ in 0..4 {
        total += 1000;
        c4.on_delivery(&ack(total, total, rate, 100), &path(0));
    }
    assert_eq!(c4.state, State::Recovery);
    (c4, total)
}

fn lost(seq: u32, total: u64) -> LostSegment {
    LostSegment { seq, size: 1000, total, tx_in_flight: 0, lost: 1000, app_limited: false }
}

#[test]
fn the_sensitivity_and_thresholds_of_the_text() {
    for (rate, want) in [(0.0, 0.0), (50e3, 0.0), (525e3, 0.46), (1e6, 0.92), (5.5e6, 0.96), (10e6, 1.0), (1e9, 1.0)] {
        assert!((sensitivity(rate) - want).abs() < 1e-12, "{rate}");
    }
    assert!((loss_threshold(0.0) - 0.52).abs() < 1e-12 && (loss_threshold(2e7) - 0.02).abs() < 1e-12);
    let mut c4 = started();
    c4.nominal_rate = 2e7;
    assert!((c4.delay_threshold() - 0.1 / 16.0).abs() < 1e-12);
    c4.nominal_rate = 1e4;
    assert!((c4.delay_threshold() - 0.025).abs() < 1e-12, "a quarter of 100 ms: no more than 25 ms");
}

#[test]
fn initial_ends_after_three_eras_without_a_higher_rate_of_a_sender_with_data() {
    let mut c4 = started();
    assert!((c4.window() - 10.0).abs() < 1e-9 && c4.pacing_rate() == f64::INFINITY);
    c4.on_delivery(&ack(1000, 1000, 1e6, 100), &path(0));
    let window = c4.slow_start;
    for n in 2..12 {
        c4.on_delivery(&RateSample { app_limited: true, ..ack(1000 * n, 1000 * n, 1e6, 100) }, &path(0));
        assert_eq!(c4.state, State::Initial, "limited by the application");
    }
    assert!((c4.slow_start - window).abs() < 1e-9, "a window that is not used does not grow");
    let (c4, _) = recovering(1e6);
    assert!((c4.pacing_rate() - 0.99e6 * 15.0 / 16.0).abs() < 1.0);
}

#[test]
fn cruising_lasts_four_eras_and_pushes_grow_once_one_has_worked() {
    let (mut c4, mut total) = recovering(1e6);
    let mut pushes = Vec::new();
    for n in 0..30 {
        total += 1000;
        // the path's rate rises once, when the first push's era ends
        let rate = if n < 6 { 1e6 } else { 1.05e6 };
        c4.on_delivery(&ack(total, total, rate, 100), &path(0));
        if c4.state == State::Pushing {
            pushes.push((n, c4.alpha_current));
        }
    }
    assert_eq!(pushes[..3], [(4, ALPHA_PUSHING_LOW), (10, ALPHA_PUSHING), (16, ALPHA_PUSHING_LOW)], "{pushes:?}");
}

#[test]
fn losses_above_the_threshold_cut_rate_and_round_trip_once_unless_a_timer_found_them() {
    let (mut c4, mut total) = recovering(2e6);
    total += 1000;
    c4.on_delivery(&ack(total, total, 2e6, 100), &path(0));
    assert_eq!(c4.state, State::Cruising);
    let (rate, rtt) = (c4.nominal_rate, c4.nominal_max_rtt);
    c4.on_feedback(&TcpEvent::Timeout(crate::Threshold::Cut), &path(0));
    (0..20).for_each(|seq| c4.on_lost(&lost(seq, total), &path(0)));
    c4.on_delivery(&ack(total + 1000, 0, 2e6, 100), &path(0));
    assert!(c4.state == State::Cruising && c4.nominal_rate >= rate, "those of a timeout do not count");
    (0..20).for_each(|seq| c4.on_lost(&lost(seq, total), &path(0)));
    c4.on_delivery(&ack(total + 2000, 0, 2e6, 100), &path(0));
    assert_eq!(c4.state, State::Recovery);
    assert!((c4.nominal_rate - 0.75 * rate).abs() < 1.0 && (c4.nominal_max_rtt - 0.75 * rtt).abs() < 1e-6);
    (0..20).for_each(|seq| c4.on_lost(&lost(seq, total), &path(0)));
    c4.on_delivery(&ack(total + 3000, 0, 2e6, 100), &path(0));
    assert!((c4.nominal_rate - 0.75 * rate).abs() < 1.0, "in Recovery none is cut, and none grows while congested");
}

#[test]
fn the_greatest_round_trip_rises_at_once_and_falls_by_eighths() {
    let (mut c4, mut total) = recovering(1e6);
    let mut seen = Vec::new();
    for rtt in [100, 160, 100, 900] {
        total += 1000;
        c4.on_delivery(&ack(total, total, 1e6, rtt), &path(0));
        seen.push((c4.nominal_max_rtt * 1e6).round());
    }
    // the last is limited to 250 ms above the running minimum, which has risen by an eighth
    assert_eq!(seen[..3], [100e3, 160e3, 152_500.0]);
    let running = c4.running_min_rtt;
    assert!((seen[3] / 1e6 - (running + MAX_JITTER)).abs() < 1e-5 && running < 0.21, "{seen:?} {running}");
}
