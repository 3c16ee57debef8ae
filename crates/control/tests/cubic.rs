//! CUBIC's law, event by event: RFC 9438's numbers worked by hand, and the kernel's with its HyStart.

use crate::law::{LOST, acked, controller, gauge, near, path};
use paceline_control::{Controller, Profile, TcpController, TcpEvent, Threshold, WindowController};
use paceline_units::Span;

/// With a window of `window`, in slow start.
fn open(profile: Profile, window: f64) -> TcpController {
    let mut cubic = controller("cubic", profile);
    cubic.on_feedback(&TcpEvent::Established { window }, &path(0.0, 100, 0));
    cubic
}

fn state(cubic: &TcpController) -> (f64, f64, f64) {
    (cubic.window(), cubic.threshold(), gauge(cubic, "w_max"))
}

/// Section 4.6: ssthresh is beta times FlightSize, at least 2; W_max is the window before (4.7).
#[test]
fn rfc_9438_4_6_multiplicative_decrease() {
    for (in_flight, left) in [(100, 70.0), (130, 70.0), (50, 35.0), (2, 2.0)] {
        let mut cubic = open(Profile::Rfc, 100.0);
        cubic.on_feedback(&LOST, &path(1.0, 100, in_flight));
        assert_eq!(state(&cubic), (left, left, 100.0), "{in_flight} in flight");
    }
    // a mark may leave one segment, a loss two
    for (in_flight, cwnd, ssthresh) in [(100, 70.0, 70.0), (2, 1.4, 2.0), (1, 1.0, 2.0)] {
        let mut cubic = open(Profile::Rfc, f64::from(in_flight));
        cubic.on_feedback(&TcpEvent::EcnEcho, &path(1.0, 100, in_flight));
        assert_eq!(state(&cubic), (cwnd, ssthresh, f64::from(in_flight)));
    }
}

/// Section 4.7: below the last maximum W_max is 0.85 of the window, else the window.
#[test]
fn rfc_9438_4_7_fast_convergence() {
    let mut cubic = open(Profile::Rfc, 100.0);
    cubic.on_feedback(&LOST, &path(1.0, 100, 100));
    cubic.on_feedback(&LOST, &path(2.0, 100, 70)); // at 70 < 100
    let (cwnd, _, w_max) = state(&cubic);
    near(cwnd, 49.0);
    near(w_max, 59.5);
    cubic.on_feedback(&TcpEvent::Established { window: 60.0 }, &path(3.0, 100, 60));
    cubic.on_feedback(&LOST, &path(3.0, 100, 60)); // at 60 > 59.5
    assert_eq!(state(&cubic).2, 60.0);
}

/// Sections 4.2 to 4.5. After a loss at 100: K = cbrt(30 / 0.4) = 4.217163 s. The stage begins with the first
/// acknowledgement: W_cubic(0) = 70 is less than W_est = 70 + 9/17/70, Reno's region. A second later W_cubic(1) = 86.680764
/// is more; the window goes 1/cwnd of the way to W_cubic(1.1) = 87.884575.
#[test]
fn rfc_9438_4_2_the_cubic() {
    let mut cubic = open(Profile::Rfc, 100.0);
    cubic.on_feedback(&LOST, &path(9.0, 100, 100));
    acked(&mut cubic, 1, 10.0, 100);
    let begun = 70.0 + 9.0 / 17.0 / 70.0;
    near(cubic.window(), begun);
    acked(&mut cubic, 1, 11.0, 100);
    let gone = (cubic.window() - begun) * begun + begun;
    assert!((gone - 87.884_575).abs() < 1e-5, "target {gone}");
    // by what is acknowledged, and no further than the target
    acked(&mut cubic, 1000, 11.0, 100);
    assert!((cubic.window() - 87.884_575).abs() < 1e-5, "{}", cubic.window());
    // at t + RTT = K: the plateau
    let k = libm::cbrt(75.0);
    acked(&mut cubic, 1000, 10.0 + k - 0.1, 100);
    assert!((cubic.window() - 100.0).abs() < 1e-6, "{}", cubic.window());
    // beyond it: 0.4 (t - K)^3 more, 3.2 after 2 s
    acked(&mut cubic, 1000, 10.0 + k + 1.9, 100);
    assert!((cubic.window() - 103.2).abs() < 1e-6, "{}", cubic.window());
    // at most half a window a round trip, however far the target is
    acked(&mut cubic, 1000, 60.0, 100);
    assert!((cubic.window() - 1.5 * 103.2).abs() < 1e-6, "{}", cubic.window());
}

