//! The queue of an interface: any discipline, polled when the transmitter is ready.

use crate::qdisc::{ClassCounts, Discipline, Interface, Keys};
use crate::queue_level::Level;
use crate::{DropReason, Drops, Queue as Model};
use paceline_packet::Packet;
use paceline_random::Stream;
use paceline_units::{Rate, Span, Time};

/// The packets waiting at an interface, and its drops.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    discipline: Discipline,
    pub(super) level: Level,
    /// The maximum number of packets that waited at once.
    pub(super) max: u32,
    pub(super) arrivals: u64,
    pub(super) dropped: Drops,
    /// The maximum wait of the packets that left since it was last read.
    longest: Span,
}

impl Queue {
    pub(super) fn new(model: &Model, rate: Rate, draws: Stream) -> Queue {
        let interface = Interface { rate, propagation: Span::ZERO, keys: Keys::default() };
        Queue {
            discipline: Discipline::new(model, interface, draws),
            level: Level::default(),
            max: 0,
            arrivals: 0,
            dropped: Drops::default(),
            longest: Span::ZERO,
        }
    }

    /// Sets what defines a flow.
    pub(super) fn set_flow_keys(&mut self, keys: &Keys) {
        self.discipline.set_flow_keys(keys);
    }

    /// The number of waiting packets.
    pub(super) fn len(&self) -> u32 {
        self.discipline.packets()
    }

    /// The number of waiting bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.discipline.bytes()
    }

    /// Packets marked so far.
    pub(super) fn marks(&self) -> u64 {
        self.discipline.marks()
    }

    /// The counts of each class of a discipline with two.
    pub(super) fn classes(&self) -> Option<[ClassCounts; 2]> {
        self.discipline.classes()
    }

    /// A packet arrives. Dropped packets (this one or others) are passed to `lost`.
    pub(super) fn arrive(&mut self, packet: Packet, mut lost: impl FnMut(Packet, DropReason)) {
        self.arrivals += 1;
        let (now, before, dropped) = (packet.time, self.now(), &mut self.dropped);
        self.discipline.enqueue(now, packet, |packet, reason| {
            dropped[reason] += 1;
            lost(*packet, reason);
        });
        self.changed(now, before);
    }

    /// The next packet for the transmitter, with its wait. Packets dropped meanwhile are passed to `lost`.
    pub(super) fn next(&mut self, now: Time, mut lost: impl FnMut(Packet, DropReason)) -> Option<(Packet, Span)> {
        let (before, dropped) = (self.now(), &mut self.dropped);
        let packet = self.discipline.dequeue(now, |packet, reason| {
            dropped[reason] += 1;
            lost(*packet, reason);
        });
        self.changed(now, before);
        let packet = packet?;
        let wait = now.since(packet.time);
        self.longest = self.longest.max(wait);
        Some((packet, wait))
    }

    fn now(&self) -> [f64; 2] {
        [f64::from(self.discipline.packets()), self.discipline.bytes() as f64]
    }

    fn changed(&mut self, now: Time, before: [f64; 2]) {
        let after = self.now();
        self.level.change(now.0, [after[0] - before[0], after[1] - before[1]], &mut ());
    }

    /// Raises the maximum to the current number of waiting packets.
    pub(super) fn update_max(&mut self) {
        self.max = self.max.max(self.discipline.packets());
    }

    /// The maximum wait of the packets that have left the queue since the last call.
    pub(super) fn take_longest_wait(&mut self) -> Span {
        core::mem::take(&mut self.longest)
    }
}
