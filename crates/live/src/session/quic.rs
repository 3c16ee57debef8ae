//! Sessions of flows over QUIC: the machine receives and makes whole datagrams. Setup and close messages are separate,
//! recognised by their first two bytes.

use super::controller_calls::CallLog;
use super::log::EVENT_LOG;
use super::outbox::Outgoing;
use super::times::MAX_DATAGRAMS;
use super::{EcnBits, End, Outbox, ReceiverSession, SenderSession, Session, State};
use crate::quic::{Keys, Logged, OwnKey, Receiving, Sending, Shared};
use paceline_flow::{Datagrams, Receiver, Sender, Transport};
use paceline_packet::wire::tfrc::{self, Close, Message, Reason};
use paceline_packet::{ExtraId, FlowId, Packet, Stamp};
use paceline_quinn::Controllers;
use paceline_random::Stream;
use paceline_scenario::model::FlowModel;
use paceline_units::Time;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A session's state for its QUIC machine.
#[derive(Debug)]
pub(super) struct Quic {
    pub(super) shared: Arc<Shared>,
    /// More datagrams are waiting than one input may send.
    pub(super) more: bool,
}

impl Quic {
    /// For a flow over QUIC; `None` for others.
    pub(super) fn of(model: &FlowModel) -> Option<Quic> {
        let is = matches!(model.transport, Transport::Quic { .. });
        is.then(|| Quic { shared: Arc::new(Shared::default()), more: false })
    }

    /// Replaces the simulator's sender by a QUIC sender. Without keys no peer is accepted.
    pub(super) fn sender(&self, model: &FlowModel, seed: u64, keys: Option<&Keys>, to: &mut Sender) {
        let parts = (&model.transport, controllers(model, seed), some(keys));
        if let (Transport::Quic { config, .. }, Some(controllers), Some(keys)) = parts {
            *to = Sender::Foreign(Box::new(Sending::new(config, controllers, &keys, Arc::clone(&self.shared))));
        }
    }

    /// Does the same for a receiver.
    pub(super) fn receiver(&self, model: &FlowModel, keys: Option<&Keys>, to: &mut Receiver) {
        if let (Transport::Quic { config, .. }, Some(keys)) = (&model.transport, some(keys)) {
            *to = Receiver::Foreign(Box::new(Receiving::new(config, &keys, Arc::clone(&self.shared))));
        }
    }

    /// Whether a datagram is for the machine.
    pub(super) fn takes(bytes: &[u8]) -> bool {
        !bytes.starts_with(&tfrc::MAGIC)
    }
}

/// The controllers of a QUIC sender; `None` for other flows.
pub(super) fn controllers(model: &FlowModel, seed: u64) -> Option<Controllers> {
    let Transport::Quic { config, controller } = &model.transport else { return None };
    let stream = Stream::new(seed, &format!("sender {}", model.label()));
    Some(Controllers::around(controller.clone(), config.profile, stream).beginning_with(config.initial_window()))
}

/// These keys, or generated ones for a flow without another end.
fn some(keys: Option<&Keys>) -> Option<Keys> {
    keys.cloned().or_else(|| Some(Keys { own: OwnKey::generate().ok()?, peer: None }))
}

