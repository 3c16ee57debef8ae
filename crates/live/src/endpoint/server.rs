//! `paceline serve`: serves clients that prove ownership of their address, within limits.
//!
//! One thread drives all flows; each client has a thread for its control channel, which mostly sleeps. Datagrams of
//! unknown flows are dropped without an answer, so that nothing is amplified or reflected. A flow becomes known only
//! through the control channel, and only from the client's address.

use super::auth_backoff::{LogRateLimiter, Tries};
use super::budget::{self, Budget, Charge, Net, Portion};
use super::channel::{Channel, PATIENCE};
use super::client_resources::{Open, PendingConnection, PendingConnections, ValidationPermit};
use super::control::{self, Answer, ClientMessage, Direction, MAX_FLOWS, MAX_REQUEST, Offer, ServerMessage};
use super::driver::{Driver, Handle, NewFlow, Outcome, Running};
use super::half::Half;
use super::options::ServeOptions;
use super::{LogSink, flow_limits, kernel};
use crate::clock::Clock;
use crate::endpoint::udp::UdpPort;
use crate::peer_text::peer_text;
use crate::quic::{Fingerprint, Keys, OwnKey, Place};
use crate::session::{Family, SessionSpec, Side};
use paceline_units::{Span, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time limit for a client to read a flow's result.
const READS: Duration = Duration::from_secs(60);
/// Polling interval of waiting threads.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);
const LOOK_TIMESPEC: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// A flow may exceed its duration by this time.
const GRACE: Duration = Duration::from_secs(30);

/// Maximum number of log lines per ten seconds about flows that begin and end.
const FLOW_LINES: u32 = 200;

/// State shared by the server's threads.
pub(super) struct Shared {
    pub(super) options: ServeOptions,
    pub(super) clock: Clock,
    pub(super) handle: Handle,
    /// The receivers of flows' outcomes, by flow id.
    pub(super) waiting: Mutex<BTreeMap<u64, Sender<Outcome>>>,
    /// Kernel-TCP flows that wait for their connection.
    pub(super) tickets: Mutex<BTreeMap<u64, Ticket>>,
    next: AtomicU64,
    pub(super) budget: Arc<Budget>,
    /// Connections that have not agreed on flows yet.
    pub(super) pending_connections: Mutex<PendingConnections>,
    pub(super) tries: Mutex<Tries>,
    /// Log limiters: for wrong keys, for failed connections, for flows.
    pub(super) wrong_key_limiter: Mutex<LogRateLimiter>,
    failure_limiter: Mutex<LogRateLimiter>,
    flow_limiter: Mutex<LogRateLimiter>,
    /// Clients whose requests are being validated, and a signal at the end of each validation.
    pub(super) validating: Mutex<BTreeSet<Net>>,
    pub(super) validated: Condvar,
    pub(super) over: AtomicBool,
    pub(super) say: LogSink,
}

/// A kernel-TCP flow that waits for its connection.
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
pub(super) struct Ticket {
    pub(super) only: IpAddr,
    pub(super) stream: Sender<TcpStream>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    pub(super) shared: Arc<Shared>,
    driver: thread::JoinHandle<io::Result<()>>,
    outcomes: thread::JoinHandle<()>,
}

impl Server {
    /// Starts listening. `say` receives log lines.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn start(options: ServeOptions, say: LogSink) -> io::Result<Server> {
        let clock = Clock::start();
        let listener = TcpListener::bind(options.bind)
            .map_err(|error| io::Error::new(error.kind(), format!("bind(2) of TCP {}: {error}", options.bind)))?;
        listener.set_nonblocking(true)?;
        let bound = listener.local_addr()?;
        let port = UdpPort::bind(bound, clock)
            .map_err(|error| io::Error::new(error.kind(), format!("UDP {bound}: {error}")))?;
        let Running { thread: driver, handle, outcomes } = Driver::spawn(clock, vec![port])?;
        let sessions = options.max_sessions as u64;
        // a client that reads results from a folder is on this host, and may use the whole budget
        let budget = match options.results {
            Some(_) => Budget::of_one(Portion { sessions, memory: u64::MAX }),
            None => Budget::new(Portion { sessions, memory: options.max_memory }),
        };
        let first = options.qlogs.as_ref().map_or(1, |(_, quota)| quota.first());
        let shared = Arc::new(Shared {
            options: ServeOptions { bind: bound, ..options },
            clock,
            handle,
            waiting: Mutex::default(),
            tickets: Mutex::default(),
            next: AtomicU64::new(first),
            budget,
            pending_connections: Mutex::default(),
            tries: Mutex::default(),
            wrong_key_limiter: Mutex::new(LogRateLimiter::new(1)),
            failure_limiter: Mutex::new(LogRateLimiter::new(1)),
            flow_limiter: Mutex::new(LogRateLimiter::new(FLOW_LINES)),
            validating: Mutex::default(),
            validated: Condvar::new(),
            over: AtomicBool::new(false),
            say,
        });
        let theirs = Arc::clone(&shared);
        let outcomes = thread::Builder::new().name("paceline outcomes".to_owned()).spawn(move || {
            while let Ok(outcome) = outcomes.recv() {
                theirs.handle.forget(outcome.id);
                match locked(&theirs.waiting).remove(&outcome.id) {
                    Some(who) => drop(who.send(outcome)),
                    None => {
                        drop(outcome);
                        budget::give_back();
                    }
                }
            }
        })?;
        Ok(Server { listener, shared, driver, outcomes })
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.options.bind
    }

    /// Serves until `stop` is set, which is checked ten times per second; then ends all flows and sends their results
    /// to the clients.
    ///
    /// # Errors
    /// A call that failed and will not succeed later.
    pub fn run(self, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) && !self.driver.is_finished() {
            match self.listener.accept() {
                Ok((stream, from)) => self.accept(stream, from),
                // poll, to accept at once: the data of a kernel-TCP flow follow its connection
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
                    let _ = poll(&mut fds, Some(&LOOK_TIMESPEC));
                }
                // a client that is gone already, or too many open files: try the next one
                Err(_) => rest(POLL_INTERVAL),
            }
        }
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.handle.quit();
        let ended = self.driver.join().unwrap_or_else(|_| Err(io::Error::other("the thread of the flows has ended")));
        let (budget, clock) = (Arc::clone(&self.shared.budget), self.shared.clock);
        drop(self.shared);
        let _ = self.outcomes.join();
        // clients are still receiving results: wait until the flows' budget is released
        let until = clock.now() + Span(PATIENCE.as_nanos() as u64);
        while budget.taken().sessions > 0 && clock.now() < until {
            rest(Duration::from_millis(1));
        }
        ended
    }

    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    fn accept(&self, mut stream: TcpStream, from: SocketAddr) {
        let shared = Arc::clone(&self.shared);
        let ip = from.ip().to_canonical();
        let Some(pending) = PendingConnection::enters(&self.shared, ip, &stream) else {
            // the reason is sent only if it fits in the socket's buffer: do not wait here
            if stream.set_nonblocking(true).is_ok() {
                let why = "the server has as many clients as it listens to at once; try again later".to_owned();
                let _ = control::write(&mut stream, &Answer::Refused { why });
            }
            return;
        };
        // if no thread can be created, the connection is closed and its `PendingConnection` dropped
        let _ = thread::Builder::new().name("paceline client".to_owned()).spawn(move || {
            if let Err(error) = shared.client(stream, ip, pending)
                && error.kind() != io::ErrorKind::UnexpectedEof
            {
                (shared.say)(&format!("{ip}: {error}"));
            }
        });
    }
}

