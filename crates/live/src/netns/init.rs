//! The first process of a namespace: creates the device, runs the program, reaps orphans, and ends when Paceline does.
//!
//! It is a copy of one thread of a process whose other threads may have held locks that are now never released: nothing
//! here may allocate, or call anything that does. All its memory was prepared before `clone(2)`.

use super::address::{PREFIX, PREFIX6};
use super::call::{Attempt, Call, Refused};
use super::device::PacketSocket;
use super::interface::{self, Devices};
use super::message::{InitCommand, InitMessage};
use super::program::{Output, Program};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::thread::{self, CapabilitySet};
use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The device's name in the namespace.
pub const DEVICE: &str = "path0";
/// The emulator's end of a veth pair, in a namespace that contains nothing else.
const OUTER: &[u8] = b"outer";

/// Kind of device at a path's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A TUN, or a veth pair if TUN is refused.
    #[default]
    Any,
    /// A TUN.
    Tun,
    /// A veth pair with a packet socket.
    Packet,
}

/// The user and group that a new user namespace maps to themselves.
pub(super) struct Identity {
    pub(super) uid_map: Vec<u8>,
    pub(super) gid_map: Vec<u8>,
}

/// Everything that init needs.
pub(super) struct Plan {
    pub(super) identity: Option<Identity>,
    pub(super) kind: Kind,
    pub(super) ipv4: Ipv4Addr,
    /// `None`: only IPv4.
    pub(super) ipv6: Option<Ipv6Addr>,
    pub(super) program: Option<Program>,
    /// All open descriptors are below this number.
    pub(super) descriptors: i32,
    /// The signal mask for the program.
    pub(super) mask: libc::sigset_t,
}

/// Runs as init until Paceline or the kernel ends it.
///
/// # Safety
/// The calling process must be a copy of one thread that `clone(2)` has just made, with all signals blocked and in a
/// new process namespace: this function closes its descriptors, kills all processes it can see, and exits.
pub(super) unsafe fn run(plan: &Plan, control: BorrowedFd<'_>) -> ! {
    let control = control.as_raw_fd();
    let output = match plan.program.as_ref().map(|program| program.output) {
        Some(Output::To(fd)) => fd,
        _ => -1,
    };
    for fd in 3..plan.descriptors {
        // SAFETY: F_GETFD on a number that is not open only returns an error. This process does not use the
        // close-on-exec descriptors otherwise; their files remain open in the parent.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if fd != control && fd != output && flags >= 0 && flags & libc::FD_CLOEXEC != 0 {
                libc::close(fd);
            }
        }
    }
    // SAFETY: it is not closed before the process ends.
    let control = unsafe { BorrowedFd::borrow_raw(control) };
    if let Err(refused) = prepare(plan, control) {
        let _ = InitMessage::Failed(refused).send(control, None);
        exit(1);
    }
    match serve(plan, control) {
        Ok(()) => exit(0),
        Err(refused) => {
            let _ = InitMessage::Failed(refused).send(control, None);
            exit(1)
        }
    }
}

fn exit(code: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(code) }
}

/// Does everything up to the message that the device exists.
fn prepare(plan: &Plan, control: BorrowedFd<'_>) -> Attempt<()> {
    if let Some(identity) = &plan.identity {
        // Otherwise the kernel refuses to map groups (user_namespaces(7)). Kernels before 3.19 have no such file.
        match write(c"/proc/self/setgroups", b"deny", Call::SetGroups) {
            Err(refused) if refused.errno != libc::ENOENT => return Err(refused),
            _ => {}
        }
        write(c"/proc/self/uid_map", &identity.uid_map, Call::UidMap)?;
        write(c"/proc/self/gid_map", &identity.gid_map, Call::GidMap)?;
    }
    // After the change of credentials, which would clear it. If the parent has ended already, the connection is closed
    // too.
    // SAFETY: takes numbers.
    Call::DeathSignal.check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    mounts(control)?;
    device(plan, control)
}

/// Mounts a /proc of the new process namespace, in a mount namespace that the host does not see.
fn mounts(control: BorrowedFd<'_>) -> Attempt<()> {
    let mount = |source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong| {
        // SAFETY: zero-terminated strings; no data.
        unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) }
    };
    let private = Call::MountPrivate.check(mount(c"none", c"/", c"none", libc::MS_REC | libc::MS_PRIVATE));
    let done = private.and_then(|_| {
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        Call::MountProc.check(mount(c"proc", c"/proc", c"proc", flags))
    });
    match done {
        Ok(_) => Ok(()),
        Err(refused) => InitMessage::Without(refused).send(control, None),
    }
}

