//! What a server lets nobody do: strangers, bounds, and clients that do not keep to them.

use super::*;
use paceline_live::endpoint::control::Greeting;

#[test]
#[ignore = "real time"]
fn strangers_get_no_answer() {
    realtime::tried(|| {
        use paceline_packet::wire::tfrc::*;
        let server = Served::new(options());
        let (_control, opened) =
            open(&server, &[requested("tfrc", &[("cc", "tfrc")], 20_000, Direction::Reverse)]).unwrap();
        let (connection, nonce) = opened[0];
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        stranger.connect(server.address).unwrap();
        stranger.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
        let message = |connection: u32, message: Message| {
            let mut bytes = Vec::new();
            Datagram { connection: ConnectionId(connection), message }.encode(&mut bytes);
            bytes
        };
        let limit = RateLimit::None;
        let ecn = Ecn::Off;
        let wrong = Nonce(nonce ^ 1);
        let (request, accept) = (Request { nonce: wrong, packet_size: 1000, ecn }, Accept { nonce: wrong, limit });
        for bytes in [
            message(connection, Message::Request(request)),
            message(connection, Message::Accept(accept)),
            message(connection ^ 1, Message::Accept(Accept { nonce: Nonce(nonce), limit })),
            message(connection, Message::Close(Close { nonce: Nonce(nonce), reason: Reason::DONE })),
            vec![0x80; 200],
            vec![],
            b"hello".to_vec(),
        ] {
            stranger.send(&bytes).unwrap();
        }
        let mut buffer = [0; 2048];
        assert!(stranger.recv(&mut buffer).is_err(), "a stranger was answered");
        // nor one who knows all and writes from somewhere else
        let hello = message(connection, Message::Accept(Accept { nonce: Nonce(nonce), limit }));
        let elsewhere = UdpSocket::bind("127.0.0.2:0").unwrap();
        elsewhere.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        elsewhere.send_to(&hello, server.address).unwrap();
        assert!(elsewhere.recv(&mut buffer).is_err(), "another address was answered");
        // the real client is sent nothing either before it has shown itself, and then a request no longer than what it sent
        stranger.send(&hello).unwrap();
        let len = stranger.recv(&mut buffer).unwrap();
        assert!(len <= hello.len());
        assert!(matches!(decode(&buffer[..len]).unwrap().0.message, Message::Request(_)));
        // and no data before it has accepted what it was asked: from another port nobody does so for it
        let beside = UdpSocket::bind("127.0.0.1:0").unwrap();
        beside.send_to(&hello, server.address).unwrap();
        let mut more = 0;
        while let Ok(len) = stranger.recv(&mut buffer) {
            assert!(matches!(decode(&buffer[..len]).unwrap().0.message, Message::Request(_)));
            more += 1;
            if more > 3 {
                break;
            }
        }
        assert!(more <= 3, "an unanswered request is repeated seldom");
    });
}

#[test]
#[ignore = "real time"]
fn a_flood_of_garbage_harms_nobody() {
    realtime::tried(|| {
        let server = Served::new(options());
        let over = Arc::new(AtomicBool::new(false));
        let (address, theirs) = (server.address, Arc::clone(&over));
        let flood = thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut sent = 0u64;
            let mut state = 1u64;
            while !theirs.load(Ordering::Relaxed) && sent < 200_000 {
                let mut bytes = [0u8; 64];
                for chunk in bytes.chunks_mut(8) {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    chunk.copy_from_slice(&state.to_le_bytes());
                }
                bytes[..4].copy_from_slice(&[b'P', b'T', 0x10 | (sent % 12) as u8, 0]);
                let _ = socket.send_to(&bytes, address);
                sent += 1;
                if sent.is_multiple_of(50) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            sent
        });
        let flows = vec![requested("udp", &[("cc", "udp"), ("app", CBR)], 2000, Direction::Forward)];
        let run: LiveRun = send(&send_options(&server, flows), &SendWatch::default()).unwrap();
        over.store(true, Ordering::Relaxed);
        assert!(flood.join().unwrap() > 1000);
        let row = &run.output.summary.flows[0];
        assert!(
            run.notes.flows[0].well && row.goodput_bps > 1.5e6,
            "{} bit/s, {:?}",
            row.goodput_bps,
            run.notes.flows[0]
        );
    });
}

