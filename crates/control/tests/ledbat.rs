//! LEDBAT's law, event by event: RFC 6817's formulas worked by hand.

use crate::law::{LOST, gauge, near, path};
use paceline_control::{Controller, Profile, TcpController, TcpEvent, Threshold, WindowController, registry};
use paceline_units::Span;

fn controller(params: &[(&str, f64)]) -> TcpController {
    let mut c = TcpController::new(registry::scheme("ledbat").unwrap(), Profile::Rfc, params).unwrap();
    c.on_feedback(&TcpEvent::Established { window: 10.0 }, &path(0.0, 100, 0));
    c
}

/// An acknowledgement of `segments` after `rtt_ms`, with `in_flight` before it and a smoothed round trip of 100 ms.
fn acked(c: &mut TcpController, (segments, in_flight): (u32, u32), at_s: f64, rtt_ms: u64) {
    let event = TcpEvent::Acked { segments, in_flight, rtt: Some(Span::from_millis(rtt_ms)) };
    c.on_feedback(&event, &path(at_s, 100, in_flight));
}

/// A window of `window` after a base delay of 100 ms.
fn grown(window: u32, params: &[(&str, f64)]) -> TcpController {
    let mut c = controller(params);
    // so much at once grows the window to what was in flight and ALLOWED_INCREASE
    let all = 1_000_000;
    acked(&mut c, (all, window), 0.1, 100);
    near(
        c.window(),
        f64::from(window) + params.iter().find(|(name, _)| *name == "allowed_increase").map_or(1.0, |p| p.1),
    );
    c
}

/// Section 2.5: INIT_CWND is 2, whatever TCP might begin with.
#[test]
fn section_2_5_it_begins_with_two_segments() {
    assert_eq!(controller(&[]).window(), 2.0);
}

/// Section 2.4.2: cwnd += GAIN · off_target · acknowledged / cwnd, off_target = (TARGET - queueing delay) / TARGET.
#[test]
fn section_2_4_2_the_window() {
    for (rtt, off_target) in [(100, 1.0), (150, 0.5), (200, 0.0), (250, -0.5), (400, -2.0)] {
        let mut c = grown(20, &[]);
        let before = c.window();
        acked(&mut c, (2, 30), 1.0, rtt);
        near(c.window(), before + off_target * 2.0 / before);
    }
    // the two constants; RFC 7928, 5.4, recommends these
    for (rtt, off_target) in [(100, 1.0), (104, 0.2), (106, -0.2), (110, -1.0)] {
        let mut c = grown(20, &[("target", 0.005), ("gain", 10.0)]);
        let before = c.window();
        acked(&mut c, (2, 30), 1.0, rtt);
        near(c.window(), before + 10.0 * off_target * 2.0 / before);
    }
}

/// Section 2.4.2: no more than what was in flight and ALLOWED_INCREASE, no less than MIN_CWND.
#[test]
fn section_2_4_2_bounds() {
    let mut c = grown(20, &[]);
    acked(&mut c, (1, 12), 1.0, 100);
    assert_eq!(c.window(), 13.0);
    let mut c = grown(20, &[("allowed_increase", 3.0)]);
    acked(&mut c, (1, 12), 1.0, 100);
    assert_eq!(c.window(), 15.0);
    let mut c = grown(4, &[("target", 0.005), ("gain", 10.0)]);
    acked(&mut c, (2, 4), 1.0, 300);
    assert_eq!(c.window(), 2.0);
}

/// Section 2.5: the filter has four samples at the most, and none older than a round trip.
#[test]
fn section_2_5_current_filter() {
    let queue = |times: &[(f64, u64)]| {
        let mut c = grown(20, &[]);
        let before = c.window();
        times.iter().for_each(|&(at, rtt)| acked(&mut c, (0, 30), at, rtt));
        let (at, rtt) = *times.last().unwrap();
        acked(&mut c, (21, 30), at, rtt);
        // the change is 1 - queue / 0.1 s
        (1.0 - (c.window() - before) * before / 21.0) / 10.0
    };
    near(queue(&[(1.0, 180), (1.02, 150), (1.04, 160)]), 0.05);
    near(queue(&[(1.0, 120), (1.01, 180), (1.02, 150), (1.04, 160)]), 0.05); // 120 ms was the fifth
    near(queue(&[(1.0, 120), (1.05, 180), (1.101, 150)]), 0.05); // and here too old
    near(queue(&[(1.0, 120), (1.05, 180), (1.1, 150)]), 0.02);
    near(queue(&[(1.0, 120), (9.0, 180)]), 0.08);
}

/// Section 2.4.2: the base delay is the least of ten minutes.
#[test]
fn section_2_4_2_base_delay() {
    let mut c = grown(20, &[]);
    for minute in 0..10 {
        acked(&mut c, (0, 20), 0.2 + 60.0 * f64::from(minute), 130);
        assert_eq!(gauge(&c, "base_delay"), 0.1, "minute {minute}");
    }
    for _ in 0..4 {
        acked(&mut c, (0, 20), 600.2, 130);
    }
    assert_eq!((gauge(&c, "base_delay"), gauge(&c, "queueing_delay")), (0.13, 0.0));
}

/// Section 2.4.2: a loss halves the window, to two segments at the least; a timeout leaves one. A mark is a loss (section 1.3).
#[test]
fn section_2_4_2_losses() {
    for event in [LOST, TcpEvent::EcnEcho] {
        let mut c = grown(19, &[]);
        for window in [10.0, 5.0, 2.5, 2.0, 2.0] {
            c.on_feedback(&event, &path(1.0, 100, 20));
            assert_eq!(c.window(), window);
        }
    }
    let mut c = grown(19, &[]);
    c.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(1.0, 100, 20));
    assert_eq!(c.window(), 1.0);
    c.on_feedback(&LOST, &path(1.0, 100, 1));
    assert_eq!(c.window(), 1.0, "a loss never makes it larger");
    acked(&mut c, (1, 1), 1.2, 100);
    assert_eq!(c.window(), 2.0);
}
