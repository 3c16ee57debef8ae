//! Messages between Paceline and the init of a namespace over a socket, one per datagram. Does not allocate.

use super::call::{Attempt, Call, Refused};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// A message from init.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InitMessage {
    /// The TUN exists; its descriptor comes with the message.
    Tun,
    /// The same for a packet socket: the index of its device, and the Ethernet address of the program's end.
    Packet(i32, [u8; 6]),
    /// A call was refused that the path works without.
    Without(Refused),
    /// A call was refused that the path needs. Init has ended.
    Failed(Refused),
    /// The program runs.
    Started,
    /// The program could not be run.
    NotStarted(Refused),
    /// The program has ended with this status, as from `wait(2)`.
    Exited(i32),
    /// After [`InitCommand::All`]: nothing runs any more.
    Empty,
}

/// A command to init. Init ends when the connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InitCommand {
    /// Run the program; the value is the start of the path's clock in nanoseconds since 1970.
    Run(u64),
    /// Send the program a signal.
    Signal(i32),
    /// Send a signal to everything that runs, and report when nothing does any more.
    All(i32),
}

type Words = [i32; 4];

fn bytes(words: Words) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (slot, word) in bytes.chunks_exact_mut(4).zip(words) {
        slot.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn words(bytes: &[u8; 16]) -> Words {
    let word = |n: usize| i32::from_ne_bytes([bytes[n], bytes[n + 1], bytes[n + 2], bytes[n + 3]]);
    [word(0), word(4), word(8), word(12)]
}

impl InitMessage {
    fn encode(self) -> Words {
        match self {
            InitMessage::Tun => [1, 0, 0, 0],
            InitMessage::Packet(index, [a, b, c, d, e, f]) => {
                [2, index, i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, 0, 0])]
            }
            InitMessage::Without(refused) => [3, refused.call.number(), refused.errno, 0],
            InitMessage::Failed(refused) => [4, refused.call.number(), refused.errno, 0],
            InitMessage::Started => [5, 0, 0, 0],
            InitMessage::NotStarted(refused) => [6, refused.call.number(), refused.errno, 0],
            InitMessage::Exited(status) => [7, status, 0, 0],
            InitMessage::Empty => [8, 0, 0, 0],
        }
    }

    fn decode([kind, one, two, three]: Words) -> Option<InitMessage> {
        let refused = || Some(Refused { call: Call::of(one)?, errno: two });
        Some(match kind {
            1 => InitMessage::Tun,
            2 => {
                let ([a, b, c, d], [e, f, ..]) = (two.to_ne_bytes(), three.to_ne_bytes());
                InitMessage::Packet(one, [a, b, c, d, e, f])
            }
            3 => InitMessage::Without(refused()?),
            4 => InitMessage::Failed(refused()?),
            5 => InitMessage::Started,
            6 => InitMessage::NotStarted(refused()?),
            7 => InitMessage::Exited(one),
            8 => InitMessage::Empty,
            _ => return None,
        })
    }

    pub(super) fn send(self, to: BorrowedFd<'_>, fd: Option<BorrowedFd<'_>>) -> Attempt<()> {
        let bytes = bytes(self.encode());
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: [BorrowedFd<'_>; 1] = [fd.unwrap_or(to)];
        if fd.is_some() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let sent = rustix::net::sendmsg(to, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL);
        sent.map(drop).map_err(Call::Send.with())
    }

    /// The next message; `None` if init has ended.
    pub(super) fn receive(from: &impl AsFd) -> Option<(InitMessage, Option<OwnedFd>)> {
        let mut bytes = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let len = loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(from, &mut slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(message) => break message.bytes,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        };
        if len != bytes.len() {
            return None;
        }
        let fd = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        Some((InitMessage::decode(words(&bytes))?, fd))
    }
}

impl InitCommand {
    pub(super) fn send(self, to: &impl AsFd) -> Attempt<()> {
        let words = match self {
            InitCommand::Run(start) => [1, start as i32, (start >> 32) as i32, 0],
            InitCommand::Signal(number) => [2, number, 0, 0],
            InitCommand::All(number) => [3, number, 0, 0],
        };
        rustix::net::send(to, &bytes(words), SendFlags::NOSIGNAL).map(drop).map_err(Call::Send.with())
    }

    /// The next command; `None` if the sender is gone.
    pub(super) fn receive(from: BorrowedFd<'_>) -> Option<InitCommand> {
        let mut bytes = [0; 16];
        loop {
            match rustix::net::recv(from, &mut bytes[..], RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                Ok((16, _)) => break,
                _ => return None,
            }
        }
        match words(&bytes) {
            [1, low, high, _] => Some(InitCommand::Run(u64::from(low as u32) | u64::from(high as u32) << 32)),
            [2, number, ..] => Some(InitCommand::Signal(number)),
            [3, number, ..] => Some(InitCommand::All(number)),
            _ => None,
        }
    }
}

/// Whether these bytes, if they are a valid message from init, decode to the same message after encoding it again.
pub(crate) fn is_kept(bytes: &[u8; 16]) -> bool {
    InitMessage::decode(words(bytes)).is_none_or(|said| InitMessage::decode(said.encode()) == Some(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let refused = Refused { call: Call::OpenTun, errno: libc::EACCES };
        for said in [
            InitMessage::Tun,
            InitMessage::Packet(7, [2, 255, 0, 1, 128, 3]),
            InitMessage::Without(refused),
            InitMessage::Failed(refused),
            InitMessage::Started,
            InitMessage::NotStarted(refused),
            InitMessage::Exited(0x0900),
            InitMessage::Empty,
        ] {
            said.send(one.as_fd(), None).unwrap();
            let (got, fd) = InitMessage::receive(&other).unwrap();
            assert_eq!(got, said);
            assert!(fd.is_none());
        }
        InitMessage::Tun.send(one.as_fd(), Some(one.as_fd())).unwrap();
        assert!(InitMessage::receive(&other).unwrap().1.is_some());
        for command in [InitCommand::Run(0x8123_4567_89ab_cdef), InitCommand::Signal(15), InitCommand::All(15)] {
            command.send(&other).unwrap();
            assert_eq!(InitCommand::receive(one.as_fd()), Some(command));
        }
        drop(one);
        assert!(InitMessage::receive(&other).is_none());
        assert_eq!(InitCommand::receive(other.as_fd()), None);
    }
}
