//! Sessions without a network: every scheme over a path in memory, faults, garbage, and their logs replayed.

mod feedback;
mod hostile;
mod logs;
mod pair;
mod quic;
mod rtp;
mod rtp_ccfb;
mod rtp_receive;
mod tables;

use paceline_live::session::{
    EcnBits, End, Input, Outbox, ReplayError, SILENCE, Session, SessionSpec, Side, State, replay,
};
use paceline_packet::rtcp::{Compound, ReportBlock};
use paceline_packet::rtp::Ssrc;
use paceline_packet::wire::rtcp;
use paceline_packet::wire::tfrc::{self, Datagram, Message};
use paceline_packet::{NtpMiddle, NtpSpan};
use paceline_units::{Span, Time};
use pair::{GOOD, Pair, Path, spec};
use proptest::prelude::*;

const DONE: [State; 2] = [State::Ended(End::Done); 2];

/// Every scheme, with what it needs to send by itself.
fn schemes() -> Vec<Vec<(&'static str, &'static str)>> {
    let names = paceline_control::registry::schemes().map(|scheme| scheme.name);
    names
        .map(|name| match name {
            "udp" => vec![
                ("cc", name),
                ("app", "{ kind = \"pareto\", rate = \"1 Mbit/s\", burst = \"10 s\", idle = \"0 s\" }"),
            ],
            "nada" | "gcc" | "ndtc" | "scream" | "scream-ericsson" | "scream-libwebrtc" => {
                vec![("cc", name), ("app", "{ kind = \"encoder\" }")]
            }
            "lda-plus" => vec![("cc", name), ("rtp.report_interval", "500 ms")],
            _ => vec![("cc", name)],
        })
        .collect()
}

fn log(pair: Pair, end: usize) -> Vec<u8> {
    let [sender, receiver] = pair.ends;
    let end = if end == 0 { sender } else { receiver };
    end.log.into_inner()
}

#[test]
fn every_scheme_runs_ends_and_replays() {
    for settings in schemes() {
        let mut pair = Pair::new(&settings, 10, Path { loss: 0.005, ..GOOD });
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{settings:?}");
        let goodput = pair.goodput(10.0);
        // a floor for the slow starters, and no more than the path has
        assert!((100e3..2e6).contains(&goodput), "{settings:?}: {goodput} bit/s");
        for end in [0, 1] {
            let counts = pair.ends[end].session.counts();
            assert_eq!((counts.garbage, counts.disregarded), (0, 0), "{settings:?}, end {end}");
        }
        let sent = [0, 1].map(|end| pair.ends[end].sent);
        for end in [0, 1] {
            let log = if end == 0 { pair.ends[0].log.get_ref().clone() } else { pair.ends[1].log.get_ref().clone() };
            let replayed = replay(&log).unwrap_or_else(|error| panic!("{settings:?}, end {end}: {error}"));
            assert_eq!((replayed.datagrams, replayed.unread), (sent[end], 0), "{settings:?}, end {end}");
        }
    }
}

#[test]
fn a_changed_input_diverges_and_a_cut_log_is_read_up_to_there() {
    for cc in ["newreno", "tfrc", "rap", "lda-plus"] {
        let settings = schemes().into_iter().find(|settings| settings[0].1 == cc).expect("a scheme");
        let mut pair = Pair::new(&settings, 5, Path { loss: 0.01, ..GOOD });
        pair.run(Time::NEVER);
        let whole = log(pair, 0);
        let all = replay(&whole).unwrap();
        assert!(all.inputs > 20, "{cc}: {all:?}");
        let cut = replay(&whole[..whole.len() - 3]).unwrap();
        assert!(cut.inputs == all.inputs - 1 && cut.unread > 0, "{cc}: {cut:?}");
        // the last datagram of the log's first half gets another echo, number or report
        let spoilt = change_a_datagram(&whole);
        match replay(&spoilt) {
            Err(ReplayError::Diverged(found)) => assert!(found.input > 0, "{cc}: {found}"),
            other => panic!("{cc}: {other:?}"),
        }
    }
}

