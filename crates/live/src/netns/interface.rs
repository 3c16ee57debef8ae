//! Network devices through `ioctl(2)`, `netdevice(7)`: names, flags, addresses; TUN; veth pairs.
//!
//! Nothing here allocates: it runs between `clone(2)` and `execve(2)`, where other threads' locks may be held forever.

use super::call::{Attempt, Call, Refused};
use crate::netlink::{self, HEADER, Outcome};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvFlags, SendFlags};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The MTU of a path's devices in bytes: Ethernet's.
pub const MTU: u32 = 1500;
/// Queue length of a device in packets, for when the emulator does not read.
const QUEUE: u32 = 2000;

// linux/sockios.h, linux/ethtool.h
const TUNSETIFF: u64 = libc::TUNSETIFF as u32 as u64;
const SIOCGIFFLAGS: u64 = 0x8913;
const SIOCSIFFLAGS: u64 = 0x8914;
const SIOCSIFADDR: u64 = 0x8916;
const SIOCSIFNETMASK: u64 = 0x891c;
const SIOCSIFMTU: u64 = 0x8922;
const SIOCGIFHWADDR: u64 = 0x8927;
const SIOCGIFINDEX: u64 = 0x8933;
const SIOCSIFTXQLEN: u64 = 0x8943;
const SIOCETHTOOL: u64 = 0x8946;
/// The commands that switch transmit checksums, TSO, GSO and GRO.
const ETHTOOL_SWITCHES: [u32; 4] = [0x17, 0x1f, 0x24, 0x2c];

/// `struct ifreq`: a name and a union of at most 24 bytes.
#[repr(C, align(8))]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    value: [u8; 24],
}

impl Request {
    fn new(name: &[u8], value: &[u8]) -> Request {
        let mut request = Request { name: [0; libc::IFNAMSIZ], value: [0; 24] };
        let len = name.len().min(libc::IFNAMSIZ - 1);
        request.name[..len].copy_from_slice(&name[..len]);
        request.value[..value.len()].copy_from_slice(value);
        request
    }

    fn word(&self) -> i32 {
        i32::from_ne_bytes([self.value[0], self.value[1], self.value[2], self.value[3]])
    }
}

fn ioctl<T>(fd: BorrowedFd<'_>, number: u64, argument: &mut T) -> i32 {
    // SAFETY: each request number in this file reads and writes at most the `T` that its callers pass with it:
    // `Request`, which is as large as the kernel's `struct ifreq`, or `struct in6_ifreq`.
    unsafe { libc::ioctl(fd.as_raw_fd(), number as _, std::ptr::from_mut(argument)) }
}

/// A socket for ioctls on the devices of the current namespace.
pub(super) struct Devices(OwnedFd);

impl Devices {
    pub(super) fn open() -> Attempt<Devices> {
        Ok(Devices(socket(libc::AF_INET, libc::SOCK_DGRAM, 0, Call::Socket)?))
    }

    fn ioctl(&self, call: Call, number: u64, name: &[u8], value: &[u8]) -> Attempt<Request> {
        let mut request = Request::new(name, value);
        call.check(ioctl(self.0.as_fd(), number, &mut request))?;
        Ok(request)
    }

    /// The index of a device.
    pub(super) fn index(&self, name: &[u8]) -> Attempt<i32> {
        Ok(self.ioctl(Call::Index, SIOCGIFINDEX, name, &[])?.word())
    }

    /// Its Ethernet address.
    pub(super) fn hardware(&self, name: &[u8]) -> Attempt<[u8; 6]> {
        let answer = self.ioctl(Call::Hardware, SIOCGIFHWADDR, name, &[])?;
        let mut address = [0; 6];
        address.copy_from_slice(&answer.value[2..8]);
        Ok(address)
    }

