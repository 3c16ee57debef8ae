//! Traffic across the home, and how tests in real time are tried.

use crate::needs;
use crate::realtime;

use super::{Home, Place};
use paceline_live::clock::Clock;
use paceline_live::gateway::bpf::attach::DataPath;
use paceline_live::kernel::flow::{Receiving, Sending, Sent, receive, send};
use paceline_units::Span;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow::Continue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

/// Whether this machine can have such a home; if not, tests are skipped, and say why.
pub fn ready() -> bool {
    needs::have("root")
        && needs::have("ip")
        && needs::have("tc")
        && needs::probed("a TUN (/dev/net/tun)", std::path::Path::new("/dev/net/tun").exists())
        && needs::probed("BPF", DataPath::load(14).is_ok())
}

/// Tries a test in real time again if others disturbed it: at most three times, then it says nothing.
pub fn undisturbed(what: &str, test: impl Fn() -> Result<(), String>) {
    if !ready() {
        return;
    }
    realtime::conclusive(|| test().map_err(|why| format!("{what}: {why}")));
}

pub fn check(holds: bool, why: String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why) }
}

/// A station's download: its bytes grow while it lasts.
pub struct Download {
    bytes: Arc<AtomicU64>,
    sender: JoinHandle<Sent>,
    receiver: JoinHandle<()>,
}

impl Download {
    /// Of `duration`, from a server's kernel with CUBIC.
    pub fn start(home: &Home, server: IpAddr, port: u16, duration: Span) -> Download {
        let clock = Clock::start();
        let listener = home.inside(Place::Servers, move || TcpListener::bind((server, port)).unwrap());
        let sender = home.thread(Place::Servers, move || {
            let (stream, _) = listener.accept().unwrap();
            let options = Sending { congestion_control: Some("cubic".to_owned()), ..Sending::lasting(duration) };
            send(&stream, &options, clock, &mut |_| Continue(())).unwrap()
        });
        let bytes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&bytes);
        let receiver = home.thread(Place::Stations, move || {
            let address = SocketAddr::new(server, port);
            let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).unwrap();
            let tick = &mut |bytes| {
                counted.store(bytes, Ordering::Relaxed);
                Continue(())
            };
            receive(&stream, &Receiving::default(), clock, tick).unwrap();
        });
        Download { bytes, sender, receiver }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn end(self) -> Sent {
        let sent = self.sender.join().unwrap();
        self.receiver.join().unwrap();
        sent
    }
}

/// Bytes a second over `span`.
pub fn rate(download: &Download, span: Duration) -> f64 {
    let (began, before) = (Instant::now(), download.bytes());
    sleep(span);
    (download.bytes() - before) as f64 / began.elapsed().as_secs_f64()
}

pub fn number(line: &str, name: &str) -> Option<f64> {
    let rest = line.split(&format!("\"{name}\":")).nth(1)?;
    rest.split([',', '}']).next()?.parse().ok()
}
