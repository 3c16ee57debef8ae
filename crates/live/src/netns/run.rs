//! A path from beginning to end: both ends, the emulator between them, the programs, and signals for them.

use super::address::{self, PREFIX, PREFIX6};
use super::call::{Call, Refused};
use super::device::NetDevice;
use super::end::{End, EndError, EndOptions, dropped};
use super::init::Kind;
use super::interface::{self, Devices};
use super::program::{Command, Output};
use super::signals::Caught;
use crate::clock::Clock;
use crate::path::{Side, Stop};
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketType};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

/// Time for a program to end after SIGTERM, before it is killed.
const GRACE: Span = Span::from_secs(5);
/// The same for everything that still runs at an end after the program has ended: its leftovers, and everything at the
/// far end.
const REST_GRACE: Span = Span::from_secs(2);
/// Maximum time to wait until the far program waits for connections.
const LISTEN: Span = Span::from_secs(1);

/// What runs at the far end.
#[derive(Clone, Debug)]
pub enum Far {
    /// A namespace without a program; its kernel answers pings.
    Nobody,
    /// A namespace with a program, given as a line for `/bin/sh`, whose output goes to this descriptor.
    Program(OsString, i32),
    /// This host.
    Host,
}

/// What to run over a path.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The far end.
    pub far: Far,
    /// Kind of devices.
    pub kind: Kind,
    /// Whether the ends have only IPv4.
    pub ipv4: bool,
    /// Time after which the program is ended.
    pub limit: Option<Span>,
    /// Ends the program like SIGTERM does. With it, Paceline catches no signals itself but leaves them to the holder of
    /// the other end, so that several paths of a process can end together.
    pub ender: Option<Arc<Stop>>,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// With this exit code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Status {
    fn of(status: i32) -> Status {
        if libc::WIFSIGNALED(status) {
            Status::Signal(libc::WTERMSIG(status))
        } else {
            Status::Code(libc::WEXITSTATUS(status))
        }
    }

    /// The exit code as a shell reports it: 128 plus the signal for a signal.
    #[must_use]
    pub fn code(self) -> i32 {
        match self {
            Status::Code(code) => code,
            Status::Signal(number) => 128 + number,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Code(code) => write!(f, "exit code {code}"),
            Status::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct Ended<R> {
    /// When the path's clock began, in nanoseconds since 1970.
    pub start: u64,
    /// When the program began, on the path's clock.
    pub began: Time,
    /// What the emulator measured.
    pub measured: R,
    /// How the program ended.
    pub status: Status,
    /// Whether the program was ended because of the plan's limit.
    pub limited: bool,
    /// How the far program ended, if it did so before the near one.
    pub far_status: Option<Status>,
    /// Refused calls that the path worked without, with the end.
    pub without: Vec<(Side, Refused)>,
    /// Packets that the kernel dropped before the emulator could read them, at the near end and at the far end.
    pub lost: [u64; 2],
    /// Kinds of the devices: "tun" or "packet".
    pub devices: [&'static str; 2],
}

/// Why there is no result.
#[derive(Debug)]
pub enum RunError {
    /// An end could not be created.
    End(Side, EndError),
    /// A program could not be run.
    Program(Side, OsString, Refused),
    /// The far program ended before the near one was started.
    FarEnded(Status),
    /// All addresses for paths that end on this host are in use.
    Addresses,
    /// The emulator failed.
    Emulator(io::Error),
    /// A system call of the supervisor failed.
    Refused(Refused),
}

impl From<Refused> for RunError {
    fn from(refused: Refused) -> RunError {
        RunError::Refused(refused)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::End(side, error) => write!(f, "the {} end of the path: {error}", side.name()),
            RunError::Program(side, word, refused) => {
                let what = if *side == Side::Near { "the command" } else { "the far command" };
                write!(f, "{what} `{}` cannot be run: {refused}", word.to_string_lossy())?;
                if refused.errno == libc::ENOENT { f.write_str(". Is it installed, and in PATH?") } else { Ok(()) }
            }
            RunError::FarEnded(status) => {
                write!(f, "the far command ended at once, with {status}; what it said stands above, or in far.txt")
            }
            RunError::Addresses => write!(
                f,
                "all {} addresses 198.18.0.0/16 of paths that end on this host are taken: end some of those paths",
                address::PATHS
            ),
            RunError::Emulator(error) => write!(f, "the emulator: {error}"),
            RunError::Refused(refused) => refused.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

/// The far end.
enum FarEnd {
    Namespace(End),
    Host(String),
}

impl FarEnd {
    fn end(&self) -> Option<&End> {
        match self {
            FarEnd::Namespace(end) => Some(end),
            FarEnd::Host(_) => None,
        }
    }
}

/// Creates a path, runs its programs and, on a separate thread, `emulate` between its devices (near, far) until the
/// programs have ended and it is stopped. The path's clock, which `emulate` receives, starts when both ends exist.
///
/// Signals are for the program: those from a terminal reach it anyway, others are forwarded. SIGTERM, SIGHUP and three
/// Ctrl-C within two seconds give it 5 s to end before it is killed; a second one of these kills it at once.
///
/// # Errors
/// [`RunError`].
pub fn run<R: Send>(
    plan: &Plan,
    emulate: impl FnOnce(NetDevice, NetDevice, Clock, &Stop) -> io::Result<R> + Send,
) -> Result<Ended<R>, RunError> {
    let terminal = Terminal::now();
    let caught = if plan.ender.is_some() { None } else { Caught::new()? };
    let signals = caught.as_ref();
    let mut number = 0;
    let mut host = None;
    if matches!(plan.far, Far::Host) {
        let (path, name, device) = host_device(plan.ipv4)?;
        number = path;
        host = Some((name, device));
    }
    let open = |side: Side, command: Option<&Command>| {
        let options = EndOptions { side, path: number, ipv4: plan.ipv4, kind: plan.kind, command };
        End::open(&options, signals).map_err(|error| RunError::End(side, error))
    };
    let far_command = match &plan.far {
        Far::Program(line, output) => Some(Command {
            words: vec!["/bin/sh".into(), "-c".into(), line.clone()],
            environment: environment(number, Side::Far, plan.ipv4),
            output: Output::To(*output),
        }),
        _ => None,
    };
    let (far, far_device) = match host {
        Some((name, device)) => (FarEnd::Host(name), device),
        None => {
            let (end, device) = open(Side::Far, far_command.as_ref())?;
            (FarEnd::Namespace(end), device)
        }
    };
    let near_command = Command {
        words: plan.command.clone(),
        environment: environment(number, Side::Near, plan.ipv4),
        output: Output::Inherited,
    };
    let (near, near_device) = open(Side::Near, Some(&near_command))?;
    let kinds = [near_device.kind(), far_device.kind()];
    let counters = [near_device.counter(), far_device.counter()];
    let stop = &Stop::new().map_err(RunError::Emulator)?;
    let (done, doing) = pipe_with(PipeFlags::CLOEXEC).map_err(Call::Pipe.with())?;
    let clock = Clock::start();
    let start = clock.unix_at_zero();
    let outcome: Result<Ended<R>, RunError> = std::thread::scope(|scope| {
        let emulator = std::thread::Builder::new().name("paceline-path".into()).spawn_scoped(scope, move || {
            let measured = emulate(near_device, far_device, clock, stop);
            drop(doing);
            measured
        });
        let supervised = match &emulator {
            Err(_) => Err(RunError::Refused(Refused { call: Call::Fork, errno: libc::EAGAIN })),
            Ok(_) => {
                let mut supervisor = Supervisor {
                    plan,
                    near: &near,
                    far: &far,
                    signals,
                    done: &done,
                    clock,
                    start,
                    far_status: None,
                    began: Time::ZERO,
                    ender_handled: false,
                };
                supervisor.supervise()
            }
        };
        let kernels = [
            near.lost(),
            match &far {
                FarEnd::Namespace(end) => end.lost(),
                FarEnd::Host(name) => dropped("/proc/self/net/dev", name),
            },
        ];
        stop.stop();
        let measured = match emulator.map(|thread| thread.join()) {
            Ok(Ok(measured)) => measured.map_err(RunError::Emulator),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(RunError::Emulator(error)),
        };
        // the emulator's error explains more than the end of the program that it caused
        let measured = measured?;
        let Supervised { status, limited, far_status, began } = supervised?;
        let lost = [0, 1].map(|end| kernels[end] + counters[end].as_ref().map_or(0, NetDevice::lost));
        Ok(Ended { start, began, measured, status, limited, far_status, without: Vec::new(), lost, devices: kinds })
    });
    terminal.take_back();
    let mut ended = outcome?;
    let of_near = near.without.iter().map(|&refused| (Side::Near, refused));
    let of_far = far.end().into_iter().flat_map(|end| end.without.iter().map(|&refused| (Side::Far, refused)));
    ended.without = of_near.chain(of_far).collect();
    Ok(ended)
}

/// Environment variables for the programs of an end.
fn environment(path: u8, side: Side, ipv4: bool) -> Vec<(String, Option<String>)> {
    let four = |name: &str, side| (name.to_owned(), Some(address::ipv4(path, side).to_string()));
    let six = |name: &str, side| (name.to_owned(), (!ipv4).then(|| address::ipv6(path, side).to_string()));
    vec![
        four("PACELINE_PEER", side.other()),
        six("PACELINE_PEER6", side.other()),
        four("PACELINE_ADDRESS", side),
        six("PACELINE_ADDRESS6", side),
    ]
}

/// Creates a TUN in the current namespace, with addresses that no other path uses; returns the path's number, the
/// device's name and the device.
fn host_device(ipv4: bool) -> Result<(u8, String, NetDevice), RunError> {
    let refused = |refused: Refused| RunError::End(Side::Far, refused.into());
    for path in 0..address::PATHS {
        let addresses = [Side::Near, Side::Far].map(|side| address::ipv4(path, side));
        if addresses.into_iter().any(is_ours) {
            continue;
        }
        // the name decides: two paths that begin at the same time cannot both get it
        let name = format!("paceline{path}");
        let tun = match interface::tun(name.as_bytes()) {
            Ok(tun) => tun,
            Err(error) if error.call == Call::TunSetIff && error.errno == libc::EBUSY => continue,
            Err(error) => return Err(refused(error)),
        };
        let configure = || {
            let devices = Devices::open()?;
            devices.raise(name.as_bytes())?;
            devices.address(name.as_bytes(), address::ipv4(path, Side::Far), PREFIX)?;
            if !ipv4 {
                // on a host without IPv6, the path has none either
                let _ = devices.address6(name.as_bytes(), address::ipv6(path, Side::Far), PREFIX6);
            }
            Ok(())
        };
        configure().map_err(refused)?;
        return Ok((path, name, NetDevice::Tun(tun)));
    }
    Err(RunError::Addresses)
}

/// Whether an address belongs to this host: only to such an address can a socket be bound.
fn is_ours(address: Ipv4Addr) -> bool {
    rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .and_then(|socket| rustix::net::bind(&socket, &SocketAddrV4::new(address, 0)))
        .is_ok()
}

struct Supervisor<'a> {
    plan: &'a Plan,
    near: &'a End,
    far: &'a FarEnd,
    signals: Option<&'a Caught>,
    done: &'a OwnedFd,
    clock: Clock,
    /// When the clock began, in nanoseconds since 1970.
    start: u64,
    far_status: Option<Status>,
    /// When the program began.
    began: Time,
    /// Whether the plan's `ender` has been handled.
    ender_handled: bool,
}

/// How the programs ended.
struct Supervised {
    status: Status,
    /// Whether the program was ended because its time was over.
    limited: bool,
    far_status: Option<Status>,
    began: Time,
}

/// An event that [`Supervisor::wait`] returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Near,
    Far,
    Signal,
    /// The plan's `ender` requests the end.
    Ender,
    /// The emulator has ended by itself: it failed.
    Emulator,
    Late,
}

impl Supervisor<'_> {
    fn supervise(&mut self) -> Result<Supervised, RunError> {
        if let (Far::Program(line, _), Some(far)) = (&self.plan.far, self.far.end()) {
            self.start(far, Side::Far, line)?;
            self.wait_for_listener(far)?;
        }
        let name = self.plan.command.first().cloned().unwrap_or_default();
        self.start(self.near, Side::Near, &name)?;
        self.began = self.clock.now();
        let (status, limited) = self.attend()?;
        let far_status = self.far_status;
        self.end_rest(self.near, Event::Near)?;
        if let (Far::Program(..), Some(far)) = (&self.plan.far, self.far.end()) {
            self.end_rest(far, Event::Far)?;
        }
        Ok(Supervised { status, limited, far_status, began: self.began })
    }

    fn start(&self, end: &End, side: Side, name: &OsString) -> Result<(), RunError> {
        end.start(self.start).map_err(|error| match error {
            EndError::Refused(refused) if refused.call == Call::Exec => RunError::Program(side, name.clone(), refused),
            other => RunError::End(side, other),
        })
    }

    /// Waits until the far program waits for connections, up to a limit.
    fn wait_for_listener(&mut self, far: &End) -> Result<(), RunError> {
        let until = self.clock.now() + LISTEN;
        while self.clock.now() < until && !far.listens() {
            match self.wait(self.clock.now() + Span::from_millis(10), [true, true])? {
                Event::Far => {
                    let status = self.far_ended(far)?;
                    // a program that ends successfully has started a background process, or only prepared something
                    return if status == Status::Code(0) { Ok(()) } else { Err(RunError::FarEnded(status)) };
                }
                Event::Signal => {
                    let number = self.signals.and_then(Caught::next).map_or(libc::SIGINT, |signal| signal.number);
                    return Err(RunError::End(Side::Far, EndError::Interrupted(number)));
                }
                Event::Ender => return Err(RunError::End(Side::Far, EndError::Interrupted(libc::SIGTERM))),
                Event::Emulator => return Ok(()),
                Event::Near | Event::Late => {}
            }
        }
        Ok(())
    }

    fn far_ended(&mut self, far: &End) -> Result<Status, RunError> {
        let status = program_status(far, Side::Far)?;
        self.far_status = Some(status);
        Ok(status)
    }

    /// Waits until the program has ended.
    fn attend(&mut self) -> Result<(Status, bool), RunError> {
        let limit = self.plan.limit.map_or(Time::NEVER, |limit| self.clock.now() + limit);
        let mut limited = false;
        let mut kill = Time::NEVER;
        let mut interrupts: Vec<Time> = Vec::new();
        loop {
            let until = if limited { kill } else { kill.min(limit) };
            match self.wait(until, [true, self.far_status.is_none()])? {
                Event::Near => return Ok((program_status(self.near, Side::Near)?, limited)),
                Event::Far => {
                    if let Some(far) = self.far.end() {
                        self.far_ended(far)?;
                    }
                }
                Event::Emulator => {
                    self.near.signal(libc::SIGKILL);
                    return Ok((Status::Signal(libc::SIGKILL), false));
                }
                Event::Late if self.clock.now() >= kill => {
                    self.near.signal(libc::SIGKILL);
                    kill = Time::NEVER;
                }
                Event::Late => {
                    limited = true;
                    self.near.signal(libc::SIGTERM);
                    kill = self.clock.now() + GRACE;
                }
                Event::Ender => {
                    self.ender_handled = true;
                    self.near.signal(libc::SIGTERM);
                    kill = self.clock.now() + GRACE;
                }
                Event::Signal => {
                    while let Some(signal) = self.signals.and_then(Caught::next) {
                        let now = self.clock.now();
                        let ends = matches!(signal.number, libc::SIGTERM | libc::SIGHUP);
                        if !signal.of_terminal {
                            self.near.signal(signal.number);
                        } else if signal.number == libc::SIGINT {
                            interrupts.retain(|&at| now.since(at) <= Span::from_secs(2));
                            interrupts.push(now);
                        }
                        if interrupts.len() >= 3 {
                            interrupts.clear();
                            self.near.signal(libc::SIGTERM);
                        } else if !ends {
                            continue;
                        }
                        kill = if kill == Time::NEVER { now + GRACE } else { now };
                    }
                }
            }
        }
    }

    /// Sends SIGTERM to everything that runs at an end, waits for it a little, and ends the rest. Signalling only the
    /// program would not suffice: it may be a shell, which does not forward signals to its children.
    fn end_rest(&mut self, end: &End, end_event: Event) -> Result<(), RunError> {
        let until = self.clock.now() + REST_GRACE;
        end.signal_all(libc::SIGTERM);
        loop {
            match self.wait(until, [Event::Near, Event::Far].map(|event| event == end_event))? {
                Event::Near | Event::Far => match end.ended() {
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return Ok(()),
                },
                Event::Signal => while self.signals.and_then(Caught::next).is_some() {},
                Event::Ender => self.ender_handled = true,
                Event::Emulator | Event::Late => break,
            }
        }
        end.signal_all(libc::SIGKILL);
        Ok(())
    }

    /// The next event before `until`; events of the near and the far end only where `ends` says so, since after its
    /// program has ended an end reports nothing until all of it is to end.
    fn wait(&self, until: Time, ends: [bool; 2]) -> Result<Event, Refused> {
        let mut events = vec![Event::Emulator];
        let mut fds = vec![PollFd::new(self.done, PollFlags::IN)];
        if ends[0] {
            events.insert(0, Event::Near);
            fds.insert(0, PollFd::new(self.near, PollFlags::IN));
        }
        if let Some(signals) = self.signals {
            events.push(Event::Signal);
            fds.push(PollFd::new(signals, PollFlags::IN));
        }
        if let Some(ender) = self.plan.ender.as_deref().filter(|_| !self.ender_handled) {
            events.push(Event::Ender);
            fds.push(PollFd::new(ender, PollFlags::IN));
        }
        if let Some(end) = self.far.end().filter(|_| ends[1]) {
            events.push(Event::Far);
            fds.push(PollFd::new(end, PollFlags::IN));
        }
        loop {
            let span = until.since(self.clock.now().min(until));
            let timeout = Timespec { tv_sec: (span.0 / 1_000_000_000) as i64, tv_nsec: (span.0 % 1_000_000_000) as _ };
            match poll(&mut fds, (until != Time::NEVER).then_some(&timeout)) {
                Ok(0) => return Ok(Event::Late),
                Ok(_) => break,
                Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(Call::Poll.with()(errno)),
            }
        }
        let ready = fds.iter().position(|fd| !fd.revents().is_empty());
        Ok(ready.map_or(Event::Late, |at| events[at]))
    }
}

/// The status of an end's program that has ended.
fn program_status(end: &End, side: Side) -> Result<Status, RunError> {
    let ended = end.ended().and_then(|status| status.ok_or(EndError::Vanished));
    ended.map(Status::of).map_err(|error| RunError::End(side, error))
}

/// The terminal, which a program with its own job control (a shell) takes over.
struct Terminal {
    was_ours: bool,
}

impl Terminal {
    fn now() -> Terminal {
        let group = rustix::process::getpgrp();
        Terminal { was_ours: rustix::termios::tcgetpgrp(rustix::stdio::stdin()).is_ok_and(|owner| owner == group) }
    }

    /// Takes it back, so that later code may read from and write to it.
    fn take_back(&self) {
        let stdin = rustix::stdio::stdin();
        let group = rustix::process::getpgrp();
        if !self.was_ours || rustix::termios::tcgetpgrp(stdin).is_ok_and(|owner| owner == group) {
            return;
        }
        // The kernel stops a background process that does this, unless the signal is blocked.
        // SAFETY: complete signal sets, initialised before they are read.
        unsafe {
            let mut set = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGTTOU);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            let _ = rustix::termios::tcsetpgrp(stdin, group);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
    }
}
