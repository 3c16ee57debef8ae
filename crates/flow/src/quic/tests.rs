//! Both ends over a path with delay, loss and reordering.

use super::*;
use crate::Segment;
use paceline_control::{Profile, TcpController, registry};
use paceline_packet::quic::{Frame, StreamPiece};
use paceline_packet::{Extra, ExtraId, Flags, FlowId, Packet, Stamp};
use paceline_random::Stream;
use paceline_units::{Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

mod bounds;

fn config(cc: &str) -> QuicConfig {
    QuicConfig::new(Profile::Rfc, registry::scheme(cc).unwrap())
}

fn track(carriage: Carriage) -> TrackConfig {
    TrackConfig { carriage, ..TrackConfig::STREAM }
}

fn controller(cc: &str) -> TcpController {
    TcpController::new(registry::scheme(cc).unwrap(), Profile::Rfc, &[]).unwrap()
}

/// What happens to the nth packet overall, in either direction: lost, or delayed by a time.
type Fate = Box<dyn FnMut(u64, bool, &Segment) -> Option<Span>>;

/// A sender and a receiver 20 ms apart.
struct World {
    sender: QuicSender,
    receiver: QuicReceiver,
    now: Time,
    /// Packets in flight: by arrival time, then in order of departure; to the receiver or back.
    under_way: BTreeMap<(Time, u64), (bool, Segment)>,
    left: u64,
    fate: Fate,
    log: Vec<(Time, bool, Segment)>,
}

impl World {
    fn new(cc: &str, config: &QuicConfig) -> World {
        let stream = Stream::new(1, "quic");
        World {
            sender: QuicSender::new(config, controller(cc), stream),
            receiver: QuicReceiver::new(config, controller(cc), stream),
            now: Time::ZERO,
            under_way: BTreeMap::new(),
            left: 0,
            fate: Box::new(|_, _, _| Some(Span::ZERO)),
            log: Vec::new(),
        }
    }

    fn takes(&mut self, segments: Vec<Segment>, ahead: bool) {
        for segment in segments {
            self.log.push((self.now, ahead, segment.clone()));
            self.left += 1;
            if let Some(extra) = (self.fate)(self.left, ahead, &segment) {
                let at = self.now + Span::from_millis(20) + extra;
                self.under_way.insert((at, self.left), (ahead, segment));
            }
        }
    }

    fn with_sender(&mut self, act: impl FnOnce(&mut QuicSender, Time, &mut Vec<Segment>)) {
        let mut out = Vec::new();
        act(&mut self.sender, self.now, &mut out);
        self.takes(out, true);
    }

    /// Runs until this time, or until nothing is left to do.
    fn run(&mut self, until: Time) {
        for _ in 0..2_000_000 {
            let arrival = self.under_way.keys().next().map_or(Time::NEVER, |key| key.0);
            let next = arrival.min(self.sender.next_wake()).min(self.receiver.next_wake());
            if next > until || next == Time::NEVER {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            let mut out = Vec::new();
            if arrival <= self.now {
                let (_, (ahead, segment)) = self.under_way.pop_first().unwrap();
                let packet = Packet {
                    time: self.now,
                    cursor: 0,
                    size: segment.size,
                    flags: segment.flags,
                    flow: FlowId(0),
                    seq: segment.seq,
                    stamp: segment.stamp,
                    extra: ExtraId::NONE,
                };
                if ahead {
                    self.receiver.on_packet(self.now, &packet, segment.extra.as_ref(), &mut out);
                } else {
                    self.sender.on_packet(self.now, &packet, segment.extra.as_ref(), &mut out);
                }
                self.takes(out, !ahead);
            } else if self.sender.next_wake() <= self.now {
                self.sender.on_timer(self.now, &mut out);
                self.takes(out, true);
            } else {
                self.receiver.on_timer(self.now, &mut out);
                self.takes(out, false);
            }
        }
        panic!("it does not come to an end");
    }

    fn transfer(cc: &str, config: &QuicConfig, bytes: u64) -> World {
        let mut world = World::new(cc, config);
        world.begin(bytes);
        world
    }

    /// A transfer in which the nth packets of the sender are lost or late.
    fn transfer_with(config: &QuicConfig, bytes: u64, nth: &'static [u32], fate: Option<Span>) -> World {
        let mut world = World::new("newreno", config);
        world.fate = Box::new(move |_, ahead, s| if ahead && nth.contains(&s.seq) { fate } else { Some(Span::ZERO) });
        world.begin(bytes);
        world
    }

    fn begin(&mut self, bytes: u64) {
        self.with_sender(|sender, now, out| {
            sender.start(now, out);
            sender.supply(bytes, false, now, out);
        });
    }
}

fn ms(n: u64) -> Time {
    Time(n * 1_000_000)
}

fn frames(segment: &Segment) -> Vec<Frame> {
    match &segment.extra {
        Some(Extra::Quic(frames)) => frames.to_vec(),
        Some(Extra::QuicStream(piece)) => vec![Frame::Stream(*piece)],
        Some(Extra::QuicAck(range)) => vec![Frame::Ack(*range, Box::default())],
        _ => panic!("{segment:?}"),
    }
}

#[test]
fn a_round_trip_of_handshake_and_then_the_data() {
    let mut world = World::transfer("newreno", &config("newreno"), 5000);
    world.run(ms(1000));
    assert!(world.sender.acked_all());
    assert_eq!(world.receiver.stats().bytes, 5000);
    let first_data = world.log.iter().find(|(_, _, s)| frames(s).iter().any(|f| matches!(f, Frame::Stream(_))));
    assert_eq!(first_data.unwrap().0, ms(40));
    let (_, _, hello) = &world.log[0];
    assert_eq!(hello.size, 1200 + 28, "an Initial is filled up");
    let answer: u32 =
        world.log.iter().filter(|(at, ahead, _)| !ahead && *at == ms(20)).map(|(_, _, s)| u32::from(s.size)).sum();
    assert!((2800..=3 * 1200 + 3 * 28).contains(&answer), "{answer}: no more than three times what came");
    assert!(world.log.iter().all(|(_, _, s)| s.size <= 1500));
}

/// An answer larger than three times the hello completes when more bytes have arrived, for every packet size.
#[test]
fn the_handshake_comes_to_an_end_with_packets_of_any_size() {
    for datagram in (1200..1500).step_by(7).chain([9000]) {
        let mut world = World::transfer("newreno", &QuicConfig { datagram, ..config("newreno") }, 5000);
        world.run(ms(200));
        assert!(world.sender.acked_all(), "{datagram}");
    }
}

#[test]
fn a_resumed_session_sends_at_once() {
    let mut world =
        World::transfer("newreno", &QuicConfig { handshake: Handshake::ZeroRtt, ..config("newreno") }, 5000);
    world.run(ms(25));
    assert_eq!(world.receiver.stats().bytes, 5000);
    world.run(ms(1000));
    assert!(world.sender.acked_all());
}

/// RFC 9002 sections 6.1.1 and 7: a loss, detected by three later packets, halves the window; numbers are never reused.
#[test]
fn a_lost_packet_is_found_by_three_later_ones() {
    let settings = QuicConfig { handshake: Handshake::Done, ack_threshold: 1, ..config("newreno") };
    let mut world = World::transfer_with(&settings, 100_000, &[14], None);
    world.run(ms(5000));
    assert!(world.sender.acked_all());
    assert_eq!(world.receiver.stats().bytes, 100_000);
    world.sender.account(world.now);
    let stats = world.sender.stats();
    assert_eq!((stats.window_cuts, stats.retransmitted, stats.timeouts), (1, 1, 0));
    let numbers: Vec<u32> = world.log.iter().filter(|(_, ahead, _)| *ahead).map(|(_, _, s)| s.seq).collect();
    assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1), "{numbers:?}");
}

