//! What an end must not do, or must stop doing.

use super::*;

fn payload(segment: &Segment) -> u64 {
    u64::from(segment.size) - 28
}

/// RFC 9000 section 8.1, RFC 9002 section 6.2.2.1: before the other end's address is validated, at most three times the
/// bytes received are sent, including probes; later arrivals allow more.
#[test]
fn an_answer_is_never_more_than_three_times_what_came() {
    for handshake in [Handshake::OneRtt, Handshake::ZeroRtt] {
        let mut world = World::new("newreno", &QuicConfig { handshake, ..config("newreno") });
        let mut first = true;
        world.fate = Box::new(move |_, ahead, _| (!ahead || std::mem::take(&mut first)).then_some(Span::ZERO));
        world.begin(5000);
        world.run(ms(5000));
        let received = payload(&world.log[0].2);
        let left: u64 = world.log.iter().filter(|(_, ahead, _)| !ahead).map(|(.., segment)| payload(segment)).sum();
        assert!(left > 2 * received && left <= 3 * received, "{handshake:?}: {left} of {received}");
        world.fate = Box::new(|_, _, _| Some(Span::ZERO));
        world.run(ms(60_000));
        assert!(world.sender.acked_all(), "{handshake:?}: it goes on when the path is there again");
    }
}

/// Frames that wait for a stream to be allowed are also dropped at their deadline, with the rest of their group.
#[test]
fn what_waits_for_a_stream_has_a_deadline() {
    for carriage in [Carriage::StreamEach, Carriage::StreamPerGroup] {
        let deadline = Some(Span::from_millis(100));
        let settings = QuicConfig {
            handshake: Handshake::Done,
            max_streams: 1,
            track: TrackConfig { deadline, frames: true, ..track(carriage) },
            ..config("newreno")
        };
        let mut world = World::new("newreno", &settings);
        world.with_sender(|sender, now, out| sender.start(now, out));
        // a stream is open for at least 40 ms, and one is needed every 20 ms
        let every = if carriage == Carriage::StreamEach { 20 } else { 10 };
        let mut delays = Vec::new();
        for n in 0..200u64 {
            world.run(ms(every * n));
            world.with_sender(|sender, now, out| sender.supply(1000, n % 2 == 0, now, out));
            let now = world.now;
            delays.extend(
                world
                    .receiver
                    .take_objects()
                    .filter(|one| !one.reset)
                    .map(|one| (Stamp::at(now).0 - one.captured.0) / (Stamp::HZ / 1000)),
            );
        }
        world.run(ms(10_000));
        let stats = world.sender.stats();
        let (frames, reset) = (stats.frames, stats.frames_reset);
        assert!(delays.iter().all(|delay| *delay <= 145), "{carriage:?}: {delays:?}");
        assert_eq!(frames, 200);
        assert!(reset > 20 && delays.len() > 50, "{carriage:?}: {reset} given up, {} came", delays.len());
        assert!(world.sender.acked_all() && world.sender.unsent(0) == 0);
    }
}

/// The end that answers requests sends the data, so its packets are the ones that can be marked.
#[test]
fn answers_are_ecn_capable() {
    let mut world = World::new("prague", &QuicConfig { request: Some(100), ecn: true, ..config("prague") });
    world.with_sender(|sender, now, out| sender.start(now, out));
    let mut out = Vec::new();
    world.receiver.request(true, world.now, &mut out);
    world.takes(out, false);
    world.run(ms(300));
    world.with_sender(|sender, now, out| {
        let request = sender.take_request().expect("a request");
        sender.answer(request, 100_000, true, now, out);
    });
    world.run(ms(2000));
    assert_eq!(world.receiver.take_answers().collect::<Vec<_>>(), [0]);
    let data: Vec<_> = world
        .log
        .iter()
        .filter(|(.., s)| frames(s).iter().any(|f| matches!(f, Frame::Stream(p) if p.length > 200)))
        .collect();
    assert!(data.len() > 60 && data.iter().all(|(.., segment)| segment.flags.has(Flags::ECT)));
}

/// A flow lasts as long as its data: acknowledgements and the close do not count.
#[test]
fn the_end_of_a_connection_is_no_arrival() {
    let mut world = World::transfer("newreno", &config("newreno"), 5000);
    world.run(ms(1000));
    let last = world.receiver.stats().last;
    assert_eq!(last, ms(60));
    world.with_sender(|sender, now, out| {
        sender.stop();
        sender.on_timer(now, out);
    });
    world.run(ms(2000));
    assert!(world.sender.is_closed());
    assert_eq!(world.receiver.stats().last, last);
}