    /// Sets MTU and queue length, and sets the device up without ARP, neighbour discovery and multicast, so that the
    /// path carries only what programs send.
    pub(super) fn raise(&self, name: &[u8]) -> Attempt<()> {
        self.ioctl(Call::Mtu, SIOCSIFMTU, name, &MTU.to_ne_bytes())?;
        // if this fails, the default is sufficient
        let _ = self.ioctl(Call::Mtu, SIOCSIFTXQLEN, name, &QUEUE.to_ne_bytes());
        let flags = self.ioctl(Call::Flags, SIOCGIFFLAGS, name, &[])?.word() as i16;
        let flags = (flags | (libc::IFF_UP | libc::IFF_NOARP) as i16) & !(libc::IFF_MULTICAST as i16);
        self.ioctl(Call::Flags, SIOCSIFFLAGS, name, &flags.to_ne_bytes())?;
        Ok(())
    }

    /// Sets an IPv4 address, with the network of `prefix` bits around it.
    pub(super) fn address(&self, name: &[u8], address: Ipv4Addr, prefix: u8) -> Attempt<()> {
        let mask = Ipv4Addr::from_bits(u32::MAX << (32 - prefix));
        for (number, address) in [(SIOCSIFADDR, address), (SIOCSIFNETMASK, mask)] {
            let mut value = [0; 16];
            value[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            value[4..8].copy_from_slice(&address.octets());
            self.ioctl(Call::Address, number, name, &value)?;
        }
        Ok(())
    }

    /// Adds an IPv6 address, usable at once, without duplicate address detection (IFA_F_NODAD): an ioctl would leave it
    /// tentative for a moment, in which pings are not answered.
    pub(super) fn address6(&self, name: &[u8], address: Ipv6Addr, prefix: u8) -> Attempt<()> {
        // linux/if_addr.h
        const ADDRESS: u16 = 1;
        const LOCAL: u16 = 2;
        const NO_DAD: u8 = 2;
        let mut message = Message::new();
        message.put(&[libc::AF_INET6 as u8, prefix, NO_DAD, 0]);
        message.put(&self.index(name)?.to_ne_bytes());
        message.attribute(LOCAL, &address.octets());
        message.attribute(ADDRESS, &address.octets());
        message.send(libc::RTM_NEWADDR, Call::Address6)?;
        wait_until_local(address);
        Ok(())
    }

    /// Sets the loopback device up.
    pub(super) fn loopback(&self) -> Attempt<()> {
        let flags = (libc::IFF_UP | libc::IFF_LOOPBACK | libc::IFF_RUNNING) as i16;
        self.ioctl(Call::Flags, SIOCSIFFLAGS, b"lo", &flags.to_ne_bytes())?;
        Ok(())
    }

    /// Disables offloads, so that the kernel computes checksums and splits segments before the device: a packet socket
    /// passes packets on unchanged.
    pub(super) fn no_offloads(&self, name: &[u8]) -> Attempt<()> {
        for command in ETHTOOL_SWITCHES {
            let mut switch: [u32; 2] = [command, 0];
            let pointer = std::ptr::from_mut(&mut switch) as usize;
            self.ioctl(Call::Offload, SIOCETHTOOL, name, &pointer.to_ne_bytes())?;
        }
        Ok(())
    }
}

/// Opens a close-on-exec socket.
pub(super) fn socket(family: i32, kind: i32, protocol: i32, call: Call) -> Attempt<OwnedFd> {
    // SAFETY: takes three numbers, and returns a descriptor with no other owner.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    call.check(fd)?;
    // SAFETY: it has just been opened.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Creates a TUN of this name in the current namespace. It lasts as long as its descriptor.
pub(super) fn tun(name: &[u8]) -> Attempt<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::open(c"/dev/net/tun", flags, Mode::empty()).map_err(Call::OpenTun.with())?;
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL) as i16;
    let mut request = Request::new(name, &flags.to_ne_bytes());
    Call::TunSetIff.check(ioctl(fd.as_fd(), TUNSETIFF, &mut request))?;
    Ok(fd)
}

