//! RFC 5348 section 4, as the machine keeps it: what leaves, and when.

use crate::tfrc_path::flow;
use paceline_control::{Law, Profile, RateController};
use paceline_flow::Segment;
use paceline_flow::tfrc::{TfrcConfig, TfrcSender};
use paceline_packet::{
    Extra, ExtraId, Flags, FlowId, FramePart, Packet, Stamp, Subflow, TfrcData, TfrcMore, TfrcReport,
};
use paceline_random::Stream;
use paceline_units::{Span, Time};

fn ms(n: f64) -> Time {
    Time((n * 1e6) as u64)
}

struct Script {
    sender: TfrcSender,
    out: Vec<Segment>,
    /// When each packet left, in ms.
    left: Vec<f64>,
}

impl Script {
    fn new(profile: Profile, given: &[(&str, f64)]) -> Script {
        let (config, controller) = flow("tfrc", profile, given);
        let config = TfrcConfig { segment: 1000, header: 20, ..config };
        let sender = TfrcSender::new(&config, controller, Stream::new(1, "s"));
        Script { sender, out: Vec::new(), left: Vec::new() }
    }

    fn greedy(profile: Profile, given: &[(&str, f64)]) -> Script {
        let mut s = Script::new(profile, given);
        s.sender.supply_endless(Time::ZERO, &mut s.out);
        assert!(s.out.is_empty(), "nothing leaves before the start");
        s.sender.start(Time::ZERO, &mut s.out);
        s.note(0.0);
        s
    }

    fn note(&mut self, at: f64) {
        self.left.resize(self.out.len(), at);
    }

    /// Timers up to then; how many packets left.
    fn wait(&mut self, until: f64) -> usize {
        let before = self.out.len();
        while self.sender.next_wake() <= ms(until) {
            let at = self.sender.next_wake();
            self.sender.on_timer(at, &mut self.out);
            self.note(at.as_secs_f64() * 1e3);
        }
        self.out.len() - before
    }

    fn supply(&mut self, at: f64, bytes: u64) -> usize {
        self.wait(at);
        let before = self.out.len();
        self.sender.supply(bytes, ms(at), &mut self.out);
        self.note(at);
        self.out.len() - before
    }

    /// A report of packet `seq`, which left `ago` ms before, on everything up to it.
    fn report(&mut self, at: f64, seq: u32, ago: f64, receive_rate: f64, p: f64) {
        self.wait(at);
        let packet = Packet {
            time: ms(at),
            flow: FlowId(0),
            seq: seq + 1,
            stamp: Stamp::at(ms(at - ago)),
            cursor: 0,
            extra: ExtraId::NONE,
            size: 60,
            flags: Flags::ACK,
        };
        let report = TfrcReport { delay: Span::ZERO, receive_rate, loss_event_rate: p };
        self.sender.on_report(ms(at), &packet, Some(&Extra::TfrcReport(Subflow::ONLY, report)), &mut self.out);
        self.note(at);
    }

    fn header(&self, i: usize) -> TfrcData {
        match self.out[i].extra {
            Some(Extra::TfrcData(_, data)) => data,
            _ => panic!("no header"),
        }
    }

    fn rate(&self) -> f64 {
        self.sender.controller().rate()
    }
}

#[test]
fn sections_4_2_and_4_4_before_the_first_report() {
    let mut s = Script::greedy(Profile::Rfc, &[]);
    // a packet a second; the timer of two seconds halves the rate, then each 2 s / X
    s.wait(10_000.0);
    assert_eq!(s.left, [0.0, 1000.0, 2000.0, 4000.0, 6000.0, 10_000.0]);
    assert_eq!((s.header(0).rtt, s.out[0].size, s.out[0].seq), (Span::ZERO, 1020, 0));
    assert!((s.rate() - 250.0).abs() < 1e-9);
    // a packet in 64 s at least (t_mbi)
    s.wait(1_000_000.0);
    assert!((s.rate() - 1000.0 / 64.0).abs() < 1e-9);
    let last: Vec<f64> = s.left.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(last.iter().all(|gap| *gap <= 64_000.1), "{last:?}");
    assert!(last[last.len() - 1] > 63_999.0);
}

