//! Sessions over QUIC: quinn's machine at both ends of a path in memory, every carriage, keys, faults.

use super::DONE;
use super::pair::{GOOD, Pair, Path, spec};
use paceline_control::{Profile, registry};
use paceline_flow::quic::{Carriage, QuicConfig, TrackConfig};
use paceline_flow::{Datagrams as _, ForeignReceiver as _, ForeignSender as _};
use paceline_live::endpoint::half::{Before, EVERY, Half, Recorder};
use paceline_live::quic::{CloseReason, Keys, OwnKey, Receiving, Sending};
use paceline_live::session::{
    EcnBits, End, Family, Input, ReplayError, SILENCE, Session, SessionSpec, Side, State, replay,
};
use paceline_packet::Flags;
use paceline_quinn::Controllers;
use paceline_scenario::{Document, Scenario};
use paceline_sim::summary::FlowSummary;
use paceline_sim::{RunOptions, simulate};
use paceline_units::{Span, Time};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Ends that know each other's keys.
pub fn keys() -> [Option<Keys>; 2] {
    let [near, far] = [OwnKey::generate().unwrap(), OwnKey::generate().unwrap()];
    let peers = [far.fingerprint(), near.fingerprint()];
    [Some(Keys { own: near, peer: Some(peers[0]) }), Some(Keys { own: far, peer: Some(peers[1]) })]
}

fn specs(settings: &[(&str, &str)], seconds: u64) -> [SessionSpec; 2] {
    let all: Vec<_> = [("transport", "quic")].into_iter().chain(settings.iter().copied()).collect();
    let sender = spec(&all, seconds, Side::Sender);
    [sender.clone(), SessionSpec { side: Side::Receiver, ..sender }]
}

pub fn pair(settings: &[(&str, &str)], seconds: u64, path: Path) -> Pair {
    Pair::with_keys(specs(settings, seconds), keys(), path)
}

/// Where two have what one writes.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The keys are others each time, what the controller was told is not: it does the same again, whichever it is.
#[test]
fn what_a_controller_was_told_it_does_again() {
    for cc in ["newreno", "cubic", "vegas", "bbr", "bbr3", "copa", "c4"] {
        let mut pair = pair(&[("cc", cc)], 5, Path { loss: 0.01, late: 0.005, ..GOOD });
        let to = Shared::default();
        pair.sender().log_calls(Box::new(to.clone())).unwrap();
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{cc}");
        let stats = pair.sender().source().sender.stats().clone();
        let log = to.0.lock().unwrap().clone();
        let done = replay(&log).unwrap_or_else(|error| panic!("{cc}: {error}"));
        assert_eq!((done.datagrams, done.unread), (stats.packets_sent, 0), "{cc}");
        assert!(stats.retransmitted > 0 && done.inputs > done.datagrams * 5 / 4, "{cc}: {done:?}");
        let end = done.end.as_secs_f64();
        assert!((4.9..6.0).contains(&end), "{cc}: {end}");
        let cut = replay(&log[..log.len() * 2 / 3]).unwrap();
        assert!(cut.inputs > 100 && cut.inputs < done.inputs, "{cc}: {cut:?}");
        // the last figure is what the controller had come to: another one is noticed
        let mut spoilt = log.clone();
        let last = spoilt.len() - 1;
        spoilt[last] ^= 1;
        match replay(&spoilt) {
            Err(ReplayError::Diverged(found)) => assert_eq!(found.input, done.inputs - 1, "{cc}: {found}"),
            other => panic!("{cc}: {other:?}"),
        }
        // another seed is another controller of those that draw
        let seed = b"\"seed\":7";
        let at = log.windows(seed.len()).position(|here| here == seed).expect("a seed") + seed.len() - 1;
        let mut other = log.clone();
        other[at] = b'8';
        assert_eq!(replay(&other).is_err(), matches!(cc, "bbr" | "bbr3"), "{cc}: {:?}", replay(&other));
    }
}

