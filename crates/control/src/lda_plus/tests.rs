//! The paper's equations by hand: packets of 1000 bytes, reports five seconds apart unless noted, R = 1 Mbit/s. A
//! property test checks that no report drives the rate out of its bounds.

use super::*;
use crate::ParameterError;
use paceline_units::{Ratio, Size, Time};
use proptest::prelude::*;

const R: f64 = 125_000.0;

struct Script(LdaPlus);

fn build(given: &[(&str, f64)]) -> Result<LdaPlus, ParameterError> {
    let values = LdaPlus::SCHEMES[0].values(Profile::Rfc, given)?;
    Ok(LdaPlus::build(Profile::Rfc, &values))
}

fn path() -> PathView {
    PathView {
        now: Time::ZERO,
        srtt: Span::ZERO,
        rttvar: Span::ZERO,
        min_rtt: Span::ZERO,
        in_flight: 0,
        acked: 0,
        next: 0,
        receive_window: 0,
        segment: 960,
    }
}

fn report(loss: f64, rtt: f64) -> RtpReport {
    RtpReport {
        loss: Ratio(loss),
        rtt: Some(Span::from_secs_f64(rtt)),
        since: Span::from_secs(5),
        bottleneck: None,
        interval: Interval::Used,
    }
}

impl Script {
    /// A controller that has started, at the rate `rate` in bytes a second.
    fn at(rate: f64, given: &[(&str, f64)]) -> Script {
        let mut controller = build(given).unwrap();
        let session = RtpSession { packet: Size::from_bytes(1000), interval: Span::from_secs(5) };
        controller.on_feedback(&RtpEvent::Started(session), &path());
        controller.rate = rate;
        Script(controller)
    }

    fn report(&mut self, report: RtpReport) -> f64 {
        self.0.on_feedback(&RtpEvent::Report(report), &path());
        self.0.rate()
    }
}

const KNOWN: (&str, f64) = ("bottleneck", 8.0 * R);

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-6, "{got} is not {expected}");
}

#[test]
fn it_begins_with_ten_packets_a_second() {
    assert_eq!(Script::at(0.0, &[]).0.initial_rate, 10.0);
    let mut controller = build(&[]).unwrap();
    let session = RtpSession { packet: Size::from_bytes(1000), interval: Span::from_secs(5) };
    controller.on_feedback(&RtpEvent::Started(session), &path());
    assert_eq!(controller.rate(), 10_000.0);
    assert_eq!(controller.increase, 625.0, "5 kbit/s");
}

#[test]
fn equations_4_5_and_10_the_additive_increase() {
    // (2 - 0.08) * 625 = 1200; then (2 - 11200/125000) * 1200 = 2292.48
    let mut s = Script::at(10_000.0, &[KNOWN]);
    close(s.report(report(0.0, 0.1)), 11_200.0);
    close(s.report(report(0.0, 0.1)), 13_492.48);
    close(s.0.increase, 2292.48);
}

#[test]
fn equation_6_the_increase_converges_to_zero_at_the_bottleneck() {
    // r = 0.9 R: (1 - exp(-0.1)) * 112500 = 10705.790; A was large
    let mut s = Script::at(0.9 * R, &[KNOWN]);
    s.0.increase = 1e9;
    close(s.report(report(0.0, 0.1)), 112_500.0 + 10_705.790_471);
    let mut s = Script::at(R, &[KNOWN]);
    assert_eq!(s.report(report(0.0, 0.1)), R);
}

#[test]
fn equations_7_and_8_the_increase_of_a_tcp() {
    // T = 5 s, tau = 2 s: (2.5 + 1) / 4 = 0.875 packets/s; as a sum, 0 + 1 + ... + T/tau over T for whole T/tau:
    let sum = |rounds: u32| f64::from((1..=rounds).sum::<u32>());
    close(of_tcp(5.0, 0.5), sum(10) / 5.0);
    let mut s = Script::at(10_000.0, &[KNOWN]);
    s.0.increase = 1e9;
    close(s.report(report(0.0, 2.0)), 10_875.0);
    // with the flow's own packet size
    let mut s = Script::at(10_000.0, &[KNOWN]);
    s.0.packet = 100.0;
    s.0.increase = 1e9;
    close(s.report(report(0.0, 2.0)), 10_087.5);
    // over several report intervals after lost reports: T is the time that has passed
    let mut s = Script::at(10_000.0, &[KNOWN]);
    s.0.increase = 1e9;
    close(s.report(RtpReport { since: Span::from_secs(15), ..report(0.0, 4.0) }), 10_000.0 + 4750.0 / 8.0);
}

