//! Tests of the sender's log with complete, lost, late and repeated feedback.

use super::*;
use paceline_control::RtpSettings;
use paceline_packet::rtcp::ArrivalOffset;
use paceline_packet::rtp::Ssrc;
use proptest::prelude::*;

const BASE: u16 = 65_530;

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

fn wire(number: u32) -> u16 {
    BASE.wrapping_add(number as u16)
}

fn packet(size: u64) -> SentPacket {
    SentPacket { size: Size(size), payload: Size(size - 40), ..SentPacket::default() }
}

/// Packets every 10 ms from 0 on.
fn log(count: u32) -> SentLog {
    let mut log = SentLog::new(RtpSettings::REORDERING);
    for k in 0..count {
        log.push(ms(u64::from(k) * 10), packet(1000));
    }
    log
}

/// Feedback on packets from `begin` on; arrivals are in units of 1/1024 s before the report.
fn report(begin: u32, ago: &[Option<u16>]) -> StreamArrivals {
    let arrival = |ago: &Option<u16>| match ago {
        None => Arrival::Missing,
        Some(ago) => Arrival::Received { ecn: Ecn::Ect0, offset: ArrivalOffset::from_bits(*ago) },
    };
    StreamArrivals { ssrc: Ssrc(1), begin: wire(begin), packets: ago.iter().map(arrival).collect() }
}

fn report_to(log: &mut SentLog, now: u64, report: &StreamArrivals) -> Option<Feedback> {
    log.report(ms(now), NtpMiddle::at(ms(now - 20)), report, wire)
}

fn fates(feedback: &Option<Feedback>) -> Vec<char> {
    let fate = |packet: &PacketResult| match packet.fate {
        Fate::Arrived { .. } => 'a',
        Fate::Lost => 'l',
        Fate::Unknown => 'u',
    };
    feedback.iter().flat_map(|feedback| &feedback.packets).map(fate).collect()
}

#[test]
fn arrivals_and_the_round_trip_time() {
    let mut log = log(4);
    // reported at 1 s: the last packet, sent at 0.03 s, arrived 0.5 s before; the report took 20 ms
    let feedback = report_to(&mut log, 1020, &report(0, &[Some(1024), Some(768), Some(512), Some(512)])).unwrap();
    assert_eq!(feedback.packets.len(), 4);
    assert_eq!((feedback.packets[1].sent, feedback.packets[1].size()), (ms(10), Size(1000)));
    let Fate::Arrived { at: Some(at), marked: false } = feedback.packets[1].fate else { panic!("{feedback:?}") };
    assert!(at.0.abs_diff(ms(250).0) < 16_000, "{at:?}");
    assert_eq!(feedback.rtt, Some(Span::from_millis(1020 - 500 - 30)));
    assert_eq!(feedback.end, 4);
    assert_eq!(log.oldest(), None);
}

#[test]
fn offsets_that_do_not_tell() {
    let mut log = log(2);
    let bits = ArrivalOffset::UNAVAILABLE.bits();
    let feedback = report_to(&mut log, 1020, &report(0, &[Some(bits), Some(bits)])).unwrap();
    assert_eq!(feedback.rtt, None);
    assert!(feedback.packets.iter().all(|packet| matches!(packet.fate, Fate::Arrived { at: None, .. })));
}

#[test]
fn a_receiver_may_have_any_clock() {
    // hours behind the sender's zero, hours ahead, and half of the report time's period
    for ahead in [-8.0, -1.0, 0.0, 5.0, 9.102, 9.103].map(|hours: f64| (hours * 3600.0 * 65_536.0) as i64 as u32) {
        let mut log = log(30);
        let mut arrived = Vec::new();
        for k in 0..10 {
            let now = ms(u64::from(k) * 30 + 70);
            let made = NtpMiddle(NtpMiddle::at(now).0.wrapping_add(ahead));
            let feedback = log.report(now, made, &report(k * 3, &[Some(40), Some(30), Some(20)]), wire).unwrap();
            arrived.extend(feedback.packets.iter().map(|packet| match packet.fate {
                Fate::Arrived { at: Some(at), .. } => at,
                _ => panic!("{packet:?}"),
            }));
        }
        assert_eq!(arrived.len(), 30);
        for pair in arrived.windows(2) {
            let apart = pair[1].since(pair[0]);
            assert!(apart.0.abs_diff(10_000_000) < 1_000_000, "{ahead}: {apart:?}");
        }
    }
}

#[test]
fn a_packet_is_lost_when_three_after_it_have_come() {
    let mut log = log(10);
    let first = report_to(&mut log, 1000, &report(0, &[Some(9), None, Some(9), Some(9)]));
    assert_eq!(fates(&first), ['a'], "two after it: it may still come");
    let second = report_to(&mut log, 1100, &report(4, &[Some(9)]));
    assert_eq!(fates(&second), ['l', 'a', 'a', 'a']);
    let late = report_to(&mut log, 1200, &report(1, &[Some(9), Some(9), Some(9), Some(9), Some(9)]));
    assert_eq!(fates(&late), ['a'], "packet 5 alone is news");
}

