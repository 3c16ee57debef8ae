//! The emulator's access to the two ends: a TUN, or a packet socket on one end of a veth pair.
//!
//! Packets that a kernel sends by itself on a link (router solicitations, multicast listener reports, link-local
//! traffic) are not carried: otherwise they would be lost, delayed and counted among a program's packets.

use super::call::{Attempt, Call, Refused};
use super::interface::{self, Devices};
use crate::path::device::{Device, Sent};
use rustix::event::{Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use std::io;

/// The device that the emulator reads an end's packets from and writes them to.
#[derive(Debug)]
pub enum NetDevice {
    /// A TUN without the packet information header.
    Tun(OwnedFd),
    /// A packet socket.
    Packet(PacketSocket),
}

impl NetDevice {
    /// Its kind: "tun" or "packet".
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            NetDevice::Tun(_) => "tun",
            NetDevice::Packet(_) => "packet",
        }
    }

    /// A second handle on a packet socket, to read its loss counter; the kernel counts a TUN's losses with its device.
    pub(super) fn counter(&self) -> Option<NetDevice> {
        match self {
            NetDevice::Tun(_) => None,
            NetDevice::Packet(PacketSocket { socket, index, to }) => {
                let socket = socket.try_clone().ok()?;
                Some(NetDevice::Packet(PacketSocket { socket, index: *index, to: *to }))
            }
        }
    }

    /// Packets that a packet socket had no room for since the last call.
    pub(super) fn lost(&self) -> u64 {
        let NetDevice::Packet(packet) = self else { return 0 };
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut len = size_of::<libc::tpacket_stats>() as u32;
        // SAFETY: the option writes this structure, whose size is passed.
        let got = unsafe {
            let to = std::ptr::from_mut(&mut statistics).cast();
            let fd = packet.socket.as_raw_fd();
            libc::getsockopt(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, to, &raw mut len)
        };
        if got == 0 { statistics.tp_drops.into() } else { 0 }
    }
}

/// A packet socket (`packet(7)`) on the emulator's end of a veth pair.
#[derive(Debug)]
pub struct PacketSocket {
    pub(super) socket: OwnedFd,
    /// Index of the device that it is bound to.
    pub(super) index: i32,
    /// Ethernet address of the program's end.
    pub(super) to: [u8; 6],
}

impl AsFd for NetDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            NetDevice::Tun(fd) => fd.as_fd(),
            NetDevice::Packet(socket) => socket.socket.as_fd(),
        }
    }
}

impl Device for NetDevice {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            let read = match self {
                NetDevice::Tun(fd) => rustix::io::read(fd, &mut *buffer),
                NetDevice::Packet(socket) => recv(&socket.socket, &mut *buffer, RecvFlags::empty()).map(|(n, _)| n),
            };
            match read {
                Ok(len) if carried(&buffer[..len]) => return Ok(Some(len)),
                // ENETDOWN: the program took the device down, and may set it up again.
                Ok(_) | Err(Errno::INTR | Errno::NETDOWN) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(gone(error)),
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<Sent> {
        loop {
            let sent = match self {
                NetDevice::Tun(fd) => rustix::io::write(fd, packet),
                NetDevice::Packet(socket) => socket.send(packet),
            };
            match sent {
                Ok(_) => return Ok(Sent::Whole),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(Sent::Full),
                // a packet's content, or firewall rules about it, must not end the path: if the device is gone, the
                // error says so
                Err(error) if !is_gone(error) => return Ok(Sent::Refused),
                Err(error) => return Err(gone(error)),
            }
        }
    }
}

/// Whether a write error means that the device no longer exists; a device that is down (EIO, ENETDOWN) may come back.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::BADF | Errno::BADFD | Errno::NODEV | Errno::NXIO | Errno::NOTSOCK)
}

fn gone(error: Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(error.kind(), format!("a device of the path is gone, its program may have deleted it: {error}"))
}

/// Whether a packet is a program's: IPv4 or IPv6, to a single host, not link-local.
fn carried(packet: &[u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) => packet.len() >= 20 && packet[16] < 224,
        Some(6) => packet.len() >= 40 && packet[24] != 0xff && !(packet[8] == 0xfe && packet[9] & 0xc0 == 0x80),
        _ => false,
    }
}