#[test]
fn a_transfer_fills_the_path_and_ends() {
    let mut pair = pair(&[], 10, GOOD);
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), DONE);
    let (goodput, payload) = (pair.goodput(10.0), 1440.0 / 1500.0);
    assert!((0.95 * payload * 2e6..2e6).contains(&goodput), "{goodput}");
    let (sent, received) = (pair.sender().source().sender.stats(), pair.receiver().sink().receiver.stats());
    assert_eq!(sent.bytes_acked, received.bytes);
    assert!(sent.packets_sent >= received.packets && sent.retransmitted > 0, "{sent:?} {received:?}");
    let rtt = [sent.rtt_min(), sent.mean_rtt()].map(|rtt| rtt.unwrap().as_secs_f64());
    // 40 ms of path and 6 of a packet; the queue holds 100
    assert!(rtt[0] >= 0.040 && rtt[0] < 0.050 && (0.05..0.16).contains(&rtt[1]), "{rtt:?}");
    assert!(pair.ends.iter().all(|end| end.session.counts().garbage == 0));
}

#[test]
fn what_is_written_comes_whole_over_a_bad_path() {
    let bad = Path { loss: 0.02, late: 0.02, twice: 0.01, damaged: 0.01, ..GOOD };
    for carriage in ["stream", "stream-each"] {
        let app = "{ kind = \"ftp\", size = \"500 kB\" }";
        let mut pair = pair(&[("app", app), ("quic.carriage", carriage)], 30, bad);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{carriage}");
        assert!(pair.sender().source().is_finished(), "{carriage}");
        assert_eq!(pair.receiver().sink().receiver.stats().bytes, 500_000, "{carriage}");
    }
}

/// Transfers on a stream that goes on are over when the acknowledgement of all is there, not when the flow stops.
#[test]
fn a_transfer_on_one_stream_is_over_when_all_is_acknowledged() {
    for (size, carriage) in [1, 1_440, 100_000].into_iter().flat_map(|size| [(size, "stream"), (size, "stream-each")]) {
        let app = format!("{{ kind = \"ftp\", size = \"{size} B\" }}");
        let mut pair = pair(&[("app", &app), ("quic.carriage", carriage)], 10, GOOD);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{size} {carriage}");
        let transfers = pair.sender().source().transfers();
        let seconds = transfers.mean_time.unwrap().as_secs_f64();
        // two round trips of 40 ms, a late acknowledgement, and the path's time for so much
        let max = 0.080 + 0.025 + size as f64 * 8.0 / 2e6 * 1.05 + 0.060;
        assert_eq!((transfers.completed, acked_and_received(&pair)), (1, (size, size)), "{size} {carriage}");
        assert!((0.08..max).contains(&seconds), "{size} {carriage}: {seconds}");
    }
    // each page begins when the one before has been read: so many by each carriage
    let pages = ["stream", "stream-each"].map(|carriage| {
        let app = "{ kind = \"web\", arrivals = \"think-persistent\", gap = \"100 ms\", mean_size = \"10 kB\" }";
        let mut pair = pair(&[("app", app), ("quic.carriage", carriage)], 20, GOOD);
        pair.run(Time::NEVER);
        pair.sender().source().transfers().completed
    });
    assert!(pages[1] > 40 && pages[0] * 10 >= pages[1] * 9, "{pages:?}");
}

/// The close comes half a second after the last data, and is none.
#[test]
fn what_ends_a_flow_is_no_data() {
    for app in ["{ kind = \"cbr\", rate = \"1 Mbit/s\" }", "{ kind = \"ftp\", size = \"100 kB\" }"] {
        let mut pair = pair(&[("app", app)], 1, GOOD);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE);
        let (ended, received) = (pair.now.as_secs_f64(), pair.receiver().sink().receiver.stats());
        let last = (pair.receiver().epoch() + received.last.since(Time::ZERO)).as_secs_f64();
        assert!(received.bytes >= 100_000 && last > 0.3, "{app}: {received:?}");
        assert!((0.45..0.7).contains(&(ended - last)), "{app}: {last} of {ended}");
    }
}