/// The log with the contents of an input datagram of its middle changed: the magic of a later one is broken, so that the
/// machine never hears what it heard.
fn change_a_datagram(log: &[u8]) -> Vec<u8> {
    let mut changed = log.to_vec();
    // feedback of ours, or an RTCP receiver report: the kind byte of a datagram that came, well inside the log
    let marks: [&[u8]; 4] = [b"PT\x16", b"PT\x18", b"PT\x1a", b"\x81\xc9\x00"];
    let half = log.len() / 2;
    let at = (half..log.len() - 4)
        .find(|&at| marks.iter().any(|mark| log[at..].starts_with(mark)))
        .or_else(|| (200..half).rev().find(|&at| marks.iter().any(|mark| log[at..].starts_with(mark))))
        .expect("feedback");
    changed[at] ^= 0x40;
    changed
}

#[test]
fn the_simulators_sender_is_the_one_that_runs() {
    // Reno over a path without loss: its window in steady state is the path's, as that of a simulated flow would be
    let mut pair = Pair::new(&[("cc", "newreno"), ("receive_window", "8")], 10, GOOD);
    pair.run(Time::from_secs_f64(8.0));
    let window = pair.sender().figure();
    assert!(window >= 8.0, "{window}");
    let rtt = pair.sender().source().sender.stats().mean_rtt().expect("samples").as_secs_f64();
    // 8 segments of 1500 bytes at 2 Mbit/s take 48 ms; the path itself has 40 and the segment's 6
    assert!((0.046..0.09).contains(&rtt), "{rtt}");
    let goodput = pair.goodput(8.0);
    assert!((goodput / (8.0 * 1456.0 * 8.0 / rtt) - 1.0).abs() < 0.1, "{goodput}, {rtt}");
}

#[test]
fn faults_of_the_path_are_survived() {
    let second = Span::from_secs(1);
    let cases: [(&str, Path); 5] = [
        ("20 % loss", Path { loss: 0.2, ..GOOD }),
        ("reordering", Path { late: 0.1, ..GOOD }),
        ("duplication", Path { twice: 0.2, ..GOOD }),
        ("corruption", Path { damaged: 0.05, ..GOOD }),
        ("cut for 10 s", Path { cut: (Time::ZERO + second * 3, Time::ZERO + second * 13), ..GOOD }),
    ];
    for settings in schemes() {
        for (name, path) in cases {
            let mut pair = Pair::new(&settings, 40, path);
            pair.run(Time::ZERO + second * 20);
            let before = pair.receiver().sink().receiver.stats().packets;
            pair.run(Time::NEVER);
            let after = pair.receiver().sink().receiver.stats().packets;
            // a close is repeated, but 20 % loss may take all four
            let ended = pair.states().map(|state| matches!(state, State::Ended(End::Done | End::Silence)));
            assert_eq!(ended, [true; 2], "{name}, {settings:?}: {:?}", pair.states());
            // TFRCP's law allows a packet in tens of seconds when a fifth is lost each way, as it does in simulation
            let crawls = name == "20 % loss" && settings[0].1 == "tfrcp";
            assert!(after > before || crawls, "{name}, {settings:?}: nothing came in the last 20 s ({before} packets)");
            for end in [0, 1] {
                let counts = pair.ends[end].session.counts();
                assert!(counts.taken > 0, "{name}, {settings:?}: {counts:?}");
            }
        }
    }
}

#[test]
fn a_vanished_peer_ends_the_flow() {
    let cut = (Time::from_secs_f64(3.0), Time::NEVER);
    let mut pair = Pair::new(&[("cc", "tfrc")], 60, Path { cut, ..GOOD });
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), [State::Ended(End::Silence); 2]);
    let last = pair.now.as_secs_f64();
    assert!((3.0 + SILENCE.as_secs_f64() - 1.1..=3.2 + SILENCE.as_secs_f64()).contains(&last), "{last}");
    let mut pair = Pair::new(&[("cc", "tfrc")], 60, GOOD);
    pair.run(Time::from_secs_f64(3.0));
    pair.input(0, Input::Unreachable);
    assert_eq!(pair.states()[0], State::Ended(End::Unreachable));
}

