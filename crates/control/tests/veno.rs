//! Veno's law, event by event: which cut, which growth, which base round-trip time, under each profile.

use crate::law;

use law::{LOST, gauge};
use paceline_control::{Controller, PathView, Profile, TcpController, TcpEvent, Threshold, WindowController, registry};
use paceline_units::Span;

fn veno(profile: Profile, params: &[(&str, f64)]) -> TcpController {
    TcpController::new(registry::scheme("veno").unwrap(), profile, params).unwrap()
}

/// A path with that smoothed round-trip time and so many segments in flight.
fn path(srtt_ms: u64, in_flight: u32) -> PathView {
    law::path(1.0, srtt_ms, in_flight)
}

fn acked(rtt_ms: Option<u64>, in_flight: u32) -> TcpEvent {
    TcpEvent::Acked { segments: 1, in_flight, rtt: rtt_ms.map(Span::from_millis) }
}

/// With a window of `window`, of which all is in flight, in congestion avoidance, and a base of `base_ms`.
fn open(profile: Profile, params: &[(&str, f64)], window: u32, base_ms: u64) -> TcpController {
    let mut veno = veno(profile, params);
    veno.on_feedback(&TcpEvent::Established { window: f64::from(window) }, &path(base_ms, 0));
    // Linux wants three samples; the window is not used, so none of them lets it grow
    for _ in 0..3 {
        veno.on_feedback(&acked(Some(base_ms), 0), &path(base_ms, 0));
    }
    veno
}

/// Equation (3): 4/5 with fewer than three segments in the queue, 1/2 with three or more.
#[test]
fn the_paper_cuts_by_the_queue() {
    for (srtt, factor) in [(100, 0.8), (117, 0.8), (118, 0.5), (200, 0.5)] {
        let mut veno = open(Profile::Rfc, &[], 20, 100);
        // N = 20 (srtt - 100) / srtt: 2.906 at 117 ms, 3.051 at 118 ms
        let path = path(srtt, 20);
        veno.on_feedback(&LOST, &path);
        assert!((gauge(&veno, "backlog") - 20.0 * (srtt as f64 - 100.0) / srtt as f64).abs() < 1e-9);
        assert_eq!((veno.window(), veno.threshold()), (20.0 * factor, 20.0 * factor), "{srtt} ms");
    }
}

#[test]
fn the_thresholds_are_parameters() {
    let params = [("beta", 5.0), ("theta1", 0.9), ("theta2", 0.6)];
    for (srtt, factor) in [(120, 0.9), (140, 0.6)] {
        let mut veno = open(Profile::Rfc, &params, 20, 100);
        veno.on_feedback(&LOST, &path(srtt, 20));
        assert!((veno.window() - 20.0 * factor).abs() < 1e-9, "{srtt} ms: {}", veno.window());
    }
}

/// RFC 5681 equation (4): what is in flight counts, if it is less than the window; never below 2.
#[test]
fn the_cut_is_of_what_is_in_flight() {
    let mut veno = open(Profile::Rfc, &[], 20, 100);
    veno.on_feedback(&LOST, &path(100, 10));
    assert_eq!(veno.window(), 8.0);
    let mut veno = open(Profile::Rfc, &[], 2, 100);
    veno.on_feedback(&LOST, &path(100, 2));
    assert_eq!(veno.window(), 2.0);
}

#[test]
fn timeouts_and_marks_are_no_random_losses() {
    let mut veno = open(Profile::Rfc, &[], 20, 100);
    veno.on_feedback(&TcpEvent::Timeout(Threshold::Cut), &path(100, 20));
    assert_eq!((veno.window(), veno.threshold()), (1.0, 10.0));
    let mut veno = open(Profile::Rfc, &[], 20, 100);
    veno.on_feedback(&TcpEvent::EcnEcho, &path(100, 20));
    assert_eq!(veno.window(), 10.0);
}

/// Equation (2)'s base is forgotten at each loss, by duplicates or by timeout; a parameter keeps it.
#[test]
fn the_base_is_forgotten_at_a_loss() {
    for loss in [LOST, TcpEvent::Timeout(Threshold::Cut)] {
        for (params, base) in [(&[][..], 150.0), (&[("base_reset", 0.0)][..], 100.0)] {
            let mut veno = open(Profile::Rfc, params, 20, 100);
            veno.on_feedback(&loss, &path(150, 20));
            veno.on_feedback(&acked(Some(150), 0), &path(150, 5));
            assert!((gauge(&veno, "base_rtt") * 1e3 - base).abs() < 1e-9, "{loss:?} {params:?}");
        }
    }
    // right after a loss, before the next sample, the last estimate of N stands: here 20/3 segments
    let mut veno = open(Profile::Rfc, &[], 20, 100);
    veno.on_feedback(&LOST, &path(150, 20));
    veno.on_feedback(&LOST, &path(150, 10));
    assert_eq!(veno.window(), 5.0);
}