#[test]
#[ignore = "real time"]
fn a_ticket_is_good_from_its_own_address_and_once() {
    realtime::tried(|| {
        let server = Served::new(options());
        let mut flow = requested("reno", &[], 1000, Direction::Reverse);
        flow.offer.kernel = Some("reno".to_owned());
        let (mut control, opened) = open(&server, &[flow]).unwrap();
        let attach = Greeting::Attach { ticket: opened[0].1 };
        let got = |mut stream: std::net::TcpStream| {
            use std::io::Read as _;
            control::write(&mut stream, &attach).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
            let mut all = vec![0; 1 << 16];
            stream.read(&mut all).unwrap_or(0)
        };
        assert_eq!(got(connected_from("127.0.0.2", server.address).unwrap()), 0, "from another address");
        assert!(got(std::net::TcpStream::connect(server.address).unwrap()) > 1000);
        assert_eq!(got(std::net::TcpStream::connect(server.address).unwrap()), 0, "a second time");
        assert!(matches!(control.read(MAX_RESULT, Duration::from_secs(15)), Ok(ServerMessage::Result { .. })));
    });
}

/// A client that sends as if it had been granted everything is cut off within seconds.
#[test]
#[ignore = "real time"]
fn a_server_holds_a_client_to_the_rate_that_it_grants() {
    realtime::tried(|| {
        use paceline_packet::Stamp;
        use paceline_packet::wire::tfrc::*;
        let server = Served::new(ServeOptions { max_rate: Rate::from_bps(4_000_000), ..options() });
        let flow = requested("udp", &[("cc", "udp"), ("app", CBR)], 20_000, Direction::Forward);
        let (mut control, opened) = open(&server, &[flow]).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let (connection, nonce) = (ConnectionId(opened[0].0), Nonce(opened[0].1));
        let say = |message: Message, payload: usize| {
            let mut bytes = Vec::new();
            Datagram { connection, message }.encode(&mut bytes);
            bytes.resize(bytes.len() + payload, 0);
            socket.send(&bytes).unwrap();
        };
        say(Message::Request(Request { nonce, packet_size: 1400, ecn: Ecn::Off }), 0);
        let mut buffer = [0; 2048];
        let len = socket.recv(&mut buffer).unwrap();
        let granted = decode(&buffer[..len]).unwrap().0.message;
        assert_eq!(granted, Message::Accept(Accept { nonce, limit: RateLimit::BytesPerSecond(500_000) }));
        socket.set_nonblocking(true).unwrap();
        let begin = Instant::now();
        let (mut sequence, mut cut) = (0, None);
        while cut.is_none() && begin.elapsed() < Duration::from_secs(15) {
            // 1.4 MB/s by the clock: a machine that stops this thread for a while does not make an honest client of it
            while u128::from(sequence) < begin.elapsed().as_millis() {
                say(Message::Plain(Plain { sequence, timestamp: Stamp(sequence) }), 1400);
                sequence += 1;
            }
            thread::sleep(Duration::from_millis(5));
            if let Ok(len) = socket.recv(&mut buffer) {
                cut = Some(decode(&buffer[..len]).unwrap().0.message);
            }
        }
        assert_eq!(cut, Some(Message::Close(Close { nonce, reason: Reason::BUSY })));
        let Ok(ServerMessage::Result { half, .. }) = control.read(MAX_RESULT, Duration::from_secs(15)) else {
            panic!("no result")
        };
        assert!(half.ended.contains("does not keep to the rate"), "{}", half.ended);
    });
}

