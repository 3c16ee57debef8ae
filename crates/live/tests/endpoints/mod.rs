//! Server and client over the loopback interface: every kind of flow both ways, faults, and what a server lets nobody do.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test of sockets in real time")]

mod bounds;
mod hostile;
mod keys;
mod peers;
mod quic;
use crate::realtime;

use paceline_live::endpoint::channel::{Channel, PATIENCE};
use paceline_live::endpoint::control::{self, ClientMessage, Direction, MAX_RESULT, Measure, Offer, ServerMessage};
use paceline_live::endpoint::{
    LiveRun, LogSink, RequestedFlow, SendError, SendOptions, SendWatch, ServeOptions, Server, send,
};
use paceline_live::session::{Family, FlowSpec, ForeignSchemes, replay};
use paceline_units::{Rate, Span};
use realtime::conclusive;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A server on a thread of its own, which ends with it.
struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

fn options() -> ServeOptions {
    ServeOptions {
        bind: "127.0.0.1:0".parse().unwrap(),
        key: None,
        max_rate: Rate::from_bps(20_000_000),
        max_duration: Span::from_secs(60),
        max_sessions: 24,
        max_memory: 1 << 30,
        results: None,
        qlogs: None,
        schemes: ForeignSchemes::default(),
    }
}

impl Served {
    fn new(options: ServeOptions) -> Served {
        Served::with_log(options, Box::new(|_| {}))
    }

    /// With somebody who is told what happens.
    fn with_log(options: ServeOptions, say: LogSink) -> Served {
        let server = Server::start(options, say).unwrap();
        let (address, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
        let theirs = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || server.run(&theirs)));
        Served { address, stop, thread }
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn requested(name: &str, settings: &[(&str, &str)], ms: u64, direction: Direction) -> RequestedFlow {
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let spec =
        FlowSpec { settings, for_ms: ms, seed: 5, family: Family::V4, name: None, foreign: ForeignSchemes::default() };
    RequestedFlow { name: name.to_owned(), instance: 0, offer: Offer { spec, direction, kernel: None, measure: None } }
}

fn send_options(server: &Served, flows: Vec<RequestedFlow>) -> SendOptions {
    let (host, port) = (server.address.ip().to_string(), server.address.port());
    SendOptions { host, port, key: None, flows, logs: None, qlogs: None, results: None, ports: None, beginning: None }
}

const CBR: &str = "{ kind = \"cbr\", rate = \"2 Mbit/s\" }";

#[test]
#[ignore = "real time"]
fn every_machine_both_ways() {
    realtime::tried(|| {
        let server = Served::new(options());
        let schemes: [&[(&str, &str)]; 9] = [
            &[("cc", "newreno"), ("receive_window", "50")],
            &[("cc", "cubic"), ("profile", "linux"), ("receive_window", "50")],
            &[("cc", "tfrc")],
            &[("cc", "multfrc")],
            &[("cc", "rap")],
            &[("cc", "udp"), ("app", CBR)],
            &[("cc", "lda-plus"), ("rtp.report_interval", "200 ms")],
            &[("cc", "ndtc"), ("app", "{ kind = \"encoder\" }")],
            &[
                ("cc", "nada"),
                ("app", "{ kind = \"encoder\" }"),
                ("rtp.feedback", "twcc"),
                ("rtp.reduced_size", "true"),
                ("rtp.feedback_frames", "true"),
            ],
        ];
        let flows = |direction| schemes.iter().map(move |settings| requested(settings[0].1, settings, 2500, direction));
        let all: Vec<RequestedFlow> = flows(Direction::Forward).chain(flows(Direction::Reverse)).collect();
        let run = send(&send_options(&server, all), &SendWatch::default()).unwrap();
        assert_eq!(run.output.summary.flows.len(), 18);
        for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
            assert!(notes.well, "{} to {}: {notes:?}", row.cc, row.to);
            assert!(
                row.goodput_bps > 50e3 && row.goodput_bps < 21e6,
                "{} to {}: {} bit/s",
                row.cc,
                row.to,
                row.goodput_bps
            );
            assert!(row.packets_sent >= row.packets_delivered, "{row:?}");
            assert!(row.rtt_min_s.is_some_and(|rtt| rtt > 0.0), "{}: {row:?}", row.cc);
            assert_eq!((notes.garbage, notes.disregarded), (0, 0), "{}", row.cc);
            assert!(["here", "127.0.0.1"].contains(&row.from.as_str()) && row.from != row.to);
        }
        let tables: Vec<&str> = run.output.series.iter().map(|series| series.table).collect();
        for table in ["cwnd", "rate", "sequence", "losses", "tfrc", "acks", "rtcp"] {
            assert!(tables.contains(&table), "{table} of {tables:?}");
        }
        for rate in run.output.series.iter().filter(|series| series.table == "rate") {
            let names: Vec<&str> = rate.columns.iter().map(|(name, _)| name.as_ref()).collect();
            assert_eq!(names, ["time_s", "goodput_bps", "send_rate_bps"]);
            assert!(rate.columns.iter().all(|(_, values)| values.len() == rate.columns[0].1.len()));
        }
    });
}

