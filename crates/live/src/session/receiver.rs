//! The receiving end of a live flow: setup and close, then the simulator's sink.

use super::capture_clock::CaptureClock;
use super::codec::{Codec, Decoded};
use super::quic::Quic;
use super::times::{MAX_DATAGRAMS, Times};
use super::work_limit::Work;
use super::{Counts, EcnBits, End, Input, Outbox, SILENCE, SessionSpec, State};
use crate::quic::Keys;
use paceline_flow::rtp::Carried;
use paceline_flow::{Segment, Transmit};
use paceline_packet::wire::tfrc::{Accept, Close, Message, RateLimit, Reason};
use paceline_packet::{FlowId, Packet};
use paceline_scenario::model::FlowModel;
use paceline_sim::endpoint::Sink;
use paceline_units::{Span, Time};

/// Interval between the unrequested accepts of a receiver that sends first.
const ANNOUNCE: Span = Span::from_millis(250);
/// The sender's granted rate is enforced over intervals of this length, with a factor and a number of bytes on top:
/// data held back by a queue on the path arrive faster than they were sent.
const WATCH: Span = Span::from_secs(2);
const GRACE: f64 = 1.5;
const GRACE_BYTES: u64 = 200_000;

/// The receiving end of a flow.
#[derive(Debug)]
pub struct ReceiverSession {
    pub(super) spec: SessionSpec,
    pub(super) state: State,
    codec: Codec,
    pub(super) sink: Sink,
    pub(super) times: Times,
    /// When the next unrequested accept is due.
    due: Time,
    /// When the last datagram from the other end arrived.
    pub(super) last_received: Time,
    /// Interval for enforcing the rate: its start, and bytes since.
    watched: (Time, u64),
    pub(super) counts: Counts,
    /// For a flow over QUIC.
    pub(super) quic: Option<Quic>,
}

/// Sink for the machine's answers.
pub(super) struct Port<'a> {
    codec: &'a mut Codec,
    out: &'a mut Outbox,
}

impl Transmit for Port<'_> {
    fn transmit(&mut self, segment: Segment) {
        self.codec.encode(&segment, self.out);
    }
}

impl ReceiverSession {
    /// A session that has not started; `keys` are for a flow over QUIC.
    #[must_use]
    pub fn new(spec: &SessionSpec, model: &FlowModel, keys: Option<&Keys>) -> ReceiverSession {
        let mut sink = Sink::new(model, spec.flow.seed, FlowId(0), Packet::NOWHERE);
        let quic = Quic::of(model);
        if let Some(quic) = &quic {
            quic.receiver(model, keys, &mut sink.receiver);
        }
        ReceiverSession {
            state: State::Idle,
            codec: Codec::new(spec.id(), &model.transport, spec.flow.family.headers()),
            sink,
            times: Times::default(),
            due: Time::NEVER,
            last_received: Time::ZERO,
            watched: (Time::ZERO, 0),
            counts: Counts::default(),
            quic,
            spec: spec.clone(),
        }
    }

    /// The session's state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Counts of received datagrams.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The receiver and its player.
    #[must_use]
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The same, for sampling, and for setting where measuring begins.
    pub fn sink_mut(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// The timestamp of the first RTP packet sent or received, and the machine's time of its capture or arrival.
    pub(crate) fn captures(&self) -> Option<CaptureClock> {
        self.codec.captures().or_else(|| self.quic.as_ref()?.shared.captures.get().copied())
    }

    /// The session's time at which the machine's time began; zero before that.
    #[must_use]
    pub fn epoch(&self) -> Time {
        self.times.epoch()
    }

    /// When [`Input::Timer`] is needed next.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        let silence = self.last_received + SILENCE;
        match self.state {
            State::Idle | State::Closing | State::Ended(_) => Time::NEVER,
            _ if self.quic.as_ref().is_some_and(|quic| quic.more) => Time::ZERO,
            State::Opening => self.due.min(silence),
            State::Running => {
                let machine = self.times.wake(self.sink.next_wake());
                machine.min(silence)
            }
        }
    }

    /// Processes an input; resulting datagrams are added to `out`.
    pub fn input(&mut self, now: Time, input: Input<'_>, out: &mut Outbox) {
        let now = self.times.input(now);
        match input {
            Input::Start if self.state == State::Idle => {
                self.state = State::Opening;
                self.last_received = now;
                if self.spec.announces {
                    self.announce(now, out);
                }
            }
            Input::Start => {}
            Input::Datagram(bytes, ecn) => self.datagram(now, bytes, ecn, out),
            Input::Timer => self.timer(now, out),
            Input::Share(_) => {}
            Input::Bundled(bundled) => self.bundled(now, bundled, out),
            Input::Stop => {
                if self.state == State::Running {
                    self.close(Reason::DONE, out);
                }
                if !matches!(self.state, State::Ended(_)) {
                    self.state = State::Ended(End::Stopped);
                }
            }
            Input::Unreachable => {
                if self.state == State::Running {
                    self.state = State::Ended(End::Unreachable);
                }
            }
        }
        self.drain_quic(out);
    }

