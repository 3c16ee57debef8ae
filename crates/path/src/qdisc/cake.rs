//! CAKE: a shaper, fair queueing by flow and host, and COBALT on each flow's queue.
//!
//! Høiland-Jørgensen, Täht, Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home Gateways", IEEE
//! LANMAN 2018; the behaviour is that of Linux' `sch_cake` (since 4.19) with `besteffort`: one tin. Scheduling is DRR++
//! (MacGregor, Shi, "Deficits for Bursty Latency-Critical Flows: DRR++", ICON 2000): a queue that has just become
//! active goes first until it has sent its quantum. A queue that is empty but still has drop state decays, apart from
//! the others.

mod cobalt;
mod hashing;
mod lists;
mod model;
mod shaper;
#[cfg(test)]
mod tests;

pub use model::{CakeModel, Framing, Hosts, Isolation};

use super::fifo::{Fifo, Waiting};
use super::min_tree::MinTree;
use super::{Keys, mark};
use crate::DropReason;
use crate::model::Limit;
use cobalt::{Cobalt, Settings};
use hashing::{Host, QUEUES};
use lists::{List, Lists};
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;
use shaper::Shaper;

/// A queue's quantum is what the shaper sends in 1/4096 s, within these bounds, in bytes.
const QUANTUM: [u64; 2] = [300, 1514];

/// A queue's state in the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FlowState {
    /// Inactive, in no list.
    None,
    /// Active, and within its first quantum.
    Sparse,
    /// Used up its first quantum and is empty; waits at the end of the old flows.
    SparseWait,
    /// Backlogged: served in turn with the other bulk flows.
    Bulk,
    /// Empty, but COBALT's state has not decayed yet.
    Decaying,
}

/// One flow queue.
#[derive(Clone, Debug)]
struct Flow {
    fifo: Fifo,
    state: FlowState,
    /// Bytes that it may still send in its current round.
    deficit: i64,
    cobalt: Cobalt,
    /// The hash of the flow it belongs to, and the slots of that flow's hosts.
    tag: u32,
    hosts: [u16; 2],
}

/// CAKE's state.
#[derive(Clone, Debug)]
pub(super) struct Cake {
    settings: Settings,
    limit: Limit,
    isolation: Isolation,
    ingress: bool,
    quantum: u64,
    shaper: Shaper,
    flows: Vec<Flow>,
    lists: Lists,
    /// The number of bulk flows.
    bulk: u32,
    places: Vec<Host>,
    hosts: Hosts,
    pub(super) keys: Keys,
    /// Hashes of flows, and of hosts.
    hashes: [Stream; 2],
    draws: Stream,
    turns: Stream,
    /// Packets dequeued from flow queues, and quanta given; they index the draws.
    taken: u64,
    turned: u64,
    packets: u32,
    bytes: u64,
    /// The bytes of each queue, inverted, so that the maximum is the tree's minimum. Built at the first overflow.
    fattest: Option<MinTree>,
}

impl Cake {
    /// `stream` provides the hashes and the draws.
    pub(super) fn new(model: &CakeModel, keys: Keys, stream: Stream) -> Cake {
        let [min, max] = QUANTUM;
        let flow = Flow {
            fifo: Fifo::default(),
            state: FlowState::None,
            deficit: 0,
            cobalt: Cobalt::default(),
            tag: 0,
            hosts: [0; 2],
        };
        Cake {
            settings: Settings::new(model),
            limit: model.limit,
            isolation: model.isolation,
            ingress: model.ingress,
            quantum: model.bandwidth.map_or(max, |rate| (rate.0 / 8 / 4096).clamp(min, max)),
            shaper: Shaper::new(model),
            flows: vec![flow; QUEUES],
            lists: Lists::new(QUEUES as u16),
            bulk: 0,
            places: vec![Host::default(); QUEUES],
            hosts: model.hosts.clone(),
            keys,
            hashes: [stream.fork(0), stream.fork(1)],
            draws: stream.fork(2),
            turns: stream.fork(3),
            taken: 0,
            turned: 0,
            packets: 0,
            bytes: 0,
            fattest: None,
        }
    }

    pub(super) fn limit_to(&mut self, limit: Limit) {
        self.limit = limit;
    }

    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Nothing leaves before this instant.
    #[inline]
    pub(super) fn next_release(&self) -> u64 {
        self.shaper.next_release()
    }