#[test]
fn equation_9_takes_the_least_of_the_three() {
    let mut s = Script::at(10_000.0, &[KNOWN]);
    // additive 1200, convergent 6014.8, of TCP 255000
    s.report(report(0.0, 0.1));
    close(s.0.increase, 1200.0);
}

#[test]
fn equation_1_the_rate_of_a_tcp() {
    let s = |given: &[(&str, f64)], rtt: f64| {
        let mut script = Script::at(10_000.0, given);
        script.0.rtt = Some(Span::from_secs_f64(rtt));
        script.0
    };
    // tau sqrt(2/300) = 8.16497 ms; 0.4 * 3 sqrt(3/800) * 0.01 * 1.0032 = 0.73720 ms
    close(s(&[], 0.1).tcp_rate(0.01).unwrap(), 112_332.234_363);
    // the share of timeouts is at most 1: tau sqrt(1/3) + 0.4 * 0.5 * 9 = 1.857735
    close(s(&[], 0.1).tcp_rate(0.5).unwrap(), 538.289899);
    // D = 2, and t_out of at least a second
    close(s(&[("per_ack", 2.0)], 0.1).tcp_rate(0.01).unwrap(), 79_430.884_664);
    close(s(&[("min_rto", 1.0)], 0.1).tcp_rate(0.01).unwrap(), 99_920.444_424);
    assert_eq!(Script::at(10_000.0, &[]).0.tcp_rate(0.01), None, "no round-trip time yet");
}

#[test]
fn equation_11_the_larger_of_the_cut_and_the_rate_of_a_tcp() {
    // 100000 (1 - sqrt(0.04)) = 80000; r_TCP(0.04, 0.4 s) is far below
    let mut s = Script::at(100_000.0, &[KNOWN]);
    s.0.increase = 9999.0;
    close(s.report(report(0.04, 0.4)), 80_000.0);
    assert_eq!(s.0.increase, 625.0, "A begins anew");
    let mut s = Script::at(20_000.0, &[KNOWN]);
    close(s.report(report(0.01, 0.1)), 112_332.234_363);
}

#[test]
fn the_clamp_holds_where_the_equations_end() {
    // the smallest loss in 8 bits at 40 ms: 3.8 Mbit/s, whatever the link
    let loss = 1.0 / 256.0;
    let mut s = Script::at(100_000.0, &[KNOWN]);
    assert_eq!(s.report(report(loss, 0.04)), R);
    let mut s = Script::at(100_000.0, &[KNOWN, ("clamp", 0.0)]);
    let printed = s.report(report(loss, 0.04)) * 8.0;
    assert!((3.7e6..3.9e6).contains(&printed), "{printed}");
    // R is found to be a third of the rate: equation 6 as printed gives a negative rate
    let estimate = |given: &[(&str, f64)]| {
        let mut s = Script::at(100_000.0, given);
        s.report(RtpReport { bottleneck: Some(Rate(266_400)), ..report(0.0, 0.1) })
    };
    assert_eq!(estimate(&[]), 33_300.0);
    assert_eq!(estimate(&[("clamp", 0.0)]), 200.0, "a packet a report");
}

#[test]
fn the_increase_lives_again_when_the_bottleneck_widens() {
    let mut s = Script::at(R, &[]);
    let measured = |rate: f64| RtpReport { bottleneck: Some(Rate((rate * 8.0) as u64)), ..report(0.0, 0.1) };
    for _ in 0..10 {
        assert_eq!(s.report(measured(R)), R);
    }
    for _ in 0..12 {
        s.report(measured(2.0 * R));
    }
    assert!(s.0.rate() > 1.9 * R, "{}", s.0.rate());
}

#[test]
fn without_bottleneck_or_round_trip_time_the_rate_stays_or_falls() {
    let mut s = Script::at(10_000.0, &[]);
    assert_eq!(s.report(report(0.0, 0.1)), 10_000.0, "no R");
    let mut s = Script::at(10_000.0, &[KNOWN]);
    assert_eq!(s.report(RtpReport { rtt: None, ..report(0.0, 0.1) }), 10_000.0, "no tau");
    close(s.report(RtpReport { rtt: None, ..report(0.25, 0.1) }), 5000.0);
    let mut s = Script::at(10_000.0, &[KNOWN]);
    s.0.rtt = Some(Span::from_millis(100));
    let zero = RtpReport { rtt: Some(Span::ZERO), ..report(0.01, 0.1) };
    close(s.report(zero), 112_332.234_363); // that of the previous report
    let mut s = Script::at(10_000.0, &[KNOWN]);
    assert_eq!(s.report(RtpReport { interval: Interval::DataLimited, ..report(0.0, 0.1) }), 10_000.0, "not used");
}

