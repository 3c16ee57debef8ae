//! MULTFRC's machine: several TFRC connections in one flow.

use crate::tfrc_path::{Loss, Path, flow, run};
use paceline_control::{GaugeUnit, Gauges, Law, Profile, RateController, TfrcController};
use paceline_flow::multfrc::{MultfrcReceiver, MultfrcSender};
use paceline_flow::tfrc::TfrcConfig;
use paceline_flow::{Receiver, Segment, Sender, Transport};
use paceline_packet::{Extra, ExtraId, Flags, FlowId, Packet, Stamp, Subflow, TfrcData, TfrcMore, TfrcReport};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use proptest::prelude::*;

const PROFILES: [Profile; 2] = [Profile::Rfc, Profile::Ns2];

/// A path that limits nobody.
fn wide(loss: Loss, seed: u64) -> Path {
    Path {
        loss,
        seed,
        ns_per_byte: 8,
        waiting: 10_000,
        duration: Time::from_secs_f64(200.0),
        warmup: Time::from_secs_f64(60.0),
        ..Path::grid(100, 0.0, 1)
    }
}

#[test]
fn one_connection_is_tfrc() {
    for profile in Profile::ALL {
        for law in Law::ALL {
            let given = [("law", law.code()), ("gap_jitter", 0.2), ("n_max", 1.0)];
            let (config, controller) = flow("multfrc", profile, &given);
            let (plain, tfrc) = flow("tfrc", profile, &given[..2]);
            let plain = TfrcConfig { settings: plain.settings, ..config.clone() };
            assert!(config.settings.multiple_connections && !plain.settings.multiple_connections);
            let path = Path { loss: Loss::Random(0.005), ..Path::grid(50, 0.005, 3) };
            for path in [Path { writes: Some((3500, Span::from_millis(9))), ..path.clone() }, path] {
                let (a, b) = (run(&config, controller.clone(), &path), run(&plain, tfrc.clone(), &path));
                assert_eq!((a.sent, a.goodput, a.loss_rate), (b.sent, b.goodput, b.loss_rate), "{profile:?} {law:?}");
                assert_eq!((&a.halves, a.p, a.srtt, a.timeouts), (&b.halves, b.p, b.srtt, b.timeouts));
            }
        }
    }
}

/// Losses are independent, so that three connections are three TFRCs: no one sees another's losses.
#[test]
fn three_connections_send_what_three_flows_do() {
    for profile in PROFILES {
        for loss in [0.003, 0.03, 0.1] {
            let mean = |scheme: &str, given: &[(&str, f64)]| {
                let (config, controller) = flow(scheme, profile, given);
                let runs = (1..=10).map(|seed| run(&config, controller.clone(), &wide(Loss::Random(loss), seed)));
                runs.map(|o| o.sent / f64::from(config.segment)).sum::<f64>() / 10.0
            };
            let several = mean("multfrc", &[("n_max", 3.0), ("window", 5.0), ("period", 5.0)]);
            let ratio = several / mean("tfrc", &[]);
            assert!((2.85..3.15).contains(&ratio), "{profile:?} {loss}: {ratio}");
        }
    }
}

#[test]
fn n_grows_where_nothing_queues_and_stops_where_much_does() {
    for profile in PROFILES {
        let (config, controller) = flow("multfrc", profile, &[("window", 20.0), ("period", 20.0)]);
        // 200 s of 100 ms: 100 changes
        let free = run(&config, controller.clone(), &wide(Loss::Random(0.03), 1));
        assert!((13..=14).contains(&free.connections), "{free:?}"); // n^2 grows by 2 each time
        // 10 Mbit/s and a queue of two fifths of the round trip
        let full = run(&config, controller, &Path::grid(100, 0.001, 1));
        assert!(full.connections < 10 && full.mean_queue > 5.0, "{full:?}");
    }
}

