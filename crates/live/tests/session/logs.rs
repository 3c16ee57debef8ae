//! Logs of a flow: connections as both ends tell of them (qlog), and what a disk that is full leaves of any log.

use super::DONE;
use super::pair::{GOOD, Pair, Path, spec};
use super::quic::pair;
use paceline_live::quic::{LogQuota, Logged, Place};
use paceline_live::session::log::LogWriter;
use paceline_live::session::{Input, Outbox, Session, Side, replay};
use paceline_units::{Rate, Span, Time};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A folder of a test's, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("paceline-session-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn place(&self, room: Option<LogQuota>) -> Place {
        Place { folder: self.0.clone(), name: "flow".into(), quota: room.map(Arc::new) }
    }

    /// The records of an end's log but for its header: a sequence of JSON texts (RFC 7464).
    fn events(&self, end: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.join(format!("flow-{end}.sqlog"))).unwrap();
        assert!(text.ends_with("}\n"), "{end}: its last record is whole");
        text.split('\x1e').skip(2).map(|record| serde_json::from_str(record).unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn log_both(pair: &Pair, place: &Place) {
    for end in &pair.ends {
        let (title, scheme) = ("a flow".into(), "cubic".into());
        end.session.log_quic(Logged { place: place.clone(), title, scheme });
    }
}

/// The data of all events of this name.
fn of<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    let name = format!("quic:{name}");
    events.iter().filter(|event| event["name"] == name.as_str()).map(|event| &event["data"]).collect()
}

/// Of packets, by kind: how many there were and their bytes.
fn sizes(packets: &[&Value]) -> BTreeMap<String, (u64, u64)> {
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for packet in packets {
        let all = found.entry(packet["header"]["packet_type"].as_str().unwrap().to_owned()).or_default();
        *all = (all.0 + 1, all.1 + packet["raw"]["length"].as_u64().unwrap());
    }
    found
}

fn numbers(of: &[&Value], kind: &str) -> Vec<u64> {
    let headers = of.iter().map(|data| &data["header"]).filter(|header| header["packet_type"] == kind);
    headers.map(|header| header["packet_number"].as_u64().unwrap()).collect()
}

/// Each packet that was sent has a number of its own and one fate at most, and what tells the other end of the end leaves last.
#[test]
fn a_connection_is_logged_with_the_fate_of_each_packet() {
    for (carriage, loss) in [("stream", 0.02), ("stream-each", 0.02), ("datagrams", 0.0)] {
        let folder = Folder::new(&format!("fate-{carriage}"));
        let app =
            if carriage == "stream" { "{ kind = \"ftp\" }" } else { "{ kind = \"encoder\", max_rate = \"1 Mbit/s\" }" };
        let settings = [("cc", "cubic"), ("quic.carriage", carriage), ("app", app)];
        let mut pair = pair(&settings, 4, Path { loss, ..GOOD });
        log_both(&pair, &folder.place(None));
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{carriage}");
        let stats = pair.sender().source().sender.stats().clone();
        drop(pair); // what it keeps of its logs is written
        let events = folder.events("client");
        let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
        for event in ["packet_sent", "packet_received", "packets_acked", "congestion_state_updated"] {
            assert!(names.contains(&format!("quic:{event}").as_str()), "{carriage}: {event}");
        }
        let end = ["connection_closed", "connection_state_updated", "packet_sent"].map(|name| format!("quic:{name}"));
        assert_eq!(names[names.len() - 3..], end, "{carriage}");
        let sent = of(&events, "packet_sent");
        for kind in ["initial", "handshake", "1RTT"] {
            let numbers = numbers(&sent, kind);
            assert!(
                !numbers.is_empty() && numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len(),
                "{carriage}: {kind}"
            );
        }
        let lost: BTreeSet<_> = numbers(&of(&events, "packet_lost"), "1RTT").into_iter().collect();
        let acked = of(&events, "packets_acked").into_iter();
        let acked = acked.filter(|data| data["packet_number_space"] == "application_data");
        let acked: Vec<_> =
            acked.flat_map(|data| data["packet_numbers"].as_array().unwrap()).map(|n| n.as_u64().unwrap()).collect();
        let all: BTreeSet<_> = numbers(&sent, "1RTT").into_iter().collect();
        let once: BTreeSet<_> = acked.iter().copied().collect();
        assert!(acked.len() == once.len() && once.len() > 50, "{carriage}: each is acknowledged once");
        assert!(once.is_disjoint(&lost) && once.union(&lost).all(|number| all.contains(number)), "{carriage}");
        assert_eq!(lost.is_empty(), loss == 0.0, "{carriage}: {lost:?}");
        // what the flow has measured is what its log says
        assert!(
            stats.packets_sent.abs_diff(sent.len() as u64) <= 5,
            "{carriage}: {} and {}",
            stats.packets_sent,
            sent.len()
        );
    }
}

