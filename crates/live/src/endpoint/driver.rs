//! The loop that gives sessions the time and the network: one thread, any number of flows and sockets.
//!
//! A turn reads what has come (each datagram with the kernel's stamp), then runs the timers that are due, then waits for the
//! next. What a visit of a flow may cost is bounded by its session; between visits the driver looks whether it is to end, and
//! [`FairShare`] says whose visits have to wait. Requests of other threads come through [`Handle`]. Look first at [`Driver::run`].

use super::budget::Charge;
use super::control::Measure;
use super::fair_share::FairShare;
use super::flow::Flow;
use super::flows::Flows;
use super::groups::place;
use super::half::Half;
use super::udp::UdpPort;
use crate::beginning::Announcer;
use crate::clock::{Clock, Waiter, readable};
use crate::quic::{Keys, Place};
use crate::session::{End, Input, SessionSpec};
use paceline_control::Failure;
use paceline_units::{Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// How often the figures of the live view are refreshed.
const LOOK: Span = Span::from_millis(100);
/// Batches read in a turn at most: timers wait no longer for a flood.
const BATCHES: usize = 8;

/// What a flow shows while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct View {
    /// Seconds since its data began.
    pub time_s: f64,
    /// Packets and bytes on the wire that it has sent or that have come.
    pub packets: u64,
    /// The bytes.
    pub bytes: u64,
    /// Of a sender: the smoothed round-trip time, once there is one.
    pub rtt_s: Option<f64>,
    /// Of a sender: the loss event rate, or the share of packets that were sent again.
    pub loss: Option<f64>,
    /// Of a sender: the window in packets or the rate in bit/s that its controller allows.
    pub figure: f64,
    /// Whether data flow.
    pub running: bool,
    /// Whether it is over.
    pub over: bool,
}

/// A flow to run.
pub struct NewFlow {
    /// What names it towards the owner.
    pub id: u64,
    /// What it is made of.
    pub spec: SessionSpec,
    /// The number of its socket.
    pub port: usize,
    /// The other end; of a server not known before its first datagram.
    pub peer: Option<SocketAddr>,
    /// Only from there may it come.
    pub only: IpAddr,
    /// Of a flow to a receiver of plain RTP: the number of RTCP's socket, and where RTCP goes.
    pub rtcp: Option<(usize, SocketAddr)>,
    /// Where its event log goes.
    pub log: Option<PathBuf>,
    /// Where its connections over QUIC are logged.
    pub qlog: Option<Place>,
    /// What is measured of it.
    pub measure: Option<Measure>,
    /// What it takes of a server's budget, until it is gone from here.
    pub charge: Option<Arc<Charge>>,
    /// Of a flow over QUIC: the keys of its two ends.
    pub keys: Option<Keys>,
    /// Whom to tell when its data begin.
    pub announcer: Option<Arc<Announcer>>,
}

enum Request {
    Add(Box<Flow>, Sender<()>),
    Stop(u64),
    Drop(u64),
}

/// What a flow came to.
#[derive(Debug)]
pub struct Outcome {
    /// Which.
    pub id: u64,
    /// What this end measured.
    pub half: Half,
    /// How it ended here.
    pub end: End,
}

/// Speaks to a driver from another thread.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: Sender<Request>,
    wake: Arc<OwnedFd>,
    quit: Arc<AtomicBool>,
    views: Arc<Mutex<BTreeMap<u64, View>>>,
}

impl Handle {
    fn request(&self, request: Request) {
        // a driver that has ended takes none, which whoever asked learns from its outcomes
        let _ = self.requests.send(request);
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// Adds a flow and starts it, or lets it wait for its peer. It is checked and made here, on the caller's thread: that takes
    /// milliseconds, which those of other flows do not wait for.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add(&self, flow: NewFlow) -> Result<(), String> {
        let flow = Box::new(Flow::new(flow)?);
        let (answer, answered) = channel();
        self.request(Request::Add(flow, answer));
        answered.recv().map_err(|_| "the endpoint has ended".to_owned())
    }

