//! The gateway's requests to `rtnetlink(7)`: interfaces, queueing disciplines and their counters, filters.

use super::bpf::program::Direction;
use super::error::GatewayError;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::time::Duration;

// linux/rtnetlink.h
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STATS2: u16 = 7;
// linux/if_link.h
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
// linux/gen_stats.h
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
// linux/pkt_sched.h, linux/pkt_cls.h
const ROOT: u32 = 0xffff_ffff;
const CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const CLSACT_INGRESS: u32 = 0xffff_fff2;
const CLSACT_EGRESS: u32 = 0xffff_fff3;
const TBF_PARMS: u16 = 1;
const TBF_BURST: u16 = 6;
const BPF_FD: u16 = 6;
const BPF_NAME: u16 = 7;
const BPF_FLAGS: u16 = 8;
const BPF_DIRECT_ACTION: u32 = 1;
const ETH_P_ALL: u16 = 3;
const NLA_NESTED: u16 = 1 << 15;

/// Name of the gateway's filters, by which a later start recognises leftovers.
const FILTER: &str = "paceline-gateway";
/// Their priority.
const PRIORITY: u16 = 0x7061;
/// The major number of the gateway's shaper.
pub const SHAPER: u32 = 0x7061;

/// An interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index.
    pub index: u32,
    /// Its type (ARPHRD).
    pub kind: u16,
    /// Its MTU: the maximum IP packet size (bytes).
    pub mtu: u32,
}

/// The queueing discipline at an interface's root, with its counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discipline {
    /// For example `fq_codel`.
    pub kind: String,
    /// The major number of its handle; 0 if it is the default discipline.
    pub handle: u32,
    /// Bytes that have left it.
    pub bytes: u64,
    /// Bytes that wait in it.
    pub backlog: u32,
    /// Packets that wait in it.
    pub packets: u32,
    /// Packets that it has dropped.
    pub drops: u32,
}

/// A traffic filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    kind: String,
    handle: u32,
    /// Priority and protocol.
    info: u32,
    name: String,
}

impl Filter {
    /// Whether a gateway added it.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.kind == "bpf" && self.name == FILTER
    }
}

/// A socket for requests to rtnetlink.
#[derive(Debug)]
pub struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

/// A request under construction.
struct Request {
    kind: u16,
    flags: i32,
    bytes: Vec<u8>,
}

impl Request {
    fn new(kind: u16, flags: i32) -> Request {
        Request { kind, flags, bytes: vec![0; 16] }
    }

    /// Appends `struct ifinfomsg` of an interface; 0: none.
    fn interface(mut self, index: u32) -> Request {
        self.bytes.extend([0; 4]);
        self.bytes.extend(index.to_ne_bytes());
        self.bytes.extend([0; 8]);
        self
    }

    /// Appends `struct tcmsg`.
    fn traffic(mut self, interface: u32, handle: u32, parent: u32, info: u32) -> Request {
        self.bytes.extend([0; 4]);
        for word in [interface, handle, parent, info] {
            self.bytes.extend(word.to_ne_bytes());
        }
        self
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        self.bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    fn text(self, kind: u16, text: &str) -> Request {
        self.attribute(kind, &[text.as_bytes(), b"\0"].concat())
    }

    fn nested(mut self, kind: u16, fill: impl FnOnce(Request) -> Request) -> Request {
        let at = self.bytes.len();
        self = fill(self.attribute(kind | NLA_NESTED, &[]));
        let len = (self.bytes.len() - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&len.to_ne_bytes());
        self
    }
}

/// The attributes in `bytes`: type and value. Parsing stops at damaged data.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head: &[u8; 4] = bytes.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((u16::from_ne_bytes([head[2], head[3]]) & !NLA_NESTED, value))
    })
}

/// The messages of a datagram, with their headers. Parsing stops at damaged data.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let message = bytes.get(..word(bytes, 0) as usize).filter(|message| message.len() >= 16)?;
        bytes = bytes.get(message.len().next_multiple_of(4)..).unwrap_or(&[]);
        Some(message)
    })
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

