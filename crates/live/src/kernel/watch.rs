//! Follows the kernel-TCP connections of other programs: finds them, reads their internals on a schedule, and keeps the
//! last known state of each that ends.
//!
//! New connections are found by listing all (a *search*). Known ones are read one by one, which is cheaper, or all at
//! once if there are many. The kernel reports every TCP socket that it destroys, with its last internals: they are the
//! last reading of a connection that ends between two readings, and the only one of a connection that began and ended
//! between two searches. The owner of such a short connection can no longer be found: a watch of ports or of all
//! connections includes it, a watch of processes only counts it. Start with [`Watching::run`].

mod error;
mod result;

pub use error::WatchError;
pub use result::{Line, View};

use error::system;

use super::flow::Ticks;
use super::log::{Log, Sample};
use super::sock_diag::{Diag, Ends, Family, Filter, Place, Socket};
use super::socket_owners::{self, Owner};
use crate::clock::{Clock, Waiter};
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Which connections are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// All of the network namespace.
    All,
    /// Those with one of these ports at either end.
    Ports(Vec<u16>),
    /// Those of these processes and all their descendants.
    Processes(Vec<u32>),
    /// Those of the calling process's descendants that started after the watch began.
    Children,
}

/// What to watch, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Which connections.
    pub selection: Selection,
    /// Interval between readings of known connections.
    pub every: Span,
    /// Interval between searches for new connections.
    pub search_every: Span,
    /// Duration; `None`: until the watch is stopped.
    pub duration: Option<Span>,
    /// Readings kept in memory. Beyond them every other one is dropped, and the interval doubles.
    pub max_readings: usize,
}

/// Default number of readings kept: about 400 MB.
pub const MAX_READINGS: usize = 1_000_000;
/// Maximum number of connections followed in one watch, ended ones included; further ones are only counted.
const MAX_CONNECTIONS: usize = 10_000;
/// From this number of connections on, listing all is cheaper than one request for each.
const MANY: usize = 24;
/// Number of searches in which a socket must belong to no watched process before it is ignored: a socket has a number
/// before the accepting program has it open.
const TRIES: u8 = 4;
/// How long to wait for the end event of a vanished connection, or for a finished command's connections.
const PATIENCE: Span = Span::from_millis(1000);

/// Lets another thread observe and end a watch.
#[derive(Debug, Default)]
pub struct Control {
    /// Ends the watch at once.
    pub stop: AtomicBool,
    /// The program has ended: the watch ends when the program's connections have, within a second.
    pub finish: AtomicBool,
    view: Mutex<View>,
}

