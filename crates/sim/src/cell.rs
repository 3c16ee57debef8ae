//! An 802.11 cell as an element of the engine.

use crate::build::Folded;
use crate::model::CellInstance;
use crate::recorder::Recording;
use paceline_engine::{Inbox, Network};
use paceline_packet::Packet;
use paceline_path::Measure;
use paceline_path::wifi::{Cell, Output};
use paceline_units::Time;

/// A cell, and where it stands.
#[derive(Debug)]
pub struct CellElement {
    /// The cell.
    pub cell: Cell,
    /// Its number among the elements: what is sent from one station to another comes back to it.
    element: u32,
}

impl CellElement {
    /// The cell of this model, as element number `element`.
    #[must_use]
    pub fn new(model: &CellInstance, seed: u64, element: usize, measure: Measure, recording: Recording) -> CellElement {
        let mut cell = Cell::new(&model.model, model.first_link as u32, measure, &model.streams(seed));
        if recording.queue || recording.airtime {
            cell.record(recording.every);
        }
        CellElement { cell, element: element as u32 }
    }

    /// When it has something to do of itself.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.cell.next_wake()
    }

    /// Handles everything before `until`; at one instant its own events come before arrivals.
    pub fn run(&mut self, until: Time, inbox: &mut Inbox, network: &mut Network<Folded>) {
        let packets = inbox.take(until, network.ways());
        let mut arrivals = packets.iter();
        loop {
            let wake = self.cell.next_wake();
            match arrivals.as_slice().first() {
                Some(packet) if packet.time < wake => {
                    self.cell.arrive(*packet, network.ways());
                    arrivals.next();
                }
                _ if wake < until => self.cell.step(network.ways()),
                _ => return,
            }
            while let Some(output) = self.cell.take_output() {
                match output {
                    Output::Forward(packet) if network.ways().next_element(&packet) == Some(self.element) => {
                        self.cell.relay(Packet { cursor: packet.cursor + 1, ..packet });
                    }
                    Output::Forward(packet) => network.forward(&packet),
                    Output::Drop(packet, reason, at) => network.drop(packet, reason, at),
                }
            }
        }
    }
}
