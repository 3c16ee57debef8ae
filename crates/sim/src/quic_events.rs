//! Events of QUIC endpoints for connection logs: losses, and changes of the recovery state.
//!
//! A logging host compares an endpoint with its last logged state after each event that concerned it. Other hosts do
//! nothing.

use crate::endpoint::{Sink, Source};
use paceline_flow::quic::{LostNumber, Recovery};
use paceline_flow::{Receiver, Sender};
use paceline_packet::FlowId;
use paceline_units::Time;

/// An event of a QUIC endpoint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QuicEvent {
    /// The node of its host.
    pub node: usize,
    /// The flow.
    pub flow: FlowId,
    /// Whether the endpoint is the flow's sender.
    pub sends: bool,
    /// When.
    pub time: Time,
    /// What.
    pub what: QuicEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum QuicEventKind {
    /// A packet was declared lost.
    Lost(LostNumber),
    /// The recovery state changed.
    Recovery(Recovery),
}

/// The last logged state of one endpoint.
#[derive(Clone, Copy, Debug)]
struct Known {
    flow: FlowId,
    recovery: Option<Recovery>,
    /// One more than the last lost packet number.
    lost: u32,
}

/// The event log of one host's QUIC endpoints.
#[derive(Debug)]
pub struct QuicEventLog {
    node: usize,
    /// One per endpoint, sources first; `None` for those that are not QUIC's.
    ends: Vec<Option<Known>>,
    events: Vec<QuicEvent>,
}

impl QuicEventLog {
    /// For the host of this node; `None` if no endpoint there is QUIC's.
    #[must_use]
    pub fn of(node: usize, sources: &[Source], sinks: &[Sink]) -> Option<Box<QuicEventLog>> {
        let known = |flow: FlowId, is: bool| is.then_some(Known { flow, recovery: None, lost: 0 });
        let sources = sources.iter().map(|source| known(source.flow, matches!(source.sender, Sender::Quic(_))));
        let sinks = sinks.iter().map(|sink| known(sink.flow, matches!(sink.receiver, Receiver::Quic(_))));
        let ends: Vec<_> = sources.chain(sinks).collect();
        ends.iter().any(Option::is_some).then(|| Box::new(QuicEventLog { node, ends, events: Vec::new() }))
    }

    /// Logs what changed after an event at the endpoint with this number, sources first.
    pub(crate) fn on_endpoint_event(&mut self, slot: usize, now: Time, sources: &[Source], sinks: &[Sink]) {
        let Some(Some(known)) = self.ends.get_mut(slot) else { return };
        let sends = slot < sources.len();
        let (node, flow, from) = (self.node, known.flow, known.lost);
        let noted = &mut self.events;
        let mut note = |what| noted.push(QuicEvent { node, flow, sends, time: now, what });
        let mut lose = |lost: LostNumber| {
            known.lost = lost.number + 1;
            note(QuicEventKind::Lost(lost));
        };
        let recovery = if sends {
            let Sender::Quic(quic) = &sources[slot].sender else { return };
            quic.lost_from(from).for_each(&mut lose);
            quic.recovery()
        } else {
            let Receiver::Quic(quic) = &sinks[slot - sources.len()].receiver else { return };
            quic.lost_from(from).for_each(&mut lose);
            quic.recovery()
        };
        if known.recovery != Some(recovery) {
            known.recovery = Some(recovery);
            note(QuicEventKind::Recovery(recovery));
        }
    }

    /// Takes the events since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = QuicEvent> + '_ {
        self.events.drain(..)
    }
}
