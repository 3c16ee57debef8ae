//! A sender processes an acknowledgement on one of four paths: `in_order`, the fast path in `sender`, during recovery
//! the one in `loss_recovery/linux/sack_fast_path.rs`, and the slow path for all others. These tests run a sender that
//! may use all of them beside one that uses the slow path only. The latter also sends new segments by the general
//! function, and its controller takes every step for each rate sample.

use super::connection::FastPath;
use super::loss_recovery::LossRecovery;
use super::{Burst, TcpConfig, TcpReceiver, TcpSender};
use crate::{Segment, Transmit};
use core::num::NonZeroU32;
use paceline_control::{Ecn, Profile, Recovery, Scheme, TcpController, registry};
use paceline_packet::{Extra, ExtraId, Flags, FlowId, Packet, Stamp, TcpOptions};
use paceline_random::{Sequence, Stream};
use paceline_units::{Span, Time};
use proptest::prelude::*;

/// A host's interface: segments leave it a little later, and it is full after `room` segments.
struct Host {
    now: Time,
    segments: Vec<Segment>,
    /// Segments that fit.
    room: usize,
    /// When the host's previous segment left.
    last: Time,
}

impl Host {
    fn new(now: Time, room: usize, last: Time) -> Host {
        Host { now, segments: Vec::new(), room, last }
    }
}

impl Transmit for Host {
    fn transmit(&mut self, segment: Segment) {
        self.segments.push(segment);
    }
    fn left(&self, now: Time) -> Time {
        self.last.max(now + Span::from_micros(10 * self.segments.len() as u64))
    }
    fn full_until(&self) -> Option<Time> {
        (self.segments.len() >= self.room).then_some(self.now + Span::from_millis(3))
    }
    fn takes_burst(&self) -> bool {
        self.segments.len() + Burst::MAX_SEGMENTS as usize <= self.room
    }
}

/// An event that both senders process.
#[derive(Clone, Debug)]
enum Event {
    Data(Segment),
    Ack(Segment),
    ReceiverTimer,
    Write,
    Restart,
}

/// The network of a test case.
#[derive(Clone, Copy, Debug)]
struct Network {
    loss: f64,
    /// Mean delay variation in ms; packets may be reordered.
    jitter: u64,
    marks: f64,
    /// Probability that the interface is full.
    full: f64,
    /// Probability that an acknowledgement carries a receive window.
    windows: f64,
    /// Bytes of a write every 20 ms, with a new connection at half-time; `None`: always data to send.
    writes: Option<u64>,
    seed: u64,
}

struct Run {
    queue: Vec<(Time, usize, Event)>,
    draws: Sequence,
    network: Network,
    scheduled: usize,
}

impl Run {
    fn at(&mut self, time: Time, event: Event) {
        self.scheduled += 1;
        self.queue.push((time, self.scheduled, event));
    }

    fn chance(&mut self, p: f64) -> bool {
        self.draws.unit() < p
    }

    /// Carries the segments over the network.
    fn carry(&mut self, now: Time, segments: Vec<Segment>, data: bool) {
        for mut segment in segments {
            let lost = self.chance(self.network.loss);
            let marked = self.chance(self.network.marks);
            let jitter = Span::from_millis((self.draws.unit() * 2.0 * self.network.jitter as f64) as u64);
            if lost {
                continue;
            }
            if data && marked && segment.flags.has(Flags::ECT) {
                segment.flags = segment.flags.with(Flags::CE);
            }
            if !data && segment.extra.is_none() && self.chance(self.network.windows) {
                let window = NonZeroU32::new(20);
                segment.extra = Some(Extra::Tcp(TcpOptions { window, ..TcpOptions::NONE }));
            }
            let event = if data { Event::Data(segment) } else { Event::Ack(segment) };
            self.at(now + Span::from_millis(20) + jitter, event);
        }
    }

    /// The next event, unless the sender's timer expires before it.
    fn next(&mut self, wake: Time) -> Option<(Time, Event)> {
        let i = (0..self.queue.len()).min_by_key(|&i| (self.queue[i].0, self.queue[i].1))?;
        if wake < self.queue[i].0 {
            return None;
        }
        let (time, _, event) = self.queue.swap_remove(i);
        Some((time, event))
    }
}

