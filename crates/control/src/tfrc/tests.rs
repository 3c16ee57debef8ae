//! RFC 5348 section 4, with its numbers checked one by one; segments of 1000 bytes.

use super::*;
use paceline_units::Time;

/// Drives a controller with a script of reports.
pub(crate) struct Script<C> {
    pub(crate) controller: C,
    pub(crate) path: PathView,
}

/// A report of the round-trip sample `rtt` (s), `receive_rate` (bytes/s), `p`; the interval was used.
pub(crate) fn report(rtt: f64, receive_rate: f64, p: f64) -> TfrcReport {
    let rtt = Span::from_secs_f64(rtt);
    TfrcReport { rtt, timeout: rtt * 4, receive_rate, loss_event_rate: p, interval: Interval::Used }
}

impl<C: RateController> Script<C> {
    pub(crate) fn new(controller: C) -> Script<C> {
        let path = PathView {
            now: Time::ZERO,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            min_rtt: Span::ZERO,
            in_flight: 0,
            acked: 0,
            next: 0,
            receive_window: 0,
            segment: 1000,
        };
        let mut script = Script { controller, path };
        script.controller.on_feedback(&TfrcEvent::Started, &script.path);
        script
    }

    /// A report after `wait` seconds; the smoothed round-trip time is the report's.
    pub(crate) fn report(&mut self, wait: f64, report: TfrcReport) -> f64 {
        self.path.now += Span::from_secs_f64(wait);
        self.path.srtt = report.rtt;
        self.controller.on_feedback(&TfrcEvent::Report(report), &self.path);
        self.controller.rate()
    }

    fn no_feedback(&mut self, wait: f64, interval: Interval) -> f64 {
        self.path.now += Span::from_secs_f64(wait);
        self.controller.on_feedback(&TfrcEvent::NoFeedback { interval }, &self.path);
        self.controller.rate()
    }
}

/// TFRC's own controller.
pub(crate) fn plain(law: Law, damping: f64) -> Tfrc {
    Tfrc::with(&[law.code(), damping, 1.0, 3.0, 1.0, 0.0, 0.0, 1.0], Plain)
}

fn script(law: Law) -> Script<Tfrc> {
    Script::new(plain(law, 0.0))
}

/// X_Bps for R = 0.1 s.
fn equation(p: f64) -> f64 {
    let rtt = Span::from_millis(100);
    let terms = Terms::new(1000, rtt, rtt * 4).unwrap();
    Plain.rate(crate::models::LossRate::new(p).unwrap(), &terms)
}

fn limited(report: TfrcReport) -> TfrcReport {
    TfrcReport { interval: Interval::DataLimited, ..report }
}

fn near(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-9, "{a} {b}");
}

#[test]
fn section_4_2_a_packet_a_second_then_the_initial_window() {
    for (segment, window) in
        [(500, 2000.0), (1000, 4000.0), (1095, 4380.0), (1460, 4380.0), (2000, 4380.0), (3000, 6000.0)]
    {
        let mut s = Script::new(plain(Law::Rfc5348, 0.0));
        s.path.segment = segment;
        s.controller.on_feedback(&TfrcEvent::Started, &s.path);
        near(s.controller.rate(), f64::from(segment));
        near(s.report(0.1, report(0.1, 0.0, 0.0)), window / 0.1);
    }
}

#[test]
fn section_4_3_slow_start_doubles_once_a_round_trip_up_to_twice_what_arrives() {
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    near(s.report(0.05, report(0.1, 40_000.0, 0.0)), 40_000.0); // too soon
    near(s.report(0.05, report(0.1, 40_000.0, 0.0)), 80_000.0); // the initial infinity is still in the set
    near(s.report(0.1, report(0.1, 75_000.0, 0.0)), 160_000.0);
    // two round trips after the first report it has expired
    near(s.report(0.1, report(0.1, 100_000.0, 0.0)), 200_000.0);
    // the largest of two round trips counts, not the last
    near(s.report(0.1, report(0.1, 10_000.0, 0.0)), 200_000.0);
    near(s.report(0.15, report(0.1, 10_000.0, 0.0)), 40_000.0); // the minimum is W_init / R
    assert!(s.controller.in_slow_start());
}

/// Section 3.1 with b = 2 by hand: p = 4 %, R = 0.1 s, T_0 = 4 R: both roots grow by sqrt(2).
#[test]
fn section_3_1_of_a_tcp_that_delays_acknowledgements() {
    for law in Law::ALL {
        let mut s = Script::new(Tfrc::with(&[law.code(), 0.0, 1.0, 3.0, 1.0, 0.0, 0.0, 2.0], Plain));
        for p in [0.0, 0.04] {
            s.report(1.0, report(0.1, 1e9, p));
        }
        // sqrt(2 * 2 * 0.04 / 3) = 0.230940; 3 sqrt(3 * 2 * 0.04 / 8) * 0.04 * 1.0512 = 0.021848
        let expected = 1000.0 / (0.1 * 0.230_940 + 0.4 * 0.021_848);
        let mut rate = f64::INFINITY;
        // ns-2 gets there in steps
        for _ in 0..50 {
            rate = s.report(1.0, report(0.1, 1e9, 0.04));
        }
        assert!((rate / expected - 1.0).abs() < 1e-4, "{law:?}: {rate} {expected}");
    }
}