impl Netlink {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> Result<Netlink, GatewayError> {
        let open = || -> io::Result<OwnedFd> {
            let socket = rustix::net::socket_with(
                AddressFamily::NETLINK,
                SocketType::RAW,
                SocketFlags::CLOEXEC,
                None, // NETLINK_ROUTE, which is zero
            )?;
            set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(5)))?;
            for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
                let on: libc::c_int = 1;
                // SAFETY: an integer and its size. Kernels without the option report less about errors.
                unsafe {
                    libc::setsockopt(
                        socket.as_raw_fd(),
                        libc::SOL_NETLINK,
                        option,
                        (&raw const on).cast(),
                        size_of::<libc::c_int>() as u32,
                    )
                };
            }
            Ok(socket)
        };
        let socket = open().map_err(|error| GatewayError::System { what: "socket(AF_NETLINK)", error })?;
        Ok(Netlink { socket, sequence: 0, buffer: vec![0; 64 << 10] })
    }

    /// Sends a request and returns the answers: the kernel's messages without their headers, or its error.
    fn request(&mut self, what: &str, mut request: Request) -> Result<Vec<Vec<u8>>, GatewayError> {
        let failed = |error: io::Error, said: String| GatewayError::Route { what: what.to_owned(), error, said };
        self.sequence = self.sequence.wrapping_add(1);
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | request.flags) as u16;
        let len = request.bytes.len() as u32;
        request.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        request.bytes[4..6].copy_from_slice(&request.kind.to_ne_bytes());
        request.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        request.bytes[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        let sent = rustix::net::send(&self.socket, &request.bytes, SendFlags::empty());
        sent.map_err(|error| failed(error.into(), String::new()))?;
        let mut found = Vec::new();
        loop {
            let received = rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty());
            let (len, _) = match received {
                Err(rustix::io::Errno::INTR) => continue,
                other => other.map_err(|error| failed(error.into(), String::new()))?,
            };
            for message in messages(&self.buffer[..len]) {
                if word(message, 8) != self.sequence {
                    continue;
                }
                match i32::from(u16::from_ne_bytes([message[4], message[5]])) {
                    libc::NLMSG_DONE => return Ok(found),
                    libc::NLMSG_ERROR => {
                        let code = word(message, 16) as i32;
                        if code == 0 {
                            return Ok(found);
                        }
                        return Err(failed(io::Error::from_raw_os_error(code.wrapping_neg()), extack_message(message)));
                    }
                    _ => found.push(message[16..].to_vec()),
                }
            }
        }
    }

    /// Finds the interface with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn interface(&mut self, name: &str) -> Result<Interface, GatewayError> {
        let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP).interface(0);
        let found: Vec<Interface> =
            self.request("list the interfaces", request)?.iter().filter_map(|message| interface(message)).collect();
        let there = found.iter().map(|i| i.name.as_str()).filter(|name| *name != "lo").collect::<Vec<_>>().join(", ");
        let there = if there.is_empty() { "none but lo".to_owned() } else { there };
        found
            .into_iter()
            .find(|interface| interface.name == name)
            .ok_or(GatewayError::NoInterface { name: name.to_owned(), there })
    }

    /// Whether an interface with this index still exists.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn is_there(&mut self, interface: u32) -> Result<bool, GatewayError> {
        let request = Request::new(libc::RTM_GETLINK, 0).interface(interface);
        match self.request("look after the interface", request) {
            Err(GatewayError::Route { error, .. }) if error.raw_os_error() == Some(libc::ENODEV) => Ok(false),
            other => other.map(|_| true),
        }
    }

    /// The discipline at an interface's root; `None` if it has no queue.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn discipline(&mut self, interface: u32) -> Result<Option<Discipline>, GatewayError> {
        self.discipline_at(interface, ROOT)
    }

    fn discipline_at(&mut self, interface: u32, parent: u32) -> Result<Option<Discipline>, GatewayError> {
        let request = Request::new(libc::RTM_GETQDISC, libc::NLM_F_ECHO).traffic(interface, 0, parent, 0);
        let answers = match self.request("read the queue", request) {
            Err(GatewayError::Route { error, .. }) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            other => other?,
        };
        Ok(answers.iter().find_map(|message| discipline(message, interface)).filter(|d| d.kind != "noqueue"))
    }

    /// Adds the gateway's token bucket at an interface's root, with a queue of `limit` bytes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_shaper(&mut self, interface: u32, shaper: &Bucket) -> Result<(), GatewayError> {
        // struct tc_ratespec, twice: rate, and no peak rate; struct tc_tbf_qopt's limit, buffer, mtu.
        const ETHERNET: u8 = 1;
        let mut parms = vec![0_u8; 36];
        parms[1] = ETHERNET;
        parms[8..12].copy_from_slice(&shaper.bytes_per_second.to_ne_bytes());
        parms[24..28].copy_from_slice(&shaper.limit.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let request = Request::new(libc::RTM_NEWQDISC, flags)
            .traffic(interface, SHAPER << 16, ROOT, 0)
            .text(TCA_KIND, "tbf")
            .nested(TCA_OPTIONS, |options| {
                options.attribute(TBF_PARMS, &parms).attribute(TBF_BURST, &shaper.burst.to_ne_bytes())
            });
        self.request("put a shaper on the interface", request).map(drop)
    }

    /// Removes the gateway's shaper from an interface's root.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove_shaper(&mut self, interface: u32) -> Result<(), GatewayError> {
        let request = Request::new(libc::RTM_DELQDISC, 0).traffic(interface, SHAPER << 16, ROOT, 0);
        self.request("remove the shaper", request).map(drop)
    }

    /// Adds the place for filters (clsact); returns false if there was one already.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_clsact(&mut self, interface: u32) -> Result<bool, GatewayError> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = Request::new(libc::RTM_NEWQDISC, flags)
            .traffic(interface, CLSACT_HANDLE, CLSACT, 0)
            .text(TCA_KIND, "clsact");
        match self.request("make a place for filters (clsact)", request) {
            Ok(_) => Ok(true),
            Err(GatewayError::Route { error, .. }) if error.raw_os_error() == Some(libc::EEXIST) => {
                // The older `ingress` has the same handle, accepts filters for both directions, and runs them all on
                // incoming packets.
                let found = self.discipline_at(interface, CLSACT)?;
                if found.is_some_and(|found| found.kind == "ingress") { Err(GatewayError::Ingress) } else { Ok(false) }
            }
            Err(error) => Err(error),
        }
    }

    /// Removes the place for filters and all filters in it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove_clsact(&mut self, interface: u32) -> Result<(), GatewayError> {
        let request = Request::new(libc::RTM_DELQDISC, 0).traffic(interface, CLSACT_HANDLE, CLSACT, 0);
        self.request("remove the place for filters (clsact)", request).map(drop)
    }

    /// Adds a program as a filter.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_filter(
        &mut self,
        interface: u32,
        direction: Direction,
        program: BorrowedFd<'_>,
    ) -> Result<(), GatewayError> {
        let info = u32::from(PRIORITY) << 16 | u32::from(ETH_P_ALL.to_be());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = Request::new(libc::RTM_NEWTFILTER, flags)
            .traffic(interface, 0, parent(direction), info)
            .text(TCA_KIND, "bpf")
            .nested(TCA_OPTIONS, |options| {
                options
                    .attribute(BPF_FD, &program.as_raw_fd().to_ne_bytes())
                    .text(BPF_NAME, FILTER)
                    .attribute(BPF_FLAGS, &BPF_DIRECT_ACTION.to_ne_bytes())
            });
        self.request("add a filter (cls_bpf)", request).map(drop)
    }

    /// The filters of a direction.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn filters(&mut self, interface: u32, direction: Direction) -> Result<Vec<Filter>, GatewayError> {
        let request = Request::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP).traffic(interface, 0, parent(direction), 0);
        let answers = match self.request("list the filters", request) {
            // there is no place for filters
            Err(GatewayError::Route { error, .. })
                if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) =>
            {
                return Ok(Vec::new());
            }
            other => other?,
        };
        Ok(answers.iter().filter_map(|message| filter(message)).collect())
    }

    /// Removes a filter.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn remove_filter(&mut self, interface: u32, direction: Direction, filter: &Filter) -> Result<(), GatewayError> {
        let request = Request::new(libc::RTM_DELTFILTER, 0)
            .traffic(interface, filter.handle, parent(direction), filter.info)
            .text(TCA_KIND, &filter.kind);
        self.request("remove a filter", request).map(drop)
    }
}

