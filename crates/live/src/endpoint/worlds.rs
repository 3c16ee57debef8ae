//! Runs scenarios in virtual time as they run in real time: the driver's flows at both ends and the emulator's links
//! between them, without clock or sockets. `measures` compares what `paceline emulate` would report with the
//! simulator's, `schemes` does so for every scheme. Effects of a real host (the kernel and its timers) are tested in
//! `tests/test_emulate_real.py`.

mod measures;
mod schemes;
mod stops;

use super::control::{Direction, Measure, Offer};
use super::driver::NewFlow;
use super::flow::Flow;
use super::flows::Flows;
use super::half::{Half, epoch};
use super::options::{RequestedFlow, SendOptions};
use super::outcome::{LiveRun, results};
use super::port::Port;
use crate::clock::Clock;
use crate::path::{Emulator, FlowLosses, Folder, PathSpec, Side as End};
use crate::quic::{Keys, OwnKey};
use crate::session::{EcnBits, Family, FlowSpec, ForeignSchemes, Outbox, SessionSpec, Side};
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use paceline_scenario::{Document, Scenario};
use paceline_units::{Rate, Span, Time};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

const HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];
/// The server's port, and the port of the client's first flow.
const SERVER: u16 = 5050;
const FIRST: u16 = 20_000;
/// Keys of a flow table that apply only within a scenario, as in `paceline.realtime`.
const OF_SCENARIO: [&str; 10] = ["count", "from", "to", "rtt", "group", "kernel", "stop", "name", "start", "bundle"];
/// When the world begins: a session's data must not begin at zero.
const BEGINS: Time = Time(1_000_000_000);

/// A port that sends its datagrams into the path.
struct Wire {
    from: SocketAddr,
    frames: Vec<Vec<u8>>,
}

impl Wire {
    fn of(end: usize, port: u16) -> Wire {
        Wire { from: SocketAddr::from((HOSTS[end], port)), frames: Vec::new() }
    }
}

impl Port for Wire {
    fn send(&mut self, out: &Outbox, to: SocketAddr) -> io::Result<()> {
        let (SocketAddr::V4(from), SocketAddr::V4(to)) = (self.from, to) else { unreachable!("all is IPv4") };
        for datagram in out.iter() {
            let mut bytes = datagram.header.to_vec();
            bytes.resize(datagram.len(), 0);
            let mut frame = Vec::with_capacity(28 + bytes.len());
            let builder = PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), 64).udp(from.port(), to.port());
            builder.write(&mut frame, &bytes).expect("a vector takes it");
            frame[1] = datagram.ecn.tos();
            self.frames.push(frame);
        }
        Ok(())
    }

    fn refused(&self) -> u64 {
        0
    }
}

/// A path, and the time at which it starts.
struct Path {
    zero: Time,
    emulator: Emulator,
}

/// Result of a run.
struct Ran {
    run: LiveRun,
    /// Flow data dropped by the path, by its own time.
    lost: FlowLosses,
    /// All packets that the path dropped, per direction.
    dropped: [u64; 2],
    /// Received datagrams that the path had marked (CE), per direction.
    marked: [u64; 2],
    /// When each flow's data began at its sender, in the path's time.
    began: Vec<Time>,
}

/// The two ends.
struct World {
    spec: PathSpec,
    paths: Vec<Path>,
    ends: [Flows<Wire>; 2],
    halves: [Vec<Option<Half>>; 2],
    marked: [u64; 2],
    now: Time,
}

