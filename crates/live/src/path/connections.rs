//! Flows that share a connection (`bundle`): in real time each has its own ports, but queues that serve connections in
//! turn must treat them as one.

use super::emulator::Side;
use super::frame::Shape;
use paceline_scenario::model::{Model, connections};
use std::collections::BTreeMap;

/// Maps flows' frames to connections. A flow is identified by its port at the near end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Connections {
    /// The leading flow's port, by the led flow's port.
    leads: BTreeMap<u16, u16>,
}

impl Connections {
    /// The connections of a run's flows. At the near end the first flow has port `first`, each further one the next.
    pub(super) fn of(run: &Model, first: u16) -> Connections {
        let ports: Vec<u16> = (first..=u16::MAX).take(run.flows.len()).collect();
        let of = connections(&run.flows).unwrap_or_default();
        let led = ports.iter().zip(of).filter_map(|(port, leader)| Some((*port, *ports.get(leader as usize)?)));
        Connections { leads: led.filter(|(port, leader)| port != leader).collect() }
    }

    /// The hash of a frame's connection; the frame has this shape and enters at `from`.
    pub(super) fn flow(&self, from: Side, frame: &[u8], shape: &Shape) -> u32 {
        let Some([source, destination]) = shape.ports.filter(|_| !self.leads.is_empty()) else { return shape.flow };
        let near = if from == Side::Near { source } else { destination };
        let Some(&leader) = self.leads.get(&near) else { return shape.flow };
        shape.flow_of(frame, if from == Side::Near { [leader, destination] } else { [source, leader] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn frame(source: u16, destination: u16) -> Vec<u8> {
        let mut frame = Vec::new();
        let (here, there) =
            if source < destination { ([10, 0, 0, 1], [10, 0, 0, 2]) } else { ([10, 0, 0, 2], [10, 0, 0, 1]) };
        PacketBuilder::ipv4(here, there, 64).udp(source, destination).write(&mut frame, &[0; 8]).unwrap();
        frame
    }

    #[test]
    fn a_led_flow_has_the_hash_of_its_leader_both_ways() {
        let connections = Connections { leads: [(9000, 9002)].into() };
        let of = |side, source, destination| {
            let frame = frame(source, destination);
            connections.flow(side, &frame, &Shape::of(&frame).unwrap())
        };
        let plain = |source, destination| Shape::of(&frame(source, destination)).unwrap().flow;
        assert_eq!(of(Side::Near, 9000, 50_000), plain(9002, 50_000));
        assert_eq!(of(Side::Far, 50_000, 9000), plain(50_000, 9002));
        assert_eq!(of(Side::Near, 9001, 50_000), plain(9001, 50_000), "another");
        assert_ne!(plain(9000, 50_000), plain(9002, 50_000));
    }
}
