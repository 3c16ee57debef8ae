//! Flow queues under CoDel.
//!
//! Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290: a queue for each hash of a flow, deficit round robin
//! with priority for queues that have just become active (section 4.2), CoDel on each. When all together hold more than
//! the limit, the queue with the most bytes loses from its head up to half of them, at most a batch of packets
//! (section 4.1; half of the bytes, and not of the packets, as in Linux).

use super::Keys;
use super::codel::{CoDel, Settings};
use super::fifo::Waiting;
use super::least::Least;
use super::model::FqCoDelModel;
use crate::DropReason;
use crate::model::Limit;
use paceline_packet::{Flags, Packet};
use paceline_random::Stream;
use std::collections::VecDeque;

/// No place.
const NONE: u32 = u32::MAX;

/// A packet and the place of the next one of its queue.
#[derive(Clone, Copy, Debug)]
struct Node {
    packet: Packet,
    next: u32,
}

/// Places for the packets of all queues.
#[derive(Clone, Debug)]
struct Places {
    nodes: Vec<Node>,
    free: u32,
}

impl Places {
    fn put(&mut self, packet: Packet) -> u32 {
        if self.free == NONE {
            self.nodes.push(Node { packet, next: NONE });
            return (self.nodes.len() - 1) as u32;
        }
        let place = self.free;
        self.free = self.nodes[place as usize].next;
        self.nodes[place as usize] = Node { packet, next: NONE };
        place
    }

    /// The packet, and the place of the next one.
    fn take(&mut self, place: u32) -> Node {
        let node = self.nodes[place as usize];
        self.nodes[place as usize].next = self.free;
        self.free = place;
        node
    }
}

/// One queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
    bytes: u64,
    /// Bytes that it may still send in its turn.
    credits: i64,
    /// Whether it is in one of the two lists.
    active: bool,
    /// Whether it may have more bytes than [`Fattest`] knows of.
    grown: bool,
    codel: CoDel,
}

impl Queue {
    const EMPTY: Queue =
        Queue { head: NONE, tail: NONE, bytes: 0, credits: 0, active: false, grown: false, codel: CoDel::new() };

    fn push(&mut self, packet: Packet, places: &mut Places) {
        self.bytes += u64::from(packet.size);
        let place = places.put(packet);
        match self.head {
            NONE => self.head = place,
            _ => places.nodes[self.tail as usize].next = place,
        }
        self.tail = place;
    }

    fn pop(&mut self, places: &mut Places) -> Option<Packet> {
        if self.head == NONE {
            return None;
        }
        let Node { packet, next } = places.take(self.head);
        self.head = next;
        self.bytes -= u64::from(packet.size);
        Some(packet)
    }
}

/// A queue with its places, and what leaves all queues through it.
struct Drawn<'a> {
    queue: &'a mut Queue,
    places: &'a mut Places,
    packets: &'a mut u32,
    bytes: &'a mut u64,
}

impl Waiting for Drawn<'_> {
    #[inline]
    fn pop(&mut self) -> Option<Packet> {
        let packet = self.queue.pop(self.places)?;
        *self.packets -= 1;
        *self.bytes -= u64::from(packet.size);
        Some(packet)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.queue.bytes
    }
}

/// Which queue has the most bytes. Nothing is kept in order until that is asked: then it is told of the queues that have
/// grown since it was asked before; of those that have shrunk it finds out as it comes to them. A question thus costs what
/// has changed since the last one, however many queues there are.
#[derive(Clone, Debug, Default)]
struct Fattest {
    /// The queues that have grown, each once.
    grown: Vec<u32>,
    /// For each queue no fewer bytes than it has, but for those that have grown; inverted: the most are the least.
    bytes: Least,
}

impl Fattest {
    #[inline]
    fn grows(&mut self, number: usize, queue: &mut Queue) {
        if !queue.grown {
            queue.grown = true;
            self.grown.push(number as u32);
        }
    }

    /// The number of the queue with the most bytes; of several with as many, the first.
    fn find(&mut self, queues: &mut [Queue]) -> Option<usize> {
        if self.bytes.len() != queues.len() {
            self.bytes = Least::new(vec![!0; queues.len()]);
        }
        for number in self.grown.drain(..) {
            let queue = &mut queues[number as usize];
            queue.grown = false;
            self.bytes.set(number as usize, !queue.bytes);
        }
        loop {
            let (most, number) = self.bytes.first()?;
            let bytes = !queues[number].bytes;
            if bytes == most {
                return Some(number);
            }
            self.bytes.set(number, bytes);
        }
    }

