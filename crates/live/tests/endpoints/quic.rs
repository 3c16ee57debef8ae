//! Flows over QUIC between a client and a server: both ways, recordings, an end by the user.

use super::{Served, options, requested, send_options};
use crate::realtime;
use paceline_control::{Profile, registry};
use paceline_flow::Datagrams as _;
use paceline_flow::quic::QuicConfig;
use paceline_live::endpoint::control::Direction;
use paceline_live::endpoint::{SendOptions, SendWatch, ServeOptions, send};
use paceline_live::quic::{Keys, LogQuota, OwnKey, Receiving};
use paceline_live::session::replay;
use paceline_packet::Flags;
use paceline_packet::wire::tfrc;
use paceline_sim::Series;
use paceline_units::{Span, Time};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const ENCODER: (&str, &str) = ("app", "{ kind = \"encoder\", max_rate = \"3 Mbit/s\" }");
const QUIC: (&str, &str) = ("transport", "quic");

#[test]
#[ignore = "real time"]
fn every_carriage_both_ways() {
    realtime::tried(|| {
        let server = Served::new(options());
        let flows: [(&str, &[(&str, &str)]); 6] = [
            ("bulk", &[QUIC]),
            ("rate", &[QUIC, ("app", "{ kind = \"cbr\", rate = \"2 Mbit/s\" }")]),
            ("each", &[QUIC, ENCODER]),
            ("one", &[QUIC, ENCODER, ("quic.carriage", "stream")]),
            ("group", &[QUIC, ENCODER, ("quic.carriage", "stream-per-group")]),
            ("datagrams", &[QUIC, ENCODER, ("quic.carriage", "datagrams")]),
        ];
        let way = |way| flows.iter().map(move |(name, settings)| requested(name, settings, 2500, way));
        let all = way(Direction::Forward).chain(way(Direction::Reverse)).collect();
        let run = send(&send_options(&server, all), &SendWatch::default()).unwrap();
        assert_eq!(run.output.summary.flows.len(), 12);
        for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
            assert!(notes.well && (notes.garbage, notes.disregarded) == (0, 0), "{}: {notes:?}", row.flow);
            // the server grants 20 Mbit/s
            assert!((0.1e6..20e6).contains(&row.goodput_bps), "{}: {} bit/s", row.flow, row.goodput_bps);
            assert!(row.packets_sent >= row.packets_delivered && row.rtt_min_s.is_some_and(|rtt| rtt > 0.0), "{row:?}");
            assert!(row.cwnd_mean_packets.is_some_and(|window| window > 2.0), "{row:?}");
            // a datagram goes once; of streams quinn does not say what goes again
            let again = (row.flow == "datagrams").then_some(0);
            assert_eq!((row.packets_retransmitted, row.timeouts, row.timeout_series), (again, None, None), "{row:?}");
            if !matches!(row.flow.as_str(), "bulk" | "rate") {
                assert!(row.frames_sent.is_some_and(|frames| frames > 50), "{row:?}");
                assert!(row.complete_share.is_some_and(|share| share > 0.95), "{}: {row:?}", row.flow);
            }
        }
        recordings_say_of_retransmissions_what_is_known(&run.output.series);
        let windows = run.output.series.iter().filter(|series| series.table == "cwnd");
        assert_eq!(windows.count(), 12);
        for series in run.output.series.iter().filter(|series| series.table == "cwnd") {
            for column in ["cwnd_packets", "srtt_s", "in_flight_packets"] {
                let found =
                    series.columns.iter().find(|(name, _)| name == column).unwrap_or_else(|| panic!("{column}"));
                assert!(found.1.iter().any(|value| *value > 0.0), "{column}");
            }
        }
    });
}

fn recordings_say_of_retransmissions_what_is_known(found: &[Series]) {
    let mut checked = 0;
    for series in found {
        let column = |name: &str| &series.columns.iter().find(|(column, _)| column == name).unwrap().1;
        let is_datagrams = series.labels.contains(&("flow", "datagrams".to_owned()));
        match series.table {
            "losses" => {
                let again = column("packets_retransmitted");
                assert!(
                    again.iter().all(|count| if is_datagrams { *count == 0.0 } else { count.is_nan() }),
                    "{again:?}"
                );
                assert!(column("timeout_series").iter().all(|count| count.is_nan()));
                assert!(column("packets_sent").iter().sum::<f64>() > 10.0);
            }
            "sequence" if is_datagrams => assert_eq!(column("sequence_packets"), column("sent_packets")),
            "sequence" => assert!(column("sequence_packets").iter().all(|count| count.is_nan())),
            _ => continue,
        }
        checked += usize::from(!column("time_s").is_empty());
    }
    assert_eq!(checked, 24);
}

