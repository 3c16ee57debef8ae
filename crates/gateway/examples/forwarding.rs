//! What the gateway adds to packets that a kernel forwards: three namespaces joined by veth pairs, as root, with the gateway
//! off, watching, and lowering every window, in turn.
//!
//! Prints the round-trip time of 64 bytes over TCP there and back (median and 99th percentile), how many small datagrams a
//! second are forwarded to a station that is sent more than it gets, and the rate of one TCP connection.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a benchmark over sockets, in real time")]

use paceline_live::gateway::{RawOptions, run};
use paceline_live::path::Stop;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::Arc;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

/// The gateway's options, by name; none: no gateway.
type Setting = Option<&'static [(&'static str, &'static str)]>;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const ROUNDS: usize = 5;
const ROUND_TRIPS: usize = 20_000;
const FLOOD: Duration = Duration::from_secs(2);
const SERVER: &str = "10.78.2.2";
const STATION: &str = "10.78.1.2";

/// The namespaces' names: stations, gateway, servers. They go with this.
struct Home([String; 3]);

fn ip(words: &str) -> Outcome<()> {
    let done = Command::new("ip").args(words.split_ascii_whitespace()).output()?;
    if done.status.success() {
        Ok(())
    } else {
        Err(format!("ip {words}: {}", String::from_utf8_lossy(&done.stderr)).into())
    }
}

