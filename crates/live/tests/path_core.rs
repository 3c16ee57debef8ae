//! The emulator's core against the simulator: the same packets at the same instants meet the same fates at the same
//! instants, whatever the links do. And: no frame vanishes, whatever comes in.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test writes its traces")]

use paceline_live::path::emulator::Counts;
use paceline_live::path::{Connections, Emulator, Folder, OwnDelays, PathSpec, Side};
use paceline_live::scenario;
use paceline_live::session::EcnBits;
use paceline_packet::Flags;
use paceline_path::DropReason;
use paceline_scenario::Document;
use paceline_scenario::model::Model;
use paceline_sim::{Capture, Captured, RunOptions, expand, run_captured};
use paceline_units::{Size, Span, Time};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;

/// What reaches an end: when, how long, whether marked.
type Arrival = (Time, usize, bool);

/// What a simulated run shows at its ends: departures, and arrivals by side.
struct Seen<'a> {
    model: &'a Model,
    near: usize,
    departures: Vec<(Side, Time, u16, Flags)>,
    arrivals: [Vec<Arrival>; 2],
}

impl Capture for Seen<'_> {
    fn packet(&mut self, captured: &Captured) -> ControlFlow<()> {
        let packet = &captured.packet;
        let flow = &self.model.flows[packet.flow.0 as usize];
        let from = if packet.flags.has(Flags::ACK) { flow.sink } else { flow.source };
        let side = if captured.node == self.near { Side::Near } else { Side::Far };
        if captured.node == from {
            self.departures.push((side, packet.time, packet.size, packet.flags));
        } else {
            let marked = packet.flags.has(Flags::CE);
            self.arrivals[side as usize].push((packet.time, usize::from(packet.size), marked));
        }
        ControlFlow::Continue(())
    }
}

/// An IPv4 packet of `size` bytes with these flags: a TCP acknowledgement, or UDP.
fn frame(size: u16, flags: Flags) -> Vec<u8> {
    let mut frame = vec![0; usize::from(size)];
    frame[0] = 0x45;
    frame[1] = EcnBits::of_flags(flags.without(Flags::CE)).tos();
    frame[2..4].copy_from_slice(&size.to_be_bytes());
    frame[9] = 17;
    if flags.has(Flags::ACK) {
        assert!((40..=80).contains(&size) && size.is_multiple_of(4), "an acknowledgement of {size} bytes");
        frame[9] = 6;
        frame[32] = ((size - 20) / 4) as u8 * 16;
        frame[33] = 1 << 4;
    }
    frame
}

/// TCP flows both ways and datagrams over the links, from node a to node c.
fn model(name: &str, links: &str) -> Model {
    let text = format!(
        "duration = \"20 s\"\ntopology = \"graph\"\n{links}\n\
         [flow.out]\nfrom = \"a\"\nto = \"c\"\ncount = 2\necn = true\n\
         [flow.home]\nfrom = \"c\"\nto = \"a\"\nstart = \"1 s\"\n\
         [flow.media]\ncc = \"udp\"\nfrom = \"a\"\nto = \"c\"\n\
         app = {{ kind = \"pareto\", rate = \"1 Mbit/s\", burst = \"100 ms\", idle = \"100 ms\" }}\n"
    );
    let document = Document::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    let checked = scenario::check(&document, Path::new("")).unwrap_or_else(|error| panic!("{error}"));
    expand(&checked, 7).unwrap()
}

fn spec(model: &Model) -> PathSpec {
    let way = |direction| model.links.iter().filter(move |link| link.direction == direction).cloned();
    PathSpec {
        name: model.name.clone(),
        description: String::new(),
        seed: model.seed,
        there: way("forward").collect(),
        back: way("backward").rev().collect(),
        own: OwnDelays::default(),
        connections: Connections::default(),
        ports: 0..0,
        warnings: Vec::new(),
    }
}

/// What became of the frames of each direction, and how many came out marked.
struct Same {
    counts: [Counts; 2],
    marked: usize,
}