/// A client's request for a scenario's flows, as `paceline.realtime.flows` makes it.
fn requested(scenario: &Scenario, seed: u64) -> Vec<RequestedFlow> {
    let table: toml::Table = scenario.to_toml().parse().unwrap();
    let duration = |text: &toml::Value| text.as_str().unwrap().parse::<Span>().unwrap();
    let ms = |span: Span| span.0 / 1_000_000;
    let (lasts, warmup) = (duration(&table["duration"]), duration(&table["warmup"]));
    let plain = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (_, right) = scenario.ends().expect("a dumbbell");
    let mut found = Vec::new();
    for (name, flow) in table["flow"].as_table().unwrap() {
        let flow = flow.as_table().unwrap();
        let own = flow.iter().filter(|(key, _)| !OF_SCENARIO.contains(&key.as_str()));
        let mut settings: Vec<_> = own.map(|(key, value)| (key.clone(), plain(value))).collect();
        settings.push(("start".to_owned(), plain(&flow["start"])));
        let mut called = None;
        if let Some(bundle) = flow.get("bundle").and_then(toml::Value::as_table) {
            settings.push(("bundle.priority".to_owned(), plain(&bundle["priority"])));
            match bundle.get("with") {
                Some(with) => settings.push(("bundle.with".to_owned(), plain(with))),
                None => called = Some(name.clone()),
            }
        }
        for instance in 0..flow["count"].as_integer().unwrap() as u32 {
            let spec = FlowSpec {
                settings: settings.clone(),
                for_ms: ms(flow.get("stop").map_or(lasts, duration)),
                seed: seed * 1_000_003 + found.len() as u64,
                family: Family::V4,
                name: called.clone(),
                foreign: ForeignSchemes::default(),
            };
            let direction = if flow["from"].as_str() == Some(right) { Direction::Reverse } else { Direction::Forward };
            let measure = Some(Measure { from_ms: ms(warmup), to_ms: ms(lasts), every_us: 100_000 });
            found.push(RequestedFlow {
                name: name.clone(),
                instance,
                offer: Offer { spec, direction, kernel: None, measure },
            });
        }
    }
    found
}

/// Both ends' keys for flows over QUIC.
fn keys() -> [Keys; 2] {
    let own = [OwnKey::generate().unwrap(), OwnKey::generate().unwrap()];
    let [near, far] = [own[0].fingerprint(), own[1].fingerprint()];
    let mut peers = [far, near].into_iter();
    own.map(|own| Keys { own, peer: peers.next() })
}

impl World {
    fn of(spec: PathSpec, requested: &[RequestedFlow]) -> World {
        let path = Path { zero: BEGINS, emulator: Emulator::new(&spec, None, Emulator::MEMORY) };
        let near = (0..requested.len()).map(|flow| Wire::of(0, FIRST + flow as u16)).collect();
        let mut ends = [Flows::new(near), Flows::new(vec![Wire::of(1, SERVER)])];
        let (server, keys) = (ends[1].ports[0].from, keys());
        let limit = Some((Rate::from_bps(1_000_000_000).0 / 8) as u32);
        for (id, RequestedFlow { offer, .. }) in requested.iter().enumerate() {
            let forward = offer.direction == Direction::Forward;
            // start the server's end first, as it is in reality once it has answered
            for end in [1, 0] {
                let sends = forward == (end == 0);
                let side = if sends { Side::Sender } else { Side::Receiver };
                let new = NewFlow {
                    id: id as u64,
                    spec: SessionSpec {
                        side,
                        flow: if end == 0 { offer.spec.clone() } else { offer.for_peer().spec },
                        connection: 100 + id as u32,
                        nonce: 7 + id as u64,
                        limit: limit.filter(|_| end == 1 || sends),
                        announces: end == 0 && !sends,
                        rtp: None,
                    },
                    port: if end == 0 { id } else { 0 },
                    peer: (end == 0).then_some(server),
                    only: HOSTS[1 - end].into(),
                    rtcp: None,
                    log: None,
                    qlog: None,
                    measure: offer.measure,
                    charge: None,
                    keys: offer.spec.is_quic().then(|| keys[end].clone()),
                    announcer: None,
                };
                ends[end].enters(Flow::new(new).unwrap_or_else(|why| panic!("{why}")), BEGINS);
            }
        }
        let none = || requested.iter().map(|_| None).collect();
        World { spec, paths: vec![path], ends, halves: [none(), none()], marked: [0; 2], now: BEGINS }
    }

    /// Runs until the last flow has ended.
    fn run(&mut self) {
        while self.ends.iter().any(|end| !end.all.is_empty()) {
            self.flush();
            let flows = self.ends.iter().flat_map(|end| &end.all).map(Flow::next);
            let frames = self.paths.iter().filter(|path| path.emulator.next_wake() < Time::NEVER);
            let next = flows.chain(frames.map(|path| path.zero + path.emulator.next_wake().since(Time::ZERO))).min();
            self.now = self.now.max(next.expect("there are flows"));
            assert!(self.now < Time::NEVER, "nothing goes on");
            self.deliver();
            for (end, flows) in self.ends.iter_mut().enumerate() {
                for at in 0..flows.all.len() {
                    if flows.all[at].next() <= self.now {
                        flows.visit(at, self.now, |due| self.now.since(due));
                    }
                }
                while let Some(at) = flows.all.iter().position(Flow::is_over) {
                    let flow = flows.leaves(at);
                    let id = flow.new.id as usize;
                    let outcome = flow.outcome(self.now, &Clock::from_monotonic(0), &flows.ports);
                    self.halves[end][id] = Some(outcome.half);
                }
            }
        }
    }