/// Without the parameter the window grows as Reno's; with it by every other acknowledgement while N >= beta.
#[test]
fn slower_growth_is_an_option() {
    for (slow, srtt, growth) in [(0.0, 200, 10.0), (1.0, 200, 5.0), (1.0, 105, 10.0)] {
        let mut veno = open(Profile::Rfc, &[("slow_growth", slow), ("base_reset", 0.0)], 40, 100);
        veno.on_feedback(&LOST, &path(srtt, 40)); // out of slow start
        let before = veno.window();
        for _ in 0..10 {
            let window = veno.window();
            veno.on_feedback(&acked(None, window as u32), &path(srtt, window as u32));
        }
        let steps = (veno.window() - before) * before;
        assert!((steps / growth - 1.0).abs() < 0.25, "slow {slow} srtt {srtt}: {steps} steps");
    }
}

/// `tcp_veno_ssthresh`: whole segments, 4/5 or 1/2, at least 2, timeouts too; N from the least sample since the last
/// look.
#[test]
fn linux_cuts_by_the_queue() {
    for profile in [Profile::Ns2Linux, Profile::Linux] {
        // N has one binary digit and is rounded up: 2.5 at 114 ms, 3 at 115 ms
        for (rtt, after) in [(100, 16.0), (114, 16.0), (115, 10.0), (200, 10.0)] {
            for (loss, window) in [(LOST, after), (TcpEvent::Timeout(Threshold::Cut), 1.0)] {
                let mut veno = open(profile, &[("slow_growth", 1.0)], 20, 100);
                veno.on_feedback(&LOST, &path(100, 20)); // out of slow start, at 16
                veno.on_feedback(&TcpEvent::Recovered { at_most: f64::INFINITY }, &path(100, 16));
                for _ in 0..200 {
                    let window = veno.window() as u32;
                    if window == 20 {
                        break;
                    }
                    veno.on_feedback(&acked(Some(100), window), &path(100, window));
                }
                assert_eq!(veno.window(), 20.0);
                veno.on_feedback(&acked(Some(rtt), 20), &path(rtt, 20));
                let (cwnd, n) = (veno.window(), gauge(&veno, "backlog"));
                assert!((n - 20.0 * (rtt as f64 - 100.0) / rtt as f64).abs() < 0.5, "{n}");
                veno.on_feedback(&loss, &path(rtt, 20));
                assert_eq!(
                    (cwnd, veno.window(), veno.threshold()),
                    (20.0, window, after),
                    "{profile:?} {rtt} {loss:?}"
                );
            }
        }
    }
}

/// One segment per window of acknowledgements below beta, one per two windows from beta on.
#[test]
fn linux_grows_slower_with_a_queue() {
    for profile in [Profile::Ns2Linux, Profile::Linux] {
        let grown = |rtt: u64, slow: f64| {
            let mut veno = open(profile, &[("slow_growth", slow)], 25, 100);
            veno.on_feedback(&LOST, &path(100, 25)); // at 20
            veno.on_feedback(&TcpEvent::Recovered { at_most: f64::INFINITY }, &path(100, 20));
            for _ in 0..400 {
                let window = veno.window() as u32;
                veno.on_feedback(&acked(Some(rtt), window), &path(rtt, window));
            }
            veno.window() - 20.0
        };
        let (fast, slow, without) = (grown(100, 1.0), grown(200, 1.0), grown(200, 0.0));
        assert_eq!(fast, without, "{profile:?}");
        assert!((13.0..=15.0).contains(&fast), "{profile:?}: 400 acknowledgements of windows from 20 on: {fast}");
        assert!((7.0..=9.0).contains(&slow), "{profile:?}: {slow}");
    }
}

/// Under Linux the connection's least round trip stays the base through losses; idling makes a new one.
#[test]
fn linux_keeps_the_base() {
    let mut veno = open(Profile::Linux, &[], 20, 100);
    veno.on_feedback(&LOST, &path(150, 20));
    veno.on_feedback(&TcpEvent::Recovered { at_most: f64::INFINITY }, &path(150, 16));
    veno.on_feedback(&acked(Some(150), 16), &path(150, 16));
    assert!((gauge(&veno, "base_rtt") - 0.100_001).abs() < 1e-9); // tcp_veno_pkts_acked adds a microsecond
    veno.on_feedback(&TcpEvent::Resumed { idle: Span::from_secs(1), app_limited: true }, &path(150, 0));
    veno.on_feedback(&acked(Some(150), 16), &path(150, 16));
    assert!((gauge(&veno, "base_rtt") - 0.150_001).abs() < 1e-9);
}
