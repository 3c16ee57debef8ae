//! A UDP socket for sessions: batches per system call, the kernel's receive timestamps, ECN in both directions.
//!
//! The kernel stamps a datagram on arrival (`SO_TIMESTAMPNS`, socket(7)), 2-3 us after it was sent over the loopback
//! interface; a thread woken for it would measure tens of microseconds more. The stamps are of the system's clock and
//! are converted to the run's. Start with [`UdpPort::receive`].

use crate::clock::Clock;
use crate::session::{EcnBits, Outbox};
use libc::{cmsghdr, iovec, mmsghdr, msghdr, sockaddr_in, sockaddr_in6, sockaddr_storage, timespec};
use paceline_units::{Span, Time};
use std::io;
use std::mem::{size_of, zeroed};
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::UdpSocket;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Datagrams per system call.
const BATCH: usize = 32;
/// Buffer for a datagram from Paceline's own senders. Longer ones are not theirs and are ignored, unless the port
/// accepts datagrams of any length.
const LONGEST: usize = 2048;
/// Maximum length of a datagram: its length field has 16 bits.
const WHOLE: usize = 65_536;
/// Buffer for control messages: a time and a byte or word of ECN, each with its header.
const CONTROL: usize = 128;
/// Kernel buffer size: a tenth of a second at 300 Mbit/s.
const BUFFER: usize = 4 << 20;
/// Maximum distance of a timestamp from now. Beyond it the stamp is ignored: the system's clock was set.
const MAX_STAMP_AGE: Span = Span::from_secs(1);

static ZEROS: [u8; 65_536] = [0; 65_536];

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// When the kernel received it.
    pub time: Time,
    /// Sender's address.
    pub from: SocketAddr,
    /// Its ECN bits.
    pub ecn: EcnBits,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// A received datagram: position and length of its bytes.
#[derive(Clone, Copy, Debug)]
struct Received {
    at: usize,
    len: usize,
    from: SocketAddr,
    ecn: EcnBits,
    time: Time,
}

/// A non-blocking UDP socket.
#[derive(Debug)]
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub struct UdpPort {
    socket: UdpSocket,
    clock: Clock,
    v6: bool,
    connected: bool,
    /// The ECN bits currently set in the socket's TOS.
    ecn: EcnBits,
    buffers: Box<[[u8; LONGEST]; BATCH]>,
    /// Buffers for datagrams of any length, if the port accepts them. Most datagrams fit in the buffers above; the
    /// system allocates memory only when it is written to, so these 2 MiB cost nothing until long datagrams arrive.
    wholes: Option<Box<[[u8; WHOLE]; BATCH]>>,
    received: Vec<Received>,
    /// Datagrams that the kernel had no room for, or would not send.
    refused: u64,
}

fn call(name: &'static str, error: impl Into<io::Error>) -> io::Error {
    let error = error.into();
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// What an error of a UDP system call affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Nothing: repeat the call.
    Interrupted,
    /// There is no buffer space, for this datagram or another, or nothing to read.
    NoRoom,
    /// Nobody listens at the peer.
    Nobody,
    /// One datagram, its destination, or the route: the datagram is lost, as it might be anywhere on the path.
    Datagram,
    /// The socket or this program: no later call will succeed.
    Socket,
}

impl Fault {
    /// The sender of a datagram chooses where the answer goes, and the networks between decide what happens to it
    /// (source port 0: `EINVAL`; a broadcast address: `EACCES`; a firewall here: `EPERM`; no route: `ENETUNREACH`). So
    /// only errors that these cannot cause count as the socket's.
    fn of(error: &io::Error) -> Fault {
        match error.raw_os_error() {
            Some(libc::EINTR) => Fault::Interrupted,
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM) => Fault::NoRoom,
            Some(libc::ECONNREFUSED) => Fault::Nobody,
            None | Some(libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EPIPE) => Fault::Socket,
            Some(_) => Fault::Datagram,
        }
    }
}

