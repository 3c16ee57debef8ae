//! The loop that gives sessions the time and the network: one thread, any number of flows and sockets.
//!
//! A turn reads what has come (each datagram with the kernel's stamp), then runs the timers that are due, then waits for the
//! next. Requests of other threads come through [`Handle`]. Look first at [`Driver::run`].

use super::control::Measure;
use super::half::{Before, EVERY, Half, Recorder, epoch};
use super::udp::UdpPort;
use crate::clock::{Clock, Waiter, histogram, readable};
use crate::session::is_rtcp;
use crate::session::log::LogWriter;
use crate::session::{End, Input, Outbox, SILENCE, Session, SessionSpec, State};
use hdrhistogram::Histogram;
use paceline_packet::wire::tfrc::{self, Message};
use paceline_sim::model::FlowModel;
use paceline_sim::scenario::ScenarioError;
use paceline_units::{Span, Time};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
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
    /// What is measured of it.
    pub measure: Option<Measure>,
}

enum Request {
    Add(Box<NewFlow>, Sender<Result<(), String>>),
    Stop(u64),
    Drop(u64),
    Quit,
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
    views: Arc<Mutex<BTreeMap<u64, View>>>,
}

impl Handle {
    fn request(&self, request: Request) {
        // a driver that has ended takes none, which whoever asked learns from its outcomes
        let _ = self.requests.send(request);
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
    }

    /// Adds a flow and starts it, or lets it wait for its peer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add(&self, flow: NewFlow) -> Result<(), String> {
        let (answer, answered) = channel();
        self.request(Request::Add(Box::new(flow), answer));
        answered.recv().unwrap_or_else(|_| Err("the endpoint has ended".to_owned()))
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
        self.request(Request::Quit);
    }

    /// What the flows show now.
    #[must_use]
    pub fn views(&self) -> BTreeMap<u64, View> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[expect(clippy::disallowed_types, reason = "the crate that writes files")]
type Log = LogWriter<BufWriter<std::fs::File>>;

struct Flow {
    new: NewFlow,
    model: FlowModel,
    session: Session,
    recorder: Recorder,
    log: Option<Log>,
    /// How late datagrams left that a timer sent.
    late: Histogram<u64>,
    refused_before: u64,
    /// Until then a sender waits for the peer that is to show itself.
    shows: Time,
    before: Before,
    /// The next instant at which measuring begins or ends.
    bounds: Bounds,
}

/// How far the measuring of a flow is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// It begins later.
    Ahead,
    /// It has begun.
    Within,
    /// It is over.
    Behind,
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
    ports: Vec<UdpPort>,
    flows: Vec<Flow>,
    requests: Receiver<Request>,
    wake: Arc<OwnedFd>,
    views: Arc<Mutex<BTreeMap<u64, View>>>,
    outcomes: Sender<Outcome>,
    looked: Time,
    out: Outbox,
    quit: bool,
}