impl Control {
    /// The connections being followed, at most 0.2 s old.
    #[must_use]
    pub fn view(&self) -> View {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A connection that is or was followed.
#[derive(Debug)]
struct Connection {
    socket: Socket,
    log: Log,
    owner: Option<Owner>,
    /// When the kernel stopped listing it.
    gone: Option<Time>,
    ended: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    Followed(usize),
    /// No watched process had it open, in this number of searches.
    Others(u8),
}

/// A watch.
#[derive(Debug)]
pub struct Watching {
    options: Options,
    clock: Clock,
    diag: Diag,
    ends: Option<Ends>,
    known: BTreeMap<u64, Known>,
    connections: Vec<Connection>,
    /// Connections that have not ended.
    open: Vec<usize>,
    /// Processes that existed before the watch, for [`Selection::Children`].
    before: BTreeSet<u32>,
    searched: Time,
    /// Time of the next owner search: looking through all processes may take only a small share of the time.
    next_owners: Time,
    readings: usize,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    missed: u64,
    strays: u64,
    beyond: u64,
    thinned: u32,
}

impl Watching {
    /// Opens the sockets and lists existing connections: what these have done so far is excluded from their measures.
    ///
    /// # Errors
    /// [`WatchError`].
    pub fn open(options: Options, clock: Clock) -> Result<Watching, WatchError> {
        let mut place = Place::Here;
        if let Selection::Processes(pids) = &options.selection {
            for &pid in pids {
                socket_owners::may_see(pid).map_err(|error| match error.kind() {
                    io::ErrorKind::NotFound => WatchError::NoProcess(pid),
                    _ => WatchError::NotAllowed { pid, error },
                })?;
            }
            place = pids.first().map_or(Place::Here, |&pid| Place::OfProcess(pid));
        }
        let diag = Diag::open(place).map_err(|error| match place {
            Place::OfProcess(pid) if error.raw_os_error() == Some(libc::EPERM) => WatchError::Namespace { pid, error },
            _ => WatchError::System { call: "opening a netlink socket", error },
        })?;
        let before = match options.selection {
            Selection::Children => socket_owners::descendants(&[std::process::id()]),
            _ => BTreeSet::new(),
        };
        let mut watching = Watching {
            diag,
            // Without end events, a connection's last reading is its last known state.
            ends: Ends::open(place).ok(),
            known: BTreeMap::new(),
            connections: Vec::new(),
            open: Vec::new(),
            before,
            searched: clock.now(),
            next_owners: Time::ZERO,
            readings: 0,
            counts: Counts::default(),
            options,
            clock,
        };
        watching.search(Log::of_old)?;
        Ok(watching)
    }

    /// Watches until the duration is over or `control` ends it; a watch of processes ends when they and their
    /// connections have ended.
    ///
    /// # Errors
    /// [`WatchError`]; readings made until then are kept.
    pub fn run(&mut self, control: &Control) -> Result<(), WatchError> {
        let start = self.clock.now();
        let until = self.options.duration.map_or(Time::NEVER, |length| start + length);
        let mut waiter = Waiter::new(self.clock).map_err(system("prctl(PR_SET_TIMERSLACK)"))?.without_spin();
        let mut reading = Ticks::new(start, self.options.every);
        let mut searching = Ticks::new(start, self.options.search_every);
        let mut showing = Ticks::new(start, Span::from_millis(200));
        let mut finishing = None;
        while !control.stop.load(Ordering::Relaxed) {
            let due = reading.due.min(searching.due).min(until);
            match &self.ends {
                Some(ends) => waiter.wait(&mut [PollFd::new(ends, PollFlags::IN)], due),
                None => waiter.wait(&mut [], due),
            }
            .map_err(system("ppoll"))?;
            self.receive_ends()?;
            let now = self.clock.now();
            if now >= until {
                break;
            }
            if now >= searching.due {
                let since = self.searched;
                self.search(|first| {
                    let mut log = Log::of_new(since);
                    log.push(first);
                    log
                })?;
                searching.pass(self.clock.now());
            }
            if now >= reading.due {
                self.read()?;
                self.counts.missed += reading.pass(self.clock.now());
                if self.readings > self.options.max_readings {
                    self.thin();
                    reading = Ticks::new(start, self.options.every);
                    reading.pass(self.clock.now());
                }
            }
            if now >= showing.due {
                *control.view.lock().unwrap_or_else(PoisonError::into_inner) = self.view();
                showing.pass(now);
                if finishing.is_none() && (control.finish.load(Ordering::Relaxed) || self.is_left_alone()) {
                    finishing = Some(now);
                }
            }
            if finishing.is_some_and(|since| self.open.is_empty() || now.since(since) > PATIENCE) {
                break;
            }
        }
        // Read the last state of connections still open, and receive the latest end events.
        self.read()?;
        self.receive_ends()
    }

    /// Whether all watched processes have ended.
    fn is_left_alone(&self) -> bool {
        match &self.options.selection {
            Selection::Processes(pids) => !pids.iter().any(|&pid| socket_owners::runs(pid)),
            _ => false,
        }
    }

    /// Adds new connections; `log` creates a connection's log from its first reading.
    fn search(&mut self, log: impl Fn(Sample) -> Log) -> Result<(), WatchError> {
        let found = self.list()?;
        let time = self.clock.now();
        let there: BTreeSet<u64> = found.iter().map(|socket| socket.cookie).collect();
        // A followed connection leaves `known` when its end is known.
        self.known.retain(|cookie, known| matches!(known, Known::Followed(_)) || there.contains(cookie));
        let mut fresh: Vec<Socket> =
            found.into_iter().filter(|socket| !self.known.get(&socket.cookie).is_some_and(Known::is_settled)).collect();
        let mut owned = BTreeMap::new();
        let wanted: BTreeSet<u32> = fresh.iter().map(|socket| socket.inode).filter(|&inode| inode != 0).collect();
        if !wanted.is_empty() && time >= self.next_owners {
            owned = socket_owners::find(&wanted, self.suspects());
            let now = self.clock.now();
            self.next_owners = now + Span(now.since(time).0.saturating_mul(20));
            if self.by_process() {
                for socket in fresh.iter().filter(|socket| socket.inode != 0 && !owned.contains_key(&socket.inode)) {
                    let tries = match self.known.get(&socket.cookie) {
                        Some(Known::Others(tries)) => tries + 1,
                        _ => 1,
                    };
                    self.known.insert(socket.cookie, Known::Others(tries));
                }
            }
        }
        if self.by_process() {
            fresh.retain(|socket| owned.contains_key(&socket.inode));
        }
        for socket in fresh {
            let owner = owned.remove(&socket.inode);
            if let Some(info) = socket.info {
                let cc = socket.cc_info;
                self.follow(socket, owner, log(Sample { time, info, cc }));
            }
        }
        self.name_owners(&owned);
        self.searched = time;
        Ok(())
    }

    /// Whether connections are selected by process.
    fn by_process(&self) -> bool {
        matches!(self.options.selection, Selection::Processes(_) | Selection::Children)
    }

    /// The processes that may own the sockets in question.
    fn suspects(&self) -> Vec<u32> {
        match &self.options.selection {
            Selection::All | Selection::Ports(_) => socket_owners::everyone(),
            Selection::Processes(roots) => roots.iter().copied().chain(socket_owners::descendants(roots)).collect(),
            Selection::Children => {
                socket_owners::descendants(&[std::process::id()]).difference(&self.before).copied().collect()
            }
        }
    }

    /// Sets the owners of sockets that had not been accepted when found, or that there was no time to look up.
    fn name_owners(&mut self, owned: &BTreeMap<u32, Owner>) {
        for &at in &self.open {
            let connection = &mut self.connections[at];
            if connection.owner.is_none() {
                connection.owner = owned.get(&connection.socket.inode).cloned();
            }
        }
    }

    /// All connections that match the watch's ports.
    fn list(&mut self) -> Result<Vec<Socket>, WatchError> {
        let filters = match &self.options.selection {
            Selection::Ports(ports) if ports.len() == 1 => vec![
                Filter { local_port: ports.first().copied(), peer_port: None },
                Filter { local_port: None, peer_port: ports.first().copied() },
            ],
            _ => vec![Filter::default()],
        };
        let mut found = Vec::new();
        for family in Family::ALL {
            for &filter in &filters {
                match self.diag.dump(family, filter) {
                    Ok(some) => found.extend(some),
                    // a kernel without IPv6
                    Err(error) if family == Family::V6 && error.raw_os_error() == Some(libc::ENOENT) => {}
                    Err(error) => return Err(WatchError::System { call: "listing TCP sockets (netlink)", error }),
                }
            }
        }
        found.retain(|socket| self.is_wanted(socket));
        found.sort_by_key(|socket| socket.cookie);
        found.dedup_by_key(|socket| socket.cookie);
        Ok(found)
    }

    fn is_wanted(&self, socket: &Socket) -> bool {
        match &self.options.selection {
            Selection::Ports(ports) => ports.contains(&socket.local.port()) || ports.contains(&socket.peer.port()),
            _ => true,
        }
    }

    fn follow(&mut self, socket: Socket, owner: Option<Owner>, log: Log) {
        if self.connections.len() >= MAX_CONNECTIONS {
            self.counts.beyond += 1;
            self.known.insert(socket.cookie, Known::Others(TRIES));
            return;
        }
        let at = self.connections.len();
        self.readings += log.samples().len();
        self.known.insert(socket.cookie, Known::Followed(at));
        self.connections.push(Connection { socket, log, owner, gone: None, ended: None });
        self.open.push(at);
    }

    /// Reads all open connections.
    fn read(&mut self) -> Result<(), WatchError> {
        if self.open.is_empty() {
            return Ok(());
        }
        let mut listed = None;
        if self.open.len() > MANY {
            let found = self.list()?;
            listed = Some(found.into_iter().map(|socket| (socket.cookie, socket)).collect::<BTreeMap<_, _>>());
        }
        let mut wanted = BTreeSet::new();
        for &at in &self.open {
            let connection = &mut self.connections[at];
            if connection.gone.is_some() {
                continue;
            }
            let now = match &mut listed {
                Some(listed) => listed.remove(&connection.socket.cookie),
                None => self.diag.again(&connection.socket).map_err(system("asking for a TCP socket (netlink)"))?,
            };
            let time = self.clock.now();
            match now.and_then(|socket| Some((socket.info?, socket))) {
                Some((info, socket)) => {
                    connection.log.push(Sample { time, info, cc: socket.cc_info });
                    self.readings += 1;
                    let unnamed = connection.owner.is_none() && socket.inode != 0;
                    // An inode of zero: the program has closed it, but its owner is already known.
                    connection.socket = socket;
                    if unnamed && time >= self.next_owners {
                        wanted.insert(connection.socket.inode);
                    }
                }
                None => connection.gone = Some(time),
            }
        }
        self.end_vanished();
        if !wanted.is_empty() {
            let began = self.clock.now();
            let owned = socket_owners::find(&wanted, self.suspects());
            self.name_owners(&owned);
            let now = self.clock.now();
            // If owners cannot be found (another user's processes), do not retry at every reading.
            self.next_owners = now + Span(now.since(began).0.saturating_mul(20)).max(Span::from_millis(500));
        }
        Ok(())
    }

    /// Receives the events of destroyed sockets.
    fn receive_ends(&mut self) -> Result<(), WatchError> {
        let Some(ends) = &mut self.ends else { return Ok(()) };
        let ended = ends.take().map_err(system("hearing of destroyed TCP sockets (netlink)"))?;
        let time = self.clock.now();
        for socket in ended {
            let Some(info) = socket.info else { continue };
            match self.known.remove(&socket.cookie) {
                Some(Known::Followed(at)) => {
                    let connection = &mut self.connections[at];
                    connection.log.push(Sample { time, info, cc: socket.cc_info });
                    connection.ended = Some(time);
                    self.readings += 1;
                    self.open.retain(|&open| open != at);
                }
                Some(Known::Others(tries)) if tries >= TRIES => {}
                // Sockets that never connected, such as listening ones, are destroyed as well.
                _ if socket.peer.port() == 0 || !self.is_wanted(&socket) => {}
                _ if self.by_process() => self.counts.strays += 1,
                _ => {
                    let mut log = Log::of_new(self.searched);
                    log.push(Sample { time, info, cc: socket.cc_info });
                    let at = self.connections.len();
                    self.follow(socket, None, log);
                    if let Some(connection) = self.connections.get_mut(at) {
                        connection.ended = Some(time);
                        self.known.remove(&connection.socket.cookie);
                        self.open.retain(|&open| open != at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends connections that the kernel no longer lists and for which no end event arrived.
    fn end_vanished(&mut self) {
        let now = self.clock.now();
        let patience = if self.ends.is_some() { PATIENCE } else { Span::ZERO };
        let connections = &mut self.connections;
        let known = &mut self.known;
        self.open.retain(|&at| {
            let connection = &mut connections[at];
            let Some(gone) = connection.gone.filter(|&gone| now.since(gone) >= patience) else { return true };
            connection.ended = Some(gone);
            known.remove(&connection.socket.cookie);
            false
        });
    }

    fn thin(&mut self) {
        for connection in &mut self.connections {
            connection.log.thin();
        }
        self.readings = self.connections.iter().map(|connection| connection.log.samples().len()).sum();
        self.options.every = Span(self.options.every.0.saturating_mul(2));
        self.counts.thinned += 1;
    }
}

impl Known {
    /// Whether nothing more needs to be found out.
    fn is_settled(&self) -> bool {
        match self {
            Known::Followed(_) => true,
            Known::Others(tries) => *tries >= TRIES,
        }
    }
}