#[test]
fn nobody_answers() {
    let cut = (Time::ZERO, Time::NEVER);
    let mut pair = Pair::new(&[("cc", "newreno")], 60, Path { cut, ..GOOD });
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), [State::Ended(End::NoAnswer); 2]);
    // requests at 0, 1, 3, 7, 15 s, and no data
    assert_eq!(pair.ends[0].sent, 5);
    assert_eq!(pair.ends[1].sent, 0, "a receiver that was not asked says nothing");
}

#[test]
fn either_side_stops() {
    for end in [0, 1] {
        for cc in ["newreno", "tfrc", "lda-plus"] {
            let mut pair = Pair::new(&[("cc", cc)], 60, GOOD);
            pair.run(Time::from_secs_f64(5.0));
            pair.input(end, Input::Stop);
            pair.run(Time::NEVER);
            assert!(pair.now < Time::from_secs_f64(6.5), "{cc}: {:?}", pair.now);
            let states = pair.states();
            assert_eq!(states[end], State::Ended(End::Stopped), "{cc}");
            assert_eq!(states[1 - end], State::Ended(End::Done), "{cc}");
        }
    }
}

#[test]
fn a_granted_rate_is_kept_and_enforced() {
    for settings in schemes() {
        let specs = [Side::Sender, Side::Receiver]
            .map(|side| SessionSpec { limit: (side == Side::Receiver).then_some(50_000), ..spec(&settings, 10, side) });
        let mut pair = Pair::of(specs, Path { rate: 10e6, ..GOOD });
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{settings:?}");
        let wire = pair.receiver().sink().receiver.stats().wire_bytes as f64 / 10.0;
        assert!(wire <= 50_000.0 * 1.1, "{settings:?}: {wire} B/s");
    }
    // a sender that does not care
    let limited = SessionSpec {
        limit: Some(12_500),
        ..spec(
            &[("cc", "udp"), ("app", "{ kind = \"pareto\", rate = \"9 Mbit/s\", idle = \"0 s\" }")],
            10,
            Side::Receiver,
        )
    };
    let (mut receiver, mut out) = (Session::new(&limited).unwrap(), Outbox::default());
    receiver.input(Time::ZERO, Input::Start, &mut out);
    receiver.input(Time::ZERO, Input::Datagram(&request(&limited), EcnBits::NotEct), &mut out);
    for n in 0..10_000u32 {
        let message = Message::Plain(tfrc::Plain { sequence: n, timestamp: paceline_packet::Stamp(n) });
        let mut bytes = encode(&limited, message);
        bytes.resize(1472, 0);
        receiver.input(Time(u64::from(n) * 1_000_000), Input::Datagram(&bytes, EcnBits::NotEct), &mut out);
        if receiver.state() != State::Running {
            break;
        }
    }
    assert_eq!(receiver.state(), State::Ended(End::TooFast));
}

fn encode(spec: &SessionSpec, message: Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    Datagram { connection: tfrc::ConnectionId(spec.connection), message }.encode(&mut bytes);
    bytes
}

fn request(spec: &SessionSpec) -> Vec<u8> {
    let (nonce, ecn) = (tfrc::Nonce(spec.nonce), tfrc::Ecn::Off);
    encode(spec, Message::Request(tfrc::Request { nonce, packet_size: 1000, ecn }))
}

