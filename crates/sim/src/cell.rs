//! An 802.11 cell as an element of the engine, including its access point's changes to windows.

use crate::build::Folded;
use crate::recorder::Recording;
use paceline_engine::{Inbox, Network};
use paceline_flow::Transport;
use paceline_packet::Packet;
use paceline_path::Measure;
use paceline_path::access_point::{AccessPoint, Crossing, Decided};
use paceline_path::wifi::{Cell, Output};
use paceline_scenario::model::{CellInstance, FlowModel, Model};
use paceline_units::Time;

/// A cell as an element.
#[derive(Debug)]
pub struct CellElement {
    /// The cell.
    pub cell: Cell,
    /// Its index among the elements: packets from one station to another return to it.
    element: u32,
    /// The part that lowers windows, if any.
    access_point: Option<Box<AccessPoint>>,
}

impl CellElement {
    /// The cell of this number, as element number `element`.
    #[must_use]
    pub fn new(model: &Model, number: usize, element: usize, measure: Measure, recording: Recording) -> CellElement {
        let instance = &model.cells[number];
        let mut cell = Cell::new(&instance.model, instance.first_link as u32, measure, &instance.streams(model.seed));
        if recording.queue || recording.airtime {
            cell.record(recording.every);
        }
        let access_point = instance.law.as_ref().map(|law| {
            cell.watch();
            let crossing: Vec<Crossing> =
                model.flows.iter().map(|flow| crossing(flow, instance, &model.nodes)).collect();
            let mut access_point = Box::new(AccessPoint::new(law.clone(), &crossing, instance.model.overhead));
            if recording.windows {
                access_point.keep();
            }
            access_point
        });
        CellElement { cell, element: element as u32, access_point }
    }

    /// When it next needs to run.
    #[must_use]
    pub fn next_wake(&self) -> Time {
        self.access_point.as_ref().map_or(self.cell.next_wake(), |ap| ap.next_wake().min(self.cell.next_wake()))
    }

    /// The decisions of its access point, if recorded.
    pub fn take_decided(&mut self) -> Vec<Decided> {
        self.access_point.as_mut().map_or_else(Vec::new, |access_point| access_point.take_kept())
    }

    /// Handles everything before `until`. At the same time, its own events run before arrivals, and decisions before
    /// both.
    pub fn run(&mut self, until: Time, inbox: &mut Inbox, network: &mut Network<Folded>) {
        let packets = inbox.take(until, network.routes());
        let mut arrivals = packets.iter();
        loop {
            let wake = self.next_wake();
            match arrivals.as_slice().first() {
                Some(packet) if packet.time < wake => {
                    if let Some(access_point) = &mut self.access_point
                        && self.cell.is_downward(packet, network.routes())
                    {
                        access_point.on_data(packet);
                    }
                    self.cell.arrive(*packet, network.routes());
                    arrivals.next();
                }
                _ if wake >= until => return,
                _ => match &mut self.access_point {
                    Some(access_point) if access_point.next_wake() == wake => access_point.decide(),
                    _ => self.cell.step(network.routes()),
                },
            }
            while let Some(output) = self.cell.take_output() {
                self.hand_on(output, network);
            }
        }
    }

    fn hand_on(&mut self, output: Output, network: &mut Network<Folded>) {
        match output {
            Output::Forward(mut packet) => {
                let relayed = network.routes().next_element(&packet) == Some(self.element);
                if let Some(access_point) = &mut self.access_point
                    && !self.cell.is_downward(&packet, network.routes())
                {
                    access_point.on_ack(&mut packet, &mut network.extras);
                    if relayed {
                        access_point.on_data(&packet);
                    }
                }
                if relayed {
                    self.cell.relay(Packet { cursor: packet.cursor + 1, ..packet });
                } else {
                    network.forward(&packet);
                }
            }
            Output::Waited(packet, wait) => {
                if let Some(access_point) = &mut self.access_point {
                    access_point.waited(&packet, wait);
                }
            }
            Output::Drop(packet, reason, at) => network.drop(packet, reason, at),
        }
    }
}

/// How an access point treats a flow: it limits TCP whose receiver is one of its stations.
fn crossing(flow: &FlowModel, cell: &CellInstance, nodes: &[String]) -> Crossing {
    let is_station = |node: usize| cell.interfaces[1..].contains(&nodes[node]);
    match &flow.transport {
        Transport::Tcp { config, .. } if is_station(flow.sink) => {
            Crossing::Tcp { segment: config.segment.into(), advertised: config.receive_window }
        }
        Transport::Tcp { .. } => Crossing::Elsewhere,
        _ if is_station(flow.source) || is_station(flow.sink) => Crossing::Unresponsive,
        _ => Crossing::Elsewhere,
    }
}
