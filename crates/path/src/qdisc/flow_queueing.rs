//! Flow queueing with any AQM per queue: the part that FQ-CoDel (RFC 8290, section 4.2) and FQ-PIE share.
//!
//! One queue per hash of a flow, deficit round robin among queues with packets, and priority for queues that have just
//! become active.

use super::Keys;
use super::fifo::Waiting;
use paceline_packet::Packet;
use paceline_random::Stream;
use paceline_units::Size;
use std::collections::VecDeque;

/// No node.
const NONE: u32 = u32::MAX;

/// A packet and the index of the next one in its queue.
#[derive(Clone, Copy, Debug)]
struct Node {
    packet: Packet,
    next: u32,
}

/// Storage for the packets of all queues, with a free list.
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

    /// Frees a node; returns its packet and the index of the next one.
    fn take(&mut self, place: u32) -> Node {
        let node = self.nodes[place as usize];
        self.nodes[place as usize].next = self.free;
        self.free = place;
        node
    }
}

/// One flow queue and its AQM state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue<A> {
    head: u32,
    tail: u32,
    pub(super) bytes: u64,
    /// Bytes that it may still send in its turn.
    credits: i64,
    /// Whether it is in one of the two lists.
    active: bool,
    pub(super) aqm: A,
}

impl<A> Queue<A> {
    const fn new(aqm: A) -> Queue<A> {
        Queue { head: NONE, tail: NONE, bytes: 0, credits: 0, active: false, aqm }
    }

    #[inline]
    fn push(&mut self, packet: Packet, places: &mut Places) {
        self.bytes += u64::from(packet.size);
        let place = places.put(packet);
        match self.head {
            NONE => self.head = place,
            _ => places.nodes[self.tail as usize].next = place,
        }
        self.tail = place;
    }

    #[inline]
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

/// A queue with its storage; packets that leave through it update the totals.
pub(super) struct Drawn<'a, A> {
    pub(super) queue: &'a mut Queue<A>,
    places: &'a mut Places,
    /// Totals of all queues.
    pub(super) packets: &'a mut u32,
    bytes: &'a mut u64,
}

impl<A> Waiting for Drawn<'_, A> {
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

/// All flow queues and their scheduler.
#[derive(Clone, Debug)]
pub(super) struct FlowQueues<A> {
    pub(super) queues: Vec<Queue<A>>,
    quantum: i64,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    places: Places,
    packets: u32,
    bytes: u64,
    hash: Stream,
    pub(super) keys: Keys,
}

impl<A: Copy> FlowQueues<A> {
    /// `queues` queues, each under a copy of `aqm`; `hash` is the perturbation.
    ///
    /// # Panics
    /// If there are no queues, or the quantum is zero.
    pub(super) fn new(queues: u32, quantum: Size, aqm: A, keys: Keys, hash: Stream) -> FlowQueues<A> {
        assert!(queues > 0 && quantum.0 > 0, "flow queueing needs queues, and a quantum for each");
        FlowQueues {
            queues: vec![Queue::new(aqm); queues as usize],
            quantum: i64::try_from(quantum.0).unwrap_or(i64::MAX / 2),
            new: VecDeque::new(),
            old: VecDeque::new(),
            places: Places { nodes: Vec::new(), free: NONE },
            packets: 0,
            bytes: 0,
            hash,
            keys,
        }
    }

    #[inline]
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The queue of a packet.
    #[inline]
    pub(super) fn classify(&self, packet: &Packet) -> usize {
        let share = u128::from(self.hash.bits(self.keys.key(packet))) * self.queues.len() as u128;
        (share >> 64) as usize
    }

    /// Appends a packet to its queue.
    #[inline]
    pub(super) fn push(&mut self, number: usize, packet: Packet) {
        let queue = &mut self.queues[number];
        queue.push(packet, &mut self.places);
        self.packets += 1;
        self.bytes += u64::from(packet.size);
        if !queue.active {
            (queue.active, queue.credits) = (true, self.quantum);
            self.new.push_back(number as u32);
        }
    }

    /// Access to a queue, to take packets out of turn.
    pub(super) fn draw(&mut self, number: usize) -> Drawn<'_, A> {
        let FlowQueues { queues, places, packets, bytes, .. } = self;
        Drawn { queue: &mut queues[number], places, packets, bytes }
    }

    /// The next packet in turn; `take` takes it from the queue, or finds none.
    #[inline]
    pub(super) fn dequeue(&mut self, mut take: impl FnMut(&mut Drawn<'_, A>) -> Option<Packet>) -> Option<Packet> {
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
            let mut drawn =
                Drawn { queue, places: &mut self.places, packets: &mut self.packets, bytes: &mut self.bytes };
            if let Some(packet) = take(&mut drawn) {
                drawn.queue.credits -= i64::from(packet.size);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // Once more through the old list first (RFC 8290): otherwise a flow of single packets could starve the
                // others.
                self.old.push_back(number);
            } else {
                queue.active = false;
            }
        }
    }
}
