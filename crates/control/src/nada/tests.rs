//! RFC 8698's equations by hand; and no feedback drives the rates out of their bounds.

use super::*;
use crate::rtp::{Fate, PacketResult, RtpReport};
use crate::{Interval, ParameterError, SentPacket};
use paceline_units::{Ratio, Size, Span, Time};
use proptest::prelude::*;

fn build(given: &[(&str, f64)]) -> Result<Nada, ParameterError> {
    let values = Nada::SCHEMES[0].values(Profile::Rfc, given)?;
    Ok(Nada::build(Profile::Rfc, &values))
}

fn path(now: Time) -> PathView {
    PathView {
        now,
        srtt: Span::ZERO,
        rttvar: Span::ZERO,
        min_rtt: Span::ZERO,
        in_flight: 0,
        acked: 0,
        next: 0,
        receive_window: 0,
        segment: 1000,
    }
}

const SESSION: RtpSession = RtpSession { packet: Size(1000), interval: Span::from_millis(100) };

fn started() -> Nada {
    let mut nada = build(&[]).unwrap();
    nada.on_feedback(&RtpEvent::Started(SESSION), &path(Time::ZERO));
    nada
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

const PACKET: SentPacket =
    SentPacket { number: 0, size: Size(1000), payload: Size(960), ends_frame: false, probe: None };

fn arrived(sent: u64, delay: u64) -> PacketResult {
    let fate = Fate::Arrived { at: Some(ms(sent + delay)), marked: false };
    PacketResult { sent: ms(sent), packet: PACKET, fate }
}

fn lost(sent: u64) -> PacketResult {
    PacketResult { sent: ms(sent), packet: PACKET, fate: Fate::Lost }
}

fn feed(nada: &mut Nada, now: u64, packets: Vec<PacketResult>) {
    let arrivals = Arrivals {
        packets,
        rtt: Some(Span::from_millis(80)),
        since: Span::from_millis(100),
        backlog: Size(0),
        waiting: Span::ZERO,
        in_flight: Size(0),
        interval: Interval::Used,
    };
    nada.on_feedback(&RtpEvent::Arrivals(arrivals), &path(ms(now)));
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1e-3)
}

#[test]
fn equation_1_warps_beyond_the_threshold_alone() {
    assert_eq!((warp(0.0), warp(0.049)), (0.0, 0.049));
    assert!(close(warp(0.05), 0.05), "continuous");
    assert!(close(warp(0.15), 0.05 * libm::exp(-1.0)), "two thresholds above: half an exponent each");
}

#[test]
fn equation_2_adds_squares_of_loss_and_marks() {
    let mut nada = started();
    (nada.loss, nada.mark) = (0.02, 0.03);
    // 20 ms + 2 ms * 9 + 10 ms * 4
    assert!(close(nada.aggregate(0.0, 0.02), 0.078));
    // a delay of 150 ms is warped to 18.4 ms
    assert!(close(nada.aggregate(1.0, 0.15), 0.05 * libm::exp(-1.0) + 0.058));
    assert!(close(nada.aggregate(0.5, 0.15), (0.05 * libm::exp(-1.0) + 0.15) / 2.0 + 0.058));
}

#[test]
fn equations_3_and_4_grow_from_what_is_received() {
    // gamma = 50 / (80 + 100 + 120)
    assert!(close(accelerated(1e5, 3e5, 0.18), 3e5 * (1.0 + 0.05 / 0.3)));
    assert!(close(accelerated(1e6, 3e5, 0.18), 1e6), "never down");
    assert!(close(accelerated(1e5, 3e5, -0.1), 4.5e5), "by half at most");
}