/// Passes all of `left` to `call`, which sends some from the front; returns how many it refused.
///
/// # Errors
/// The call's, if nobody listens at the peer or the socket fails. The rest is then discarded.
fn hand_over<T>(mut left: &mut [T], mut call: impl FnMut(&mut [T]) -> io::Result<usize>) -> io::Result<u64> {
    let mut refused = 0;
    while !left.is_empty() {
        let gone = match call(left) {
            Ok(taken) => {
                left = &mut left[taken..];
                continue;
            }
            Err(error) => match Fault::of(&error) {
                Fault::Interrupted => 0,
                Fault::NoRoom => left.len(),
                Fault::Datagram => 1,
                Fault::Nobody | Fault::Socket => return Err(error),
            },
        };
        refused += gone as u64;
        left = &mut left[gone..];
    }
    Ok(refused)
}

impl UdpPort {
    /// Like [`UdpPort::bind`], for datagrams of any length, as other programs send them.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn bind_whole(address: SocketAddr, clock: Clock) -> io::Result<UdpPort> {
        let wholes = vec![[0; WHOLE]; BATCH].into_boxed_slice().try_into().expect("as many as were made");
        Ok(UdpPort { wholes: Some(wholes), ..UdpPort::bind(address, clock)? })
    }

    /// Opens a socket bound to `address`; one bound to `[::]` accepts IPv4 too. Datagrams longer than 2048 bytes are
    /// ignored: Paceline's senders make none, and truncated they would be misread.
    ///
    /// # Errors
    /// The system call that failed.
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    pub fn bind(address: SocketAddr, clock: Clock) -> io::Result<UdpPort> {
        use rustix::net::sockopt;
        let socket = UdpSocket::bind(address).map_err(|error| call("bind(2) of a UDP socket", error))?;
        socket.set_nonblocking(true).map_err(|error| call("fcntl(O_NONBLOCK)", error))?;
        let v6 = address.is_ipv6();
        let on: libc::c_int = 1;
        // SAFETY: the descriptor is open, and the value is an int of the length given, as this option requires.
        let stamped = unsafe {
            let (value, len) = (std::ptr::from_ref(&on).cast(), size_of::<libc::c_int>() as u32);
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, value, len)
        };
        if stamped != 0 {
            return Err(call("setsockopt(SO_TIMESTAMPNS)", io::Error::last_os_error()));
        }
        if v6 {
            sockopt::set_ipv6_recvtclass(&socket, true).map_err(|error| call("setsockopt(IPV6_RECVTCLASS)", error))?;
        }
        // on an IPv6 socket: for the IPv4 that it accepts
        let tos = sockopt::set_ip_recvtos(&socket, true);
        if !v6 {
            tos.map_err(|error| call("setsockopt(IP_RECVTOS)", error))?;
        }
        // the kernel grants at most net.core.rmem_max: less is not an error
        let _ = sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, BUFFER);
        let buffers = vec![[0; LONGEST]; BATCH].into_boxed_slice().try_into().expect("as many as were made");
        Ok(UdpPort {
            socket,
            clock,
            v6,
            connected: false,
            ecn: EcnBits::NotEct,
            buffers,
            wholes: None,
            received: Vec::new(),
            refused: 0,
        })
    }

    /// Accepts only datagrams from this peer from now on, and reports if nobody listens there.
    ///
    /// # Errors
    /// `connect(2)`'s.
    pub fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.socket.connect(peer).map_err(|error| call("connect(2) of a UDP socket", error))?;
        self.connected = true;
        Ok(())
    }

    /// The local address.
    ///
    /// # Errors
    /// `getsockname(2)`'s.
    pub fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams that the kernel had no room for, or would not send: the sender treats them as lost.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Reads the datagrams that have arrived, as many as one call returns, and returns their number, including those
    /// ignored as too long. Zero: there are none.
    ///
    /// # Errors
    /// `ConnectionRefused`: nobody listens at the peer. Any other: the socket failed. The kernel also reports the fate
    /// of sent datagrams here; that is not an error.
    pub fn receive(&mut self) -> io::Result<usize> {
        self.received.clear();
        // SAFETY: these are plain C structures, for which all zeros are a valid value.
        let (mut names, mut headers): ([sockaddr_storage; BATCH], [mmsghdr; BATCH]) = unsafe { (zeroed(), zeroed()) };
        let mut control = [Control([0; CONTROL]); BATCH];
        let mut vectors = [[iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2]; BATCH];
        for i in 0..BATCH {
            vectors[i][0] = iovec { iov_base: self.buffers[i].as_mut_ptr().cast(), iov_len: LONGEST };
            if let Some(wholes) = &mut self.wholes {
                let rest = &mut wholes[i][LONGEST..];
                vectors[i][1] = iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
            }
            headers[i].msg_hdr.msg_name = std::ptr::from_mut(&mut names[i]).cast();
            headers[i].msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as u32;
            headers[i].msg_hdr.msg_iov = vectors[i].as_mut_ptr();
            headers[i].msg_hdr.msg_iovlen = 2;
            headers[i].msg_hdr.msg_control = control[i].0.as_mut_ptr().cast();
            headers[i].msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: each of the BATCH headers points to a name, two vectors, their buffers and a control buffer, which
        // have the lengths given and live until the end of this function; nothing else refers to them during the call.
        let count = unsafe {
            let none = std::ptr::null_mut::<timespec>();
            libc::recvmmsg(self.socket.as_raw_fd(), headers.as_mut_ptr(), BATCH as u32, libc::MSG_DONTWAIT as _, none)
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match Fault::of(&error) {
                Fault::Interrupted | Fault::NoRoom | Fault::Datagram => Ok(0),
                Fault::Nobody => Err(error),
                Fault::Socket => Err(call("recvmmsg(2)", error)),
            };
        }
        let now = self.clock.now();
        let zero = self.clock.unix_at_zero();
        for (at, (header, name)) in headers.iter().zip(&names).enumerate().take(count as usize) {
            if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                continue;
            }
            let len = header.msg_len as usize;
            if let Some(wholes) = self.wholes.as_mut().filter(|_| len > LONGEST) {
                wholes[at][..LONGEST].copy_from_slice(&self.buffers[at]);
            }
            let (ecn, stamp) = said(&header.msg_hdr);
            let time = stamp.map_or(now, |unix| Time(unix.saturating_sub(zero)));
            let time = if time > now || now.since(time) > MAX_STAMP_AGE { now } else { time };
            let from = address(name).unwrap_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0));
            self.received.push(Received { at, len, from, ecn, time });
        }
        Ok(count as usize)
    }

    /// The datagrams that the last [`UdpPort::receive`] read.
    pub fn incoming(&self) -> impl Iterator<Item = Incoming<'_>> {
        self.received.iter().map(|&Received { at, len, from, ecn, time }| {
            let bytes = match &self.wholes {
                Some(wholes) if len > LONGEST => &wholes[at][..len],
                _ => &self.buffers[at][..len],
            };
            Incoming { time, from, ecn, bytes }
        })
    }

    /// Sends datagrams to `to`; a connected socket sends to its peer. Datagrams that the kernel has no room for or
    /// refuses to send are counted and discarded.
    ///
    /// # Errors
    /// `ConnectionRefused`: nobody listens at the peer. Any other: the socket failed. The rest is then discarded.
    pub fn send(&mut self, out: &Outbox, to: SocketAddr) -> io::Result<()> {
        let mut name = storage(to, self.v6);
        let mut datagrams = out.iter().peekable();
        while let Some(first) = datagrams.peek() {
            let ecn = first.ecn;
            self.set_ecn(ecn)?;
            // SAFETY: a plain C structure, for which all zeros are a valid value.
            let mut headers: [mmsghdr; BATCH] = unsafe { zeroed() };
            let mut vectors = [[iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; 2]; BATCH];
            let mut count = 0;
            while count < BATCH {
                let Some(datagram) = datagrams.next_if(|next| next.ecn == ecn) else { break };
                let payload = &ZEROS[..usize::from(datagram.payload)];
                vectors[count] = [datagram.header, payload]
                    .map(|part| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
                count += 1;
            }
            for (header, vector) in headers.iter_mut().zip(&mut vectors).take(count) {
                header.msg_hdr.msg_iov = vector.as_mut_ptr();
                header.msg_hdr.msg_iovlen = 2;
                if !self.connected {
                    header.msg_hdr.msg_name = std::ptr::from_mut(&mut name.0).cast();
                    header.msg_hdr.msg_namelen = name.1;
                }
            }
            self.send_all(&mut headers[..count])?;
        }
        Ok(())
    }

    fn send_all(&mut self, headers: &mut [mmsghdr]) -> io::Result<()> {
        let socket = self.socket.as_raw_fd();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        self.refused += hand_over(headers, |headers| {
            // SAFETY: `send` made each header; what the headers point to lives in its frame, in the outbox and in
            // ZEROS, and this call only reads it.
            let sent = unsafe { libc::sendmmsg(socket, headers.as_mut_ptr(), headers.len() as u32, flags as _) };
            usize::try_from(sent).map_err(|_| io::Error::last_os_error())
        })?;
        Ok(())
    }

    fn set_ecn(&mut self, ecn: EcnBits) -> io::Result<()> {
        use rustix::net::sockopt;
        if self.ecn == ecn {
            return Ok(());
        }
        let tos = ecn.tos();
        if self.v6 {
            sockopt::set_ipv6_tclass(&self.socket, tos.into())
                .map_err(|error| call("setsockopt(IPV6_TCLASS)", error))?;
        }
        let set = sockopt::set_ip_tos(&self.socket, tos);
        if !self.v6 {
            set.map_err(|error| call("setsockopt(IP_TOS)", error))?;
        }
        self.ecn = ecn;
        Ok(())
    }
}

