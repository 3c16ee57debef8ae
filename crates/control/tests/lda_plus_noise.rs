//! LDA+ against equation 1, its own: with a constant loss rate and round-trip time the rate lies above the equation's, since
//! a report counts the losses of five seconds, which are few. What docs/papers/lda-plus.md says of Table I rests on this.

use paceline_control::models::{LossRate, PerAck, Seconds, TcpPath, Window, reno};
use paceline_control::registry::scheme;
use paceline_control::{
    Controller, Interval, MediaController, PathView, Profile, RtpController, RtpEvent, RtpReport, RtpSession,
};
use paceline_units::{Ratio, Size, Span, Time};

const PACKET: f64 = 1000.0;
const PATH: PathView = PathView {
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

/// SplitMix64, as numbers in [0, 1).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// What a report says of the losses.
#[derive(Clone, Copy)]
enum Counted {
    /// Those of the packets sent since the last one, each lost by itself; in 256ths, rounded down, or exactly.
    In256ths,
    Exactly,
    /// The probability itself.
    Known,
}

/// Mean rate over that of equation 1, over 10,000 reports `interval` seconds apart.
fn above(loss: f64, rtt: f64, interval: f64, per_ack: f64, counted: Counted) -> f64 {
    let given = [("bottleneck", 1e7), ("per_ack", per_ack)];
    let mut lda = RtpController::new(scheme("lda-plus").unwrap(), Profile::Ns2, &given).unwrap();
    let session = RtpSession { packet: Size::from_bytes(1000), interval: Span::from_secs_f64(interval) };
    lda.on_feedback(&RtpEvent::Started(session), &PATH);
    let (mut draws, mut sent, mut time) = (Draws(1), 0.0, 0.0);
    for _ in 0..10_000 {
        let since = interval * (0.5 + draws.next()) / 1.21828; // RFC 3550 section 6.3.1
        let packets = (lda.rate() * since / PACKET).max(1.0) as u32;
        let lost = f64::from((0..packets).filter(|_| draws.next() < loss).count() as u32) / f64::from(packets);
        let share = match counted {
            Counted::In256ths => (lost * 256.0).floor() / 256.0,
            Counted::Exactly => lost,
            Counted::Known => loss,
        };
        (sent, time) = (sent + lda.rate() * since, time + since);
        let report = RtpReport {
            loss: Ratio(share),
            rtt: Some(Span::from_secs_f64(rtt)),
            since: Span::from_secs_f64(since),
            bottleneck: None,
            interval: Interval::Used,
        };
        lda.on_feedback(&RtpEvent::Report(report), &PATH);
    }
    let path = TcpPath {
        rtt: Seconds::new(rtt).unwrap(),
        rto: Seconds::new(4.0 * rtt).unwrap(),
        per_ack: PerAck::new(per_ack).unwrap(),
        limit: Window::UNLIMITED,
    };
    sent / time / PACKET / reno::approximate(LossRate::new(loss).unwrap(), &path).get()
}

fn near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 0.03, "{what}: {found}, not {expected}");
}

#[test]
fn few_losses_a_report_make_lda_plus_send_more_than_its_equation() {
    // Loss and round trip as Table I's two extremes have them with a buffer of 0.1 s.
    for (loss, rtt, in_256ths, exactly, known, seldom) in
        [(0.083, 0.148, 1.34, 1.28, 1.00, 1.05), (0.0223, 0.421, 1.26, 1.10, 1.00, 1.18)]
    {
        let name = format!("loss {loss}, round trip {rtt} s");
        near(above(loss, rtt, 5.0, 1.0, Counted::In256ths), in_256ths, &name);
        near(above(loss, rtt, 5.0, 1.0, Counted::Exactly), exactly, &format!("{name}, not rounded"));
        near(above(loss, rtt, 5.0, 1.0, Counted::Known), known, &format!("{name}, known"));
        near(above(loss, rtt, 50.0, 1.0, Counted::In256ths), seldom, &format!("{name}, reports ten times as seldom"));
    }
}

#[test]
fn the_excess_is_the_same_of_a_tcp_that_delays_its_acknowledgements() {
    near(above(0.083, 0.148, 5.0, 2.0, Counted::In256ths), 1.35, "D = 2");
}

/// Figure 11's mechanism: a loss of 0.002 of 781 packets a report, of which fewer than four are none in 256ths.
#[test]
fn eight_bits_hide_losses_below_one_in_256() {
    let in_256ths = above(0.002, 0.17, 50.0, 1.0, Counted::In256ths);
    let exactly = above(0.002, 0.17, 50.0, 1.0, Counted::Exactly);
    assert!(in_256ths > 1.5 * exactly, "{in_256ths} and {exactly}");
}
