//! The gateway on real kernel TCP, in a home of three namespaces: what it does to windows, delays and connections, and what
//! is left when it dies.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of sockets and of real time")]

use crate::{home, realtime};

use home::traffic::{Download, check, number, rate, ready, undisturbed};
use home::{Home, Place, Running, SERVER, SERVER6, STATION};
use paceline_live::clock::Clock;
use paceline_units::Span;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// 20 segments of 1448 bytes: what Nagle's algorithm fills.
const WINDOW: f64 = 28_960.0;

#[test]
#[ignore = "real time"]
fn a_window_over_the_round_trip_time_is_the_rate() {
    undisturbed("W/RTT", || {
        for (server, hook) in [(SERVER, "tcx"), (SERVER6, "tcx"), (SERVER, "cls_bpf")] {
            let segment = if server == SERVER { 1448.0 } else { 1428.0 };
            let window = 20.0 * segment;
            let home = Home::new(20);
            let gateway = home.gateway(&format!("--window {window}B --hook {hook}"));
            sleep(Duration::from_millis(400));
            let download = Download::start(&home, server, 5001, Span::from_secs(5));
            sleep(Duration::from_millis(1500));
            let rate = rate(&download, Duration::from_secs(3));
            let sent = download.end();
            let row = sent.row();
            let (said, _) = gateway.end();
            let rtt = row.rtt_mean_s.unwrap();
            let expected = window / rtt;
            println!("{server} {hook}: {rate:.0} B/s of {expected:.0}, RTT {:.2} ms", rtt * 1e3);
            assert!(number(said.lines().last().unwrap(), "lowered").unwrap() > 100.0, "{said}");
            assert_eq!(home.damaged(), 0);
            check((rate / expected - 1.0).abs() < 0.05, format!("{rate} B/s, {expected} expected ({hook})"))?;
        }
        Ok(())
    });
}

#[test]
#[ignore = "real time"]
fn what_began_before_is_left_alone() {
    undisturbed("connections begun before", || {
        let home = Home::new(20);
        let download = Download::start(&home, SERVER, 5001, Span::from_secs(5));
        sleep(Duration::from_millis(700));
        let gateway = home.gateway("--window 10kB");
        sleep(Duration::from_millis(1000));
        let rate = rate(&download, Duration::from_secs(2));
        let (said, _) = gateway.end();
        download.end();
        let last = said.lines().rev().nth(1).unwrap();
        assert_eq!(number(last, "lowered"), Some(0.0), "{last}");
        assert_eq!(number(last, "left_alone"), Some(1.0), "{last}");
        check(rate > 3.0 * 10_000.0 / 0.04, format!("{rate} B/s"))
    });
}

/// After `what` is done to the gateway, downloads go on, and are slow no longer within a second or a little more.
fn fails_open(hook: &str, what: impl Fn(&mut Option<Running>)) -> Result<(), String> {
    let home = Home::new(20);
    let mut gateway = Some(home.gateway(&format!("--window 28960B --hook {hook}")));
    sleep(Duration::from_millis(400));
    let download = Download::start(&home, SERVER, 5001, Span::from_secs(6));
    sleep(Duration::from_millis(1000));
    let before = rate(&download, Duration::from_secs(1));
    what(&mut gateway);
    sleep(Duration::from_millis(1200));
    let after = rate(&download, Duration::from_secs(1));
    println!("{hook}: {before:.0} B/s, then {after:.0}");
    let held = check(before < 1.1 * WINDOW / 0.04, format!("{before} B/s before"));
    let freed = check(after > 2.0 * before, format!("{after} B/s after, {before} before"));
    if let Some(gateway) = &gateway {
        gateway.signal(libc::SIGCONT);
    }
    drop(gateway);
    download.end();
    held?;
    freed?;
    if hook == "cls_bpf" {
        let filters = |home: &Home| home.said("tc filter show dev lan0 ingress");
        assert!(filters(&home).contains("paceline-gateway"), "{}", filters(&home));
        let (said, _) = {
            let next = home.gateway("--window 28960B --hook tcx");
            sleep(Duration::from_millis(500));
            next.end()
        };
        assert_eq!(number(said.lines().last().unwrap(), "cleared"), Some(2.0), "{said}");
        assert!(!filters(&home).contains("paceline-gateway"), "{}", filters(&home));
    }
    Ok(())
}

#[test]
#[ignore = "real time"]
fn killed_it_lets_go() {
    undisturbed("kill -9", || {
        for hook in ["tcx", "cls_bpf"] {
            fails_open(hook, |gateway| {
                gateway.as_ref().unwrap().signal(libc::SIGKILL);
                *gateway = None;
            })?;
        }
        Ok(())
    });
}