/// Waits until packets to a local address are accepted: the kernel adds its route a moment after the address, and drops
/// packets in between. Waits at most a second.
fn wait_until_local(address: Ipv6Addr) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    // A row of /proc/net/ipv6_route begins with the destination and the length of its prefix, in hexadecimal.
    let mut row = *b"00000000000000000000000000000000 80 ";
    for (digits, byte) in row.chunks_exact_mut(2).zip(address.octets()) {
        digits.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    for _ in 0..500 {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(table) = rustix::fs::open(c"/proc/self/net/ipv6_route", flags, Mode::empty()) else { return };
        let (mut buffer, mut kept) = ([0; 4096], 0);
        while let Ok(len @ 1..) = rustix::io::read(&table, &mut buffer[kept..]) {
            let filled = kept + len;
            if buffer[..filled].windows(row.len()).any(|part| part == row) {
                return;
            }
            // a row may cross the boundary of two reads
            kept = filled.min(row.len());
            buffer.copy_within(filled - kept..filled, 0);
        }
        let _ = rustix::event::poll(&mut [], Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 2_000_000 }));
    }
}

/// A message of `rtnetlink(7)` under construction: [`netlink::Request`] without an allocation.
struct Message {
    bytes: [u8; 256],
    len: usize,
}

impl Message {
    fn new() -> Message {
        Message { bytes: [0; 256], len: HEADER }
    }

    /// Sends the request, and waits for its result.
    fn send(mut self, kind: u16, call: Call) -> Attempt<()> {
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.bytes[..HEADER].copy_from_slice(&netlink::header(self.len, kind, flags, 0));
        let socket = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE, Call::Netlink)?;
        rustix::net::send(&socket, &self.bytes[..self.len], SendFlags::empty()).map_err(call.with())?;
        let mut answer = [0; 512];
        let (len, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).map_err(call.with())?;
        match netlink::messages(&answer[..len]).next().map(|message| message.outcome()) {
            Some(Outcome::Done) => Ok(()),
            Some(Outcome::Refused(errno)) => Err(Refused { call, errno }),
            Some(Outcome::Part | Outcome::Damaged) | None => Err(Refused { call, errno: libc::EIO }),
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len = (self.len + bytes.len()).next_multiple_of(4);
    }

    /// Begins an attribute; what is added until `end` belongs to it.
    fn begin(&mut self, kind: u16) -> usize {
        let at = self.len;
        self.put(&[0, 0]);
        self.len = at + 2;
        self.put(&kind.to_ne_bytes());
        at
    }

    fn end(&mut self, at: usize) {
        let len = (self.len - at) as u16;
        self.bytes[at..at + 2].copy_from_slice(&len.to_ne_bytes());
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let at = self.begin(kind);
        self.put(value);
        // the length excludes the padding
        let len = (4 + value.len()) as u16;
        self.bytes[at..at + 2].copy_from_slice(&len.to_ne_bytes());
    }
}

/// Creates a veth pair: `outer` in the current namespace, `inner` in the namespace of the descriptor.
pub(super) fn veth(outer: &[u8], inner: &[u8], namespace: BorrowedFd<'_>) -> Attempt<()> {
    // linux/if_link.h
    const IFNAME: u16 = 3;
    const LINKINFO: u16 = 18;
    const NET_NS_FD: u16 = 28;
    const KIND: u16 = 1;
    const DATA: u16 = 2;
    // linux/veth.h
    const PEER: u16 = 1;
    let mut message = Message::new();
    message.put(&[0; 16]);
    message.attribute(IFNAME, outer);
    let info = message.begin(LINKINFO);
    message.attribute(KIND, b"veth");
    let data = message.begin(DATA);
    let peer = message.begin(PEER);
    message.put(&[0; 16]);
    message.attribute(IFNAME, inner);
    message.attribute(NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
    message.end(peer);
    message.end(data);
    message.end(info);
    message.send(libc::RTM_NEWLINK, Call::Veth)
}
