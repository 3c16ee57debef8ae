//! Peers that say what they should not: texts for terminals, results that are none.

use super::*;
use paceline_live::endpoint::Numbers;
use paceline_live::endpoint::channel::{Answered, answer};
use paceline_live::endpoint::control::{Answer, Greeting, MAX_GREETING, MAX_REQUEST};
use paceline_live::endpoint::half::{Half, Table};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;

const HOSTILE: &str = "no\x1b[2J\r\n\u{202e}";
const SHOWN: &str = r"no\u001b[2J\r\n\u202e";

/// What a client makes of a server that says this; flows to it are of the kernel's TCP, whose data it takes.
fn result_from(
    flows: usize,
    says: impl Fn(usize) -> Vec<ServerMessage> + Send + 'static,
) -> Result<LiveRun, SendError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requested = (0..flows).map(|n| {
        let mut flow = requested(&format!("flow{n}"), &[], 300, Direction::Forward);
        flow.offer.kernel = Some("reno".to_owned());
        flow
    });
    let host = "127.0.0.1".to_owned();
    let request = SendOptions {
        host,
        port,
        key: None,
        flows: requested.collect(),
        logs: None,
        qlogs: None,
        results: None,
        ports: None,
        beginning: None,
    };
    let server = thread::spawn(move || {
        let mut channel = accepted(&listener);
        let _ = channel.write(&ServerMessage::Welcome { max_rate_bps: 1, max_duration_ms: 1 }, PATIENCE);
        assert!(matches!(channel.read(MAX_REQUEST, PATIENCE), Ok(ClientMessage::Open { .. })));
        let opened = (0..flows).map(|n| (n as u32, n as u64)).collect();
        let _ = channel.write(&ServerMessage::Opened { flows: opened, limit: u32::MAX, key: None }, PATIENCE);
        let mut data: Vec<TcpStream> = (0..flows).map(|_| listener.accept().unwrap().0).collect();
        for stream in &mut data {
            let _ = std::io::copy(stream, &mut std::io::sink());
        }
        for message in says(flows) {
            let _ = channel.write(&message, PATIENCE);
        }
        // until the client has gone
        let _ = channel.read::<ClientMessage>(MAX_REQUEST, Duration::from_secs(20));
    });
    let run = send(&request, &SendWatch::default());
    server.join().unwrap();
    run
}

/// A client's channel, with a server's half of the handshake.
fn accepted(listener: &TcpListener) -> Channel {
    let mut stream = listener.accept().unwrap().0;
    let Ok(Greeting::Hello { handshake, .. }) = control::read(&mut stream, MAX_GREETING) else { panic!("no hello") };
    let Answered::Hello(handshake, noise) = answer(None, &handshake).unwrap() else { panic!("no handshake") };
    control::write(&mut stream, &Answer::Hello { handshake }).unwrap();
    Channel::new(stream, noise)
}

fn half(columns: &[(&str, usize)]) -> Box<Half> {
    let column = |(name, rows): &(&str, usize)| ((*name).to_owned(), Numbers(vec![0.5; *rows]));
    let table = Table { table: "rate".to_owned(), columns: columns.iter().map(column).collect() };
    let mut half = Half { tables: vec![table], ended: "peer closed".to_owned(), well: true, ..Half::default() };
    half.row.bytes_delivered = Some(1000);
    Box::new(half)
}

/// What an end of the kernel's TCP that receives has.
fn honest() -> Box<Half> {
    half(&[("time_s", 2), ("goodput_bps", 2), ("send_rate_bps", 2)])
}

#[test]
#[ignore = "real time"]
fn results_that_make_no_sense_leave_those_of_others() {
    realtime::tried(|| {
        let run = result_from(3, |_| {
            vec![
                ServerMessage::Result { flow: 0, half: half(&[("time_s", 2), ("goodput_bps", 3)]) },
                ServerMessage::Result { flow: 1, half: honest() },
                ServerMessage::Result { flow: 2, half: half(&[("time_s", 1), ("flow", 1)]) },
            ]
        });
        let run = run.unwrap();
        let said: Vec<&str> = run.notes.flows.iter().map(|notes| notes.receiver_ended.as_str()).collect();
        let no_sense = "the server's results make no sense: table rate, column";
        assert_eq!(said[0], format!("{no_sense} goodput_bps has 3 rows, the first column 2"));
        assert_eq!(said[1], "peer closed");
        assert_eq!(said[2], format!("{no_sense} flow: there is no such column"));
        assert_eq!(run.notes.flows.iter().map(|notes| notes.well).collect::<Vec<_>>(), [false, true, false]);
        let delivered: Vec<_> = run.output.summary.flows.iter().map(|row| row.bytes_delivered).collect();
        assert_eq!(delivered, [None, Some(1000), None]);
        let known: Vec<_> = run.output.summary.flows.iter().map(|row| row.goodput_bps.is_finite()).collect();
        assert_eq!(known, [false, true, false], "of what nothing is known there is no rate");
        for series in &run.output.series {
            assert!(series.columns.iter().all(|(_, values)| values.len() == series.columns[0].1.len()), "{series:?}");
        }
    });
}

