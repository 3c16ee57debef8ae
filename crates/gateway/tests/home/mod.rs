//! A home in three namespaces: stations, gateway, servers. Between gateway and servers lies an emulated path with a
//! delay; what the stations are reached by is a veth pair.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests of sockets and of real time")]

pub mod traffic;

use paceline_live::path::{Device, Folder, PathSpec, RelayOptions, Sent, Stop, relay};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

/// The servers' addresses.
pub const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 2, 2));
pub const SERVER6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 2, 0, 0, 0, 0, 0, 2));
/// The address of the stations.
pub const STATION: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 1, 2));

/// A namespace of the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Stations,
    Gateway,
    Servers,
}

static HOMES: AtomicU32 = AtomicU32::new(0);

/// The home; it goes with this.
pub struct Home {
    names: [String; 3],
    stop: Arc<Stop>,
    relay: Option<JoinHandle<()>>,
}

fn ip(words: &str) {
    let done = Command::new("ip").args(words.split_ascii_whitespace()).output().unwrap();
    assert!(done.status.success(), "ip {words}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Home {
    /// With a delay of `delay_ms` each way between gateway and servers.
    pub fn new(delay_ms: u32) -> Home {
        let number = HOMES.fetch_add(1, Ordering::Relaxed);
        let names = ["sta", "gw", "srv"].map(|name| format!("pl-{name}-{}-{number}", std::process::id()));
        let stop = Arc::new(Stop::new().unwrap());
        let mut home = Home { names: names.clone(), stop: Arc::clone(&stop), relay: None };
        let [stations, gateway, servers] = &names;
        for name in &names {
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        ip(&format!("link add lan0 netns {gateway} type veth peer name sta0 netns {stations}"));
        let devices = [
            (gateway, "lan0", "10.77.1.1/24", "fd77:1::1/64"),
            (stations, "sta0", "10.77.1.2/24", "fd77:1::2/64"),
            (gateway, "wan0", "10.77.2.1/24", "fd77:2::1/64"),
            (servers, "srv0", "10.77.2.2/24", "fd77:2::2/64"),
        ];
        for name in [(gateway, "wan0"), (servers, "srv0")] {
            ip(&format!("-n {} tuntap add {} mode tun", name.0, name.1));
        }
        let [wan, server] = [(Place::Gateway, c"wan0"), (Place::Servers, c"srv0")]
            .map(|(place, name)| home.inside(place, move || Tun::open(name)));
        for (name, device, address, address6) in devices {
            ip(&format!("-n {name} addr add {address} dev {device}"));
            ip(&format!("-n {name} addr add {address6} dev {device} nodad"));
            ip(&format!("-n {name} link set {device} up"));
        }
        for (name, via) in [(stations, "1"), (servers, "2")] {
            ip(&format!("-n {name} route add default via 10.77.{via}.1"));
            ip(&format!("-n {name} -6 route add default via fd77:{via}::1"));
        }
        home.inside(Place::Gateway, || {
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
            std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1").unwrap();
        });
        let text = format!(
            "[link.bottleneck]\nrate = \"1 Gbit/s\"\ndelay = \"{delay_ms} ms\"\nqueue = {{ kind = \"unlimited\" }}\n"
        );
        home.relay = Some(std::thread::spawn(move || {
            let document = paceline_scenario::Document::parse(&text, "home").unwrap_or_else(|e| panic!("{e}"));
            let spec = PathSpec::of(document, &Folder::Profiles).unwrap_or_else(|e| panic!("{e}"));
            let [mut near, mut far] = [wan, server];
            relay::run(&spec, &mut near, &mut far, &RelayOptions::default(), &stop).unwrap();
        }));
        home
    }

    /// The name of a namespace.
    pub fn name(&self, place: Place) -> &str {
        &self.names[place as usize]
    }

    /// Calls `work` on a thread of a namespace.
    pub fn inside<T: Send + 'static>(&self, place: Place, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.thread(place, work).join().unwrap()
    }

    /// A thread of a namespace.
    pub fn thread<T: Send + 'static>(&self, place: Place, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let file = format!("/run/netns/{}", self.name(place));
        std::thread::spawn(move || {
            let fd = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
            move_into_link_name_space(fd.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            // So that /proc/sys/net and /proc/net are the namespace's: they follow the thread.
            work()
        })
    }

    /// The gateway's program, started in its namespace: it has both its programs in the kernel, or has ended. How long the
    /// verifier takes is the machine's affair.
    pub fn gateway(&self, words: &str) -> Running {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(Place::Gateway), env!("CARGO_BIN_EXE_paceline-gateway")]);
        command.args(["--lan", "lan0", "--wan", "wan0", "--json"]).args(words.split_ascii_whitespace());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        for _ in 0..200 {
            if child.try_wait().unwrap().is_some() || programs(child.id()) == 2 {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        Running(Some(child))
    }

    /// TCP segments that an end of a connection found damaged: data at the stations, ACKs at the servers.
    pub fn damaged(&self) -> u64 {
        [Place::Stations, Place::Servers].map(|place| self.counter(place, "Tcp", "InCsumErrors")).iter().sum()
    }

    /// A number of a place's `/proc/net/snmp`, such as `Tcp`, `InCsumErrors`.
    fn counter(&self, place: Place, group: &'static str, name: &'static str) -> u64 {
        self.inside(place, move || {
            let text = std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
            let mut lines = text.lines().filter(|line| line.starts_with(&format!("{group}:")));
            let names: Vec<&str> = lines.next().unwrap().split(' ').collect();
            let values: Vec<&str> = lines.next().unwrap().split(' ').collect();
            let at = names.iter().position(|n| *n == name).unwrap();
            values[at].parse().unwrap()
        })
    }

    /// What a command says in the gateway's namespace; `%` is a space in one of its words.
    pub fn said(&self, words: &str) -> String {
        let mut command = Command::new("ip");
        let words = words.split_ascii_whitespace().map(|word| word.replace('%', " "));
        command.args(["netns", "exec", self.name(Place::Gateway)]).args(words);
        let done = command.output().unwrap();
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
    }
}

/// How many programs of the kernel a process holds.
fn programs(process: u32) -> usize {
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fdinfo")) else { return 0 };
    let texts = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.filter(|text| text.contains("prog_type:") && !text.contains("link_type:")).count()
}

impl Drop for Home {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(relay) = self.relay.take() {
            let _ = relay.join();
        }
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// The gateway's program; killed if it is dropped.
pub struct Running(Option<Child>);

impl Running {
    pub fn id(&self) -> i32 {
        self.0.as_ref().unwrap().id() as i32
    }

    pub fn signal(&self, number: i32) {
        // SAFETY: a signal to a child that is not waited for yet.
        unsafe { libc::kill(self.id(), number) };
    }

    /// Ends it as a user would; gives what it said at the end, and on stderr.
    pub fn end(mut self) -> (String, String) {
        self.signal(libc::SIGTERM);
        let done = self.0.take().unwrap().wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        (out, String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// What it wrote on stderr before it ended by itself.
    pub fn refused(mut self) -> (Option<i32>, String) {
        let mut child = self.0.take().unwrap();
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (child.wait().unwrap().code(), text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A TUN as an end of a path.
struct Tun(OwnedFd);

impl Tun {
    fn open(name: &'static std::ffi::CStr) -> Tun {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).unwrap();
        let mut request = [0_u8; 40];
        request[..name.to_bytes().len()].copy_from_slice(name.to_bytes());
        request[16..18].copy_from_slice(&((libc::IFF_TUN | libc::IFF_NO_PI) as i16).to_ne_bytes());
        // SAFETY: a request as large as the kernel's `struct ifreq`.
        let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF as _, request.as_mut_ptr()) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        Tun(fd)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Device for Tun {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.0, buffer) {
            Ok(len) => Ok(Some(len)),
            // EIO: it is not up yet.
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::IO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<Sent> {
        match rustix::io::write(&self.0, packet) {
            Ok(_) => Ok(Sent::Whole),
            Err(rustix::io::Errno::AGAIN) => Ok(Sent::Full),
            Err(_) => Ok(Sent::Refused),
        }
    }
}
