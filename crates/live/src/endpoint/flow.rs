//! A flow run by a driver: its session, its recordings, and its connection to the sockets.

use super::budget::Net;
use super::half::{Before, EVERY, Half, Recorder, epoch, first_capture};
use super::new_flow::{NewFlow, Outcome, View};
use super::port::Port;
use crate::clock::{Clock, histogram};
use crate::quic::Logged;
use crate::session::is_rtcp;
use crate::session::log::{EVENT_LOG, LogWriter};
use crate::session::{End, Input, Outbox, Session, State};
use hdrhistogram::Histogram;
use paceline_control::SentPacket;
use paceline_flow::rtp::{Grant, Turn, Waiting};
use paceline_packet::wire::tfrc::{self, Message};
use paceline_scenario::ScenarioError;
use paceline_scenario::model::FlowModel;
use paceline_sim::coupling::CoupledState;
use paceline_units::{Span, Time};
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::sync::Arc;

#[expect(clippy::disallowed_types, reason = "the crate that writes files")]
type Log = LogWriter<BufWriter<std::fs::File>>;

/// A flow.
pub(super) struct Flow {
    pub(super) new: NewFlow,
    /// The client that its visits are charged to.
    pub(super) client: Net,
    pub(super) model: FlowModel,
    pub(super) session: Session,
    recorder: Recorder,
    log: Option<Log>,
    log_cut: Option<String>,
    /// Lateness of datagrams sent by a timer.
    late: Histogram<u64>,
    refused_before: u64,
    /// Until this time a sender waits for its peer's first datagram.
    pub(super) shows: Time,
    /// Datagrams dropped unread, because the client had exceeded its share of the driver's time.
    pub(super) dropped: u64,
    before: Before,
    /// State of the measurement.
    bounds: Bounds,
}

/// Whether the measured part of a flow has begun or ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bounds {
    /// It has not begun.
    Ahead,
    /// It has begun.
    Within,
    /// It is over.
    Behind,
}

impl Flow {
    /// A flow that has not started.
    ///
    /// # Errors
    /// What is wrong with the flow.
    pub(super) fn new(new: NewFlow) -> Result<Flow, String> {
        let model = new.spec.flow.model().map_err(|error: ScenarioError| error.to_string())?;
        let session = Session::with_keys(&new.spec, new.keys.as_ref()).map_err(|error| error.to_string())?;
        let log = match &new.log {
            None => None,
            Some(path) => {
                let say = |error: io::Error| format!("{}: {error}", path.display());
                #[expect(clippy::disallowed_types, reason = "the crate that writes files")]
                let create = || std::fs::File::create(path).map(BufWriter::new);
                match &session {
                    Session::Sender(sender) if new.spec.flow.is_quic() => {
                        create().and_then(|file| sender.log_calls(Box::new(file))).map_err(say)?;
                        None
                    }
                    // its controller is at the other end
                    Session::Receiver(_) if new.spec.flow.is_quic() => None,
                    _ => Some(create().and_then(|file| LogWriter::new(file, &new.spec)).map_err(say)?),
                }
            }
        };
        if let Some(place) = &new.qlog {
            let scheme = model.scheme.to_string();
            let title = format!("{}, {scheme}, over a real network", place.name);
            session.log_quic(Logged { place: place.clone(), title, scheme });
        }
        let every = new.measure.map_or(EVERY, |measure| measure.every());
        let recorder = Recorder::new(&session, &model, every);
        let bounds = match new.measure {
            Some(measure) if measure.from_ms > 0 => Bounds::Ahead,
            _ => Bounds::Within,
        };
        Ok(Flow {
            client: Net::of(new.only),
            new,
            model,
            session,
            recorder,
            log,
            log_cut: None,
            late: histogram(),
            refused_before: 0,
            shows: Time::NEVER,
            dropped: 0,
            before: Before::default(),
            bounds,
        })
    }

