//! One end of a path, seen from outside: its namespaces with their own init, its device, its program.

use super::address;
use super::call::{Call, Refused};
use super::device::{NetDevice, PacketSocket};
use super::init::{self, Identity, Kind, Plan};
use super::message::{InitCommand, InitMessage};
use super::program::{Command, Program};
use super::signals::Caught;
use crate::path::Side;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::CapabilitySet;
use std::ffi::OsString;
use std::fmt;

/// Milliseconds after which a silent end counts as failed.
const PATIENCE: i64 = 20_000;

/// Why an end of a path failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EndError {
    /// The kernel refused a system call.
    Refused(Refused),
    /// Its init ended without a message, or does not answer.
    Vanished,
    /// A word of a command contains a zero byte, which `execve(2)` cannot pass on.
    ZeroByte(OsString),
    /// A signal arrived before the path was complete.
    Interrupted(i32),
}

impl From<Refused> for EndError {
    fn from(refused: Refused) -> EndError {
        EndError::Refused(refused)
    }
}

impl fmt::Display for EndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndError::Refused(refused) => refused.fmt(f),
            EndError::Vanished => f.write_str(
                "the process that holds the namespaces of an end of the path ended without a word, as when the system \
                 has no memory left or an administrator kills it",
            ),
            EndError::ZeroByte(word) => write!(f, "{word:?} has a zero byte, which no program can be given"),
            EndError::Interrupted(number) => write!(f, "stopped by signal {number} before the command was started"),
        }
    }
}

impl std::error::Error for EndError {}

/// Options of an end.
pub struct EndOptions<'a> {
    /// Which end.
    pub side: Side,
    /// The number of the path, which determines its addresses.
    pub path: u8,
    /// Disables IPv6.
    pub ipv4: bool,
    /// Its device.
    pub kind: Kind,
    /// Its program.
    pub command: Option<&'a Command>,
}

/// An end of a path. When it is dropped, or this process ends in any way, everything in it ends.
#[derive(Debug)]
pub struct End {
    pid: i32,
    handle: OwnedFd,
    control: OwnedFd,
    /// Refused calls that the path works without.
    pub without: Vec<Refused>,
}

/// Whether this process may create namespaces and devices; otherwise it needs a user namespace.
#[must_use]
pub fn privileged() -> bool {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

impl End {
    /// Creates the namespaces and the device. They last no longer than the calling thread.
    ///
    /// # Errors
    /// [`EndError`].
    pub(super) fn open(options: &EndOptions<'_>, signals: Option<&Caught>) -> Result<(End, NetDevice), EndError> {
        let program = options.command.map(Program::new).transpose().map_err(EndError::ZeroByte)?;
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let identity = (!privileged()).then(|| Identity {
            uid_map: format!("{uid} {uid} 1").into_bytes(),
            gid_map: format!("{gid} {gid} 1").into_bytes(),
        });
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(Call::SocketPair.with())?;
        let mut plan = Plan {
            identity,
            kind: options.kind,
            ipv4: address::ipv4(options.path, options.side),
            ipv6: (!options.ipv4).then(|| address::ipv6(options.path, options.side)),
            program,
            descriptors: descriptors(),
            mask: block_signals(),
        };
        let spawned = spawn(&plan, theirs.as_fd());
        // SAFETY: restores the mask that `block_signals` returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const plan.mask, std::ptr::null_mut()) };
        drop(theirs);
        plan.program = None;
        let (pid, handle) = spawned?;
        let mut end = End { pid, handle, control: ours, without: Vec::new() };
        let device = end.wait_for_device(signals)?;
        Ok((end, device))
    }

    fn wait_for_device(&mut self, signals: Option<&Caught>) -> Result<NetDevice, EndError> {
        loop {
            match (self.wait(signals)?, self.without.len()) {
                ((InitMessage::Tun, Some(fd)), _) => return Ok(NetDevice::Tun(fd)),
                ((InitMessage::Packet(index, to), Some(socket)), _) => {
                    return Ok(NetDevice::Packet(PacketSocket { socket, index, to }));
                }
                ((InitMessage::Without(refused), _), 0..100) => self.without.push(refused),
                ((InitMessage::Failed(refused), _), _) => return Err(refused.into()),
                _ => return Err(EndError::Vanished),
            }
        }
    }

    /// Waits for init's next message.
    fn wait(&self, signals: Option<&Caught>) -> Result<(InitMessage, Option<OwnedFd>), EndError> {
        let mut fds = vec![PollFd::new(&self.control, PollFlags::IN)];
        fds.extend(signals.map(|signals| PollFd::new(signals, PollFlags::IN)));
        let timeout = Timespec { tv_sec: PATIENCE / 1000, tv_nsec: 0 };
        loop {
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Err(EndError::Vanished),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(Call::Poll.with()(errno).into()),
            }
            if let Some(signal) = signals.and_then(Caught::next) {
                return Err(EndError::Interrupted(signal.number));
            }
            if !fds[0].revents().is_empty() {
                return InitMessage::receive(&self.control).ok_or(EndError::Vanished);
            }
        }
    }

    /// Runs the program. Its environment contains the start of the path's clock, `start`, in nanoseconds since 1970. A
    /// signal that arrives meanwhile is handled later, when the program can receive it.
    ///
    /// # Errors
    /// `Refused` by `execve` if the program cannot be run; any other [`EndError`].
    pub(super) fn start(&self, start: u64) -> Result<(), EndError> {
        InitCommand::Run(start).send(&self.control)?;
        match self.wait(None)?.0 {
            InitMessage::Started => Ok(()),
            InitMessage::NotStarted(refused) | InitMessage::Failed(refused) => Err(refused.into()),
            _ => Err(EndError::Vanished),
        }
    }

    /// Sends the program a signal, if it runs.
    pub(super) fn signal(&self, number: i32) {
        let _ = InitCommand::Signal(number).send(&self.control);
    }

    /// Sends a signal to everything running in the end; afterwards the end reports when nothing runs there any more.
    pub(super) fn signal_all(&self, number: i32) {
        let _ = InitCommand::All(number).send(&self.control);
    }

    /// Reads a message once the end is readable: the status of its ended program, as from `wait(2)`; `None` if nothing
    /// runs any more.
    ///
    /// # Errors
    /// [`EndError`] if init has ended without such a message.
    pub(super) fn ended(&self) -> Result<Option<i32>, EndError> {
        match InitMessage::receive(&self.control) {
            Some((InitMessage::Exited(status), _)) => Ok(Some(status)),
            Some((InitMessage::Empty, _)) => Ok(None),
            Some((InitMessage::Failed(refused), _)) => Err(refused.into()),
            _ => Err(EndError::Vanished),
        }
    }

    /// Whether a program in this end waits for connections or datagrams.
    pub(super) fn listens(&self) -> bool {
        let waits = |table: &str, udp: bool| {
            let text = std::fs::read_to_string(format!("/proc/{}/net/{table}", self.pid)).unwrap_or_default();
            // The fourth field is the state: 0A is LISTEN (include/net/tcp_states.h).
            text.lines().skip(1).any(|line| udp || line.split_ascii_whitespace().nth(3) == Some("0A"))
        };
        waits("tcp", false) || waits("tcp6", false) || waits("udp", true) || waits("udp6", true)
    }

    /// Packets that the kernel dropped before the emulator could read them.
    pub(super) fn lost(&self) -> u64 {
        dropped(&format!("/proc/{}/net/dev", self.pid), init::DEVICE)
    }
}