impl PacketSocket {
    /// Opens a packet socket bound to the device of this name. Does not allocate.
    pub(super) fn open(devices: &Devices, name: &[u8]) -> Attempt<(OwnedFd, i32)> {
        /// linux/if_packet.h
        const IGNORE_OUTGOING: i32 = 23;
        let index = devices.index(name)?;
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK;
        let socket = interface::socket(libc::AF_PACKET, kind, 0, Call::PacketSocket)?;
        let (one, len) = (1_i32, size_of::<i32>() as u32);
        // SAFETY: the option reads an integer, whose pointer and size are passed.
        let set = unsafe {
            let value = std::ptr::from_ref(&one).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, IGNORE_OUTGOING, value, len)
        };
        Call::PacketOutgoing.check(set)?;
        // As large as the system allows without privileges: the kernel limits it.
        let buffer = 8 << 20;
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, buffer);
        let address = link(index, libc::ETH_P_ALL as u16, [0; 6]);
        // SAFETY: the address is a complete `sockaddr_ll`, passed with its size.
        let bound = unsafe {
            let pointer = std::ptr::from_ref(&address).cast();
            libc::bind(socket.as_raw_fd(), pointer, size_of::<libc::sockaddr_ll>() as u32)
        };
        Call::PacketBind.check(bound)?;
        Ok((socket, index))
    }

    /// Waits until both ends of a veth pair pass packets: for a moment after it is set up, a device drops packets. Does
    /// not allocate.
    pub(super) fn wait_for_link(ends: [(&OwnedFd, i32); 2]) -> Attempt<()> {
        /// An experimental EtherType (IEEE 802), which no host answers.
        const PROBE: u16 = 0x88b5;
        const TRIES: usize = 1000;
        let mut received = [false; 2];
        for _ in 0..TRIES {
            for (fd, index) in ends {
                // an error is such a drop
                let _ = send(fd, &link(index, PROBE, [0xff; 6]), &[0; 46]);
            }
            let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: 2_000_000 }));
            for ((fd, _), arrived) in ends.iter().zip(&mut received) {
                let mut buffer = [0; 64];
                while recv(fd, &mut buffer[..], RecvFlags::empty()).is_ok() {
                    *arrived = true;
                }
            }
            if received == [true; 2] {
                return Ok(());
            }
        }
        Err(Refused { call: Call::Veth, errno: libc::ENETDOWN })
    }

    fn send(&self, packet: &[u8]) -> rustix::io::Result<usize> {
        let protocol =
            if packet.first().is_some_and(|byte| byte >> 4 == 6) { libc::ETH_P_IPV6 } else { libc::ETH_P_IP };
        send(&self.socket, &link(self.index, protocol as u16, self.to), packet)
    }
}

fn send(socket: &OwnedFd, to: &libc::sockaddr_ll, packet: &[u8]) -> rustix::io::Result<usize> {
    // SAFETY: the packet's bytes and a complete `sockaddr_ll` are passed with their sizes.
    let sent = unsafe {
        let address = std::ptr::from_ref(to).cast();
        let size = size_of::<libc::sockaddr_ll>() as u32;
        libc::sendto(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), libc::MSG_NOSIGNAL, address, size)
    };
    usize::try_from(sent).map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// An address of `packet(7)`.
fn link(index: i32, protocol: u16, hardware: [u8; 6]) -> libc::sockaddr_ll {
    let mut address = [0; 8];
    address[..6].copy_from_slice(&hardware);
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_packet_makes_a_device_gone() {
        let packets = [Errno::INVAL, Errno::MSGSIZE, Errno::PERM, Errno::HOSTUNREACH, Errno::AFNOSUPPORT, Errno::NOMEM];
        let down = [Errno::IO, Errno::NETDOWN];
        for error in packets.into_iter().chain(down) {
            assert!(!is_gone(error), "{error}");
        }
        // errors of a deleted TUN, and of a packet socket whose interface was deleted
        assert!(is_gone(Errno::BADFD) && is_gone(Errno::NXIO) && is_gone(Errno::NODEV));
    }

    #[test]
    fn only_packets_to_one_host_are_carried() {
        let mut four = [0; 28];
        four[0] = 0x45;
        four[16..20].copy_from_slice(&[198, 18, 0, 2]);
        assert!(carried(&four));
        assert!(!carried(&four[..19]));
        four[16] = 224;
        assert!(!carried(&four));
        let mut six = [0; 48];
        six[0] = 0x60;
        six[8..10].copy_from_slice(&[0xfd, 0xac]);
        six[24] = 0xfd;
        assert!(carried(&six));
        six[24] = 0xff;
        assert!(!carried(&six), "to a group");
        six[24] = 0xfd;
        six[8..10].copy_from_slice(&[0xfe, 0x80]);
        assert!(!carried(&six), "from a link-local address");
        assert!(!carried(&[]));
        assert!(!carried(&[0x50; 40]));
    }
}
