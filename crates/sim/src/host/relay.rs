//! A host's work for the relays among its flows.

use super::Host;
use crate::build::Folded;
use crate::port::Port;
use paceline_engine::Network;
use paceline_units::Time;

impl Host {
    /// Passes what arrived at a sink to the sources that relay it.
    #[cold]
    #[inline(never)]
    pub(super) fn send_on(&mut self, sink: usize, now: Time, network: &mut Network<Folded>) {
        let Some(relaying) = self.relaying.take() else { return };
        let portions = self.sinks[sink].take_portions();
        for portion in &portions {
            for &(_, slot) in relaying.of_sink(sink).iter().filter(|(track, _)| *track == portion.track) {
                let source = &mut self.sources[slot];
                let mut port = Port::of(source, network, &mut self.clock, now);
                source.relay(now, *portion, &mut port);
            }
        }
        for &(_, slot) in relaying.of_sink(sink).iter().filter(|_| !portions.is_empty()) {
            // In a bundle, the most urgent data leave first, whichever flow they belong to.
            self.settle(slot, now, network);
            let source = &mut self.sources[slot];
            let mut port = Port::of(source, network, &mut self.clock, now);
            source.send_on(now, &mut port);
            self.timers.set(slot, source.set_entry(now));
            self.note(slot, now);
        }
        self.relaying = Some(relaying);
    }
}