/// RFC 9000 section 10.2.1: an end repeats its close to a peer that has not received it, but not for every packet in
/// flight.
#[test]
fn an_end_that_was_not_heard_of_is_told_again() {
    let settings = QuicConfig { receive_window: 20_000, stream_window: 20_000, ..config("newreno") };
    let mut world = World::new("newreno", &settings);
    let (mut closes, mut grants) = (0, 0);
    world.fate = Box::new(move |_, ahead, segment| {
        let of = |kind: fn(&Frame) -> bool| frames(segment).iter().any(kind);
        let close = ahead && of(|frame| matches!(frame, Frame::Close { .. }));
        closes += u32::from(close);
        let grant = !ahead && of(|frame| matches!(frame, Frame::MaxData(_) | Frame::MaxStreamData { .. }));
        grants += u32::from(grant);
        // drops the first close, and the first six flow-control updates, which elicit acknowledgements
        (!(close && closes == 1 || grant && grants <= 6)).then_some(Span::ZERO)
    });
    world.begin(500_000);
    world.run(ms(150));
    world.with_sender(|sender, now, out| {
        sender.stop();
        sender.on_timer(now, out);
    });
    world.run(ms(60_000));
    assert!(world.sender.is_closed());
    assert_eq!(world.receiver.connection.phase, crate::quic::connection::Phase::Closed, "it has heard of it");
    let closes: Vec<Time> =
        world.log.iter().filter(|(.., s)| *frames(s) == [Frame::Close { code: 0 }]).map(|l| l.0).collect();
    assert!((2..=4).contains(&closes.len()), "{closes:?}");
    assert!(closes.windows(2).all(|two| two[1] >= two[0] + Span::from_millis(40)), "{closes:?}");
    assert_eq!(world.receiver.next_wake(), Time::NEVER, "and asks no more");
}

/// A client that sends requests; returns the world.
fn client_world() -> World {
    let mut world = World::new("newreno", &QuicConfig { request: Some(100), ..config("newreno") });
    world.with_sender(|sender, now, out| sender.start(now, out));
    world.request(true);
    world
}

impl World {
    fn request(&mut self, fresh: bool) {
        let mut out = Vec::new();
        self.receiver.request(fresh, self.now, &mut out);
        self.takes(out, false);
    }
}

/// RFC 9002 section 6.2.1: a client with nothing in flight sends no probes, however long its server takes to answer.
#[test]
fn who_waits_for_an_answer_does_not_probe() {
    let mut world = client_world();
    world.run(ms(400));
    world.request(false);
    world.run(ms(1000));
    let requests = world.log.iter().filter(|(_, ahead, _)| !ahead).count();
    world.run(ms(60_000));
    assert_eq!(world.log.iter().filter(|(_, ahead, _)| !ahead).count(), requests);
    world.with_sender(|sender, now, out| {
        for _ in 0..2 {
            let request = sender.take_request().expect("a request");
            sender.answer(request, 10_000, true, now, out);
        }
    });
    world.run(ms(61_000));
    assert_eq!(world.receiver.take_answers().collect::<Vec<_>>(), [0, 1]);
}

/// A server that has stopped also closes connections that a client opens later.
#[test]
fn a_server_that_has_stopped_closes_what_is_opened() {
    let mut world = client_world();
    world.run(ms(400));
    world.with_sender(|sender, now, out| {
        sender.stop();
        sender.on_timer(now, out);
    });
    world.run(ms(1000));
    world.request(true);
    world.run(ms(60_000));
    assert_eq!(world.receiver.connection.phase, crate::quic::connection::Phase::Closed);
    assert_eq!((world.sender.next_wake(), world.receiver.next_wake()), (Time::NEVER, Time::NEVER), "and none goes on");
    let closes: Vec<Time> =
        world.log.iter().filter(|(.., s)| *frames(s) == [Frame::Close { code: 0 }]).map(|l| l.0).collect();
    assert_eq!(closes.len(), 2, "{closes:?}");
}

/// The limit of concurrently open streams: a long-lived stream does not hold up short ones.
#[test]
fn a_stream_that_stays_open_leaves_room_for_others() {
    for max_streams in [2, 3, 8] {
        let settings = QuicConfig { handshake: Handshake::Done, max_streams, ..config("newreno") };
        let mut world = World::new("newreno", &settings);
        let frames = TrackConfig { frames: true, ..track(Carriage::StreamEach) };
        // all but one stay open
        world.sender.lead((2..max_streams).map(|_| track(Carriage::Stream)).chain([frames]));
        world.with_sender(|sender, now, out| {
            sender.start(now, out);
            sender.supply(1000, false, now, out);
            for kept in 1..max_streams as u8 - 1 {
                sender.write_track(kept, TrackWrite::Frame { bytes: 1000, captured: now, key: false }, now, out);
            }
        });
        for n in 0..20 {
            world.run(ms(100 * (n + 1)));
            let frame = |captured| TrackWrite::Frame { bytes: 1000, captured, key: false };
            world.with_sender(|sender, now, out| {
                sender.write_track(max_streams as u8 - 1, frame(now), now, out);
            });
        }
        world.run(ms(5000));
        let arrivals = world.receiver.take_track(max_streams as u8 - 1);
        assert_eq!(arrivals.objects.len(), 20, "{max_streams}");
    }
}

