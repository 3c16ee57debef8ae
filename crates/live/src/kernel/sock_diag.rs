//! The TCP connections of all programs in a network namespace, with their internals: netlink's socket diagnostics
//! (`sock_diag(7)`), which need no privilege.
//!
//! [`Diag`] lists connections and reads a single one; [`Ends`] receives an event for each destroyed socket with its
//! last internals, so the end of a connection is never missed between two readings.

pub use super::wire::{Family, Filter, Socket};

use super::wire;
use crate::netlink::{self, BUFFER, Outcome, receive};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::set_socket_recv_buffer_size;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The network namespace whose sockets a [`Diag`] lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Place {
    /// In the network namespace of the calling thread.
    #[default]
    Here,
    /// In the network namespace of a process; any other than the caller's needs CAP_SYS_ADMIN there.
    OfProcess(u32),
}

/// Calls `make` in a place; if that is another namespace, on a separate thread that ends with the call.
fn within<T: Send>(place: Place, make: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let Place::OfProcess(pid) = place else { return make() };
    let path = format!("/proc/{pid}/ns/net");
    let theirs = std::fs::read_link(&path);
    if theirs.is_ok() && theirs.ok() == std::fs::read_link("/proc/thread-self/ns/net").ok() {
        return make();
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            #[expect(clippy::disallowed_types, reason = "a namespace is named by a file")]
            let namespace = std::fs::File::open(&path)?;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            make()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace ended early")))
    })
}

/// A netlink socket for requests.
#[derive(Debug)]
pub struct Diag {
    socket: netlink::Socket,
}

impl Diag {
    /// Opens a socket.
    ///
    /// # Errors
    /// The system's: EPROTONOSUPPORT if the kernel has no socket diagnostics, EACCES or EPERM for a namespace.
    pub fn open(place: Place) -> io::Result<Diag> {
        Ok(Diag { socket: within(place, || netlink::Socket::open(Some(SOCK_DIAG)))? })
    }

    /// All of a family's connections that pass the filter, except those that are listening, half open or in TIME-WAIT
    /// (they have no internals).
    ///
    /// # Errors
    /// The system's: ENOENT if the kernel has no TCP diagnostics (module `tcp_diag`).
    pub fn dump(&mut self, family: Family, filter: Filter) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        self.socket.request(wire::dump(family, filter), |message| match message.outcome() {
            Outcome::Part => {
                found.extend(wire::socket(message));
                ControlFlow::Continue(())
            }
            Outcome::Done => ControlFlow::Break(Ok(())),
            Outcome::Refused(code) => ControlFlow::Break(Err(io::Error::from_raw_os_error(code))),
            Outcome::Damaged => ControlFlow::Continue(()),
        })??;
        Ok(found)
    }

    /// Reads a connection again; `None` if it is gone or in TIME-WAIT.
    ///
    /// # Errors
    /// The system's.
    pub fn again(&mut self, socket: &Socket) -> io::Result<Option<Socket>> {
        self.socket.request(wire::exact(socket.family, &socket.id), |message| match message.outcome() {
            Outcome::Part => match wire::socket(message) {
                Some(now) => {
                    ControlFlow::Break(Ok(Some(now).filter(|now| now.cookie == socket.cookie && now.info.is_some())))
                }
                None => ControlFlow::Continue(()),
            },
            // ESTALE: another socket now has these addresses.
            Outcome::Refused(libc::ENOENT | libc::ESTALE) | Outcome::Done => ControlFlow::Break(Ok(None)),
            Outcome::Refused(code) => ControlFlow::Break(Err(io::Error::from_raw_os_error(code))),
            Outcome::Damaged => ControlFlow::Continue(()),
        })?
    }
}

/// The sockets that a datagram of socket diagnostics describes. Accepts any bytes; damaged parts are left out.
#[must_use]
pub fn sockets(datagram: &[u8]) -> Vec<Socket> {
    netlink::messages(datagram).filter_map(|message| wire::socket(&message)).collect()
}