/// Runs the flows, then the packets that they sent through the emulator: what reaches each end must be the same, and so
/// must every drop.
fn same(name: &str, links: &str) -> Same {
    let model = model(name, links);
    let near = model.nodes.iter().position(|node| node == "a").unwrap();
    let mut seen = Seen { model: &model, near, departures: Vec::new(), arrivals: Default::default() };
    let output = run_captured(&model, &RunOptions::default(), &mut seen).unwrap();
    let mut emulator = Emulator::new(&spec(&model), None, Emulator::MEMORY);
    let end = Time::ZERO + model.duration;
    let mut arrivals: [Vec<Arrival>; 2] = Default::default();
    let mut poll = |emulator: &mut Emulator, now| {
        while let Some(release) = emulator.poll(now) {
            let marked = release.frame[1] & 3 == 3;
            arrivals[release.side as usize].push((release.due, release.frame.len(), marked));
        }
    };
    let departures = core::mem::take(&mut seen.departures);
    assert!(departures.len() > 2000, "{name}: only {}", departures.len());
    for (side, time, size, flags) in departures {
        poll(&mut emulator, time);
        emulator.arrive(side, time, &frame(size, flags));
    }
    poll(&mut emulator, Time(end.0 - 1));
    for (ours, simulated) in arrivals.iter_mut().zip(&mut seen.arrivals) {
        // Two copies of one instant may come in either order.
        ours.sort_unstable();
        simulated.sort_unstable();
        let first = ours.iter().zip(&*simulated).find(|(a, b)| a != b);
        assert_eq!(first, None, "{name}");
        assert_eq!(ours.len(), simulated.len(), "{name}");
    }
    let counts = Side::BOTH.map(|side| emulator.counts(side));
    for reason in DropReason::ALL.into_iter().filter(|reason| *reason != DropReason::Corrupt) {
        let ours: u64 = counts.iter().map(|counts| counts.links[reason]).sum();
        assert_eq!(ours, output.summary.engine.drops[reason.name()], "{name}: {}", reason.name());
    }
    let duplicated: u64 = counts.iter().map(|counts| counts.duplicated).sum();
    assert_eq!(duplicated, output.summary.engine.packets_duplicated, "{name}");
    let _ = emulator.finish(end);
    Same { counts, marked: arrivals.iter().flatten().filter(|arrival| arrival.2).count() }
}

#[test]
fn drop_tail_and_loss() {
    let Same { counts: [there, back], marked } = same(
        "drop-tail",
        "[link.x]\nbetween = [\"a\", \"c\"]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = { kind = \"droptail\", limit = \"12 packets\" }\nloss = { kind = \"uniform\", rate = \"0.5 %\", on = \"data\" }\n\
         backward = { rate = \"1 Mbit/s\", loss = { kind = \"uniform\", rate = \"2 %\", on = \"acks\" } }\n",
    );
    assert_eq!(marked, 0);
    assert!(
        there.links[DropReason::Overflow] > 0 && there.links[DropReason::Loss] > 0 && back.links[DropReason::Loss] > 0
    );
}

#[test]
fn two_hops_with_everything() {
    let Same { counts: [there, back], marked } = same(
        "everything",
        "[link.x]\nbetween = [\"a\", \"b\"]\nrate = \"2500 kbit/s\"\ndelay = \"10 ms\"\n\
         queue = { kind = \"red\", limit = \"30 packets\", ecn = true, mark_below = \"100 %\", min_threshold = 3, max_threshold = 12 }\n\
         loss = { kind = \"gilbert-elliott\", to_bad = \"0.2 %\", to_good = \"30 %\" }\n\
         delay_variation = { max = \"3 ms\" }\noutage = [{ from = \"7 s\", to = \"7500 ms\" }]\n\
         [link.y]\nbetween = [\"b\", \"c\"]\n\
         rate_schedule = [{ at = \"0 s\", rate = \"3 Mbit/s\" }, { at = \"9 s\", rate = \"8 Mbit/s\" }]\ndelay = \"5 ms\"\n\
         queue = { kind = \"droptail\", limit = \"20 kB\" }\nduplicate = { rate = \"1 %\" }\n\
         reorder = { rate = \"2 %\", extra = \"8 ms\" }\ncorrupt = { rate = \"0.3 %\" }\n\
         backward = { policer = { rate = \"1 Mbit/s\", burst = \"6 kB\" }, delay_variation = { kind = \"bad-wifi\", average = \"7 ms\" }, loss = { kind = \"two-state\", good_rate = \"0.1 %\", bad_rate = \"5 %\", good_time = \"2 s\", \
         bad_time = \"1 s\", change = \"90 %\" } }\n",
    );
    assert!(marked > 10, "{marked}");
    assert!(
        there.links[DropReason::Outage] > 0
            && back.links[DropReason::Policed] > 0
            && there.duplicated > 0
            && back.links[DropReason::Loss] > 0
    );
}