#[test]
fn what_is_written_is_sent_once() {
    for profile in Profile::ALL {
        let (config, controller) = flow("multfrc", profile, &[("window", 5.0), ("period", 5.0)]);
        // 90 kB/s in writes of 900 bytes: each is one packet, and a short one unless whole segments are sent
        let writes = Some((900, Span::from_millis(10)));
        let o = run(&config, controller, &Path { writes, ..wide(Loss::None, 1) });
        let packet = if config.whole_segments { f64::from(config.segment) } else { 900.0 };
        assert!((o.sent / (100.0 * packet) - 1.0).abs() < 1e-3, "{profile:?} {o:?}");
        assert!((o.goodput / o.sent - 1.0).abs() < 1e-3 && o.connections > 10, "{profile:?} {o:?}");
    }
}

/// A sender that is driven by hand.
struct Driven {
    sender: MultfrcSender,
    out: Vec<Segment>,
    now: Time,
}

fn driven(law: Law, given: &[(&str, f64)]) -> Driven {
    let mut all = vec![("law", law.code())];
    all.extend_from_slice(given);
    let (config, controller) = flow("multfrc", Profile::Rfc, &all);
    let config = TfrcConfig { segment: 1000, ..config };
    let rules = controller.connections().unwrap();
    Driven {
        sender: MultfrcSender::new(&config, rules, controller, Stream::new(1, "s")),
        out: Vec::new(),
        now: Time::ZERO,
    }
}

fn packet(now: Time, seq: u32, stamp: Stamp, flags: Flags) -> Packet {
    Packet { time: now, flow: FlowId(0), seq, stamp, cursor: 0, extra: ExtraId::NONE, size: 1052, flags }
}

impl Driven {
    /// A report of `subflow` up to `seq`, of a packet that left so long ago.
    fn report(&mut self, subflow: Subflow, seq: u32, ago: Span, receive_rate: f64, p: f64) {
        let packet = packet(self.now, seq, Stamp::at(self.now - ago), Flags::ACK);
        let report = TfrcReport { delay: Span::ZERO, receive_rate, loss_event_rate: p };
        self.sender.on_report(self.now, &packet, Some(&Extra::TfrcReport(subflow, report)), &mut self.out);
    }

    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..5000 {
            let wake = self.sender.next_wake();
            if wake > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(wake);
            let before = self.out.len();
            self.sender.on_timer(self.now, &mut self.out);
            assert!(self.sender.next_wake() > self.now || self.out.len() > before, "awake for nothing");
        }
    }

    /// Packets of this connection so far.
    fn sent(&self, subflow: Subflow) -> u32 {
        self.out.iter().filter(|s| matches!(s.extra, Some(Extra::TfrcData(of, _)) if of == subflow)).count() as u32
    }
}

