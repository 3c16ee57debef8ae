//! Relays among the flows of a host: what comes by one leaves by others (draft-ietf-moq-transport).
//!
//! After each packet at a sink whose flow is relayed the host hands what it brought to the sources that send it on. The machine's half is
//! `paceline_flow::quic`'s.

use crate::endpoint::{Sink, Source};
use crate::model::FlowModel;
use paceline_flow::quic::{Portion, TrackWrite};
use paceline_flow::{Receiver, Sender, Transmit};
use paceline_units::Time;

/// Which flow a flow sends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelayModel {
    /// Its name.
    pub of: String,
    /// Which of several alike.
    pub instance: u32,
}

impl FlowModel {
    /// Whether it sends on what comes of `other`.
    #[must_use]
    pub fn sends_on(&self, other: &FlowModel) -> bool {
        self.relay.as_ref().is_some_and(|relay| relay.of == other.name && relay.instance == other.instance)
    }
}

/// The relays of a host.
#[derive(Debug)]
pub struct Relaying {
    /// By sink: the tracks of its connection that are sent on, each with a source that does so.
    of: Vec<Vec<(u8, usize)>>,
}

impl Relaying {
    /// Of a host with these senders and receivers, numbered from 0; `None` if none is a relay.
    #[must_use]
    pub fn of(sending: &[&FlowModel], receiving: &[&FlowModel]) -> Option<Box<Relaying>> {
        if sending.iter().all(|flow| flow.relay.is_none()) {
            return None;
        }
        let mut of = vec![Vec::new(); receiving.len()];
        for (slot, flow) in receiving.iter().enumerate() {
            let leader = receiving.iter().position(|leader| flow.goes_with(leader));
            // tracks are numbered as the host's bundling numbers them
            let track = leader.map_or(0, |leader| {
                1 + receiving[..slot].iter().filter(|other| other.goes_with(receiving[leader])).count()
            });
            let sources = (0..sending.len()).filter(|source| sending[*source].sends_on(flow));
            of[leader.unwrap_or(slot)].extend(sources.map(|source| (track as u8, source)));
        }
        Some(Box::new(Relaying { of }))
    }

    /// Sinks are told that what comes to them is sent on.
    pub(crate) fn begin(&self, sinks: &mut [Sink]) {
        for (sink, _) in sinks.iter_mut().zip(&self.of).filter(|(_, of)| !of.is_empty()) {
            if let Receiver::Quic(quic) = &mut sink.receiver {
                quic.relay();
            }
        }
    }

    /// The tracks of a sink's connection that are sent on, and the sources that do so.
    pub(crate) fn of_sink(&self, sink: usize) -> &[(u8, usize)] {
        &self.of[sink]
    }
}

impl Sink {
    /// What has come of its connection since the last call, if it is sent on.
    pub(crate) fn take_portions(&mut self) -> Vec<Portion> {
        match &mut self.receiver {
            Receiver::Quic(quic) => quic.take_portions(),
            _ => Vec::new(),
        }
    }
}

impl Source {
    /// What it sends on has come in; it leaves with the next [`Source::send_on`]. Nobody gets what comes before its start or after its stop.
    pub(crate) fn relay(&mut self, now: Time, portion: Portion, out: &mut impl Transmit) {
        if !self.is_sending() {
            return;
        }
        match &mut self.sender {
            Sender::Quic(quic) => quic.write_track(0, TrackWrite::Portion(portion), now, out),
            Sender::Track(track) => track.write(TrackWrite::Portion(portion)),
            _ => {}
        }
    }

    /// What has come in leaves, if the connection is its own.
    pub(crate) fn send_on(&mut self, now: Time, out: &mut impl Transmit) {
        if let Sender::Quic(quic) = &mut self.sender {
            quic.send_on(now, out);
        }
    }
}