    /// The queue that was found has shrunk. It would be found out when it is come to; but that is at the next question.
    fn shrank(&mut self, number: usize, queue: &Queue) {
        self.bytes.set(number, !queue.bytes);
    }
}

/// FQ-CoDel at work.
#[derive(Clone, Debug)]
pub(super) struct FqCoDel {
    settings: Settings,
    limit: Limit,
    quantum: i64,
    batch: u32,
    queues: Vec<Queue>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    places: Places,
    packets: u32,
    bytes: u64,
    fattest: Fattest,
    hash: Stream,
    keys: Keys,
}

impl FqCoDel {
    /// `hash` is the perturbation.
    ///
    /// # Panics
    /// If there are no queues, or the quantum is nothing.
    pub(super) fn new(model: &FqCoDelModel, keys: Keys, hash: Stream) -> FqCoDel {
        assert!(model.queues > 0 && model.quantum.0 > 0, "FQ-CoDel needs queues, and a quantum for each");
        FqCoDel {
            settings: Settings::new(&model.codel),
            limit: model.codel.limit,
            quantum: i64::try_from(model.quantum.0).unwrap_or(i64::MAX / 2),
            batch: model.batch.max(1),
            queues: vec![Queue::EMPTY; model.queues as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            places: Places { nodes: Vec::new(), free: NONE },
            packets: 0,
            bytes: 0,
            fattest: Fattest::default(),
            hash,
            keys,
        }
    }

    pub(super) fn limit_to(&mut self, most: Limit) {
        self.limit = most;
    }

    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The queue of a packet.
    fn classify(&self, packet: &Packet) -> usize {
        let back = self.keys == Keys::FlowAndDirection && packet.flags.has(Flags::ACK);
        let key = u64::from(packet.flow.0) << 1 | u64::from(back);
        let share = u128::from(self.hash.bits(key)) * self.queues.len() as u128;
        (share >> 64) as usize
    }

    pub(super) fn enqueue(&mut self, packet: Packet, mut dropped: impl FnMut(&Packet, DropReason)) {
        let number = self.classify(&packet);
        let queue = &mut self.queues[number];
        queue.push(packet, &mut self.places);
        self.fattest.grows(number, queue);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if !queue.active {
            (queue.active, queue.credits) = (true, self.quantum);
            self.new.push_back(number as u32);
        }
        while self.is_over() {
            self.drop_from_fattest(&mut dropped);
        }
    }

    /// Whether more waits than may. One packet always may.
    fn is_over(&self) -> bool {
        self.packets > 1
            && match self.limit {
                Limit::Packets(limit) => self.packets > limit,
                Limit::Bytes(limit) => self.bytes > limit.0,
            }
    }

    #[cold]
    fn drop_from_fattest(&mut self, dropped: &mut impl FnMut(&Packet, DropReason)) {
        let Some(number) = self.fattest.find(&mut self.queues) else { return };
        let queue = &mut self.queues[number];
        let (half, mut gone) = (queue.bytes / 2, 0);
        let mut drawn = Drawn { queue, places: &mut self.places, packets: &mut self.packets, bytes: &mut self.bytes };
        let whole = drawn.queue.bytes;
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
        queue.codel.lost(gone);
        self.fattest.shrank(number, queue);
    }

    pub(super) fn dequeue(
        &mut self,
        now: u64,
        marks: &mut u64,
        mut dropped: impl FnMut(&Packet, DropReason),
    ) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let queue = &mut self.queues[number as usize];
            if queue.credits <= 0 {
                queue.credits += self.quantum;
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let mut codel = queue.codel;
            let mut drawn =
                Drawn { queue, places: &mut self.places, packets: &mut self.packets, bytes: &mut self.bytes };
            let packet = codel.dequeue(&self.settings, now, &mut drawn, marks, &mut dropped);
            queue.codel = codel;
            if let Some(packet) = packet {
                queue.credits -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // Once round the old ones first: else a flow of single packets could keep the others from their turn.
                self.old.push_back(number);
            } else {
                queue.active = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::CoDelModel;
    use paceline_packet::{ExtraId, FlowId, Stamp};
    use paceline_random::Sequence;
    use paceline_units::{Size, Time};

    /// Whatever comes and goes: the queue that pays is the first of those with the most bytes, as a search through all
    /// finds it.
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
                    let most = queue.queues.iter().map(|queue| queue.bytes).max().unwrap();
                    let first = queue.queues.iter().position(|queue| queue.bytes == most);
                    assert_eq!(queue.fattest.find(&mut queue.queues), first, "{queues} queues at {now}");
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