#[test]
fn section_4_3_avoidance_is_the_equation_within_twice_the_receive_rate() {
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    for _ in 0..4 {
        s.report(0.1, report(0.1, 80_000.0, 0.0));
    }
    near(s.report(0.1, report(0.1, 80_000.0, 0.01)), equation(0.01));
    assert!(!s.controller.in_slow_start());
    near(s.report(0.3, report(0.1, 30_000.0, 0.01)), 60_000.0);
    // s / t_mbi: one packet in 64 s
    near(s.report(0.3, report(0.1, 0.0, 0.01)), 1000.0 / 64.0);
    near(s.report(0.3, report(0.1, 0.0, 1.0)), 1000.0 / 64.0);
}

#[test]
fn section_4_3_data_limited_intervals() {
    let settled = |received: f64, p: f64| {
        let mut s = script(Law::Rfc5348);
        s.report(0.1, report(0.1, 0.0, 0.0));
        for _ in 0..4 {
            s.report(0.1, report(0.1, received, p));
        }
        s
    };
    // without a new loss the largest receive rate remains, dated now
    let mut s = settled(100_000.0, 0.0001);
    for _ in 0..10 {
        near(s.report(0.1, limited(report(0.1, 5_000.0, 0.0001))), 200_000.0);
    }
    // with a new loss the set is halved, X_recv counts for 85 %, and the limit is the set's maximum itself
    near(s.report(0.1, limited(report(0.1, 5_000.0, 0.0002))), 50_000.0);
    near(s.report(0.1, limited(report(0.1, 80_000.0, 0.0003))), 0.85 * 80_000.0);
    // an interval in which nothing was received does not count as data-limited: nothing is halved
    let mut s = settled(100_000.0, 0.0001);
    near(s.report(0.1, limited(report(0.1, 0.0, 0.0002))), 200_000.0);
    // the initial infinity is not a measurement
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    near(s.report(0.1, limited(report(0.1, 30_000.0, 0.0))), 60_000.0);
}

#[test]
fn section_4_4_nofeedback() {
    // no sample yet: halved, down to one packet in 64 s; an idle sender keeps its rate
    let mut s = script(Law::Rfc5348);
    near(s.no_feedback(2.0, Interval::DataLimited), 1000.0);
    near(s.no_feedback(2.0, Interval::Used), 500.0);
    for _ in 0..10 {
        s.no_feedback(4.0, Interval::Used);
    }
    near(s.controller.rate(), 1000.0 / 64.0);
    // slow start: an idle sender below 2 W_init / R keeps its rate, otherwise it is halved
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    near(s.no_feedback(0.4, Interval::DataLimited), 40_000.0);
    near(s.no_feedback(0.4, Interval::Used), 20_000.0);
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    s.report(0.1, report(0.1, 1e6, 0.0));
    near(s.no_feedback(0.4, Interval::DataLimited), 40_000.0); // 80 kB/s is not below 2 W_init / R
    // with losses, when the receive rate is the limit: X_recv, then half of it each time
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    s.report(0.5, report(0.1, 20_000.0, 0.001));
    near(s.controller.rate(), 40_000.0);
    near(s.no_feedback(0.4, Interval::DataLimited), 40_000.0); // X_recv below W_init / R, idle
    near(s.no_feedback(0.4, Interval::Used), 20_000.0);
    near(s.no_feedback(0.4, Interval::Used), 10_000.0);
    // the equation is the limit: half of it
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    s.report(0.5, report(0.1, 1e6, 0.01));
    near(s.no_feedback(0.4, Interval::Used), equation(0.01) / 2.0);
    near(s.no_feedback(0.4, Interval::Used), equation(0.01) / 4.0);
    for _ in 0..30 {
        s.no_feedback(0.4, Interval::Used);
    }
    near(s.controller.rate(), 1000.0 / 64.0);
    // reports are limited by it until two round trips have passed
    near(s.report(0.1, report(0.1, 1000.0, 0.01)), 2000.0);
}