#[test]
fn section_4_2_the_first_report_gives_w_init_per_round_trip() {
    let mut s = Script::greedy(Profile::Rfc, &[]);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    s.wait(200.0);
    // at once, then evenly: no burst for the time in which the rate was lower
    assert_eq!(s.left, [0.0, 100.0, 125.0, 150.0, 175.0, 200.0]);
    let rtt = s.header(1).rtt;
    assert!(rtt.0.abs_diff(100_000_000) < 300, "{rtt:?}"); // stamps are of 256 ns
    assert_eq!(s.header(1).more, TfrcMore::Nothing);
    assert_eq!(s.sender.srtt(), rtt);
}

/// Of video each packet says which part of a frame it is, and s is the average segment (section 4.1).
#[test]
fn section_4_1_frames_are_told_and_their_packets_averaged() {
    let (config, controller) = flow("tfrc", Profile::Rfc, &[]);
    let config = TfrcConfig { segment: 1000, header: 20, frames: true, ..config };
    let sender = TfrcSender::new(&config, controller, Stream::new(1, "s"));
    let mut s = Script { sender, out: Vec::new(), left: Vec::new() };
    let part = |s: &Script, i: usize| match s.header(i).more {
        TfrcMore::Frame(FramePart { captured, last }) => (captured.0, last),
        _ => panic!("no part of a frame"),
    };
    s.sender.start(Time::ZERO, &mut s.out);
    assert_eq!(s.supply(0.0, 2000), 1);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    // W_init, four segments of 1000 bytes, in a round trip
    assert_eq!(s.sender.target().map(|rate| rate.0), Some(4 * 10 * 1020 * 8));
    for frame in 1..200u32 {
        s.report(f64::from(frame) * 100.0 + 50.0, s.out.len() as u32 - 1, 50.0, 1e6, 0.0);
        let at = f64::from(frame + 1) * 100.0;
        s.supply(at, 1200);
        s.wait(at + 49.0);
        let (captured, last) = part(&s, s.out.len() - 1);
        assert_eq!((captured, last), (Stamp::at(ms(at)).0, true));
        assert_eq!(part(&s, s.out.len() - 2), (captured, false));
        let sizes = [2, 1].map(|back| s.out[s.out.len() - back].size);
        assert_eq!(sizes, [1020, 220]);
    }
    // X is in bytes of payload; packets of 600 in the mean carry 20 more
    let mean = s.rate() * s.sender.srtt().as_secs_f64() / s.sender.window();
    assert!((600.0..620.0).contains(&mean), "{mean}");
    let target = s.sender.target().unwrap().0 as f64;
    assert!((target / (s.rate() * 8.0) - (mean + 20.0) / mean).abs() < 1e-6);
    // what waits is to leave within half a second, of which it may take half the rate
    s.sender.supply(1_000_000_000, ms(25_000.0), &mut s.out);
    assert!((s.sender.target().unwrap().0 as f64 / (s.rate() * 8.0) - 0.5).abs() < 0.02);
    assert!(s.sender.queueing() > Span::from_secs(1));
    s.sender.restart(ms(25_000.0));
    assert_eq!((s.sender.queueing(), s.sender.acked_all()), (Span::ZERO, false));
}

#[test]
fn section_4_3_nofeedback_timer_of_four_round_trips() {
    let mut s = Script::greedy(Profile::Rfc, &[]);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    s.wait(499.0);
    assert!((s.rate() / 40_000.0 - 1.0).abs() < 1e-5);
    s.wait(501.0);
    assert!((s.rate() / 20_000.0 - 1.0).abs() < 1e-5);
    s.wait(901.0);
    assert!((s.rate() / 10_000.0 - 1.0).abs() < 1e-5);
    assert_eq!(s.sender.stats().timeouts, 2);
    // 2 s / X once that is longer
    s.wait(1_301.0);
    assert!((s.rate() / 5_000.0 - 1.0).abs() < 1e-5);
    s.wait(1_699.0);
    assert!((s.rate() / 5_000.0 - 1.0).abs() < 1e-5);
    s.wait(1_702.0);
    assert!((s.rate() / 2_500.0 - 1.0).abs() < 1e-5);
}

#[test]
fn section_4_6_after_a_pause_a_round_trip_of_packets_at_most() {
    for (burst, expected) in [(1.0, 5), (0.5, 3), (0.0, 1)] {
        let mut s = Script::new(Profile::Rfc, &[("burst", burst)]);
        s.sender.start(Time::ZERO, &mut s.out);
        assert_eq!(s.supply(0.0, 1000), 1);
        s.report(100.0, 0, 100.0, 0.0, 0.0);
        // nothing to send for two seconds; four packets a round trip are allowed
        assert_eq!(s.supply(2000.0, 50_000), expected, "{burst}");
        s.wait(2100.0);
        assert_eq!(s.left.len(), 1 + expected + 4);
    }
}