#[test]
fn equations_5_to_7_move_by_offset_and_change() {
    let mut nada = started();
    nada.rate = 5e5;
    nada.signal = 0.050;
    // x_offset = 50 - 1 * 10 * 1.5e6 / 5e5 = 20 ms, x_diff = 50 - 45 = 5 ms
    let expected = 5e5 - 0.5 * (0.1 / 0.5) * (0.020 / 0.5) * 5e5 - 0.5 * 2.0 * (0.005 / 0.5) * 5e5;
    assert!(close(nada.gradual(0.1, 0.045), expected), "{}", nada.gradual(0.1, 0.045));
    // at the equilibrium, x_curr = PRIO * XREF * RMAX / r_ref, nothing changes
    nada.signal = 0.030;
    assert!(close(nada.gradual(0.1, 0.030), 5e5));
    // a flow of twice the priority has its equilibrium there at twice the rate
    nada.priority = 2.0;
    nada.rate = 1e6;
    assert!(close(nada.gradual(0.1, 0.030), 1e6));
}

#[test]
fn section_5_2_the_buffer_is_drained_from_both_sides() {
    let mut nada = started();
    nada.rate = 1e6;
    nada.backlog = 1000.0;
    // 0.1 * 8 * 1000 * 30
    assert!(close(nada.sending(), 1.024e6) && close(nada.encoding(), 0.976e6));
    nada.backlog = 1e6;
    assert!(close(nada.sending(), 1.05e6) && close(nada.encoding(), 0.95e6), "by a twentieth at most");
    nada.rate = 1.5e6;
    assert!(close(nada.sending(), 1.5e6), "RMAX");
    nada.rate = 1.5e5;
    assert!(close(nada.encoding(), 1.5e5), "RMIN");
    nada.shaping = false;
    assert!(close(nada.sending(), 1.5e5));
}

#[test]
fn section_4_2_without_queue_and_loss_it_climbs_and_then_settles() {
    let mut nada = started();
    assert!(close(nada.rate, 150e3), "RMIN at the beginning");
    // ten packets of 8000 bits in each 100 ms: 800 kbit/s arrive
    for i in 1..=10 {
        feed(&mut nada, i * 100, (0..10).map(|k| arrived(i * 100 + k * 10, 20)).collect());
    }
    let gamma = 0.05 / (0.08 + 0.1 + 0.12);
    assert!(close(nada.rate, 800e3 * (1.0 + gamma)), "{}", nada.rate);
    let before = nada.rate;
    // 40 ms of queue: 40 - 10 * 1500 / 933 = 23.9 ms too much, and an increase of 40 ms
    feed(&mut nada, 1100, (0..20).map(|k| arrived(1100 + k, 60)).collect());
    assert!(close(nada.signal, 0.040), "{}", nada.signal);
    let offset: f64 = 0.040 - 0.01 * 1.5e6 / before;
    let expected = before * (1.0 - 0.5 * 0.2 * offset / 0.5 - 0.5 * 2.0 * 0.040 / 0.5);
    assert!(close(nada.rate, expected), "{} {expected}", nada.rate);
}

#[test]
fn section_5_1_1_one_slow_packet_is_no_queue() {
    let mut nada = started();
    feed(&mut nada, 100, (0..14).map(|k| arrived(k, 20)).collect());
    feed(&mut nada, 200, vec![arrived(150, 90)]);
    assert!(close(nada.signal, 0.0), "the least of 15");
    assert!(close(nada.window.longest_queueing(), 0.070), "but growth is gradual");
}

#[test]
fn section_5_1_1_the_queueing_delay_is_the_least_of_15_samples() {
    let after = |slow: u64| {
        let mut nada = started();
        feed(&mut nada, 100, vec![arrived(0, 20)]);
        feed(&mut nada, 200, (0..slow).map(|k| arrived(100 + k, 60)).collect());
        nada.window.queueing().unwrap()
    };
    assert!(close(after(14), 0.0) && close(after(15), 0.040), "{} {}", after(14), after(15));
}

#[test]
fn section_4_2_growing_fast_ends_with_a_queue_of_qeps() {
    let grows_fast = |delay: u64| {
        let mut nada = started();
        let packets = (0..100).map(|k| arrived(k, if k == 99 { delay } else { 20 })).collect();
        feed(&mut nada, 100, packets);
        nada.rate > 1e6 // 8 Mbit/s have arrived: gradual growth cannot reach this at once
    };
    assert!(grows_fast(29), "9 ms");
    assert!(!grows_fast(31), "11 ms");
}