fn device(plan: &Plan, control: BorrowedFd<'_>) -> Attempt<()> {
    let name = DEVICE.as_bytes();
    Devices::open()?.loopback()?;
    if plan.kind != Kind::Packet {
        match interface::tun(name) {
            Ok(tun) => {
                configure(plan, &Devices::open()?, control)?;
                return InitMessage::Tun.send(control, Some(tun.as_fd()));
            }
            Err(refused) if plan.kind == Kind::Tun => return Err(refused),
            Err(refused) => InitMessage::Without(refused).send(control, None)?,
        }
    }
    // The other end is in a namespace that the program cannot reach, and that lasts as long as the packet socket.
    let open = |path: &CStr| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let home = open(c"/proc/self/ns/net").map_err(Call::OpenNamespace.with())?;
    // SAFETY: takes numbers; the process has one thread.
    Call::Unshare.check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
    let devices = Devices::open()?;
    interface::veth(OUTER, name, home.as_fd())?;
    devices.no_offloads(OUTER)?;
    let (socket, index) = PacketSocket::open(&devices, OUTER)?;
    devices.raise(OUTER)?;
    // SAFETY: a descriptor and a number.
    Call::SetNs.check(unsafe { libc::setns(home.as_raw_fd(), libc::CLONE_NEWNET) })?;
    let devices = Devices::open()?;
    devices.no_offloads(name)?;
    configure(plan, &devices, control)?;
    let (inner, inner_index) = PacketSocket::open(&devices, name)?;
    PacketSocket::wait_for_link([(&socket, index), (&inner, inner_index)])?;
    InitMessage::Packet(index, devices.hardware(name)?).send(control, Some(socket.as_fd()))
}

/// Sets addresses, and kernel parameters that programs may rely on.
fn configure(plan: &Plan, devices: &Devices, control: BorrowedFd<'_>) -> Attempt<()> {
    let name = DEVICE.as_bytes();
    devices.raise(name)?;
    devices.address(name, plan.ipv4, PREFIX)?;
    match plan.ipv6 {
        Some(ipv6) => {
            if let Err(refused) = devices.address6(name, ipv6, PREFIX6) {
                InitMessage::Without(refused).send(control, None)?;
            }
        }
        // Also removes the link-local address, so programs see a host without IPv6. A kernel without IPv6 has no such
        // file.
        None => drop(write(c"/proc/sys/net/ipv6/conf/path0/disable_ipv6", b"1", Call::Address)),
    }
    // Allows ping without privileges; in a user namespace programs have CAP_NET_RAW anyway.
    let _ = write(c"/proc/sys/net/ipv4/ping_group_range", b"0 2147483647", Call::Address);
    Ok(())
}

fn write(path: &CStr, bytes: &[u8], call: Call) -> Attempt<()> {
    let fd = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(call.with())?;
    rustix::io::write(&fd, bytes).map(drop).map_err(call.with())
}

/// Carries out commands until the connection ends.
fn serve(plan: &Plan, control: BorrowedFd<'_>) -> Attempt<()> {
    let mut children = empty_set();
    // SAFETY: a set, a signal; a descriptor with no other owner.
    let signals = unsafe {
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        let fd = libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        Call::SignalFd.check(fd)?;
        OwnedFd::from_raw_fd(fd)
    };
    let mut program = None;
    // Whether Paceline is waiting until nothing runs.
    let mut ending = false;
    loop {
        let mut fds = [PollFd::from_borrowed_fd(control, PollFlags::IN), PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Call::Poll.with()(errno)),
        }
        if !fds[0].revents().is_empty() {
            match (InitCommand::receive(control), &plan.program) {
                (None, _) => return Ok(()),
                (Some(InitCommand::Run(clock)), Some(what)) => {
                    what.set_start(clock);
                    program = start(plan, what, control)?;
                }
                (Some(InitCommand::Signal(number)), _) => {
                    if let Some(pid) = program {
                        // SAFETY: takes numbers. The process has not been reaped, or `program` would be None.
                        unsafe { libc::kill(pid, number) };
                    }
                }
                (Some(InitCommand::All(number)), _) => {
                    // SAFETY: takes numbers. As process 1 of its namespace, kill(-1) reaches only that namespace.
                    unsafe {
                        if libc::getpid() == 1 {
                            libc::kill(-1, number);
                        }
                    }
                    ending = true;
                }
                (Some(InitCommand::Run(_)), None) => {}
            }
        }
        let mut drain = [0; 128];
        while rustix::io::read(&signals, &mut drain).is_ok() {}
        loop {
            let mut status = 0;
            // SAFETY: writes an integer.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
            if pid <= 0 {
                // No child is left: every orphan became a child of this process.
                if pid < 0 && ending {
                    ending = false;
                    InitMessage::Empty.send(control, None)?;
                }
                break;
            }
            if program == Some(pid) {
                program = None;
                InitMessage::Exited(status).send(control, None)?;
            }
        }
    }
}

