//! Endpoints over an emulated path between two namespaces: what a flow gets of it, and what it does when the path fails.
//!
//! Server and client are this file's own program: `serves` and `sends` are what it runs in the namespaces.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test of programs in real time")]

use paceline_live::endpoint::control::{Direction, Offer};
use paceline_live::endpoint::{RequestedFlow, SendOptions, SendWatch, ServeOptions, Server, send};
use paceline_live::netns::{Far, Kind, Plan, Status};
use paceline_live::path::{Folder, PathSpec, RelayOptions, Stop};
use paceline_live::session::{Family, FlowSpec, ForeignSchemes, ReplayError, replay};
use paceline_scenario::Document;
use paceline_units::{Rate, Span};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;
use std::io::{Read as _, Seek as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;

use crate::needs;
use crate::realtime;

const PORT: u16 = 5050;
/// What the client's output has before its results.
const MARK: &str = "RESULTS ";
/// Has the port where this program runs in a namespace.
const INSIDE: &str = "PACELINE_TEST_PORT";

/// The port, of a test that other tests run in a namespace; none where it is run as a test.
fn inside() -> Option<u16> {
    std::env::var(INSIDE).ok()?.parse().ok()
}

/// How a shell runs one of this file's tests, wherever the file is in its program.
fn us(test: &str) -> String {
    let module = module_path!().split_once("::").map(|(_, module)| format!("{module}::")).unwrap_or_default();
    let program = std::env::current_exe().unwrap();
    format!("env {INSIDE}={PORT} '{}' --exact {module}{test} --ignored --nocapture", program.display())
}

#[test]
#[ignore = "real time"]
fn serves() {
    let Some(port) = inside() else { return };
    let options = ServeOptions {
        bind: format!("0.0.0.0:{port}").parse().unwrap(),
        key: None,
        max_rate: Rate::from_bps(100_000_000),
        max_duration: Span::from_secs(60),
        max_sessions: 16,
        max_memory: 1 << 30,
        results: None,
        qlogs: None,
        schemes: ForeignSchemes::default(),
    };
    let server = Server::start(options, Box::new(|_| {})).unwrap();
    server.run(&AtomicBool::new(false)).unwrap();
}

#[test]
#[ignore = "real time"]
fn sends() {
    let Some(port) = inside() else { return };
    let said = |name: &str| std::env::var(name).unwrap();
    let for_ms = said("FOR_MS").parse().unwrap();
    let requested = said("FLOWS");
    let flows = requested.split(';').map(|text| {
        let (direction, text) = match text.strip_prefix('<') {
            Some(rest) => (Direction::Reverse, rest),
            None => (Direction::Forward, text),
        };
        let settings: Vec<(String, String)> =
            text.split(',').filter_map(|one| one.split_once('=')).map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let name = settings[0].1.clone();
        let spec =
            FlowSpec { settings, for_ms, seed: 3, family: Family::V4, name: None, foreign: ForeignSchemes::default() };
        RequestedFlow { name, instance: 0, offer: Offer { spec, direction, kernel: None, measure: None } }
    });
    let (host, flows) = (said("PACELINE_PEER"), flows.collect());
    let logs = std::env::var_os("LOGS").map(Into::into);
    let options =
        SendOptions { host, port, key: None, flows, logs, qlogs: None, results: None, ports: None, beginning: None };
    let run = send(&options, &SendWatch::default()).unwrap_or_else(|error| panic!("{error}"));
    println!("{MARK}{}", serde_json::json!({ "summary": run.output.summary, "notes": run.notes }));
}

/// Runs flows over a path; gives their rows and notes.
fn over(links: &str, flows: &str, for_ms: u64) -> Result<Vec<(Value, Value)>, String> {
    over_with(links, flows, for_ms, None)
}

/// The same, with event logs in a folder.
fn over_with(links: &str, flows: &str, for_ms: u64, logs: Option<&Path>) -> Result<Vec<(Value, Value)>, String> {
    let document = Document::parse(links, "path").unwrap();
    let spec = PathSpec::of(document, &Folder::Profiles).unwrap_or_else(|error| panic!("{error}"));
    let mut file: std::fs::File = rustix::fs::memfd_create("said", rustix::fs::MemfdFlags::empty()).unwrap().into();
    let to = file.as_raw_fd();
    let logs = logs.map(|folder| format!("LOGS='{}'", folder.display())).unwrap_or_default();
    let client =
        format!("exec timeout 60 env {logs} FOR_MS={for_ms} FLOWS='{flows}' {} > /proc/self/fd/{to} 2>&1", us("sends"));
    let plan = Plan {
        command: ["/bin/sh", "-c", &client].map(Into::into).to_vec(),
        far: Far::Program(format!("exec timeout 60 {} > /dev/null 2>&1", us("serves")).into(), 2),
        kind: Kind::Any,
        ipv4: false,
        limit: Some(Span::from_millis(for_ms + 30_000)),
        ender: None,
    };
    let ended = paceline_live::netns::run(&plan, |mut near, mut far, clock, stop| {
        let relayed = Stop::new()?;
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = poll(&mut [PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN)], None);
                relayed.stop();
            });
            paceline_live::path::run(
                &spec,
                &mut near,
                &mut far,
                &RelayOptions { clock, ..RelayOptions::default() },
                &relayed,
            )
        })
    });
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    let ended = ended.map_err(|error| format!("{error}; {text}"))?;
    if ended.status != Status::Code(0) {
        return Err(format!("{:?}: {text}", ended.status));
    }
    let line = text.lines().find_map(|line| line.split_once(MARK)).ok_or(format!("no results: {text}"))?.1;
    let all: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let (rows, notes) = (all["summary"]["flows"].as_array(), all["notes"]["flows"].as_array());
    let (rows, notes) = rows.zip(notes).ok_or(format!("no flows: {all}"))?;
    Ok(rows.iter().cloned().zip(notes.iter().cloned()).collect())
}

