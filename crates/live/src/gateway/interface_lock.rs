//! Ensures one gateway per interface: a second would mistake the first's shaper and filters for leftovers of a killed
//! gateway.
//!
//! It makes two claims, since neither suffices alone. The name of an abstract socket belongs to the network namespace
//! (unix(7)), like the interface's index, and does not depend on a gateway's files and privileges; but any user may
//! take it, so a holder counts only if it is root or the gateway's own user. A lock in `/run` is reserved for root; but
//! a gateway with other files, or without root, cannot take it. The kernel releases both when a process has ended,
//! however it did.

use super::error::GatewayError;
use super::rtnetlink::Interface;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// While this exists, this process is the interface's only gateway.
#[derive(Debug)]
pub(super) struct InterfaceLock {
    _socket: Option<OwnedFd>,
    _file: Option<OwnedFd>,
}

/// Listen backlog: number of processes that may query the holder at the same time.
const LISTEN_BACKLOG: i32 = 64;
/// Lock file with one byte per interface and network namespace. It is never removed, because another gateway could
/// still hold a removed file.
const LOCKS: &str = "/run/paceline-gateway.lock";

impl InterfaceLock {
    /// Claims an interface.
    pub(super) fn on(interface: &Interface) -> Result<InterfaceLock, GatewayError> {
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
            rustix::net::listen(socket, LISTEN_BACKLOG).map_err(failed)?;
        }
        Ok(InterfaceLock { _socket: socket, _file: file.ok().flatten() })
    }
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The holder of the claim, by the credentials that the kernel stored when it began to listen; a process cannot forge
/// them. `None` if nobody listens, or not yet.
fn holder(address: &SocketAddrUnix) -> Option<libc::ucred> {
    let socket = socket().ok()?;
    rustix::net::connect(&socket, address).ok()?;
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: a complete structure and its size.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    (result == 0).then_some(peer)
}

/// Locks an interface: `None` if no lock is possible here, EAGAIN or EACCES if another process holds it.
fn lock(index: u32) -> rustix::io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(LOCKS, flags, Mode::RUSR | Mode::WUSR) else { return Ok(None) };
    let namespace = rustix::fs::stat("/proc/thread-self/ns/net")?.st_ino;
    // SAFETY: the structure consists of numbers.
    let mut range = unsafe { std::mem::zeroed::<libc::flock>() };
    range.l_type = libc::F_WRLCK as i16;
    range.l_whence = libc::SEEK_SET as i16;
    // The kernel numbers namespaces with 32 bits, and interfaces with 31.
    range.l_start = ((namespace as i64 & 0x7fff_ffff) << 32) | i64::from(index);
    range.l_len = 1;
    // SAFETY: a complete structure. The lock belongs to the open file, not the process: it ends with the last
    // descriptor.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const range) };
    if result == 0 {
        return Ok(Some(file));
    }
    match Errno::from_io_error(&std::io::Error::last_os_error()) {
        Some(taken @ (Errno::AGAIN | Errno::ACCESS)) => Err(taken),
        _ => Ok(None),
    }
}
