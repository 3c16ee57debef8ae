//! Keys: who has none, the wrong one, or another's handshake, and what an observer sees.

use super::bounds::connected_from;
use super::*;
use paceline_live::endpoint::Key;
use paceline_live::endpoint::channel::Unanswered;
use paceline_live::endpoint::control::{Answer, Greeting, MAX_GREETING};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Mutex;

const KEY: Key = [7; 32];
const OTHER: Key = [8; 32];

fn guarded() -> Served {
    Served::new(ServeOptions { key: Some(KEY), ..options() })
}

fn short() -> Vec<RequestedFlow> {
    vec![requested("tfrc", &[("cc", "tfrc")], 300, Direction::Forward)]
}

fn with(server: &Served, key: Option<Key>) -> Result<LiveRun, SendError> {
    send(&SendOptions { key, ..send_options(server, short()) }, &SendWatch::default())
}

#[test]
#[ignore = "real time"]
fn both_ends_have_the_key_or_neither() {
    realtime::tried(|| {
        let (guarded, all) = (guarded(), Served::new(options()));
        assert!(matches!(with(&guarded, None), Err(SendError::Key)));
        assert!(
            matches!(with(&guarded, Some(OTHER)), Err(SendError::Refused(why)) if why == "the key is not the server's")
        );
        assert!(matches!(with(&all, Some(KEY)), Err(SendError::Keyless)));
        assert!(with(&guarded, Some(KEY)).unwrap().notes.flows[0].well);
        assert!(with(&all, None).unwrap().notes.flows[0].well);
    });
}

/// Whoever stands in the server's place without the key is not told what flows there are to be.
#[test]
#[ignore = "real time"]
fn a_server_without_the_key_is_not_believed() {
    realtime::tried(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let options =
            |port| SendOptions { host: "127.0.0.1".to_owned(), port, key: Some(KEY), flows: short(), ..nobody() };
        let port = listener.local_addr().unwrap().port();
        let sending = thread::spawn(move || send(&options(port), &SendWatch::default()));
        let mut stream = listener.accept().unwrap().0;
        assert!(matches!(control::read(&mut stream, MAX_GREETING), Ok(Greeting::Hello { keyed: true, .. })));
        control::write(&mut stream, &Answer::Hello { handshake: "09".repeat(48) }).unwrap();
        assert!(matches!(sending.join().unwrap(), Err(SendError::WrongKey)));
        let mut more = Vec::new();
        stream.read_to_end(&mut more).unwrap();
        assert!(more.is_empty());
    });
}

fn nobody() -> SendOptions {
    SendOptions {
        host: String::new(),
        port: 0,
        key: None,
        flows: vec![],
        logs: None,
        qlogs: None,
        results: None,
        ports: None,
        beginning: None,
    }
}

/// Stands between a client and a server, and keeps what passes: from the client, and from the server.
fn observed(server: SocketAddr) -> (SocketAddr, Arc<[Mutex<Vec<u8>>; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, seen) = (listener.local_addr().unwrap(), Arc::<[Mutex<Vec<u8>>; 2]>::default());
    let theirs = Arc::clone(&seen);
    thread::spawn(move || {
        let (client, server) = (listener.accept().unwrap().0, TcpStream::connect(server).unwrap());
        let pairs = [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)];
        for (n, (mut from, mut to)) in pairs.into_iter().enumerate() {
            let seen = Arc::clone(&theirs);
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(len @ 1..) = from.read(&mut buffer) {
                    seen[n].lock().unwrap().extend_from_slice(&buffer[..len]);
                    let _ = to.write_all(&buffer[..len]);
                }
                let _ = to.shutdown(Shutdown::Write);
            });
        }
    });
    (address, seen)
}

/// A client's flow over an observed connection: its id and secret, and what was seen.
fn opened_observed(server: &Served, key: Option<&Key>) -> ((u32, u64), [Vec<u8>; 2]) {
    let (between, seen) = observed(server.address);
    let mut channel = Channel::open(TcpStream::connect(between).unwrap(), key).unwrap();
    assert!(matches!(channel.read(MAX_RESULT, PATIENCE), Ok(ServerMessage::Welcome { .. })));
    let flows = vec![requested("tfrc", &[("cc", "tfrc")], 20_000, Direction::Reverse).offer];
    channel.write(&ClientMessage::Open { flows, key: None }, PATIENCE).unwrap();
    let Ok(ServerMessage::Opened { flows, .. }) = channel.read(MAX_RESULT, PATIENCE) else { panic!("not opened") };
    (flows[0], [0, 1].map(|n| seen[n].lock().unwrap().clone()))
}