fn packet(now: Time, segment: &Segment) -> Packet {
    let &Segment { seq, stamp, size, flags, .. } = segment;
    Packet { time: now, flow: FlowId(0), seq, stamp, cursor: 0, extra: ExtraId::NONE, size, flags }
}

/// The state on which both senders must agree.
fn state(sender: &TcpSender) -> String {
    let (conn, stats) = (&sender.conn, &sender.conn.stats);
    let timed = conn.timing.then_some((conn.timed, conn.timed_at));
    let repair = matches!(sender.repair, LossRecovery::Vegas(_) | LossRecovery::Linux(_)).then_some(&sender.repair);
    format!(
        "{:?}",
        (
            (conn.una, conn.nxt, conn.max, conn.inflation, conn.dupacks, conn.limited, conn.phase),
            (timed, conn.timer, conn.rto, conn.last_sent, conn.recover, conn.reduced),
            (&conn.controller, &conn.sent, &conn.rtt, repair),
            (&conn.delivery, &conn.pacing, conn.delayed_send, conn.resumes),
            (stats.packets_sent, stats.bytes_acked, stats.window_integral, stats.rtt_sum, stats.rtt_count),
            (stats.retransmitted, stats.timeouts, stats.first_timeouts, stats.window_cuts, stats.lifetime_min_rtt()),
            (conn.action, conn.timed_out, conn.cwr, conn.receive_window),
        )
    )
}

fn named(scheme: &str) -> &'static Scheme {
    registry::scheme(scheme).unwrap_or_else(|e| panic!("{e}"))
}