/// Delays, jitter, limits and losses that come and go, over a wire and then another.
#[test]
fn what_changes_at_an_instant() {
    let Same { counts: [there, back], .. } = same(
        "schedules",
        "[link.x]\nbetween = [\"a\", \"c\"]\nrate = \"3 Mbit/s\"\nqueue = { limit = \"30 packets\" }\n\
         delay_schedule = [{ at = \"0 s\", delay = \"5 ms\" }, { at = \"2 s\", delay = \"60 ms\" }, \
         { at = \"4 s\", delay = \"20 ms\" }, { at = \"6 s\", delay = \"2 ms\", overtakes = true }]\n\
         limit_schedule = [{ at = \"3 s\", limit = \"4 packets\" }, { at = \"5 s\", limit = \"90 ms\" }]\n\
         delay_variation_schedule = [{ at = \"1 s\", variation = { kind = \"bad-wifi\", average = \"7 ms\" } }, { at = \"5 s\" }]\n\
         loss = { kind = \"periodic\", pass = 40, lose = 2, during = [{ from = \"1 s\", to = \"3 s\" }] }\n\
         backward = { loss = { rate = \"5 %\", during = [{ from = \"2 s\", to = \"3 s\" }, { from = \"7 s\", to = \"9 s\" }] } }\n",
    );
    assert!(
        there.links[DropReason::Overflow] > 0 && there.links[DropReason::Loss] > 0 && back.links[DropReason::Loss] > 0
    );
}

#[test]
fn mahimahi_traces() {
    let folder = std::env::temp_dir();
    let name = |way: &str| format!("paceline-{}-{way}.trace", std::process::id());
    let lines = |times: &mut dyn Iterator<Item = u32>| times.map(|ms| format!("{ms}\n")).collect::<String>();
    std::fs::write(folder.join(name("up")), lines(&mut (1..500).map(|i| i * 3 + i % 3))).unwrap();
    std::fs::write(folder.join(name("down")), lines(&mut (1..500).map(|i| i * 9 + i % 2))).unwrap();
    let word = format!("trace:{},{}", folder.join(name("up")).display(), folder.join(name("down")).display());
    let path = PathSpec::load(&word).unwrap();
    let file = |way: &str| folder.join(name(way)).display().to_string();
    same(
        "mahimahi",
        &format!(
            "[link.x]\nbetween = [\"a\", \"c\"]\nrate_trace = {{ file = {:?} }}\ndelay = \"10 ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"40 packets\" }}\n\
             backward = {{ rate_trace = {{ file = {:?} }} }}\n",
            file("up"),
            file("down")
        ),
    );
    // A frame waits for the first opportunity after it: 4 ms up, 10 ms down.
    let mut emulator = Emulator::new(&path, None, Emulator::MEMORY);
    for side in Side::BOTH {
        emulator.arrive(side, Time::ZERO, &frame(1500, Flags::NONE));
    }
    let mut out = Vec::new();
    while let Some(release) = emulator.poll(Time::ZERO + Span::from_secs(1)) {
        out.push((release.side, release.due));
    }
    assert_eq!(out, [(Side::Far, Time(4_000_000)), (Side::Near, Time(10_000_000))]);
    ["up", "down"].iter().for_each(|way| std::fs::remove_file(folder.join(name(way))).unwrap());
}

#[test]
fn recovery_at_the_link_layer() {
    let Same { counts: [there, back], marked } = same(
        "recovery",
        "[link.x]\nbetween = [\"a\", \"c\"]\nrate = \"2 Mbit/s\"\ndelay = \"20 ms\"\n\
         queue = { kind = \"droptail\", limit = \"40 kB\" }\n\
         recovery = { block_time = \"2 ms\", block_error = \"15 %\", delay = \"30 ms\", retransmissions = 2 }\n\
         backward = { recovery = { block_time = \"2 ms\", block_error = \"10 %\", delay = \"30 ms\", retransmissions = 1 } }\n",
    );
    assert_eq!(marked, 0);
    assert!(there.links[DropReason::Loss] > 0 && back.links[DropReason::Loss] > 0);
}

/// What the first one marked goes to the second one's L4S queue, here as there.
#[test]
fn coupled_queues() {
    let Same { counts: [there, _], marked } = same(
        "coupled queues",
        "[link.x]\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = { kind = \"dualpi2\", variant = \"linux\" }\n\
         [link.y]\nbetween = [\"b\", \"c\"]\nrate = \"1900 kbit/s\"\ndelay = \"5 ms\"\nqueue = { kind = \"dualpi2\" }\n",
    );
    assert!(marked > 10 && there.links[DropReason::Early] > 0, "{marked} {there:?}");
}