    pub(super) fn enqueue(&mut self, packet: Packet, mut dropped: impl FnMut(&Packet, DropReason)) {
        let now = packet.time.0;
        let number = self.classify(&packet);
        if self.packets == 0 {
            self.shaper.begin(now);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        self.flows[number].fifo.push(packet);
        self.update_backlog(number);
        match self.flows[number].state {
            FlowState::None | FlowState::Decaying => {
                self.lists.put_last(List::New, number);
                self.flows[number].state = FlowState::Sparse;
                self.flows[number].deficit = self.flow_quantum(number);
            }
            FlowState::SparseWait => self.become_bulk(number),
            FlowState::Sparse | FlowState::Bulk => {}
        }
        while self.is_over() {
            self.drop_from_fattest(now, &mut dropped);
        }
    }

    /// Whether the backlog exceeds the limit. A single packet never does.
    fn is_over(&self) -> bool {
        self.packets > 1
            && match self.limit {
                Limit::Packets(limit) => self.packets > limit,
                Limit::Bytes(limit) => self.bytes > limit.0,
            }
    }

    #[cold]
    fn drop_from_fattest(&mut self, now: u64, dropped: &mut impl FnMut(&Packet, DropReason)) {
        let flows = &self.flows;
        let all = || MinTree::new(flows.iter().map(|flow| !flow.fifo.bytes()).collect());
        let Some((_, number)) = self.fattest.get_or_insert_with(all).first() else { return };
        let Some(packet) = self.pop(number) else { return };
        self.flows[number].cobalt.queue_full(&self.settings, now);
        if self.ingress {
            self.shaper.charge(self.shaper.counted(packet.size), true);
        }
        dropped(&packet, DropReason::Overflow);
    }

    /// Updates a queue's backlog in the tree.
    #[inline]
    fn update_backlog(&mut self, number: usize) {
        if let Some(fattest) = &mut self.fattest {
            fattest.set(number, !self.flows[number].fifo.bytes());
        }
    }

    fn pop(&mut self, number: usize) -> Option<Packet> {
        let packet = self.flows[number].fifo.pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        self.update_backlog(number);
        Some(packet)
    }

    fn become_bulk(&mut self, number: usize) {
        self.flows[number].state = FlowState::Bulk;
        self.bulk += 1;
        self.update_bulk_flow_counts(number, true);
    }

    /// A queue's quantum. The remainder of the division is rounded at random, so that none is lost in the long run.
    fn flow_quantum(&mut self, number: usize) -> i64 {
        let whole = (self.quantum << 16) / u64::from(self.load(number));
        self.turned += 1;
        ((whole + (self.turns.bits(self.turned) >> 48)) >> 16) as i64
    }

    /// The queue to serve; `first`: the first choice of this call, for which decaying queues come first.
    fn next_in_turn(&self, first: bool) -> Option<usize> {
        let decaying = self.lists.first(List::Decaying);
        let others = || self.lists.first(List::New).or_else(|| self.lists.first(List::Old));
        if first { decaying.or_else(others) } else { others().or(decaying) }
    }

    /// The next packet, unless the shaper holds all back.
    pub(super) fn dequeue(
        &mut self,
        now: u64,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) -> Option<Packet> {
        let mut first = true;
        'turns: while self.packets > 0 && self.next_release() <= now {
            // the shaper is not checked again in this loop
            loop {
                let number = self.next_in_turn(core::mem::take(&mut first))?;
                if self.flows[number].deficit <= 0 {
                    self.end_turn(number);
                    continue;
                }
                match self.take(number, now, marks, &mut dropped) {
                    Taken::Packet(packet) => return Some(packet),
                    Taken::Charged => {}
                    Taken::Nothing => {
                        self.rest(number, now);
                        continue 'turns;
                    }
                }
            }
        }
        None
    }

    /// A queue's deficit is used up: it gets another quantum and moves to the end of the old flows.
    fn end_turn(&mut self, number: usize) {
        if self.flows[number].state == FlowState::Sparse {
            if self.flows[number].fifo.packets() > 0 {
                self.become_bulk(number);
            } else {
                self.flows[number].state = FlowState::SparseWait;
            }
        }
        self.flows[number].deficit += self.flow_quantum(number);
        self.lists.put_last(List::Old, number);
    }

    /// Handles an empty queue that is due.
    fn rest(&mut self, number: usize, now: u64) {
        let at_rest = self.flows[number].cobalt.queue_empty(&self.settings, now);
        if self.flows[number].state == FlowState::Bulk {
            self.bulk -= 1;
            self.update_bulk_flow_counts(number, false);
        }
        if at_rest {
            self.lists.remove(number);
            self.flows[number].state = FlowState::None;
        } else {
            self.lists.put_last(List::Decaying, number);
            self.flows[number].state = FlowState::Decaying;
        }
    }

    /// Dequeues a packet from this queue, if COBALT passes one. The last packet may be marked, but is not dropped.
    fn take(
        &mut self,
        number: usize,
        now: u64,
        marks: &mut u64,
        dropped: &mut impl FnMut(&Packet, DropReason),
    ) -> Taken {
        let bulk_flows = if self.ingress { u64::from(self.bulk) } else { 0 };
        while let Some(mut packet) = self.pop(number) {
            self.taken += 1;
            let (draws, taken) = (self.draws, self.taken);
            let draw = || (draws.bits(taken) >> 32) as u32;
            let capable = packet.flags.has(Flags::ECT);
            let flow = &mut self.flows[number];
            let waited = now - packet.time.0;
            let verdict = flow.cobalt.should_drop(&self.settings, now, waited, bulk_flows, capable, draw);
            let counted = self.shaper.counted(packet.size);
            match verdict.drop {
                Some(reason) if flow.fifo.packets() > 0 => {
                    dropped(&packet, reason);
                    if self.ingress {
                        self.shaper.charge(counted, true);
                        flow.deficit -= counted as i64;
                        return Taken::Charged;
                    }
                }
                _ => {
                    if verdict.mark {
                        *marks += u64::from(mark(&mut packet));
                    }
                    self.shaper.charge(counted, false);
                    flow.deficit -= counted as i64;
                    return Taken::Packet(packet);
                }
            }
        }
        Taken::Nothing
    }
}

/// The result of serving a queue.
enum Taken {
    Packet(Packet),
    /// A packet was dropped and charged as if it had been sent.
    Charged,
    /// The queue is empty.
    Nothing,
}
