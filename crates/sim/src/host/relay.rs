//! What a host does for the relays among its flows.

use super::Host;
use crate::build::Folded;
use crate::port::Port;
use paceline_engine::Network;
use paceline_units::Time;

impl Host {
    /// A packet has come to a sink: what it brought leaves by those that send it on.
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
            // of a bundle what is most urgent leaves first, of whichever flow it is
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