/// The last packet is lost: only a probe can detect this (section 6.2).
#[test]
fn a_lost_tail_is_found_by_a_probe() {
    let settings = QuicConfig { handshake: Handshake::Done, ..config("newreno") };
    let mut world = World::transfer_with(&settings, 10_000, &[6], None);
    world.run(ms(3000));
    assert_eq!(world.receiver.stats().bytes, 10_000);
    assert_eq!(world.sender.stats().timeouts, 1);
    let probes: Vec<_> = world.log.iter().filter(|(at, ahead, _)| *ahead && *at > ms(0)).collect();
    // three samples of 40 ms reduce the first variation, half of it, to 9/16; the receiver may delay by 25 ms: 40 + 4 x
    // 11.25 + 25
    assert_eq!(probes[0].0, ms(110), "{probes:?}");
}

/// Section 6.1.2: a loss with fewer than three packets after it is detected after 9/8 of a round trip.
#[test]
fn a_loss_near_the_end_is_found_by_time() {
    let settings = QuicConfig { handshake: Handshake::Done, ack_threshold: 1, ..config("newreno") };
    let mut world = World::transfer_with(&settings, 10_000, &[5], None);
    world.run(ms(3000));
    assert_eq!((world.receiver.stats().bytes, world.sender.stats().timeouts), (10_000, 0));
    let again = world.log.iter().find(|(_, ahead, s)| *ahead && s.flags.has(Flags::RETRANSMISSION)).unwrap();
    assert_eq!(again.0, ms(45));
}