#[test]
fn section_5_1_shares_and_rates_are_those_of_half_a_second() {
    let mut nada = started();
    feed(&mut nada, 1000, vec![arrived(900, 20), lost(901)]);
    feed(&mut nada, 1400, vec![arrived(1300, 20)]);
    assert!(nada.window.longest_queueing() == 0.0 && close(nada.window.receive_rate(ms(1400)), 32e3), "16000 bits");
    feed(&mut nada, 1499, vec![]);
    assert!(close(nada.loss, 0.1 * (0.1 * (0.9 * 0.5 + 1.0 / 3.0) * 9.0 + 1.0 / 3.0)), "{}", nada.loss);
    feed(&mut nada, 1500, vec![]);
    let all = 0.1 * (0.1 * (0.9 * 0.5 + 1.0 / 3.0) * 9.0 + 1.0 / 3.0);
    assert!(close(nada.loss, 0.9 * all), "what was told of half a second ago is forgotten: {}", nada.loss);
    assert!(close(nada.window.receive_rate(ms(1500)), 16e3));
}

/// RFC 5348 section 5.4, which RFC 8698 section 4.2 uses for loss_int: eight intervals, the four oldest with less
/// weight.
#[test]
fn loss_intervals_are_weighted_as_rfc_5348_has_it() {
    let mut nada = started();
    nada.window.closed = [1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0].into();
    // (1 + 2 + 3 + 4 + 40 + 36 + 28 + 16) / 6
    assert!(close(nada.window.loss_interval().unwrap(), 130.0 / 6.0));
    nada.window.closed.truncate(5);
    assert!(close(nada.window.loss_interval().unwrap(), 50.0 / 4.8));
}

#[test]
fn the_signal_is_bounded() {
    let mut nada = started();
    nada.loss = 0.5; // a signal of 25 s
    feed(&mut nada, 100, vec![arrived(0, 20), lost(1)]);
    assert_eq!(nada.signal, 0.5);
}

#[test]
fn section_4_2_delay_is_warped_from_a_loss_until_losses_are_no_longer_expected() {
    let mut nada = started();
    let mut now = 0;
    let mut batch = |nada: &mut Nada, count: u64, delay: u64, loss: bool| {
        now += 100;
        let mut packets: Vec<PacketResult> = (0..count).map(|k| arrived(now + k, delay)).collect();
        if loss {
            packets.push(lost(now + count));
        }
        feed(nada, now, packets);
        nada.window.warped_share()
    };
    assert_eq!(batch(&mut nada, 20, 20, false), 0.0, "no loss so far");
    assert_eq!(batch(&mut nada, 20, 200, true), 1.0, "an interval of 40 packets");
    assert_eq!(nada.window.loss_interval(), Some(40.0));
    for _ in 0..13 {
        assert_eq!(batch(&mut nada, 20, 200, false), 1.0);
    }
    // 261 packets since; loss_exp is 280, and warping ends at 320
    assert!(close(batch(&mut nada, 39, 200, false), 0.5));
    assert!(close(batch(&mut nada, 20, 200, false), 0.0));
    // losses within a round-trip time are one event
    batch(&mut nada, 1, 20, true);
    batch(&mut nada, 0, 20, true);
    assert_eq!(nada.window.closed.len(), 3, "100 ms apart at an RTT of 80 ms: two events more");
    let rtt_mates = vec![lost(now + 10), lost(now + 60)];
    feed(&mut nada, now + 100, rtt_mates);
    assert_eq!(nada.window.closed.len(), 3);
}

#[test]
fn losses_and_marks_are_smoothed_shares_of_the_window() {
    let mut nada = started();
    let mut packets: Vec<PacketResult> = (0..9).map(|k| arrived(k, 20)).collect();
    packets.push(lost(10));
    if let Fate::Arrived { marked, .. } = &mut packets[0].fate {
        *marked = true;
    }
    feed(&mut nada, 100, packets);
    assert!(close(nada.loss, 0.1 * 0.1) && close(nada.mark, 0.1 / 9.0), "{} {}", nada.loss, nada.mark);
    feed(&mut nada, 200, vec![]);
    assert!(close(nada.loss, 0.01 + 0.1 * (0.1 - 0.01)));
    // unknown packets count as neither
    let unknown = PacketResult { sent: ms(300), packet: PACKET, fate: Fate::Unknown };
    feed(&mut nada, 900, vec![unknown; 50]);
    assert!(close(nada.loss, 0.019 * 0.9));
}