#[test]
fn a_write_is_a_packet() {
    for segment in [1472, 1300] {
        let cbr = ("app", "{ kind = \"cbr\", rate = \"1 Mbit/s\" }");
        let mut pair = pair(&[cbr, ("segment", &format!("{segment} B"))], 5, GOOD);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE);
        let (sent, (acked, received)) = (pair.sender().source().sender.stats(), acked_and_received(&pair));
        let writes = received / (segment - 45); // packet's and stream's headers
        assert!(acked == received && (0.99e6..1.01e6).contains(&pair.goodput(5.0)), "{segment}: {acked} of {received}");
        // a handshake, and limits of the other end that are acknowledged
        assert!(sent.packets_sent < writes + 30, "{segment}: {} of {received} bytes", sent.packets_sent);
    }
}

#[test]
fn frames_come_by_every_carriage() {
    for carriage in ["stream", "stream-each", "stream-per-group", "datagrams"] {
        let app = "{ kind = \"encoder\", max_rate = \"1 Mbit/s\" }";
        let mut pair = pair(&[("app", app), ("quic.carriage", carriage)], 10, GOOD);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{carriage}");
        let frames = pair.sender().source().frames().unwrap();
        let seen = pair.receiver().sink().view_report(Time::from_secs_f64(10.0)).unwrap();
        assert!(frames > 200 && seen.complete <= frames && seen.complete * 100 >= frames * 98, "{carriage} {seen:?}");
        // headers are no payload
        let (sent, received) = (pair.sender().source().sender.stats(), pair.receiver().sink().receiver.stats());
        assert!(sent.bytes_acked <= received.bytes, "{carriage}: {sent:?} {received:?}");
        let goodput = pair.goodput(10.0);
        assert!((0.5e6..1.05e6).contains(&goodput), "{carriage}: {goodput}");
    }
}

/// The first frame waits for the handshake, a round trip of 40 ms and more: others are told from the fastest, not as slow as it.
#[test]
fn frames_that_are_faster_than_the_first_have_less_delay() {
    for carriage in ["stream", "stream-each", "stream-per-group", "datagrams"] {
        let app = "{ kind = \"encoder\", max_rate = \"1 Mbit/s\", min_rate = \"900 kbit/s\", key_size = 1 }";
        let settings = [("app", app), ("quic.carriage", carriage)];
        let mut pair = pair(&settings, 10, GOOD);
        let model = specs(&settings, 10)[1].flow.model().unwrap();
        let mut recorder = Recorder::new(&pair.ends[1].session, &model, EVERY);
        for tenth in 1..120 {
            pair.run(Time::from_secs_f64(f64::from(tenth) / 10.0));
            let now = pair.now;
            recorder.sample(now, &mut pair.ends[1].session);
        }
        assert_eq!(pair.states(), DONE, "{carriage}");
        let min = pair.receiver().sink().min_frame_delay().unwrap().as_secs_f64();
        assert!((-0.1..-0.03).contains(&min), "{carriage}: the first came as it was captured, others sooner: {min}");
        let now = pair.now;
        let half = Half::of(&mut pair.ends[1].session, &model, recorder, now, &Before::default());
        // frames of 3 to 5 kB take 12 to 20 ms of the path's time
        let (row, max) = (&half.row, half.row.frame_delay_max_s.unwrap());
        let (p50, p95) = (row.frame_delay_p50_s.unwrap(), row.frame_delay_p95_s.unwrap());
        assert!((0.001..0.03).contains(&p50) && p50 < p95 && p95 < 0.04, "{carriage}: {row:?}");
        assert!(max + min > -1e-9, "{carriage}: the first is no slower than the slowest: {row:?}");
        let frames = half.tables.iter().find(|table| table.table == "frames").unwrap();
        let delays = &frames.columns.iter().find(|(name, _)| name == "frame_delay_s").unwrap().1.0;
        let known = || delays.iter().filter(|delay| !delay.is_nan());
        assert!(known().count() > 90 && known().all(|delay| (0.0..=max).contains(delay)), "{carriage}: {delays:?}");
        assert!(delays[20..90].iter().all(|delay| (0.001..0.04).contains(delay)), "{carriage}: {delays:?}");
    }
}

