//! Flow queues under PIE.
//!
//! Ramakrishnan, Bhasi, Saicharan, Monis, Patil, Tahiliani, "FQ-PIE Queue Discipline in the Linux Kernel: Design,
//! Implementation and Challenges", LCN Symposium 2019 (`sch_fq_pie`, Linux since 5.6): the flow queues and scheduling
//! of RFC 8290, with PIE (RFC 8033) on each in place of CoDel. When all queues together are full, any arriving packet
//! is dropped, whichever flow filled them.

use super::Keys;
use super::fifo::Waiting;
use super::flow_queueing::FlowQueues;
use super::model::FqPieModel;
use super::pie::Controller;
use crate::DropReason;
use crate::model::Limit;
use paceline_packet::Packet;
use paceline_random::Stream;

/// FQ-PIE's state. A queue's controller catches up on its updates when a packet enters or leaves the queue. That is
/// equivalent to updating all of them periodically: in between, the queue's delay and bytes do not change.
#[derive(Clone, Debug)]
pub(super) struct FqPie {
    model: FqPieModel,
    flow_queues: FlowQueues<Controller>,
    draws: Stream,
    arrivals: u64,
}

impl FqPie {
    /// `stream` provides the perturbation and the draws.
    ///
    /// # Panics
    /// If there are no queues, the quantum is zero, or the update interval is zero.
    pub(super) fn new(model: &FqPieModel, keys: Keys, stream: Stream) -> FqPie {
        let flow_queues =
            FlowQueues::new(model.queues, model.quantum, Controller::new(&model.pie), keys, stream.fork(0));
        FqPie { model: *model, flow_queues, draws: stream.fork(1), arrivals: 0 }
    }

    pub(super) fn limit_to(&mut self, limit: Limit) {
        self.model.pie.limit = limit;
    }

    pub(super) fn set_flow_keys(&mut self, keys: &Keys) {
        self.flow_queues.keys = keys.clone();
    }

    pub(super) fn packets(&self) -> u32 {
        self.flow_queues.packets()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.flow_queues.bytes()
    }

    pub(super) fn enqueue(
        &mut self,
        mut packet: Packet,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) {
        let fits = self.fits(packet.size);
        let number = self.flow_queues.classify(&packet);
        let pie = &self.model.pie;
        let queue = &mut self.flow_queues.queues[number];
        let waiting = queue.bytes;
        queue.aqm.catch_up(pie, waiting, packet.time.0);
        self.arrivals += 1;
        if !fits {
            queue.aqm.overflows();
            return dropped(&packet, DropReason::Overflow);
        }
        let draw = || self.draws.unit(self.arrivals);
        if !queue.aqm.admits(pie, waiting, &mut packet, marks, draw) {
            return dropped(&packet, DropReason::Early);
        }
        self.flow_queues.push(number, packet);
    }

    /// Whether the packet fits. A single packet always does.
    fn fits(&self, size: u16) -> bool {
        self.packets() == 0
            || match self.model.pie.limit {
                Limit::Packets(limit) => self.packets() < limit,
                Limit::Bytes(limit) => self.bytes() + u64::from(size) <= limit.0,
            }
    }

    pub(super) fn dequeue(&mut self, now: u64) -> Option<Packet> {
        let pie = &self.model.pie;
        self.flow_queues.dequeue(|drawn| {
            drawn.queue.aqm.catch_up(pie, drawn.queue.bytes, now);
            let packet = drawn.pop()?;
            drawn.queue.aqm.leaves(pie, drawn.queue.bytes, now, &packet);
            Some(packet)
        })
    }
}