/// What measures microseconds: `./check` has nothing run beside it.
mod alone {
    use super::*;

    #[test]
    #[ignore = "real time"]
    fn udp_keeps_its_rate_and_paces_it() {
        conclusive(|| {
            let server = Served::new(options());
            let app = "{ kind = \"cbr\", rate = \"10 Mbit/s\" }";
            let settings = [("cc", "udp"), ("segment", "1000 B"), ("app", app)];
            let flows = vec![requested("udp", &settings, 3000, Direction::Forward)];
            let run = send(&send_options(&server, flows), &SendWatch::default()).map_err(|error| error.to_string())?;
            let row = &run.output.summary.flows[0];
            if (row.goodput_bps / 10e6 - 1.0).abs() > 0.02 {
                return Err(format!("{} bit/s", row.goodput_bps));
            }
            let late = run.notes.flows[0].late_p50_s.ok_or("nothing was timed")?;
            if late > 50e-6 { Err(format!("late by {late} s in the median")) } else { Ok(()) }
        });
    }
}

#[test]
#[ignore = "real time"]
fn nothing_is_sent_again_where_nothing_is_lost() {
    conclusive(|| {
        let server = Served::new(options());
        // Each acknowledgement lets several segments go, and the server's limit spreads them.
        let settings = [("cc", "newreno"), ("profile", "linux"), ("receive_window", "100")];
        let flows = [Direction::Forward, Direction::Reverse].map(|way| requested("newreno", &settings, 1500, way));
        let run =
            send(&send_options(&server, flows.into()), &SendWatch::default()).map_err(|error| error.to_string())?;
        for row in &run.output.summary.flows {
            let lost = row.packets_sent.zip(row.packets_delivered).map(|(sent, delivered)| sent - delivered);
            if lost != Some(0) || row.fast_retransmits != Some(0) {
                return Err(format!(
                    "{lost:?} lost of {:?}, {:?} fast retransmits",
                    row.packets_sent, row.fast_retransmits
                ));
            }
        }
        Ok(())
    });
}