impl Home {
    fn new() -> Outcome<Home> {
        let home = Home(["sta", "gw", "srv"].map(|name| format!("pl-bench-{name}-{}", std::process::id())));
        let [stations, gateway, servers] = &home.0;
        for name in &home.0 {
            ip(&format!("netns add {name}"))?;
        }
        ip(&format!("link add lan0 netns {gateway} type veth peer name sta0 netns {stations}"))?;
        ip(&format!("link add wan0 netns {gateway} type veth peer name srv0 netns {servers}"))?;
        for (name, device, address) in [
            (gateway, "lan0", "10.78.1.1"),
            (stations, "sta0", STATION),
            (gateway, "wan0", "10.78.2.1"),
            (servers, "srv0", SERVER),
        ] {
            ip(&format!("-n {name} addr add {address}/24 dev {device}"))?;
            ip(&format!("-n {name} link set {device} up"))?;
        }
        ip(&format!("-n {stations} route add default via 10.78.1.1"))?;
        ip(&format!("-n {servers} route add default via 10.78.2.1"))?;
        let forward = home.inside(1, || Ok(std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")?));
        forward.join().expect("no panic")?;
        Ok(home)
    }

    /// A thread in a namespace.
    fn inside<T: Send + 'static>(
        &self,
        place: usize,
        work: impl FnOnce() -> Outcome<T> + Send + 'static,
    ) -> JoinHandle<Outcome<T>> {
        let file = format!("/run/netns/{}", self.0[place]);
        spawn(move || {
            let namespace = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Seconds of each round trip of 64 bytes between a station and a server, sorted.
fn round_trips(home: &Home) -> Outcome<Vec<f64>> {
    let (ready, bound) = std::sync::mpsc::channel();
    let echo = home.inside(2, move || {
        let listener = TcpListener::bind((SERVER, 5001))?;
        ready.send(())?;
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0; 64];
        while stream.read_exact(&mut message).is_ok() {
            stream.write_all(&message)?;
        }
        Ok(())
    });
    bound.recv()?;
    let client = home.inside(0, || {
        let mut stream = TcpStream::connect((SERVER, 5001))?;
        stream.set_nodelay(true)?;
        let mut message = [0; 64];
        let mut took = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let began = Instant::now();
            stream.write_all(&message)?;
            stream.read_exact(&mut message)?;
            took.push(began.elapsed().as_secs_f64());
        }
        Ok(took)
    });
    let mut took = client.join().expect("no panic")?;
    echo.join().expect("no panic")?;
    took.sort_by(f64::total_cmp);
    Ok(took)
}

/// Datagrams of 64 bytes a second that reach a station while a server sends as many as it can.
fn datagrams(home: &Home) -> Outcome<f64> {
    let (ready, bound) = std::sync::mpsc::channel();
    let count = home.inside(0, move || {
        let socket = UdpSocket::bind((STATION, 7001))?;
        socket.set_read_timeout(Some(Duration::from_millis(300)))?;
        ready.send(())?;
        let (mut buffer, mut count) = ([0; 64], 0_u64);
        socket.recv(&mut buffer)?;
        let began = Instant::now();
        let mut last = began;
        while socket.recv(&mut buffer).is_ok() {
            (count, last) = (count + 1, Instant::now());
        }
        Ok(count as f64 / last.duration_since(began).as_secs_f64())
    });
    bound.recv()?;
    let flood = home.inside(2, || {
        let socket = UdpSocket::bind((SERVER, 7001))?;
        socket.connect((STATION, 7001))?;
        let began = Instant::now();
        while began.elapsed() < FLOOD {
            for _ in 0..64 {
                let _ = socket.send(&[0; 64]);
            }
        }
        Ok(())
    });
    flood.join().expect("no panic")?;
    count.join().expect("no panic")
}

/// Bits a second of one download.
fn download(home: &Home) -> Outcome<f64> {
    let (ready, bound) = std::sync::mpsc::channel();
    let server = home.inside(2, move || {
        let listener = TcpListener::bind((SERVER, 5002))?;
        ready.send(())?;
        let (mut stream, _) = listener.accept()?;
        let (piece, began) = (vec![0; 128 << 10], Instant::now());
        while began.elapsed() < FLOOD {
            stream.write_all(&piece)?;
        }
        Ok(())
    });
    bound.recv()?;
    let station = home.inside(0, || {
        let mut stream = TcpStream::connect((SERVER, 5002))?;
        let (mut buffer, began, mut bytes) = (vec![0; 128 << 10], Instant::now(), 0);
        loop {
            match stream.read(&mut buffer)? {
                0 => break,
                more => bytes += more,
            }
        }
        Ok(bytes as f64 * 8.0 / began.elapsed().as_secs_f64())
    });
    server.join().expect("no panic")?;
    station.join().expect("no panic")
}

/// One round with the gateway as `words` say, or without it: median and 99th percentile in seconds, datagrams a second,
/// bits a second.
fn round(words: Setting) -> Outcome<[f64; 4]> {
    let home = Home::new()?;
    let stop = Arc::new(Stop::new()?);
    let running = words.map(|settings| {
        let mut words = RawOptions::default();
        for (name, value) in [("lan", "lan0"), ("wan", "wan0")].iter().chain(settings) {
            *words.place(name).expect("an option") = Some((*value).to_owned());
        }
        let stop = Arc::clone(&stop);
        let thread = home.inside(1, move || Ok(run(&words.options()?, &stop, &mut |_| ())?));
        sleep(Duration::from_millis(500));
        thread
    });
    let took = round_trips(&home)?;
    let measured = [took[took.len() / 2], took[took.len() * 99 / 100], datagrams(&home)?, download(&home)?];
    stop.stop();
    if let Some(running) = running {
        running.join().expect("no panic")?;
    }
    Ok(measured)
}

fn main() -> Outcome<()> {
    let settings: [(&str, Setting); 4] = [
        ("no gateway", None),
        ("watching (TCX)", Some(&[("window", "1GB")])),
        ("window of 256 kB (TCX)", Some(&[("window", "256kB")])),
        ("window of 256 kB (cls_bpf)", Some(&[("window", "256kB"), ("hook", "cls_bpf")])),
    ];
    let mut all = vec![Vec::new(); settings.len()];
    for _ in 0..ROUNDS {
        for (rounds, (_, words)) in all.iter_mut().zip(&settings) {
            rounds.push(round(*words)?);
        }
    }
    println!("medians of {ROUNDS} rounds, in brackets their least and most");
    for (rounds, (name, _)) in all.iter().zip(&settings) {
        let shown = |at: usize, unit: f64| {
            let mut values: Vec<f64> = rounds.iter().map(|round| round[at] * unit).collect();
            values.sort_by(f64::total_cmp);
            format!("{:.1} [{:.1}, {:.1}]", values[ROUNDS / 2], values[0], values[ROUNDS - 1])
        };
        println!(
            "{name}: round trip {} us, 99 % {} us; {} thousand datagrams/s; {} Gbit/s",
            shown(0, 1e6),
            shown(1, 1e6),
            shown(2, 1e-3),
            shown(3, 1e-9)
        );
    }
    Ok(())
}