/// Section 7.6: everything sent within more than three probe timeouts is lost.
#[test]
fn persistent_congestion_leaves_two_datagrams() {
    let settings = QuicConfig { handshake: Handshake::Done, ..config("newreno") };
    let mut world = World::transfer("newreno", &settings, 3_000_000);
    world.run(ms(300));
    world.fate = Box::new(|_, _, _| None);
    world.run(ms(3000));
    world.fate = Box::new(|_, _, _| Some(Span::ZERO));
    let timer = world.sender.next_wake();
    world.run(timer + Span::from_millis(41));
    assert!(world.sender.congestion_window() < 5.0, "{}", world.sender.congestion_window());
    world.run(ms(60_000));
    assert_eq!(world.receiver.stats().bytes, 3_000_000);
}

/// draft-ietf-quic-ack-frequency: the sender requests rare acknowledgements after the handshake, and again if that was
/// lost.
#[test]
fn acknowledgements_are_as_rare_as_the_sender_asks() {
    let is_request = |segment: &Segment| {
        let Some(Extra::Quic(frames)) = &segment.extra else { return false };
        frames.iter().any(|frame| matches!(frame, Frame::AckFrequency { threshold: 10, .. }))
    };
    for lost in [false, true] {
        let settings = QuicConfig { ack_threshold: 10, ..config("newreno") };
        let mut world = World::transfer("newreno", &settings, 300_000);
        let mut first = lost;
        world.fate = Box::new(move |_, _, segment| {
            let gone = is_request(segment) && std::mem::take(&mut first);
            (!gone).then_some(Span::ZERO)
        });
        world.run(ms(5000));
        assert_eq!(world.receiver.stats().bytes, 300_000);
        let requests: Vec<Time> =
            world.log.iter().filter(|(_, _, segment)| is_request(segment)).map(|(at, ..)| *at).collect();
        assert_eq!((requests[0], requests.len()), (ms(40), 1 + usize::from(lost)), "{requests:?}");
        // after the receiver has the request
        let received_at = requests[requests.len() - 1] + Span::from_millis(20);
        let data = |later: bool| {
            world
                .log
                .iter()
                .filter(move |(at, ahead, _)| *ahead && later == (*at + Span::from_millis(20) > received_at))
        };
        let acks = |later: bool| world.log.iter().filter(move |(at, ahead, _)| !*ahead && later == (*at > received_at));
        let (early, late) = (data(true).count(), acks(true).count());
        assert!(late * 6 < early, "{late} for {early}");
        assert!(!lost || acks(false).count() * 3 > data(false).count(), "every second one before");
    }
}

