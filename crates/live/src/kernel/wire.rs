//! Messages of netlink's socket diagnostics, as bytes; there is no socket in this module. Numbers are in the machine's
//! byte order, except for addresses and ports (`sock_diag(7)`).

use super::tcp_info::{CcInfo, State, TcpInfo};
use crate::netlink::{Message, Request, attributes, u8_at, u32_at};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// `SOCK_DIAG_BY_FAMILY`: message type of a request and of its answer.
const BY_FAMILY: u16 = 20;
/// Attributes of an answer (`inet_diag.h`); an extension's bit in a request is 1 << (number - 1).
const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const CONG: u16 = 4;
const BBRINFO: u16 = 16;
/// Size of `struct inet_diag_msg`.
const MESSAGE: usize = 72;

/// IP version, as a request names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, including IPv4 on IPv6 sockets.
    V6,
}

impl Family {
    /// Both versions.
    pub const ALL: [Family; 2] = [Family::V4, Family::V6];

    const fn number(self) -> u8 {
        match self {
            Family::V4 => libc::AF_INET as u8,
            Family::V6 => libc::AF_INET6 as u8,
        }
    }
}

/// Identifies a socket (`struct inet_diag_sockid`): its ports, addresses, interface and cookie, as the kernel returned
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SocketId([u8; 48]);

/// Restricts which sockets a dump lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only sockets with this local port.
    pub local_port: Option<u16>,
    /// Only sockets with this port at the peer.
    pub peer_port: Option<u16>,
}

/// A TCP socket as the kernel describes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Socket {
    /// The socket's number, which a running kernel never reuses.
    pub cookie: u64,
    /// The IP version under which the kernel lists it.
    pub family: Family,
    /// State of the connection.
    pub state: Option<State>,
    /// Local address.
    pub local: SocketAddr,
    /// Peer's address.
    pub peer: SocketAddr,
    /// Inode number of the file; zero: no program has it open (not accepted yet, or closed).
    pub inode: u32,
    /// The user who created it.
    pub uid: u32,
    /// Name of the congestion control.
    pub congestion_control: Option<String>,
    /// Its `tcp_info`.
    pub info: Option<TcpInfo>,
    /// The congestion control's report about itself.
    pub cc_info: Option<CcInfo>,
    pub(super) id: SocketId,
}

/// Requested extensions: `tcp_info`, the name of the congestion control and its own state.
const EXTENSIONS: u8 = 1 << (INFO - 1) | 1 << (VEGASINFO - 1) | 1 << (CONG - 1);

/// The states of connections that have a `tcp_info`.
fn connected() -> u32 {
    let without = [State::Listen, State::TimeWait, State::Closed, State::Request, State::SynReceived];
    State::ALL.iter().filter(|state| !without.contains(state)).map(|state| 1 << state.number()).sum()
}

/// `struct inet_diag_req_v2` after its header.
fn request(family: Family, flags: i32, states: u32, id: &[u8; 48]) -> Request {
    let head = [family.number(), libc::IPPROTO_TCP as u8, EXTENSIONS, 0];
    Request::new(BY_FAMILY, flags, &[&head[..], &states.to_ne_bytes(), id].concat())
}

/// A request for all of a family's connections that pass the filter.
pub(super) fn dump(family: Family, filter: Filter) -> Request {
    let mut id = [0; 48];
    id[0..2].copy_from_slice(&filter.local_port.unwrap_or(0).to_be_bytes());
    id[2..4].copy_from_slice(&filter.peer_port.unwrap_or(0).to_be_bytes());
    request(family, libc::NLM_F_DUMP, connected(), &id)
}

/// A request for one socket.
pub(super) fn exact(family: Family, id: &SocketId) -> Request {
    request(family, 0, !0, &id.0)
}