    /// Identifies the client that requested the flow, as far as a server distinguishes clients.
    pub(super) fn requester(&self) -> usize {
        self.new.charge.as_ref().map_or(0, |charge| Arc::as_ptr(charge) as usize)
    }

    /// The state that its coupling group needs (RFC 8699); `None` if the flow cannot be coupled, or does not send now.
    pub(super) fn coupled_state(&self, now: Time) -> Option<CoupledState> {
        match &self.session {
            Session::Sender(sender) => sender.coupled(now),
            Session::Receiver(_) => None,
        }
    }

    /// Data waiting at this flow, for the leader of its bundle.
    pub(super) fn waiting(&self) -> Waiting {
        match &self.session {
            Session::Sender(sender) => sender.waiting(),
            Session::Receiver(_) => Waiting::NOTHING,
        }
    }

    /// The turn that this leader has for another flow of its bundle.
    pub(super) fn turn(&self) -> Option<(usize, Turn)> {
        match &self.session {
            Session::Sender(sender) => sender.turn(),
            Session::Receiver(_) => None,
        }
    }

    /// The packet sent in this flow's last turn.
    pub(super) fn take_sent(&mut self) -> Option<SentPacket> {
        match &mut self.session {
            Session::Sender(sender) => sender.take_sent(),
            Session::Receiver(_) => None,
        }
    }

    /// The rate granted to its bundle, if this flow leads one.
    pub(super) fn grant(&self) -> Option<Grant> {
        match &self.session {
            Session::Sender(sender) => sender.grant(),
            Session::Receiver(_) => None,
        }
    }

    /// Maximum rate that its application could send, in bit/s including all headers: zero at a receiver.
    pub(super) fn demand(&self, now: Time) -> f64 {
        if let Session::Sender(sender) = &self.session { sender.demand(now) } else { 0.0 }
    }

    /// When it is to be visited next.
    pub(super) fn next(&self) -> Time {
        if self.turn().is_some() {
            return Time::ZERO; // this leader has more turns than are given at once
        }
        let shows = if self.session.state() == State::Idle { self.shows } else { Time::NEVER };
        self.session.next_wake().min(self.recorder.next(&self.session)).min(self.next_bound()).min(shows)
    }

    /// Does what is due; `lag` returns the delay between a given instant and the send.
    pub(super) fn visit(
        &mut self,
        now: Time,
        lag: impl FnOnce(Time) -> Span,
        out: &mut Outbox,
        ports: &mut [impl Port],
    ) {
        let due = self.session.next_wake();
        if due <= now {
            let before = self.sent_packets();
            self.input(now, Input::Timer, out, ports);
            if self.sent_packets() > before {
                self.late.saturating_record(lag(due).0.max(1));
            }
        }
        if self.session.state() == State::Idle && self.shows <= now {
            // the client that requested it never sent a datagram: free its place
            self.input(now, Input::Unreachable, out, ports);
        }
        self.measure(now, out, ports);
    }

    /// Records due samples, and begins or ends measuring if due.
    fn measure(&mut self, now: Time, out: &mut Outbox, ports: &mut [impl Port]) {
        self.recorder.sample(now, &mut self.session);
        self.pass_bounds(now, out, ports);
    }

    /// Handles a datagram that arrived at `time`. A process that waited for the CPU finds many at once: samples due
    /// before a datagram's arrival must not include it.
    pub(super) fn datagram(&mut self, time: Time, input: Input<'_>, out: &mut Outbox, ports: &mut [impl Port]) {
        self.measure(time, out, ports);
        self.input(time, input, out, ports);
    }

    /// When measuring begins or ends next, in the session's time; `NEVER` before data flow.
    fn next_bound(&self) -> Time {
        let epoch = epoch(&self.session);
        match (self.new.measure, self.bounds) {
            _ if epoch == Time::ZERO => Time::NEVER,
            (Some(measure), Bounds::Ahead) => epoch + measure.from(),
            (Some(measure), Bounds::Within) => epoch + measure.to(),
            _ => Time::NEVER,
        }
    }