fn parent(direction: Direction) -> u32 {
    match direction {
        Direction::Ingress => CLSACT_INGRESS,
        Direction::Egress => CLSACT_EGRESS,
    }
}

/// Parameters of a token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// Its rate, Ethernet headers included.
    pub bytes_per_second: u32,
    /// Maximum burst in bytes.
    pub burst: u32,
    /// Maximum backlog in bytes.
    pub limit: u32,
}

/// The kernel's message in an error (`NLMSGERR_ATTR_MSG`), or an empty text.
fn extack_message(message: &[u8]) -> String {
    const TLVS: u16 = 0x200;
    let flags = u16::from_ne_bytes([message[6], message[7]]);
    if flags & TLVS == 0 {
        return String::new();
    }
    // The netlink header, the error code, and the header of the request.
    let words = attributes(message.get(36..).unwrap_or(&[])).find(|(kind, _)| *kind == 1);
    words.map_or_else(String::new, |(_, value)| format!(": {}", text(value)))
}

fn interface(message: &[u8]) -> Option<Interface> {
    let of = |wanted| attributes(message.get(16..)?).find(|(kind, _)| *kind == wanted).map(|(_, v)| v);
    Some(Interface {
        name: text(of(IFLA_IFNAME)?),
        index: word(message, 4),
        kind: u16::from_ne_bytes([message[2], message[3]]),
        mtu: of(IFLA_MTU).map_or(0, |value| word(value, 0)),
    })
}