/// The socket that a message describes (`struct inet_diag_msg` and what follows it).
pub(super) fn socket(message: &Message<'_>) -> Option<Socket> {
    let body = Some(message.body).filter(|_| message.kind == BY_FAMILY)?;
    let id: [u8; 48] = body.get(4..52)?.try_into().ok()?;
    let family = match i32::from(u8_at(body, 0)?) {
        libc::AF_INET => Family::V4,
        libc::AF_INET6 => Family::V6,
        _ => return None,
    };
    let mut found = Socket {
        cookie: u64::from(u32_at(&id, 40)?) | u64::from(u32_at(&id, 44)?) << 32,
        family,
        state: State::of(u8_at(body, 1)?),
        local: SocketAddr::new(address(family, &id[4..20])?, u16::from_be_bytes([id[0], id[1]])),
        peer: SocketAddr::new(address(family, &id[20..36])?, u16::from_be_bytes([id[2], id[3]])),
        uid: u32_at(body, 64)?,
        inode: u32_at(body, 68)?,
        congestion_control: None,
        info: None,
        cc_info: None,
        id: SocketId(id),
    };
    let mut own: Option<&[u8]> = None;
    for (kind, data) in attributes(body.get(MESSAGE..)?) {
        match kind {
            INFO => found.info = Some(TcpInfo::parse(data)),
            VEGASINFO | BBRINFO => own = Some(data),
            CONG => found.congestion_control = name(data),
            _ => {}
        }
    }
    if let (Some(data), Some(name)) = (own, &found.congestion_control) {
        found.cc_info = CcInfo::parse(name, data);
    }
    Some(found)
}

fn address(family: Family, bytes: &[u8]) -> Option<IpAddr> {
    match family {
        Family::V4 => <[u8; 4]>::try_from(bytes.get(..4)?).ok().map(|b| IpAddr::V4(Ipv4Addr::from(b))),
        // An IPv4 peer of an IPv6 socket is shown as IPv4.
        Family::V6 => <[u8; 16]>::try_from(bytes.get(..16)?).ok().map(|b| IpAddr::V6(Ipv6Addr::from(b)).to_canonical()),
    }
}

fn name(data: &[u8]) -> Option<String> {
    let text = data.split(|&b| b == 0).next()?;
    core::str::from_utf8(text).ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{HEADER, aligned, header, messages};
    use proptest::prelude::*;

    /// An answer with `tcp_info`, as a kernel writes it.
    fn answer() -> Vec<u8> {
        let mut body = vec![libc::AF_INET as u8, 1, 0, 0];
        body.extend_from_slice(&4000u16.to_be_bytes());
        body.extend_from_slice(&80u16.to_be_bytes());
        body.extend_from_slice(&[10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        body.extend_from_slice(&[10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for n in [0u32, 7, 1, 0, 0, 0, 1000, 4711] {
            body.extend_from_slice(&n.to_ne_bytes());
        }
        let mut info = [0u8; 280];
        info[0] = 1;
        info[80..84].copy_from_slice(&12u32.to_ne_bytes());
        for (kind, data) in [(INFO, &info[..]), (CONG, b"cubic\0")] {
            body.extend_from_slice(&(data.len() as u16 + 4).to_ne_bytes());
            body.extend_from_slice(&kind.to_ne_bytes());
            body.extend_from_slice(data);
            body.resize(aligned(body.len()), 0);
        }
        let mut bytes = header(HEADER + body.len(), BY_FAMILY, libc::NLM_F_MULTI, 9).to_vec();
        bytes.extend_from_slice(&body);
        bytes
    }

    fn sockets(bytes: &[u8]) -> Vec<Socket> {
        messages(bytes).filter_map(|message| socket(&message)).collect()
    }

    #[test]
    fn an_answer_is_read() {
        let mut bytes = answer();
        bytes.extend_from_slice(&answer());
        let found = sockets(&bytes);
        assert_eq!(found.len(), 2);
        let socket = &found[1];
        assert_eq!((socket.cookie, socket.uid, socket.inode), (7 | 1 << 32, 1000, 4711));
        assert_eq!(socket.local, "10.0.0.1:4000".parse().unwrap());
        assert_eq!(socket.peer, "10.0.0.2:80".parse().unwrap());
        assert_eq!(socket.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(socket.info.and_then(|info| info.cwnd_packets), Some(12));
    }

    proptest! {
        #[test]
        fn any_datagram_is_read(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let _ = sockets(&bytes);
        }

        #[test]
        fn a_damaged_answer_is_read(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut bytes = answer();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = sockets(&bytes);
            let _ = sockets(&bytes[..cut.min(bytes.len())]);
        }
    }
}