#[test]
fn what_is_late_is_given_up() {
    // a path of half the rate that is written
    let slow = Path { rate: 0.5e6, queue: Span::from_millis(200), ..GOOD };
    for carriage in ["stream-each", "stream-per-group", "datagrams"] {
        let app = "{ kind = \"encoder\", max_rate = \"1 Mbit/s\", min_rate = \"900 kbit/s\" }";
        let settings = [("app", app), ("quic.carriage", carriage), ("quic.deadline", "300 ms")];
        let mut pair = pair(&settings, 10, slow);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{carriage}");
        let frames = pair.sender().source().frames().unwrap();
        let seen = pair.receiver().sink().view_report(Time::from_secs_f64(10.0)).unwrap();
        assert!(seen.complete > 0 && seen.complete < frames * 8 / 10, "{carriage}: {} of {frames}", seen.complete);
        let sent = pair.sender().source().sender.stats();
        assert_eq!(sent.frames, frames, "{carriage}");
        // datagrams are lost too, and some frames of a stream that is reset have come
        let gone = frames - seen.complete;
        assert!(sent.frames_reset >= gone / 4 && sent.frames_reset <= frames, "{carriage}: {sent:?}, {gone} gone");
    }
}

/// A group goes on for longer than the deadline of a frame: what is acknowledged in time is not given up.
#[test]
fn what_is_in_time_is_not_given_up() {
    for carriage in ["stream-each", "stream-per-group", "datagrams"] {
        let app = "{ kind = \"encoder\", max_rate = \"1 Mbit/s\" }";
        let settings = [("app", app), ("quic.carriage", carriage), ("quic.deadline", "300 ms")];
        let mut pair = pair(&settings, 10, GOOD);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{carriage}");
        let (frames, sent) = (pair.sender().source().frames().unwrap(), pair.sender().source().sender.stats());
        let seen = pair.receiver().sink().view_report(Time::from_secs_f64(10.0)).unwrap();
        assert_eq!((sent.frames, sent.frames_reset), (frames, 0), "{carriage}");
        assert!(seen.complete + 2 >= frames, "{carriage}: {} of {frames}", seen.complete);
    }
}

/// A group of which one frame is too old is given up with what is left of it, as in the simulator's machine; the next one comes whole.
#[test]
fn what_is_left_of_a_group_that_was_given_up_is_of_no_use() {
    let mut config = QuicConfig::new(Profile::Rfc, registry::scheme("cubic").unwrap());
    let deadline = Some(Span::from_millis(100));
    config.track = TrackConfig { carriage: Carriage::StreamPerGroup, deadline, frames: true, ..config.track };
    let [near, far] = keys().map(Option::unwrap);
    let mut sender = Sending::new(&config, Controllers::new("cubic", &[], 1).unwrap(), &near, Arc::default());
    let mut receiver = Receiving::new(&config, &far, Arc::default());
    sender.start(Time::ZERO);
    // 10 Mbit/s there, 10 ms each way; a frame's size is its number
    let (mut there, mut back, mut free, mut received) = (VecDeque::new(), VecDeque::new(), Time::ZERO, Vec::new());
    let arrived = |flying: &mut VecDeque<(Time, Vec<u8>)>, now| {
        flying.front().is_some_and(|(at, _)| *at <= now).then(|| flying.pop_front()).flatten()
    };
    for tenth in 0..30_000u64 {
        let now = Time::ZERO + Span::from_micros(100) * tenth;
        if tenth % 330 == 0 && tenth < 30 * 330 {
            // the fifth of the second group is far too large for a hundred milliseconds
            let n = tenth / 330;
            sender.supply(if n == 14 { 400_000 } else { 1000 + n }, n % 10 == 0, now);
        }
        while let Some((_, bytes)) = arrived(&mut there, now) {
            receiver.on_datagram(now, &bytes, Flags::NONE);
        }
        while let Some((_, bytes)) = arrived(&mut back, now) {
            sender.on_datagram(now, &bytes, Flags::NONE);
        }
        sender.on_timer(now);
        receiver.on_timer(now);
        let mut bytes = Vec::new();
        while sender.datagram(now, &mut bytes).is_some() {
            free = free.max(now) + Span(800 * bytes.len() as u64);
            there.push_back((free + Span::from_millis(10), std::mem::take(&mut bytes)));
        }
        while receiver.datagram(now, &mut bytes).is_some() {
            back.push_back((now + Span::from_millis(10), std::mem::take(&mut bytes)));
        }
        received.extend(receiver.take_objects().into_iter().map(|frame| frame.size - 1000));
    }
    assert_eq!(received, (0..14).chain(20..30).collect::<Vec<_>>());
    assert_eq!((sender.stats().frames, sender.stats().frames_reset), (30, 6));
    assert!(sender.acked_all(), "nothing is owed of what was given up");
}

