//! `paceline send`: requests flows from a server, runs this end of them, and joins both ends' measurements.

use super::budget::max_result_len;
use super::channel::{Channel, ChannelReader, ChannelWriter, PATIENCE, Unanswered};
use super::control::{self, ClientMessage, Direction, Greeting, MAX_REQUEST, Offer, ServerMessage};
use super::driver::{Driver, Handle, NewFlow, Running, View};
use super::half::Half;
use super::kernel;
use super::options::{RequestedFlow, SendOptions};
use super::outcome::{LiveRun, results, stopped_there};
use super::remote_results::checked_of;
use super::udp::UdpPort;
use crate::clock::Clock;
use crate::host::{HostReport, HostState};
use crate::quic::{Keys, OwnKey, Place};
use crate::session::{Family, SessionSpec, Side};
use crate::start_signal::Announcer;
use paceline_control::Failure;
use paceline_flow::Transport;
use paceline_scenario::ScenarioError;
use paceline_scenario::model::FlowModel;
use paceline_units::{Span, Time};
use serde::Serialize;
use std::io;
#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
use std::net::TcpStream;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time limits in seconds for the server's results after the flows have ended here: without progress, and in total.
const RESULTS: u64 = 15;
const ALL_RESULTS: u64 = 120;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How to start a server, for error messages.
const START: &str = "start one on that host with `paceline serve --port P`, for others than itself with --key-file FILE or --open, \
                     and send to the port that it says";

/// Why nothing was sent, or no results are available.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The server cannot be reached.
    #[error("{host} port {port}: {why}. No `paceline serve` can be reached there: {START}")]
    Unreachable {
        /// Host.
        host: String,
        /// Its port.
        port: u16,
        /// The system's error.
        why: String,
    },
    /// The host has no address.
    #[error("{host}: {why}")]
    NoAddress {
        /// Host.
        host: String,
        /// The system's error.
        why: String,
    },
    /// The server refused.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The server requires a key.
    #[error("the server wants a key: --key-file FILE")]
    Key,
    /// The server has no key.
    #[error(
        "the server has no key, and anybody could be it: have it serve with --key-file, or leave out --key-file to send to it as it is"
    )]
    Keyless,
    /// The server has another key.
    #[error("what answers does not have the key: it may not be the server that it is taken for")]
    WrongKey,
    /// The server closed the connection.
    #[error(
        "the server closed the connection without an answer: it has as many clients as it listens to, or another program than \
         `paceline serve` has the port; if so, {START}"
    )]
    Closed,
    /// Another program has the port, or one that does not answer.
    #[error("another program than `paceline serve` has the port, or one of another version ({0}): {START}")]
    OtherProgram(String),
    /// The server sent an invalid message.
    #[error("the server said what a client does not understand: is it `paceline serve` of this version? ({0})")]
    Protocol(String),
    /// A system call failed.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A controller that is not compiled in failed.
    #[error("{0}")]
    Controller(Failure),
    /// The server accepts the flow, but this end does not.
    #[error("{0}")]
    Flow(String),
}

/// What a flow shows while it runs.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    /// Its name.
    pub flow: String,
    /// Index among flows of the same name.
    pub instance: u32,
    /// Whether the client sends it.
    pub forward: bool,
    /// The figures.
    #[serde(flatten)]
    pub view: View,
}

/// Observes a run from another thread, and stops it.
#[derive(Debug, Default)]
pub struct SendWatch {
    stop: Arc<AtomicBool>,
    hurried: AtomicBool,
    running: Mutex<Option<(Handle, Vec<Shown>)>>,
}

impl SendWatch {
    /// Ends the flows; their measurements are kept. A second call also skips waiting for the server's results.
    pub fn stop(&self) {
        if self.stop.swap(true, Ordering::Relaxed) {
            self.hurried.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the user has stopped the run twice.
    fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Relaxed)
    }