fn discipline(message: &[u8], interface: u32) -> Option<Discipline> {
    if word(message, 4) != interface {
        return None;
    }
    let mut found =
        Discipline { kind: String::new(), handle: word(message, 8) >> 16, bytes: 0, backlog: 0, packets: 0, drops: 0 };
    for (kind, value) in attributes(message.get(20..)?) {
        match kind {
            TCA_KIND => found.kind = text(value),
            TCA_STATS2 => {
                for (kind, value) in attributes(value) {
                    match kind {
                        STATS_BASIC => {
                            found.bytes = value.first_chunk().copied().map_or(0, u64::from_ne_bytes);
                        }
                        STATS_QUEUE => {
                            found.packets = word(value, 0);
                            found.backlog = word(value, 4);
                            found.drops = word(value, 8);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(found)
}

fn filter(message: &[u8]) -> Option<Filter> {
    let mut found =
        Filter { kind: String::new(), handle: word(message, 8), info: word(message, 16), name: String::new() };
    for (kind, value) in attributes(message.get(20..)?) {
        match kind {
            TCA_KIND => found.kind = text(value),
            TCA_OPTIONS => {
                found.name =
                    attributes(value).find(|(kind, _)| *kind == BPF_NAME).map_or_else(String::new, |(_, v)| text(v));
            }
            _ => {}
        }
    }
    // The head of a chain has no handle.
    (found.handle != 0).then_some(found)
}

/// Tries all parsers on a datagram's messages; returns how many messages one of them accepted.
pub(crate) fn read(datagram: &[u8]) -> usize {
    let something = |message: &[u8]| {
        let body = &message[16..];
        let known = [interface(body).is_some(), discipline(body, word(body, 4)).is_some(), filter(body).is_some()];
        known.contains(&true) || !extack_message(message).is_empty()
    };
    messages(datagram).filter(|message| something(message)).count()
}