#[test]
fn a_packet_that_comes_late_is_no_loss() {
    let mut log = log(10);
    report_to(&mut log, 1000, &report(0, &[Some(9), None, Some(9)]));
    let second = report_to(&mut log, 1100, &report(1, &[Some(9), Some(9), Some(9)]));
    assert_eq!(fates(&second), ['a', 'a', 'a']);
}

#[test]
fn feedback_twice_tells_nothing_new() {
    let mut log = log(6);
    let first = report(0, &[Some(9), Some(9), Some(9)]);
    assert_eq!(fates(&report_to(&mut log, 1000, &first)).len(), 3);
    assert_eq!(report_to(&mut log, 1001, &first), None);
}

#[test]
fn lost_feedback_leaves_fates_unknown_and_late_feedback_does_not() {
    let two = report(3, &[Some(9), Some(9), Some(9)]);
    let three = report(6, &[Some(9), Some(9), Some(9)]);
    let mut lost = log(9);
    assert_eq!(report_to(&mut lost, 1100, &two), None, "the first may be late");
    assert_eq!(fates(&report_to(&mut lost, 1200, &three)), ['u', 'u', 'u', 'a', 'a', 'a', 'a', 'a', 'a']);
    let mut late = log(9);
    assert_eq!(report_to(&mut late, 1100, &two), None);
    let first = report(0, &[Some(9), None, Some(9)]);
    assert_eq!(fates(&report_to(&mut late, 1110, &first)), ['a', 'l', 'a', 'a', 'a', 'a']);
}

#[test]
fn marks_are_told() {
    let mut log = log(1);
    let mut marked = report(0, &[Some(9)]);
    marked.packets[0] = Arrival::Received { ecn: Ecn::Ce, offset: ArrivalOffset::from_bits(9) };
    let feedback = report_to(&mut log, 1000, &marked).unwrap();
    assert!(matches!(feedback.packets[0].fate, Fate::Arrived { marked: true, .. }));
}

#[test]
fn packets_that_were_never_sent_make_no_report() {
    let mut log = log(3);
    assert_eq!(report_to(&mut log, 1000, &report(2, &[Some(9), Some(9)])), None);
    assert_eq!(report_to(&mut log, 1000, &report(40_000, &[Some(9)])), None);
    assert_eq!(report_to(&mut log, 1000, &report(0, &[])), None);
}

proptest! {
    #[test]
    fn each_packet_is_told_of_once_and_in_order(
        reports in prop::collection::vec((0..300u32, prop::collection::vec(proptest::option::of(0..0x2000u16), 0..60)), 1..60),
    ) {
        let mut log = log(200);
        let mut before = None;
        for (k, (begin, ago)) in reports.iter().enumerate() {
            let Some(feedback) = report_to(&mut log, 3000 + k as u64 * 10, &report(*begin, ago)) else { continue };
            for packet in feedback.packets {
                prop_assert!(before.is_none_or(|before| packet.sent > before));
                before = Some(packet.sent);
            }
            prop_assert!(feedback.end <= 200);
        }
    }
}

#[test]
fn what_feedback_has_not_covered_is_in_flight() {
    let mut log = log(6);
    assert_eq!(log.in_flight(), 6000);
    // the gap is settled with the packets after it; the late report of the first two changes nothing
    report_to(&mut log, 100, &report(0, &[Some(20), None, Some(10), Some(10)]));
    assert_eq!(log.in_flight(), 2000);
    report_to(&mut log, 110, &report(0, &[Some(30), Some(30)]));
    assert_eq!(log.in_flight(), 2000);
    log.push(ms(120), packet(500));
    assert_eq!(log.in_flight(), 2500);
    report_to(&mut log, 140, &report(4, &[Some(20), Some(10), Some(5)]));
    assert_eq!(log.in_flight(), 0);
}

#[test]
fn what_is_forgotten_is_in_flight_no_more() {
    let mut log = log(StreamArrivals::MAX as u32 + 10);
    assert_eq!(log.in_flight(), 1000 * StreamArrivals::MAX as u64);
    report_to(&mut log, 1000, &report(StreamArrivals::MAX as u32 + 9, &[Some(1)]));
    assert_eq!(log.in_flight(), 0);
}

#[test]
fn a_controller_may_hear_of_holes_at_once() {
    let mut log = SentLog::new(0);
    for k in 0..3 {
        log.push(ms(k * 10), packet(1000));
    }
    assert_eq!(fates(&report_to(&mut log, 100, &report(0, &[Some(20), None, Some(10)]))), ['a', 'l', 'a']);
}