/// A picture freezes; sound and moves of a game do not, and no count says that they never did.
#[test]
#[ignore = "real time"]
fn freezes_are_of_pictures() {
    realtime::tried(|| {
        let server = Served::new(options());
        let apps = [("camera", ENCODER.1), ("voice", "{ kind = \"voice\" }"), ("game", "{ kind = \"game\" }")];
        let flows = apps.map(|(name, app)| requested(name, &[QUIC, ("app", app)], 1000, Direction::Forward));
        let run = send(&send_options(&server, flows.into()), &SendWatch::default()).unwrap();
        for row in &run.output.summary.flows {
            let frozen = (row.freezes.is_some(), row.freeze_s.is_some());
            assert_eq!(frozen, (row.flow == "camera", row.flow == "camera"), "{row:?}");
            assert!(row.frames_complete.is_some_and(|frames| frames > 5), "{row:?}");
        }
    });
}

/// A flow that its receiver's user ends is not over as it was to be: it says who ended it, and when.
#[test]
#[ignore = "real time"]
fn a_server_that_is_stopped_is_said() {
    realtime::tried(|| {
        let mut server = Served::new(options());
        let watch = SendWatch::default();
        let ways = [("there", Direction::Forward), ("back", Direction::Reverse)];
        let flows: Vec<_> = [&[QUIC][..], &[("cc", "tfrc")]]
            .into_iter()
            .flat_map(|settings| ways.map(|(name, way)| requested(name, settings, 30_000, way)))
            .collect();
        let request = send_options(&server, flows);
        let run = thread::scope(|scope| {
            let run = scope.spawn(|| send(&request, &watch).unwrap());
            thread::sleep(Duration::from_millis(1500));
            server.end();
            run.join().unwrap()
        });
        for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
            let there = if row.flow == "there" { &notes.receiver_ended } else { &notes.sender_ended };
            let found = there
                .strip_prefix("stopped at 127.0.0.1, ")
                .and_then(|rest| rest.strip_suffix(" s after its data began"));
            let after: f64 = found.unwrap_or_else(|| panic!("{notes:?}")).parse().unwrap();
            assert!(
                !notes.well && (0.5..5.0).contains(&after) && row.ended.as_ref() == Some(there),
                "{row:?} {notes:?}"
            );
            assert!(row.goodput_bps > 1e6 && row.bytes_delivered.is_some(), "what came is kept: {row:?}");
        }
    });
}

#[test]
#[ignore = "real time"]
fn the_user_ends_it_and_keeps_what_came() {
    realtime::tried(|| {
        let server = Served::new(options());
        let watch = SendWatch::default();
        let flows = [Direction::Forward, Direction::Reverse].map(|way| requested("bulk", &[QUIC], 30_000, way));
        let run = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(1500));
                watch.stop();
            });
            send(&send_options(&server, flows.into()), &watch).unwrap()
        });
        for row in &run.output.summary.flows {
            assert!(row.goodput_bps > 1e6 && row.active_s > 0.5 && row.active_s < 10.0, "{row:?}");
        }
    });
}