#[test]
fn a_connection_that_opens_again_is_a_new_one() {
    let first = Subflow::ONLY;
    let second = |opening| Subflow { place: 1, opening };
    for law in Law::ALL {
        let mut d = driven(law, &[("window", 1.0), ("period", 1.0), ("n_max", 2.0)]);
        d.sender.supply_endless(Time::ZERO, &mut d.out);
        d.sender.start(Time::ZERO, &mut d.out);
        assert_eq!((d.sender.n(), d.sender.connections().len()), (1.0, 1));
        d.wait(Span::from_millis(100));
        d.report(first, 1, Span::from_millis(100), 1e5, 0.01);
        assert_eq!((d.sender.n(), d.sender.connections().len()), (2.0, 2), "{law:?}");
        assert_eq!(d.sent(second(0)), 1, "begins with a packet, as any TFRC");
        let fresh: Vec<Span> = d.sender.connections().map(|tfrc| tfrc.srtt()).collect();
        assert_eq!(fresh[1], Span::ZERO, "and without a round-trip time");
        // a report of 150 ms: too much queueing
        d.wait(Span::from_millis(150));
        let sent = d.sent(first);
        d.report(first, sent, Span::from_millis(150), 1e5, 0.01);
        assert_eq!(d.sender.connections().len(), 1, "{law:?}");
        // what comes of the closed one is nobody's
        let (n, before) = (d.sender.n(), d.sender.stats().rtt_count);
        d.report(second(0), 1, Span::from_millis(100), 1e5, 0.01);
        assert_eq!((d.sender.n(), d.sender.stats().rtt_count), (n, before));
        d.wait(Span::from_millis(100));
        let sent = d.sent(first);
        d.report(first, sent, Span::from_millis(100), 1e5, 0.01);
        assert_eq!(d.sender.connections().len(), 2);
        assert_eq!((d.sent(second(0)), d.sent(second(1))), (1, 1), "its numbers begin anew");
        // nor is what is late of it the new one's
        let before = d.sender.stats().rtt_count;
        d.report(second(0), 1, Span::from_millis(100), 1e5, 0.5);
        assert_eq!(d.sender.stats().rtt_count, before);
        // nor one whose echo might be of the new one's packet
        d.wait(Span::from_millis(50));
        d.report(second(0), 1, Span::from_millis(50), 1e5, 0.5);
        assert_eq!(d.sender.stats().rtt_count, before);
        d.report(second(1), 1, Span::ZERO, 1e5, 0.02);
        assert_eq!(d.sender.stats().rtt_count, before + 1);
        assert_eq!(d.sender.stats().packets_sent as usize, d.out.len());
        assert_eq!(d.sender.stats().rtt_count, 4);
        assert!((d.sender.stats().mean_loss_event_rate().unwrap() - 0.05 / 4.0).abs() < 1e-12);
        // begun afresh, it is one again
        assert_eq!(d.sender.n(), 2.0);
        d.sender.restart(d.now);
        d.sender.supply_endless(d.now, &mut d.out);
        d.sender.start(d.now, &mut d.out);
        assert_eq!((d.sender.n(), d.sender.connections().len()), (1.0, 1));
    }
}

#[test]
fn connections_draw_their_jitter_each_for_itself() {
    let given = [("gap_jitter", 0.5), ("window", 1.0), ("period", 1.0), ("n_max", 2.0)];
    let mut d = driven(Law::Rfc5348, &given);
    d.sender.supply_endless(Time::ZERO, &mut d.out);
    d.sender.start(Time::ZERO, &mut d.out);
    // without a round-trip time both send a packet a second, or a little earlier or later
    let gap = |d: &Driven, i| d.sender.connections().nth(i).unwrap().next_wake().since(d.now);
    let first = gap(&d, 0);
    d.wait(Span::from_millis(100));
    d.report(Subflow::ONLY, 1, Span::from_millis(100), 1e5, 0.01);
    let second = gap(&d, 1);
    assert!(
        first != second && [first, second].iter().all(|g| (0.5..1.5).contains(&g.as_secs_f64())),
        "{first:?} {second:?}"
    );
}

/// The window of now.
struct Window(f64);

impl Gauges for Window {
    fn gauge(&mut self, name: &'static str, _: GaugeUnit, value: f64) {
        if name == "window" {
            self.0 = value;
        }
    }
}

#[test]
fn the_window_of_one_that_closes_counts_to_its_end() {
    let mut d = driven(Law::Rfc5348, &[("window", 1.0), ("period", 1.0), ("n_max", 2.0)]);
    d.sender.supply_endless(Time::ZERO, &mut d.out);
    d.sender.start(Time::ZERO, &mut d.out);
    d.wait(Span::from_millis(100));
    d.report(Subflow::ONLY, 1, Span::from_millis(100), 1e5, 0.01);
    d.wait(Span::from_millis(100));
    d.report(Subflow { place: 1, opening: 0 }, 1, Span::from_millis(100), 1e5, 0.01);
    d.sender.account(d.now);
    let before = d.sender.stats().window_integral;
    let mut window = Window(0.0);
    d.sender.gauges(&mut window);
    d.wait(Span::from_millis(150));
    let sent = d.sent(Subflow::ONLY);
    d.report(Subflow::ONLY, sent, Span::from_millis(150), 1e5, 0.01);
    assert_eq!(d.sender.connections().len(), 1);
    d.sender.account(d.now);
    let both = d.sender.stats().window_integral - before;
    assert!((both / (window.0 * 0.15) - 1.0).abs() < 1e-9, "{both} {}", window.0);
}

