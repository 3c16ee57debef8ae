//! Logs of a run's connections over QUIC, read by a library that is not ours, and held against the run.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test reads its files")]

use paceline_live::capture::{CaptureError, Written, simulate};
use paceline_live::scenario;
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, RunOutput};
use qlog::events::quic::{PacketType, QuicFrame};
use qlog::events::{Event, EventData};
use qlog::reader::QlogSeqReader;
use std::path::{Path, PathBuf};

/// A folder of this test's, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("paceline-{}-{name}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn logged(text: &str, to: &Path) -> Result<RunOutput, CaptureError> {
    let file = to.with_extension("toml");
    std::fs::write(&file, text).unwrap();
    let scenario = scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
    std::fs::remove_file(&file).unwrap();
    let written = simulate(&scenario, 1, &RunOptions::default(), &Written { pcap: None, qlog: Some(to) });
    let Ok(output) = written else { return written };
    let plain = paceline_sim::simulate(&scenario, 1, &RunOptions::default()).unwrap();
    let json = |output: &RunOutput| serde_json::to_string(&output.summary).unwrap();
    assert_eq!(json(&output), json(&plain), "a run gives the same without logs");
    Ok(output)
}

/// The events of a log, each of which the library knows; one state it has by another name than the draft.
fn events(path: &Path) -> Vec<Event> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = text.replace("\"handshake_complete\"", "\"handshake_completed\"");
    let read = QlogSeqReader::new(Box::new(text.as_bytes())).unwrap();
    let known = read.map(|event| match event {
        qlog::reader::Event::Qlog(event) => event,
        qlog::reader::Event::Json(event) => panic!("{}: {}", path.display(), event.name),
    });
    known.collect()
}

fn count(events: &[Event], is: impl Fn(&EventData) -> bool) -> u64 {
    events.iter().filter(|event| is(&event.data)).count() as u64
}

fn frames(events: &[Event], sent: bool) -> impl Iterator<Item = &QuicFrame> {
    events.iter().flat_map(move |event| match &event.data {
        EventData::QuicPacketSent(packet) if sent => packet.frames.as_deref().unwrap_or_default(),
        EventData::QuicPacketReceived(packet) if !sent => packet.frames.as_deref().unwrap_or_default(),
        _ => &[],
    })
}

const LINK: &str =
    "duration = \"8 s\"\nhost_delay = \"0 s\"\n[link.bottleneck]\nrate = \"8 Mbit/s\"\ndelay = \"20 ms\"\n";

fn flow(output: &RunOutput) -> &FlowSummary {
    &output.summary.flows[0]
}