impl Driver {
    /// A driver of these sockets on the calling thread, its handle, and where its outcomes come.
    ///
    /// # Errors
    /// The call that the system refused.
    pub fn new(clock: Clock, ports: Vec<UdpPort>) -> io::Result<(Driver, Handle, Receiver<Outcome>)> {
        let waiter = Waiter::new(clock)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (requests, asked) = channel();
        let (outcomes, came) = channel();
        let views = Arc::new(Mutex::new(BTreeMap::new()));
        let handle = Handle { requests, wake: Arc::clone(&wake), views: Arc::clone(&views) };
        let driver = Driver {
            clock,
            waiter,
            ports,
            flows: Vec::new(),
            requests: asked,
            wake,
            views,
            outcomes,
            looked: Time::ZERO,
            out: Outbox::default(),
            quit: false,
        };
        Ok((driver, handle, came))
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
                    driver.run()
                }
            }
        })?;
        let (handle, outcomes) = answer.recv().map_err(io::Error::other)??;
        Ok(Running { thread, handle, outcomes })
    }

    /// Runs until it is told to quit.
    ///
    /// # Errors
    /// A call that failed and will not succeed later.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            self.asked();
            if self.quit {
                break;
            }
            for port in 0..self.ports.len() {
                self.read(port)?;
            }
            self.timers();
            self.finish();
            self.look();
            self.wait()?;
        }
        for flow in &mut self.flows {
            let now = self.clock.now();
            flow.input(now, Input::Stop, &mut self.out, &mut self.ports);
        }
        self.finish();
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        let mut next = if self.flows.is_empty() { Time::NEVER } else { self.looked + LOOK };
        for flow in &self.flows {
            next = next.min(flow.session.next_wake()).min(flow.recorder.next(&flow.session)).min(flow.next_bound());
        }
        let mut fds: Vec<PollFd<'_>> = self.ports.iter().map(|port| PollFd::new(port, PollFlags::IN)).collect();
        fds.push(PollFd::new(&*self.wake, PollFlags::IN));
        self.waiter.wait(&mut fds, next)?;
        if fds.last().is_some_and(readable) {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
        Ok(())
    }

    fn asked(&mut self) {
        while let Ok(request) = self.requests.try_recv() {
            let now = self.clock.now();
            match request {
                Request::Add(new, answer) => {
                    let added = Flow::new(*new, now + SILENCE).map(|mut flow| {
                        // a server's sender waits for its peer to show itself
                        if flow.new.peer.is_some() || matches!(flow.session, Session::Receiver(_)) {
                            flow.input(now, Input::Start, &mut self.out, &mut self.ports);
                        }
                        self.flows.push(flow);
                    });
                    let _ = answer.send(added);
                }
                Request::Stop(id) | Request::Drop(id) => {
                    let input = if matches!(request, Request::Stop(_)) { Input::Stop } else { Input::Unreachable };
                    if let Some(flow) = self.flows.iter_mut().find(|flow| flow.new.id == id) {
                        flow.input(now, input, &mut self.out, &mut self.ports);
                        if input == Input::Unreachable && !flow.is_over() {
                            // before data flowed there is nothing to be unreachable
                            flow.input(now, Input::Stop, &mut self.out, &mut self.ports);
                        }
                    }
                }
                Request::Quit => self.quit = true,
            }
        }
    }

    fn read(&mut self, port: usize) -> io::Result<()> {
        for _ in 0..BATCHES {
            match self.ports[port].receive() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let now = self.clock.now();
                    for flow in self.flows.iter_mut().filter(|flow| flow.new.port == port) {
                        flow.input(now, Input::Unreachable, &mut self.out, &mut self.ports);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
            // the datagrams lie in the port, which answers leave by: they are taken out of it for the while
            let came: Vec<_> = self.ports[port].incoming().map(|d| (d.time, d.from, d.ecn, d.bytes.to_vec())).collect();
            for (time, from, ecn, bytes) in came {
                let Some(flow) = self.flows.iter_mut().find(|flow| flow.is_for(port, from, &bytes)) else { continue };
                if flow.new.peer.is_none() {
                    flow.new.peer = Some(from);
                    if matches!(flow.session, Session::Sender(_)) {
                        flow.input(time, Input::Start, &mut self.out, &mut self.ports);
                        continue;
                    }
                }
                flow.input(time, Input::Datagram(&bytes, ecn), &mut self.out, &mut self.ports);
            }
        }
        Ok(())
    }

    fn timers(&mut self) {
        let now = self.clock.now();
        for flow in &mut self.flows {
            let due = flow.session.next_wake();
            if due <= now {
                let before = flow.sent_packets();
                flow.input(now, Input::Timer, &mut self.out, &mut self.ports);
                if flow.sent_packets() > before {
                    flow.late.saturating_record(self.clock.now().since(due).0.max(1));
                }
            }
            if flow.session.state() == State::Idle && flow.shows <= now {
                // whoever asked for it never came: its place is another's
                flow.input(now, Input::Unreachable, &mut self.out, &mut self.ports);
            }
            flow.recorder.sample(now, &mut flow.session);
            flow.pass_bounds(now, &mut self.out, &mut self.ports);
        }
    }

    /// Takes out the flows that are over.
    fn finish(&mut self) {
        let now = self.clock.now();
        let mut at = 0;
        while at < self.flows.len() {
            if !self.flows[at].is_over() {
                at += 1;
                continue;
            }
            let flow = self.flows.remove(at);
            let id = flow.new.id;
            self.views.lock().unwrap_or_else(PoisonError::into_inner).entry(id).or_default().over = true;
            // whoever waited for it may be gone
            let _ = self.outcomes.send(flow.outcome(now, &self.ports));
        }
    }

    fn look(&mut self) {
        let now = self.clock.now();
        if now < self.looked + LOOK {
            return;
        }
        self.looked = now;
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        for flow in &self.flows {
            views.insert(flow.new.id, flow.view(now));
        }
    }
}