/// RFC 3168 section 5: what comes out has the ECN field with which it came in, or CE. ECT(1) waits in another queue than ECT(0).
#[test]
fn the_classes_are_kept_apart_and_marks_are_the_only_change() {
    let path =
        path("[link.bottleneck]\nrate = \"8 Mbit/s\"\nqueue = { kind = \"dualpi2\", l4s_threshold = \"2 ms\" }\n");
    let mut emulator = Emulator::new(&path, None, Emulator::MEMORY);
    for n in 0..8u32 {
        for tos in 0..4 {
            let mut frame = frame(1000, Flags::NONE);
            (frame[1], frame[40]) = (0xb8 | tos, tos);
            frame[44..48].copy_from_slice(&n.to_be_bytes());
            emulator.arrive(Side::Near, Time::ZERO, &frame);
        }
    }
    let mut seen = Vec::new();
    while let Some(release) = emulator.poll(Time::ZERO + Span::from_secs(1)) {
        assert_eq!(release.frame[1] >> 2, 0xb8 >> 2, "the rest of the byte stays");
        seen.push((release.frame[40], release.frame[1] & 3));
    }
    let count = |was, is| seen.iter().filter(|pair| **pair == (was, is)).count();
    assert_eq!((count(0, 0), count(3, 3), count(2, 2) + count(2, 3), count(1, 1) + count(1, 3)), (8, 8, 8, 8));
    assert!(count(1, 1) > 0 && count(1, 3) > 2 && count(2, 2) > 6, "{seen:?}");
    assert!(seen[1..13].iter().all(|(was, _)| was % 2 == 1), "ECT(1) and CE go before what came with them: {seen:?}");
    let _ = emulator.finish(Time::ZERO + Span::from_secs(1));
}