#[test]
#[ignore = "real time"]
fn an_observer_learns_no_flow() {
    realtime::tried(|| {
        for key in [Some(KEY), None] {
            let server = Served::new(ServeOptions { key, ..options() });
            let ((connection, secret), seen) = opened_observed(&server, key.as_ref());
            let has = |bytes: &[u8]| seen.iter().any(|seen| seen.windows(bytes.len()).any(|some| some == bytes));
            assert!(has(br#"{"say":"hello","version":"#), "it does see what goes in the clear");
            for secret in [secret.to_string().as_bytes(), &secret.to_be_bytes(), &secret.to_le_bytes()] {
                assert!(!has(secret));
            }
            for clear in [connection.to_string().as_bytes(), b"tfrc", b"opened", b"welcome", b"direction"] {
                assert!(!has(clear), "{}", String::from_utf8_lossy(clear));
            }
        }
    });
}

/// What was seen of one connection opens nothing on another.
#[test]
#[ignore = "real time"]
fn a_handshake_said_again_opens_nothing() {
    realtime::tried(|| {
        let said = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&said);
        let say: LogSink = Box::new(move |line| theirs.lock().unwrap().push(line.to_owned()));
        let server = Served::with_log(ServeOptions { key: Some(KEY), ..options() }, say);
        let (_, [client, _]) = opened_observed(&server, Some(&KEY));
        let opened = |said: &[String]| said.iter().filter(|line| line.contains("tfrc to")).count();
        assert_eq!(opened(&said.lock().unwrap()), 1);
        let mut again = connected_from("127.0.0.2", server.address).unwrap();
        again.write_all(&client).unwrap();
        again.shutdown(Shutdown::Write).unwrap();
        let mut answers = Vec::new();
        // closed with something unread is reset
        let _ = again.read_to_end(&mut answers);
        assert!(matches!(control::read(&mut &answers[..], MAX_GREETING), Ok(Answer::Hello { .. })));
        let said = said.lock().unwrap();
        assert!(opened(&said) == 1 && said.iter().any(|line| line.contains("127.0.0.2: a wrong key")), "{said:?}");
    });
}

/// Wrong keys are soon not even looked at, and said in the log once; from elsewhere the right one works at once.
#[test]
#[ignore = "real time"]
fn wrong_keys_cost_whoever_shows_them() {
    realtime::tried(|| {
        let said = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&said);
        let say: LogSink = Box::new(move |line| theirs.lock().unwrap().push(line.to_owned()));
        let server = Served::with_log(ServeOptions { key: Some(KEY), ..options() }, say);
        let shown =
            |key: &Key, from: &str| Channel::open(connected_from(from, server.address).unwrap(), Some(key)).map(|_| ());
        let waits = |tried: Result<(), Unanswered>| match tried {
            Err(Unanswered::Refused(why)) if why.contains("too many wrong keys from your address: try again in") => {
                true
            }
            Err(Unanswered::Refused(why)) if why == "the key is not the server's" => false,
            other => panic!("{other:?}"),
        };
        let waited = (0..40).filter(|_| waits(shown(&OTHER, "127.0.0.2"))).count();
        assert!((30..=36).contains(&waited), "{waited} of 40 were not looked at");
        assert!(waits(shown(&KEY, "127.0.0.2")), "neither is the right one now");
        let tries = || said.lock().unwrap().iter().filter(|line| line.contains("a wrong key")).count();
        assert_eq!(tries(), 1);
        // while others go on
        let over = Arc::new(AtomicBool::new(false));
        let (address, theirs) = (server.address, Arc::clone(&over));
        let trying = thread::spawn(move || {
            while !theirs.load(Ordering::Relaxed) {
                let _ = Channel::open(connected_from("127.0.0.3", address).unwrap(), Some(&OTHER));
            }
        });
        thread::sleep(Duration::from_millis(200));
        let begin = Instant::now();
        let mut channel = Channel::open(TcpStream::connect(server.address).unwrap(), Some(&KEY)).unwrap();
        assert!(matches!(channel.read(MAX_RESULT, PATIENCE), Ok(ServerMessage::Welcome { .. })));
        channel
            .write(
                &ClientMessage::Open { flows: short().into_iter().map(|one| one.offer).collect(), key: None },
                PATIENCE,
            )
            .unwrap();
        assert!(matches!(channel.read(MAX_RESULT, PATIENCE), Ok(ServerMessage::Opened { .. })));
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        over.store(true, Ordering::Relaxed);
        trying.join().unwrap();
        assert!(tries() <= 2, "{:?}", said.lock().unwrap());
    });
}

/// Ends of different versions tell each other so.
#[test]
#[ignore = "real time"]
fn another_version_is_refused_in_words_that_it_reads() {
    realtime::tried(|| {
        let server = guarded();
        let mut old = TcpStream::connect(server.address).unwrap();
        let hello = br#"{"say":"hello","version":2}"#;
        old.write_all(&[&(hello.len() as u32).to_be_bytes(), &hello[..]].concat()).unwrap();
        let mut all = Vec::new();
        old.read_to_end(&mut all).unwrap();
        let why = "this server speaks version 4 and not 2: both ends need the same Paceline";
        assert_eq!(String::from_utf8_lossy(&all[4..]), format!(r#"{{"say":"refused","why":"{why}"}}"#));
        // as version 2 answered
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let request = SendOptions { host: "127.0.0.1".to_owned(), port, flows: short(), ..nobody() };
        let sending = thread::spawn(move || send(&request, &SendWatch::default()));
        let mut stream = listener.accept().unwrap().0;
        let hello: serde_json::Value = control::read(&mut stream, MAX_RESULT).unwrap();
        assert_eq!((&hello["say"], &hello["version"]), (&"hello".into(), &4.into()));
        let refused = br#"{"say":"refused","why":"this server speaks version 2, not 4"}"#;
        stream.write_all(&[&(refused.len() as u32).to_be_bytes(), &refused[..]].concat()).unwrap();
        assert!(matches!(sending.join().unwrap(), Err(SendError::Refused(why)) if why.contains("version 2, not 4")));
    });
}