#[test]
fn section_4_5_damping() {
    let mut s = Script::new(plain(Law::Rfc5348, 1.0));
    s.report(0.1, report(0.1, 0.0, 0.0));
    near(s.controller.pacing(), s.controller.rate());
    s.report(0.1, report(0.4, 1e6, 0.0));
    let mean = 0.9 * 0.1_f64.sqrt() + 0.1 * 0.4_f64.sqrt();
    near(s.controller.pacing(), s.controller.rate() * mean / 0.4_f64.sqrt());
    assert!(s.controller.pacing() < s.controller.rate());
    // "SHOULD be implemented": on by default
    let damping = |profile| COMMON[1].default[profile as usize];
    assert!(Profile::ALL.into_iter().all(|profile| damping(profile) == 1.0));
    let mut s = script(Law::Rfc5348);
    s.report(0.1, report(0.1, 0.0, 0.0));
    s.report(0.1, report(0.4, 1e6, 0.0));
    near(s.controller.pacing(), s.controller.rate());
}

#[test]
fn rfc_3448_where_it_differs() {
    let mut s = script(Law::Rfc3448);
    near(s.report(0.1, report(0.1, 0.0, 0.0)), 10_000.0); // s / R: one packet per round trip
    near(s.report(0.1, report(0.1, 10_000.0, 0.0)), 20_000.0);
    near(s.report(0.1, report(0.1, 5_000.0, 0.0)), 10_000.0); // only the last receive rate counts
    near(s.report(0.1, report(0.1, 1_000.0, 0.0)), 10_000.0);
    near(s.report(0.1, limited(report(0.1, 1_000.0, 0.01))), 2_000.0); // whether data-limited or not
    // section 4.4: X_recv below four packets per round trip is not halved for an idle sender
    near(s.no_feedback(0.4, Interval::DataLimited), 2_000.0);
    near(s.no_feedback(0.4, Interval::Used), 1_000.0);
    s.report(0.1, report(0.1, 1e6, 0.01));
    near(s.no_feedback(0.4, Interval::Used), equation(0.01) / 2.0);
    let mut s = script(Law::Rfc3448);
    near(s.no_feedback(2.0, Interval::Used), 500.0);
}

#[test]
fn ns2_slow_start_climbs_packet_by_packet() {
    let mut s = script(Law::Ns2);
    near(s.controller.rate(), 300.0);
    near(s.report(0.1, report(0.1, 1_000.0, 0.0)), 40_000.0); // RFC 3390: four packets
    near(s.report(0.1, report(0.1, 40_000.0, 0.0)), 40_000.0);
    near(s.report(0.11, report(0.1, 35_000.0, 0.0)), 70_000.0); // twice the receive rate
    let mut last = 40_000.0;
    for _ in 0..7 {
        s.controller.begin_gap();
        let now = s.controller.pacing();
        assert!((now - last - 30_000.0 / 7.0).abs() < 1e-6, "{now} {last}");
        last = now;
    }
    s.controller.begin_gap();
    near(s.controller.pacing(), 70_000.0);
    near(s.report(0.11, report(0.1, 30_000.0, 0.0)), 30_000.0); // above twice X_recv: down to X_recv
    near(s.report(0.11, report(0.1, 0.0, 0.0)), 10_000.0);
    // the first loss: the equation's rate at once
    near(s.report(0.11, report(0.1, 30_000.0, 0.01)), equation(0.01));
}

#[test]
fn ns2_rises_by_a_packet_per_round_trip_and_round_trip() {
    let mut s = script(Law::Ns2);
    s.report(0.1, report(0.1, 1_000.0, 0.0));
    s.report(0.1, report(0.1, 1e6, 0.0));
    let start = s.report(0.1, report(0.1, 1e6, 0.05));
    // the last change counts from slow start, not from its end
    near(s.report(0.05, report(0.1, 1e6, 0.001)), start + 15_000.0);
    near(s.report(0.05, report(0.1, 1e6, 0.001)), start + 20_000.0);
    near(s.report(0.5, report(0.1, 1e6, 0.001)), start + 40_000.0); // at most two
    near(s.report(0.1, report(0.1, 5_000.0, 0.001)), 10_000.0); // twice X_recv, at least s / R
    near(s.report(0.1, report(0.1, 0.0, 0.05)), 10_000.0);
    // a data-limited sender may rise to its initial rate
    near(s.report(1.0, limited(report(0.1, 0.0, 0.0001))), 30_000.0);
    near(s.no_feedback(0.2, Interval::Used), 15_000.0);
    near(s.no_feedback(0.2, Interval::DataLimited), 15_000.0);
}

#[test]
fn nonsense_changes_nothing() {
    for law in Law::ALL {
        let mut s = script(law);
        s.report(0.1, report(0.1, 1e4, 0.0));
        let before = s.controller.rate();
        for (received, p) in [
            (f64::NAN, 0.1),
            (f64::INFINITY, 0.1),
            (-1.0, 0.1),
            (1e4, f64::NAN),
            (1e4, -0.1),
            (1e4, 1.1),
            (1e4, f64::INFINITY),
        ] {
            s.report(0.1, report(0.1, received, p));
        }
        assert_eq!(s.controller.rate(), before);
    }
}