#[test]
#[ignore = "real time"]
fn a_client_that_dawdles_is_cut_off() {
    realtime::tried(|| {
        use std::io::{Read as _, Write as _};
        let server = Served::new(options());
        let begin = Instant::now();
        let (mut control, _) =
            open(&server, &[requested("tfrc", &[("cc", "tfrc")], 50_000, Direction::Reverse)]).unwrap();
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        // a message of 1000 bytes, of which one comes three times a second
        stream.write_all(&1000u32.to_be_bytes()).unwrap();
        let over = loop {
            let _ = stream.write_all(b" ");
            match stream.read(&mut [0; 100]) {
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                }
                _ => break begin.elapsed(),
            }
            assert!(begin.elapsed() < Duration::from_secs(12), "it may go on");
        };
        assert!(over > Duration::from_secs(4), "{over:?}: it has five seconds");
        // nor does a flow from here wait for ever for the client that it was asked by
        let Ok(ServerMessage::Result { half, .. }) = control.read(MAX_RESULT, Duration::from_secs(15)) else {
            panic!("it waits")
        };
        assert!(half.ended.contains("no datagram of the other end has come") && !half.well, "{}", half.ended);
        assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    });
}

#[test]
#[ignore = "real time"]
fn strangers_that_only_connect_leave_room_for_others() {
    realtime::tried(|| {
        let server = Served::new(options());
        let mut idle: Vec<_> = (0..96).map(|_| std::net::TcpStream::connect(server.address).unwrap()).collect();
        // the server takes them in as fast as it can
        thread::sleep(Duration::from_millis(300));
        let flow = || vec![requested("t", &[("cc", "tfrc")], 300, Direction::Forward)];
        let refused = send(&send_options(&server, flow()), &SendWatch::default());
        // (its hello may meet a connection that is closed already)
        let said = matches!(&refused, Err(SendError::Refused(why)) if why.contains("as many clients"));
        assert!(said || matches!(refused, Err(SendError::Closed | SendError::System(_))), "{refused:?}");
        // from another address there is room
        let mut other = Channel::open(connected_from("127.0.0.2", server.address).unwrap(), None).unwrap();
        assert!(matches!(other.read(MAX_RESULT, PATIENCE), Ok(ServerMessage::Welcome { .. })));
        idle.truncate(80);
        thread::sleep(Duration::from_millis(300));
        assert!(send(&send_options(&server, flow()), &SendWatch::default()).unwrap().notes.flows[0].well);
    });
}

/// Who holds all places with connections that say nothing loses one of them to each newcomer.
#[test]
#[ignore = "real time"]
fn strangers_of_many_addresses_leave_room_for_others() {
    realtime::tried(|| {
        let server = Served::new(options());
        let idle: Vec<_> = (0..3)
            .flat_map(|n| (0..96).map(move |_| format!("127.0.0.{}", 10 + n)))
            .filter_map(|from| connected_from(&from, server.address).ok())
            .collect();
        assert!(idle.len() > 256);
        thread::sleep(Duration::from_millis(300));
        let mut flow = requested("k", &[], 300, Direction::Forward);
        flow.offer.kernel = Some("reno".to_owned());
        let run = send(
            &send_options(&server, vec![requested("t", &[("cc", "tfrc")], 300, Direction::Reverse), flow]),
            &SendWatch::default(),
        );
        assert!(run.unwrap().notes.flows.iter().all(|flow| flow.well));
        // from as many addresses as there are places
        let many: Vec<_> = (0..300u32)
            .filter_map(|n| connected_from(&format!("127.0.{}.{}", 1 + n / 200, 1 + n % 200), server.address).ok())
            .collect();
        thread::sleep(Duration::from_millis(300));
        let run = send(
            &send_options(&server, vec![requested("t", &[("cc", "tfrc")], 300, Direction::Forward)]),
            &SendWatch::default(),
        );
        assert!(run.unwrap().notes.flows[0].well);
        drop((idle, many));
    });
}

/// A connection from one of this host's other addresses.
pub fn connected_from(from: &str, to: SocketAddr) -> std::io::Result<std::net::TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::new(from.parse().unwrap(), 0))?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