#[test]
#[ignore = "real time"]
fn a_log_of_a_real_run_replays() {
    realtime::tried(|| {
        let folder = std::env::temp_dir().join(format!("paceline-events-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let server = Served::new(options());
        let flows = ["newreno", "tfrc", "rap", "lda-plus"].map(|cc| {
            let settings = [("cc", cc), ("receive_window", "20")];
            requested(cc, &settings[..if cc == "newreno" { 2 } else { 1 }], 1500, Direction::Forward)
        });
        let reverse = requested("back", &[("cc", "tfrc")], 1500, Direction::Reverse);
        let flows = flows.into_iter().chain([reverse]).collect();
        let run =
            send(&SendOptions { logs: Some(folder.clone()), ..send_options(&server, flows) }, &SendWatch::default())
                .unwrap();
        for notes in &run.notes.flows {
            let log = std::fs::read(folder.join(format!("{}-0.events", notes.flow))).unwrap();
            let replayed = replay(&log).unwrap_or_else(|error| panic!("{}: {error}", notes.flow));
            assert!(replayed.inputs > 10 && replayed.unread == 0, "{}: {replayed:?}", notes.flow);
        }
        std::fs::remove_dir_all(folder).unwrap();
    });
}

/// Sound that leads a camera: three flows of a bundle each way, under one controller (WebRTC's BUNDLE).
fn bundle(direction: Direction) -> Vec<RequestedFlow> {
    let of = |name: &str, settings: &[(&str, &str)]| {
        let mut flow = requested(name, settings, 3000, direction);
        flow.offer.spec.name = (name == "sound").then(|| "sound".to_owned());
        flow
    };
    let led = |priority| {
        [
            ("cc", "gcc"),
            ("bundle.with", "sound"),
            ("bundle.priority", priority),
            ("app.kind", "encoder"),
            ("app.max_rate", "600 kbit/s"),
        ]
    };
    let sound = of("sound", &[("cc", "gcc"), ("bundle.priority", "1"), ("app.kind", "voice")]);
    vec![of("camera", &led("2")), of("screen", &led("1")), sound]
}

#[test]
#[ignore = "real time"]
fn a_bundle_goes_both_ways_and_its_logs_replay() {
    realtime::tried(|| {
        let server = Served::new(options());
        let logs = std::env::temp_dir().join(format!("paceline-bundle-{}", std::process::id()));
        std::fs::create_dir_all(&logs).unwrap();
        let mut flows = [bundle(Direction::Forward), bundle(Direction::Reverse)].concat();
        flows[3..].iter_mut().for_each(|flow| flow.name += "-back");
        let options = SendOptions { logs: Some(logs.clone()), ..send_options(&server, flows) };
        let run = send(&options, &SendWatch::default()).unwrap();
        for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
            let about = format!("{} to {}: {notes:?}", row.flow, row.to);
            assert!(notes.well && row.packets_lost.unwrap_or(0) == 0, "{about}");
            let min = if row.flow.starts_with("sound") { 60e3 } else { 300e3 };
            assert!((min..620e3).contains(&row.goodput_bps), "{}: {about}", row.goodput_bps);
            let log = std::fs::read(logs.join(format!("{}-0.events", notes.flow))).unwrap();
            let replayed = replay(&log).unwrap_or_else(|error| panic!("{about}: {error}"));
            assert!(replayed.inputs > 100 && replayed.unread == 0, "{about}: {replayed:?}");
        }
        std::fs::remove_dir_all(logs).unwrap();
    });
    let alone = bundle(Direction::Forward).into_iter().take(2).collect();
    let server = Served::new(options());
    let error = send(&send_options(&server, alone), &SendWatch::default()).unwrap_err().to_string();
    assert!(error.contains("bundle.with: the flow with which it goes is not asked for"), "{error}");
}

#[test]
#[ignore = "real time"]
fn kernel_tcp_beside() {
    realtime::tried(|| {
        let server = Served::new(options());
        let flows = [Direction::Forward, Direction::Reverse].map(|direction| {
            let mut flow = requested("reno", &[], 1500, direction);
            flow.offer.kernel = Some("reno".to_owned());
            flow
        });
        let run = send(&send_options(&server, flows.into()), &SendWatch::default()).unwrap();
        for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
            assert!(notes.well, "{notes:?}");
            assert_eq!((row.cc.as_str(), row.profile.as_str()), ("reno", "kernel"));
            // the server's cap is a pace of 20 Mbit/s
            assert!((5e6..25e6).contains(&row.goodput_bps), "{}", row.goodput_bps);
        }
        assert!(run.output.series.iter().any(|series| series.table == "kernel"));
    });
}