/// Section 4.3, at a standstill of time: from 7 by 9/17 a window up to cwnd_prior = 10, then by 1.
#[test]
fn rfc_9438_4_3_reno_s_region() {
    let mut cubic = open(Profile::Rfc, 10.0);
    cubic.on_feedback(&LOST, &path(1.0, 1, 10));
    for n in 1..=6 {
        acked(&mut cubic, 100, 1.0, 1);
        near(cubic.window(), 7.0 + 9.0 / 17.0 * f64::from(n));
    }
    let reached = cubic.window(); // 10.18
    acked(&mut cubic, 100, 1.0, 1);
    near(cubic.window(), reached + 1.0);
    near(gauge(&cubic, "w_est"), reached + 1.0);
}

/// Fast convergence does not bring that moment nearer: cwnd_prior is the window, W_max less.
#[test]
fn rfc_9438_4_3_by_the_window_before_and_not_by_w_max() {
    let mut cubic = open(Profile::Rfc, 20.0);
    cubic.on_feedback(&LOST, &path(1.0, 1, 20));
    cubic.on_feedback(&LOST, &path(1.0, 1, 14)); // at 14 < 20: W_max 11.9, the window 9.8
    for n in 1..=7 {
        acked(&mut cubic, 100, 1.0, 1);
        near(cubic.window(), 9.8 + 9.0 / 17.0 * f64::from(n)); // 13.5 with the last: past 11.9, not past 14
    }
    acked(&mut cubic, 100, 1.0, 1);
    acked(&mut cubic, 100, 1.0, 1);
    near(cubic.window(), 9.8 + 9.0 / 17.0 * 8.0 + 1.0);
}

/// Section 4.8: ssthresh by beta; then the plateau lies where congestion avoidance begins. At t = 3 s, 0.1 s ahead:
/// 70 + 0.4 3.1^3 = 81.9164; toward 100 it would have been W_cubic(3.1) = 99.44.
#[test]
fn rfc_9438_4_8_timeout() {
    let mut cubic = open(Profile::Rfc, 100.0);
    cubic.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(1.0, 100, 100));
    assert_eq!((cubic.window(), cubic.threshold()), (1.0, 70.0));
    for _ in 0..69 {
        acked(&mut cubic, 1, 2.0, 100);
    }
    assert_eq!(cubic.window(), 70.0);
    acked(&mut cubic, 1, 10.0, 100);
    assert_eq!(gauge(&cubic, "w_max"), 70.0);
    acked(&mut cubic, 1000, 13.0, 100);
    near(cubic.window(), 81.9164);
    // the next loss's stage is an ordinary one
    cubic.on_feedback(&LOST, &path(14.0, 100, 100));
    acked(&mut cubic, 1, 15.0, 100);
    near(gauge(&cubic, "w_max"), 81.9164);
    // the same segment again leaves the threshold
    cubic.on_feedback(&TcpEvent::Timeout(Threshold::Keep), &path(16.0, 100, 1));
    assert_eq!(cubic.window(), 1.0);
    near(cubic.threshold(), 0.7 * 81.9164);
}

/// Sections 4.2 and 5.8: time in which the window was not used is not the cubic's, on either side of the plateau.
#[test]
fn rfc_9438_5_8_time_without_a_full_window() {
    for (before, pause) in [(2.0, 0.0), (2.0, 30.0), (8.0, 0.0), (8.0, 30.0)] {
        let mut cubic = open(Profile::Rfc, 100.0);
        cubic.on_feedback(&LOST, &path(9.0, 100, 100));
        acked(&mut cubic, 1, 10.0, 100);
        acked(&mut cubic, 1000, 10.0 + before, 100);
        let held = cubic.window();
        for second in 1..=(pause as u32) {
            let at = 10.0 + before + f64::from(second);
            cubic.on_feedback(&TcpEvent::Acked { segments: 1, in_flight: 5, rtt: None }, &path(at, 100, 5));
        }
        assert_eq!(cubic.window(), held);
        acked(&mut cubic, 1000, 10.0 + before + pause + 0.5, 100);
        let d: f64 = before + 0.5 + 0.1 - libm::cbrt(75.0);
        near(cubic.window(), 100.0 + 0.4 * d * d * d);
    }
}

/// RFC 5681 section 4.1 with RFC 9438 section 5.8: after idling slow start up to the threshold, and a stage of its own.
#[test]
fn rfc_5681_4_1_idle() {
    let mut cubic = open(Profile::Rfc, 100.0);
    cubic.on_feedback(&LOST, &path(1.0, 100, 100));
    acked(&mut cubic, 1, 2.0, 100);
    cubic.on_feedback(&TcpEvent::Idle { window: 3.0 }, &path(60.0, 100, 0));
    assert_eq!((cubic.window(), cubic.threshold()), (3.0, 70.0));
    for _ in 0..67 {
        acked(&mut cubic, 2, 60.0, 100);
    }
    assert_eq!(cubic.window(), 70.0);
    acked(&mut cubic, 1, 60.0, 100);
    near(cubic.window(), 70.0 + 9.0 / 17.0 / 70.0);
}

