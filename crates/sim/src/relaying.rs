//! Relays among the flows of a host: what arrives on one flow is sent on others (draft-ietf-moq-transport).
//!
//! After each packet at a sink whose flow is relayed, the host passes what arrived to the sources that relay it. The
//! machine's half is in `paceline_flow::quic`.

use crate::endpoint::{Sink, Source};
use paceline_flow::quic::{RelayedData, TrackWrite};
use paceline_flow::{Receiver, Sender, Transmit};
use paceline_scenario::model::FlowModel;
use paceline_units::Time;

/// The relays of a host.
#[derive(Debug)]
pub struct Relaying {
    /// For each sink, the relayed tracks of its connection, each with a source that relays it.
    of: Vec<Vec<(u8, usize)>>,
}

impl Relaying {
    /// For a host with these senders and receivers, numbered from 0; `None` if none is a relay.
    #[must_use]
    pub fn of(sending: &[&FlowModel], receiving: &[&FlowModel]) -> Option<Box<Relaying>> {
        if sending.iter().all(|flow| flow.relay.is_none()) {
            return None;
        }
        let mut of = vec![Vec::new(); receiving.len()];
        for (slot, flow) in receiving.iter().enumerate() {
            let leader = receiving.iter().position(|leader| flow.goes_with(leader));
            // Tracks have the same numbers as in the host's bundling.
            let track = leader.map_or(0, |leader| {
                1 + receiving[..slot].iter().filter(|other| other.goes_with(receiving[leader])).count()
            });
            let sources = (0..sending.len()).filter(|source| sending[*source].sends_on(flow));
            of[leader.unwrap_or(slot)].extend(sources.map(|source| (track as u8, source)));
        }
        Some(Box::new(Relaying { of }))
    }

    /// Makes sinks keep what arrives for relaying.
    pub(crate) fn begin(&self, sinks: &mut [Sink]) {
        for (sink, _) in sinks.iter_mut().zip(&self.of).filter(|(_, of)| !of.is_empty()) {
            if let Receiver::Quic(quic) = &mut sink.receiver {
                quic.relay();
            }
        }
    }

    /// The relayed tracks of a sink's connection, with the sources that relay them.
    pub(crate) fn of_sink(&self, sink: usize) -> &[(u8, usize)] {
        &self.of[sink]
    }
}

impl Sink {
    /// What has arrived on its connection since the last call, if it is relayed.
    pub(crate) fn take_portions(&mut self) -> Vec<RelayedData> {
        match &mut self.receiver {
            Receiver::Quic(quic) => quic.take_portions(),
            _ => Vec::new(),
        }
    }
}

impl Source {
    /// Queues a relayed portion, which the next [`Source::send_on`] sends. Portions before its start or after its stop
    /// are dropped.
    pub(crate) fn relay(&mut self, now: Time, portion: RelayedData, out: &mut impl Transmit) {
        if !self.is_sending() {
            return;
        }
        match &mut self.sender {
            Sender::Quic(quic) => quic.write_track(0, TrackWrite::Relayed(portion), now, out),
            Sender::Track(track) => track.write(TrackWrite::Relayed(portion)),
            _ => {}
        }
    }

    /// Sends what is queued, if the source has its own connection.
    pub(crate) fn send_on(&mut self, now: Time, out: &mut impl Transmit) {
        if let Sender::Quic(quic) = &mut self.sender {
            quic.send_on(now, out);
        }
    }
}