/// Runs a check over namespaces, where there are any.
fn conclusive(check: impl Fn() -> Result<(), String>) {
    if needs::have("namespaces") {
        realtime::conclusive(check);
    }
}

fn within(row: &Value, name: &str, low: f64, high: f64) -> Result<(), String> {
    match row[name].as_f64() {
        Some(value) if (low..=high).contains(&value) => Ok(()),
        other => Err(format!("{}: {name} is {other:?}, not in {low} to {high}; {row}", row["flow"])),
    }
}

const PATH: &str =
    "[link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\nqueue = { kind = \"droptail\", limit = \"50 kB\" }\n";

#[test]
#[ignore = "real time"]
fn a_flow_fills_the_path_it_is_given() {
    conclusive(|| {
        for (flow, min) in [("cc=newreno,profile=linux", 8.5e6), ("cc=tfrc", 6e6), ("<cc=cubic,profile=linux", 8.5e6)] {
            let (row, notes) = over(PATH, flow, 8000)?.remove(0);
            if notes["well"] != true {
                return Err(format!("{flow}: {notes}"));
            }
            // of 1500 bytes 1456 or less are payload
            within(&row, "goodput_bps", min, 9.72e6)?;
            within(&row, "rtt_min_s", 0.050, 0.054)?;
            // the queue's 50 kB take 40 ms
            within(&row, "rtt_p50_s", 0.051, 0.095)?;
        }
        Ok(())
    });
}