impl Flow {
    fn new(new: NewFlow, shows: Time) -> Result<Flow, String> {
        let model = new.spec.flow.model().map_err(|error: ScenarioError| error.to_string())?;
        let session = Session::new(&new.spec).map_err(|error| error.to_string())?;
        let log = match &new.log {
            None => None,
            Some(path) => {
                let say = |error: io::Error| format!("{}: {error}", path.display());
                #[expect(clippy::disallowed_types, reason = "the crate that writes files")]
                let file = std::fs::File::create(path).map_err(say)?;
                Some(LogWriter::new(BufWriter::new(file), &new.spec).map_err(say)?)
            }
        };
        let every = new.measure.map_or(EVERY, |measure| measure.every());
        let recorder = Recorder::new(&session, &model, every);
        let bounds = match new.measure {
            Some(measure) if measure.from_ms > 0 => Bounds::Ahead,
            _ => Bounds::Within,
        };
        let before = Before::default();
        Ok(Flow { new, model, session, recorder, log, late: histogram(), refused_before: 0, shows, before, bounds })
    }

    /// When measuring begins or ends next, by the time of the session; never before data flow.
    fn next_bound(&self) -> Time {
        let epoch = epoch(&self.session);
        match (self.new.measure, self.bounds) {
            _ if epoch == Time::ZERO => Time::NEVER,
            (Some(measure), Bounds::Ahead) => epoch + measure.from(),
            (Some(measure), Bounds::Within) => epoch + measure.to(),
            _ => Time::NEVER,
        }
    }

    /// Begins or ends measuring where that is due. At its end the other end is told, and not waited for.
    fn pass_bounds(&mut self, now: Time, out: &mut Outbox, ports: &mut [UdpPort]) {
        while self.next_bound() <= now {
            if self.bounds == Bounds::Ahead {
                self.bounds = Bounds::Within;
                self.before = Before::take(&mut self.session, now);
            } else {
                self.bounds = Bounds::Behind;
                self.input(now, Input::Stop, out, ports);
            }
        }
    }

    /// Gives the session an input, writes it down, and sends what leaves.
    fn input(&mut self, now: Time, input: Input<'_>, out: &mut Outbox, ports: &mut [UdpPort]) {
        out.clear();
        self.session.input(now, input, out);
        if let Some(log) = &mut self.log
            && log.write(now, input, out, &self.session).is_err()
        {
            // a full disk ends the log, not the flow: what was written is whole up to there
            self.log = None;
        }
        let Some(peer) = self.new.peer else { return };
        if let Some((port, to)) = self.new.rtcp {
            let reports = out.take(is_rtcp);
            // that nobody reads the sender's reports is no reason to end: the receiver's say whether the data arrive
            let _ = if reports.is_empty() { Ok(()) } else { ports[port].send(&reports, to) };
        }
        if out.is_empty() {
            return;
        }
        if let Err(error) = ports[self.new.port].send(out, peer)
            && error.kind() == io::ErrorKind::ConnectionRefused
            && input != Input::Unreachable
        {
            self.input(now, Input::Unreachable, out, ports);
        }
    }