    /// Whether the user has stopped the run.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Shows these flows from now on; their ids are their indices.
    pub(super) fn begin(&self, handle: &Handle, flows: &[RequestedFlow]) {
        let shown = flows.iter().map(|requested| Shown {
            flow: requested.name.clone(),
            instance: requested.instance,
            forward: requested.offer.direction == Direction::Forward,
            view: View::default(),
        });
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some((handle.clone(), shown.collect()));
    }

    /// What the flows show now; empty before they begin.
    #[must_use]
    pub fn shown(&self) -> Vec<Shown> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((handle, shown)) = &*running else { return Vec::new() };
        let views = handle.views();
        let of = |(id, one): (u64, &Shown)| Shown { view: views.get(&id).copied().unwrap_or(one.view), ..one.clone() };
        (0..).zip(shown).map(of).collect()
    }
}

#[expect(clippy::disallowed_types, reason = "the crate that has sockets")]
fn connect(options: &SendOptions) -> Result<(TcpStream, SocketAddr), SendError> {
    let (host, port) = (&options.host, options.port);
    let unreachable = |why: String| SendError::Unreachable { host: host.clone(), port, why };
    let nowhere = |error: io::Error| SendError::NoAddress { host: host.clone(), why: error.to_string() };
    let addresses = (host.as_str(), port).to_socket_addrs().map_err(nowhere)?;
    let mut why = "it has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok((stream, address));
            }
            Err(error) => why = error.to_string(),
        }
    }
    Err(unreachable(why))
}

/// Why a server did not answer.
fn no_answer(error: io::Error) -> SendError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => SendError::Closed,
        _ => SendError::Protocol(error.to_string()),
    }
}

impl From<Unanswered> for SendError {
    fn from(why: Unanswered) -> SendError {
        match why {
            Unanswered::Io(error) => match error.kind() {
                io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                    SendError::OtherProgram(format!("it said nothing in {} s", PATIENCE.as_secs()))
                }
                io::ErrorKind::InvalidData => SendError::OtherProgram(error.to_string()),
                _ => no_answer(error),
            },
            Unanswered::Refused(why) => SendError::Refused(why),
            Unanswered::Key => SendError::Key,
            Unanswered::Keyless => SendError::Keyless,
            Unanswered::WrongKey => SendError::WrongKey,
        }
    }
}

fn read_answer(channel: &mut Channel) -> Result<ServerMessage, SendError> {
    match channel.read(MAX_REQUEST, PATIENCE).map_err(no_answer)? {
        ServerMessage::Refused { why } => Err(SendError::Refused(why)),
        other => Ok(other),
    }
}

/// The server's answer: connection ids and secrets of its flows; its rate limit in bytes per second; both ends' keys
/// for flows over QUIC.
struct Opened {
    flows: Vec<(u32, u64)>,
    limit: u32,
    keys: Option<Keys>,
}

fn agree(channel: &mut Channel, offers: &[Offer]) -> Result<Opened, SendError> {
    let own = offers.iter().any(|offer| offer.spec.is_quic()).then(OwnKey::generate).transpose()?;
    let ServerMessage::Welcome { .. } = read_answer(channel)? else {
        return Err(SendError::Protocol("no welcome".to_owned()));
    };
    let key = own.as_ref().map(OwnKey::fingerprint);
    channel.write(&ClientMessage::Open { flows: offers.iter().map(Offer::for_peer).collect(), key }, PATIENCE)?;
    match read_answer(channel)? {
        ServerMessage::Opened { flows, limit, key } if flows.len() == offers.len() => match (own, key) {
            (Some(_), None) => Err(SendError::Protocol("it has no key for flows over QUIC".to_owned())),
            (own, peer) => Ok(Opened { flows, limit, keys: own.map(|own| Keys { own, peer }) }),
        },
        _ => Err(SendError::Protocol("it has not opened the flows".to_owned())),
    }
}