/// A client that does not keep to the rate is held to it by the window of its connection: nothing is lost, it only takes its time.
#[test]
#[ignore = "real time"]
fn the_kernels_tcp_is_held_to_the_rate_where_it_arrives() {
    realtime::tried(|| {
        use std::io::Write as _;
        let server = Served::new(ServeOptions { max_rate: Rate::from_bps(8_000_000), ..options() });
        let mut flow = requested("reno", &[], 5000, Direction::Forward);
        flow.offer.kernel = Some("reno".to_owned());
        let (mut control, opened) = open(&server, &[flow]).unwrap();
        let mut data = std::net::TcpStream::connect(server.address).unwrap();
        control::write(&mut data, &Greeting::Attach { ticket: opened[0].1 }).unwrap();
        let begin = Instant::now();
        data.write_all(&vec![0; 2 << 20]).unwrap();
        drop(data);
        let Ok(ServerMessage::Result { half, .. }) = control.read(MAX_RESULT, Duration::from_secs(15)) else {
            panic!("no result")
        };
        assert_eq!((half.row.bytes_delivered, half.well), (Some(2 << 20), true), "{}", half.ended);
        // 2 MiB at 1 MB/s, of which a quarter of one may come at once
        let min_s = ((2 << 20) as f64 - 256e3) / 1e6;
        assert!(
            begin.elapsed().as_secs_f64() > 0.95 * min_s && half.row.goodput_bps < 10e6,
            "{}",
            half.row.goodput_bps
        );
    });
}

#[test]
#[ignore = "real time"]
fn bounds_are_kept_and_nonsense_is_survived() {
    realtime::tried(|| {
        let server = Served::new(ServeOptions { max_duration: Span::from_secs(2), ..options() });
        let refused = |flows: Vec<RequestedFlow>| match send(&send_options(&server, flows), &SendWatch::default()) {
            Err(SendError::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(refused(vec![requested("t", &[("cc", "tfrc")], 3000, Direction::Forward)]).contains("--max-duration"));
        let mistaken = send_options(&server, vec![requested("t", &[("cc", "no-such")], 300, Direction::Reverse)]);
        assert!(matches!(send(&mistaken, &SendWatch::default()), Err(SendError::Flow(why)) if why.contains("no-such")));
        let unchecked = open(&server, &mistaken.flows);
        assert!(unchecked.is_err(), "the server checks for itself");
        let mut measured = requested("t", &[("cc", "tfrc")], 300, Direction::Reverse);
        let mut measure = Measure { from_ms: 0, to_ms: 3000, every_us: 100_000 };
        measured.offer.measure = Some(measure);
        assert!(refused(vec![measured.clone()]).contains("--max-duration"), "what is measured counts too");
        measure.to_ms = u64::MAX;
        measured.offer.measure = Some(measure);
        assert!(refused(vec![measured.clone()]).contains("--max-duration"));
        let flood = [("cc", "udp"), ("app", "{ kind = \"cbr\", rate = \"30 Mbit/s\" }")];
        let said = refused(vec![requested("u", &flood, 300, Direction::Reverse)]);
        assert!(
            said.contains("30329") && said.contains("allows 20 Mbit/s, and `paceline serve --max-rate` raises that"),
            "{said}"
        );
        let many = (0..19).map(|_| requested("t", &[("cc", "tfrc")], 300, Direction::Reverse)).collect();
        assert!(refused(many).contains("as many flows"));
        let more = (0..65).map(|_| requested("t", &[("cc", "tfrc")], 300, Direction::Reverse)).collect();
        assert!(refused(more).contains("65 flows; 1 to 64"));
        let mut foreign = requested("k", &[], 300, Direction::Reverse);
        foreign.offer.kernel = Some("\u{1b}[2J".to_owned());
        assert!(refused(vec![foreign]).contains(r#""\u001b[2J" is no congestion control"#));
        // over the port's TCP: nothing, nonsense, too much
        for nonsense in [&b""[..], b"GET / HTTP/1.1\r\n\r\n", &[0xff; 100], &[0, 0, 0, 2, b'{', b'}']] {
            use std::io::{Read as _, Write as _};
            let mut stream = std::net::TcpStream::connect(server.address).unwrap();
            stream.write_all(nonsense).unwrap();
            // it may have had enough already
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            assert!(answer.len() < 200);
        }
        let flows = vec![requested("t", &[("cc", "tfrc")], 300, Direction::Forward)];
        assert!(send(&send_options(&server, flows), &SendWatch::default()).unwrap().notes.flows[0].well);
        // nobody is there
        let gone = SendOptions { port: 1, ..send_options(&server, vec![]) };
        assert!(matches!(send(&gone, &SendWatch::default()), Err(SendError::Unreachable { .. })));
    });
}
