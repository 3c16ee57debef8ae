//! Netlink as bytes: messages with their headers and attributes, and a socket for requests (`netlink(7)`). Numbers are in
//! the machine's byte order.
//!
//! Parsing accepts any bytes, stops at damaged data and does not allocate.

use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Size of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
/// Size of a receive buffer; the kernel sends at most 32 KiB at once.
pub(crate) const BUFFER: usize = 64 << 10;
/// An attribute that contains attributes.
const NLA_NESTED: u16 = 1 << 15;
/// Bits of an attribute's type; the others are flags about the encoding of its value.
const NLA_TYPE_MASK: u16 = 0x3fff;

pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// A length with its padding (`NLMSG_ALIGN`, `NLA_ALIGN`).
pub(crate) const fn aligned(len: usize) -> usize {
    len.saturating_add(3) & !3
}

/// The header of a message that is `len` bytes long with it.
pub(crate) fn header(len: usize, kind: u16, flags: i32, sequence: u32) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..4].copy_from_slice(&(len as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(flags as u16).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes
}

/// A message from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message<'a> {
    /// Its type.
    pub(crate) kind: u16,
    flags: u16,
    /// The number of the request that it answers.
    pub(crate) sequence: u32,
    /// Everything after its header.
    pub(crate) body: &'a [u8],
}

/// The role of a message in the answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// A part of the answer, by its type.
    Part,
    /// The end of the answer, or an acknowledgement.
    Done,
    /// The request was refused, with this error number of the system.
    Refused(i32),
    /// An error message without an error number.
    Damaged,
}

impl Message<'_> {
    /// Its role.
    pub(crate) fn outcome(&self) -> Outcome {
        let code = u32_at(self.body, 0).map(|code| code as i32);
        match (i32::from(self.kind), code) {
            (libc::NLMSG_DONE, Some(code)) if code < 0 => Outcome::Refused(code.saturating_neg()),
            (libc::NLMSG_DONE, _) | (libc::NLMSG_ERROR, Some(0)) => Outcome::Done,
            (libc::NLMSG_ERROR, Some(code)) => Outcome::Refused(code.saturating_neg()),
            (libc::NLMSG_ERROR, None) => Outcome::Damaged,
            _ => Outcome::Part,
        }
    }

    /// The kernel's text in an error (`NLMSGERR_ATTR_MSG`), if there is one.
    pub(crate) fn error_text(&self) -> Option<String> {
        const ACK_TLVS: u16 = 0x200;
        const MSG: u16 = 1;
        if self.flags & ACK_TLVS == 0 {
            return None;
        }
        // after the error number and the header of the request
        let mut attributes = attributes(self.body.get(4 + HEADER..)?);
        attributes.find(|(kind, _)| *kind == MSG).map(|(_, value)| text(value))
    }
}

/// The messages of a datagram.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let len = u32_at(bytes, 0)? as usize;
        let body = bytes.get(HEADER..len)?;
        let (kind, flags, sequence) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?, u32_at(bytes, 8)?);
        bytes = bytes.get(aligned(len)..).unwrap_or(&[]);
        Some(Message { kind, flags, sequence, body })
    })
}

/// The attributes in these bytes: type and value.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        // the length includes these four bytes
        let len = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & NLA_TYPE_MASK;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(aligned(len)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// A text without its final zeros.
pub(crate) fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

/// A request under construction.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    kind: u16,
    flags: i32,
    /// Begins with space for the header.
    bytes: Vec<u8>,
}

impl Request {
    /// Begins a request of this type with the structure that follows the header; `flags` besides `NLM_F_REQUEST`.
    pub(crate) fn new(kind: u16, flags: i32, structure: &[u8]) -> Request {
        let mut bytes = vec![0; HEADER];
        bytes.extend(structure);
        Request { kind, flags, bytes }
    }

    /// Appends an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Request {
        self.bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(value);
        self.bytes.resize(aligned(self.bytes.len()), 0);
        self
    }

    /// Appends an attribute with a text that ends with a zero.
    pub(crate) fn text(self, kind: u16, text: &str) -> Request {
        self.attribute(kind, &[text.as_bytes(), b"\0"].concat())
    }

    /// Appends an attribute with the attributes that `fill` appends.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Request) -> Request) -> Request {
        let at = self.bytes.len();
        self = fill(self.attribute(kind | NLA_NESTED, &[]));
        let len = (self.bytes.len() - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&len.to_ne_bytes());
        self
    }

    /// The request as bytes.
    pub(crate) fn numbered(mut self, sequence: u32) -> Vec<u8> {
        let header = header(self.bytes.len(), self.kind, libc::NLM_F_REQUEST | self.flags, sequence);
        self.bytes[..HEADER].copy_from_slice(&header);
        self.bytes
    }
}