fn empty_set() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: fills it in.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Starts the program, and reports whether it runs.
fn start(plan: &Plan, program: &Program, control: BorrowedFd<'_>) -> Attempt<Option<i32>> {
    let Ok((reader, writer)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
        return Err(Call::Pipe.refused());
    };
    // Not fork(3): the C library's takes locks that other threads of the parent may have held.
    // SAFETY: a copy of this process, which continues in `become_program` and never returns from it.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    Call::Fork.check(pid)?;
    if pid == 0 {
        let refused = become_program(plan, program);
        let mut command = [0; 8];
        command[..4].copy_from_slice(&refused.call.number().to_ne_bytes());
        command[4..].copy_from_slice(&refused.errno.to_ne_bytes());
        let _ = rustix::io::write(&writer, &command);
        exit(127);
    }
    drop(writer);
    let mut command = [0; 8];
    // The pipe closes without data once the program runs.
    let len = loop {
        match rustix::io::read(&reader, &mut command) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other.unwrap_or(0),
        }
    };
    if len < command.len() {
        InitMessage::Started.send(control, None)?;
        return Ok(Some(pid as i32));
    }
    let call = Call::of(i32::from_ne_bytes([command[0], command[1], command[2], command[3]])).unwrap_or(Call::Exec);
    let errno = i32::from_ne_bytes([command[4], command[5], command[6], command[7]]);
    InitMessage::NotStarted(Refused { call, errno }).send(control, None)?;
    Ok(None)
}

/// Restores what a program expects of its process, and executes it.
fn become_program(plan: &Plan, program: &Program) -> Refused {
    let kept = if plan.identity.is_some() { keep_privileges() } else { Ok(()) };
    let redirected = match program.output {
        Output::To(fd) => redirect(fd),
        Output::Inherited => Ok(()),
    };
    if let Err(refused) = kept.and(redirected) {
        return refused;
    }
    // Python's handlers could run between here and execve; Python ignores SIGPIPE and SIGXFSZ.
    for signal in 1..=64 {
        // SAFETY: reads and writes complete structures; invalid signal numbers are refused.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            if libc::sigaction(signal, std::ptr::null(), &raw mut action) != 0 {
                continue;
            }
            let ignored = action.sa_sigaction == libc::SIG_IGN;
            if !ignored || signal == libc::SIGPIPE || signal == libc::SIGXFSZ {
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
    }
    // SAFETY: a complete signal set.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const plan.mask, std::ptr::null_mut()) };
    Refused { call: Call::Exec, errno: program.execute() }
}

/// Redirects input from /dev/null, and output to `fd`.
fn redirect(fd: i32) -> Attempt<()> {
    let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY, Mode::empty()).map_err(Call::Exec.with())?;
    // SAFETY: takes numbers; nothing else in this process uses the three standard descriptors.
    unsafe {
        for (from, to) in [(fd, 1), (fd, 2), (null.as_raw_fd(), 0)] {
            Call::Exec.check(libc::dup2(from, to))?;
        }
    }
    Ok(())
}

/// In a user namespace, keeps a program's network privileges (for ping, tcpdump, ip) through `execve`, which would drop
/// them (capabilities(7), ambient set).
fn keep_privileges() -> Attempt<()> {
    let kept = [CapabilitySet::NET_BIND_SERVICE, CapabilitySet::NET_ADMIN, CapabilitySet::NET_RAW];
    let mut sets = thread::capabilities(None).map_err(Call::Ambient.with())?;
    for capability in kept {
        sets.inheritable |= capability;
    }
    thread::set_capabilities(None, sets).map_err(Call::Ambient.with())?;
    for capability in kept {
        thread::configure_capability_in_ambient_set(capability, true).map_err(Call::Ambient.with())?;
    }
    Ok(())
}