    /// Passes sent datagrams to the path. The path restarts when the first flow begins, before its first data.
    fn flush(&mut self) {
        let began = self.ends[0].all.iter().map(|flow| epoch(&flow.session)).filter(|at| *at > Time::ZERO).min();
        if let (Some(zero), 1) = (began, self.paths.len()) {
            self.paths.push(Path { zero, emulator: Emulator::new(&self.spec, None, Emulator::MEMORY) });
        }
        let path = self.paths.last_mut().expect("there is one");
        for (end, flows) in self.ends.iter_mut().enumerate() {
            for frame in flows.ports.iter_mut().flat_map(|wire| wire.frames.drain(..)) {
                path.emulator.arrive(End::BOTH[end], Time::ZERO + self.now.since(path.zero), &frame);
            }
        }
    }

    /// Delivers what is due.
    fn deliver(&mut self) {
        let mut received = Vec::new();
        for Path { zero, emulator } in &mut self.paths {
            while let Some(release) = emulator.poll(Time::ZERO + self.now.since(*zero)) {
                received.push((release.side, release.frame.to_vec()));
            }
        }
        for (side, frame) in received {
            let packet = SlicedPacket::from_ip(&frame).expect("an IP packet");
            let Some(TransportSlice::Udp(udp)) = &packet.transport else { panic!("UDP alone was sent") };
            let Some(etherparse::NetSlice::Ipv4(ip)) = &packet.net else { panic!("IPv4 alone was sent") };
            let header = udp.to_header();
            // drop damaged datagrams, as a kernel does
            if header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload()).unwrap() != header.checksum {
                continue;
            }
            let ecn = EcnBits::of_tos(frame[1]);
            self.marked[side.other() as usize] += u64::from(ecn == EcnBits::Ce);
            let flows = &mut self.ends[side as usize];
            let from = SocketAddr::from((HOSTS[1 - side as usize], header.source_port));
            let port = usize::from(if side == End::Near { header.destination_port - FIRST } else { 0 });
            // the other end of an ended flow may continue for a while
            let Some(at) = flows.flow_of(port, from, udp.payload()) else { continue };
            flows.datagram(at, self.now, from, ecn, udp.payload());
            self.flush();
        }
    }
}

/// Runs a scenario, with the measures of `paceline emulate`.
fn emulate(text: &str, seed: u64) -> Ran {
    let document = Document::parse(text, "world.toml").unwrap_or_else(|error| panic!("{error}"));
    let scenario = checked(text);
    let spec = PathSpec::of_run(document, &Folder::Profiles, Some(seed), Some(FIRST)).unwrap();
    let flows = requested(&scenario, seed);
    let mut world = World::of(spec, &flows);
    world.run();
    let path = world.paths.last_mut().unwrap();
    let dropped = End::BOTH.map(|side| path.emulator.counts(side).dropped());
    let lost = path.emulator.take_lost();
    let began = flows.iter().enumerate().map(|(flow, requested)| {
        let sender = &world.halves[usize::from(requested.offer.direction == Direction::Reverse)][flow];
        let began = sender.as_ref().and_then(|half| half.began_s).expect("its data began");
        Time::ZERO + Time::from_secs_f64(began).since(path.zero)
    });
    let began = began.collect();
    let options = SendOptions {
        host: "far".to_owned(),
        port: SERVER,
        key: None,
        flows,
        logs: None,
        qlogs: None,
        results: None,
        ports: Some(FIRST),
        beginning: Some(PathBuf::new()),
    };
    let server = SocketAddr::from((HOSTS[1], SERVER));
    let run = results(&options, server, None, (&world.halves[0], &world.halves[1]), String::new());
    Ran { run, lost, dropped, marked: world.marked, began }
}

fn checked(text: &str) -> Scenario {
    let document = Document::parse(text, "world.toml").unwrap_or_else(|error| panic!("{error}"));
    Scenario::check(&document, &mut |_| unreachable!("no file is read")).unwrap_or_else(|error| panic!("{error}"))
}
