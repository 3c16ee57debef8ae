//! Messages of netlink's socket diagnostics, as bytes; there is no socket in this module. Numbers are in the machine's
//! byte order, except for addresses and ports (`sock_diag(7)`, `netlink(7)`).

use super::tcp_info::{CcInfo, State, TcpInfo};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub(super) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// `SOCK_DIAG_BY_FAMILY`: message type of a request and of its answer.
const BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x001;
const NLM_F_DUMP: u16 = 0x300;
/// Attributes of an answer (`inet_diag.h`); an extension's bit in a request is 1 << (number - 1).
const INFO: u16 = 2;
const VEGASINFO: u16 = 3;
const CONG: u16 = 4;
const BBRINFO: u16 = 16;
const HEADER: usize = 16;
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

fn request(family: Family, flags: u16, sequence: u32, states: u32, id: &[u8; 48]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + 56);
    bytes.extend_from_slice(&((HEADER + 56) as u32).to_ne_bytes());
    bytes.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&sequence.to_ne_bytes());
    bytes.extend_from_slice(&0u32.to_ne_bytes());
    bytes.extend_from_slice(&[family.number(), libc::IPPROTO_TCP as u8, EXTENSIONS, 0]);
    bytes.extend_from_slice(&states.to_ne_bytes());
    bytes.extend_from_slice(id);
    bytes
}

/// A request for all of a family's connections that pass the filter.
pub(super) fn dump(family: Family, filter: Filter, sequence: u32) -> Vec<u8> {
    let mut id = [0; 48];
    id[0..2].copy_from_slice(&filter.local_port.unwrap_or(0).to_be_bytes());
    id[2..4].copy_from_slice(&filter.peer_port.unwrap_or(0).to_be_bytes());
    request(family, NLM_F_REQUEST | NLM_F_DUMP, sequence, connected(), &id)
}

/// A request for one socket.
pub(super) fn exact(family: Family, id: &SocketId, sequence: u32) -> Vec<u8> {
    request(family, NLM_F_REQUEST, sequence, !0, &id.0)
}

/// A message from the kernel.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Message {
    Socket(Box<Socket>),
    /// The end of a dump.
    Done,
    /// The system's error number.
    Refused(i32),
    /// Something else, or a damaged message.
    Other,
}

/// The messages of a datagram, each with its sequence number; parsing stops at the first damaged message.
pub(super) fn messages(mut bytes: &[u8]) -> Vec<(u32, Message)> {
    let mut found = Vec::new();
    while let (Some(len), Some(kind), Some(sequence)) = (u32_at(bytes, 0), u16_at(bytes, 4), u32_at(bytes, 8)) {
        let len = len as usize;
        let Some(body) = bytes.get(HEADER..len) else { break };
        let message = match kind {
            BY_FAMILY => socket(body).map_or(Message::Other, |socket| Message::Socket(Box::new(socket))),
            NLMSG_DONE => match u32_at(body, 0) {
                Some(code) if (code as i32) < 0 => Message::Refused((code as i32).saturating_neg()),
                _ => Message::Done,
            },
            NLMSG_ERROR => match u32_at(body, 0) {
                Some(0) => Message::Done,
                Some(code) => Message::Refused((code as i32).saturating_neg()),
                None => Message::Other,
            },
            _ => Message::Other,
        };
        found.push((sequence, message));
        bytes = bytes.get(aligned(len)..).unwrap_or(&[]);
    }
    found
}

fn aligned(len: usize) -> usize {
    len.saturating_add(3) & !3
}

/// `struct inet_diag_msg` and what follows it.
fn socket(body: &[u8]) -> Option<Socket> {
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

/// Netlink attributes: length (its own four bytes included), kind, data.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    core::iter::from_fn(move || {
        let len = usize::from(u16_at(bytes, 0)?);
        // the two highest bits are flags about the data's encoding
        let kind = u16_at(bytes, 2)? & 0x3fff;
        let data = bytes.get(4..len)?;
        bytes = bytes.get(aligned(len)..).unwrap_or(&[]);
        Some((kind, data))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut bytes = ((body.len() + HEADER) as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(&BY_FAMILY.to_ne_bytes());
        bytes.extend_from_slice(&[2, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend_from_slice(&body);
        bytes
    }

    #[test]
    fn an_answer_is_read() {
        let mut bytes = answer();
        bytes.extend_from_slice(&answer());
        let found = messages(&bytes);
        assert_eq!((found.len(), found[0].0), (2, 9));
        let Message::Socket(socket) = &found[1].1 else { panic!("{:?}", found[1].1) };
        assert_eq!((socket.cookie, socket.uid, socket.inode), (7 | 1 << 32, 1000, 4711));
        assert_eq!(socket.local, "10.0.0.1:4000".parse().unwrap());
        assert_eq!(socket.peer, "10.0.0.2:80".parse().unwrap());
        assert_eq!(socket.congestion_control.as_deref(), Some("cubic"));
        assert_eq!(socket.info.and_then(|info| info.cwnd_packets), Some(12));
    }

    #[test]
    fn a_refusal_is_read() {
        let mut bytes = 20u32.to_ne_bytes().to_vec();
        bytes.extend_from_slice(&NLMSG_ERROR.to_ne_bytes());
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(&(-libc::ENOENT).to_ne_bytes());
        assert!(matches!(messages(&bytes)[0].1, Message::Refused(libc::ENOENT)));
    }

    proptest! {
        #[test]
        fn any_datagram_is_read(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let _ = messages(&bytes);
        }

        #[test]
        fn a_damaged_answer_is_read(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut bytes = answer();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = messages(&bytes);
            let _ = messages(&bytes[..cut.min(bytes.len())]);
        }
    }
}