/// A socket for requests.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Socket {
    /// Opens a socket in the network namespace of the calling thread; protocol `None` is NETLINK_ROUTE, which is zero.
    pub(crate) fn open(protocol: Option<Protocol>) -> io::Result<Socket> {
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        // The kernel answers within microseconds; the timeout ensures that no request hangs.
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(5)))?;
        Ok(Socket { socket, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// Sends a request, and passes each message of the answer to `take` until that breaks.
    pub(crate) fn request<T>(
        &mut self,
        request: Request,
        mut take: impl FnMut(&Message<'_>) -> ControlFlow<T>,
    ) -> io::Result<T> {
        self.sequence = self.sequence.wrapping_add(1);
        rustix::net::send(&self.socket, &request.numbered(self.sequence), SendFlags::empty())?;
        loop {
            let len = receive(&self.socket, &mut self.buffer, RecvFlags::empty())?;
            for message in messages(&self.buffer[..len]).filter(|message| message.sequence == self.sequence) {
                if let ControlFlow::Break(result) = take(&message) {
                    return Ok(result);
                }
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Receives a datagram, again after a signal; returns its length.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    loop {
        match rustix::net::recv(socket.as_fd(), &mut *buffer, flags) {
            Ok((len, _)) => return Ok(len),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_is_read_as_it_was_built() {
        let nested = |request: Request| request.attribute(5, &[1, 2, 3]).text(6, "ab");
        let bytes = Request::new(36, libc::NLM_F_DUMP, &[7; 4]).text(1, "tbf").nested(2, nested).numbered(9);
        assert_eq!(bytes.len(), HEADER + 4 + 8 + 4 + 8 + 8);
        let found: Vec<Message<'_>> = messages(&bytes).collect();
        assert_eq!((found.len(), found[0].kind, found[0].sequence), (1, 36, 9));
        assert_eq!((found[0].flags, found[0].outcome()), (0x301, Outcome::Part));
        let outer: Vec<(u16, &[u8])> = attributes(&found[0].body[4..]).collect();
        assert_eq!((outer.len(), outer[0], outer[1].0), (2, (1, &b"tbf\0"[..]), 2));
        let inner: Vec<(u16, &[u8])> = attributes(outer[1].1).collect();
        assert_eq!(inner, [(5, &[1, 2, 3][..]), (6, &b"ab\0"[..])]);
    }

    /// An error with this error number, and what follows it.
    fn error(code: i32, flags: i32, rest: &[u8]) -> Vec<u8> {
        let body = [&code.to_ne_bytes()[..], rest].concat();
        [&header(HEADER + body.len(), libc::NLMSG_ERROR as u16, flags, 1)[..], &body].concat()
    }

    #[test]
    fn a_refusal_is_read_with_its_text() {
        let outcome = |bytes: &[u8]| messages(bytes).next().map(|message| message.outcome());
        assert_eq!(outcome(&error(0, 0, &[])), Some(Outcome::Done));
        assert_eq!(outcome(&error(-libc::ENOENT, 0, &[])), Some(Outcome::Refused(libc::ENOENT)));
        assert_eq!(outcome(&header(HEADER, libc::NLMSG_DONE as u16, 0, 1)), Some(Outcome::Done));
        assert_eq!(outcome(&header(HEADER, libc::NLMSG_ERROR as u16, 0, 1)), Some(Outcome::Damaged));
        let interrupted = [&header(HEADER + 4, libc::NLMSG_DONE as u16, 0, 1)[..], &(-4_i32).to_ne_bytes()].concat();
        assert_eq!(outcome(&interrupted), Some(Outcome::Refused(4)));
        let explained = [&[0; HEADER][..], &[8, 0, 1, 0], b"why\0"].concat();
        let said = |flags| messages(&error(-1, flags, &explained)).next().and_then(|message| message.error_text());
        assert_eq!((said(0x200).as_deref(), said(0)), (Some("why"), None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            for message in messages(&bytes) {
                let _ = (message.outcome(), message.error_text());
            }
            prop_assert!(attributes(&bytes).map(|(_, value)| value.len() + 4).sum::<usize>() <= bytes.len());
        }
    }
}
