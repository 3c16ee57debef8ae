//! RFC 5348 section 6, number by number; 1000-byte payloads.

use super::*;
use paceline_control::Settings;
use paceline_control::models::PerAck;
use paceline_packet::{ExtraId, FlowId, TfrcMore};

const R: u64 = 100;

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

struct Script {
    receiver: TfrcReceiver,
    rtt: Span,
    reports: Vec<(u64, u32, TfrcReport)>,
}

impl Script {
    fn new(law: Law) -> Script {
        Script::with(Settings { law, ..Settings::PLAIN })
    }

    fn with(settings: Settings) -> Script {
        let config = TfrcConfig { segment: 1000, header: 0, ..TfrcConfig::new(Default::default(), settings) };
        Script { receiver: TfrcReceiver::new(&config), rtt: Span::from_millis(R), reports: Vec::new() }
    }

    fn keep(&mut self, at: u64, out: Vec<Segment>) -> usize {
        for segment in &out {
            let Some(Extra::TfrcReport(_, report)) = segment.extra else { panic!("not a report") };
            assert!(segment.flags.has(Flags::ACK));
            self.reports.push((at, segment.seq, report));
        }
        out.len()
    }

    /// Runs timers until this time, then receives a packet; returns whether a report was sent.
    fn packet_with(&mut self, at: u64, seq: u32, flags: Flags) -> bool {
        self.wait(at);
        let packet = Packet {
            time: ms(at),
            flow: FlowId(0),
            seq,
            stamp: Stamp::at(ms(at.saturating_sub(R / 2))),
            cursor: 0,
            extra: ExtraId::NONE,
            size: 1000,
            flags,
        };
        let mut out = Vec::new();
        let extra = Extra::TfrcData(Subflow::ONLY, TfrcData { rtt: self.rtt, more: TfrcMore::Nothing });
        self.receiver.on_data(ms(at), &packet, Some(&extra), &mut out);
        self.keep(at, out) > 0
    }

    fn packet(&mut self, at: u64, seq: u32) -> bool {
        self.packet_with(at, seq, Flags::NONE)
    }

    fn wait(&mut self, until: u64) {
        while self.receiver.next_wake() <= ms(until) {
            let at = self.receiver.next_wake();
            let mut out = Vec::new();
            self.receiver.on_timer(at, &mut out);
            self.keep(at.0 / 1_000_000, out);
        }
    }

    fn last(&self) -> (u64, u32, TfrcReport) {
        *self.reports.last().expect("a report")
    }
}

#[test]
fn section_6_3_the_first_packet_is_answered_with_p_and_x_recv_zero() {
    let mut s = Script::new(Law::Rfc5348);
    assert!(s.packet(0, 0));
    let (_, next, report) = s.last();
    assert_eq!((next, report.receive_rate, report.loss_event_rate, report.delay), (1, 0.0, 0.0, Span::ZERO));
    // if the sender has no round-trip time, each packet is reported
    let mut s = Script::new(Law::Rfc5348);
    s.rtt = Span::ZERO;
    assert!(s.packet(0, 0) && s.packet(1000, 1) && s.packet(2000, 2));
    assert_eq!(s.receiver.next_wake(), Time::NEVER);
}

#[test]
fn section_6_3_the_timer_starts_with_the_first_round_trip_time() {
    for law in [Law::Rfc5348, Law::Rfc3448] {
        let mut s = Script::new(law);
        s.rtt = Span::ZERO;
        assert!(s.packet(0, 0), "answered, so that the sender has a sample");
        s.rtt = Span::from_millis(R);
        for i in 0..20 {
            s.packet(100 + 20 * i, 1 + i as u32);
        }
        let at: Vec<u64> = s.reports.iter().map(|r| r.0).collect();
        assert_eq!(at, [0, 200, 300, 400], "{law:?}");
        let rates: Vec<f64> = s.reports.iter().map(|r| r.2.receive_rate).collect();
        assert_eq!(rates, [0.0, 50_000.0, 50_000.0, 50_000.0], "{law:?}: nothing of the time before counts");
    }
}

#[test]
fn section_6_2_a_report_each_round_trip_if_data_came() {
    let mut s = Script::new(Law::Rfc5348);
    for i in 0..20 {
        s.packet(20 * i, i as u32);
    }
    s.wait(1000);
    let at: Vec<u64> = s.reports.iter().map(|r| r.0).collect();
    assert_eq!(at, [0, 100, 200, 300, 400]); // but not at 500, without data
    assert_eq!(s.last().1, 20);
    assert_eq!(s.reports[2].2.receive_rate, 50_000.0);
    assert_eq!(s.last().2.delay, Span::from_millis(20)); // t_delay: the last packet arrived at 380 ms
    assert_eq!(s.receiver.next_wake(), Time::NEVER, "an idle flow keeps nobody awake");
    // section 6.1 step 3: no report at the last expiry, so the next packet is reported at once
    assert!(s.packet(1000, 20));
    let (_, next, report) = s.last();
    assert_eq!(next, 21);
    // X_recv since the last expiry at least a round trip ago, at 900 ms
    assert!((report.receive_rate - 10_000.0).abs() < 1e-6, "{report:?}");
}

