//! One gateway for an interface: a second would take the first's shaper and filters for what a killed one left.
//!
//! Two claims, as neither does alone. A name of an abstract socket belongs to the network namespace (unix(7)), as the
//! interface's number does, whichever files and rights a gateway has; but any user may take it, so a holder counts only
//! if it is root's or the gateway's own user's. A lock in `/run` is root's alone; but who has other files, or is not
//! root, does not have it. The kernel takes both back from a process that has ended, however it did.

use super::error::GatewayError;
use super::rtnetlink::Interface;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// An interface's gateway is this process, as long as this lives.
#[derive(Debug)]
pub(super) struct Alone {
    _socket: Option<OwnedFd>,
    _file: Option<OwnedFd>,
}

/// Processes that may ask who it is before one of them is told to come again.
const ASKING: i32 = 64;
/// A byte in it for each interface of each network namespace. It is never removed: another could hold the old one then.
const LOCKS: &str = "/run/paceline-gateway.lock";

impl Alone {
    /// Claims an interface.
    pub(super) fn on(interface: &Interface) -> Result<Alone, GatewayError> {
        let failed = |error: Errno| GatewayError::System { what: "claiming the interface", error: error.into() };
        let running = |process| Err(GatewayError::Running { name: interface.name.clone(), process });
        let name = format!("paceline-gateway-{}", interface.index);
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(failed)?;
        let socket = socket().map_err(failed)?;
        let socket = match rustix::net::bind(&socket, &address) {
            Ok(()) => Some(socket),
            Err(Errno::ADDRINUSE) => match holder(&address) {
                Some(peer) if is_trusted(peer.uid) => return running((peer.pid > 0).then_some(peer.pid)),
                _ => None,
            },
            Err(error) => return Err(failed(error)),
        };
        let file = lock(interface.index);
        if matches!(file, Err(Errno::AGAIN | Errno::ACCESS)) {
            return running(None);
        }
        if let Some(socket) = &socket {
            rustix::net::listen(socket, ASKING).map_err(failed)?;
        }
        Ok(Alone { _socket: socket, _file: file.ok().flatten() })
    }
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Who has claimed it, by what the kernel knew when it began to listen: no process is given another's name by that. `None`
/// if nobody listens, or has not yet.
fn holder(address: &SocketAddrUnix) -> Option<libc::ucred> {
    let socket = socket().ok()?;
    rustix::net::connect(&socket, address).ok()?;
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a whole structure and its size.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    (result == 0).then_some(peer)
}

/// The lock of an interface: `None` if there can be none here, EAGAIN or EACCES if another has it.
fn lock(index: u32) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(LOCKS, flags, Mode::RUSR | Mode::WUSR) else { return Ok(None) };
    let namespace = rustix::fs::stat("/proc/thread-self/ns/net")?.st_ino;
    // SAFETY: numbers.
    let mut range = unsafe { std::mem::zeroed::<libc::flock>() };
    range.l_type = libc::F_WRLCK as i16;
    range.l_whence = libc::SEEK_SET as i16;
    // The kernel numbers namespaces with 32 bits, and interfaces with 31.
    range.l_start = ((namespace as i64 & 0x7fff_ffff) << 32) | i64::from(index);
    range.l_len = 1;
    // SAFETY: a whole structure. The lock is the open file's, not the process's: it goes with the last descriptor.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 {
        return Ok(Some(file));
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        Some(taken @ (Errno::AGAIN | Errno::ACCESS)) => Err(taken),
        _ => Ok(None),
    }
}