/// Sends the machine's datagrams, as many as one input may; returns whether there are more.
fn drain(machine: &mut dyn Datagrams, at: Time, out: &Outbox, mut send: impl FnMut(&Outgoing<'_>)) -> bool {
    let room = MAX_DATAGRAMS.saturating_sub(out.len());
    let mut bytes = Vec::new();
    for _ in 0..room {
        bytes.clear();
        let Some(flags) = machine.datagram(at, &mut bytes) else { return false };
        send(&Outgoing { header: &bytes, payload: 0, ecn: EcnBits::of_flags(flags) });
    }
    true
}

impl Session {
    fn quic(&self) -> Option<&Quic> {
        match self {
            Session::Sender(sender) => sender.quic.as_ref(),
            Session::Receiver(receiver) => receiver.quic.as_ref(),
        }
    }

    /// Enables logs of a QUIC flow's connections; call it before the session starts.
    pub fn log_quic(&self, to: Logged) {
        if let Some(quic) = self.quic() {
            let _ = quic.shared.logged.set(to);
        }
    }

    /// Flushes the QUIC event log; returns why it, or a connection's log (qlog), ended before the flow.
    #[must_use]
    pub fn end_logs(&self) -> Option<String> {
        let shared = &self.quic()?.shared;
        if let Some(calls) = shared.calls.get()
            && let Err(error) = calls.lock().unwrap_or_else(PoisonError::into_inner).flush()
        {
            shared.cut_log(EVENT_LOG, &error);
        }
        shared.cut.get().cloned()
    }
}

impl SenderSession {
    /// Logs all calls to the congestion control of a QUIC flow for [`replay()`](super::replay()); call it before the
    /// session starts. Other flows write nothing. A later write error ends the log, not the flow.
    ///
    /// # Errors
    /// Those of writing the log's head to `to`.
    pub fn log_calls(&self, to: Box<dyn Write + Send>) -> io::Result<()> {
        if let Some(quic) = &self.quic {
            let _ = quic.shared.calls.set(Mutex::new(CallLog::new(to, &self.spec)?));
        }
        Ok(())
    }

    /// Handles a QUIC datagram.
    pub(super) fn take_quic(&mut self, now: Time, bytes: &[u8], ecn: EcnBits, out: &mut Outbox) {
        if self.state != State::Running {
            return;
        }
        self.counts.taken += 1;
        self.last_received = now;
        self.run(now, out);
        if self.state != State::Running {
            return;
        }
        let time = self.times.pass(self.times.machine(now));
        if let Sender::Foreign(machine) = &mut self.source.sender {
            machine.on_datagram(time, bytes, ecn.flags());
        }
    }

    /// Sends the machine's datagrams. Only when the machine has nothing more to send does it know that all of an open
    /// stream is acknowledged: an application waiting for that is notified then, and may write more.
    pub(super) fn drain_quic(&mut self, now: Time, out: &mut Outbox) {
        self.send_quic(now, out);
        while self.state == State::Running
            && self.quic.as_ref().is_some_and(|quic| !quic.more)
            && self.source.wants_to_know()
            && self.work.step()
        {
            let time = self.times.at();
            let (source, mut port) = self.port(now, out);
            source.all_acked(time, &mut port);
            if source.sender.acked_all() {
                return;
            }
            self.send_quic(now, out);
        }
    }

    /// Sends the machine's datagrams, and ends the session if its connection is lost.
    fn send_quic(&mut self, now: Time, out: &mut Outbox) {
        let (Some(quic), Sender::Foreign(machine)) = (&mut self.quic, &mut self.source.sender) else { return };
        if !matches!(self.state, State::Running | State::Closing) {
            return;
        }
        let (mut left, mut over) = (Outbox::default(), 0);
        quic.more = drain(&mut **machine, self.times.at(), out, |datagram| {
            over += u64::from(!self.shaper.send(now, datagram, &mut left));
        });
        left.iter().for_each(|datagram| out.push_copy(&datagram));
        self.counts.over_limit += over;
        if let (State::Running, Some(lost)) = (self.state, quic.shared.lost.get()) {
            self.state = State::Ended(End::Quic(*lost));
            let close = Close { nonce: self.spec.secret(), reason: Reason::UNSPECIFIED };
            self.codec.agreement(Message::Close(close), out);
        }
    }

    /// Closes the connection: everything has been sent.
    pub(super) fn close_quic(&mut self, now: Time, out: &mut Outbox) {
        if let Sender::Foreign(machine) = &mut self.source.sender {
            machine.close(self.times.at());
        }
        self.drain_quic(now, out);
    }
}

impl ReceiverSession {
    /// Handles a QUIC datagram.
    pub(super) fn take_quic(&mut self, now: Time, bytes: &[u8], ecn: EcnBits, out: &mut Outbox) {
        if self.state != State::Running {
            self.counts.disregarded += 1;
            return;
        }
        self.counts.taken += 1;
        self.last_received = now;
        let time = self.times.pass(self.times.machine(now));
        if let Receiver::Foreign(machine) = &mut self.sink.receiver {
            machine.on_datagram(time, bytes, ecn.flags());
        }
        let size = bytes.len() as u64 + u64::from(self.spec.flow.family.headers());
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        let (flow, cursor, extra) = (FlowId(0), Packet::NOWHERE, ExtraId::NONE);
        let packet = Packet { time, cursor, size, flags: ecn.flags(), flow, seq: 0, stamp: Stamp::at(time), extra };
        let (sink, mut port) = self.port(out);
        sink.on_data(&packet, None, &mut port);
        self.watch(now, bytes.len() as u64, out);
    }

    /// Sends the machine's datagrams, and ends the session if its connection is lost.
    pub(super) fn drain_quic(&mut self, out: &mut Outbox) {
        let (Some(quic), Receiver::Foreign(machine)) = (&mut self.quic, &mut self.sink.receiver) else { return };
        if self.state != State::Running {
            return;
        }
        let mut left = Outbox::default();
        quic.more = drain(&mut **machine, self.times.at(), out, |datagram| left.push_copy(datagram));
        left.iter().for_each(|datagram| out.push_copy(&datagram));
        if let Some(lost) = quic.shared.lost.get() {
            self.state = State::Ended(End::Quic(*lost));
            self.close(Reason::UNSPECIFIED, out);
        }
    }
}