impl Shared {
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    fn client(&self, stream: TcpStream, ip: IpAddr, pending: PendingConnection) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let (mut stream, text) = match self.read_request(stream, ip) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => return self.log_failure(ip, &error),
        };
        // the parsed request is many times the size of its text, so requests are parsed a few at a time
        let Some(permit) = ValidationPermit::acquire(self, ip) else { return Ok(()) };
        let (flows, key) = match control::parse(&text) {
            Ok(ClientMessage::Open { mut flows, key }) => {
                flows.iter_mut().for_each(|offer| offer.spec.foreign = self.options.schemes.clone());
                (flows, key)
            }
            Ok(ClientMessage::Stop) => return Ok(()),
            Err(error) => return self.log_failure(ip, &error),
        };
        drop(text);
        if flows.is_empty() || flows.len() > MAX_FLOWS {
            return refuse(&mut stream, &format!("{} flows; 1 to {MAX_FLOWS} at a time", flows.len()));
        }
        if let Some(why) = flow_limits::refused_at_once(&self.options, &flows) {
            return refuse(&mut stream, &why);
        }
        let charge = match self.budget.charge(Net::of(ip), Portion::of(&flows)) {
            Ok(charge) => Arc::new(charge),
            Err(why) => return refuse(&mut stream, &why),
        };
        let refused = flow_limits::refused(&self.options, &flows);
        drop(permit);
        if let Some(why) = refused {
            return refuse(&mut stream, &why);
        }
        let longest = flows.iter().map(Offer::lasts_ms).max().unwrap_or(0);
        drop(pending);
        let served = self.serve(&mut stream, (ip, key), &flows, &charge, Duration::from_millis(longest) + GRACE);
        budget::give_back();
        served
    }

    /// Logs an error of a connection, rate-limited because anyone can cause it.
    fn log_failure(&self, ip: IpAddr, error: &io::Error) -> io::Result<()> {
        if error.kind() != io::ErrorKind::UnexpectedEof
            && let Some(more) = locked(&self.failure_limiter).on_event(self.clock.now())
        {
            (self.say)(&format!("{ip}: {error}{more}"));
        }
        Ok(())
    }

    /// Logs the beginning or end of a flow, rate-limited.
    fn say_of_flow(&self, line: &str) {
        if let Some(more) = locked(&self.flow_limiter).on_event(self.clock.now()) {
            (self.say)(&format!("{line}{more}"));
        }
    }

    /// Reads a client's request as text, after its greeting; `None` if the connection needs no further service.
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    fn read_request(&self, stream: TcpStream, ip: IpAddr) -> io::Result<Option<(Channel, Vec<u8>)>> {
        let Some(mut stream) = self.greet(stream, ip)? else { return Ok(None) };
        let max_duration_ms = self.options.max_duration.0 / 1_000_000;
        stream.write(&ServerMessage::Welcome { max_rate_bps: self.options.max_rate.0, max_duration_ms }, PATIENCE)?;
        let message = stream.text(MAX_REQUEST, PATIENCE);
        self.check_first_message(&stream, &message, ip);
        Ok(Some((stream, message?)))
    }

    fn serve(
        &self,
        stream: &mut Channel,
        (ip, peer): (IpAddr, Option<Fingerprint>),
        offers: &[Offer],
        charge: &Arc<Charge>,
        longest: Duration,
    ) -> io::Result<()> {
        let limit = u32::try_from(self.options.max_rate.0 / 8).unwrap_or(kernel::UNBOUNDED);
        let (outcome, outcomes) = channel();
        let (half, halves) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut open = Open { shared: self, ids: BTreeMap::new(), tickets: Vec::new(), stop: Arc::clone(&stop) };
        let own = offers.iter().any(|offer| offer.spec.is_quic()).then(OwnKey::generate).transpose()?;
        let key = own.as_ref().map(OwnKey::fingerprint);
        let mut opened = Vec::new();
        for (index, offer) in offers.iter().enumerate() {
            let connection = u32::from_ne_bytes(control::random()?);
            let nonce = u64::from_ne_bytes(control::random()?);
            opened.push((connection, nonce));
            if let Some(name) = &offer.kernel {
                self.say_of_flow(&format!("{ip}: the kernel's {name} for {} s", offer.spec.for_ms as f64 / 1e3));
                let stream = self.ticket(nonce, ip);
                open.tickets.push(nonce);
                kernel::serve(index, name.clone(), offer.clone(), limit, stream, half.clone(), Arc::clone(&stop));
                continue;
            }
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let (side, words) = match offer.direction {
                Direction::Forward => (Side::Receiver, "from"),
                Direction::Reverse => (Side::Sender, "to"),
            };
            let (mut flow, measure) = (offer.spec.clone(), offer.measure);
            flow.family = if ip.is_ipv6() { Family::V6 } else { Family::V4 };
            let spec = SessionSpec { side, flow, connection, nonce, limit: Some(limit), announces: false, rtp: None };
            locked(&self.waiting).insert(id, outcome.clone());
            open.ids.insert(id, index);
            let (only, charge) = (ip, Some(Arc::clone(charge)));
            if let Err(why) = self.handle.add(NewFlow {
                id,
                spec,
                port: 0,
                peer: None,
                only,
                rtcp: None,
                log: None,
                qlog: Some(offer).filter(|offer| offer.spec.is_quic()).and_then(|_| self.place(id, ip)),
                measure,
                charge,
                keys: own.clone().filter(|_| offer.spec.is_quic()).map(|own| Keys { own, peer }),
                announcer: None,
            }) {
                return refuse(stream, &why);
            }
            // a repeated key's last value counts
            let cc = offer.spec.settings.iter().rfind(|(key, _)| key == "cc").map_or("newreno", |(_, cc)| cc);
            let cc = peer_text(cc);
            self.say_of_flow(&format!("{ip}: {cc} {words} {ip} for {} s", offer.spec.for_ms as f64 / 1e3));
        }
        stream.write(&ServerMessage::Opened { flows: opened, limit, key }, PATIENCE)?;
        self.until_done(stream, &mut Waiting { open, left: offers.len(), outcomes, halves, longest })
    }

    /// Place for the logs of a flow's connections: named after its client's address and its id, neither of which the
    /// client chooses.
    fn place(&self, id: u64, ip: IpAddr) -> Option<Place> {
        let (folder, quota) = self.options.qlogs.clone()?;
        if quota.is_full() {
            self.say_of_flow(&format!("flow {id}: not logged, for {} has all that it may have", folder.display()));
            return None;
        }
        let from = ip.to_canonical().to_string().replace(':', "_");
        let place = Place { folder, name: format!("{from}-{id}"), quota: Some(quota) }.checked();
        place.inspect_err(|error| self.say_of_flow(&format!("flow {id}: not logged: {error}"))).ok()
    }

    /// Waits until all flows of a client have ended, or the client stops them or is gone.
    fn until_done(&self, stream: &mut Channel, waiting: &mut Waiting<'_>) -> io::Result<()> {
        let clock = Clock::start();
        let longest = Span(waiting.longest.as_nanos() as u64);
        let (mut stopped, mut gone) = (false, false);
        // dropping `waiting` ends all open flows
        let is_gone = || Err(io::Error::new(io::ErrorKind::ConnectionAborted, "it is gone, and its flows with it"));
        while waiting.left > 0 {
            while let Ok((flow, half)) = waiting.halves.try_recv() {
                waiting.left -= 1;
                gone |= self.send_result(stream, flow, half).is_err();
            }
            match waiting.outcomes.recv_timeout(Duration::from_millis(1)) {
                Ok(outcome) => {
                    waiting.left -= 1;
                    if let Some(flow) = waiting.open.ids.remove(&outcome.id) {
                        self.say_of_flow(&format!("flow {}: {}", outcome.id, outcome.half.ended));
                        if let Some(why) = &outcome.half.log_cut {
                            self.say_of_flow(&format!("flow {}: its log ends before it: {why}", outcome.id));
                        }
                        if let Some((folder, _)) = self.options.qlogs.as_ref().filter(|(_, quota)| quota.has_filled()) {
                            (self.say)(&format!(
                                "{}: no more is logged: it has all that it may have",
                                folder.display()
                            ));
                        }
                        gone |= self.send_result(stream, flow, outcome.half).is_err();
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let late = clock.now().since(Time::ZERO) > longest || self.over.load(Ordering::Relaxed);
            if gone {
                return is_gone();
            }
            if late && !stopped {
                stopped = true;
                waiting.open.ids.keys().for_each(|id| self.handle.stop(*id));
                waiting.open.stop.store(true, Ordering::Relaxed);
            }
            if late && clock.now().since(Time::ZERO) > longest + Span::from_secs(30) {
                return Ok(());
            }
            match stream.wait(POLL_INTERVAL) {
                Ok(0) => gone = true,
                Ok(_) => match stream.read(MAX_REQUEST, PATIENCE) {
                    Ok(ClientMessage::Stop) => waiting.open.ids.keys().for_each(|id| self.handle.stop(*id)),
                    _ => gone = true,
                },
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => gone = true,
            }
        }
        Ok(())
    }

    /// Sends a flow's result to the client, with its recordings, or writes it to the folder that the client reads.
    fn send_result(&self, stream: &mut Channel, flow: usize, mut half: Half) -> io::Result<()> {
        if let Some(folder) = &self.options.results {
            std::fs::write(folder.join(control::result_file(flow)), serde_json::to_vec(&half)?)?;
            half.tables.clear();
        }
        stream.write(&ServerMessage::Result { flow, half: Box::new(half) }, READS)
    }

    /// Registers a kernel-TCP flow; its connection will arrive through the returned channel.
    #[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
    fn ticket(&self, ticket: u64, only: IpAddr) -> Receiver<TcpStream> {
        let (stream, comes) = channel();
        locked(&self.tickets).insert(ticket, Ticket { only, stream });
        comes
    }
}

/// Sleeps.
#[expect(clippy::disallowed_methods, reason = "the crate that runs in real time")]
pub(super) fn rest(time: Duration) {
    thread::sleep(time);
}

/// What a client's thread waits for.
struct Waiting<'a> {
    open: Open<'a>,
    left: usize,
    outcomes: Receiver<Outcome>,
    halves: Receiver<(usize, Half)>,
    longest: Duration,
}

fn refuse(stream: &mut Channel, why: &str) -> io::Result<()> {
    stream.write(&ServerMessage::Refused { why: why.to_owned() }, PATIENCE)
}