    /// Ends a flow as the user would.
    pub fn stop(&self, id: u64) {
        self.request(Request::Stop(id));
    }

    /// Ends a flow whose peer is known to be gone.
    pub fn drop_flow(&self, id: u64) {
        self.request(Request::Drop(id));
    }

    /// Nobody looks at a flow that is over any more.
    pub fn forget(&self, id: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Ends the driver.
    pub fn quit(&self) {
        self.quit.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// What the flows show now.
    #[must_use]
    pub fn views(&self) -> BTreeMap<u64, View> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A driver that runs.
#[derive(Debug)]
pub struct Running {
    /// Its thread; it ends after [`Handle::quit`].
    pub thread: JoinHandle<io::Result<()>>,
    /// Speaks to it.
    pub handle: Handle,
    /// What its flows come to.
    pub outcomes: Receiver<Outcome>,
}

/// The loop.
pub struct Driver {
    clock: Clock,
    waiter: Waiter,
    flows: Flows<UdpPort>,
    requests: Receiver<Request>,
    wake: Arc<OwnedFd>,
    views: Arc<Mutex<BTreeMap<u64, View>>>,
    outcomes: Sender<Outcome>,
    looked: Time,
    turns: FairShare,
    quit: Arc<AtomicBool>,
}

impl Driver {
    /// A driver of these sockets on the calling thread, its handle, and where its outcomes come.
    ///
    /// # Errors
    /// The call that the system refused.
    pub fn new(clock: Clock, ports: Vec<UdpPort>) -> io::Result<(Driver, Handle, Receiver<Outcome>)> {
        let waiter = Waiter::new(clock)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (requests, incoming) = channel();
        let (outcomes, ended) = channel();
        let views = Arc::new(Mutex::new(BTreeMap::new()));
        let quit = Arc::new(AtomicBool::new(false));
        let handle = Handle { requests, wake: Arc::clone(&wake), quit: Arc::clone(&quit), views: Arc::clone(&views) };
        let driver = Driver {
            clock,
            waiter,
            flows: Flows::new(ports),
            requests: incoming,
            wake,
            views,
            outcomes,
            looked: Time::ZERO,
            turns: FairShare::default(),
            quit,
        };
        Ok((driver, handle, ended))
    }

    /// The same on a thread of its own, running.
    ///
    /// # Errors
    /// The call that the system refused.
    pub fn spawn(clock: Clock, ports: Vec<UdpPort>) -> io::Result<Running> {
        let (made, answer) = channel();
        let thread = thread::Builder::new().name("paceline flows".to_owned()).spawn(move || {
            // made here: the timer slack is the thread's
            match Driver::new(clock, ports) {
                Err(error) => {
                    let _ = made.send(Err(error));
                    Ok(())
                }
                Ok((driver, handle, outcomes)) => {
                    let _ = made.send(Ok((handle, outcomes)));
                    // a controller of Python's or a library's has no other way to say that it failed
                    Failure::caught(|| driver.run()).unwrap_or_else(|failure| Err(io::Error::other(failure)))
                }
            }
        })?;
        let (handle, outcomes) = answer.recv().map_err(io::Error::other)??;
        Ok(Running { thread, handle, outcomes })
    }

    /// Runs until it is told to quit. What its flows have measured by its end they say, whatever ends it.
    ///
    /// # Errors
    /// A call that failed and will not succeed later.
    pub fn run(mut self) -> io::Result<()> {
        let ended = self.carry();
        for at in 0..self.flows.all.len() {
            self.flows.input(at, self.clock.now(), Input::Stop);
        }
        // a sender's close is not waited for
        self.finish(|_| true);
        ended
    }

    fn carry(&mut self) -> io::Result<()> {
        while !self.quits() {
            self.turns.settle(self.clock.now());
            self.handle_requests();
            for port in 0..self.flows.ports.len() {
                self.read(port)?;
            }
            self.timers();
            self.finish(Flow::is_over);
            self.look();
            self.wait()?;
        }
        Ok(())
    }

    fn quits(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    fn wait(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let mut next = if self.flows.all.is_empty() { Time::NEVER } else { self.looked + LOOK };
        for flow in &self.flows.all {
            next = next.min(flow.next().max(now + self.turns.wait(flow.client)));
        }
        let mut fds: Vec<PollFd<'_>> = self.flows.ports.iter().map(|port| PollFd::new(port, PollFlags::IN)).collect();
        fds.push(PollFd::new(&*self.wake, PollFlags::IN));
        self.waiter.wait(&mut fds, next)?;
        if fds.last().is_some_and(readable) {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
        self.turns.slept(self.clock.now().since(now));
        Ok(())
    }

    fn handle_requests(&mut self) {
        while !self.quits()
            && let Ok(request) = self.requests.try_recv()
        {
            let now = self.clock.now();
            match request {
                Request::Add(flow, answer) => {
                    self.turns.enters(flow.client);
                    self.flows.enters(*flow, now);
                    let _ = answer.send(());
                }
                Request::Stop(id) | Request::Drop(id) => {
                    let input = if matches!(request, Request::Stop(_)) { Input::Stop } else { Input::Unreachable };
                    if let Some(at) = place(id, &self.flows.all) {
                        self.flows.input(at, now, input);
                        if input == Input::Unreachable && !self.flows.all[at].is_over() {
                            // before data flowed there is nothing to be unreachable
                            self.flows.input(at, now, Input::Stop);
                        }
                    }
                }
            }
        }
    }

    fn read(&mut self, port: usize) -> io::Result<()> {
        for _ in 0..BATCHES {
            match self.flows.ports[port].receive() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let now = self.clock.now();
                    for at in 0..self.flows.all.len() {
                        if self.flows.all[at].new.port == port {
                            self.flows.input(at, now, Input::Unreachable);
                        }
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
            // the datagrams lie in the port, which answers leave by: they are taken out of it for the while
            let ended: Vec<_> =
                self.flows.ports[port].incoming().map(|d| (d.time, d.from, d.ecn, d.bytes.to_vec())).collect();
            let mut before = self.clock.now();
            for (time, from, ecn, bytes) in ended {
                let Some(at) = self.flows.whose(port, from, &bytes) else { continue };
                let client = self.flows.all[at].client;
                if self.quit.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if self.turns.is_over(client, before) {
                    self.flows.all[at].dropped += 1;
                    continue;
                }
                self.flows.datagram(at, time, from, ecn, &bytes);
                let now = self.clock.now();
                self.turns.charge(client, now.since(before));
                before = now;
            }
        }
        Ok(())
    }

    fn timers(&mut self) {
        let mut now = self.clock.now();
        for at in 0..self.flows.all.len() {
            if self.quit.load(Ordering::Relaxed) {
                return;
            }
            let flow = &self.flows.all[at];
            let client = flow.client;
            if flow.next() > now || self.turns.is_over(client, now) {
                continue;
            }
            self.flows.visit(at, now, |due| self.clock.now().since(due));
            let after = self.clock.now();
            self.turns.charge(client, after.since(now));
            now = after;
        }
    }

    /// Takes out the flows that are over by this.
    fn finish(&mut self, is_over: impl Fn(&Flow) -> bool) {
        let now = self.clock.now();
        let mut at = 0;
        while at < self.flows.all.len() {
            if !is_over(&self.flows.all[at]) {
                at += 1;
                continue;
            }
            let flow = self.flows.leaves(at);
            let id = flow.new.id;
            self.turns.leaves(flow.client);
            self.views.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default().over = true;
            // whoever waited for it may be gone
            let _ = self.outcomes.send(flow.outcome(now, &self.clock, &self.flows.ports));
        }
    }

    fn look(&mut self) {
        let now = self.clock.now();
        if now < self.looked + LOOK {
            return;
        }
        self.looked = now;
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        for flow in &self.flows.all {
            views.insert(flow.new.id, flow.view(now));
        }
    }
}
