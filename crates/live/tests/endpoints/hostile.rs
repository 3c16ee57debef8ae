//! What no client may do to a server: stop it, keep it from others, fill it.

use super::*;
use paceline_live::clock::Clock;
use paceline_live::endpoint::driver::{Driver, NewFlow, Running};
use paceline_live::endpoint::udp::UdpPort;
use paceline_live::session::{SessionSpec, Side};
use paceline_packet::wire::tfrc::{Accept, ConnectionId, Datagram, Message, Nonce, RateLimit};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// Applications as absurd as their settings allow, past what a server refuses at once.
const APPS: [&str; 9] = [
    "{ kind = \"ftp\" }",
    "{ kind = \"web\", gap = \"1 us\", arrivals = \"open\", mean_size = \"1 B\" }",
    "{ kind = \"web\", gap = \"1 us\", mean_size = \"1 B\" }",
    "{ kind = \"pareto\", rate = \"100 Gbit/s\", burst = \"1000000 s\", idle = \"0 s\" }",
    "{ kind = \"cbr\", rate = \"100 Gbit/s\" }",
    "{ kind = \"game\", packet = \"65507 B\", interval = \"100 us\" }",
    "{ kind = \"video\", rate = \"10 Mbit/s\", frame_rate = 1000.0, key_size = 100.0, group = 1, variation = 3.0 }",
    "{ kind = \"encoder\", min_rate = \"100 Gbit/s\", max_rate = \"100 Gbit/s\", frame_rate = 1000.0, key_size = 8.0 }",
    "{ kind = \"stream\", media_rate = \"1 Gbit/s\", length = \"8 s\", heartbeat = \"1 us\", xfactor = 1e6 }",
];

fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn spec(settings: &[(&str, &str)], connection: u32) -> SessionSpec {
    let flow = requested("", settings, 60_000, Direction::Reverse).offer.spec;
    let limit = Some(125_000_000);
    SessionSpec { side: Side::Sender, flow, connection, nonce: 7, limit, announces: false, rtp: None }
}

/// A socket that takes a flow's datagrams, having accepted it.
fn taker(at: &str, server: SocketAddr, connection: u32) -> UdpSocket {
    let socket = UdpSocket::bind((at, 0)).unwrap();
    socket.connect(server).unwrap();
    let message = Message::Accept(Accept { nonce: Nonce(7), limit: RateLimit::None });
    let mut bytes = Vec::new();
    Datagram { connection: ConnectionId(connection), message }.encode(&mut bytes);
    // it shows itself, and accepts what it is asked
    for _ in 0..3 {
        socket.send(&bytes).unwrap();
        thread::sleep(Duration::from_millis(5));
    }
    socket
}

/// Flows of every scheme and application, four at a time, beside a modest one of another client.
fn hostile_flows_beside_another() -> Result<(), String> {
    let clock = Clock::start();
    let port = UdpPort::bind("0.0.0.0:0".parse().unwrap(), clock).unwrap();
    let server = SocketAddr::new("127.0.0.1".parse().unwrap(), port.local().unwrap().port());
    let Running { thread, handle, outcomes: _outcomes } = Driver::spawn(clock, vec![port]).unwrap();
    let add = |id: u64, spec: SessionSpec, only: &str| {
        let only = only.parse().unwrap();
        let (rtcp, log, measure, charge) = (None, None, None, None);
        handle.add(NewFlow {
            id,
            spec,
            port: 0,
            peer: None,
            only,
            rtcp,
            log,
            qlog: None,
            measure,
            charge,
            keys: None,
            announcer: None,
        })
    };
    add(0, spec(&[("cc", "udp"), ("app", CBR)], 1), "127.0.0.1").unwrap();
    let modest = taker("127.0.0.1", server, 1);
    modest.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (over, theirs) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&over);
    let watching = thread::spawn(move || {
        let (mut last, mut gap) = (Instant::now(), Duration::ZERO);
        let message = Message::Accept(Accept { nonce: Nonce(7), limit: RateLimit::None });
        let mut accept = Vec::new();
        Datagram { connection: ConnectionId(1), message }.encode(&mut accept);
        while !stop.load(Ordering::Relaxed) {
            if modest.recv(&mut [0; 2048]).is_ok() {
                gap = gap.max(last.elapsed());
                last = Instant::now();
            }
            let _ = modest.send(&accept);
        }
        gap.max(last.elapsed())
    });
    let before = resident();
    let (mut max, mut ran, mut id, mut open) = (before, 0, 1, Vec::new());
    for scheme in paceline_control::registry::schemes() {
        for app in APPS {
            id += 1;
            let settings = [("cc", scheme.name), ("segment", "1 B"), ("app", app)];
            if add(id, spec(&settings, id as u32), "127.0.0.2").is_err() {
                continue; // not for this scheme
            }
            ran += 1;
            open.push((id, taker("127.0.0.2", server, id as u32)));
            if open.len() == 4 {
                thread::sleep(Duration::from_millis(300));
                max = max.max(resident());
                open.drain(..).for_each(|(id, _)| handle.drop_flow(id));
            }
        }
    }
    // the last of them still run
    let begin = Instant::now();
    handle.quit();
    thread.join().unwrap().unwrap();
    let took = begin.elapsed();
    over.store(true, Ordering::Relaxed);
    theirs.store(true, Ordering::Relaxed);
    let gap = watching.join().unwrap();
    if ran < 60 {
        return Err(format!("{ran} flows"));
    }
    if took > Duration::from_secs(2) || gap > Duration::from_secs(1) {
        return Err(format!("it took {took:?} to end; the other client had to wait for {gap:?}"));
    }
    let grown = max.saturating_sub(before);
    if grown > 4 * paceline_live::endpoint::budget::SESSION_BYTES + (32 << 20) {
        return Err(format!("{} MB for four flows", grown >> 20));
    }
    Ok(())
}