#[test]
fn one_that_has_stopped_sleeps() {
    for law in Law::ALL {
        let mut d = driven(law, &[]);
        d.sender.supply_endless(Time::ZERO, &mut d.out);
        d.sender.start(Time::ZERO, &mut d.out);
        d.wait(Span::from_millis(100));
        d.report(Subflow::ONLY, 1, Span::from_millis(100), 1e5, 0.01);
        d.sender.stop();
        d.sender.account(d.now + Span::from_millis(1));
        assert_eq!(d.sender.next_wake(), Time::NEVER, "{law:?}");
    }
}

#[test]
fn each_connection_has_its_own_losses_and_late_packets_count_once() {
    let (config, _) = flow("multfrc", Profile::Rfc, &[]);
    let mut receiver = MultfrcReceiver::new(&config);
    let mut out: Vec<Segment> = Vec::new();
    let rtt = Span::from_millis(100);
    let mut send = |receiver: &mut MultfrcReceiver, ms: u64, place: u16, opening: u16, seq: u32| {
        let now = Time(ms * 1_000_000);
        while receiver.next_wake() <= now {
            receiver.on_timer(receiver.next_wake(), &mut out);
        }
        let extra = Extra::TfrcData(Subflow { place, opening }, TfrcData { rtt, more: TfrcMore::Nothing });
        receiver.on_data(now, &packet(now, seq, Stamp::at(now), Flags::NONE), Some(&extra), &mut out)
    };
    for i in 0..200u32 {
        send(&mut receiver, u64::from(i) * 10, 0, 0, i);
        if i % 20 != 7 {
            send(&mut receiver, u64::from(i) * 10, 1, 0, i);
        }
    }
    let p: Vec<f64> = receiver.loss_event_rates().collect();
    assert_eq!(p[0], 0.0);
    assert!((0.045..0.055).contains(&p[1]), "{p:?}");
    assert_eq!((receiver.stats().packets, receiver.stats().duplicates), (390, 0));
    // the place opens again; of the connection before, one packet is late, comes again, and one was never lost
    assert_eq!(send(&mut receiver, 2000, 1, 1, 0).segments, 1);
    assert_eq!(receiver.loss_event_rates().nth(1), Some(0.0));
    assert_eq!(send(&mut receiver, 2001, 1, 0, 200).segments, 1);
    assert_eq!(send(&mut receiver, 2002, 1, 0, 200).segments, 0);
    assert_eq!(send(&mut receiver, 2003, 1, 0, 150).segments, 0);
    assert_eq!((receiver.stats().packets, receiver.stats().duplicates), (394, 2));
    // older than the one before: counted, and no more
    assert_eq!(send(&mut receiver, 2004, 1, 2, 0).segments, 1);
    let bytes = receiver.stats().bytes;
    assert_eq!(send(&mut receiver, 2005, 1, 0, 201).segments, 0);
    assert_eq!((receiver.stats().packets, receiver.stats().bytes), (396, bytes));
    let reports = out.iter().filter(|s| matches!(s.extra, Some(Extra::TfrcReport(..)))).count();
    assert_eq!(receiver.stats().acks as usize, reports);
    assert!(out.iter().all(|s| !matches!(s.extra, Some(Extra::TfrcReport(of, _)) if of.place > 1)));
}

#[test]
fn a_transport_says_which_machine() {
    for (scheme, several) in [("tfrc", false), ("tfrc-veno", false), ("multfrc", true)] {
        let (config, controller): (TfrcConfig, TfrcController) = flow(scheme, Profile::Rfc, &[]);
        assert_eq!(config.wire(), 1500);
        let transport = Transport::Tfrc { config, controller };
        assert_eq!(matches!(transport.sender(Stream::new(1, "s")), Sender::Multfrc(_)), several);
        assert_eq!(matches!(transport.receiver(Stream::new(1, "receiver")), Receiver::Multfrc(_)), several);
    }
}