#[test]
fn forged_feedback_is_disregarded() {
    for cc in ["newreno", "tfrc", "rap"] {
        let mut pair = Pair::new(&[("cc", cc)], 20, GOOD);
        pair.run(Time::from_secs_f64(4.0));
        let spec = spec(&[("cc", cc)], 20, Side::Sender);
        let before = pair.sender().figure();
        for n in 0..1000u32 {
            let echo = paceline_packet::Stamp(n.wrapping_mul(0x9e37_79b9));
            let message = match cc {
                "newreno" => Message::SegmentAck(tfrc::SegmentAck {
                    next: 100_000 + n,
                    echo,
                    flags: paceline_packet::Flags::NONE,
                    options: paceline_packet::TcpOptions::NONE,
                }),
                "tfrc" => Message::Feedback(tfrc::Feedback {
                    received_end: n,
                    echo,
                    delay: tfrc::Ticks(1),
                    received: n,
                    marked: 0,
                    receive_rate: 1e9,
                    loss_event_rate: 0.0,
                    subflow: None,
                }),
                _ => Message::Ack(tfrc::Ack {
                    sequence: n,
                    echo,
                    hole: paceline_packet::LastHole { received_end: n + 1, hole_end: 0, hole_start: 0 },
                }),
            };
            pair.input(0, Input::Datagram(&encode(&spec, message), EcnBits::NotEct));
        }
        let counts = pair.ends[0].session.counts();
        assert!(counts.disregarded >= 999, "{cc}: {counts:?}");
        assert_eq!(pair.sender().figure(), before, "{cc}");
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{cc}");
    }
}

/// Who does not know both of the flow's numbers is not answered and changes nothing, before data flow and while they do.
#[test]
fn messages_without_the_secret_mean_nothing() {
    let settings = [("cc", "tfrc")];
    for (path, until) in [(Path { cut: (Time::ZERO, Time::NEVER), ..GOOD }, 0.1), (GOOD, 4.0)] {
        let mut pair = Pair::new(&settings, 20, path);
        pair.run(Time::from_secs_f64(until));
        let right = spec(&settings, 20, Side::Sender);
        let (states, figure) = (pair.states(), pair.sender().figure());
        let sent = [0, 1].map(|end| pair.ends[end].sent);
        let say = |pair: &mut Pair, end: usize, spec: &SessionSpec| {
            let (nonce, limit) = (tfrc::Nonce(spec.nonce), tfrc::RateLimit::BytesPerSecond(1));
            let (reason, ecn) = (tfrc::Reason::DONE, tfrc::Ecn::Off);
            for message in [
                Message::Request(tfrc::Request { nonce, packet_size: 1000, ecn }),
                Message::Accept(tfrc::Accept { nonce, limit }),
                Message::Refuse(tfrc::Refuse { nonce, reason }),
                Message::Close(tfrc::Close { nonce, reason }),
            ] {
                pair.input(end, Input::Datagram(&encode(spec, message), EcnBits::NotEct));
            }
        };
        let strangers = [
            SessionSpec { nonce: right.nonce ^ 1, ..right.clone() },
            SessionSpec { connection: right.connection ^ 1, ..right.clone() },
        ];
        for end in [0, 1] {
            let before = pair.ends[end].session.counts();
            strangers.iter().for_each(|stranger| say(&mut pair, end, stranger));
            let counts = pair.ends[end].session.counts();
            assert_eq!((counts.taken, counts.disregarded), (before.taken, before.disregarded + 4), "end {end}");
            assert_eq!(counts.garbage, before.garbage + 4, "end {end}");
        }
        assert_eq!((pair.states(), pair.sender().figure()), (states, figure));
        assert_eq!([0, 1].map(|end| pair.ends[end].sent), sent, "nobody is answered");
        if until > 1.0 {
            pair.run(Time::NEVER);
            assert_eq!(pair.states(), DONE);
            assert!(pair.goodput(20.0) > 500e3, "nor has the rate been bounded");
        } else {
            // and who knows them is heard
            say(&mut pair, 0, &right);
            assert_eq!(pair.states()[0], State::Ended(End::Done));
        }
    }
}

