//! Flow queues under CoDel.
//!
//! Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290: one queue per hash of a flow, deficit round robin
//! with priority for queues that have just become active (section 4.2), CoDel on each. On overflow, the queue with the
//! most bytes drops from its head until half of its bytes are gone, at most a batch of packets (section 4.1). Half of
//! the bytes rather than of the packets, as in Linux.

use super::Keys;
use super::codel::{CoDel, Settings};
use super::fifo::Waiting;
use super::flow_queueing::{FlowQueues, Queue};
use super::min_tree::MinTree;
use super::model::FqCoDelModel;
use crate::DropReason;
use crate::model::Limit;
use paceline_packet::Packet;
use paceline_random::Stream;

/// The state of one queue.
#[derive(Clone, Copy, Debug)]
struct Flow {
    codel: CoDel,
    /// Whether it may have more bytes than [`Fattest`] has recorded.
    grown: bool,
}

/// Finds the queue with the most bytes, lazily. A search first records the queues that have grown since the last one;
/// queues that have shrunk are corrected as the search meets them. Its cost depends on what has changed since the last
/// search, not on the number of queues.
#[derive(Clone, Debug, Default)]
struct Fattest {
    /// The queues that have grown, each once.
    grown: Vec<u32>,
    /// Per queue an upper bound of its bytes, except for those that have grown; inverted, so that the maximum is the
    /// tree's minimum.
    bytes: MinTree,
}

impl Fattest {
    #[inline]
    fn grows(&mut self, number: usize, queue: &mut Queue<Flow>) {
        if !queue.aqm.grown {
            queue.aqm.grown = true;
            self.grown.push(number as u32);
        }
    }

    /// The index of the queue with the most bytes; the first one if several are equal.
    fn find(&mut self, queues: &mut [Queue<Flow>]) -> Option<usize> {
        if self.bytes.len() != queues.len() {
            self.bytes = MinTree::new(vec![!0; queues.len()]);
        }
        for number in self.grown.drain(..) {
            let queue = &mut queues[number as usize];
            queue.aqm.grown = false;
            self.bytes.set(number as usize, !queue.bytes);
        }
        loop {
            let (max, number) = self.bytes.first()?;
            let bytes = !queues[number].bytes;
            if bytes == max {
                return Some(number);
            }
            self.bytes.set(number, bytes);
        }
    }

    /// Records that the queue found has shrunk, which saves the next search a correction.
    fn shrank(&mut self, number: usize, queue: &Queue<Flow>) {
        self.bytes.set(number, !queue.bytes);
    }
}

/// FQ-CoDel's state.
#[derive(Clone, Debug)]
pub(super) struct FqCoDel {
    settings: Settings,
    limit: Limit,
    batch: u32,
    flow_queues: FlowQueues<Flow>,
    fattest: Fattest,
}

impl FqCoDel {
    /// `hash` is the perturbation.
    ///
    /// # Panics
    /// If there are no queues, or the quantum is zero.
    pub(super) fn new(model: &FqCoDelModel, keys: Keys, hash: Stream) -> FqCoDel {
        let flow = Flow { codel: CoDel::new(), grown: false };
        FqCoDel {
            settings: Settings::new(&model.codel),
            limit: model.codel.limit,
            batch: model.batch.max(1),
            flow_queues: FlowQueues::new(model.queues, model.quantum, flow, keys, hash),
            fattest: Fattest::default(),
        }
    }

    pub(super) fn limit_to(&mut self, limit: Limit) {
        self.limit = limit;
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

    pub(super) fn enqueue(&mut self, packet: Packet, mut dropped: impl FnMut(&Packet, DropReason)) {
        let number = self.flow_queues.classify(&packet);
        self.flow_queues.push(number, packet);
        self.fattest.grows(number, &mut self.flow_queues.queues[number]);
        while self.is_over() {
            self.drop_from_fattest(&mut dropped);
        }
    }

    /// Whether the backlog exceeds the limit. A single packet never does.
    fn is_over(&self) -> bool {
        self.packets() > 1
            && match self.limit {
                Limit::Packets(limit) => self.packets() > limit,
                Limit::Bytes(limit) => self.bytes() > limit.0,
            }
    }

    #[cold]
    fn drop_from_fattest(&mut self, dropped: &mut impl FnMut(&Packet, DropReason)) {
        let Some(number) = self.fattest.find(&mut self.flow_queues.queues) else { return };
        let mut drawn = self.flow_queues.draw(number);
        let whole = drawn.queue.bytes;
        let (half, mut gone) = (whole / 2, 0);
        while gone < self.batch
            && *drawn.packets > 1
            && let Some(packet) = drawn.pop()
        {
            gone += 1;
            dropped(&packet, DropReason::Overflow);
            if whole - drawn.queue.bytes >= half {
                break;
            }
        }
        drawn.queue.aqm.codel.lost(gone);
        self.fattest.shrank(number, drawn.queue);
    }

    pub(super) fn dequeue(
        &mut self,
        now: u64,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) -> Option<Packet> {
        let settings = &self.settings;
        self.flow_queues.dequeue(|drawn| {
            let mut codel = drawn.queue.aqm.codel;
            let packet = codel.dequeue(settings, now, drawn, marks, &mut dropped);
            drawn.queue.aqm.codel = codel;
            packet
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::CoDelModel;
    use paceline_packet::{ExtraId, Flags, FlowId, Stamp};
    use paceline_random::Sequence;
    use paceline_units::{Size, Time};

    /// For any arrivals and departures: the queue that drops is the first of those with the most bytes, as a linear
    /// search finds it.
    #[test]
    fn the_fattest_is_what_a_search_finds() {
        for (seed, queues) in [(1, 1), (2, 7), (3, 64), (4, 1024), (5, 3000)] {
            let codel = CoDelModel::new(Limit::Packets(100_000));
            let model = FqCoDelModel { codel, queues, quantum: Size(1514), batch: 64 };
            let mut queue = FqCoDel::new(&model, Keys::default(), Stream::new(seed, "perturbation"));
            let mut draws = Sequence::new(Stream::new(seed, "fattest"));
            let mut below = |n: u64| (draws.unit() * n as f64) as u64;
            let mut found = 0;
            for now in 0..6000 {
                for _ in 0..below(4) {
                    let packet = Packet {
                        time: Time(now),
                        cursor: 0,
                        size: 100 * (1 + below(3)) as u16,
                        flags: Flags::NONE,
                        flow: FlowId(below(200) as u32),
                        seq: 0,
                        stamp: Stamp(0),
                        extra: ExtraId::NONE,
                    };
                    queue.enqueue(packet, |_, _| {});
                }
                for _ in 0..below(4) {
                    queue.dequeue(now, &mut 0, |_, _| {});
                }
                if below(5) == 0 {
                    let max = queue.flow_queues.queues.iter().map(|queue| queue.bytes).max().unwrap();
                    let first = queue.flow_queues.queues.iter().position(|queue| queue.bytes == max);
                    assert_eq!(queue.fattest.find(&mut queue.flow_queues.queues), first, "{queues} queues at {now}");
                    found += usize::from(first != Some(0));
                }
                if below(20) == 0 {
                    queue.drop_from_fattest(&mut |_: &Packet, _| {});
                }
            }
            assert!(queues == 1 || found > 100, "{found}");
        }
    }
}