#[test]
#[ignore = "real time"]
fn both_versions_of_ip() {
    realtime::tried(|| {
        if UdpSocket::bind("[::1]:0").is_err() {
            eprintln!("skipped: no IPv6 here");
            return;
        }
        for (bind, host) in [("[::1]:0", "::1"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.1")] {
            let server = Served::new(ServeOptions { bind: bind.parse().unwrap(), ..options() });
            let schemes =
                [("tfrc", Direction::Forward), ("newreno", Direction::Reverse), ("lda-plus", Direction::Forward)];
            let flows = schemes.map(|(cc, way)| requested(cc, &[("cc", cc)], 800, way)).into();
            let request = SendOptions { host: host.to_owned(), ..send_options(&server, flows) };
            let run = send(&request, &SendWatch::default()).unwrap();
            for (row, notes) in run.output.summary.flows.iter().zip(&run.notes.flows) {
                assert!(notes.well && row.bytes_delivered > Some(0), "{bind} from {host}: {notes:?}");
            }
        }
    });
}

#[test]
#[ignore = "real time"]
fn ctrl_c_keeps_what_is_done() {
    realtime::tried(|| {
        let server = Served::new(options());
        let flows =
            [Direction::Forward, Direction::Reverse].map(|way| requested("tfrc", &[("cc", "tfrc")], 50_000, way));
        let (options, watch) = (send_options(&server, flows.into()), Arc::new(SendWatch::default()));
        let theirs = Arc::clone(&watch);
        let running = thread::spawn(move || send(&options, &theirs));
        let begin = Instant::now();
        thread::sleep(Duration::from_millis(1500));
        let shown = watch.shown();
        assert_eq!(shown.len(), 2);
        assert!(shown.iter().all(|one| one.view.running && one.view.packets > 0), "{shown:?}");
        watch.stop();
        let run = running.join().unwrap().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
        for row in &run.output.summary.flows {
            assert!(row.bytes_delivered > Some(0) && (0.5..4.0).contains(&row.active_s), "{row:?}");
        }
    });
}

#[test]
#[ignore = "real time"]
fn a_server_that_dies_ends_the_flow_in_seconds() {
    realtime::tried(|| {
        let mut server = Served::new(options());
        let flows = vec![requested("tfrc", &[("cc", "tfrc")], 50_000, Direction::Forward)];
        let options = send_options(&server, flows);
        let running = thread::spawn(move || send(&options, &SendWatch::default()));
        thread::sleep(Duration::from_millis(1000));
        let begin = Instant::now();
        server.end();
        let run = running.join().unwrap().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        assert!(!run.notes.flows[0].sender_ended.is_empty());
    });
}

#[test]
#[ignore = "real time"]
fn a_client_that_dies_frees_the_server() {
    realtime::tried(|| {
        let server = Served::new(ServeOptions { max_sessions: 1, ..options() });
        let mut control = open(&server, &[requested("tfrc", &[("cc", "tfrc")], 50_000, Direction::Reverse)]).unwrap().0;
        let busy = send(
            &send_options(&server, vec![requested("tfrc", &[("cc", "tfrc")], 500, Direction::Forward)]),
            &SendWatch::default(),
        );
        assert!(matches!(&busy, Err(SendError::Refused(why)) if why.contains("as many flows")), "{busy:?}");
        control.shutdown();
        let _ = control.read::<ServerMessage>(MAX_RESULT, PATIENCE);
        let begin = Instant::now();
        loop {
            let flows = vec![requested("tfrc", &[("cc", "tfrc")], 300, Direction::Forward)];
            match send(&send_options(&server, flows), &SendWatch::default()) {
                Ok(run) => break assert!(run.notes.flows[0].well),
                Err(_) => assert!(begin.elapsed() < Duration::from_secs(5), "the session is not given back"),
            }
            thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Opens flows as a client would, and does no more.
fn open(server: &Served, flows: &[RequestedFlow]) -> std::io::Result<(Channel, Vec<(u32, u64)>)> {
    let stream = std::net::TcpStream::connect(server.address)?;
    let mut channel = Channel::open(stream, None).map_err(|why| std::io::Error::other(format!("{why:?}")))?;
    assert!(matches!(channel.read(MAX_RESULT, PATIENCE)?, ServerMessage::Welcome { .. }));
    let flows = flows.iter().map(|requested| requested.offer.clone()).collect();
    channel.write(&ClientMessage::Open { flows, key: None }, PATIENCE)?;
    match channel.read(MAX_RESULT, PATIENCE)? {
        ServerMessage::Opened { flows, .. } => Ok((channel, flows)),
        other => Err(std::io::Error::other(format!("{other:?}"))),
    }
}