/// A packet was only late: the reduction is undone.
#[test]
fn a_loss_that_was_none_is_undone() {
    let settings = QuicConfig { handshake: Handshake::Done, ack_threshold: 1, ..config("newreno") };
    let mut world = World::transfer_with(&settings, 400_000, &[14], Some(Span::from_millis(15)));
    world.run(ms(5000));
    assert_eq!(world.sender.spurious_losses(), 1);
    assert_eq!(world.receiver.stats().bytes, 400_000);
    assert!(world.sender.threshold().is_infinite(), "{}", world.sender.threshold());
}

/// Nothing is sent beyond the other end's limits; as it reads, it raises them.
#[test]
fn flow_control_binds_at_both_levels() {
    for (receive_window, stream_window) in [(20_000, 1 << 30), (1 << 30, 20_000)] {
        let settings = QuicConfig { handshake: Handshake::Done, receive_window, stream_window, ..config("newreno") };
        let mut world = World::transfer("newreno", &settings, 500_000);
        world.run(ms(20));
        world.run(ms(10_000));
        assert_eq!(world.receiver.stats().bytes, 500_000, "{receive_window} {stream_window}");
        // at most 20,000 bytes per round trip of 40 ms, and at least half of them
        let took = world.log.iter().rev().find(|(_, ahead, _)| *ahead).unwrap().0;
        assert!(took.0 >= 500_000 / 20_000 * 40_000_000 - 40_000_000, "{took:?}");
        assert!(took.0 <= 500_000 / 10_000 * 45_000_000, "{took:?}");
    }
}

/// Streams beyond the limit wait until earlier ones end.
#[test]
fn streams_wait_for_their_limit() {
    let settings = QuicConfig {
        handshake: Handshake::Done,
        max_streams: 3,
        track: track(Carriage::StreamEach),
        ..config("newreno")
    };
    let mut world = World::new("newreno", &settings);
    world.with_sender(|sender, now, out| {
        sender.start(now, out);
        (0..20).for_each(|_| sender.supply(500, false, now, out));
    });
    world.run(ms(10));
    assert_eq!(world.receiver.take_objects().count(), 0);
    world.run(ms(5000));
    let objects: Vec<_> = world.receiver.take_objects().collect();
    assert_eq!(objects.len(), 20);
    assert!(objects.iter().enumerate().all(|(n, o)| o.number == n as u32 && o.size == 500));
    assert!(world.sender.acked_all());
}

/// A stream is reset at its deadline, and the connection continues.
#[test]
fn a_stream_past_its_deadline_is_reset() {
    let deadline = Some(Span::from_millis(100));
    let settings = QuicConfig {
        handshake: Handshake::Done,
        track: TrackConfig { deadline, ..track(Carriage::StreamEach) },
        ..config("newreno")
    };
    let mut world = World::new("newreno", &settings);
    world.with_sender(|sender, now, out| {
        sender.start(now, out);
        sender.supply(200_000, true, now, out);
    });
    world.run(ms(150));
    world.with_sender(|sender, now, out| sender.supply(1000, false, now, out));
    world.run(ms(1000));
    let objects: Vec<_> = world.receiver.take_objects().collect();
    assert_eq!(objects.iter().map(|o| (o.reset, o.number)).collect::<Vec<_>>(), [(true, 0), (false, 1)]);
    assert_eq!((world.sender.reset_streams(), world.sender.acked_all()), (1, true));
}

