//! One gateway for an interface: a second would take the first's shaper and filters for what a killed one left.

use super::error::GatewayError;
use super::rtnetlink::Interface;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// An interface's gateway is this process, as long as this lives. The kernel takes it back from a process that has ended,
/// however it did.
#[derive(Debug)]
pub(super) struct Alone {
    _socket: OwnedFd,
}

/// Processes that may ask who it is before one of them is told to come again.
const ASKING: i32 = 64;

impl Alone {
    /// Claims an interface.
    pub(super) fn on(interface: &Interface) -> Result<Alone, GatewayError> {
        let failed = |error: Errno| GatewayError::System { what: "claiming the interface", error: error.into() };
        // A name without a file belongs to the network namespace (unix(7)), as the interface's number does.
        let name = format!("paceline-gateway-{}", interface.index);
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(failed)?;
        let socket = socket().map_err(failed)?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => {
                return Err(GatewayError::Running { name: interface.name.clone(), process: holder(&address) });
            }
            Err(error) => return Err(failed(error)),
        }
        rustix::net::listen(&socket, ASKING).map_err(failed)?;
        Ok(Alone { _socket: socket })
    }
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The process that has claimed it; `None` if it cannot be told: it lives in another process namespace, say.
fn holder(address: &SocketAddrUnix) -> Option<i32> {
    let socket = socket().ok()?;
    rustix::net::connect(&socket, address).ok()?;
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a whole structure and its size.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    (result == 0 && peer.pid > 0).then_some(peer.pid)
}