#[test]
fn section_6_1_a_higher_p_is_reported_at_once() {
    let mut s = Script::new(Law::Rfc5348);
    for i in 0..10 {
        s.packet(10 * i, i as u32);
    }
    assert!(!s.packet(110, 11) && !s.packet(120, 12));
    assert!(s.packet(130, 13), "the third packet after the loss of 10");
    assert!(s.last().2.loss_event_rate > 0.0);
    assert_eq!(s.receiver.next_wake(), ms(230)); // the timer has restarted
    // losses in the same round trip: p does not increase
    assert!(!s.packet(150, 15) && !s.packet(160, 16) && !s.packet(170, 17));
}

#[test]
fn section_6_3_1_the_first_interval_gives_the_rate_back() {
    for per_ack in [PerAck::ONE, PerAck::TWO] {
        let mut s = Script::with(Settings { per_ack, ..Settings::PLAIN });
        // 5 packets per round trip, then 10, then 4: the highest rate counts
        let mut seq = 0;
        for (from, n) in [(0, 5), (100, 10), (200, 4)] {
            for i in 0..n {
                s.packet(from + i * 100 / n, seq);
                seq += 1;
            }
        }
        for (i, n) in [1, 2, 3].into_iter().enumerate() {
            s.packet(300 + 5 * i as u64, seq + n);
        }
        let (_, _, report) = s.last();
        let rtt = Span::from_millis(R);
        let terms = Terms::new(1000, rtt, rtt * 4).unwrap().covering(per_ack);
        let rate = terms.tfrc_rate(report.loss_event_rate);
        // the RFC requires 5 %
        assert!((rate / 100_000.0 - 1.0).abs() < 1e-9, "{rate}");
    }
}

#[test]
fn section_6_3_1_a_lost_first_packet_gives_a_packet_in_two_round_trips() {
    for marked in [false, true] {
        let mut s = Script::new(Law::Rfc5348);
        s.rtt = Span::ZERO;
        if marked {
            s.packet_with(0, 0, Flags::CE);
        } else {
            s.packet(0, 1);
            s.packet(1000, 2);
            s.packet(2000, 3);
        }
        let rtt = Span::from_millis(70);
        let rate = Terms::new(1000, rtt, rtt * 4).unwrap().tfrc_rate(s.last().2.loss_event_rate);
        assert!((rate / (0.5 * 1000.0 / 0.07) - 1.0).abs() < 1e-9, "{rate}");
    }
}

#[test]
fn section_6_3_1_half_a_packet_a_round_trip_is_the_least() {
    let mut s = Script::new(Law::Rfc5348);
    // the sender has no round-trip time yet; it sends a packet per second, and the second one is lost
    s.rtt = Span::ZERO;
    for (i, seq) in [0, 2, 3, 4].into_iter().enumerate() {
        s.packet(1000 * i as u64, seq);
    }
    let rtt = Span::from_millis(70);
    let rate = Terms::new(1000, rtt, rtt * 4).unwrap().tfrc_rate(s.last().2.loss_event_rate);
    assert!((rate / (0.5 * 1000.0 / 0.07) - 1.0).abs() < 1e-9, "{rate}");
}

#[test]
fn section_6_2_an_early_report_looks_back_by_the_round_trip_that_the_timer_was_set_with() {
    let mut s = Script::new(Law::Rfc5348);
    for i in 0..5 {
        s.packet(20 * i, i as u32);
    }
    for i in 0..=10 {
        s.packet(100 + 10 * i, 5 + i as u32);
    }
    // R_(m-1) is the round-trip time set at the expiry at 200 ms
    s.rtt = Span::from_millis(3 * R);
    assert!(!s.packet(210, 16) && !s.packet(230, 18) && !s.packet(240, 19));
    assert!(s.packet(250, 20), "17 is lost");
    // since the expiry at 100 ms, the last one at least R_(m-1) ago: 15 packets
    let (_, _, report) = s.last();
    assert!((report.receive_rate - 15_000.0 / 0.15).abs() < 1e-6, "{report:?}");
    assert_eq!(s.receiver.next_wake(), ms(250 + 3 * R));
}