#[test]
fn another_key_is_no_other_end() {
    let [near, far] = keys();
    let other = OwnKey::generate().unwrap();
    let wrong = |keys: &Option<Keys>| keys.clone().map(|keys| Keys { peer: Some(other.fingerprint()), ..keys });
    for keys in [[wrong(&near), far.clone()], [near.clone(), wrong(&far)], [None, far.clone()], [near.clone(), None]] {
        let mut pair = Pair::with_keys(specs(&[], 10), keys, GOOD);
        pair.run(Time::from_secs_f64(3.0));
        assert_eq!(pair.states()[0], State::Ended(End::Quic(CloseReason::Key)));
        assert!(matches!(pair.states()[1], State::Ended(_)), "{:?}", pair.states());
        assert_eq!(pair.receiver().sink().receiver.stats().bytes, 0);
    }
}

#[test]
fn a_cut_is_survived_and_a_long_one_is_the_end() {
    let second = Span::from_secs(1);
    let from = Time::ZERO + second * 3;
    let mut short = pair(&[], 20, Path { cut: (from, from + second * 5), ..GOOD });
    short.run(Time::NEVER);
    assert_eq!(short.states(), DONE);
    assert!(short.goodput(15.0) > 1e6, "{}", short.goodput(15.0));
    let mut long = pair(&[], 30, Path { cut: (from, Time::NEVER), ..GOOD });
    long.run(Time::NEVER);
    assert_eq!(long.states(), [State::Ended(End::Silence); 2]);
}

/// QUIC's close leaves once (RFC 9000, 10.2.1), the agreement's several times: a flow ends with one of them, or with the silence.
#[test]
fn a_close_that_is_lost_ends_the_receiver_all_the_same() {
    let ftp = ("app", "{ kind = \"ftp\", size = \"100 kB\" }");
    let run = |cut| {
        let mut pair = pair(&[ftp], 10, Path { cut, ..GOOD });
        pair.run(Time::NEVER);
        pair
    };
    // half a second after the last data, and a round trip before the end
    let ended = run(GOOD.cut).now;
    let ms = Span::from_millis;
    let from = Time::ZERO + (ended.since(Time::ZERO) - ms(200));
    let once = run((from, ended + ms(10)));
    assert_eq!((once.states(), acked_and_received(&once)), (DONE, (100_000, 100_000)));
    assert!(once.now > ended + ms(50) && once.now < ended + ms(1500), "{:?}, {ended:?}", once.now);
    let never = run((from, Time::NEVER));
    assert_eq!(never.states(), [State::Ended(End::Done), State::Ended(End::Silence)]);
    assert_eq!(acked_and_received(&never), (100_000, 100_000));
    assert!(never.now > from + Span::from_secs(10) && never.now < from + SILENCE, "{:?}, {from:?}", never.now);
}