/// What a receiver keeps of what has not come in order is bounded.
#[test]
fn numbers_far_ahead_are_not_believed() {
    let stamp = paceline_packet::Stamp(1);
    let segment = |sequence| {
        let flags = paceline_packet::Flags::NONE;
        Message::Segment(tfrc::Segment { sequence, timestamp: stamp, flags })
    };
    let data = |place| {
        let subflow = Some(paceline_packet::Subflow { place, opening: 0 });
        Message::Data(tfrc::Data { sequence: 0, timestamp: stamp, rtt: tfrc::Ticks(100_000), subflow, frame: None })
    };
    for (cc, believed, not) in [("newreno", segment(60_000), segment(1 << 17)), ("multfrc", data(255), data(256))] {
        let spec = spec(&[("cc", cc)], 20, Side::Receiver);
        let (mut session, mut out) = (Session::new(&spec).unwrap(), Outbox::default());
        session.input(Time::ZERO, Input::Start, &mut out);
        session.input(Time::ZERO, Input::Datagram(&request(&spec), EcnBits::NotEct), &mut out);
        for (message, disregarded) in [(believed, 0), (not, 1)] {
            let mut bytes = encode(&spec, message);
            bytes.resize(1000, 0);
            session.input(Time(1_000_000), Input::Datagram(&bytes, EcnBits::NotEct), &mut out);
            assert_eq!(session.counts().disregarded, disregarded, "{cc}");
        }
    }
}

/// RTCP has no echo of a stamp; what does not speak of the flow's own stream changes nothing, and is no sign of life either.
#[test]
fn forged_reports_are_no_sign_of_life() {
    for cc in ["lda-plus", "nada", "gcc", "ndtc", "scream", "scream-ericsson", "scream-libwebrtc"] {
        let settings = schemes().into_iter().find(|settings| settings[0].1 == cc).expect("a scheme");
        let cut = (Time::from_secs_f64(4.0), Time::NEVER);
        let mut pair = Pair::new(&settings, 60, Path { cut, ..GOOD });
        pair.run(Time::from_secs_f64(4.5));
        for n in 0..40u32 {
            let ssrc = Ssrc(n.wrapping_mul(0x9e37_79b9));
            let (lsr, dlsr) = (NtpMiddle::NONE, NtpSpan(0));
            let block = ReportBlock {
                ssrc,
                fraction_lost: 0,
                cumulative_lost: 0,
                extended_highest: n * 1000,
                jitter: 0,
                lsr,
                dlsr,
            };
            let forged =
                Compound { ssrc: Ssrc(!ssrc.0), reports: vec![block], cname: "x".into(), ..self::rtp::empty() };
            let mut bytes = Vec::new();
            rtcp::encode(&forged, &mut bytes).unwrap();
            let before = pair.sender().figure();
            pair.input(0, Input::Datagram(&bytes, EcnBits::NotEct));
            assert!(pair.sender().figure() <= before, "{cc}: {before} to {}", pair.sender().figure());
            pair.now += Span::from_millis(500);
            let now = pair.now;
            pair.run(now);
        }
        assert_eq!(pair.states()[0], State::Ended(End::Silence), "{cc}");
    }
}

/// Stamps go round after 18 minutes: what a slow flow is told from then on is of its own packets all the same.
#[test]
fn a_slow_flow_outlives_its_stamps() {
    for cc in ["newreno", "tfrc", "rap"] {
        let mut pair = Pair::new(&[("cc", cc)], 1400, Path { rate: 150e3, ..GOOD });
        pair.run(Time::from_secs_f64(1150.0));
        let before = pair.receiver().sink().receiver.stats().packets;
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{cc}");
        let after = pair.receiver().sink().receiver.stats().packets - before;
        assert!(after > 1000, "{cc}: {after} packets in 250 s");
        let counts = pair.ends[0].session.counts();
        assert_eq!((counts.garbage, counts.disregarded), (0, 0), "{cc}");
    }
}