#[test]
#[ignore = "real time"]
fn event_logs_are_what_a_sender_s_controller_was_told() {
    realtime::tried(|| {
        let server = Served::new(options());
        let folder = std::env::temp_dir().join(format!("paceline-quic-events-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let ways = [("there", Direction::Forward), ("back", Direction::Reverse)];
        let flows: Vec<_> = ways.iter().map(|(name, way)| requested(name, &[QUIC], 1500, *way)).collect();
        let logged = |flows| SendOptions { logs: Some(folder.clone()), ..send_options(&server, flows) };
        let run = send(&logged(flows.clone()), &SendWatch::default()).unwrap();
        let log = std::fs::read(folder.join("there-0.events")).unwrap();
        let done = replay(&log).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((Some(done.datagrams), done.unread), (run.output.summary.flows[0].packets_sent, 0));
        assert!(done.inputs > done.datagrams && done.datagrams > 100, "{done:?}");
        // of what comes from the server nothing is decided here
        assert!(!folder.join("back-0.events").exists());
        let said = send(&logged(flows[1..].to_vec()), &SendWatch::default()).unwrap_err().to_string();
        assert!(said.contains("its sender, the server") && said.contains("--log-events"), "{said}");
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

/// The server's logs have names that no client gives, and no more room than they have.
#[test]
#[ignore = "real time"]
fn a_server_logs_what_it_has_room_for() {
    realtime::tried(|| {
        let folder = std::env::temp_dir().join(format!("paceline-served-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let qlogs = Some((folder.clone(), Arc::new(LogQuota::new(3, 1 << 19))));
        let server = Served::new(ServeOptions { qlogs, ..options() });
        let flows: Vec<_> = [("../x", Direction::Forward), ("y", Direction::Reverse)]
            .map(|(name, way)| requested(name, &[QUIC], 700, way))
            .into();
        let run = || {
            let run = send(&send_options(&server, flows.clone()), &SendWatch::default()).unwrap();
            assert!(run.notes.flows.iter().all(|notes| notes.well), "{:?}", run.notes.flows);
        };
        run();
        run();
        let files = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap());
        let mut all: Vec<_> =
            files.map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().len())).collect();
        all.sort();
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        // of the second two flows one finds no room
        let begins = ["127.0.0.1-1-server.sqlog", "127.0.0.1-2-client.sqlog"];
        assert!(names.len() <= 3 && names[..2] == begins, "{names:?}");
        let bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
        assert!((1 << 18..=1 << 19).contains(&bytes), "{all:?}");
        // a log ends with a whole record
        for name in names {
            let text = std::fs::read(folder.join(name)).unwrap();
            assert!(text.is_empty() || text.ends_with(b"}\n"), "{name}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    });
}

/// Somebody between two ends: all of the control channel and of the agreement's messages passes, and packets of QUIC that would get to
/// the server are answered by `answer`. Gives where he listens.
fn between(server: SocketAddr, mut answer: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = port.local_addr().unwrap();
    let [near, far] = [here, "127.0.0.1:0".parse().unwrap()].map(|at| UdpSocket::bind(at).unwrap());
    far.connect(server).unwrap();
    far.set_nonblocking(true).unwrap();
    near.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    thread::spawn(move || {
        let (client, _) = port.accept().unwrap();
        let server = TcpStream::connect(server).unwrap();
        let passes = |mut from: TcpStream, mut to: TcpStream| thread::spawn(move || io::copy(&mut from, &mut to));
        passes(client.try_clone().unwrap(), server.try_clone().unwrap());
        passes(server, client);
    });
    thread::spawn(move || {
        let (mut bytes, mut client, until) = ([0; 2048], None, Instant::now() + Duration::from_secs(20));
        while Instant::now() < until {
            if let Ok((length, from)) = near.recv_from(&mut bytes) {
                client = Some(from);
                if bytes.starts_with(&tfrc::MAGIC) {
                    let _ = far.send(&bytes[..length]);
                } else {
                    answer(&bytes[..length]).iter().for_each(|bytes| drop(near.send_to(bytes, from)));
                }
            }
            while let (Ok(length), Some(client)) = (far.recv(&mut bytes), client) {
                let _ = near.send_to(&bytes[..length], client);
            }
        }
    });
    here
}

/// What a client says of a flow through him, and how many bytes of it came.
fn through(here: SocketAddr, server: &Served) -> (String, f64) {
    let flows = vec![requested("bulk", &[QUIC], 5000, Direction::Forward)];
    let options = SendOptions { port: here.port(), ..send_options(server, flows) };
    let began = Instant::now();
    let run = send(&options, &SendWatch::default()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "it ends at once");
    (run.notes.flows[0].sender_ended.clone(), run.output.summary.flows[0].goodput_bps)
}

#[test]
#[ignore = "real time"]
fn somebody_between_the_ends_has_another_key() {
    realtime::tried(|| {
        let server = Served::new(options());
        let config = QuicConfig::new(Profile::Rfc, registry::scheme("newreno").unwrap());
        let keys = Keys { own: OwnKey::generate().unwrap(), peer: None };
        let (mut end, began) = (Receiving::new(&config, &keys, Arc::default()), Instant::now());
        let here = between(server.address, move |bytes| {
            let now = Time::ZERO + Span::from_secs_f64(began.elapsed().as_secs_f64());
            end.on_datagram(now, bytes, Flags::NONE);
            let next = || {
                let mut answer = Vec::new();
                end.datagram(now, &mut answer).map(|_| answer)
            };
            std::iter::from_fn(next).collect()
        });
        let (ended, goodput) = through(here, &server);
        assert!(ended.contains("is not the one that was agreed on: somebody else is between"), "{ended}");
        assert!(goodput == 0.0, "{goodput}");
    });
}

#[test]
#[ignore = "real time"]
fn an_end_that_speaks_another_version_is_said_to() {
    realtime::tried(|| {
        let server = Served::new(options());
        // Version Negotiation (RFC 9000 section 17.2.1): the client's connection IDs in turn, and version 2 alone
        let here = between(server.address, |bytes| {
            let to = usize::from(bytes[5]);
            let (theirs, rest) = bytes[5..].split_at(1 + to);
            let ours = &rest[..=usize::from(rest[0])];
            vec![[&[0xc0, 0, 0, 0, 0], ours, theirs, &[0x6b, 0x33, 0x43, 0xcf]].concat()]
        });
        let (ended, goodput) = through(here, &server);
        assert!(ended.contains("speaks no version of QUIC that is spoken here (version 1)"), "{ended}");
        assert!(goodput == 0.0, "{goodput}");
    });
}