/// A round of `count` acknowledgements of one segment each after `rtt` ms; what they acknowledge has been sent before it.
fn round(cubic: &mut TcpController, from: &mut u32, count: u32, rtt: u64, then: u32) {
    let end = *from + count;
    for _ in 0..count {
        *from += 1;
        let in_flight = cubic.window() as u32;
        let mut path = path(1.0, rtt, in_flight);
        (path.acked, path.next) = (*from, if *from == end { end + then } else { end });
        path.min_rtt = Span::from_millis(40);
        let event = TcpEvent::Acked { segments: 1, in_flight, rtt: Some(Span::from_millis(rtt)) };
        cubic.on_feedback(&event, &path);
    }
}

/// RFC 9406 section 4.2 round by round, worked by hand: 10 segments double to 20; in the next round the eighth sample is 46 ms
/// after 40, so eight acknowledgements count whole and twelve a quarter; then a quarter for four more rounds, and the threshold
/// is the window (RFC 9438 section 4.10).
#[test]
fn rfc_9406_4_2_windows() {
    let mut cubic = open(Profile::Rfc, 10.0);
    let mut from = 1;
    round(&mut cubic, &mut from, 10, 40, 20);
    assert_eq!(cubic.window(), 20.0);
    for (count, then, window) in [(20, 28, 31.0), (28, 36, 38.0), (36, 44, 47.0), (44, 40, 58.0)] {
        round(&mut cubic, &mut from, count, 46, then);
        assert_eq!((cubic.window(), cubic.threshold()), (window, f64::INFINITY));
    }
    round(&mut cubic, &mut from, 40, 46, 40);
    assert_eq!((cubic.window(), cubic.threshold()), (68.0, 68.0));
    // the plateau lies there: at t = 2 s, 0.1 s ahead, 0.4 2.1^3 = 3.7044 beyond it
    acked(&mut cubic, 1, 10.0, 100);
    assert_eq!(gauge(&cubic, "w_max"), 68.0);
    acked(&mut cubic, 1000, 12.0, 100);
    near(cubic.window(), 68.0 + 3.7044);
}

/// RFC 9406 section 4.3: later slow starts know a threshold, and HyStart++ leaves them alone.
#[test]
fn rfc_9406_4_3_only_the_first_slow_start() {
    let mut cubic = open(Profile::Rfc, 100.0);
    cubic.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(1.0, 100, 100));
    let mut from = 200;
    for (count, rtt) in [(10, 40), (20, 80), (39, 120)] {
        round(&mut cubic, &mut from, count, rtt, 40);
    }
    assert_eq!((cubic.window(), cubic.threshold()), (70.0, 70.0));
}

/// Each way of `slow_start`, under each profile: at 40 ms, then at 60, the window of what HyStart sees when it leaves.
#[test]
fn slow_start_is_what_was_chosen() {
    let scheme = paceline_control::registry::scheme("cubic").unwrap();
    for profile in Profile::ALL {
        for (choice, leaves) in [(0.0, false), (1.0, true), (2.0, true), (3.0, false)] {
            let mut cubic = TcpController::new(scheme, profile, &[("slow_start", choice)]).unwrap();
            let mut begun = path(0.0, 40, 0);
            (begun.acked, begun.next) = (1, 1);
            cubic.on_feedback(&TcpEvent::Established { window: 20.0 }, &begun);
            let mut from = 1;
            round(&mut cubic, &mut from, 20, 40, 20);
            for _ in 0..6 {
                round(&mut cubic, &mut from, 20, 60, 20);
            }
            let threshold = cubic.threshold();
            assert_eq!(threshold.is_finite(), leaves, "{profile:?} {choice}: {threshold}");
        }
    }
}

// ---------------------------------------------------------------------- the kernel's

/// `cubictcp_recalc_ssthresh`: 717/1024 of the window, whole segments, whatever is in flight; a timeout forgets the maximum.
#[test]
fn linux_cuts_the_window() {
    let mut cubic = open(Profile::Linux, 100.0);
    cubic.on_feedback(&LOST, &path(1.0, 100, 10));
    assert_eq!(state(&cubic), (70.0, 70.0, 100.0));
    cubic.on_feedback(&LOST, &path(2.0, 100, 10)); // 70 * 1741 / 2048 = 59.5
    assert_eq!(state(&cubic), (49.0, 49.0, 59.0));
    cubic.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(3.0, 100, 10));
    let (window, threshold, w_max) = state(&cubic);
    assert!((window, threshold) == (1.0, 34.0) && w_max.is_nan(), "{w_max}");
    let mut narrow = open(Profile::Linux, 2.0);
    narrow.on_feedback(&LOST, &path(1.0, 100, 2));
    assert_eq!(state(&narrow), (2.0, 2.0, 2.0));
}

