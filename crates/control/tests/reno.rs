//! Reno's window, event by event, under each profile. The schemes `tahoe`, `reno`, `newreno` and `sack` share it.

use crate::law::{LOST, acked, controller, near, path};
use paceline_control::{Controller, Profile, TcpController, TcpEvent, Threshold, WindowController};

/// With a window of `window`; in slow start.
fn open(profile: Profile, window: f64) -> TcpController {
    let mut reno = controller("newreno", profile);
    reno.on_feedback(&TcpEvent::Established { window }, &path(0.0, 100, 0));
    reno
}

/// In congestion avoidance at `window`, which was twice that.
fn avoiding(profile: Profile, window: u32) -> TcpController {
    let mut reno = open(profile, f64::from(2 * window));
    reno.on_feedback(&LOST, &path(0.0, 100, 2 * window));
    reno.on_feedback(&TcpEvent::Recovered { at_most: f64::INFINITY }, &path(0.0, 100, window));
    reno
}

fn state(reno: &TcpController) -> (f64, f64) {
    (reno.window(), reno.threshold())
}

#[test]
fn the_four_schemes_share_the_window() {
    for profile in [Profile::Rfc, Profile::Linux] {
        let windows = ["tahoe", "reno", "newreno", "sack"].map(|scheme| {
            let mut reno = controller(scheme, profile);
            reno.on_feedback(&TcpEvent::Established { window: 10.0 }, &path(0.0, 100, 0));
            acked(&mut reno, 2, 0.1, 100);
            reno.on_feedback(&LOST, &path(0.2, 100, 10));
            acked(&mut reno, 2, 0.3, 100);
            state(&reno)
        });
        assert!(windows.iter().all(|w| *w == windows[0]), "{windows:?}");
    }
}

/// RFC 5681 equation (2), by one segment an acknowledgement; section 3.1 beyond the threshold, by what is acknowledged and one
/// segment at most.
#[test]
fn rfc_grows() {
    let mut reno = open(Profile::Rfc, 10.0);
    acked(&mut reno, 1, 0.1, 100);
    acked(&mut reno, 2, 0.1, 100);
    assert_eq!(reno.window(), 12.0);
    let mut reno = avoiding(Profile::Rfc, 10);
    acked(&mut reno, 1, 0.1, 100);
    near(reno.window(), 10.1);
    acked(&mut reno, 2, 0.1, 100);
    near(reno.window(), 10.1 + 2.0 / 10.1);
    let before = reno.window();
    acked(&mut reno, 500, 0.1, 100);
    near(reno.window(), before + 1.0);
    // a window of acknowledgements: about a segment
    let mut reno = avoiding(Profile::Rfc, 20);
    for _ in 0..20 {
        acked(&mut reno, 1, 0.2, 100);
    }
    assert!((20.95..21.0).contains(&reno.window()), "{}", reno.window());
}

/// RFC 7661 section 4.3: a window that is not used does not grow; one segment less than the window is used.
#[test]
fn rfc_grows_only_a_window_in_use() {
    for (in_flight, grown) in [(8, 10.0), (9, 10.0), (10, 11.0)] {
        let mut reno = open(Profile::Rfc, 10.0);
        reno.on_feedback(&TcpEvent::Acked { segments: 1, in_flight, rtt: None }, &path(0.1, 100, in_flight));
        assert_eq!(reno.window(), grown, "{in_flight}");
    }
}

/// Equation (4): max(FlightSize / 2, 2), and no more than the window's half.
#[test]
fn rfc_cuts() {
    for (window, in_flight, left) in [(10.0, 10, 5.0), (10.0, 7, 3.5), (10.0, 30, 5.0), (3.0, 3, 2.0), (1.0, 1, 2.0)] {
        let mut reno = open(Profile::Rfc, window);
        reno.on_feedback(&LOST, &path(0.1, 100, in_flight));
        assert_eq!(state(&reno), (left, left), "{window} {in_flight}");
        let mut reno = open(Profile::Rfc, window);
        reno.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(0.1, 100, in_flight));
        assert_eq!(state(&reno), (1.0, left), "{window} {in_flight}: the loss window");
        reno.on_feedback(&TcpEvent::Timeout(Threshold::Keep), &path(0.1, 100, 1));
        assert_eq!(state(&reno), (1.0, left), "{window} {in_flight}: the same segment");
    }
}

/// RFC 3168 section 6.1.2: a mark halves as a loss does, but the window may go down to one.
#[test]
fn rfc_answers_marks() {
    for (in_flight, cwnd, ssthresh) in [(10, 5.0, 5.0), (3, 1.5, 2.0), (2, 1.0, 2.0), (1, 1.0, 2.0)] {
        let mut reno = open(Profile::Rfc, f64::from(in_flight));
        reno.on_feedback(&TcpEvent::EcnEcho, &path(0.1, 100, in_flight));
        assert_eq!(state(&reno), (cwnd, ssthresh), "{in_flight}");
    }
}