#[test]
#[ignore = "real time"]
fn stopped_it_lets_go() {
    undisturbed("SIGSTOP", || fails_open("tcx", |gateway| gateway.as_ref().unwrap().signal(libc::SIGSTOP)));
}

#[test]
#[ignore = "real time"]
fn nothing_is_left_on_the_interface() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        let home = Home::new(1);
        for hook in ["tcx", "cls_bpf"] {
            let gateway = home.gateway(&format!("--rate 10Mbit/s --hook {hook}"));
            sleep(Duration::from_millis(600));
            let shaped = home.said("tc qdisc show dev lan0");
            assert!(shaped.contains("tbf 7061: root") && shaped.contains("rate 10Mbit"), "{shaped}");
            gateway.end();
            let left = home.said("tc qdisc show dev lan0");
            assert!(!left.contains("tbf") && !left.contains("clsact"), "{left}");
        }
        // What a killed one leaves, the next clears.
        let gateway = home.gateway("--rate 10Mbit/s");
        sleep(Duration::from_millis(600));
        gateway.signal(libc::SIGKILL);
        drop(gateway);
        assert!(home.said("tc qdisc show dev lan0").contains("tbf"));
        let next = home.gateway("--for 300ms");
        sleep(Duration::from_millis(700));
        let (said, _) = next.end();
        assert_eq!(number(said.lines().last().unwrap(), "cleared"), Some(1.0), "{said}");
        assert!(!home.said("tc qdisc show dev lan0").contains("tbf"));
        // A discipline of somebody's is not replaced.
        home.said("tc qdisc add dev lan0 root handle 5: pfifo limit 100");
        let (code, text) = home.gateway("--rate 10Mbit/s").refused();
        assert!(code == Some(1) && text.contains("somebody set (pfifo, handle 5:)"), "{code:?} {text}");
    });
}

#[test]
#[ignore = "real time"]
fn refusals_say_what_to_do() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        let home = Home::new(1);
        let refused = |words: &str| home.gateway(words).refused();
        let kept = std::env::temp_dir().join(format!("paceline-gateway-{}.jsonl", std::process::id()));
        std::fs::write(&kept, "an earlier run\n").unwrap();
        let (code, text) = refused(&format!("--lan lan7 --out {}", kept.display()));
        assert_eq!(code, Some(2));
        assert!(text.contains("no interface `lan7`") && text.contains("there are") && text.contains("lan0"), "{text}");
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "an earlier run\n");
        let (code, text) = refused(&format!("--for 400ms --out {}", kept.display()));
        assert_eq!(code, Some(0), "{text}");
        let written = std::fs::read_to_string(&kept).unwrap();
        assert!(written.starts_with('{') && !written.contains("earlier"), "{written}");
        std::fs::remove_file(&kept).unwrap();
        let (code, text) = refused("--delay-from queue");
        assert!(code == Some(1) && text.contains("give --rate"), "{text}");
        let (code, text) = refused("--beta 1ms");
        assert!(code == Some(2) && text.contains("--alpha 5 ms must be at most"), "{text}");
        let (code, text) = refused("--wan lan0");
        assert!(code == Some(2) && text.contains("both lan0"), "{text}");
        // A full disk ends the file, not the gateway; a reader that has gone away before --help is no defect.
        let (code, text) = refused("--for 700ms --out /dev/full");
        assert!(code == Some(1) && text.contains("writing --out: No space left"), "{code:?} {text}");
        assert!(text.contains("the gateway goes on") && !text.contains("panicked"), "{text}");
        let program = env!("CARGO_BIN_EXE_paceline-gateway");
        let text = home.said(&format!("sh -c (sleep%0.2;%{program}%--help;%{program}%--version)|:"));
        assert_eq!(text, "");
        let (code, text) = refused("--lan lo");
        assert!(code == Some(1) && text.contains("`lo` is of type 772"), "{code:?} {text}");
        // A user of a namespace of their own has no say over this one's interfaces.
        let user = "unshare --user --map-user=1000 --map-group=1000 ";
        let text = home.said(&format!("{user}{program} --lan lan0"));
        assert!(text.contains("bpf(2): ") && text.contains("CAP_BPF and CAP_NET_ADMIN: run it with sudo"), "{text}");
    });
}

