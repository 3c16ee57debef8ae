//! Why a watch cannot be, in words that say what to do.

use std::io;

/// Why a watch cannot be.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A call failed.
    #[error("{call}: {error}{}", hint(.error))]
    System {
        /// Which.
        call: &'static str,
        /// Why.
        error: io::Error,
    },
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// What the process has open is not for this user to see.
    #[error(
        "cannot see which sockets process {pid} has open (/proc/{pid}/fd: {error}): watch as its user or as root, or watch its port"
    )]
    NotAllowed {
        /// Which.
        pid: u32,
        /// Why.
        error: io::Error,
    },
    /// The process has a network of its own.
    #[error(
        "process {pid} has a network namespace of its own, which cannot be entered ({error}): watch as root, or inside it"
    )]
    Namespace {
        /// Which.
        pid: u32,
        /// Why.
        error: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EPROTONOSUPPORT) => {
            " (the kernel's socket diagnostics for TCP are missing: load the modules tcp_diag and inet_diag)"
        }
        Some(libc::EPERM | libc::EACCES) => " (this sandbox or container forbids netlink sockets of NETLINK_SOCK_DIAG)",
        _ => "",
    }
}

pub(super) fn system(call: &'static str) -> impl Fn(io::Error) -> WatchError {
    move |error| WatchError::System { call, error }
}