/// Runs the flows to their end, or until the watch stops them.
///
/// # Errors
/// [`SendError`]. A flow that ends badly is not an error: the results say how it ended.
pub fn send(options: &SendOptions, watch: &SendWatch) -> Result<LiveRun, SendError> {
    // report mistakes before contacting the server
    let machines = options.flows.iter().filter(|requested| requested.offer.kernel.is_none());
    let models = machines.map(|requested| Ok((requested.offer.direction, requested.offer.spec.model()?)));
    let models: Vec<_> =
        models.collect::<Result<_, _>>().map_err(|error: ScenarioError| SendError::Flow(error.to_string()))?;
    for (direction, flow) in models.iter().filter(|(_, flow)| flow.is_led()) {
        let leads = |(way, other): &(Direction, FlowModel)| way == direction && flow.goes_with(other);
        if !models.iter().any(leads) {
            return Err(SendError::Flow("live: bundle.with: the flow with which it goes is not asked for".to_owned()));
        }
    }
    let has_none = |(way, flow): &(Direction, FlowModel)| {
        *way == Direction::Reverse && matches!(flow.transport, Transport::Quic { .. })
    };
    if options.logs.is_some() && !models.is_empty() && models.iter().all(has_none) {
        let why = "an event log of a flow over QUIC is what its controller was told, which is at its sender, the server: \
                   send from here, or leave out --log-events";
        return Err(SendError::Flow(why.to_owned()));
    }
    let (stream, server) = connect(options)?;
    let local = canonical(stream.local_addr()?);
    let server = canonical(server);
    let family = if server.is_ipv6() { Family::V6 } else { Family::V4 };
    let mut offers: Vec<Offer> = options.flows.iter().map(|requested| requested.offer.clone()).collect();
    for offer in &mut offers {
        offer.spec.family = family;
        if offer.spec.is_quic() {
            offer.spec.model().map_err(|error| SendError::Flow(error.to_string()))?;
        }
    }
    let mut channel = Channel::open(stream, options.key.as_ref())?;
    let opened = agree(&mut channel, &offers)?;
    let before = HostState::now().ok();
    let mut run = Run::start(options, &offers, opened, server, local)?;
    watch.begin(&run.handle, &options.flows);
    let done = run.until_done(channel, watch, max_result_len(&offers));
    run.handle.quit();
    let driven = run.driver.join();
    done?;
    if let Ok(Err(error)) = driven {
        let why = ended_by(error)?;
        while let Ok(outcome) = run.outcomes.try_recv() {
            run.near[outcome.id as usize].insert(outcome.half).failed(&why);
        }
    }
    let host = before.and_then(|before| HostReport::since(before).ok());
    let unknown = run.results_cut.unwrap_or_else(|| "nothing is known of the other end".to_owned());
    if !watch.is_stopped() {
        for (near, far) in run.near.iter_mut().zip(&mut run.far) {
            if let Some(far) = far {
                stopped_there(near.as_mut(), far, &options.host);
            }
        }
    }
    Ok(results(options, server, host, (&run.near, &run.far), unknown))
}

/// How flows ended whose driver failed in a system call: their measurements are kept.
///
/// # Errors
/// [`SendError::Controller`]: a controller that is not compiled in has failed.
pub(super) fn ended_by(error: io::Error) -> Result<String, SendError> {
    match error.downcast::<Failure>() {
        Ok(failure) => Err(SendError::Controller(failure)),
        Err(error) => Ok(format!("the system failed: {error}")),
    }
}

/// Turns IPv4-mapped IPv6 into IPv4; an IPv6 address keeps its scope, which a link-local one needs.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(_) => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// Whether a half or its recordings are missing.
fn is_bare(half: Option<&Half>) -> bool {
    half.is_none_or(|half| half.tables.is_empty())
}

/// A run in progress.
struct Run {
    handle: Handle,
    driver: thread::JoinHandle<io::Result<()>>,
    outcomes: std::sync::mpsc::Receiver<super::driver::Outcome>,
    halves: std::sync::mpsc::Receiver<(usize, Half)>,
    stop: Arc<AtomicBool>,
    offers: Vec<Offer>,
    near: Vec<Option<Half>>,
    far: Vec<Option<Half>>,
    results: Option<PathBuf>,
    /// Why the client no longer reads the server's messages.
    results_cut: Option<String>,
}