/// RFC 6582 section 3.2 step 3 (1), RFC 5681 section 4.1.
#[test]
fn rfc_ends_recovery_and_restarts() {
    let mut reno = avoiding(Profile::Rfc, 10);
    reno.on_feedback(&TcpEvent::Deflate { segments: 4 }, &path(0.1, 100, 10));
    assert_eq!(state(&reno), (6.0, 10.0));
    reno.on_feedback(&TcpEvent::Recovered { at_most: 3.0 }, &path(0.1, 100, 2));
    assert_eq!(state(&reno), (3.0, 10.0));
    reno.on_feedback(&TcpEvent::Recovered { at_most: 30.0 }, &path(0.1, 100, 29));
    assert_eq!(state(&reno), (10.0, 10.0));
    reno.on_feedback(&TcpEvent::Idle { window: 3.0 }, &path(9.0, 100, 0));
    assert_eq!(state(&reno), (3.0, 10.0));
    reno.on_feedback(&TcpEvent::Idle { window: 30.0 }, &path(19.0, 100, 0));
    assert_eq!(state(&reno), (3.0, 10.0));
}

/// `windowOption_` 1 of `tcp.cc`: a segment, or 1/cwnd, for each acknowledgement; ssthresh is an int.
#[test]
fn ns2_counts_acknowledgements() {
    let mut reno = open(Profile::Ns2, 10.0);
    acked(&mut reno, 2, 0.1, 100);
    assert_eq!(reno.window(), 11.0);
    reno.on_feedback(&LOST, &path(0.1, 100, 4));
    assert_eq!(state(&reno), (5.5, 5.0), "of cwnd, whatever is in flight");
    acked(&mut reno, 2, 0.2, 100);
    near(reno.window(), 5.5 + 1.0 / 5.5);
    reno.on_feedback(&TcpEvent::Recovered { at_most: 3.0 }, &path(0.1, 100, 2));
    near(reno.window(), 5.5 + 1.0 / 5.5);
}

/// `tcp_reno_cong_avoid` with `tcp_slow_start` and `tcp_cong_avoid_ai`: whole segments, by what is acknowledged; what slow
/// start leaves over counts for avoidance.
#[test]
fn linux_grows_by_what_is_acknowledged() {
    let mut reno = open(Profile::Linux, 10.0);
    acked(&mut reno, 4, 0.1, 100);
    assert_eq!(reno.window(), 14.0);
    let mut reno = avoiding(Profile::Linux, 10);
    for grown in [10.0, 10.0, 10.0, 11.0, 11.0, 11.0, 12.0] {
        acked(&mut reno, 3, 0.1, 100); // 3, 6, 9, 12: one and 2 left, 5, 8, 11: one
        assert_eq!(reno.window(), grown);
    }
    reno.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(0.1, 100, 12));
    assert_eq!(state(&reno), (1.0, 6.0));
    for grown in [4.0, 6.0, 6.0, 7.0] {
        acked(&mut reno, 3, 0.2, 100); // up to the threshold, one left over; four; seven: one and one left
        assert_eq!(reno.window(), grown);
    }
}

/// `tcp_reno_ssthresh`, `tcp_undo_cwnd_reduction`, `tcp_current_ssthresh`.
#[test]
fn linux_cuts_whole_segments_and_may_undo() {
    for (window, left) in [(11.0, 5.0), (10.0, 5.0), (3.0, 2.0)] {
        let mut reno = open(Profile::Linux, window);
        reno.on_feedback(&LOST, &path(0.1, 100, 2));
        assert_eq!(state(&reno), (left, left), "of cwnd, whatever is in flight");
        reno.on_feedback(&TcpEvent::Undo { window, threshold: 70.0 }, &path(0.1, 100, 2));
        assert_eq!(state(&reno), (window, 70.0));
    }
    let mut reno = avoiding(Profile::Linux, 8);
    reno.on_feedback(&TcpEvent::Established { window: 20.0 }, &path(0.1, 100, 0));
    reno.on_feedback(&TcpEvent::Idle { window: 10.0 }, &path(9.0, 100, 0));
    assert_eq!(state(&reno), (10.0, 15.0), "three quarters of what it was");
}

/// Linux 2.6.22 with `sysctl_tcp_abc` 1: the machine brings the window down to a quarter and back to the half.
#[test]
fn ns2_linux_halves_by_rate_halving() {
    let mut reno = open(Profile::Ns2Linux, 20.0);
    reno.on_feedback(&LOST, &path(0.1, 100, 20));
    assert_eq!(state(&reno), (5.0, 10.0));
    reno.on_feedback(&TcpEvent::Recovered { at_most: 8.0 }, &path(0.2, 100, 5));
    assert_eq!(state(&reno), (8.0, 10.0));
}