fn sender(config: &TcpConfig, scheme: &str, network: Network, slow_only: bool) -> TcpSender {
    let controller = TcpController::new(named(scheme), config.profile, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut sender = TcpSender::new(config, controller, Stream::new(network.seed, "sender"));
    sender.conn.slow_only = slow_only;
    sender.choose_path();
    sender
}

/// Passes on an acknowledgement and returns its path: 0 slow, 1 fast, 2 in order, 3 beyond a hole.
fn way(sender: &mut TcpSender, now: Time, ack: &Packet, options: Option<&TcpOptions>, host: &mut Host) -> usize {
    if options.is_none()
        && host.takes_burst()
        && let Some(burst) = sender.on_ack_in_order(now, ack)
    {
        burst.for_each(|segment| host.transmit(segment));
        return 2;
    }
    let conn = &sender.conn;
    let plain = options.is_none() && !ack.flags.has(Flags::ECE) && ack.seq > conn.una && ack.seq <= conn.max;
    let fast = conn.fast_path != FastPath::No && plain;
    let beyond = sender.beyond;
    sender.on_ack(now, ack, options, host);
    if sender.beyond > beyond { 3 } else { usize::from(fast) }
}

/// Runs both for three seconds. Returns how many acknowledgements the first sender processed on each of its paths, and
/// last the number of rate samples that its controller processed on its fast path.
fn compare(config: &TcpConfig, scheme: &str, network: Network) -> Result<[u32; 5], TestCaseError> {
    let mut pair = [sender(config, scheme, network, false), sender(config, scheme, network, true)];
    let mut receiver = TcpReceiver::new(config);
    let draws = Sequence::new(Stream::new(network.seed, "network"));
    let mut run = Run { queue: Vec::new(), draws, network, scheduled: 0 };
    let mut ways = [0; 5];
    let (mut now, mut last) = (Time::ZERO, Time::ZERO);
    if network.writes.is_some() {
        (0..150).for_each(|i| run.at(Time::ZERO + Span::from_millis(20 * i), Event::Write));
        run.at(Time::from_secs_f64(1.5), Event::Restart);
    }
    for sender in &mut pair {
        let mut host = Host::new(now, usize::MAX, now);
        sender.start(now, &mut host);
        if network.writes.is_none() {
            sender.supply_endless(now, &mut host);
        }
        if !sender.conn.slow_only {
            run.carry(now, host.segments, true);
        }
    }
    while now < Time::from_secs_f64(3.0) {
        let wake = pair[0].next_wake();
        prop_assert_eq!(wake, pair[1].next_wake());
        let event = run.next(wake);
        let Some(time) = event.as_ref().map(|e| e.0).or(Some(wake).filter(|&wake| wake < Time::NEVER)) else { break };
        now = now.max(time);
        let room = if run.chance(network.full) { (run.draws.unit() * 6.0) as usize } else { usize::MAX };
        let mut hosts = [(); 2].map(|()| Host::new(now, room, last));
        let both = pair.iter_mut().zip(&mut hosts);
        match event.map(|e| e.1) {
            None => both.for_each(|(sender, host)| sender.on_timer(now, host)),
            Some(Event::Data(segment)) => {
                let mut back = Vec::new();
                receiver.on_data(now, &packet(now, &segment), &mut back);
                run.carry(now, back, false);
                let due = receiver.next_wake();
                if due != Time::NEVER {
                    run.at(due, Event::ReceiverTimer);
                }
            }
            Some(Event::ReceiverTimer) => {
                let mut back = Vec::new();
                receiver.on_timer(now, &mut back);
                run.carry(now, back, false);
            }
            Some(Event::Write) => {
                let bytes = (network.writes.unwrap_or(0) as f64 * 2.0 * run.draws.unit()) as u64;
                both.for_each(|(sender, host)| sender.supply(bytes, now, host));
            }
            Some(Event::Restart) => both.for_each(|(sender, host)| {
                sender.restart(now);
                sender.start(now, host);
            }),
            Some(Event::Ack(segment)) => {
                let options = match &segment.extra {
                    Some(Extra::Tcp(options)) => Some(options),
                    _ => None,
                };
                let ack = packet(now, &segment);
                ways[way(&mut pair[0], now, &ack, options, &mut hosts[0])] += 1;
                pair[1].on_ack(now, &ack, options, &mut hosts[1]);
            }
        }
        let [fast, slow] = hosts;
        last = fast.left(now);
        prop_assert_eq!(format!("{:?}", fast.segments), format!("{:?}", slow.segments), "at {:?}", now);
        prop_assert_eq!(state(&pair[0]), state(&pair[1]), "at {:?}", now);
        run.carry(now, fast.segments, true);
    }
    ways[4] = pair[0].conn.usual;
    Ok(ways)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_ways_of_an_acknowledgement_are_one(
        profile in proptest::sample::select(vec![Profile::Rfc, Profile::Ns2]),
        scheme in proptest::sample::select(vec!["newreno", "sack", "cubic", "vegas", "veno"]),
        recovery in proptest::sample::select(vec![None, Some(Recovery::Tahoe), Some(Recovery::Vegas), Some(Recovery::Reno)]),
        loss in prop_oneof![Just(0.0), Just(0.01), Just(0.1)],
        jitter in prop_oneof![Just(0u64), Just(8)],
        (marks, full, overhead) in (prop_oneof![2 => Just(0.0), 1 => Just(0.02)], prop_oneof![2 => Just(0.0), 1 => Just(0.2)], 0u64..2),
        (windows, writes) in (prop_oneof![2 => Just(0.0), 1 => Just(0.02)], prop_oneof![Just(None), Just(Some(6000u64))]),
        seed in any::<u64>(),
    ) {
        let scheme = if profile == Profile::Ns2 && scheme == "cubic" { "newreno" } else { scheme };
        let mut config = TcpConfig::new(profile, named(scheme));
        config.recovery = recovery.filter(|_| scheme == "newreno").unwrap_or(config.recovery);
        config.ecn = if marks > 0.0 { Ecn::Classic } else { Ecn::Off };
        config.receive_window = 60;
        config.send_overhead = Span::from_micros(300 * overhead);
        compare(&config, scheme, Network { loss, jitter, marks, full, windows, writes, seed })?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_ways_are_one_where_losses_are_found_by_time(
        profile in proptest::sample::select(vec![Profile::Rfc, Profile::Linux]),
        scheme in proptest::sample::select(vec!["reno", "cubic", "bbr", "bbr3", "ledbat", "ledbat-plus-plus"]),
        loss in prop_oneof![Just(0.0), Just(0.01), Just(0.1)],
        jitter in prop_oneof![2 => Just(0u64), 1 => Just(8)],
        (marks, full) in (prop_oneof![2 => Just(0.0), 1 => Just(0.02)], prop_oneof![2 => Just(0.0), 1 => Just(0.2)]),
        (windows, writes) in (prop_oneof![2 => Just(0.0), 1 => Just(0.02)], prop_oneof![Just(None), Just(Some(6000u64))]),
        delays in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut config = TcpConfig::new(profile, named(scheme));
        config.recovery = Recovery::Rack;
        config.ecn = if marks > 0.0 { Ecn::Classic } else { Ecn::Off };
        config.receive_window = 20;
        config.delayed_ack = config.delayed_ack.filter(|_| delays);
        compare(&config, scheme, Network { loss, jitter, marks, full, windows, writes, seed })?;
    }
}

/// Checks that the tests above exercise every path.
#[test]
fn each_way_is_taken() {
    let network = Network { loss: 0.01, jitter: 0, marks: 0.0, full: 0.1, windows: 0.0, writes: None, seed: 1 };
    let mut ways = [0; 3];
    for scheme in ["newreno", "vegas", "sack"] {
        let config = TcpConfig::new(Profile::Rfc, named(scheme));
        let taken = compare(&config, scheme, network).unwrap_or_else(|e| panic!("{scheme}: {e}"));
        ways = [0, 1, 2].map(|i| ways[i] + taken[i]);
    }
    assert!(ways.iter().all(|&n| n > 100), "{ways:?}");
    let mut config = TcpConfig::new(Profile::Rfc, named("bbr3"));
    config.delayed_ack = None;
    config.receive_window = 60; // let nothing else limit the window
    let taken = compare(&config, "bbr3", network).unwrap_or_else(|e| panic!("bbr3: {e}"));
    assert!(taken[0] > 20 && taken[1] > 100 && taken[3] > 100 && taken[4] > 100, "{taken:?}");
}

/// A receiver has fast paths for a segment in order and for one that extends the newest block. It runs beside a
/// receiver that uses the slow path only.
#[test]
fn all_ways_of_a_segment_are_one() {
    for seed in 0..300 {
        let mut draws = Sequence::new(Stream::new(seed, "segments"));
        let mut below = |n: u32| (draws.unit() * f64::from(n)) as u32;
        let profile = [Profile::Rfc, Profile::Ns2, Profile::Linux][below(3) as usize];
        let mut config = TcpConfig::new(profile, named(["newreno", "sack", "cubic", "bbr3"][below(4) as usize]));
        config.ecn = [Ecn::Off, Ecn::Classic, Ecn::Accurate][below(3) as usize];
        // without delayed ACKs nothing reads `last`, and the in-order path does not set it
        config.delayed_ack = config.delayed_ack.filter(|_| below(2) == 0 || profile == Profile::Linux);
        let mut pair = [TcpReceiver::new(&config), TcpReceiver::new(&config)];
        let (mut seq, mut highest) = (0, 0);
        for time in 1..400 {
            let now = Time(time * 1_000_000);
            seq = match below(20) {
                0..2 => below(highest + 1), // a duplicate, or a retransmission
                2..4 => highest + 1 + below(3),
                _ => seq + 1,
            };
            highest = highest.max(seq);
            let flags = match below(50) {
                0 => Flags::CE,
                1 => Flags::CWR,
                _ => Flags::NONE,
            };
            let flags = if seq == 0 { flags.with(Flags::SYN) } else { flags };
            let size = if below(30) == 0 { config.header + 10 } else { config.wire() };
            let stamp = Stamp::at(now);
            let packet = packet(now, &Segment { seq, stamp, size, flags, extra: None });
            let [one, other] = &mut pair;
            let (mut answers, mut expected) = (Vec::new(), Vec::new());
            assert_eq!(one.on_data(now, &packet, &mut answers), other.on_data_slow(now, &packet, &mut expected));
            assert_eq!(format!("{answers:?} {one:?}"), format!("{expected:?} {other:?}"), "seed {seed}, {seq}");
        }
    }
}
