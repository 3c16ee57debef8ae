//! The gateway's requests to `rtnetlink(7)`: interfaces, queueing disciplines and their counters, filters.

use super::bpf::program::Direction;
use super::error::GatewayError;
use crate::netlink::{Message, Outcome, Request, Socket, attributes, messages, text, u32_at};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
use std::io;
use std::ops::ControlFlow;

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
    socket: Socket,
}

/// A request about an interface (`struct ifinfomsg`), to be acknowledged; index 0: all.
fn about_interface(kind: u16, flags: i32, index: u32) -> Request {
    let mut structure = [0; 16];
    structure[4..8].copy_from_slice(&index.to_ne_bytes());
    Request::new(kind, flags | libc::NLM_F_ACK, &structure)
}

/// A request about traffic control (`struct tcmsg`), to be acknowledged.
fn about_traffic(kind: u16, flags: i32, interface: u32, (handle, parent, info): (u32, u32, u32)) -> Request {
    let mut structure = [0; 20];
    for (place, number) in structure[4..].chunks_exact_mut(4).zip([interface, handle, parent, info]) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    Request::new(kind, flags | libc::NLM_F_ACK, &structure)
}

/// The number at this place, or 0.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32_at(bytes, at).unwrap_or(0)
}

impl Netlink {
    /// Opens a socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> Result<Netlink, GatewayError> {
        let opened = Socket::open(None);
        let socket = opened.map_err(|error| GatewayError::System { what: "socket(AF_NETLINK)", error })?;
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            let on: libc::c_int = 1;
            // SAFETY: an integer and its size. Kernels without the option report less about errors.
            unsafe {
                libc::setsockopt(
                    socket.as_fd().as_raw_fd(),
                    libc::SOL_NETLINK,
                    option,
                    (&raw const on).cast(),
                    size_of::<libc::c_int>() as u32,
                )
            };
        }
        Ok(Netlink { socket })
    }

    /// Sends a request and returns the answers: the kernel's messages without their headers, or its error.
    fn request(&mut self, what: &str, request: Request) -> Result<Vec<Vec<u8>>, GatewayError> {
        let failed = |error: io::Error, said: String| GatewayError::Route { what: what.to_owned(), error, said };
        let mut found = Vec::new();
        let answered = self.socket.request(request, |message| match message.outcome() {
            Outcome::Part => {
                found.push(message.body.to_vec());
                ControlFlow::Continue(())
            }
            Outcome::Done => ControlFlow::Break(Ok(())),
            Outcome::Refused(code) => {
                ControlFlow::Break(Err(failed(io::Error::from_raw_os_error(code), extack(message))))
            }
            Outcome::Damaged => ControlFlow::Continue(()),
        });
        answered.map_err(|error| failed(error, String::new()))??;
        Ok(found)
    }

    /// Finds the interface with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn interface(&mut self, name: &str) -> Result<Interface, GatewayError> {
        let request = about_interface(libc::RTM_GETLINK, libc::NLM_F_DUMP, 0);
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
        let request = about_interface(libc::RTM_GETLINK, 0, interface);
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
        let request = about_traffic(libc::RTM_GETQDISC, libc::NLM_F_ECHO, interface, (0, parent, 0));
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
        let request = about_traffic(libc::RTM_NEWQDISC, flags, interface, (SHAPER << 16, ROOT, 0))
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
        let request = about_traffic(libc::RTM_DELQDISC, 0, interface, (SHAPER << 16, ROOT, 0));
        self.request("remove the shaper", request).map(drop)
    }

    /// Adds the place for filters (clsact); returns false if there was one already.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn add_clsact(&mut self, interface: u32) -> Result<bool, GatewayError> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request =
            about_traffic(libc::RTM_NEWQDISC, flags, interface, (CLSACT_HANDLE, CLSACT, 0)).text(TCA_KIND, "clsact");
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
        let request = about_traffic(libc::RTM_DELQDISC, 0, interface, (CLSACT_HANDLE, CLSACT, 0));
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
        let request = about_traffic(libc::RTM_NEWTFILTER, flags, interface, (0, parent(direction), info))
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
        let request = about_traffic(libc::RTM_GETTFILTER, libc::NLM_F_DUMP, interface, (0, parent(direction), 0));
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
        let request =
            about_traffic(libc::RTM_DELTFILTER, 0, interface, (filter.handle, parent(direction), filter.info))
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

/// The kernel's explanation of an error, after a colon, or an empty text.
fn extack(message: &Message<'_>) -> String {
    message.error_text().map_or_else(String::new, |text| format!(": {text}"))
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
    let something = |message: &Message<'_>| {
        let body = message.body;
        let known = [interface(body).is_some(), discipline(body, word(body, 4)).is_some(), filter(body).is_some()];
        known.contains(&true) || message.error_text().is_some()
    };
    messages(datagram).filter(something).count()
}