    /// Whether a datagram is this flow's: from its peer, or, before that is known, the message with its secret by which it
    /// shows itself.
    fn is_for(&self, port: usize, from: SocketAddr, bytes: &[u8]) -> bool {
        if let Some((rtcp, _)) = self.new.rtcp
            && rtcp == port
        {
            // a receiver may send its reports from any port
            return from.ip() == self.new.only;
        }
        if self.new.port != port {
            return false;
        }
        if let Some(peer) = self.new.peer {
            return peer == from;
        }
        let Ok((datagram, _)) = tfrc::decode(bytes) else { return false };
        let nonce = match datagram.message {
            Message::Request(request) => request.nonce,
            Message::Accept(accept) => accept.nonce,
            _ => return false,
        };
        from.ip() == self.new.only
            && datagram.connection.0 == self.new.spec.connection
            && nonce.0 == self.new.spec.nonce
    }

    fn is_over(&self) -> bool {
        self.bounds == Bounds::Behind || matches!(self.session.state(), State::Ended(_))
    }

    fn sent_packets(&self) -> u64 {
        match &self.session {
            Session::Sender(sender) => sender.source().sender.stats().packets_sent,
            Session::Receiver(_) => 0,
        }
    }

    fn view(&self, now: Time) -> View {
        let running = matches!(self.session.state(), State::Running | State::Closing);
        let (epoch, packets, bytes, rtt, loss) = match &self.session {
            Session::Sender(sender) => {
                let stats = sender.source().sender.stats();
                let mut gauges = Shows::default();
                sender.source().sender.gauges(&mut gauges);
                let rtt = gauges.rtt.or(sender.round_trip().map(Span::as_secs_f64));
                let again = stats.retransmitted as f64 / stats.packets_sent.max(1) as f64;
                (sender.epoch(), stats.packets_sent, stats.bytes_sent(), rtt, gauges.loss.or(Some(again)))
            }
            Session::Receiver(receiver) => {
                let stats = receiver.sink().receiver.stats();
                (receiver.epoch(), stats.packets, stats.wire_bytes, None, None)
            }
        };
        let time_s = if running { now.since(epoch).as_secs_f64() } else { 0.0 };
        View { time_s, packets, bytes, rtt_s: rtt, loss, figure: self.session.figure(), running, over: self.is_over() }
    }

    fn outcome(mut self, now: Time, ports: &[UdpPort]) -> Outcome {
        if let Some(log) = &mut self.log {
            let _ = log.flush();
        }
        let end = match self.session.state() {
            _ if self.bounds == Bounds::Behind => End::Done,
            State::Ended(end) => end,
            _ => End::Stopped,
        };
        let mut half = Half::of(&mut self.session, &self.model, self.recorder, now, &self.before);
        half.dropped.2 += ports[self.new.port].refused().saturating_sub(self.refused_before);
        half.ended = end.to_string();
        half.well = matches!(end, End::Done | End::Stopped);
        if !self.late.is_empty() {
            let at = |quantile| self.late.value_at_quantile(quantile) as f64 / 1e9;
            half.late = Some((at(0.5), at(0.99), self.late.len()));
        }
        Outcome { id: self.new.id, half, end }
    }
}

/// Takes what a view shows out of the gauges.
#[derive(Default)]
struct Shows {
    rtt: Option<f64>,
    loss: Option<f64>,
}

impl paceline_control::Gauges for Shows {
    fn gauge(&mut self, name: &'static str, _: paceline_control::GaugeUnit, value: f64) {
        match name {
            "srtt" | "rtt" if value > 0.0 => self.rtt = Some(value),
            "loss_event_rate" | "reported_loss" => self.loss = Some(value),
            _ => {}
        }
    }
}
