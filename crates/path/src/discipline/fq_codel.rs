//! Flow queues under CoDel.
//!
//! Hoeiland-Joergensen, McKenney, Taht, Gettys, Dumazet, RFC 8290: a queue for each hash of a flow, deficit round robin
//! with priority for queues that have just become active (section 4.2), CoDel on each. When all together hold more than
//! the limit, the queue with the most bytes loses from its head up to half of them, at most a batch of packets
//! (section 4.1; half of the bytes, and not of the packets, as in Linux).

use super::Keys;
use super::codel::{CoDel, Settings};
use super::fifo::Waiting;
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
    codel: CoDel,
}

impl Queue {
    const EMPTY: Queue = Queue { head: NONE, tail: NONE, bytes: 0, credits: 0, active: false, codel: CoDel::new() };

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
            hash,
            keys,
        }
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
        // Of several with as many bytes the first, as a search from the beginning finds it.
        let Some(queue) = self.queues.iter_mut().rev().max_by_key(|queue| queue.bytes) else { return };
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
        drawn.queue.codel.lost(gone);
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
