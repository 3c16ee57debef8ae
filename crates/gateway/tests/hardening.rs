//! The gateway among connections it must not touch, users who want it gone, and with no more rights than it needs.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of sockets and of real time")]

use crate::{home, needs, realtime};

use home::traffic::{number, ready};
use home::{Home, Place, SERVER, STATION};
use rustix::fd::{AsFd, AsRawFd};
use rustix::net::{AddressFamily, SocketType};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::thread::sleep;
use std::time::Duration;

/// Has a socket sign what it sends to `peer`, and take nothing else from it (RFC 2385).
fn sign(socket: &impl AsFd, peer: IpAddr) -> bool {
    let IpAddr::V4(peer) = peer else { unreachable!("the home's first addresses") };
    // struct tcp_md5sig, linux/tcp.h: an address, flags and lengths, the key.
    let mut request = [0_u8; 216];
    request[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    request[4..8].copy_from_slice(&peer.octets());
    request[130..132].copy_from_slice(&6_u16.to_ne_bytes());
    request[136..142].copy_from_slice(b"secret");
    let (fd, len) = (socket.as_fd().as_raw_fd(), request.len() as u32);
    // SAFETY: a whole structure and its size.
    unsafe { libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_MD5SIG, request.as_ptr().cast(), len) == 0 }
}

/// Waits for something to be there.
fn until(what: &str, there: impl Fn() -> bool) {
    for _ in 0..200 {
        if there() {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("there is no {what}");
}

#[test]
#[ignore = "real time"]
fn a_signed_connection_lives() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        let home = Home::new(2);
        // The shaper is there before the programs, and lets all through.
        let gateway = home.gateway("--window 30kB --rate 1Gbit/s");
        until("shaper", || home.said("tc qdisc show dev lan0").contains("tbf"));
        sleep(Duration::from_millis(300));
        let listener = home.inside(Place::Servers, || TcpListener::bind((SERVER, 5001)).unwrap());
        if !needs::probed("TCP-MD5 (CONFIG_TCP_MD5SIG)", sign(&listener, STATION)) {
            return;
        }
        const BYTES: usize = 2_000_000;
        let server = home.thread(Place::Servers, move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(&vec![7; BYTES]);
        });
        let received = home.inside(Place::Stations, || {
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            assert!(sign(&socket, SERVER));
            rustix::net::connect(&socket, &SocketAddr::new(SERVER, 5001)).unwrap();
            let mut stream = TcpStream::from(socket);
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut all = Vec::new();
            let _ = stream.read_to_end(&mut all);
            all.len()
        });
        assert_eq!(received, BYTES);
        server.join().unwrap();
        // A few intervals later.
        sleep(Duration::from_secs(1));
        let (said, _) = gateway.end();
        let max = said.lines().filter_map(|line| number(line, "left_alone")).fold(0.0, f64::max);
        assert_eq!(max, 1.0, "it is shown as one that is left alone");
        assert_eq!(number(said.lines().last().unwrap(), "lowered"), Some(0.0));
    });
}

#[test]
#[ignore = "real time"]
fn a_user_cannot_take_the_gateways_place() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        let home = Home::new(1);
        let squatter = home.inside(Place::Gateway, || {
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
            let index = rustix::net::netdevice::name_to_index(&socket, "lan0").unwrap();
            // SAFETY: takes a number, for this thread alone, which ends with this: the kernel notes who began to listen.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, -1, 65_534, -1) }, 0);
            let name = format!("paceline-gateway-{index}");
            UnixListener::bind_addr(&UnixAddr::from_abstract_name(name).unwrap()).unwrap()
        });
        let first = home.gateway("--rate 10Mbit/s");
        until("shaper", || home.said("tc qdisc show dev lan0").contains("rate 10Mbit"));
        // What two gateways take from each other they still do not.
        let (code, text) = home.gateway("--rate 20Mbit/s --for 5s").refused();
        assert!(code == Some(1) && text.contains("a gateway runs on interface `lan0` already"), "{code:?} {text}");
        drop(squatter);
        let (code, text) = home.gateway("--rate 20Mbit/s --for 5s").refused();
        assert!(code == Some(1) && text.contains("a gateway runs on interface `lan0` already"), "{code:?} {text}");
        assert!(home.said("tc qdisc show dev lan0").contains("rate 10Mbit"));
        first.signal(libc::SIGKILL);
        drop(first);
        let (code, text) = home.gateway("--for 200ms").refused();
        assert_eq!(code, Some(0), "{text}");
    });
}

#[test]
#[ignore = "real time"]
fn root_without_capabilities_is_told_which() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        let home = Home::new(1);
        let program = env!("CARGO_BIN_EXE_paceline-gateway");
        let text = home.said(&format!("setpriv --bounding-set -net_admin,-bpf {program} --lan lan0 --for 1s"));
        let lacks = "This is root without CAP_BPF and CAP_NET_ADMIN, as in a container: start that with them (docker run \
                 --cap-add=BPF --cap-add=NET_ADMIN)";
        assert!(text.contains(lacks), "{text}");
        let text = home.said(&format!("unshare --user --map-root-user {program} --lan lan0 --for 1s"));
        assert!(text.contains("this may be root of a user namespace"), "{text}");
    });
}

#[test]
#[ignore = "real time"]
fn it_keeps_the_capabilities_that_it_needs() {
    realtime::tried(|| {
        if !ready() {
            return;
        }
        // CAP_NET_ADMIN is number 12, CAP_BPF 39 (linux/capability.h).
        const NEEDED: u64 = 1 << 12 | 1 << 39;
        let home = Home::new(1);
        for hook in ["tcx", "cls_bpf"] {
            let gateway = home.gateway(&format!("--rate 10Mbit/s --hook {hook}"));
            until("shaper", || home.said("tc qdisc show dev lan0").contains("tbf"));
            let threads = std::fs::read_dir(format!("/proc/{}/task", gateway.id())).unwrap();
            let statuses: Vec<String> =
                threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap()).collect();
            assert!(statuses.len() > 1, "the terminal has a thread");
            for status in statuses {
                let word = |name: &str| {
                    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
                    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
                };
                assert_eq!(
                    [word("CapEff"), word("CapPrm"), word("CapInh"), word("NoNewPrivs")],
                    [NEEDED, NEEDED, 0, 1]
                );
            }
            // It still takes along what it has put on the interface.
            gateway.end();
            let left = home.said("tc qdisc show dev lan0");
            assert!(!left.contains("tbf") && !left.contains("clsact"), "{left}");
        }
    });
}