#[test]
#[ignore = "real time"]
fn a_server_that_tells_nonsense_is_not_listened_to_any_more() {
    realtime::tried(|| {
        let result = || ServerMessage::Result { flow: 0, half: honest() };
        let cases = [
            (
                ServerMessage::Result { flow: usize::MAX, half: half(&[]) },
                "the server told of flow 18446744073709551615; there are 2",
            ),
            (
                ServerMessage::Welcome { max_rate_bps: 1, max_duration_ms: 1 },
                "the server said what is not to be said while flows run",
            ),
            (ServerMessage::Refused { why: HOSTILE.to_owned() }, &format!("the server refused: {SHOWN}")),
        ];
        for (nonsense, said) in cases {
            let run = result_from(2, move |_| vec![result(), nonsense.clone(), result()]).unwrap();
            assert_eq!(run.notes.flows[0].receiver_ended, "peer closed");
            assert_eq!(run.notes.flows[1].receiver_ended, said);
        }
    });
}

/// Nothing that a server says reaches a user's terminal or files as it is.
#[test]
#[ignore = "real time"]
fn a_servers_texts_are_cleaned() {
    realtime::tried(|| {
        let run = result_from(1, |_| {
            let mut half = honest();
            half.ended = HOSTILE.to_owned();
            half.well = false;
            (half.row.cc, half.row.profile) = (HOSTILE.to_owned(), HOSTILE.to_owned());
            half.row.ended = Some(HOSTILE.to_owned());
            vec![ServerMessage::Result { flow: 0, half }]
        });
        let run = run.unwrap();
        assert_eq!(run.notes.flows[0].receiver_ended, SHOWN);
        let all = format!(
            "{}{}",
            serde_json::to_string(&run.output.summary).unwrap(),
            serde_json::to_string(&run.notes).unwrap()
        );
        // JSON would have escaped them itself
        let by_json = all.replace(r"\\", "");
        assert!(!by_json.contains(r"\u001b") && !all.contains('\u{202e}'), "{all}");
        assert_eq!(run.output.summary.flows[0].ended.as_deref(), Some(SHOWN));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let flows = || vec![requested("t", &[("cc", "tfrc")], 300, Direction::Forward)];
        let request = || SendOptions {
            host: "127.0.0.1".to_owned(),
            port,
            key: None,
            flows: flows(),
            logs: None,
            qlogs: None,
            results: None,
            ports: None,
            beginning: None,
        };
        let sending = || {
            thread::spawn({
                let request = request();
                move || send(&request, &SendWatch::default()).unwrap_err().to_string()
            })
        };
        // in the clear
        let said = sending();
        let mut stream = listener.accept().unwrap().0;
        control::write(&mut stream, &Answer::Refused { why: HOSTILE.repeat(100) }).unwrap();
        drop(stream);
        let said = said.join().unwrap();
        assert!(said.starts_with(&format!("the server refused: {SHOWN}no")) && said.chars().count() <= 521, "{said}");
        assert!(!said.contains(|c: char| c.is_control() || c == '\u{202e}'));
        // encrypted; and as what no message is
        let said = sending();
        let mut channel = accepted(&listener);
        channel.write(&ServerMessage::Refused { why: HOSTILE.to_owned() }, PATIENCE).unwrap();
        assert_eq!(said.join().unwrap(), format!("the server refused: {SHOWN}"));
        let said = sending();
        let mut channel = accepted(&listener);
        channel.write(&serde_json::json!({ HOSTILE: {} }), PATIENCE).unwrap();
        let said = said.join().unwrap();
        assert!(said.contains(SHOWN) && !said.contains(|c: char| c.is_control() || c == '\u{202e}'), "{said}");
    });
}

/// Nor does anything that a client says reach the server's log so, or come back to another.
#[test]
#[ignore = "real time"]
fn a_clients_texts_are_cleaned() {
    realtime::tried(|| {
        let said = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&said);
        let say: LogSink = Box::new(move |line| theirs.lock().unwrap().push(line.to_owned()));
        let mut server = Served::with_log(options(), say);
        let hostile = |settings: &[(&str, &str)], kernel: Option<&str>| {
            let mut flow = requested("t", settings, 300, Direction::Forward);
            flow.offer.kernel = kernel.map(str::to_owned);
            let _ = open(&server, &[flow]);
        };
        hostile(&[("cc", HOSTILE)], None);
        // what is named first is told, what is named last is run
        hostile(&[("cc", HOSTILE), ("cc", "tfrc")], None);
        hostile(&[("cc", "tfrc"), (HOSTILE, HOSTILE)], None);
        hostile(&[], Some(HOSTILE));
        let framed = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&framed(&serde_json::json!({ "say": HOSTILE }).to_string())).unwrap();
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        let mut channel = Channel::open(TcpStream::connect(server.address).unwrap(), None).unwrap();
        channel.write(&serde_json::json!({ HOSTILE: {} }), PATIENCE).unwrap();
        let _ = channel.read::<ServerMessage>(MAX_RESULT, PATIENCE);
        let _ = channel.read::<ServerMessage>(MAX_RESULT, PATIENCE);
        server.end();
        let said = said.lock().unwrap();
        assert!(said.iter().any(|line| line.contains(SHOWN)), "{said:?}");
        for line in said.iter() {
            assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    });
}
