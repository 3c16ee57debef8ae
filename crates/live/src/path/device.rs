//! The devices at the ends of an emulated path: IP packets are read from and written to them.

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Source and destination of one end's packets: a TUN, a packet socket, a socket in tests. It never blocks.
pub trait Device: AsFd {
    /// Reads the next IP packet, beginning with its IP header, into `buffer` and returns its length; `None` if there is
    /// none now. A packet longer than the buffer is truncated.
    ///
    /// # Errors
    /// If the device is gone and nothing will arrive any more. A problem with a single packet is not an error of the
    /// device.
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends one IP packet.
    ///
    /// # Errors
    /// If the device is gone and nothing can be sent any more.
    fn send(&mut self, packet: &[u8]) -> io::Result<Sent>;
}

/// Result of passing a packet to a [`Device`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It was sent.
    Whole,
    /// The device is full.
    Full,
    /// The system refuses this packet (too long, malformed), but may accept others.
    Refused,
}

/// A socket that preserves packet boundaries, with an IP packet per message: for tests and measurements without
/// privileges.
#[derive(Debug)]
pub struct Messages(OwnedFd);

impl Messages {
    /// Creates two sockets, each of which receives what the other sends.
    ///
    /// # Errors
    /// `socketpair(2)`'s.
    pub fn pair() -> io::Result<(Messages, Messages)> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Messages(one), Messages(other)))
    }
}

impl AsFd for Messages {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Device for Messages {
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match recv(&self.0, &mut *buffer, RecvFlags::empty()) {
                Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok((len, _)) => return Ok(Some(len)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<Sent> {
        loop {
            match send(&self.0, packet, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(Sent::Whole),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => return Ok(Sent::Full),
                Err(Errno::MSGSIZE | Errno::INVAL) => return Ok(Sent::Refused),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_packets_apart_and_never_block() {
        let (mut one, mut other) = Messages::pair().unwrap();
        let mut buffer = [0; 100];
        assert_eq!(other.recv(&mut buffer).unwrap(), None);
        assert_eq!(one.send(b"ab").unwrap(), Sent::Whole);
        assert_eq!(one.send(b"c").unwrap(), Sent::Whole);
        assert_eq!(other.recv(&mut buffer).unwrap(), Some(2));
        assert_eq!(other.recv(&mut buffer).unwrap(), Some(1));
        while one.send(&[0; 1000]).unwrap() == Sent::Whole {}
        drop(one);
        while let Ok(Some(_)) = other.recv(&mut buffer) {}
        assert_eq!(other.recv(&mut buffer).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