impl Run {
    /// Reads the server's result files of flows whose results are missing, or arrived without recordings.
    fn look_for_results(&mut self) {
        let Some(folder) = &self.results else { return };
        for (flow, far) in self.far.iter_mut().enumerate().filter(|(_, far)| is_bare(far.as_ref())) {
            let text = std::fs::read(folder.join(control::result_file(flow)));
            // a partially written file is not valid JSON yet
            if let Some(half) = text.ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                *far = Some(checked_of(half, &self.offers[flow]));
            }
        }
    }

    fn start(
        options: &SendOptions,
        offers: &[Offer],
        opened: Opened,
        server: SocketAddr,
        local: SocketAddr,
    ) -> Result<Run, SendError> {
        let Opened { flows: opened, limit, keys } = opened;
        let clock = Clock::start();
        let announcer = options.beginning.as_ref().map(|pipe| Announcer::new(pipe, clock)).transpose()?.map(Arc::new);
        let (mut ports, mut news, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (offer, (connection, nonce))) in offers.iter().zip(opened).enumerate() {
            if let Some(name) = &offer.kernel {
                kernels.push((index, name.clone(), offer.clone(), nonce, options.bound(local, index)));
                continue;
            }
            let mut port = UdpPort::bind(options.bound(local, index), clock)?;
            port.connect(server)?;
            let (side, announces) = match offer.direction {
                Direction::Forward => (Side::Sender, false),
                Direction::Reverse => (Side::Receiver, true),
            };
            let limit = (side == Side::Sender).then_some(limit);
            let spec = SessionSpec { side, flow: offer.spec.clone(), connection, nonce, limit, announces, rtp: None };
            let log = options.logs.as_ref().map(|folder| {
                let requested = &options.flows[index];
                folder.join(format!("{}-{}.events", requested.name, requested.instance))
            });
            let qlog = options.qlogs.clone().filter(|_| offer.spec.is_quic());
            let qlog = qlog.map(|folder| {
                let RequestedFlow { name, instance, .. } = &options.flows[index];
                let alone = options.flows.iter().filter(|other| other.name == *name).count() == 1;
                let name = if alone { name.clone() } else { format!("{name}.{instance}") };
                Place { folder, name, quota: None }.checked().map_err(SendError::Flow)
            });
            let id = index as u64;
            news.push(NewFlow {
                id,
                spec,
                port: ports.len(),
                peer: Some(server),
                only: server.ip(),
                rtcp: None,
                log,
                qlog: qlog.transpose()?,
                measure: offer.measure,
                charge: None,
                keys: keys.clone().filter(|_| offer.spec.is_quic()),
                announcer: announcer.clone(),
            });
            ports.push(port);
        }
        let Running { thread: driver, handle, outcomes } = Driver::spawn(clock, ports)?;
        for new in news {
            if let Err(why) = handle.add(new) {
                handle.quit();
                return Err(SendError::Flow(why));
            }
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (half, halves) = channel();
        for (index, name, offer, ticket, local) in kernels {
            let (half, stop, announcer) = (half.clone(), Arc::clone(&stop), announcer.clone());
            thread::Builder::new().name("paceline kernel flow".to_owned()).spawn(move || {
                let done = attach((local, server), ticket, &name, &offer, limit, &stop, announcer.as_deref());
                let _ = half.send((index, done));
            })?;
        }
        let none = || offers.iter().map(|_| None).collect();
        let (near, far, results) = (none(), none(), options.results.clone());
        let offers = offers.to_vec();
        Ok(Run { handle, driver, outcomes, halves, stop, offers, near, far, results, results_cut: None })
    }

    /// Handles a message received while the flows run; returns whether to read further ones.
    fn on_message(&mut self, message: io::Result<ServerMessage>) -> bool {
        let why = match message {
            Ok(ServerMessage::Result { flow, half }) if flow < self.far.len() => {
                self.far[flow] = Some(checked_of(*half, &self.offers[flow]));
                return true;
            }
            Ok(ServerMessage::Result { flow, .. }) => {
                format!("the server told of flow {flow}; there are {}", self.far.len())
            }
            Ok(ServerMessage::Refused { why }) => format!("the server refused: {why}"),
            Ok(_) => "the server said what is not to be said while flows run".to_owned(),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => format!("the server's results: {error}"),
            Err(_) => return false,
        };
        self.results_cut = Some(why);
        false
    }

    fn until_done(&mut self, channel: Channel, watch: &SendWatch, longest: usize) -> Result<(), SendError> {
        let (mut speaks, from) = channel.split();
        let done = self.wait_for_message(&mut speaks, from, watch, longest);
        speaks.shutdown();
        done
    }

    fn wait_for_message(
        &mut self,
        speaks: &mut ChannelWriter,
        mut from: ChannelReader,
        watch: &SendWatch,
        longest: usize,
    ) -> Result<(), SendError> {
        let (said, messages) = channel();
        let received_bytes = Arc::clone(&from.received_bytes);
        // ends when the connection is shut down
        thread::Builder::new().name("paceline control".to_owned()).spawn(move || {
            loop {
                let message: io::Result<ServerMessage> = from.read(longest, None);
                let over = message.is_err();
                if said.send(message).is_err() || over {
                    break;
                }
            }
        })?;
        let clock = Clock::start();
        let (mut stopped, mut gone) = (false, false);
        let (mut until, mut known, mut last) = (Time::NEVER, 0, Time::NEVER);
        loop {
            while let Ok(outcome) = self.outcomes.try_recv() {
                self.near[outcome.id as usize] = Some(outcome.half);
            }
            while let Ok((index, half)) = self.halves.try_recv() {
                self.near[index] = Some(half);
            }
            while let Ok(message) = messages.try_recv() {
                gone = gone || !self.on_message(message);
            }
            if self.driver.is_finished() {
                // the error is reported when the driver is joined
                break;
            }
            let ended = self.near.iter().all(Option::is_some);
            if ended && self.results.is_some() {
                self.look_for_results();
            }
            if ended && self.far.iter().all(Option::is_some) {
                break;
            }
            let bytes = received_bytes.load(Ordering::Relaxed);
            if ended && last == Time::NEVER {
                last = clock.now() + Span::from_secs(ALL_RESULTS);
            }
            if ended && (until == Time::NEVER || bytes != known) {
                until = last.min(clock.now() + Span::from_secs(RESULTS));
                known = bytes;
            }
            if ended && (gone || watch.is_hurried() || clock.now() >= until) {
                break;
            }
            let stop_requested = watch.is_stopped();
            if (stop_requested || gone) && !stopped {
                stopped = true;
                self.stop.store(true, Ordering::Relaxed);
                for id in 0..self.near.len() as u64 {
                    if gone { self.handle.drop_flow(id) } else { self.handle.stop(id) }
                }
                if stop_requested {
                    // the server may be gone already
                    let _ = speaks.write(&ClientMessage::Stop, PATIENCE);
                }
            }
            super::server::rest(POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Opens the connection of a kernel-TCP flow, and runs this half of it.
fn attach(
    between: (SocketAddr, SocketAddr),
    ticket: u64,
    name: &str,
    offer: &Offer,
    limit: u32,
    stop: &AtomicBool,
    announcer: Option<&Announcer>,
) -> Half {
    let attached = kernel::connect(between, offer, PATIENCE).and_then(|mut stream| {
        let said = stream.set_write_timeout(Some(PATIENCE));
        said.and_then(|()| control::write(&mut stream, &Greeting::Attach { ticket }))
            .map_err(|error| ("send", error))?;
        Ok(stream)
    });
    match attached {
        Ok(stream) => {
            announcer.iter().for_each(|announcer| announcer.say_now());
            kernel::run(&stream, name, offer, kernel::Does::at(false, offer.direction), limit, stop)
        }
        Err((call, error)) => Half { ended: format!("{call}: {error}"), ..Half::default() },
    }
}