/// One object, three worlds: what a controller decided on an emulated path, it decides again from its event log.
fn replays(kind: &str, schemes: &[&str], more: &str) {
    conclusive(|| {
        let folder = std::env::temp_dir().join(format!("paceline-path-{kind}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let links = format!("{PATH}loss = {{ kind = \"uniform\", rate = \"1 %\" }}\n");
        let flows = schemes.iter().map(|cc| format!("cc={cc}{more}")).collect::<Vec<_>>().join(";");
        let rows = over_with(&links, &flows, 8000, Some(&folder))?;
        assert_eq!(rows.len(), schemes.len());
        for cc in schemes {
            let mut log = std::fs::read(folder.join(format!("{cc}-0.events"))).unwrap();
            let replayed = replay(&log).unwrap_or_else(|error| panic!("{cc}: {error}"));
            assert!(replayed.inputs > 50 && replayed.datagrams > 50 && replayed.unread == 0, "{cc}: {replayed:?}");
            // the last figure is what the controller had come to: another one is noticed
            let last = log.len() - 1;
            log[last] ^= 1;
            assert!(matches!(replay(&log), Err(ReplayError::Diverged(_))), "{cc}");
        }
        std::fs::remove_dir_all(folder).unwrap();
        Ok(())
    });
}

#[test]
#[ignore = "real time"]
fn the_event_log_of_an_emulated_run_replays_bit_for_bit() {
    let schemes = ["newreno", "vegas", "cubic", "tfrc", "tfrc-veno", "multfrc", "rap", "lda-plus"];
    replays("events", &schemes, "");
}

#[test]
#[ignore = "real time"]
fn the_event_log_of_an_emulated_run_over_quic_replays_bit_for_bit() {
    replays("quic-events", &["newreno", "cubic", "bbr3", "copa", "c4"], ",transport=quic");
}

#[test]
#[ignore = "real time"]
fn faults_of_a_real_path_are_survived() {
    conclusive(|| {
        let faults = [
            "loss = { kind = \"uniform\", rate = \"20 %\" }\n",
            "reorder = { rate = \"10 %\", extra = \"8 ms\" }\n",
            "duplicate = { rate = \"20 %\" }\ncorrupt = { rate = \"5 %\" }\n",
        ];
        for fault in faults {
            let flows = "cc=newreno,profile=linux;cc=tfrc;cc=rap;<cc=newreno,profile=linux;<cc=tfrc";
            let (mut all, lossy) = (0.0, fault.starts_with("loss"));
            for (row, notes) in over(&format!("{PATH}{fault}"), flows, 4000)? {
                // a loss of 20 % may take all repetitions of the close: the other end's word counts then
                if notes["sender_ended"] != "done" {
                    return Err(format!("{fault}: {notes}"));
                }
                // where one packet in five is lost RAP may lose both of those that its first timer lets it send
                within(&row, "goodput_bps", if lossy { 0.0 } else { 1e3 }, 9.72e6)?;
                all += row["goodput_bps"].as_f64().unwrap_or(0.0);
            }
            if all < 5e4 {
                return Err(format!("{fault}: all flows together have {all} bit/s"));
            }
        }
        Ok(())
    });
}

#[test]
#[ignore = "real time"]
fn a_path_cut_for_seven_seconds_comes_back() {
    conclusive(|| {
        // Timers of 0.25 to 0.31 s that double are over 15 times as long after the cut, and then 31 times, 7.75 to 9.6 s:
        // with a cut of 10 s the end could wait for the next, at 18 s.
        let cut = "outage = [{ from = \"3 s\", to = \"10 s\" }]\n";
        let links = format!("{PATH}{cut}[link.bottleneck.backward]\n{cut}");
        for (row, notes) in
            over(&links, "cc=newreno,profile=linux;cc=tfrc;cc=udp,app.kind=cbr,app.rate=1 Mbit/s", 16_000)?
        {
            if notes["well"] != true {
                return Err(notes.to_string());
            }
            within(&row, "active_s", 15.5, 17.0)?;
            // TFRC has halved its rate all the while, and is slow to come back
            within(&row, "packets_delivered", if row["flow"] == "tfrc" { 100.0 } else { 500.0 }, 1e6)?;
        }
        Ok(())
    });
}
