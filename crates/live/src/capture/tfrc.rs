//! TFRC's messages (`docs/wire/tfrc.md`) from what the simulator moves. What a report counts is not in the simulated
//! packet: it is counted here, where data arrive.

use super::frames::scramble;
use super::pcapng::Way;
use paceline_packet::wire::tfrc::{Ack, ConnectionId, Data, Datagram, Feedback, Message, Single, Ticks};
use paceline_packet::{Flags, LastHole, Packet, Stamp, Subflow, TfrcData, TfrcReport};
use std::collections::VecDeque;

/// Reports that a copy on its way is looked for among.
const REMEMBERED: usize = 256;

/// A flow's messages.
pub(super) struct Tfrc {
    id: ConnectionId,
    /// Messages name the connection within the flow.
    several: bool,
    /// By place: what has reached the receiver.
    arrived: Vec<Arrived>,
    /// The same as of each report that left, by its number and echo.
    reported: VecDeque<(u32, Stamp, Arrived)>,
}

#[derive(Clone, Copy, Default)]
struct Arrived {
    subflow: Subflow,
    packets: u32,
    marked: u32,
}

impl Tfrc {
    pub(super) fn new(flow: u32, several: bool) -> Tfrc {
        Tfrc { id: ConnectionId(scramble(flow, 0)), several, arrived: Vec::new(), reported: VecDeque::new() }
    }

    pub(super) fn data(&mut self, packet: &Packet, way: Way, subflow: Subflow, data: &TfrcData) -> Vec<u8> {
        if way == Way::In {
            let marked = u32::from(packet.flags.has(Flags::CE));
            let arrived = self.arrived(subflow);
            arrived.packets = arrived.packets.wrapping_add(1);
            arrived.marked = arrived.marked.wrapping_add(marked);
        }
        self.encoded(Message::Data(Data {
            sequence: packet.seq,
            timestamp: packet.stamp,
            rtt: Ticks::nearest(data.rtt),
            subflow: self.several.then_some(subflow),
            frame: data.more.frame(),
        }))
    }

    pub(super) fn report(&mut self, packet: &Packet, way: Way, subflow: Subflow, report: &TfrcReport) -> Vec<u8> {
        let mut arrived = *self.arrived(subflow);
        if way == Way::Out {
            self.reported.push_back((packet.seq, packet.stamp, arrived));
            if self.reported.len() > REMEMBERED {
                self.reported.pop_front();
            }
        } else if let Some((.., then)) = self
            .reported
            .iter()
            .find(|&&(seq, stamp, then)| (seq, stamp, then.subflow) == (packet.seq, packet.stamp, subflow))
        {
            arrived = *then;
        }
        self.encoded(Message::Feedback(Feedback {
            received_end: packet.seq,
            echo: packet.stamp,
            delay: Ticks::nearest(report.delay),
            received: arrived.packets,
            marked: arrived.marked,
            receive_rate: report.receive_rate,
            loss_event_rate: report.loss_event_rate,
            subflow: self.several.then_some(subflow),
        }))
    }

    /// A data packet that is acknowledged by itself (`docs/wire/acks.md`).
    pub(super) fn single(&self, packet: &Packet) -> Vec<u8> {
        self.encoded(Message::Single(Single { sequence: packet.seq, timestamp: packet.stamp }))
    }

    /// Its acknowledgement.
    pub(super) fn ack(&self, packet: &Packet, hole: LastHole) -> Vec<u8> {
        self.encoded(Message::Ack(Ack { sequence: packet.seq, echo: packet.stamp, hole }))
    }

    /// The counts of a connection; those of one that opened at its place before are gone.
    fn arrived(&mut self, subflow: Subflow) -> &mut Arrived {
        let place = usize::from(subflow.place);
        if self.arrived.len() <= place {
            self.arrived.resize(place + 1, Arrived::default());
        }
        let arrived = &mut self.arrived[place];
        if arrived.subflow != subflow {
            *arrived = Arrived { subflow, ..Arrived::default() };
        }
        arrived
    }

    fn encoded(&self, message: Message) -> Vec<u8> {
        let mut bytes = Vec::new();
        Datagram { connection: self.id, message }.encode(&mut bytes);
        bytes
    }
}