/// An application may make more than any host sends: an input makes a bounded number of packets all the same, whatever becomes of
/// them, and the flow ends when it is told to.
#[test]
fn an_application_beyond_reason_does_not_keep_the_sender_busy() {
    for limit in [None, Some(50_000)] {
        let app = "{ kind = \"cbr\", rate = \"100 Gbit/s\" }";
        let settings = [("cc", "udp"), ("segment", "1 B"), ("app", app)];
        let spec = SessionSpec { limit, ..spec(&settings, 60, Side::Sender) };
        let (mut session, mut out) = (Session::new(&spec).unwrap(), Outbox::default());
        session.input(Time::ZERO, Input::Start, &mut out);
        let accept = tfrc::Accept { nonce: tfrc::Nonce(spec.nonce), limit: tfrc::RateLimit::None };
        session.input(Time::ZERO, Input::Datagram(&encode(&spec, Message::Accept(accept)), EcnBits::NotEct), &mut out);
        for ms in 1..50u64 {
            let before = session.counts().over_limit;
            out.clear();
            session.input(Time(ms * 20_000_000), Input::Timer, &mut out);
            let made = out.len() as u64 + session.counts().over_limit - before;
            assert!((100..10_000).contains(&made), "{limit:?}: {made}");
            assert!(session.next_wake() <= Time(ms * 20_000_000), "the rest at once");
        }
        session.input(Time::from_secs_f64(2.0), Input::Stop, &mut out);
        assert_eq!(session.state(), State::Closing);
    }
}

#[test]
fn a_sender_whose_peer_never_came_says_so() {
    let mut session = Session::new(&spec(&[("cc", "tfrc")], 60, Side::Sender)).unwrap();
    session.input(Time::ZERO, Input::Unreachable, &mut Outbox::default());
    assert_eq!(session.state(), State::Ended(End::NoAnswer));
}

/// A receiver may name any rate in a report that is otherwise true: one call of the sender sends no more for it than a bounded number
/// of packets, and the next timer is no loop either.
#[test]
fn a_rate_beyond_reason_does_not_keep_the_sender_busy() {
    let settings = [("cc", "tfrc")];
    let spec = spec(&settings, 60, Side::Sender);
    let mut session = Session::new(&spec).unwrap();
    let mut out = Outbox::default();
    let accept = tfrc::Accept { nonce: tfrc::Nonce(spec.nonce), limit: tfrc::RateLimit::None };
    session.input(Time::ZERO, Input::Start, &mut out);
    session.input(Time::ZERO, Input::Datagram(&encode(&spec, Message::Accept(accept)), EcnBits::NotEct), &mut out);
    let mut now = Time::ZERO;
    let mut max = 0;
    for _ in 0..60 {
        let stamps = out.iter().filter_map(|datagram| match tfrc::decode(datagram.header).ok()?.0.message {
            Message::Data(data) => Some((data.sequence, data.timestamp)),
            _ => None,
        });
        let Some((sequence, echo)) = stamps.last() else {
            now = session.next_wake();
            session.input(now, Input::Timer, &mut out);
            continue;
        };
        out.clear();
        now += Span::from_millis(250);
        let report = tfrc::Feedback {
            received_end: sequence + 1,
            echo,
            delay: tfrc::Ticks(1),
            received: sequence + 1,
            marked: 0,
            receive_rate: 1e300,
            loss_event_rate: 0.0,
            subflow: None,
        };
        session.input(now, Input::Datagram(&encode(&spec, Message::Feedback(report)), EcnBits::NotEct), &mut out);
        max = max.max(out.iter().count());
        assert!(max <= 2 << 14, "{max} packets in two calls");
    }
    assert!(max > 1 << 14, "{max}: the rate doubles with each report, to beyond that");
}

