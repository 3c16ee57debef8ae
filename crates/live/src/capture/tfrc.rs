//! TFRC's messages (`docs/wire/tfrc.md`) for simulated packets. A report's counts are not in the simulated packet: they
//! are counted here, where data arrive.

use super::content::scramble;
use super::pcapng::Direction;
use paceline_packet::wire::tfrc::{Ack, ConnectionId, Data, Datagram, Feedback, Message, Single, Ticks};
use paceline_packet::{Flags, LastHole, Packet, Stamp, Subflow, TfrcData, TfrcReport};
use std::collections::VecDeque;

/// Number of sent reports among which a report on its way is looked up.
const REMEMBERED: usize = 256;

/// A flow's messages.
pub(super) struct Tfrc {
    id: ConnectionId,
    /// Whether messages name the connection within the flow.
    several: bool,
    /// By place: the packets that have reached the receiver.
    arrived: Vec<Arrived>,
    /// The counts when each report was sent, by its number and echo.
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

    pub(super) fn data(&mut self, packet: &Packet, direction: Direction, subflow: Subflow, data: &TfrcData) -> Vec<u8> {
        if direction == Direction::In {
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

    pub(super) fn report(
        &mut self,
        packet: &Packet,
        direction: Direction,
        subflow: Subflow,
        report: &TfrcReport,
    ) -> Vec<u8> {
        let mut arrived = *self.arrived(subflow);
        if direction == Direction::Out {
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

    /// A data packet that is acknowledged individually (`docs/wire/acks.md`).
    pub(super) fn single(&self, packet: &Packet) -> Vec<u8> {
        self.encoded(Message::Single(Single { sequence: packet.seq, timestamp: packet.stamp }))
    }

    /// The acknowledgement of such a packet.
    pub(super) fn ack(&self, packet: &Packet, hole: LastHole) -> Vec<u8> {
        self.encoded(Message::Ack(Ack { sequence: packet.seq, echo: packet.stamp, hole }))
    }

    /// The counts of a connection; an earlier connection at its place is replaced.
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
