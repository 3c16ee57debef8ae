//! What no settings and no message may do to a session: keep it busy, or fill it.

use super::*;
use paceline_live::session::log::LogWriter;
use paceline_packet::{Block, Flags, Stamp, TcpOptions};
use rustix::thread::{Pid, gettid};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Runs `what`, which is to come to an end: what loops for ever would hold the test up for as long.
fn ends(name: &str, what: impl FnOnce() + Send + 'static) {
    let ((done, comes), (begun, begins)) = (channel(), channel());
    let runs = thread::spawn(move || {
        let _ = begun.send(gettid());
        what();
        let _ = done.send(());
    });
    let thread = begins.recv().unwrap();
    while let Err(RecvTimeoutError::Timeout) = comes.recv_timeout(Duration::from_secs(1)) {
        assert!(processor_time(thread) < Duration::from_secs(60), "{name}: an input takes for ever");
    }
    runs.join().unwrap_or_else(|_| panic!("{name}: a panic"));
}

/// What a thread has had of the processors: it has not been kept from them by others.
#[allow(clippy::disallowed_methods, reason = "a test asks the system")]
fn processor_time(thread: Pid) -> Duration {
    let text =
        std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", thread.as_raw_pid())).unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// A sender whose flow has been accepted at zero, with its log.
struct LoneSender {
    session: Session,
    log: LogWriter<Vec<u8>>,
    out: Outbox,
}

impl LoneSender {
    fn new(spec: &SessionSpec) -> LoneSender {
        let session = Session::new(spec).unwrap_or_else(|error| panic!("{error}"));
        let mut alone = LoneSender { session, log: LogWriter::new(Vec::new(), spec).unwrap(), out: Outbox::default() };
        alone.input(Time::ZERO, Input::Start);
        let accept = tfrc::Accept { nonce: tfrc::Nonce(spec.nonce), limit: tfrc::RateLimit::None };
        alone.input(Time::ZERO, Input::Datagram(&encode(spec, Message::Accept(accept)), EcnBits::NotEct));
        alone
    }

    fn input(&mut self, now: Time, input: Input<'_>) {
        self.out.clear();
        self.session.input(now, input, &mut self.out);
        self.log.write(now, input, &self.out, &self.session).unwrap();
    }

    fn sender(&self) -> &paceline_live::session::SenderSession {
        match &self.session {
            Session::Sender(sender) => sender,
            Session::Receiver(_) => unreachable!("it sends"),
        }
    }
}

/// Every kind of application, as absurd as its settings allow.
const APPS: [&str; 11] = [
    "{ kind = \"ftp\", size = \"4 GB\" }",
    "{ kind = \"web\", gap = \"1 us\", arrivals = \"open\", mean_size = \"1 B\" }",
    "{ kind = \"web\", gap = \"1 us\", mean_size = \"1 B\" }",
    "{ kind = \"web\", gap = \"1 us\", arrivals = \"think-persistent\", mean_size = \"1000 GB\" }",
    "{ kind = \"pareto\", rate = \"100 Gbit/s\", burst = \"1000000 s\", idle = \"0 s\" }",
    "{ kind = \"cbr\", rate = \"100 Gbit/s\" }",
    "{ kind = \"game\", packet = \"65507 B\", interval = \"100 us\" }",
    "{ kind = \"voice\", packet = \"60 kB\", interval = \"1 ms\", spurts = true, talk = \"1 ms\", pause = \"0 s\" }",
    "{ kind = \"video\", rate = \"100 Gbit/s\", frame_rate = 1000.0, key_size = 100.0, group = 1, variation = 3.0 }",
    "{ kind = \"encoder\", min_rate = \"100 Gbit/s\", max_rate = \"100 Gbit/s\", frame_rate = 1000.0, key_size = 8.0 }",
    "{ kind = \"stream\", media_rate = \"1 Gbit/s\", length = \"8 s\", heartbeat = \"1 us\", xfactor = 1e6 }",
];

/// Every application with one scheme of each machine, for it is the machine that does what the application asks; every scheme with
/// some of them.
#[test]
fn no_application_keeps_a_sender_of_any_scheme_busy() {
    ends("an application", || {
        let (mut ran, mut lost, mut machines) = ([0; APPS.len()], 0, Vec::new());
        for (n, scheme) in paceline_control::registry::schemes().enumerate() {
            let machine = std::mem::discriminant(&scheme.machine);
            let first = !machines.contains(&machine);
            machines.push(machine);
            for (i, (app, ran)) in APPS.iter().zip(&mut ran).enumerate() {
                if !first && (i + n) % 5 > 0 {
                    continue;
                }
                let settings = [("cc", scheme.name), ("segment", "1 B"), ("app", app)];
                let spec = SessionSpec { limit: Some(125_000_000), ..spec(&settings, 60, Side::Sender) };
                if Session::new(&spec).is_err() {
                    continue;
                }
                *ran += 1;
                let mut alone = LoneSender::new(&spec);
                for ms in 1..48u64 {
                    let before = alone.session.counts().over_limit;
                    alone.input(Time(ms * 50_000_000), Input::Timer);
                    let made = alone.out.len() as u64 + alone.session.counts().over_limit - before;
                    // a write of a game that is cut into single bytes is the most that is done in one go
                    assert!(made < 200_000, "{} {app}: {made}", scheme.name);
                }
                lost += u64::from(alone.session.state() == State::Ended(End::TooMuchWork));
                let case = format!("{} {app}", scheme.name);
                let replayed = replay(&alone.log.into_inner()).unwrap_or_else(|error| panic!("{case}: {error}"));
                assert_eq!((replayed.inputs, replayed.unread), (49, 0), "{case}");
            }
        }
        assert!(ran.iter().all(|ran| *ran > 0) && lost > 10, "{ran:?}, {lost}");
    });
}

/// What cannot be caught up with ends, with words, and not before.
#[test]
fn an_application_that_is_behind_for_two_seconds_ends() {
    ends("a rate", || {
        let app = "{ kind = \"cbr\", rate = \"100 Gbit/s\" }";
        let spec = spec(&[("cc", "newreno"), ("segment", "1 B"), ("app", app)], 60, Side::Sender);
        let mut alone = LoneSender::new(&spec);
        let states: Vec<_> = (1..=250u64)
            .map(|n| {
                alone.input(Time(n * 10_000_000), Input::Timer);
                alone.session.state()
            })
            .collect();
        assert_eq!((states[150], states[249]), (State::Running, State::Ended(End::TooMuchWork)));
        assert!(End::TooMuchWork.to_string().contains("processor"));
    });
}

/// Transfers that nobody acknowledges, and writes that no window takes, are remembered one by one.
#[test]
fn writes_that_wait_are_bounded() {
    let web = "{ kind = \"web\", gap = \"20 us\", arrivals = \"open\", mean_size = \"2 B\" }";
    let game = "{ kind = \"game\", packet = \"100 B\", interval = \"100 us\" }";
    for (cc, app) in [
        ("newreno", web),
        ("newreno", game),
        ("tfrc", game),
        ("rap", game),
        ("multfrc", game),
        ("nada", game),
        ("gcc", game),
    ] {
        let settings = [("cc", cc), ("app", app)];
        let spec = spec(&settings, 60, Side::Sender);
        let mut alone = LoneSender::new(&spec);
        let accept = tfrc::Accept { nonce: tfrc::Nonce(spec.nonce), limit: tfrc::RateLimit::None };
        let accept = encode(&spec, Message::Accept(accept));
        let mut max = 0;
        for n in 1..20_000u64 {
            let now = Time(n * 1_000_000);
            if n % 1000 == 0 {
                alone.input(now, Input::Datagram(&accept, EcnBits::NotEct));
            }
            alone.input(now, Input::Timer);
            let source = alone.sender().source();
            max = max.max(source.sender.remembered_writes() as u64).max(source.transfers().unfinished);
            if alone.session.state() != State::Running {
                break;
            }
        }
        assert_eq!(alone.session.state(), State::Ended(End::TooManyWrites), "{cc} {app}: {max}");
        assert!((60_000..200_000).contains(&max), "{cc} {app}: {max}");
    }
}

/// Feedback may say whatever it likes of what was sent, and nothing of what was not: what is remembered of segments is bounded.
#[test]
fn forged_blocks_release_no_more_than_the_window() {
    let ways: [&[(&str, &str)]; 4] = [
        &[("cc", "newreno"), ("recovery", "sack")],
        &[("cc", "cubic"), ("profile", "linux"), ("send_buffer", "unlimited"), ("receive_buffer", "unlimited")],
        &[("cc", "cubic"), ("profile", "ns2-linux")],
        &[("cc", "newreno"), ("profile", "ns2"), ("recovery", "sack")],
    ];
    for settings in ways {
        let spec = spec(settings, 60, Side::Sender);
        let (mut alone, mut end, mut max, mut forged) = (LoneSender::new(&spec), 0u32, 0u32, 0);
        let mut stamp = Stamp(0);
        for n in 1..3000u64 {
            let now = Time(n * 2_000_000);
            for datagram in alone.out.iter() {
                if let Ok((Datagram { message: Message::Segment(segment), .. }, _)) = tfrc::decode(datagram.header) {
                    end = end.max(segment.sequence + 1);
                    stamp = segment.timestamp;
                }
            }
            // the second segment never comes; all after it do, and now and then much more
            let beyond = n % 3 == 0;
            let block = Block { start: 2, end: if beyond { u32::MAX - 1 } else { end.max(3) } };
            let window = std::num::NonZeroU32::new(u32::MAX);
            let options = TcpOptions { sack: [block, Block::default(), Block::default()], window };
            let next = end.min(1);
            let options = if end > 2 { options } else { TcpOptions { window, ..TcpOptions::NONE } };
            forged += u64::from(beyond && end > 2);
            let ack = tfrc::SegmentAck { next, echo: stamp, flags: Flags::NONE, options };
            alone.input(now, Input::Datagram(&encode(&spec, Message::SegmentAck(ack)), EcnBits::NotEct));
            if n % 500 == 0 {
                let accept = tfrc::Accept { nonce: tfrc::Nonce(spec.nonce), limit: tfrc::RateLimit::None };
                alone.input(now, Input::Datagram(&encode(&spec, Message::Accept(accept)), EcnBits::NotEct));
            }
            max = max.max(end.saturating_sub(next));
        }
        assert!(alone.session.counts().disregarded >= forged && forged > 900, "{settings:?}: {forged}");
        assert!((40..=1 << 16).contains(&max), "{settings:?}: {max}");
    }
}