    /// Begins or ends measuring if due. At its end the other end is notified, without waiting for an answer.
    fn pass_bounds(&mut self, now: Time, out: &mut Outbox, ports: &mut [impl Port]) {
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

    /// Passes an input to the session, logs it, and sends the resulting datagrams.
    pub(super) fn input(&mut self, now: Time, input: Input<'_>, out: &mut Outbox, ports: &mut [impl Port]) {
        out.clear();
        self.session.input(now, input, out);
        if self.new.announcer.is_some()
            && epoch(&self.session) > Time::ZERO
            && let Some(announcer) = self.new.announcer.take()
        {
            announcer.say(epoch(&self.session));
        }
        if let Some(log) = &mut self.log
            && let Err(error) = log.write(now, input, out, &self.session)
        {
            self.cut_log(&error);
        }
        let Some(peer) = self.new.peer else { return };
        if let Some((port, to)) = self.new.rtcp {
            let reports = out.take(is_rtcp);
            // an unreachable RTCP port does not end the flow: the receiver's reports show whether data arrive
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

    /// A full disk ends the log, not the flow; what was written is complete up to there.
    fn cut_log(&mut self, error: &io::Error) {
        self.log = None;
        self.log_cut = Some(format!("{EVENT_LOG}: {error}"));
    }

    /// Whether a datagram belongs to this flow: it comes from the peer or, while the peer is unknown, carries the
    /// flow's secret.
    pub(super) fn is_for(&self, port: usize, from: SocketAddr, bytes: &[u8]) -> bool {
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

    pub(super) fn is_over(&self) -> bool {
        self.bounds == Bounds::Behind || matches!(self.session.state(), State::Ended(_))
    }

    fn sent_packets(&self) -> u64 {
        match &self.session {
            Session::Sender(sender) => sender.source().sender.stats().packets_sent,
            Session::Receiver(_) => 0,
        }
    }

    pub(super) fn view(&self, now: Time) -> View {
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

    pub(super) fn outcome(mut self, now: Time, clock: &Clock, ports: &[impl Port]) -> Outcome {
        if let Some(Err(error)) = self.log.as_mut().map(LogWriter::flush) {
            self.cut_log(&error);
        }
        let end = match self.session.state() {
            _ if self.bounds == Bounds::Behind => End::Done,
            State::Ended(end) => end,
            _ => End::Stopped,
        };
        let epoch = epoch(&self.session);
        let monotonic = |at: Time| clock.monotonic_at_zero() as f64 / 1e9 + at.as_secs_f64();
        let first = first_capture(&self.session, monotonic);
        let mut half = Half::of(&mut self.session, &self.model, self.recorder, now, &self.before);
        half.dropped.2 += ports[self.new.port].refused().saturating_sub(self.refused_before) + self.dropped;
        half.end(end, self.bounds != Bounds::Behind && self.new.measure.is_none_or(|it| it.from_ms == 0));
        half.log_cut = self.session.end_logs().or(self.log_cut);
        let measured = self.new.measure.filter(|_| epoch > Time::ZERO);
        half.began_s = measured.map(|_| monotonic(epoch));
        half.first_capture = first;
        if !self.late.is_empty() {
            let at = |quantile| self.late.value_at_quantile(quantile) as f64 / 1e9;
            half.late = Some((at(0.5), at(0.99), self.late.len()));
        }
        Outcome { id: self.new.id, half, end }
    }
}

/// Picks a view's figures out of the gauges.
#[derive(Default)]
struct Shows {
    rtt: Option<f64>,
    loss: Option<f64>,
}

impl paceline_control::Gauges for Shows {
    fn gauge(&mut self, name: &'static str, _: paceline_control::GaugeUnit, value: f64) {
        match name {
            "srtt" | "rtt" if value > 0.0 => self.rtt = Some(value),
            "loss_event_rate" | "reported_loss" if !value.is_nan() => self.loss = Some(value),
            _ => {}
        }
    }
}
