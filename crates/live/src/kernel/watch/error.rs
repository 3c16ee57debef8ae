//! Errors of a watch, with messages that say what to do.

use std::io;

/// Why a watch failed.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A system call failed.
    #[error("{call}: {error}{}", hint(.error))]
    System {
        /// Its name.
        call: &'static str,
        /// Why.
        error: io::Error,
    },
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// This user may not see the process's open files.
    #[error(
        "cannot see which sockets process {pid} has open (/proc/{pid}/fd: {error}): watch as its user or as root, or watch its port"
    )]
    NotAllowed {
        /// Process id.
        pid: u32,
        /// Why.
        error: io::Error,
    },
    /// The process is in another network namespace.
    #[error(
        "process {pid} has a network namespace of its own, which cannot be entered ({error}): watch as root, or inside it"
    )]
    Namespace {
        /// Process id.
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