#[test]
fn a_log_has_every_packet_loss_and_round_trip_of_its_run() {
    let to = Folder::new("every");
    let text = format!(
        "{LINK}queue = {{ kind = \"droptail\", limit = \"30 packets\" }}\n\
         [flow.one]\ncc = \"cubic\"\ntransport = \"quic\"\nstop = \"7 s\"\n"
    );
    let output = logged(&text, &to.0).unwrap();
    let sender = events(&to.0.join("one-client.sqlog"));
    let receiver = events(&to.0.join("one-server.sqlog"));
    let sent = count(&sender, |event| matches!(event, EventData::QuicPacketSent(_)));
    assert_eq!(sent, flow(&output).packets_sent, "without a host's delay all have left");
    let lost = count(&sender, |event| matches!(event, EventData::QuicPacketLost(_)));
    let received = count(&receiver, |event| matches!(event, EventData::QuicPacketReceived(_)));
    assert!(
        lost > 20 && received + lost <= sent && sent - received - lost < 60,
        "{sent} sent, {lost} lost, {received} came"
    );
    let states: Vec<&str> = sender
        .iter()
        .filter_map(|event| match &event.data {
            EventData::QuicCongestionStateUpdated(state) => Some(state.new.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(states[..3], ["slow_start", "recovery", "congestion_avoidance"]);
    assert!(frames(&receiver, true).all(|frame| !matches!(frame, QuicFrame::Unknown { .. })));
    let acks =
        |events: &[Event], sent| frames(events, sent).filter(|frame| matches!(frame, QuicFrame::Ack { .. })).count();
    let (left, arrived) = (acks(&receiver, true), acks(&sender, false));
    assert!(arrived > 1000 && left - arrived < 60, "{left} acknowledgements left, {arrived} came");
    let times: Vec<f64> = sender.iter().map(|event| event.time).collect();
    assert!(times.is_sorted());
    let over = |event: &EventData| matches!(event, EventData::QuicConnectionClosed(_));
    assert_eq!((count(&sender, over), count(&receiver, over)), (1, 1), "the sender stops and says so");
}

/// A HANDSHAKE_DONE that is sent again changes nothing.
#[test]
fn a_handshake_is_confirmed_once() {
    let to = Folder::new("confirmed");
    let link = "duration = \"2 s\"\n[link.bottleneck]\nrate = \"100 Mbit/s\"\ndelay = \"50 ms\"\n";
    let outage = "outage = [{ from = \"154 ms\", to = \"250 ms\" }]\n";
    let flow = "[flow.one]\ncc = \"newreno\"\ntransport = \"quic\"\napp = { kind = \"ftp\", size = \"1 kB\" }\n";
    logged(&format!("{link}{outage}{flow}"), &to.0).unwrap();
    for end in ["one-client.sqlog", "one-server.sqlog"] {
        let events = events(&to.0.join(end));
        let done =
            |sent| frames(&events, sent).filter(|frame| matches!(frame, QuicFrame::HandshakeDone { .. })).count();
        assert_eq!(done(end == "one-server.sqlog"), 2, "{end}: it is sent again");
        let text = std::fs::read_to_string(to.0.join(end)).unwrap();
        assert_eq!(text.matches("handshake_confirmed").count(), 1, "{end}");
    }
}

#[test]
fn each_connection_has_files_of_its_own_from_its_beginning_to_its_end() {
    let to = Folder::new("pages");
    let text = format!(
        "{LINK}[flow.pages]\ncc = \"newreno\"\ntransport = \"quic\"\nquic = {{ handshake = \"zero-rtt\" }}\n\
         app = {{ kind = \"web\", mean_size = \"20 kB\", gap = \"200 ms\" }}\n"
    );
    let output = logged(&text, &to.0).unwrap();
    let started = flow(&output).transfers_started;
    let clients = (2..=started).map(|n| format!("pages.{n}-client.sqlog")).chain(["pages-client.sqlog".into()]);
    for name in clients {
        let sender = events(&to.0.join(&name));
        assert!(matches!(sender[0].data, EventData::QuicConnectionStarted(_)), "{name}");
        let early = |event: &EventData| matches!(event, EventData::QuicPacketSent(packet) if packet.header.packet_type == PacketType::ZeroRtt);
        assert!(count(&sender, early) > 0, "{name}");
        let opens = frames(&sender, true).filter(|frame| matches!(frame, QuicFrame::Crypto { .. })).count();
        assert!(opens >= 2, "{name}: hello and Finished");
        let server = events(&to.0.join(name.replace("client", "server")));
        assert!(count(&server, |event| matches!(event, EventData::QuicPacketReceived(_))) > 2, "{name}");
    }
    assert!(!to.0.join(format!("pages.{}-client.sqlog", started + 1)).exists());
}

#[test]
fn what_cannot_be_logged_is_refused() {
    let to = Folder::new("refused");
    let tcp = format!("{LINK}[flow.one]\ncc = \"cubic\"\n");
    assert!(matches!(logged(&tcp, &to.0), Err(CaptureError::NothingToLog)));
    assert!(!to.0.exists());
    std::fs::create_dir_all(&to.0).unwrap();
    std::fs::write(to.0.join("old-client.sqlog"), "").unwrap();
    let quic = format!("{tcp}transport = \"quic\"\n");
    assert!(matches!(logged(&quic, &to.0), Err(CaptureError::NotEmpty(_))));
    let nowhere = Path::new("/dev/null/logs");
    let scenario = std::env::temp_dir().join(format!("paceline-{}-nowhere.toml", std::process::id()));
    std::fs::write(&scenario, &quic).unwrap();
    let loaded = scenario::load(&scenario).unwrap_or_else(|error| panic!("{error}"));
    std::fs::remove_file(&scenario).unwrap();
    let refused = simulate(&loaded, 1, &RunOptions::default(), &Written { pcap: None, qlog: Some(nowhere) });
    assert!(matches!(refused, Err(CaptureError::File(..))));
}
