//! The event loop that supplies sessions with time and datagrams: one thread, any number of flows and sockets.
//!
//! An iteration reads received datagrams (each with the kernel's timestamp), runs the timers that are due, and waits
//! for the next event. A session limits the cost of each visit to its flow; between visits the driver checks whether to
//! quit, and [`FairShare`] decides whose visits have to wait. Other threads send requests through [`Handle`]. Start
//! with [`Driver::run`].

use super::fair_share::FairShare;
use super::flow::Flow;
use super::flows::Flows;
use super::groups::place;
use super::udp::UdpPort;
use crate::clock::{Clock, Waiter, readable};
use crate::session::Input;
use paceline_control::Failure;
use paceline_units::{Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

pub use super::new_flow::{NewFlow, Outcome, View};

/// Refresh interval of the live view.
const VIEW_INTERVAL: Span = Span::from_millis(100);
/// Maximum number of batches read per iteration, so that a flood does not delay timers further.
const BATCHES: usize = 8;

enum Request {
    Add(Box<Flow>, Sender<()>),
    Stop(u64),
    Drop(u64),
}

/// Controls a driver from another thread.
#[derive(Clone, Debug)]
pub struct Handle {
    requests: Sender<Request>,
    wake: Arc<OwnedFd>,
    quit: Arc<AtomicBool>,
    views: Arc<Mutex<BTreeMap<u64, View>>>,
}

impl Handle {
    fn request(&self, request: Request) {
        // a driver that has ended ignores requests; the caller learns of the end from its outcomes
        let _ = self.requests.send(request);
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// Adds a flow and starts it, or lets it wait for its peer. The flow is validated and built on the caller's thread:
    /// this takes milliseconds, for which other flows need not wait.
    ///
    /// # Errors
    /// What is wrong with the flow.
    pub fn add(&self, flow: NewFlow) -> Result<(), String> {
        let flow = Box::new(Flow::new(flow)?);
        let (answer, answered) = channel();
        self.request(Request::Add(flow, answer));
        answered.recv().map_err(|_| "the endpoint has ended".to_owned())
    }

    /// Ends a flow as if the user stopped it.
    pub fn stop(&self, id: u64) {
        self.request(Request::Stop(id));
    }

    /// Ends a flow whose peer is known to be gone.
    pub fn drop_flow(&self, id: u64) {
        self.request(Request::Drop(id));
    }

    /// Discards the view of a flow that has ended.
    pub fn forget(&self, id: u64) {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Ends the driver.
    pub fn quit(&self) {
        self.quit.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// The current view of each flow.
    #[must_use]
    pub fn views(&self) -> BTreeMap<u64, View> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A running driver.
#[derive(Debug)]
pub struct Running {
    /// Its thread, which ends after [`Handle::quit`].
    pub thread: JoinHandle<io::Result<()>>,
    /// Controls it.
    pub handle: Handle,
    /// Receives the results of its flows.
    pub outcomes: Receiver<Outcome>,
}

/// The event loop.
pub struct Driver {
    clock: Clock,
    waiter: Waiter,
    flows: Flows<UdpPort>,
    requests: Receiver<Request>,
    wake: Arc<OwnedFd>,
    views: Arc<Mutex<BTreeMap<u64, View>>>,
    outcomes: Sender<Outcome>,
    last_view: Time,
    turns: FairShare,
    quit: Arc<AtomicBool>,
}

impl Driver {
    /// Creates a driver of these sockets for the calling thread, its handle, and the channel for its outcomes.
    ///
    /// # Errors
    /// The system call that failed.
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
            last_view: Time::ZERO,
            turns: FairShare::default(),
            quit,
        };
        Ok((driver, handle, ended))
    }

    /// Runs a driver on a new thread.
    ///
    /// # Errors
    /// The system call that failed.
    pub fn spawn(clock: Clock, ports: Vec<UdpPort>) -> io::Result<Running> {
        let (made, answer) = channel();
        let thread = thread::Builder::new().name("paceline flows".to_owned()).spawn(move || {
            // created on this thread, since the timer slack is per thread
            match Driver::new(clock, ports) {
                Err(error) => {
                    let _ = made.send(Err(error));
                    Ok(())
                }
                Ok((driver, handle, outcomes)) => {
                    let _ = made.send(Ok((handle, outcomes)));
                    // the only way for a controller from Python or a library to report its failure
                    Failure::caught(|| driver.run()).unwrap_or_else(|failure| Err(io::Error::other(failure)))
                }
            }
        })?;
        let (handle, outcomes) = answer.recv().map_err(io::Error::other)??;
        Ok(Running { thread, handle, outcomes })
    }

    /// Runs until [`Handle::quit`]. Whatever ends it, its flows report what they have measured until then.
    ///
    /// # Errors
    /// A call that failed and will not succeed later.
    pub fn run(mut self) -> io::Result<()> {
        let ended = self.carry();
        for at in 0..self.flows.all.len() {
            self.flows.input(at, self.clock.now(), Input::Stop);
        }
        // do not wait for a sender's close
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
            self.update_views();
            self.wait()?;
        }
        Ok(())
    }

    fn quits(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }

    fn wait(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let mut next = if self.flows.all.is_empty() { Time::NEVER } else { self.last_view + VIEW_INTERVAL };
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
                            // a flow without data so far is stopped instead
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
            // the datagrams borrow the port, which answers leave through: copy them first
            let ended: Vec<_> =
                self.flows.ports[port].incoming().map(|d| (d.time, d.from, d.ecn, d.bytes.to_vec())).collect();
            let mut before = self.clock.now();
            for (time, from, ecn, bytes) in ended {
                let Some(at) = self.flows.flow_of(port, from, &bytes) else { continue };
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

    /// Removes the flows that `is_over` selects.
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
            // the receiving thread may have ended
            let _ = self.outcomes.send(flow.outcome(now, &self.clock, &self.flows.ports));
        }
    }

    fn update_views(&mut self) {
        let now = self.clock.now();
        if now < self.last_view + VIEW_INTERVAL {
            return;
        }
        self.last_view = now;
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        for flow in &self.flows.all {
            views.insert(flow.new.id, flow.view(now));
        }
    }
}