#[test]
#[ignore = "real time"]
fn what_others_do_to_the_interface_is_noticed_and_left() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        let home = Home::new(1);
        let started = |words: &str| {
            let gateway = home.gateway(words);
            sleep(Duration::from_millis(500));
            gateway
        };
        // Where filters of one direction alone have a place, there is none for the gateway's.
        home.said("tc qdisc add dev lan0 ingress");
        let (code, text) = home.gateway("--hook cls_bpf --for 5s").refused();
        assert!(code == Some(1) && text.contains("tc qdisc del dev IF ingress"), "{code:?} {text}");
        assert!(home.said("tc qdisc show dev lan0").contains("qdisc ingress ffff:"));
        home.said("tc qdisc del dev lan0 ingress");
        // A second gateway takes nothing from the first.
        let first = started("--rate 10Mbit/s --hook cls_bpf");
        let (code, text) = home.gateway("--rate 20Mbit/s --for 5s").refused();
        let expected = format!("a gateway runs on interface `lan0` already (process {}): end it first", first.id());
        assert!(code == Some(1) && text.contains(&expected), "{code:?} {text}");
        assert!(home.said("tc qdisc show dev lan0").contains("rate 10Mbit"));
        // A filter that somebody adds meanwhile stays.
        home.said("tc filter add dev lan0 ingress pref 7 bpf bytecode 1,6%0%0%4294967295");
        first.end();
        let left = home.said("tc filter show dev lan0 ingress");
        assert!(left.contains("pref 7 ") && !left.contains("paceline"), "{left}");
        assert!(!home.said("tc qdisc show dev lan0").contains("tbf"));
        // A queue that somebody puts in the shaper's place stays, and ends the gateway.
        let gateway = started("--rate 10Mbit/s --for 9s");
        home.said("tc qdisc replace dev lan0 root handle 9: pfifo limit 100");
        let (code, text) = gateway.refused();
        assert!(
            code == Some(1) && text.contains("shaper on interface `lan0` is gone, and pfifo is in its place"),
            "{text}"
        );
        assert!(home.said("tc qdisc show dev lan0").contains("pfifo 9: root"));
        // An interface that goes ends it too, wherever the delay is measured.
        for words in ["--delay-from queue", ""] {
            home.said("ip link add other0 type veth peer name other1");
            home.said("ip link set other0 up");
            home.said("tc qdisc add dev other0 root pfifo limit 100");
            let gateway = started(&format!("--lan other0 --for 9s {words}"));
            home.said("ip link set other0 down");
            home.said("ip link set other0 name other2");
            sleep(Duration::from_millis(300));
            home.said("ip link del other2");
            let (code, text) = gateway.refused();
            assert!(code == Some(1) && text.contains("interface `other0` is gone"), "{words}: {code:?} {text}");
        }
    });
}

#[test]
#[ignore = "real time"]
fn an_interface_without_ethernet_headers_will_do() {
    undisturbed("a tunnel as the LAN", || {
        let home = Home::new(5);
        // Seen from the tunnel the server is the station: its windows are in its data.
        let gateway = home.gateway("--lan wan0 --wan lan0 --window 10kB");
        sleep(Duration::from_millis(400));
        let download = Download::start(&home, SERVER, 5001, Span::from_secs(1));
        download.end();
        let (said, _) = gateway.end();
        assert_eq!(home.damaged(), 0);
        let lowered = number(said.lines().last().unwrap(), "lowered").unwrap();
        check(lowered > 100.0, format!("{lowered} windows lowered"))
    });
}

/// A game: 200 B every 50 ms to a station, which sends 42 B every 60 ms. Gives the one-way delays towards the station.
fn game(home: &Home, port: u16, stop: &Arc<AtomicBool>) -> [JoinHandle<Vec<f64>>; 2] {
    let clock = Clock::start();
    let server = home.inside(Place::Servers, move || UdpSocket::bind((SERVER, port)).unwrap());
    let station = home.inside(Place::Stations, move || UdpSocket::bind((STATION, port)).unwrap());
    let (a, b) = (Arc::clone(stop), Arc::clone(stop));
    let serving = std::thread::spawn(move || {
        while !a.load(Ordering::Relaxed) {
            let mut packet = [0; 200];
            packet[..8].copy_from_slice(&clock.now().0.to_ne_bytes());
            let _ = server.send_to(&packet, (STATION, port));
            sleep(Duration::from_millis(50));
        }
        Vec::new()
    });
    let up = station.try_clone().unwrap();
    let playing = std::thread::spawn(move || {
        station.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let (mut delays, mut packet, mut last) = (Vec::new(), [0; 300], Instant::now());
        while !b.load(Ordering::Relaxed) {
            if station.recv(&mut packet).is_ok() {
                let sent = packet[..8].try_into().map(u64::from_ne_bytes).unwrap();
                delays.push((clock.now().0 - sent) as f64 / 1e9);
            }
            if last.elapsed() > Duration::from_millis(60) {
                let _ = up.send_to(&[0; 42], (SERVER, port));
                last = Instant::now();
            }
        }
        delays
    });
    [serving, playing]
}