/// A group is dropped, with the rest of its frames, when one frame passes its deadline; the next group arrives
/// completely.
#[test]
fn a_group_goes_on_while_its_frames_are_young() {
    let track = TrackConfig { deadline: Some(Span::from_millis(100)), frames: true, ..track(Carriage::StreamPerGroup) };
    let mut world = World::new("newreno", &QuicConfig { handshake: Handshake::Done, track, ..config("newreno") });
    world.with_sender(|sender, now, out| sender.start(now, out));
    for n in 0..30u64 {
        world.run(ms(33 * n));
        // the fifth frame of the second group is far too large for a hundred milliseconds
        let bytes = if n == 14 { 400_000 } else { 1000 };
        world.with_sender(|sender, now, out| sender.supply(bytes, n % 10 == 0, now, out));
    }
    world.run(ms(3000));
    let objects: Vec<_> = world.receiver.take_objects().filter(|object| !object.reset).map(|o| o.number).collect();
    assert_eq!([0, 1, 2].map(|group| objects.iter().filter(|one| **one == group).count()), [10, 4, 10]);
    let stats = world.sender.stats();
    assert_eq!((stats.frames, stats.frames_reset, world.sender.reset_streams()), (30, 6, 1));
    assert!(world.sender.acked_all(), "nothing is owed of what was given up");
}

#[test]
fn datagrams_come_or_do_not() {
    let settings = QuicConfig { handshake: Handshake::Done, track: track(Carriage::Datagrams), ..config("newreno") };
    let mut world = World::new("newreno", &settings);
    world.fate = Box::new(|n, _, _| (n != 2).then_some(Span::ZERO)); // the second packet, number 1
    world.with_sender(|sender, now, out| {
        sender.start(now, out);
        (0..4).for_each(|_| sender.supply(1000, false, now, out));
        sender.supply(5000, true, now, out);
    });
    world.run(ms(1000));
    assert_eq!(world.receiver.stats().bytes, 3 * 1000 + 5000);
    assert_eq!(world.receiver.take_objects().map(|o| o.number).collect::<Vec<_>>(), [0, 2, 3, 4]);
    assert!(world.sender.acked_all() && world.sender.stats().retransmitted == 0);
}

/// RFC 9000 section 13.2.3: possible duplicates are ignored, even if their data would be new.
#[test]
fn a_packet_that_was_forgotten_is_not_taken() {
    let config = QuicConfig { handshake: Handshake::Done, ..config("newreno") };
    let mut receiver = QuicReceiver::new(&config, controller("newreno"), Stream::new(1, "quic"));
    let mut comes = |number: u32, stream: u32, offset: u64| {
        let packet = Packet {
            time: ms(number.into()),
            cursor: 0,
            size: 1100,
            flags: Flags::NONE,
            flow: FlowId(0),
            seq: number,
            stamp: Stamp(0),
            extra: ExtraId::NONE,
        };
        let (captured, fin, key, last) = (Stamp(0), false, false, false);
        let piece = StreamPiece { offset, stream, captured, length: 1000, fin, key, last, track: 0 };
        let mut out: Vec<Segment> = Vec::new();
        receiver.on_packet(ms(100), &packet, Some(&Extra::QuicStream(piece)), &mut out);
        (receiver.stats().bytes, receiver.stats().duplicates, out.len())
    };
    assert_eq!(comes(0, 2, 0), (1000, 0, 0));
    // every second one: more holes than an acknowledgement reports
    for nth in 0..40 {
        assert_eq!(comes(4 + 2 * nth, 6, 1000 * u64::from(nth)).0, 2000 + 1000 * u64::from(nth));
    }
    assert_eq!(comes(1, 2, 1000), (41_000, 1, 0), "forgotten, with its acknowledgement");
    assert_eq!(comes(81, 2, 1000), (42_000, 1, 1), "a hole that is known");
}