#[test]
fn a_silence_halves_down_to_the_least() {
    let mut nada = started();
    nada.rate = 4e5;
    nada.on_feedback(&RtpEvent::Silence, &path(ms(1000)));
    assert!(close(nada.rate, 2e5));
    nada.on_feedback(&RtpEvent::Silence, &path(ms(1100)));
    assert!(close(nada.rate, 1.5e5));
}

#[test]
fn parameters_have_their_bounds() {
    assert!(build(&[("tau", 0.0)]).is_err() && build(&[("max_rate", -1.0)]).is_err());
    let swapped = build(&[("min_rate", 1e6), ("max_rate", 5e5)]).unwrap();
    assert!(close(swapped.max_rate, 1e6));
    // RFC 8698, Table 2
    let nada = build(&[]).unwrap();
    assert_eq!((nada.min_rate, nada.max_rate, nada.priority), (150e3, 1.5e6, 1.0));
    assert_eq!((nada.x_ref, nada.kappa, nada.eta, nada.tau), (0.010, 0.5, 2.0, 0.5));
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => (proptest::option::of(prop_oneof![4 => 0..100_000_000_000u64, 1 => any::<u64>()]), any::<bool>())
            .prop_map(|(at, marked)| Fate::Arrived { at: at.map(Time), marked }),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Unknown),
    ]
}

fn event() -> impl Strategy<Value = RtpEvent> {
    let time = || prop_oneof![4 => 0..100_000_000_000u64, 1 => any::<u64>()];
    let packet = (time(), any::<u16>(), fate()).prop_map(|(sent, size, fate)| PacketResult {
        sent: Time(sent),
        packet: SentPacket { size: Size(size.into()), ..PACKET },
        fate,
    });
    let arrivals =
        (prop::collection::vec(packet, 0..30), proptest::option::of(time()), time(), any::<u32>(), any::<bool>())
            .prop_map(|(packets, rtt, since, backlog, used)| {
                RtpEvent::Arrivals(Arrivals {
                    packets,
                    rtt: rtt.map(Span),
                    since: Span(since),
                    backlog: Size(backlog.into()),
                    waiting: Span(since),
                    in_flight: Size(backlog.into()),
                    interval: if used { Interval::Used } else { Interval::DataLimited },
                })
            });
    let report = RtpReport {
        loss: Ratio(0.5),
        rtt: None,
        since: Span::from_secs(5),
        bottleneck: None,
        interval: Interval::Used,
    };
    prop_oneof![
        12 => arrivals,
        1 => Just(RtpEvent::Silence),
        1 => Just(RtpEvent::Report(report)),
        1 => Just(RtpEvent::Started(SESSION)),
    ]
}

proptest! {
    #[test]
    fn no_feedback_drives_a_rate_out_of_its_bounds(
        events in prop::collection::vec((event(), 0..10_000_000_000u64), 1..60),
        kappa in 1e-3..10.0f64, eta in 0.0..100.0f64, tau in 0.01..10.0f64, x_max in 0.01..1e3f64,
        priority in 1e-3..1e3f64,
    ) {
        let given = [("kappa", kappa), ("eta", eta), ("tau", tau), ("x_max", x_max), ("priority", priority)];
        let mut nada = build(&given).unwrap();
        let mut now = Time::ZERO;
        nada.on_feedback(&RtpEvent::Started(SESSION), &path(now));
        for (event, later) in events {
            now += Span(later);
            nada.on_feedback(&event, &path(now));
            for rate in [nada.rate, nada.sending(), nada.encoding(), nada.rate() * 8.0] {
                prop_assert!((150e3..=1.5e6).contains(&rate), "{rate} after {event:?}");
            }
            prop_assert!(nada.signal.is_finite() && (0.0..=1.0).contains(&nada.loss) && (0.0..=1.0).contains(&nada.mark));
        }
    }
}