/// `bictcp_update` after a loss at 100: K = cbrt(30 / (410/1024)) = 4.2158 s, a least round trip ahead the cubic is 27 whole
/// segments below the maximum, at 73: a segment for every 70 / 3 acknowledged.
#[test]
fn linux_counts_acknowledged_segments() {
    let mut cubic = open(Profile::Linux, 100.0);
    acked(&mut cubic, 0, 0.5, 100);
    cubic.on_feedback(&LOST, &path(1.0, 100, 100));
    for n in 1..=23 {
        acked(&mut cubic, 1, 2.0, 100);
        assert_eq!(cubic.window(), if n < 23 { 70.0 } else { 71.0 }, "{n}");
    }
    // never faster than a segment for every two, and 1 % of that on the plateau
    let mut far = open(Profile::Linux, 100.0);
    far.on_feedback(&LOST, &path(1.0, 100, 100));
    acked(&mut far, 1, 2.0, 100);
    for _ in 0..40 {
        acked(&mut far, 1, 60.0, 100);
    }
    assert!((89.0..=91.0).contains(&far.window()), "{}", far.window());
}

/// Before the first loss a segment for at most 20 (`bictcp_update`: no last maximum).
#[test]
fn linux_before_the_first_loss() {
    let mut cubic = open(Profile::Linux, 30.0);
    hystart(&mut cubic, 40, 60, 9, 0.0, 0.005); // slow start ends without a loss
    let from = cubic.window();
    assert_eq!(cubic.threshold(), from);
    for _ in 0..20 {
        acked(&mut cubic, 1, 1.0, 40);
    }
    assert_eq!(cubic.window(), from + 1.0);
}

/// A round of samples of `min_rtt` ms, then one of `rtt` ms, `gap` seconds from acknowledgement to acknowledgement.
fn hystart(cubic: &mut TcpController, min_rtt: u64, rtt: u64, samples: u32, at: f64, gap: f64) {
    let ack = |segment: u32, rtt: u64, at: f64, cubic: &mut TcpController| {
        let in_flight = 5; // the window stands still
        let mut path = path(at, rtt, in_flight);
        (path.acked, path.next) = (segment, segment + 100);
        let event = TcpEvent::Acked { segments: 1, in_flight, rtt: Some(Span::from_millis(rtt)) };
        cubic.on_feedback(&event, &path);
    };
    // the connection's first round ends beyond segment 100, where its SYN left it
    ack(101, min_rtt, at, cubic);
    for n in 0..samples {
        ack(202 + n, rtt, at + 1.0 + gap * f64::from(n), cubic);
    }
}

/// Ha and Rhee, section 4: a round's least delay that is an eighth above the path's, within 4 and 16 ms, ends slow start; of
/// eight samples, from a window of 16 on.
#[test]
fn linux_hystart_by_the_delay() {
    for (min_rtt, rtt, ends) in [
        (40, 45, false),
        (40, 46, true), // 40 + 5
        (10, 14, false),
        (10, 15, true), // 10 + 4, the least
        (200, 216, false),
        (200, 217, true), // 200 + 16, the most
    ] {
        for (window, samples, looked) in [(16.0, 9, true), (16.0, 8, false), (15.0, 9, false)] {
            let mut cubic = open(Profile::Linux, window);
            hystart(&mut cubic, min_rtt, rtt, samples, 0.0, 0.005);
            let threshold = if ends && looked { window } else { f64::INFINITY };
            assert_eq!(cubic.threshold(), threshold, "{min_rtt} {rtt} ms, window {window}, {samples} samples");
        }
    }
}

/// A train of acknowledgements, 2 ms apart at most, that lasts longer than half the least delay and half a millisecond.
#[test]
fn linux_hystart_by_the_train() {
    // 40 ms: 20.5 ms, reached with the 22nd at a millisecond's gap
    for (samples, gap, ends) in [(21, 0.001, false), (22, 0.001, true), (60, 0.0025, false), (12, 0.002, true)] {
        let mut cubic = open(Profile::Linux, 16.0);
        hystart(&mut cubic, 40, 40, samples, 0.0, gap);
        assert_eq!(cubic.threshold().is_finite(), ends, "{samples} acknowledgements, {gap} s apart");
    }
}

/// Once it has ended slow start, HyStart rests until a timeout.
#[test]
fn linux_hystart_after_a_timeout() {
    let mut cubic = open(Profile::Linux, 16.0);
    hystart(&mut cubic, 40, 60, 9, 0.0, 0.005);
    assert_eq!(cubic.threshold(), 16.0);
    cubic.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(3.0, 40, 16));
    assert_eq!((cubic.window(), cubic.threshold()), (1.0, 11.0));
}
