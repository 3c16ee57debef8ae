//! The ends of an emulated path: what IP packets are read from and written to.

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Where the packets of one end come from and go to: a TUN, a packet socket, a socket of a test. It never blocks.
pub trait Device: AsFd {
    /// Puts the next IP packet, beginning with its IP header, into `buffer` and gives its length; `None` if there is none
    /// now. What is longer than the buffer is cut.
    ///
    /// # Errors
    /// Why nothing will come any more: the device is gone. What concerns a single packet is no error of the device.
    fn recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Hands over one IP packet.
    ///
    /// # Errors
    /// Why nothing can be sent any more: the device is gone.
    fn send(&mut self, packet: &[u8]) -> io::Result<Sent>;
}

/// What became of a packet handed to a [`Device`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// It is on its way.
    Whole,
    /// The device is full.
    Full,
    /// The system refuses this packet (too long, malformed), and may take others.
    Refused,
}

/// A socket that keeps packets apart, each message an IP packet: for tests and measurements without privileges.
#[derive(Debug)]
pub struct Messages(OwnedFd);

impl Messages {
    /// Two sockets, each of which receives what the other sends.
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