impl AsFd for UdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Buffer for control messages, aligned as their headers require.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// Reads a message's control messages: its ECN bits, and its arrival in nanoseconds since 1970.
fn said(header: &msghdr) -> (EcnBits, Option<u64>) {
    let (mut ecn, mut stamp) = (EcnBits::NotEct, None);
    // SAFETY: the kernel has filled the control buffer and set its length; CMSG_FIRSTHDR and CMSG_NXTHDR stay within
    // it.
    let mut next: *const cmsghdr = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: a non-null pointer is that of a whole control message header in the control buffer.
    while let Some(message) = unsafe { next.as_ref() } {
        // SAFETY: the data of a message follow its header.
        let data = unsafe { libc::CMSG_DATA(next) };
        // The type of cmsg_len depends on the C library: size_t in glibc, socklen_t in musl.
        let len = (message.cmsg_len as u64).saturating_sub((data as usize - next as usize) as u64);
        match (message.cmsg_level, message.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) if len >= size_of::<timespec>() as u64 => {
                // SAFETY: the message is as long as a timespec, which is read unaligned.
                let time = unsafe { data.cast::<timespec>().read_unaligned() };
                stamp = Some((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64));
            }
            // a byte for IPv4 (ip(7)); for IPv6 an int (ipv6(7)) with the traffic class in its low byte
            (libc::IPPROTO_IP, libc::IP_TOS) if len >= 1 => {
                // SAFETY: the message has a byte.
                ecn = EcnBits::of_tos(unsafe { data.read() });
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) if len >= size_of::<libc::c_int>() as u64 => {
                // SAFETY: the message is as long as an int, which is read unaligned.
                ecn = EcnBits::of_tos(unsafe { data.cast::<libc::c_int>().read_unaligned() } as u8);
            }
            _ => {}
        }
        // SAFETY: `next` lies in the control buffer of `header`.
        next = unsafe { libc::CMSG_NXTHDR(header, next) };
    }
    (ecn, stamp)
}