#[test]
fn a_stop_ends_it_and_keeps_what_came() {
    let mut pair = pair(&[], 60, GOOD);
    pair.run(Time::from_secs_f64(5.0));
    let before = pair.goodput(5.0);
    pair.input(0, Input::Stop);
    pair.run(Time::NEVER);
    assert_eq!(pair.states(), [State::Ended(End::Stopped), State::Ended(End::Done)]);
    assert!(before > 1.5e6 && pair.now < Time::from_secs_f64(7.0), "{before}, {:?}", pair.now);
}

#[test]
fn what_a_real_connection_cannot_have_is_refused() {
    for (key, value, says) in [
        ("cc", "prague", "tells only that some were"),
        ("quic.handshake", "done", "simulator alone"),
        ("quic.handshake", "zero-rtt", "one-rtt"),
    ] {
        let [sender, _] = specs(&[(key, value)], 10);
        let said = Session::new(&sender).unwrap_err().to_string();
        assert!(said.contains(key) && said.contains(says), "{said}");
    }
}

#[test]
fn every_window_controller_fills_the_path() {
    let mut ran = 0;
    for scheme in paceline_control::registry::schemes() {
        let settings = [("cc", scheme.name)];
        if Session::new(&specs(&settings, 15)[0]).is_err() {
            continue;
        }
        ran += 1;
        let mut pair = pair(&settings, 15, Path { rate: 10e6, ..GOOD });
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{}", scheme.name);
        let (goodput, payload) = (pair.goodput(15.0), 1440.0 / 1500.0);
        assert!((0.9 * payload * 10e6..10e6).contains(&goodput), "{}: {goodput}", scheme.name);
    }
    assert!(ran > 8, "{ran}");
}

/// Packets leave by the controller's rate: shares of the link and round trips are those of the simulator's machine, on a queue of ten packets too, which is the
/// burst that quinn's own pacing makes.
#[test]
fn controllers_do_as_in_the_simulator() {
    let ccs = ["newreno", "cubic", "bbr3", "c4"];
    for (cc, queue) in ccs.into_iter().flat_map(|cc| [(cc, 12), (cc, 100)]) {
        let path = Path { rate: 10e6, queue: Span::from_millis(queue), ..GOOD };
        // keys and numbers that quinn draws make BBR 3's round trips differ by 1 % from run to run, and no other's
        let runs: Vec<(f64, f64)> = (0..if cc == "bbr3" { 3 } else { 1 })
            .map(|_| {
                let mut pair = pair(&[("cc", cc)], 20, path);
                pair.run(Time::NEVER);
                (pair.goodput(20.0), pair.sender().source().sender.stats().mean_rtt().unwrap().as_secs_f64())
            })
            .collect();
        let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let simulated = simulated(cc, queue);
        let (goodput, trip, of_trip) = (mean(|run| run.0), mean(|run| run.1), simulated.rtt_mean_s.unwrap());
        println!("{cc} {queue}: {goodput:.0} of {:.0} bit/s, {trip:.5} of {of_trip:.5} s", simulated.goodput_bps);
        assert!((goodput / simulated.goodput_bps - 1.0).abs() < 0.02, "{cc}: {goodput}, {}", simulated.goodput_bps);
        assert!((trip / of_trip - 1.0).abs() < 0.03, "{cc}: {trip} s, {of_trip} s");
    }
}

/// The same over the simulator's link.
fn simulated(cc: &str, queue: u64) -> FlowSummary {
    let text = format!(
        "duration = \"20 s\"\nhost_delay = \"0 s\"\n[access]\nrate = \"10 Gbit/s\"\ndelay = \"0 s\"\n\
         [link.bottleneck]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\nqueue = {{ limit = \"{} B\" }}\n\
         [flow.one]\ncc = \"{cc}\"\ntransport = \"quic\"\n",
        queue * 1250
    );
    let document = Document::parse(&text, "path.toml").unwrap();
    let scenario = Scenario::check(&document, &mut |_| Err("none".into())).unwrap();
    simulate(&scenario, 1, &RunOptions::default()).unwrap().summary.flows.remove(0)
}