/// Both ends restart; late packets of the old connection are not assigned to the new one.
#[test]
fn a_fresh_connection_forgets_the_old() {
    for handshake in [Handshake::Done, Handshake::OneRtt, Handshake::ZeroRtt] {
        let mut world = World::transfer("newreno", &QuicConfig { handshake, ..config("newreno") }, 50_000);
        world.run(ms(130));
        world.with_sender(|sender, now, out| {
            sender.restart(now);
            sender.supply(7000, false, now, out);
            sender.start(now, out);
        });
        let before = world.receiver.stats().bytes;
        world.run(ms(2000));
        assert!(world.sender.acked_all(), "{handshake:?}");
        assert!(world.receiver.stats().bytes >= before + 7000 && world.receiver.stats().bytes <= 57_000);
    }
}

#[test]
fn an_idle_connection_ends_and_another_is_opened() {
    let settings = QuicConfig { idle_timeout: Some(Span::from_secs(2)), ..config("newreno") };
    let mut world = World::transfer("newreno", &settings, 5000);
    world.run(ms(10_000));
    assert!(world.sender.is_closed());
    world.with_sender(|sender, now, out| sender.supply(3000, false, now, out));
    world.run(ms(11_000));
    assert_eq!(world.receiver.stats().bytes, 8000);
}

