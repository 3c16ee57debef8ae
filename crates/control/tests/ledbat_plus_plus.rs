//! LEDBAT++'s law, event by event: the draft's formulas worked by hand.

use crate::law::{LOST, gauge, near, path};
use paceline_control::{Controller, Profile, TcpController, TcpEvent, Threshold, WindowController, registry};
use paceline_units::Span;

fn controller(window: f64, params: &[(&str, f64)]) -> TcpController {
    let scheme = registry::scheme("ledbat-plus-plus").unwrap();
    let mut c = TcpController::new(scheme, Profile::Rfc, params).unwrap();
    c.on_feedback(&TcpEvent::Established { window }, &path(0.0, 100, 0));
    c
}

/// An acknowledgement of `segments` after `rtt_ms`, with the window in use and a smoothed round trip of 100 ms.
fn acked(c: &mut TcpController, segments: u32, at_s: f64, rtt_ms: u64) {
    let in_flight = c.window() as u32;
    let event = TcpEvent::Acked { segments, in_flight, rtt: Some(Span::from_millis(rtt_ms)) };
    c.on_feedback(&event, &path(at_s, 100, in_flight));
}

/// Four samples of that round trip, which is what the filter looks back.
fn settled(c: &mut TcpController, at_s: f64, rtt_ms: u64) {
    for _ in 0..3 {
        acked(c, 0, at_s, rtt_ms);
    }
}

/// In congestion avoidance with a window of `window` after a base delay of `base` ms, slowdowns off.
fn avoiding(window: f64, base: u64) -> TcpController {
    let mut c = controller(2.0 * window, &[("slowdowns", 0.0)]);
    acked(&mut c, 0, 0.1, base);
    c.on_feedback(&LOST, &path(0.2, 100, (2.0 * window) as u32));
    assert_eq!((c.window(), c.threshold()), (window, window));
    c
}

/// Section 4.2: 1 / min(16, ceil(2 60 ms / base)), and section 4.1: slow start by that for each segment acknowledged.
#[test]
fn section_4_2_gain() {
    for (base, divisor) in [
        (1, 16.0),
        (7, 16.0),
        (8, 15.0),
        (20, 6.0),
        (40, 3.0),
        (50, 3.0),
        (60, 2.0),
        (119, 2.0),
        (120, 1.0),
        (500, 1.0),
    ] {
        let mut c = controller(10.0, &[]);
        acked(&mut c, 2, 0.1, base);
        near(c.window(), 10.0 + 2.0 / divisor);
    }
    let mut c = controller(10.0, &[("gain_divisor", 4.0)]);
    acked(&mut c, 2, 0.1, 1);
    near(c.window(), 10.5);
    let mut c = controller(10.0, &[("target", 0.010)]);
    acked(&mut c, 2, 0.1, 7); // ceil(20 / 7) = 3
    near(c.window(), 10.0 + 2.0 / 3.0);
}

/// Section 4.1: the first slow start ends with a queueing delay of more than 3/4 of the target, as the least of four samples.
#[test]
fn section_4_1_the_first_slow_start_ends() {
    for (rtt, ends) in [(144, false), (145, false), (146, true)] {
        let mut c = controller(10.0, &[]);
        acked(&mut c, 0, 0.1, 100);
        settled(&mut c, 0.2, rtt);
        assert!(c.threshold().is_infinite(), "the base is among the four");
        acked(&mut c, 0, 0.2, rtt);
        assert_eq!(c.threshold().is_finite(), ends, "{rtt} ms");
    }
}

/// Section 4.3: GAIN a round trip below the target; above it max(GAIN - W (delay / target - 1), -W / 2).
#[test]
fn section_4_3_the_window() {
    for (rtt, change) in [
        (100, 0.5), // 2 120 / 100 = 1.2, so GAIN is 1/2
        (160, 0.5),
        (163, 0.5 - 20.0 * 0.05),
        (190, 0.5 - 20.0 * 0.5),
        (191, -10.0), // 0.5 - 20 31/60 = -9.83; from 192 on -10
        (280, -10.0),
    ] {
        let mut c = avoiding(20.0, 100);
        settled(&mut c, 1.0, rtt);
        let change = if rtt == 191 { 0.5 - 20.0 * 31.0 / 60.0 } else { change };
        acked(&mut c, 20, 1.0, rtt);
        near(c.window(), 20.0 + change);
    }
    // by the share of a window
    let mut c = avoiding(20.0, 100);
    acked(&mut c, 5, 1.0, 100);
    near(c.window(), 20.125);
    // never below two segments
    let mut c = avoiding(3.0, 100);
    settled(&mut c, 1.0, 400);
    acked(&mut c, 3, 1.0, 400);
    acked(&mut c, 2, 1.0, 400);
    assert_eq!(c.window(), 2.0);
    // the constant
    let mut c = controller(40.0, &[("slowdowns", 0.0), ("decrease", 0.5)]);
    acked(&mut c, 0, 0.1, 100);
    c.on_feedback(&LOST, &path(0.2, 100, 40));
    settled(&mut c, 1.0, 190);
    acked(&mut c, 20, 1.0, 190);
    near(c.window(), 20.0 + 0.5 - 5.0);
}