/// What is over, and its end, of a run: how much the sender takes for acknowledged, and how much came.
fn acked_and_received(pair: &Pair) -> (u64, u64) {
    (pair.sender().source().sender.stats().bytes_acked, pair.receiver().sink().receiver.stats().bytes)
}

#[test]
fn what_was_acknowledged_has_come_whatever_happens() {
    let second = Span::from_secs(1);
    let from = Time::ZERO + second * 3;
    // groups of 0.3 s: of one that is given up nothing more comes
    let app = "{ kind = \"encoder\", max_rate = \"1 Mbit/s\", min_rate = \"900 kbit/s\", key_interval = \"300 ms\" }";
    let encoder = ("app", app);
    // the connection is over after a second of silence, and another one begins where the application writes frames
    let cut = Path { cut: (from, from + second * 3), ..GOOD };
    // too slow for the encoder at times, so frames are given up, yet most groups arrive whatever the keys' sizes are
    let bad = Path { rate: 0.8e6, loss: 0.05, late: 0.02, queue: Span::from_millis(300), ..GOOD };
    let (idle, late) = (("quic.idle_timeout", "1 s"), ("quic.deadline", "300 ms"));
    for carriage in ["stream", "stream-each", "stream-per-group", "datagrams"] {
        let carried = ("quic.carriage", carriage);
        let frames: &[_] = if carriage == "stream" { &[encoder, carried] } else { &[encoder, carried, late] };
        for (settings, path) in [(&[frames, &[idle]].concat(), cut), (&frames.to_vec(), bad)] {
            let mut pair = pair(settings, 10, path);
            pair.run(Time::NEVER);
            assert_eq!(pair.states(), DONE, "{settings:?}");
            let (acked, received) = acked_and_received(&pair);
            assert!(acked > 5_000 && acked <= received, "{settings:?}, {path:?}: {acked} of {received}");
        }
    }
    let mut bulk = pair(&[idle], 8, Path { cut: (from, Time::NEVER), ..GOOD });
    bulk.run(Time::from_secs_f64(6.0));
    let (acked, received) = acked_and_received(&bulk);
    assert!(acked > 500_000 && acked <= received, "{acked} of {received}");
}

#[test]
fn few_streams_and_small_windows_carry_all() {
    let encoder = ("app", "{ kind = \"encoder\", max_rate = \"1 Mbit/s\", key_size = 8 }");
    let each = ("quic.carriage", "stream-each");
    // frames of 5 kB and 40 kB; a window of 8 kB in 46 ms is 1.4 Mbit/s
    for limits in [
        &[each, ("quic.max_streams", "2")][..],
        &[each, ("quic.stream_window", "8 kB")],
        &[each, ("quic.receive_window", "8 kB")],
        &[("quic.carriage", "stream-per-group"), ("quic.max_streams", "1"), ("quic.stream_window", "8 kB")],
        &[("quic.carriage", "datagrams"), ("quic.receive_window", "8 kB")],
    ] {
        let settings = [&[encoder], limits].concat();
        let mut pair = pair(&settings, 10, GOOD);
        pair.run(Time::NEVER);
        assert_eq!(pair.states(), DONE, "{limits:?}");
        let frames = pair.sender().source().frames().unwrap();
        let seen = pair.receiver().sink().view_report(Time::from_secs_f64(10.0)).unwrap();
        assert!(
            frames > 100 && seen.complete <= frames && seen.complete + 3 >= frames,
            "{limits:?}: {frames} {seen:?}"
        );
    }
    // one write, greater than all that an end keeps
    let film = ("app", "{ kind = \"ftp\", size = \"9 MB\" }");
    let mut pair = pair(&[film, each, ("quic.stream_window", "64 kB")], 60, Path { rate: 20e6, ..GOOD });
    pair.run(Time::NEVER);
    assert_eq!((pair.states(), acked_and_received(&pair)), (DONE, (9_000_000, 9_000_000)));
}