/// Over a path without loss each end receives what the other sends, packet by packet; and only the sender tells of recovery.
#[test]
fn both_ends_log_the_same() {
    let folder = Folder::new("same");
    let mut pair = pair(&[("app", "{ kind = \"cbr\", rate = \"1 Mbit/s\" }")], 3, GOOD);
    log_both(&pair, &folder.place(None));
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), DONE);
    drop(pair);
    let ends = ["client", "server"].map(|end| folder.events(end));
    for (there, back) in [(0, 1), (1, 0)] {
        let (left, received) = (sizes(&of(&ends[there], "packet_sent")), sizes(&of(&ends[back], "packet_received")));
        let kinds: Vec<_> = left.keys().map(String::as_str).collect();
        assert_eq!(kinds, ["1RTT", "handshake", "initial"]);
        // who is over reads nothing more
        for (kind, sent) in &left {
            let missed = if kind == "1RTT" { 2 } else { 0 };
            assert!(
                sent.0 - received[kind].0 <= missed && sent.1 - received[kind].1 <= 100 * missed,
                "{there}, {kind}: {sent:?} {:?}",
                received[kind]
            );
        }
    }
    for recovers in ["recovery_metrics_updated", "packets_acked", "recovery_parameters_set"] {
        let logged = [0, 1].map(|end| !of(&ends[end], recovers).is_empty());
        assert_eq!(logged, [true, false], "{recovers}");
    }
}

/// A disk that takes so many bytes.
#[derive(Clone)]
struct Full(Arc<Mutex<Vec<u8>>>, usize);

impl Full {
    fn new(limit: usize) -> Full {
        Full(Arc::default(), limit)
    }

    fn kept(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.0.lock().unwrap();
        let fits = bytes.len().min(self.1 - kept.len());
        kept.extend(&bytes[..fits]);
        if fits == 0 && !bytes.is_empty() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(fits) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The flow goes on, why the log ends before it is said, and what was written of it is read.
#[test]
fn a_full_disk_ends_the_log_and_not_the_flow() {
    let folder = Folder::new("cut");
    // logs are written 64 kB at a time
    let mut pair = pair(&[("cc", "cubic")], 3, Path { rate: 10e6, ..GOOD });
    log_both(&pair, &folder.place(Some(LogQuota::new(2, 1 << 18))));
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), DONE);
    assert!(pair.goodput(3.0) > 5e6);
    let cut = pair.ends[0].session.end_logs().expect("it was cut");
    assert!(cut.contains("flow-client.sqlog: ") && cut.contains("no storage space"), "{cut}");
    drop(pair);
    let events = folder.events("client");
    assert!(events.len() > 50 && of(&events, "connection_closed").is_empty(), "{}", events.len());

    let (mut pair, disk) = (self::pair(&[("cc", "cubic")], 3, GOOD), Full::new(16_384));
    pair.sender().log_calls(Box::new(disk.clone())).unwrap();
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), DONE);
    let cut = pair.ends[0].session.end_logs().expect("it was cut");
    assert!(cut.ends_with(": file too large"), "{cut}");
    assert!(replay(&disk.kept()).unwrap().inputs > 100);

    // of a session that is no connection over QUIC its owner writes the log
    let spec = spec(&[("cc", "newreno")], 3, Side::Sender);
    let (mut session, mut out, disk) = (Session::new(&spec).unwrap(), Outbox::default(), Full::new(4096));
    let mut log = LogWriter::new(disk.clone(), &spec).unwrap();
    let mut written = 0;
    let error = loop {
        out.clear();
        let (now, input) = (Time::from_secs_f64(f64::from(written) / 1e3), Input::Timer);
        session.input(now, input, &mut out);
        match log.write(now, input, &out, &session) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    let read = replay(&disk.kept()).unwrap();
    assert!(read.inputs > 100 && read.inputs + 1 >= u64::from(written as u32), "{read:?} of {written}");
}

/// What a group gives its flows is an input like others.
#[test]
fn shares_of_coupled_flows_are_in_their_event_logs() {
    let app = "{ kind = \"encoder\" }";
    let mut pair = Pair::new(&[("cc", "nada"), ("app", app), ("coupled.group", "call")], 10, GOOD);
    for tenth in 10..80 {
        pair.run(Time::ZERO + Span::from_millis(100) * tenth);
        pair.now = Time::ZERO + Span::from_millis(100) * tenth;
        pair.input(0, Input::Share(Rate(200_000 + 10_000 * (tenth % 7))));
    }
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), DONE);
    // it keeps to what it was given, not to the 2 Mbit/s that there are
    assert!((150e3..400e3).contains(&pair.goodput(10.0)), "{}", pair.goodput(10.0));
    for end in [0, 1] {
        let read = replay(pair.ends[end].log.get_ref()).unwrap_or_else(|error| panic!("end {end}: {error}"));
        assert_eq!((read.datagrams, read.unread), (pair.ends[end].sent, 0), "end {end}");
        assert!(read.inputs > 100, "end {end}: {read:?}");
    }
}