#[test]
fn silence_halves_down_to_a_packet_a_report() {
    let mut s = Script::at(10_000.0, &[KNOWN]);
    s.0.increase = 9999.0;
    let mut rates = Vec::new();
    for _ in 0..8 {
        s.0.on_feedback(&RtpEvent::Silence, &path());
        rates.push(s.0.rate());
    }
    assert_eq!(rates[..3], [5000.0, 2500.0, 1250.0]);
    assert_eq!(rates[7], 200.0);
    assert_eq!(s.0.increase, 625.0, "A begins anew, as after a loss");
}

#[test]
fn max_rate_bounds_and_is_no_bottleneck() {
    let mut s = Script::at(10_000.0, &[("bottleneck", 8e6), ("max_rate", 1e6)]);
    for _ in 0..30 {
        s.report(report(0.0, 0.1));
    }
    assert_eq!(s.0.rate(), R);
    assert_eq!(s.0.bottleneck, Some(1e6));
}

/// Any number, mostly one that a report may have.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (0.0..1.0f64).boxed(),
        1 => any::<f64>().boxed(),
        2 => proptest::sample::select(vec![0.0, 1.0 / 256.0, 1.0, -0.0, f64::NAN, f64::INFINITY, 1e-300]).boxed(),
    ]
}

fn event() -> impl Strategy<Value = RtpEvent> {
    let span = || prop_oneof![4 => 0..10_000_000_000u64, 1 => any::<u64>()].prop_map(Span);
    let rate = prop_oneof![4 => 1..100_000_000u64, 1 => any::<u64>()].prop_map(Rate);
    let report = (number(), proptest::option::of(span()), span(), proptest::option::of(rate), any::<bool>()).prop_map(
        |(loss, rtt, since, bottleneck, used)| {
            let interval = if used { Interval::Used } else { Interval::DataLimited };
            RtpEvent::Report(RtpReport { loss: Ratio(loss), rtt, since, bottleneck, interval })
        },
    );
    prop_oneof![10 => report, 1 => Just(RtpEvent::Silence)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// With clamp the rate stays between one packet per report and R; without clamp, between that and any link's
    /// maximum.
    #[test]
    fn no_sequence_of_reports_drives_the_rate_out_of_its_bounds(
        events in proptest::collection::vec(event(), 1..60), clamp in any::<bool>(), known in any::<bool>(),
        packet in 1..65_535u64, interval_ms in 1..20_000u64, max_rate in prop_oneof![Just(0.0), 1.0..1e9f64],
    ) {
        let given = [("clamp", f64::from(u8::from(clamp))), ("bottleneck", if known { 1e6 } else { 0.0 }), ("max_rate", max_rate)];
        let mut controller = build(&given).unwrap();
        let session = RtpSession { packet: Size::from_bytes(packet), interval: Span::from_millis(interval_ms) };
        controller.on_feedback(&RtpEvent::Started(session), &path());
        let floor = packet as f64 / (interval_ms as f64 / 1e3);
        let mut bottleneck = known.then_some(R);
        for event in &events {
            controller.on_feedback(event, &path());
            if let RtpEvent::Report(RtpReport { loss, bottleneck: Some(measured), .. }) = event
                && (0.0..=1.0).contains(&loss.0) && !known
            {
                bottleneck = Some(measured.bps() / 8.0);
            }
            let bound = if clamp { bottleneck.unwrap_or(f64::MAX).min(MAX_RATE) } else { MAX_RATE };
            let bound = if max_rate > 0.0 { bound.min(max_rate / 8.0) } else { bound };
            let rate = controller.rate();
            prop_assert!(rate.is_finite() && rate >= floor * (1.0 - 1e-12), "{rate} {floor}");
            prop_assert!(rate <= bound.max(floor) * (1.0 + 1e-12), "{rate} {bound}");
            prop_assert!(controller.increase.is_finite());
            prop_assert_eq!(controller.target(), Some(Rate((rate * 8.0) as u64)));
        }
    }
}