#[test]
fn another_version_is_answered_by_ours_once_and_by_no_more_than_came() {
    let [_, far] = keys();
    let config = QuicConfig::new(Profile::Rfc, registry::scheme("cubic").unwrap());
    let mut end = Receiving::new(&config, &far.unwrap(), Arc::default());
    // a long header (RFC 8999): version 2 (RFC 9369), two connection IDs
    let mut initial = vec![0xd0, 0x6b, 0x33, 0x43, 0xcf, 8, 1, 2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    initial.resize(1200, 0);
    for number in 0..100 {
        let now = Time::ZERO + Span::from_millis(number);
        end.on_datagram(now, &initial, Flags::NONE);
        let mut answer = Vec::new();
        assert!(end.datagram(now, &mut answer).is_some());
        assert!(answer.len() < 60 && answer[1..5] == [0; 4] && answer.windows(4).any(|four| four == [0, 0, 0, 1]));
        assert!(end.datagram(now, &mut Vec::new()).is_none());
    }
    assert_eq!(end.stats().bytes, 0);
}

/// The first datagram of a connection that somebody else opens.
fn first_of_a_stranger() -> Vec<u8> {
    let [near, _] = keys();
    let config = QuicConfig::new(Profile::Rfc, registry::scheme("cubic").unwrap());
    let controllers = Controllers::new("cubic", &[], 1).unwrap();
    let mut end = Sending::new(&config, controllers, &near.unwrap(), Arc::default());
    end.start(Time::ZERO);
    let mut first = Vec::new();
    assert!(end.datagram(Time::ZERO, &mut first).is_some() && first.len() >= 1200);
    first
}

/// Who can forge a flow's addresses can send a first packet: the connection that lives goes on, as one that its own end opens after it.
#[test]
fn a_strangers_first_packets_end_no_connection() {
    let film = ("app", "{ kind = \"ftp\", size = \"4 MB\" }");
    let mut pair = pair(&[film], 60, GOOD);
    let (mut forged, mut last) = (0, first_of_a_stranger());
    for tenth in 0..600 {
        pair.run(Time::from_secs_f64(f64::from(tenth) / 10.0));
        if pair.states() == DONE {
            break;
        }
        if tenth % 3 > 0 {
            last = first_of_a_stranger();
        }
        pair.input(1, Input::Datagram(&last, EcnBits::NotEct));
        forged += 1;
    }
    assert!(forged > 10, "{forged}");
    assert_eq!((pair.states(), acked_and_received(&pair)), (DONE, (4_000_000, 4_000_000)));
}

/// What does not go into one packet is refused, not cut; by itself a flow has full packets of either family.
#[test]
fn a_segment_is_no_more_than_the_family_carries() {
    for (family, segment, said) in [
        (Family::V4, "1460 B", Ok(1460)),
        (Family::V6, "1452 B", Ok(1452)),
        (Family::V6, "1472 B", Ok(1452)),
        (
            Family::V6,
            "1453 B",
            Err(
                "segment: `1453 B` is more than a packet of 1500 B carries over IPv6: a real flow has 1452 B at most there",
            ),
        ),
    ] {
        let [mut sender, _] = specs(&[("segment", segment), ("app", "{ kind = \"game\" }")], 5);
        sender.flow.family = family;
        match (sender.flow.model(), said) {
            (Ok(model), Ok(max)) => assert_eq!(model.transport.segment(), max),
            (Err(error), Err(said)) => assert!(error.to_string().contains(said), "{error}"),
            (found, _) => panic!("{segment} over {family:?}: {:?}", found.map(|model| model.transport.segment())),
        }
    }
}