#[test]
fn a_flow_that_stops_closes() {
    let mut world = World::transfer("newreno", &config("newreno"), 500_000);
    world.run(ms(150));
    world.with_sender(|sender, now, out| {
        sender.stop();
        sender.on_timer(now, out);
    });
    world.run(ms(10_000));
    assert!(world.sender.is_closed() && world.sender.acked_all());
    let (_, _, last) = world.log.iter().rev().find(|(_, ahead, _)| *ahead).unwrap();
    assert_eq!(frames(last), [Frame::Close { code: 0 }]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Whatever the path does, all written data arrives, with every kind of controller and handshake.
    #[test]
    fn everything_arrives(
        seed in any::<u64>(),
        loss in 0.0f64..0.25,
        swap in 0.0f64..0.3,
        cc in prop::sample::select(vec!["newreno", "cubic", "vegas", "bbr", "bbr3", "c4", "copa", "ledbat", "ledbat-plus-plus", "prague"]),
        handshake in prop::sample::select(vec![Handshake::Done, Handshake::OneRtt, Handshake::ZeroRtt]),
        carriage in prop::sample::select(vec![Carriage::Stream, Carriage::StreamEach, Carriage::StreamPerGroup]),
        window in prop::sample::select(vec![3_000u64, 50_000, 1 << 30]),
    ) {
        let settings = QuicConfig {
            handshake, track: track(carriage), receive_window: window, stream_window: window, max_streams: 5, ..config(cc)
        };
        let mut world = World::new(cc, &settings);
        let draws = Stream::new(seed, "fate");
        world.fate = Box::new(move |n, _, _| {
            if draws.unit(2 * n) < loss {
                return None;
            }
            let late = draws.unit(2 * n + 1);
            Some(if late < swap { Span::from_millis((30.0 * late / swap) as u64) } else { Span::ZERO })
        });
        let mut total = 0;
        world.with_sender(|sender, now, out| sender.start(now, out));
        for n in 0..20u64 {
            world.run(ms(30 * n));
            let bytes = 1 + (draws.unit(1_000_000 + n) * 6000.0) as u64;
            total += bytes;
            world.with_sender(|sender, now, out| sender.supply(bytes, n % 5 == 0, now, out));
        }
        world.run(ms(3_000_000));
        prop_assert!(world.sender.acked_all());
        prop_assert_eq!(world.receiver.stats().bytes, total);
        if carriage == Carriage::StreamEach {
            prop_assert_eq!(world.receiver.take_objects().count(), 20);
        }
        prop_assert_eq!(world.sender.stats().bytes_acked, total);
    }
}

fn leads(carriage: Carriage, ranks: [u8; 3]) -> World {
    let with = |rank| TrackConfig { rank, frames: true, ..track(carriage) };
    let mut world =
        World::new("newreno", &QuicConfig { handshake: Handshake::Done, track: with(ranks[0]), ..config("newreno") });
    world.sender.lead([with(ranks[1]), TrackConfig { rank: ranks[2], ..TrackConfig::STREAM }]);
    world
}

/// Frames of three tracks, written together behind an endless one: the most urgent arrive first, whichever track leads.
#[test]
fn the_most_urgent_track_comes_first() {
    for carriage in [Carriage::StreamEach, Carriage::Datagrams] {
        let mut world = leads(carriage, [1, 0, 2]);
        world.with_sender(|sender, now, out| {
            sender.start(now, out);
            sender.write_track(2, TrackWrite::Endless, now, out);
        });
        world.run(ms(150));
        let frame = |bytes, captured| TrackWrite::Frame { bytes, captured, key: false };
        world.with_sender(|sender, now, out| {
            sender.supply(20_000, false, now, out);
            sender.write_track(1, frame(20_000, now), now, out);
        });
        world.log.clear();
        world.run(ms(250));
        let own: Vec<_> = world.receiver.take_objects().map(|object| (object.size, object.track)).collect();
        let led = world.receiver.take_track(1);
        assert_eq!(own, [(20_000, 0)], "{carriage:?}");
        assert_eq!(led.objects.iter().map(|object| (object.size, object.track)).collect::<Vec<_>>(), [(20_000, 1)]);
        assert_eq!((world.receiver.stats().bytes, led.bytes), (20_000, 20_000));
        // the order of transmission
        let tracks = |segment: &Segment| -> Vec<u8> {
            match &segment.extra {
                Some(Extra::QuicStream(piece)) => vec![piece.track],
                Some(Extra::Quic(frames)) => frames.iter().filter_map(track_of).collect(),
                _ => Vec::new(),
            }
        };
        let left: Vec<u8> = world.log.iter().filter(|(_, ahead, _)| *ahead).flat_map(|(.., s)| tracks(s)).collect();
        let first = |track| left.iter().position(|one| *one == track).unwrap();
        let last = |track| left.iter().rposition(|one| *one == track).unwrap();
        assert!(last(1) < first(0) && last(0) < left.len() - 1, "{carriage:?}: {left:?}");
        assert!(left[first(1)..=last(0)].iter().all(|track| *track < 2), "{carriage:?}: the bulk waits: {left:?}");
        let state = world.sender.state(1, None);
        assert_eq!((state.bytes_acked, state.frames, state.acked_all), (20_000, 1, true));
        assert!(world.receiver.take_track(2).bytes > 100_000 && world.sender.acked_all());
    }
}

fn track_of(frame: &Frame) -> Option<u8> {
    match frame {
        Frame::Stream(piece) => Some(piece.track),
        Frame::Datagram { track, .. } => Some(*track),
        _ => None,
    }
}

/// A track that stops ends its own stream; the others continue.
#[test]
fn a_track_that_stops_leaves_the_others() {
    let mut world = leads(Carriage::StreamEach, [0, 1, 2]);
    world.with_sender(|sender, now, out| {
        sender.start(now, out);
        sender.write_track(2, TrackWrite::Endless, now, out);
    });
    world.run(ms(150));
    world.with_sender(|sender, now, out| sender.write_track(2, TrackWrite::Withdraw { stops: true }, now, out));
    world.run(ms(1000));
    let bulk = world.receiver.take_track(2).bytes;
    assert_eq!(world.sender.state(2, None), TrackState { acked_all: true, ..world.sender.state(2, None) });
    assert_eq!(bulk, world.sender.state(2, None).bytes_acked);
    world.with_sender(|sender, now, out| sender.supply(5000, false, now, out));
    world.run(ms(2000));
    assert_eq!((world.receiver.take_objects().count(), world.receiver.take_track(2).bytes), (1, bulk));
}
