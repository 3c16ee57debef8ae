//! Where flows send their datagrams: sockets, or a path in virtual time (`worlds`).

use super::udp::UdpPort;
use crate::session::Outbox;
use std::io;
use std::net::SocketAddr;

/// A port that sends datagrams.
pub(super) trait Port {
    /// Sends them to `to`, which is the peer of a connected port.
    ///
    /// # Errors
    /// `ConnectionRefused`: nobody listens there.
    fn send(&mut self, out: &Outbox, to: SocketAddr) -> io::Result<()>;

    /// Datagrams for which there was no room, or that were refused.
    fn refused(&self) -> u64;
}

impl Port for UdpPort {
    fn send(&mut self, out: &Outbox, to: SocketAddr) -> io::Result<()> {
        UdpPort::send(self, out, to)
    }

    fn refused(&self) -> u64 {
        UdpPort::refused(self)
    }
}