/// RFC 9221 section 5.3: datagrams are not flow controlled; streams blocked by the connection's limit do not block
/// them.
#[test]
fn datagrams_pass_streams_that_are_blocked() {
    let settings = QuicConfig {
        handshake: Handshake::Done,
        track: TrackConfig { rank: 1, ..track(Carriage::Datagrams) },
        receive_window: 10_000,
        ..config("newreno")
    };
    let mut world = World::new("newreno", &settings);
    world.sender.lead([track(Carriage::Stream)]);
    world.with_sender(|sender, now, out| {
        sender.start(now, out);
        sender.write_track(1, TrackWrite::Endless, now, out);
    });
    for n in 1..=50 {
        world.run(ms(20 * n + 3));
        world.with_sender(|sender, now, out| sender.supply(160, false, now, out));
    }
    world.run(ms(1200));
    let objects: Vec<_> = world.receiver.take_objects().collect();
    assert_eq!(objects.iter().map(|object| object.size).collect::<Vec<_>>(), [160; 50]);
}

/// RFC 9002 section 6.2.4: where no new data may be sent, a probe carries old data.
#[test]
fn a_probe_that_is_blocked_has_what_is_oldest() {
    let settings = QuicConfig { handshake: Handshake::Done, receive_window: 20_000, ..config("newreno") };
    let mut world = World::new("newreno", &settings);
    world.fate = Box::new(|_, _, _| Some(Span::ZERO));
    world.begin(1_000_000);
    world.run(ms(500));
    let cut = world.log.len();
    let mut dropped = Vec::new();
    world.fate = Box::new(move |n, ahead, _| {
        let drops = ahead && dropped.len() < 24;
        if drops {
            dropped.push(n);
        }
        (!drops).then_some(Span::ZERO)
    });
    world.run(ms(5000));
    let ahead: Vec<_> = world.log[cut..].iter().filter(|(_, ahead, _)| *ahead).collect();
    let pings = ahead.iter().filter(|(.., segment)| *frames(segment) == [Frame::Ping]).count();
    assert_eq!(pings, 0, "{ahead:?}");
    assert!(ahead.len() > 24 && world.sender.stats().timeouts > 1 && world.sender.acked_all());
}

/// RFC 9002 sections 6.2, 6.2.1, 7 and 7.5: the window limits what leaves at first. In silence, probes leave beyond it, at
/// twice the distance each time, and count as in flight; nothing is declared lost.
#[test]
fn silence_doubles_the_probes_and_loses_nothing() {
    let settings = QuicConfig { handshake: Handshake::Done, initial_window: Some(4), ..config("newreno") };
    let mut world = World::new("newreno", &settings);
    world.fate = Box::new(|_, _, _| None);
    world.begin(100_000);
    world.run(ms(10_000));
    let left: Vec<u64> = world.log.iter().map(|(at, ..)| at.0 / 1_000_000).collect();
    // there is no sample yet: 333 ms + 4 x 166.5 ms, and the receiver may delay by 25 ms
    assert_eq!(left, [0, 0, 0, 0, 1024, 1024, 3072, 3072, 7168, 7168]);
    let state = world.sender.recovery();
    assert_eq!((state.packets_in_flight, state.probe_count), (10, 3));
    assert!(state.in_flight > state.window, "{state:?}");
    world.sender.account(world.now);
    assert_eq!((world.sender.lost_from(0).count(), world.sender.stats().window_cuts), (0, 0));
}

/// RFC 9000 section 10.1: the idle timer restarts with each arrival, and with the first ack-eliciting packet sent after
/// it, whatever is in flight.
#[test]
fn the_idle_timer_begins_anew_with_the_first_sent_after_something_came() {
    let settings =
        QuicConfig { handshake: Handshake::Done, idle_timeout: Some(Span::from_secs(2)), ..config("newreno") };
    let mut world = World::new("newreno", &settings);
    world.with_sender(|sender, now, out| sender.start(now, out));
    for n in 0..=10 {
        world.run(ms(30 * n));
        world.with_sender(|sender, now, out| sender.supply(1000, false, now, out));
    }
    world.fate = Box::new(|_, _, _| None);
    while !world.sender.is_closed() {
        world.run(world.now + Span::from_millis(1));
    }
    let left =
        |ahead: bool| world.log.iter().filter(move |entry| entry.1 == ahead && entry.0 <= ms(300)).map(|entry| entry.0);
    let last_arrival = left(false).next_back().unwrap() + Span::from_millis(20);
    assert!(left(true).next_back().unwrap() < last_arrival, "data were in flight when the last came");
    let probe =
        world.log.iter().filter(|entry| entry.1).map(|entry| entry.0).find(|left| *left > last_arrival).unwrap();
    let due = probe + Span::from_secs(2);
    assert!(world.now >= due && world.now <= due + Span::from_millis(1), "{:?}, {probe:?}", world.now);
}