/// TCP's bytes a second, and median and 99th percentile of the game's delay above the path's own.
struct Evening {
    tcp: f64,
    median: f64,
    p99: f64,
}

/// Three downloads and a game before a shaper of 6 Mbit/s whose queue holds a quarter of a second.
fn evening(words: &str, warm_up: u64, measured: u64) -> Evening {
    const PATH_S: f64 = 0.010;
    let home = Home::new(10);
    let gateway = home.gateway(&format!("--rate 6Mbit/s --queue 187500B {words}"));
    sleep(Duration::from_millis(400));
    let lasting = Span::from_secs(warm_up + measured + 1);
    let downloads: Vec<Download> = (0..3).map(|i| Download::start(&home, SERVER, 5001 + i, lasting)).collect();
    sleep(Duration::from_secs(warm_up));
    let stop = Arc::new(AtomicBool::new(false));
    let playing = game(&home, 7001, &stop);
    let bytes = || downloads.iter().map(Download::bytes).sum::<u64>();
    let (began, before) = (Instant::now(), bytes());
    sleep(Duration::from_secs(measured));
    let tcp = (bytes() - before) as f64 / began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let mut delays: Vec<f64> = playing.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    for download in downloads {
        download.end();
    }
    gateway.end();
    assert_eq!(home.damaged(), 0);
    delays.sort_by(f64::total_cmp);
    assert!(delays.len() > 10 * measured as usize, "{} packets of the game", delays.len());
    let at = |q: f64| delays[((delays.len() - 1) as f64 * q) as usize] - PATH_S;
    Evening { tcp, median: at(0.5), p99: at(0.99) }
}

#[test]
#[ignore = "real time"]
fn a_game_beside_downloads_waits_less_and_downloads_lose_little() {
    undisturbed("home", || {
        // Both homes at once: they share nothing but the processors.
        let without = std::thread::spawn(|| evening("--window 100MB", 12, 15));
        let with = evening("--algorithm voap", 12, 15);
        let without = without.join().unwrap();
        println!(
            "game: median {:.1} -> {:.1} ms, 99 % {:.1} -> {:.1} ms; TCP {:.2} -> {:.2} Mbit/s",
            without.median * 1e3,
            with.median * 1e3,
            without.p99 * 1e3,
            with.p99 * 1e3,
            without.tcp * 8e-6,
            with.tcp * 8e-6
        );
        check(without.median > 0.1, format!("a queue of {} s without the gateway", without.median))?;
        check(with.median * 3.0 < without.median, format!("{} s, {} without", with.median, without.median))?;
        check(with.tcp > 0.9 * without.tcp, format!("{} B/s, {} without", with.tcp, without.tcp))
    });
}

#[test]
#[ignore = "real time"]
fn a_thousand_flows() {
    undisturbed("a thousand flows", || {
        let home = Home::new(5);
        let gateway = home.gateway("--algorithm voap --rate 100Mbit/s");
        sleep(Duration::from_millis(400));
        let listener = home.inside(Place::Servers, || TcpListener::bind((SERVER, 5001)).unwrap());
        let server = home.thread(Place::Servers, move || {
            use std::io::Write as _;
            let mut streams: Vec<TcpStream> = (0..1000).map(|_| listener.accept().unwrap().0).collect();
            for _ in 0..4 {
                for stream in &mut streams {
                    stream.write_all(&[7; 2000]).unwrap();
                }
                sleep(Duration::from_millis(300));
            }
            streams
        });
        let received = home.inside(Place::Stations, || {
            use std::io::Read as _;
            let mut streams: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect((SERVER, 5001)).unwrap()).collect();
            let mut sum = 0;
            for stream in &mut streams {
                stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let mut all = [0; 8000];
                stream.read_exact(&mut all).unwrap();
                sum += all.len();
            }
            sum
        });
        drop(server.join().unwrap());
        // Nobody has read what it says: that must not hold it up.
        let (said, _) = gateway.end();
        assert_eq!(received, 8_000_000);
        assert_eq!(home.damaged(), 0);
        let max = number(said.lines().last().unwrap(), "most_flows").unwrap();
        check(max == 1000.0, format!("{max} flows seen"))
    });
}