/// Packets that a device dropped on sending, from the table in `proc_pid_net(5)`.
pub(super) fn dropped(table: &str, device: &str) -> u64 {
    let text = std::fs::read_to_string(table).unwrap_or_default();
    let row = text.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
    row.and_then(|row| row.split_ascii_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // When init ends, everything in its process namespace ends (pid_namespaces(7)).
        // SAFETY: our own descriptor, numbers, a null pointer for the absent information, and a structure for the
        // status.
        unsafe {
            let handle = self.handle.as_raw_fd();
            libc::syscall(libc::SYS_pidfd_send_signal, handle, libc::SIGKILL, std::ptr::null::<libc::siginfo_t>(), 0);
            let mut status = std::mem::zeroed::<libc::siginfo_t>();
            let options = libc::WEXITED | libc::__WALL;
            while libc::waitid(libc::P_PIDFD, handle as libc::id_t, &raw mut status, options) != 0
                && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
            {}
        }
    }
}

/// An upper bound for open descriptors: all are below it.
fn descriptors() -> i32 {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let highest = open.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).max();
    // with room for those that other threads open meanwhile
    highest.unwrap_or(1023) + 64
}

/// Blocks all signals of the calling thread; returns the previous mask.
fn block_signals() -> libc::sigset_t {
    // SAFETY: complete signal sets.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut before = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    }
}

/// Starts init in new namespaces.
fn spawn(plan: &Plan, control: BorrowedFd<'_>) -> Result<(i32, OwnedFd), Refused> {
    let namespaces = libc::CLONE_NEWNET | libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let (call, namespaces) = match plan.identity {
        None => (Call::Clone, namespaces),
        Some(_) => (Call::CloneUser, namespaces | libc::CLONE_NEWUSER),
    };
    let mut handle = -1_i32;
    // without a signal at its end, so that another thread's wait(2) does not take its status
    let flags = libc::c_long::from(namespaces | libc::CLONE_PIDFD);
    // SAFETY: like fork(2), this copies the process with only this thread; CLONE_PIDFD stores the descriptor in
    // `handle`. The copy continues in `init::run`, which never returns and calls nothing that might need another
    // thread's lock.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0_usize, &raw mut handle, 0_usize, 0_usize) };
    call.check(pid)?;
    if pid == 0 {
        // SAFETY: this is the copy, with all signals blocked since `block_signals`.
        unsafe { init::run(plan, control) }
    }
    // SAFETY: the call has created the descriptor.
    Ok((pid as i32, unsafe { OwnedFd::from_raw_fd(handle) }))
}