    pub(super) fn port<'a>(&'a mut self, out: &'a mut Outbox) -> (&'a mut Sink, Port<'a>) {
        (&mut self.sink, Port { codec: &mut self.codec, out })
    }

    /// Passes on a packet of another stream, which the machine must report.
    pub(super) fn carry(&mut self, at: Time, packet: Carried, out: &mut Outbox) {
        self.sink.carry(at, packet, &mut Port { codec: &mut self.codec, out });
    }

    fn announce(&mut self, now: Time, out: &mut Outbox) {
        self.accept(out);
        self.due = now + ANNOUNCE;
    }

    fn accept(&self, out: &mut Outbox) {
        let accept = Accept { nonce: self.spec.secret(), limit: self.spec.limit() };
        self.codec.agreement(Message::Accept(accept), out);
    }

    pub(super) fn close(&self, reason: Reason, out: &mut Outbox) {
        self.codec.agreement(Message::Close(Close { nonce: self.spec.secret(), reason }), out);
    }

    fn datagram(&mut self, now: Time, bytes: &[u8], ecn: EcnBits, out: &mut Outbox) {
        if matches!(self.state, State::Idle | State::Closing | State::Ended(_)) {
            return; // not active: neither processed nor counted
        }
        let time = self.times.at().max(self.times.machine(now));
        if self.state == State::Running {
            // before the codec sees the datagram: a report covers only what arrived before it was due
            self.run(now, out);
        }
        if self.quic.is_some() && Quic::takes(bytes) {
            return self.take_quic(now, bytes, ecn, out);
        }
        match self.codec.decode_data(bytes, ecn, time) {
            Decoded::Garbage => self.counts.garbage += 1,
            Decoded::Implausible => self.counts.disregarded += 1,
            Decoded::Agreement(message) => self.agree(now, message, out),
            Decoded::Machine((packet, extra)) if self.state == State::Running => {
                self.counts.taken += 1;
                self.last_received = now;
                let time = self.times.pass(time);
                let packet = Packet { time, ..packet };
                self.sink.on_data(&packet, extra, &mut Port { codec: &mut self.codec, out });
                self.watch(now, bytes.len() as u64, out);
            }
            Decoded::Machine(_) => self.counts.disregarded += 1,
        }
    }

    fn agree(&mut self, now: Time, message: Message, out: &mut Outbox) {
        match message {
            Message::Request(request) if request.nonce == self.spec.secret() => {
                self.counts.taken += 1;
                self.last_received = now;
                if self.state == State::Opening {
                    self.state = State::Running;
                    self.times.begin(now);
                    self.watched = (now, 0);
                }
                self.accept(out);
            }
            Message::Close(close) if close.nonce == self.spec.secret() => {
                self.counts.taken += 1;
                self.close(Reason::DONE, out);
                self.state = State::Ended(match close.reason {
                    Reason::DONE => End::Done,
                    other => End::Closed(other),
                });
            }
            _ => self.counts.disregarded += 1,
        }
    }

    /// Ends the flow if the sender exceeds its granted rate.
    pub(super) fn watch(&mut self, now: Time, bytes: u64, out: &mut Outbox) {
        let RateLimit::BytesPerSecond(limit) = self.spec.limit() else { return };
        let (since, before) = self.watched;
        self.watched.1 = before.saturating_add(bytes);
        if now.since(since) < WATCH {
            return;
        }
        let granted = f64::from(limit) * now.since(since).as_secs_f64() * GRACE;
        if self.watched.1 > GRACE_BYTES && (self.watched.1 - GRACE_BYTES) as f64 > granted {
            self.close(Reason::BUSY, out);
            self.state = State::Ended(End::TooFast);
        }
        self.watched = (now, 0);
    }

    fn timer(&mut self, now: Time, out: &mut Outbox) {
        let silent = self.last_received + SILENCE <= now;
        match self.state {
            State::Opening if silent => self.state = State::Ended(End::NoAnswer),
            State::Opening if self.due <= now => self.announce(now, out),
            State::Running if silent => self.state = State::Ended(End::Silence),
            State::Running => self.run(now, out),
            _ => {}
        }
    }

    /// Runs the machine's timers up to now, each at the time that it is due, as far as one input may go.
    pub(super) fn run(&mut self, now: Time, out: &mut Outbox) {
        let to = self.times.machine(now);
        let mut work = Work::default();
        while self.sink.next_wake() <= to && out.len() < MAX_DATAGRAMS && work.step() {
            let due = self.times.timer(self.sink.next_wake(), to);
            self.sink.on_timer(due, &mut Port { codec: &mut self.codec, out });
        }
    }
}
