//! The laws of RAP and TFRCP, step by step, against their equations worked out by hand.

use paceline_control::registry::scheme;
use paceline_control::{AckController, AckEvent, AcksController, Controller, PathView, Profile};
use paceline_units::{Span, Time};

const RTT: Span = Span::from_millis(100);

fn path(now: Time, next: u32) -> PathView {
    let (srtt, rttvar) = (RTT, Span::from_millis(10));
    PathView {
        now,
        srtt,
        rttvar,
        min_rtt: RTT,
        in_flight: 0,
        acked: next,
        next,
        receive_window: u32::MAX,
        segment: 1000,
    }
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

/// Started at 0 and answered at 100 ms: a packet a round trip.
fn answered(name: &str, profile: Profile, given: &[(&str, f64)]) -> AcksController {
    let mut c = AcksController::new(scheme(name).unwrap(), profile, given).unwrap();
    c.on_feedback(&AckEvent::Started, &PathView { srtt: Span::ZERO, ..path(Time::ZERO, 0) });
    assert!((c.rate() - 0.5).abs() < 1e-12, "a packet in 2 s");
    c.on_sent();
    c.on_feedback(&AckEvent::Acked { rtt: Some(RTT), packets: 1 }, &path(ms(100), 1));
    assert!((c.rate() - 10.0).abs() < 1e-9, "a packet a round trip");
    c
}

fn send(c: &mut AcksController, packets: u32) {
    (0..packets).for_each(|_| c.on_sent());
}

fn lose(c: &mut AcksController, now: Time, newest: u32, next: u32) {
    c.on_feedback(&AckEvent::Lost { packets: 1, newest }, &path(now, next));
}

#[test]
fn rap_adds_a_packet_a_round_trip_in_each() {
    let mut c = answered("rap", Profile::Rfc, &[]);
    for n in 1..50_u32 {
        let end = c.next_timer().unwrap();
        assert_eq!(end, ms(100 + 100 * u64::from(n)), "a step is a round trip from the first answer");
        send(&mut c, n);
        c.on_timer(&path(end, 0));
        assert!((c.rate() - 10.0 * f64::from(n + 1)).abs() < 1e-6, "{n}: {}", c.rate());
    }
}

#[test]
fn raps_first_step_is_of_2_s_in_ns2() {
    let c = answered("rap", Profile::Ns2, &[]);
    assert_eq!(c.next_timer(), Some(ms(2000)));
}

#[test]
fn rap_grows_only_if_half_of_what_it_allowed_was_sent() {
    let mut c = answered("rap", Profile::Rfc, &[]);
    for (sent, rate) in [(1, 20.0), (1, 30.0), (1, 30.0), (2, 40.0), (0, 40.0)] {
        let end = c.next_timer().unwrap();
        send(&mut c, sent);
        c.on_timer(&path(end, 0));
        assert!((c.rate() - rate).abs() < 1e-6, "{} after {sent}", c.rate());
    }
}

#[test]
fn rap_halves_once_for_a_cluster_and_begins_a_step() {
    let mut c = answered("rap", Profile::Rfc, &[("beta", 0.25)]);
    lose(&mut c, ms(150), 5, 20);
    assert!((c.rate() - 2.5).abs() < 1e-9);
    assert_eq!(c.next_timer(), Some(ms(250)));
    // under way at the cut: the same cluster
    lose(&mut c, ms(160), 19, 22);
    assert!((c.rate() - 2.5).abs() < 1e-9);
    lose(&mut c, ms(170), 20, 23);
    assert!((c.rate() - 0.625).abs() < 1e-9);
    // never less than a packet in 64 s
    for i in 0..100 {
        lose(&mut c, ms(200), 100 + i, 100 + i);
    }
    assert_eq!(c.rate(), 1.0 / 64.0);
}

#[test]
fn raps_fine_grain_stretches_gaps_while_the_queue_builds_up() {
    let mut c = answered("rap", Profile::Rfc, &[("fine_grain", 1.0)]);
    let longer = AckEvent::Acked { rtt: Some(RTT * 2), packets: 1 };
    c.on_feedback(&longer, &path(ms(200), 2));
    // FRTT 0.1 * 100 + 0.9 * 200 ms, XRTT 0.99 * 100 + 0.01 * 200 ms
    assert!((c.rate() - 10.0 * 101.0 / 190.0).abs() < 1e-6, "{}", c.rate());
}

#[test]
fn tfrcp_doubles_without_loss_and_takes_the_equation_with_one() {
    let mut c = answered("tfrcp", Profile::Rfc, &[]);
    let mut now = 2100;
    let known = AckEvent::Acked { rtt: None, packets: 99 };
    for rate in [20.0, 40.0, 80.0] {
        assert_eq!(c.next_timer(), Some(ms(now)), "rounds of 2 s from the first answer");
        send(&mut c, 100);
        c.on_feedback(&known, &path(ms(now), 0));
        c.on_timer(&path(ms(now), 0));
        assert!((c.rate() - rate).abs() < 1e-6, "{}", c.rate());
        now += 2000;
    }
    // too little was sent for it to double; nothing became known
    c.on_feedback(&known, &path(ms(now), 0));
    c.on_timer(&path(ms(now), 0));
    c.on_timer(&path(ms(now + 2000), 0));
    assert!((c.rate() - 80.0).abs() < 1e-6);
    // one of a hundred: R 0.1 s, T_0 1 s at least
    send(&mut c, 100);
    c.on_feedback(&known, &path(ms(now), 0));
    lose(&mut c, ms(now), 5, 0);
    c.on_timer(&path(ms(now + 4000), 0));
    let p: f64 = 0.01;
    let by_hand = 1.0 / (0.1 * (2.0 * p / 3.0).sqrt() + 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p));
    assert!((c.rate() / by_hand - 1.0).abs() < 1e-9, "{} {by_hand}", c.rate());
}

/// Padhye, Firoiu, Towsley and Kurose, SIGCOMM 1998, equation 30; T_0 is SRTT + 4 RTTVAR (RFC 6298), b what an ACK covers.
#[test]
fn tfrcps_equation_has_the_timeout_and_the_acks_of_its_tcp() {
    let after_a_loss = |given: &[(&str, f64)]| {
        let mut c = answered("tfrcp", Profile::Rfc, given);
        send(&mut c, 100);
        c.on_feedback(&AckEvent::Acked { rtt: None, packets: 98 }, &path(ms(2100), 0));
        lose(&mut c, ms(2100), 5, 0);
        c.on_timer(&path(ms(2100), 0));
        c.rate()
    };
    let by_hand = |t0: f64, b: f64| {
        let p: f64 = 0.01;
        1.0 / (0.1 * (2.0 * b * p / 3.0).sqrt() + t0 * 3.0 * (3.0 * b * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p))
    };
    for (given, t0, b) in [
        (&[("min_timeout", 0.0)][..], 0.140, 1.0),
        (&[("min_timeout", 0.2)], 0.2, 1.0),
        (&[("packets_per_ack", 2.0)], 1.0, 2.0),
    ] {
        let (got, expected) = (after_a_loss(given), by_hand(t0, b));
        assert!((got / expected - 1.0).abs() < 1e-9, "{given:?}: {got} {expected}");
    }
}