#[test]
fn section_4_4_an_idle_sender_keeps_what_it_may_begin_with() {
    let mut s = Script::new(Profile::Rfc, &[]);
    s.sender.start(Time::ZERO, &mut s.out);
    s.supply(0.0, 1000);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    s.wait(100_000.0);
    assert!((s.rate() / 40_000.0 - 1.0).abs() < 1e-5);
    assert_eq!(s.sender.next_wake(), Time::NEVER, "an idle flow keeps nobody awake");
    // and what it has to send without an answer is taken from it
    s.supply(100_000.0, 1_000_000);
    s.wait(100_401.0);
    assert!((s.rate() / 20_000.0 - 1.0).abs() < 1e-5);
}

#[test]
fn section_4_3_a_data_limited_sender_is_not_held_to_what_it_sent() {
    let mut s = Script::new(Profile::Rfc, &[]);
    s.sender.start(Time::ZERO, &mut s.out);
    s.supply(0.0, 1000);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    s.report(200.0, 0, 100.0, 400_000.0, 0.0001);
    s.report(350.0, 0, 100.0, 400_000.0, 0.0001);
    let rate = s.rate();
    // a packet a round trip from now on, far below what is allowed
    for i in 0..30 {
        let at = 400.0 + 100.0 * f64::from(i);
        s.supply(at, 1000);
        s.report(at + 99.0, i + 1, 99.0, 10_000.0, 0.0001);
    }
    assert!(s.rate() > 0.95 * rate, "{} {rate}", s.rate());
    // a greedy one with the same reports is held to twice of them
    let mut s = Script::greedy(Profile::Rfc, &[]);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    for i in 0..30 {
        let at = 200.0 + 100.0 * f64::from(i);
        let last = s.out.len() as u32 - 1;
        s.report(at, last, 100.0, 10_000.0, 0.0001);
    }
    assert!((s.rate() / 20_000.0 - 1.0).abs() < 1e-9, "{}", s.rate());
}

#[test]
fn section_8_3_packets_may_leave_half_a_timers_granularity_early() {
    let mut s = Script::greedy(Profile::Rfc, &[("granularity", 0.01)]);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    s.wait(200.0);
    // t_delta = min(25 ms, 10 ms, 100 ms) / 2
    assert_eq!(s.left, [0.0, 100.0, 120.0, 145.0, 170.0, 195.0]);
}

#[test]
fn reports_that_cannot_be_ours_change_nothing() {
    let mut s = Script::greedy(Profile::Rfc, &[]);
    s.report(100.0, 0, 100.0, 0.0, 0.0);
    s.wait(200.0);
    let (rate, wake) = (s.rate(), s.sender.next_wake());
    for (seq, ago, received, p) in [
        (5000, 100.0, 1e3, 0.5), // never sent
        (3, 100.0, f64::NAN, 0.5),
        (3, 100.0, 1e3, f64::NAN),
        (3, 100.0, -1.0, 0.5),
        (3, 100.0, 1e3, 1.5),
        (3, 100.0, f64::INFINITY, 0.5),
    ] {
        s.report(200.0, seq, ago, received, p);
        assert_eq!((s.rate(), s.sender.next_wake()), (rate, wake), "{seq} {received} {p}");
    }
    // one that comes late, after a newer one
    s.report(210.0, 3, 100.0, 40_000.0, 0.0);
    let rate = s.rate();
    s.report(220.0, 1, 100.0, 1.0, 0.9);
    assert_eq!(s.rate(), rate);
    // an echo of a time before the start: 18 minutes modulo the clock's range
    s.report(230.0, 4, -1000.0, 1.0, 0.9);
    assert_eq!(s.rate(), rate);
}

/// Stamps begin anew every 2^32 units of 256 ns, 1099.5 s: reports of the round trip after that are as good as others.
#[test]
fn reports_count_when_stamps_begin_anew() {
    let around = f64::from(u32::MAX) * 256e-6; // ms
    for profile in [Profile::Rfc, Profile::Ns2] {
        let mut s = Script::greedy(profile, &[]);
        s.report(100.0, 0, 100.0, 0.0, 0.0);
        let samples = |s: &Script| s.sender.stats().rtt_count;
        for after in [-150.0, -50.0, 1.0, 50.0, 99.0, 150.0] {
            s.wait(around + after);
            let (newest, before) = (s.out.len() as u32 - 1, samples(&s));
            s.report(around + after, newest, 100.0, 1e4, 0.01);
            assert_eq!(samples(&s), before + 1, "{profile:?}: {after} ms after");
        }
    }
}