#[derive(Clone, Debug)]
enum Event {
    Report { place: u16, back: u16, share: u32, ago_us: u64, receive_rate: f64, p: f64 },
    Wait { micros: u64 },
    Supply { bytes: u64 },
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let rate = prop_oneof![6 => (0.0..1e6f64).boxed(), 1 => any::<f64>().boxed()];
    let p = prop_oneof![6 => (0.0..1.0f64).boxed(), 1 => any::<f64>().boxed()];
    prop_oneof![
        8 => (0..6u16, prop_oneof![8 => Just(0u16), 1 => any::<u16>()], 0..1000u32, 0..400_000u64, rate, p).prop_map(
            |(place, back, share, ago_us, receive_rate, p)| Event::Report { place, back, share, ago_us, receive_rate, p }
        ),
        6 => (0..300_000u64).prop_map(|micros| Event::Wait { micros }),
        1 => (0..100_000_000u64).prop_map(|micros| Event::Wait { micros }),
        3 => (0..20_000u64).prop_map(|bytes| Event::Supply { bytes }),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is reported: each byte leaves once, as many connections are open as the law says, their numbers have no
    /// gaps, and what is supplied leaves in the end.
    #[test]
    fn it_stands_anything(
        law in proptest::sample::select(Law::ALL.to_vec()), each_report in prop_oneof![Just(0.0), Just(1.0)],
        events in proptest::collection::vec(event(), 1..80),
    ) {
        let given = [("window", 2.0), ("period", 2.0), ("n_max", 6.0), ("each_report", each_report)];
        let mut d = driven(law, &given);
        d.sender.start(Time::ZERO, &mut d.out);
        let (mut supplied, mut openings) = (0u64, [0u16; 6]);
        for event in &events {
            match *event {
                Event::Report { place, back, share, ago_us, receive_rate, p } => {
                    let subflow = Subflow { place, opening: openings[usize::from(place)].wrapping_sub(back) };
                    let seq = d.sent(subflow) * share / 999;
                    d.report(subflow, seq, Span::from_micros(ago_us), receive_rate, p);
                }
                Event::Wait { micros } => d.wait(Span::from_micros(micros)),
                Event::Supply { bytes } => {
                    supplied += bytes;
                    d.sender.supply(bytes, d.now, &mut d.out);
                }
                Event::Restart => {
                    d.sender.restart(d.now);
                    supplied = d.sender.stats().bytes_acked;
                    prop_assert!(!d.sender.acked_all());
                    prop_assert_eq!(d.sender.n(), 1.0);
                    d.sender.start(d.now, &mut d.out);
                }
            }
            prop_assert_eq!(d.sender.connections().len(), d.sender.n() as usize);
            prop_assert!(d.sender.stats().bytes_acked <= supplied);
            for segment in &d.out {
                let Some(Extra::TfrcData(of, _)) = segment.extra else { panic!("no header") };
                openings[usize::from(of.place)] = of.opening;
            }
        }
        for _ in 0..10_000 {
            if d.sender.acked_all() {
                break;
            }
            d.wait(Span::from_secs(64));
        }
        prop_assert_eq!(d.sender.stats().bytes_acked, supplied);
        let mut next = std::collections::BTreeMap::new();
        for segment in &d.out {
            let Some(Extra::TfrcData(of, _)) = segment.extra else { panic!("no header") };
            let next = next.entry((of.place, of.opening)).or_insert(0);
            prop_assert_eq!(segment.seq, *next);
            *next += 1;
        }
        let bytes: u64 = d.out.iter().map(|s| u64::from(s.size) - 52).sum();
        prop_assert_eq!(bytes, supplied);
    }
}