#[test]
fn what_no_live_flow_can_be_is_said() {
    let fails = |settings: &[(&str, &str)]| match Session::new(&spec(settings, 10, Side::Sender)) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    assert!(fails(&[("cc", "no-such")]).contains("no-such"));
    assert!(fails(&[("cc", "tfrc"), ("profile", "ns2")]).contains("no real packet"));
    assert!(fails(&[("count", "3")]).contains("--flows"));
    let film = ("app", "{ kind = \"video\", rate = \"100 Gbit/s\", frame_rate = 0.1 }");
    assert!(fails(&[("cc", "udp"), film]).contains("16384 at most"));
    assert!(fails(&[("cc", "tfrc"), film]).is_empty(), "its controller says when they leave");
    assert!(fails(&[("cc", "newreno"), ("params.x", "3")]).contains("params"));
    assert!(!fails(&vec![("cc", "newreno"); 65]).is_empty());
    assert!(fails(&[]).is_empty() && fails(&[("cc", "newreno"), ("profile", "ns2")]).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any bytes, and valid datagrams with some bytes changed, at any end in any state.
    #[test]
    fn nothing_panics(
        scheme in 0..schemes().len(),
        steps in prop::collection::vec((0usize..2, 0u64..300_000_000, prop::collection::vec(any::<u8>(), 0..60), any::<[u8; 6]>()), 1..60),
    ) {
        let settings = schemes()[scheme].clone();
        // As servers do, the receiver grants a rate: a report that was changed may raise the sender's to any, for 8 s.
        let granted = |side| SessionSpec { limit: Some(1_250_000), ..spec(&settings, 8, side) };
        let mut pair = Pair::of([granted(Side::Sender), granted(Side::Receiver)], Path { loss: 0.02, ..GOOD });
        let mut kept: [Vec<Vec<u8>>; 2] = Default::default();
        for (end, ahead, junk, change) in steps {
            let to = pair.now + Span(ahead);
            pair.run(to);
            pair.now = pair.now.max(to);
            pair.input(end, Input::Datagram(&junk, EcnBits::Ce));
            for known in pair.take_seen() {
                kept[known.0].push(known.1);
            }
            let Some(datagram) = kept[end].last() else { continue };
            let mut datagram = datagram.clone();
            for pair in change.chunks(2) {
                let at = usize::from(pair[0]) % datagram.len().min(48);
                datagram[at] ^= pair[1];
            }
            pair.input(end, Input::Datagram(&datagram, EcnBits::Ce));
            pair.input(end, Input::Timer);
        }
        for end in [0, 1] {
            let written = pair.ends[end].log.get_ref();
            prop_assert!(replay(written).is_ok(), "{:?}", replay(written));
        }
    }

    /// A log of any bytes is read or refused.
    #[test]
    fn any_log_gets_an_answer(at in 0usize..4000, byte: u8, cut in 0usize..4000) {
        let mut pair = Pair::new(&[("cc", "newreno")], 1, GOOD);
        pair.run(Time::NEVER);
        let mut bytes = log(pair, 1);
        let len = bytes.len();
        bytes[at % len] = byte;
        bytes.truncate(len - cut % len);
        let _ = replay(&bytes);
    }
}

/// Games and voices are the simulator's: what they send, and how it is measured where it arrives. Of delays, whose clocks
/// have nothing to do with one another, only the changes.
#[test]
fn a_home_s_traffic_is_measured_where_it_arrives() {
    let wide = Path { rate: 100e6, ..GOOD };
    for (app, packets, size) in [
        ("{ kind = \"game\" }", 200, 200),
        ("{ kind = \"game\", way = \"up\" }", 167, 42),
        ("{ kind = \"voice\" }", 500, 172),
        ("{ kind = \"video\", variation = 0.0, group = 1 }", 250 * 4, 5000 / 4),
    ] {
        let mut pair = Pair::new(&[("cc", "udp"), ("app", app)], 10, wide);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{app}");
        let sink = pair.receiver().sink();
        let stats = sink.receiver.stats();
        assert_eq!((stats.packets, stats.bytes), (packets, packets * size), "{app}");
        let arrived = sink.arrival_report().expect("it is measured of UDP");
        let (mean, _) = arrived.gap_moments().unwrap();
        assert!((mean - 10.0 / packets as f64).abs() < 0.06 * mean, "{app}: {mean}");
        // Nothing changes their transits but what waits behind a packet of the same frame.
        assert!(arrived.mean_jitter().unwrap() < 2e-4, "{app}: {:?}", arrived.mean_jitter());
    }
}