#[test]
fn short_packets_stops_and_fresh_starts() {
    let mut s = Script::new(Profile::Rfc, &[]);
    s.sender.start(Time::ZERO, &mut s.out);
    assert!(s.sender.acked_all());
    s.supply(0.0, 2300);
    s.wait(5000.0);
    assert_eq!(s.out.iter().map(|p| p.size).collect::<Vec<_>>(), [1020, 1020, 320]);
    assert!(s.sender.acked_all());
    assert_eq!((s.sender.stats().packets_sent, s.sender.stats().bytes_acked), (3, 2300));
    s.supply(5000.0, 50_000);
    s.sender.stop();
    assert_eq!(s.sender.next_wake(), Time::NEVER);
    let sent = s.out.len();
    s.sender.supply(1000, ms(6000.0), &mut s.out);
    assert_eq!(s.out.len(), sent);
    s.sender.restart(ms(7000.0));
    s.sender.supply(1000, ms(7000.0), &mut s.out);
    s.sender.start(ms(7000.0), &mut s.out);
    assert_eq!(s.out.len(), sent + 1);
    assert_eq!(s.header(sent).rtt, Span::ZERO);
    assert_eq!(s.out[sent].seq as usize, sent);
}

/// ns-2's timer runs on while there is nothing to send; after a stop it does not.
#[test]
fn one_that_has_stopped_sleeps() {
    for profile in Profile::ALL {
        for law in Law::ALL {
            let mut s = Script::greedy(profile, &[("law", law.code())]);
            s.report(100.0, 1, 100.0, 1000.0, 0.01);
            s.wait(1000.0);
            s.sender.stop();
            assert_eq!(s.sender.next_wake(), Time::NEVER, "{profile:?} {law:?}");
        }
    }
}

#[test]
fn ecn_capable_packets_say_so() {
    let (config, controller) = flow("tfrc", Profile::Rfc, &[]);
    let mut sender = TfrcSender::new(&TfrcConfig { ecn: true, ..config }, controller, Stream::new(1, "s"));
    let mut out = Vec::new();
    sender.supply_endless(Time::ZERO, &mut out);
    sender.start(Time::ZERO, &mut out);
    assert!(out[0].flags.has(Flags::ECT));
}

#[test]
fn ns2_the_first_packets() {
    let mut s = Script::greedy(Profile::Ns2, &[]);
    // 300 B/s; nothing comes back: halved after 2 s / X, with a packet at once
    s.wait(7000.0);
    assert_eq!(s.left.iter().map(|t| t.round()).collect::<Vec<_>>(), [0.0, 3333.0, 6667.0, 6667.0]);
    let TfrcMore::Ns2(header) = s.header(0).more else { panic!("no header of ns-2") };
    assert_eq!((header.timeout, header.round, header.urgent), (Span::ZERO, 0, true));
    let mut s = Script::greedy(Profile::Ns2, &[]);
    s.report(100.0, 0, 100.0, 1000.0, 0.0);
    // a report is answered by a packet at once, then four a round trip
    s.wait(180.0);
    assert_eq!(s.left.iter().map(|t| t.round()).collect::<Vec<_>>(), [0.0, 100.0, 125.0, 150.0, 175.0]);
    let TfrcMore::Ns2(header) = s.header(1).more else { panic!("no header of ns-2") };
    assert_eq!((header.timeout, header.round, header.urgent), (Span::from_millis(300), 1, false));
}

#[test]
fn ns2_a_sender_that_runs_dry_sends_at_once_when_it_can_and_keeps_its_timer() {
    let mut s = Script::new(Profile::Ns2, &[]);
    s.sender.start(Time::ZERO, &mut s.out);
    s.supply(0.0, 1000);
    s.report(100.0, 0, 100.0, 1000.0, 0.0);
    assert_eq!(s.supply(110.0, 1000), 1);
    // the grid of 25 ms from 100 ms on goes on
    s.supply(111.0, 2000);
    s.wait(151.0);
    assert_eq!(s.left.iter().map(|t| t.round()).collect::<Vec<_>>(), [0.0, 110.0, 125.0, 150.0]);
}