/// Multicast groups for destroyed TCP sockets over IPv4 and IPv6, as bits (`enum sknetlink_groups`, 1 and 3).
const DESTROYED: u32 = 1 << 0 | 1 << 2;

/// A netlink socket that receives an event for each destroyed TCP socket.
#[derive(Debug)]
pub struct Ends {
    socket: OwnedFd,
    buffer: Vec<u8>,
    /// Number of times that the socket's buffer overflowed and events were lost.
    pub overruns: u64,
}

impl Ends {
    /// Opens a socket, which reports the sockets destroyed from now on.
    ///
    /// # Errors
    /// The system's; kernels before 4.3 have no such groups.
    pub fn open(place: Place) -> io::Result<Ends> {
        let socket = within(place, || {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))?;
            rustix::net::bind(&socket, &SocketAddrNetlink::new(0, DESTROYED))?;
            Ok(socket)
        })?;
        // The system grants less if its limit is lower; the default of 200 kB holds some hundred connections.
        set_socket_recv_buffer_size(&socket, 4 << 20)?;
        Ok(Ends { socket, buffer: vec![0; BUFFER], overruns: 0 })
    }

    /// The sockets destroyed since the last call, with their last internals. Their state is closed, their inode zero.
    ///
    /// # Errors
    /// The system's.
    pub fn take(&mut self) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        loop {
            match receive(&self.socket, &mut self.buffer, RecvFlags::DONTWAIT) {
                Ok(len) => found.extend(sockets(&self.buffer[..len])),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(found),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.overruns += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Ends {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "tests of sockets")]
mod tests {
    use super::*;
    use crate::kernel::tcp_info::State;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    fn pair(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?;
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Some((client, listener.accept().unwrap().0))
    }

    #[test]
    #[ignore = "real time"]
    fn a_connection_is_found_asked_again_and_its_end_is_heard() {
        for (address, family) in [("127.0.0.1:0", Family::V4), ("[::1]:0", Family::V6)] {
            let Some((mut client, mut server)) = pair(address) else { continue };
            let mut diag = Diag::open(Place::Here).unwrap();
            let mut ends = Ends::open(Place::Here).unwrap();
            let filter = Filter { local_port: Some(client.local_addr().unwrap().port()), peer_port: None };
            let found = diag.dump(family, filter).unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].local, client.local_addr().unwrap());
            assert_eq!(found[0].peer, server.local_addr().unwrap());
            assert!(found[0].inode != 0 && found[0].congestion_control.is_some());
            assert_eq!(found[0].state, Some(State::Established));
            client.write_all(&[7; 3000]).unwrap();
            server.read_exact(&mut [0; 3000]).unwrap();
            let now = diag.again(&found[0]).unwrap().unwrap();
            assert_eq!(now.info.unwrap().bytes_sent, Some(3000));
            drop(client);
            drop(server);
            let mut last = Vec::new();
            for _ in 0..200 {
                last.extend(ends.take().unwrap().into_iter().filter(|socket| socket.cookie == found[0].cookie));
                if !last.is_empty() {
                    break;
                }
                #[expect(clippy::disallowed_methods, reason = "a test waits for the kernel")]
                std::thread::sleep(Duration::from_millis(10));
            }
            assert_eq!(last.len(), 1);
            assert_eq!(last[0].info.unwrap().bytes_sent, Some(3000));
            assert_eq!(diag.again(&found[0]).unwrap(), None);
        }
    }

    #[test]
    #[ignore = "real time"]
    fn the_namespace_of_ones_own_process_is_here() {
        let mut diag = Diag::open(Place::OfProcess(std::process::id())).unwrap();
        diag.dump(Family::V4, Filter::default()).unwrap();
        assert!(Diag::open(Place::OfProcess(u32::MAX)).is_err());
    }
}