/// An address returned by the kernel; IPv4-mapped IPv6 becomes IPv4.
fn address(name: &sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a `sockaddr_in`, and the storage is large and aligned enough for any
            // address.
            let v4 = unsafe { *std::ptr::from_ref(name).cast::<sockaddr_in>() };
            let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let v6 = unsafe { *std::ptr::from_ref(name).cast::<sockaddr_in6>() };
            let ip = IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr)).to_canonical();
            let port = u16::from_be(v6.sin6_port);
            Some(match ip {
                IpAddr::V4(_) => SocketAddr::new(ip, port),
                IpAddr::V6(ip) => std::net::SocketAddrV6::new(ip, port, 0, v6.sin6_scope_id).into(),
            })
        }
        _ => None,
    }
}

/// An address in the kernel's form, for an IPv6 or an IPv4 socket.
fn storage(to: SocketAddr, v6: bool) -> (sockaddr_storage, u32) {
    // SAFETY: a plain C structure, for which all zeros are a valid value.
    let mut name: sockaddr_storage = unsafe { zeroed() };
    match (to, v6) {
        (SocketAddr::V4(to), false) => {
            let v4 = sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: to.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is large and aligned enough for any address.
            unsafe { std::ptr::from_mut(&mut name).cast::<sockaddr_in>().write(v4) };
            (name, size_of::<sockaddr_in>() as u32)
        }
        (to, _) => {
            let (ip, scope) = match to {
                SocketAddr::V4(to) => (to.ip().to_ipv6_mapped(), 0),
                SocketAddr::V6(to) => (*to.ip(), to.scope_id()),
            };
            let v6 = sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: to.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                sin6_scope_id: scope,
            };
            // SAFETY: as above.
            unsafe { std::ptr::from_mut(&mut name).cast::<sockaddr_in6>().write(v6) };
            (name, size_of::<sockaddr_in6>() as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox(count: usize, ecn: EcnBits) -> Outbox {
        let mut out = Outbox::default();
        for i in 0..count {
            out.push(1000, ecn, |to| to.extend_from_slice(&[i as u8 + 1; 20]));
        }
        out
    }

    /// A peer can cause a datagram to be refused, or an answer to go to any address; that neither ends a socket nor
    /// stops other datagrams.
    #[test]
    fn a_refused_datagram_takes_no_other_with_it() {
        // a mock socket: accepts two at a time, and returns a kernel's error for datagram 5
        let hand = |errno: i32| {
            let (mut left, mut sent) = ([1, 2, 3, 4, 5, 6, 7], Vec::new());
            let refused = hand_over(&mut left, |left| match left {
                [5, ..] => {
                    left[0] = 50; // once
                    Err(io::Error::from_raw_os_error(errno))
                }
                _ => {
                    let taken = left.iter().take(2).take_while(|it| **it != 5).copied();
                    let before = sent.len();
                    sent.extend(taken);
                    Ok(sent.len() - before)
                }
            });
            (refused.map_err(|error| error.raw_os_error()), sent)
        };
        let peers = [
            libc::EINVAL, // port 0
            libc::EACCES, // a broadcast address
            libc::EPERM,  // a firewall
            libc::EMSGSIZE,
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::EADDRNOTAVAIL,
            libc::EAFNOSUPPORT,
            libc::ENETDOWN,
            libc::ENOPROTOOPT,
        ];
        for errno in peers {
            assert_eq!(hand(errno), (Ok(1), vec![1, 2, 3, 4, 6, 7]), "{}", io::Error::from_raw_os_error(errno));
        }
        assert_eq!(hand(libc::EINTR), (Ok(0), vec![1, 2, 3, 4, 50, 6, 7]));
        for errno in [libc::EAGAIN, libc::ENOBUFS] {
            assert_eq!(hand(errno), (Ok(3), vec![1, 2, 3, 4]), "no room for what follows either");
        }
        for errno in [libc::ECONNREFUSED, libc::EBADF] {
            assert_eq!(hand(errno), (Err(Some(errno)), vec![1, 2, 3, 4]));
        }
    }

    /// Foreign programs send datagrams of any length: a whole port reads them completely, others ignore those that are
    /// too long instead of truncating them.
    #[test]
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    fn a_long_datagram_is_read_whole_or_left() {
        let (clock, near) = (Clock::start(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let any = "127.0.0.1:0".parse().unwrap();
        let (mut whole, mut own) = (UdpPort::bind_whole(any, clock).unwrap(), UdpPort::bind(any, clock).unwrap());
        let long: Vec<u8> = (0..65_507_u32).map(|i| (i % 251) as u8).collect();
        let lens = [12, LONGEST, LONGEST + 1, 3000, long.len(), 0, 100];
        for port in [&whole, &own] {
            lens.iter().for_each(|len| assert_eq!(near.send_to(&long[..*len], port.local().unwrap()).unwrap(), *len));
        }
        assert_eq!((whole.receive().unwrap(), own.receive().unwrap()), (lens.len(), lens.len()));
        let (received, kept): (Vec<_>, Vec<_>) = (whole.incoming().collect(), own.incoming().collect());
        assert_eq!(received.iter().map(|it| it.bytes.len()).collect::<Vec<_>>(), lens);
        assert!(received.iter().all(|it| it.bytes == &long[..it.bytes.len()] && it.from == near.local_addr().unwrap()));
        assert_eq!(kept.iter().map(|it| it.bytes.len()).collect::<Vec<_>>(), [12, LONGEST, 0, 100]);
        assert!(kept.iter().all(|it| it.bytes == &long[..it.bytes.len()]));
    }

    #[test]
    #[ignore = "real time"]
    fn batches_stamps_and_ecn() {
        crate::realtime::tried(|| {
            let clock = Clock::start();
            for (a, b) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0"), ("127.0.0.1:0", "[::]:0")] {
                let mut near = UdpPort::bind(a.parse().unwrap(), clock).unwrap();
                let mut far = match UdpPort::bind(b.parse().unwrap(), clock) {
                    Ok(far) => far,
                    Err(error) => {
                        eprintln!("skipped: no IPv6 here: {error}");
                        continue;
                    }
                };
                let ip = near.local().unwrap().ip();
                let to = SocketAddr::new(ip, far.local().unwrap().port());
                assert_eq!(far.receive().unwrap(), 0);
                let before = clock.now();
                near.send(&outbox(40, EcnBits::Ect0), to).unwrap();
                near.send(&outbox(3, EcnBits::Ect1), to).unwrap();
                near.send(&outbox(1, EcnBits::NotEct), to).unwrap();
                let after = clock.now();
                let mut all = Vec::new();
                while far.receive().unwrap() > 0 {
                    all.extend(far.incoming().map(|d| (d.time, d.from, d.ecn, d.bytes.len(), d.bytes[0])));
                }
                assert_eq!(all.len(), 44, "{a} to {b}");
                for (i, (time, from, ecn, len, first)) in all.iter().enumerate() {
                    assert_eq!((*from, *len), (near.local().unwrap(), 1020));
                    let (expected, number) = match i {
                        0..40 => (EcnBits::Ect0, i + 1),
                        40..43 => (EcnBits::Ect1, i - 39),
                        _ => (EcnBits::NotEct, 1),
                    };
                    assert_eq!((*ecn, usize::from(*first)), (expected, number));
                    let slack = Span::from_millis(1);
                    assert!(*time + slack >= before && *time <= after + slack, "{time:?} in {before:?}..{after:?}");
                }
                assert_eq!(near.refused(), 0);
                // and back
                far.send(&outbox(1, EcnBits::NotEct), near.local().unwrap()).unwrap();
                assert_eq!(near.receive().unwrap(), 1);
            }
        });
    }

    #[test]
    #[ignore = "real time"]
    fn a_connected_socket_learns_that_nobody_is_there() {
        crate::realtime::tried(|| {
            let clock = Clock::start();
            let mut near = UdpPort::bind("127.0.0.1:0".parse().unwrap(), clock).unwrap();
            let gone = UdpPort::bind("127.0.0.1:0".parse().unwrap(), clock).unwrap().local().unwrap();
            near.connect(gone).unwrap();
            near.send(&outbox(1, EcnBits::NotEct), gone).unwrap();
            let error = near.receive().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        });
    }
}