/// A mark that the first link's queue sets does not leave it, and to the second one's all are alike.
#[test]
fn a_path_that_bleaches_ecn() {
    let links = |bleach: &str| {
        format!(
            "[link.x]\nbetween = [\"a\", \"b\"]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
             queue = {{ kind = \"dualpi2\", variant = \"linux\" }}\n{bleach}\
             [link.y]\nbetween = [\"b\", \"c\"]\nrate = \"1900 kbit/s\"\ndelay = \"5 ms\"\nqueue = {{ kind = \"dualpi2\" }}\n"
        )
    };
    let Same { counts: [there, _], marked } = same("bleached", &links("bleach_ecn = true\n"));
    assert!(marked == 0 && there.links[DropReason::Early] > 0, "{marked} {there:?}");
    assert!(same("bleached backward", &links("backward = { bleach_ecn = true }\n")).marked > 10);
    let bleaching = path("[link.bottleneck]\nrate = \"8 Mbit/s\"\nbleach_ecn = true\n");
    let mut emulator = Emulator::new(&bleaching, None, Emulator::MEMORY);
    for tos in 0xb8..0xbc {
        let mut frame = frame(100, Flags::NONE);
        frame[1] = tos;
        emulator.arrive(Side::Near, Time::ZERO, &frame);
    }
    let end = Time::ZERO + Span::from_secs(1);
    let out: Vec<u8> = std::iter::from_fn(|| emulator.poll(end).map(|release| release.frame[1])).collect();
    assert_eq!(out, [0xb8; 4], "the rest of the byte stays");
    let _ = emulator.finish(end);
}

fn path(links: &str) -> PathSpec {
    let document = Document::parse(links, "path").unwrap_or_else(|error| panic!("{error}"));
    PathSpec::of(document, &Folder::Profiles).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_frame_comes_out_as_it_went_in_but_for_a_mark_or_a_bit() {
    let path = path("[link.bottleneck]\nrate = \"8 Mbit/s\"\ncorrupt = { rate = \"100 %\" }\ndelay = \"1 ms\"\n");
    let mut emulator = Emulator::new(&path, None, Emulator::MEMORY);
    let sent: Vec<u8> =
        frame(1000, Flags::NONE).into_iter().zip(0..).map(|(b, i): (u8, u32)| b ^ ((i / 20 * 3) as u8)).collect();
    emulator.arrive(Side::Near, Time::ZERO, &sent);
    emulator.arrive(Side::Far, Time::ZERO, &sent);
    emulator.arrive(Side::Near, Time::ZERO, &sent[..20]); // cut
    let header = [&[0x45, 0, 0, 20][..], &[0; 16]].concat();
    emulator.arrive(Side::Near, Time::ZERO, &header);
    let at = Time::ZERO + Span::from_millis(2);
    assert_eq!(emulator.next_wake(), at);
    assert!(emulator.poll(Time(at.0 - 1)).is_none());
    let bits = |a: &[u8], b: &[u8]| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>();
    for (side, flipped) in [(Side::Far, 1), (Side::Near, 0)] {
        let release = emulator.poll(at).unwrap();
        assert_eq!((release.side, release.due, release.frame.len()), (side, at, 1000));
        assert_eq!((bits(release.frame, &sent), &release.frame[..20]), (flipped, &sent[..20]));
    }
    assert!(emulator.poll(at + Span::from_secs(1)).is_none());
    let counts = emulator.counts(Side::Near);
    // A damaged packet without a payload would show nothing of it.
    assert_eq!((counts.malformed, counts.links[DropReason::Corrupt], counts.delivered), (1, 1, 1));
    let _ = emulator.finish(at);
}

#[test]
fn what_a_full_device_refuses_is_dropped_by_name() {
    let path = path("[link.bottleneck]\nrate = \"8 Mbit/s\"\n");
    let mut emulator = Emulator::new(&path, None, Emulator::MEMORY);
    emulator.arrive(Side::Near, Time::ZERO, &frame(1000, Flags::NONE));
    assert!(emulator.poll(Time::ZERO + Span::from_secs(1)).is_some());
    emulator.not_taken(Side::Far);
    let [way, _] = emulator.finish(Time::ZERO + Span::from_secs(1));
    assert_eq!((way.counts.device, way.counts.delivered, way.counts.delivered_bytes), (1, 0, 0));
    assert_eq!(way.counts.by_reason()["device"], 1);
}

#[test]
fn an_unlimited_queue_is_bounded_by_memory_and_says_so() {
    let path = path("[link.bottleneck]\nrate = \"1 bit/s\"\nqueue = { kind = \"unlimited\" }\n");
    let mut emulator = Emulator::new(&path, None, Size::from_bytes(1 << 20));
    for _ in 0..5000 {
        emulator.arrive(Side::Near, Time::ZERO, &frame(1500, Flags::NONE));
    }
    let counts = emulator.counts(Side::Near);
    assert_eq!(counts.memory + counts.in_flight, 5000);
    assert_eq!(counts.in_flight, (1 << 20) / (2048 + 160));
    assert_eq!(counts.by_reason()["memory"], counts.memory);
    let _ = emulator.finish(Time::ZERO);
}

const LINKS: &str = "topology = \"parking-lot\"\n[link.hop1]\nrate = \"2 Mbit/s\"\ndelay = \"5 ms\"\n\
    queue = { kind = \"droptail\", limit = \"9 kB\" }\nloss = { kind = \"uniform\", rate = \"5 %\" }\n\
    duplicate = { rate = \"10 %\" }\n[link.hop2]\nrate = \"1 Mbit/s\"\n\
    recovery = { block_time = \"2 ms\", block_error = \"30 %\", delay = \"5 ms\", retransmissions = 1 }\ncorrupt = { rate = \"5 %\" }\n\
    queue = { kind = \"red\", limit = \"8 packets\", ecn = true }\nreorder = { rate = \"10 %\", extra = \"3 ms\" }\n\
    backward = { delay_variation = { max = \"9 ms\" } }\n";

proptest! {
    /// Whatever comes in, from either side, at whatever instants, whole or not: nothing panics, nothing is early, what comes
    /// out comes in order of time, and at any end of it each frame is accounted for (`finish` asserts it).
    #[test]
    fn conservation(
        frames in prop::collection::vec((any::<bool>(), 0..3_000_000u64, 0..1600u16, prop::option::of(0..1600usize), any::<u8>()), 1..300),
        memory in prop_oneof![Just(20_000u64), Just(1 << 28)],
        taken: bool,
    ) {
        let mut emulator = Emulator::new(&path(LINKS), Some(Span::from_millis(1)), Size::from_bytes(memory));
        let (mut now, mut last) = (0, Time::ZERO);
        for (near, gap, size, cut, byte) in frames {
            now += gap;
            let mut bytes = if size < 20 { vec![byte; usize::from(size)] } else { frame(size, Flags::NONE) };
            if let (Some(cut), Some(b)) = (cut, bytes.first_mut()) {
                *b = byte;
                bytes.resize(cut, byte);
            }
            emulator.arrive(if near { Side::Near } else { Side::Far }, Time(now), &bytes);
            if byte % 3 == 0 {
                while let Some(release) = emulator.poll(Time(now)) {
                    prop_assert!(release.due <= Time(now) && release.due >= last && release.due > release.entered);
                    last = release.due;
                    let side = release.side;
                    if !taken {
                        emulator.not_taken(side);
                    }
                }
                prop_assert!(emulator.next_wake() > Time(now));
            }
        }
        let held: u64 = Side::BOTH.iter().map(|side| emulator.counts(*side).in_flight).sum();
        prop_assert!(held * 288 <= memory);
        let _ = emulator.finish(Time(now));
    }
}