#[test]
fn section_5_1_marks_count_at_once() {
    let mut s = Script::new(Law::Rfc5348);
    for i in 0..10 {
        s.packet(10 * i, i as u32);
    }
    assert!(s.packet_with(105, 10, Flags::CE.with(Flags::ECT)));
    let p = s.last().2.loss_event_rate;
    assert!(p > 0.0);
    assert!(!s.packet_with(115, 11, Flags::CE), "the same round trip");
    assert_eq!(s.receiver.stats().marks, 2);
    // a round trip later: a new event, ten packets after the first
    for i in 12..20 {
        s.packet(10 * i, i as u32);
    }
    assert!(s.packet_with(210, 20, Flags::CE));
    // its interval of ten and the computed one, which alone determined p
    let expected = 2.0 / (10.0 + 1.0 / p);
    assert!((s.last().2.loss_event_rate / expected - 1.0).abs() < 1e-9, "{:?} {expected}", s.last());
    assert!(expected > p);
}

#[test]
fn section_5_1_a_late_packet_fills_its_hole() {
    let mut s = Script::new(Law::Rfc5348);
    for i in (0..10).chain([11, 12, 13]) {
        s.packet(10 * i, i as u32);
    }
    assert!(s.receiver.loss_event_rate() > 0.0);
    assert!(!s.packet(140, 10));
    assert_eq!(s.receiver.loss_event_rate(), 0.0);
    s.packet(150, 10);
    let stats = s.receiver.stats();
    assert_eq!((stats.packets, stats.duplicates, stats.bytes), (15, 1, 14_000));
}

#[test]
fn rfc_3448_measures_since_the_last_report() {
    let mut s = Script::new(Law::Rfc3448);
    for i in 0..10 {
        s.packet(10 * i, i as u32);
    }
    for i in 11..=13 {
        s.packet(10 * i, i as u32);
    }
    // reports at 0, 100 and 130 ms: four packets (10 is lost) in 30 ms; RFC 5348 would measure over a round trip
    let (at, _, report) = s.last();
    assert_eq!(at, 130);
    assert!((report.receive_rate - 3000.0 / 0.03).abs() < 1e-6, "{report:?}");
}

#[test]
fn a_sender_that_begins_afresh_has_a_fresh_history() {
    let mut s = Script::new(Law::Rfc5348);
    for i in (0..10).chain([11, 12, 13]) {
        s.packet(10 * i, i as u32);
    }
    assert!(s.receiver.loss_event_rate() > 0.0);
    s.rtt = Span::ZERO;
    assert!(s.packet(1000, 20));
    assert_eq!((s.last().2.loss_event_rate, s.last().2.receive_rate), (0.0, 0.0));
}

/// Its rounds restart too; compared with the previous rounds, losses would be ignored for as long.
#[test]
fn ns2_a_sender_that_begins_afresh_has_a_fresh_history() {
    let mut s = Script::new(Law::Ns2);
    for i in (10..20).chain([21, 22, 23]) {
        s.packet(10 * i, i as u32);
    }
    assert!(s.receiver.loss_event_rate() > 0.0);
    s.rtt = Span::ZERO;
    s.packet(1000, 30);
    assert_eq!(s.receiver.loss_event_rate(), 0.0);
    s.rtt = Span::from_millis(R);
    for i in (31..40).chain([41]) {
        s.packet(1000 + 10 * (i - 30), i as u32);
    }
    assert!(s.receiver.loss_event_rate() > 0.0);
}

#[test]
fn ns2_one_later_packet_tells_of_a_loss_and_the_round_must_have_passed() {
    let mut s = Script::new(Law::Ns2);
    let send = |s: &mut Script, at: u64, seq: u32, round: u32| {
        s.wait(at);
        let packet = Packet {
            time: ms(at),
            flow: FlowId(0),
            seq,
            stamp: Stamp::at(ms(at - 50)),
            cursor: 0,
            extra: ExtraId::NONE,
            size: 1000,
            flags: Flags::NONE,
        };
        let more = TfrcMore::Ns2(paceline_packet::Ns2Data { timeout: Span::from_millis(300), round, urgent: false });
        let extra = Extra::TfrcData(Subflow::ONLY, TfrcData { rtt: s.rtt, more });
        let mut out = Vec::new();
        s.receiver.on_data(ms(at), &packet, Some(&extra), &mut out);
        s.keep(at, out) > 0
    };
    for i in 0..30 {
        send(&mut s, 1000 + 10 * u64::from(i), i, 1);
    }
    assert!(send(&mut s, 1310, 31, 1), "the first loss");
    let p = s.last().2.loss_event_rate;
    assert!(p > 0.0);
    for i in 32..50 {
        send(&mut s, 1000 + 10 * u64::from(i), i, 1);
    }
    // a round-trip time later, but before the sender has answered the report of the first loss
    send(&mut s, 1510, 51, 1);
    assert!(s.receiver.loss_event_rate() <= p);
    assert!(send(&mut s, 1530, 53, 2));
    // late packets are ignored
    assert!(!send(&mut s, 1540, 52, 2));
    assert_eq!(s.receiver.stats().duplicates, 1);
}