/// Section 4.4: two round trips after the first slow start the window is 2 for two round trips; then slow start, by the gain, to where
/// it was; the next slowdown after nine times as long.
#[test]
fn section_4_4_slowdowns() {
    let mut c = controller(10.0, &[]);
    acked(&mut c, 0, 1.0, 100);
    settled(&mut c, 1.0, 150);
    acked(&mut c, 0, 1.0, 150); // the first slow start ends at 1.0 s
    assert_eq!(c.threshold(), 10.0);
    acked(&mut c, 0, 1.19, 110);
    assert_eq!(c.window(), 10.0);
    acked(&mut c, 0, 1.2, 110);
    assert_eq!((c.window(), c.threshold()), (2.0, 10.0));
    acked(&mut c, 2, 1.39, 110);
    assert_eq!(c.window(), 2.0);
    for (n, at) in [1.4, 1.5, 1.6, 1.7].into_iter().enumerate() {
        acked(&mut c, 4, at, 110); // GAIN 1/2
        assert_eq!(c.window(), 4.0 + 2.0 * n as f64);
    }
    // at 1.7 s it has taken 0.5 s: the next begins at 6.2 s
    acked(&mut c, 0, 6.19, 110);
    assert_eq!(c.window(), 10.0);
    acked(&mut c, 0, 6.2, 110);
    assert_eq!(c.window(), 2.0);
    // delay does not end the slow start of a slowdown
    settled(&mut c, 6.4, 200);
    acked(&mut c, 4, 6.5, 200);
    assert_eq!(c.window(), 4.0);
}

/// RFC 6817 section 2.4.2: the base delay is the least of ten minutes.
#[test]
fn rfc_6817_2_4_2_base_delay() {
    let mut c = avoiding(20.0, 50);
    for minute in 0..10 {
        acked(&mut c, 0, 0.2 + 60.0 * f64::from(minute), 80);
        assert_eq!(gauge(&c, "base_delay"), 0.05, "minute {minute}");
    }
    settled(&mut c, 600.2, 80);
    acked(&mut c, 0, 600.2, 80);
    assert_eq!((gauge(&c, "base_delay"), gauge(&c, "queueing_delay")), (0.08, 0.0));
}

/// A loss halves what is in flight, and a timeout leaves one segment; the slow start after it stops at the threshold.
#[test]
fn losses() {
    let mut c = avoiding(20.0, 100);
    c.on_feedback(&LOST, &path(1.0, 100, 12));
    assert_eq!((c.window(), c.threshold()), (6.0, 6.0));
    c.on_feedback(&TcpEvent::EcnEcho, &path(1.0, 100, 2));
    assert_eq!((c.window(), c.threshold()), (1.0, 2.0));
    let mut c = avoiding(20.0, 100);
    c.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(1.0, 100, 20));
    assert_eq!((c.window(), c.threshold()), (1.0, 10.0));
    c.on_feedback(&TcpEvent::Timeout(Threshold::Keep), &path(2.0, 100, 1));
    for n in 1..=20 {
        acked(&mut c, 2, 3.0, 100);
        near(c.window(), if n < 9 { 1.0 + f64::from(n) } else { c.window() });
    }
    assert!((10.0..12.0).contains(&c.window()), "{}", c.window());
}

/// Growth only if the window is in use; decrease in any case.
#[test]
fn a_window_that_is_not_used() {
    let quiet = |c: &mut TcpController, rtt_ms: u64| {
        for _ in 0..4 {
            let event = TcpEvent::Acked { segments: 1, in_flight: 3, rtt: Some(Span::from_millis(rtt_ms)) };
            c.on_feedback(&event, &path(1.0, 100, 3));
        }
    };
    let mut c = avoiding(20.0, 100);
    quiet(&mut c, 100);
    assert_eq!(c.window(), 20.0);
    quiet(&mut c, 300);
    assert!(c.window() < 20.0);
}