#[test]
#[ignore = "real time"]
fn no_flow_keeps_a_driver_from_others_or_from_its_end() {
    realtime::tried(|| {
        let (done, comes) = channel();
        let runs = thread::spawn(move || {
            let _ = done.send(hostile_flows_beside_another());
        });
        match comes.recv_timeout(Duration::from_secs(120)) {
            Ok(result) => result.unwrap(),
            Err(RecvTimeoutError::Timeout) => panic!("the driver does not come back"),
            Err(RecvTimeoutError::Disconnected) => runs.join().unwrap(),
        }
    });
}

#[test]
#[ignore = "real time"]
fn what_is_absurd_is_refused_with_words() {
    realtime::tried(|| {
        let server = Served::new(options());
        let refused = |settings: &[(&str, &str)]| {
            let flow = vec![requested("x", settings, 1000, Direction::Reverse)];
            match send(&send_options(&server, flow), &SendWatch::default()) {
                Err(SendError::Refused(why)) => why,
                other => panic!("{other:?}"),
            }
        };
        let cbr = "{ kind = \"cbr\", rate = \"100 Gbit/s\" }";
        assert!(refused(&[("segment", "1 B"), ("app", cbr)]).contains("a segment of 1 B; 16 B at least"));
        assert!(refused(&[("app", cbr)]).contains("times a second; 1000000 at most"));
        let web = "{ kind = \"web\", gap = \"900 ns\", arrivals = \"open\" }";
        let said = send(
            &send_options(&server, vec![requested("w", &[("app", web)], 1000, Direction::Reverse)]),
            &SendWatch::default(),
        );
        assert!(said.is_err(), "{said:?}");
    });
}

/// Requests that take long to look at, from one address on many connections at once, keep neither another client nor the end waiting.
#[test]
#[ignore = "real time"]
fn requests_are_looked_at_in_turn() {
    realtime::tried(|| {
        let mut server = Served::new(options());
        let mut long: Vec<RequestedFlow> =
            (0..18).map(|_| requested("w", &[("cc", "cubic"); 40], 1000, Direction::Reverse)).collect();
        long[17].offer.spec.settings.push(("segment".to_owned(), "1 B".to_owned()));
        let flows: Vec<Offer> = long.into_iter().map(|requested| requested.offer).collect();
        let (address, over) = (server.address, Arc::new(AtomicBool::new(false)));
        let threads: Vec<_> = (0..40)
            .map(|_| {
                let (flows, over) = (flows.clone(), Arc::clone(&over));
                thread::spawn(move || {
                    let mut refused = 0;
                    while !over.load(Ordering::Relaxed) {
                        let Ok(stream) = bounds::connected_from("127.0.0.2", address) else { continue };
                        let Ok(mut channel) = Channel::open(stream, None) else { continue };
                        let Ok(ServerMessage::Welcome { .. }) = channel.read(MAX_RESULT, PATIENCE) else { continue };
                        let written = channel.write(&ClientMessage::Open { flows: flows.clone(), key: None }, PATIENCE);
                        if written.is_ok()
                            && matches!(channel.read(MAX_RESULT, PATIENCE), Ok(ServerMessage::Refused { .. }))
                        {
                            refused += 1;
                        }
                    }
                    refused
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(500));
        let mut longest = Duration::ZERO;
        for _ in 0..5 {
            let begin = Instant::now();
            drop(open(&server, &[requested("t", &[("cc", "tfrc")], 1000, Direction::Reverse)]).unwrap());
            longest = longest.max(begin.elapsed());
            thread::sleep(Duration::from_millis(200));
        }
        let begin = Instant::now();
        server.end();
        let took = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        let refused: u32 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(refused > 10, "{refused} refused");
        assert!(
            longest < Duration::from_secs(1) && took < Duration::from_secs(2),
            "{longest:?} waited, {took:?} to end"
        );
    });
}

/// Recordings are charged with all others', before they are made, and given back.
#[test]
#[ignore = "real time"]
fn memory_is_one_budget() {
    realtime::tried(|| {
        let server = Served::new(ServeOptions { max_memory: 256 << 20, ..options() });
        let flows = |count: usize, every_us: u64| {
            let mut flow = requested("t", &[("cc", "tfrc")], 33_000, Direction::Reverse);
            flow.offer.measure = Some(Measure { from_ms: 0, to_ms: 33_000, every_us });
            vec![flow; count]
        };
        let refused =
            |count, every_us| match send(&send_options(&server, flows(count, every_us)), &SendWatch::default()) {
                Err(SendError::Refused(why)) => why,
                other => panic!("{other:?}"),
            };
        // four times 33,000 samples of 1.5 kB, and 8 MB each
        let why = refused(4, 1000);
        assert!(why.contains("221 MB; one client has 192 MB of this server's --max-memory"), "{why}");
        let held = open(&server, &flows(2, 1000)).unwrap();
        assert!(refused(2, 1000).contains("--max-memory"), "of one client");
        drop(held);
        let begin = Instant::now();
        while open(&server, &flows(3, 1000)).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(5), "it is not given back");
            thread::sleep(Duration::from_millis(100));
        }
    });
}
