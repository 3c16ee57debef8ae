//! Events and settings of the machine; and no feedback drives the rates out of their bounds.

use super::*;
use crate::rtp::{RtpSession, SentPacket};
use crate::{Interval, ParameterError};
use proptest::prelude::*;

fn build(given: &[(&str, f64)]) -> Result<Gcc, ParameterError> {
    let values = Gcc::SCHEMES[0].values(Profile::Rfc, given)?;
    Ok(Gcc::build(Profile::Rfc, &values))
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

fn started(given: &[(&str, f64)]) -> Gcc {
    let mut gcc = build(given).unwrap();
    gcc.on_feedback(&RtpEvent::Started(SESSION), &path(Time::ZERO));
    gcc
}

fn us(n: u64) -> Time {
    Time(n * 1000)
}

fn fate(sent_us: u64, fate: Fate, probe: Option<u32>) -> rtp::PacketResult {
    let packet = SentPacket { size: Size(1000), probe, ..SentPacket::default() };
    rtp::PacketResult { sent: us(sent_us), packet, fate }
}

fn arrived(sent_us: u64, delay_us: u64) -> Fate {
    Fate::Arrived { at: Some(us(sent_us + delay_us)), marked: false }
}

fn feed(gcc: &mut Gcc, now_us: u64, packets: Vec<rtp::PacketResult>) {
    let arrivals = Arrivals {
        packets,
        rtt: Some(Span::from_millis(80)),
        since: Span::from_millis(100),
        backlog: Size(0),
        waiting: Span::ZERO,
        in_flight: Size(5000),
        interval: Interval::Used,
    };
    gcc.on_feedback(&RtpEvent::Arrivals(arrivals), &path(us(now_us)));
}

fn probes(gcc: &mut Gcc) -> Vec<(u32, u64, u64)> {
    std::iter::from_fn(|| gcc.next_probe()).map(|p| (p.id, p.rate.0, p.bytes.0)).collect()
}

#[test]
fn the_session_begins_with_two_probes_of_15_ms() {
    let mut gcc = started(&[]);
    assert_eq!(probes(&mut gcc), [(1, 900_000, 1687), (2, 1_800_000, 3375)]);
    assert_eq!((gcc.target(), gcc.rate()), (Some(Rate(300_000)), 1.1 * 300e3 / 8.0));
    let mut gcc = started(&[("max_rate", 1e6), ("start_rate", 3e6), ("pacing_factor", 2.5)]);
    assert_eq!(probes(&mut gcc).iter().map(|p| p.1).collect::<Vec<_>>(), [1_000_000, 1_000_000]);
    assert_eq!(gcc.rate(), 2.5 * 1e6 / 8.0);
    assert_eq!(probes(&mut started(&[("probing", 0.0)])), []);
    assert_eq!(started(&[("start_rate", 10e3)]).target(), Some(Rate(30_000)));
}

/// Ten packets of 1000 bytes, 10 ms apart: 800 kbit/s.
#[test]
fn a_probe_that_comes_as_it_was_sent_sets_the_rate() {
    let mut gcc = started(&[]);
    probes(&mut gcc);
    feed(&mut gcc, 200_000, (0..10).map(|i| fate(10_000 * i, arrived(10_000 * i, 40_000), Some(1))).collect());
    assert_eq!(gcc.target(), Some(Rate(800_000)));
    assert_eq!(probes(&mut gcc), [], "900 kbit/s were not the last of the first probes");
    let mut gcc = started(&[]);
    feed(&mut gcc, 200_000, (0..10).map(|i| fate(10_000 * i, arrived(10_000 * i, 40_000), Some(1))).collect());
    assert!(gcc.target().unwrap().0 < 400_000, "a cluster that nobody has asked for");
}

#[test]
fn what_is_unknown_is_neither_lost_nor_received() {
    let mut gcc = started(&[]);
    for i in 0..40 {
        let packets = (0..10).map(|j| fate(100_000 * i + 10_000 * j, Fate::Unknown, None)).collect();
        feed(&mut gcc, 100_000 * i + 150_000, packets);
    }
    assert_eq!(gcc.target(), Some(Rate(300_000)));
    assert!(gcc.network.reading().0.is_none());
}

#[test]
fn times_of_departure_are_whole_milliseconds() {
    let gcc = started(&[]);
    let result = gcc.packet_result(&fate(12_999, arrived(12_999, 40_000), None)).unwrap();
    assert_eq!((result.sent, result.arrived), (us(12_000), Some(us(52_999))));
}

proptest! {
    #[test]
    fn the_rates_stay_within_their_bounds(
        events in proptest::collection::vec((0u64..400_000, 0u64..3_000_000, 0u32..12, 0u64..200_000), 1..300)
    ) {
        let mut gcc = started(&[("min_rate", 50e3), ("max_rate", 2e6)]);
        let mut now = 0;
        for (i, &(since, delay, kind, in_flight)) in events.iter().enumerate() {
            now += since;
            match kind {
                0 => gcc.on_feedback(&RtpEvent::Tick, &path(us(now))),
                1 | 2 => {
                    let packet = SentPacket { size: Size(1000), ..SentPacket::default() };
                    gcc.on_feedback(&RtpEvent::Sent { packet, in_flight: Size(in_flight) }, &path(us(now)));
                }
                _ => {
                    let packets = (0..u64::from(kind)).map(|j| {
                        let sent = now.saturating_sub(delay) + j * 1000;
                        let lost = (i as u64 + j) % 7 < u64::from(kind) / 3;
                        fate(sent, if lost { Fate::Lost } else { arrived(sent, delay) }, (kind == 11).then_some(1))
                    });
                    feed(&mut gcc, now, packets.collect());
                }
            }
            let target = gcc.target().unwrap().0;
            prop_assert!((50_000..=2_000_000).contains(&target), "{target}");
            let rate = gcc.rate() * 8.0 / 1.1;
            prop_assert!((50e3 - 1.0..=2e6 + 1.0).contains(&rate), "{rate}");
            prop_assert!(gcc.padding_rate() * 8.0 <= rate + 1.0);
            for probe in std::iter::from_fn(|| gcc.next_probe()) {
                prop_assert!((1..=2_000_000).contains(&probe.rate.0) && probe.packets == 5);
            }
        }
    }
}
