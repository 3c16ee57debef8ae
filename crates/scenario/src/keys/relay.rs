//! Relays in a scenario file: flows that send on what arrives on others.

use super::file::File;
use super::flow::{App, FlowTable};
use super::quic::{CarriageKey, QuicTable};
use paceline_units::Size;
use std::collections::BTreeSet;

/// Default queue of a relay: somewhat more than a second of a video's best quality.
pub(crate) const RELAY_QUEUE: Size = Size::from_bytes(1_000_000);

impl FlowTable {
    /// The flow that it relays, if it is a relay.
    #[must_use]
    pub fn relayed(&self) -> Option<&str> {
        match &self.app {
            App::Relay { of } => Some(of),
            _ => None,
        }
    }

    /// How its application's writes are carried.
    pub(crate) fn carriage(&self) -> CarriageKey {
        let given = self.quic.as_ref().and_then(|quic| quic.carriage);
        given.unwrap_or_else(|| QuicTable::usual_carriage(&self.app))
    }
}

impl File {
    /// The flow whose application wrote what this one carries: its own or, through relays, another's. `None` if there
    /// is no such flow, or if relays form a loop.
    pub(crate) fn origin<'a>(&'a self, flow: &'a FlowTable) -> Option<&'a FlowTable> {
        let mut origin = flow;
        for _ in 0..=self.flow.len() {
            let Some(of) = origin.relayed() else { return Some(origin) };
            origin = self.flow.get(of)?;
        }
        None
    }

    /// Completes relays from the flows that they relay.
    pub(crate) fn inherit_from_relayed(&mut self) {
        let file = self.clone();
        for flow in self.flow.values_mut() {
            let Some(of) = flow.relayed().and_then(|of| file.flow.get(of)) else { continue };
            flow.from = flow.from.take().or_else(|| of.to.clone());
            if let Some(origin) = file.origin(of) {
                flow.transport = flow.transport.or(origin.transport);
                flow.quic.get_or_insert_default().carriage.get_or_insert(origin.carriage());
            }
        }
    }

    /// The flows whose connection has a relay's track.
    pub(crate) fn relaying_connections(&self) -> BTreeSet<String> {
        let relays = self.flow.iter().filter(|(_, flow)| flow.relayed().is_some());
        relays.map(|(name, flow)| flow.leader().unwrap_or(name).to_owned()).collect()
    }
}
